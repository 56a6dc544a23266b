//! Damaged files of robots, motion and meshes: read, or refused with a reason; never a panic, a hang or much memory. A million of each: `cargo run --release -p
//! supple-assets --example mutate -- 1000000`.

#[path = "common/allocator.rs"]
mod allocator;
#[path = "common/mutate.rs"]
mod mutate;

#[test]
fn twenty_thousand_damaged_files_of_each_format() {
    std::thread::scope(|scope| {
        for format in &mutate::FORMATS {
            scope.spawn(|| {
                let mutate::Read { taken, slowest, memory } = mutate::run(format, 20_000, 1);
                println!(
                    "{}: {taken} of 20000 were read; slowest {slowest:?}, most memory {memory} bytes",
                    format.name
                );
                // Damage that nothing notices and damage that is noticed: both must come up.
                assert!((100..19_900).contains(&taken), "{}: {taken}", format.name);
            });
        }
    });
}

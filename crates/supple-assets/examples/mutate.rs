//! Reads damaged files of every format: `cargo run --release -p supple-assets --example mutate -- 1000000 [SEED]`.

#[path = "../tests/common/allocator.rs"]
mod allocator;
#[path = "../tests/common/mutate.rs"]
mod mutate;

fn main() {
    let number = |k: usize, other: u64| std::env::args().nth(k).and_then(|text| text.parse().ok()).unwrap_or(other);
    let (count, seed) = (number(1, 20_000), number(2, 1));
    for format in &mutate::FORMATS {
        let mutate::Read { taken, slowest, memory } = mutate::run(format, count, seed);
        let name = format.name;
        println!(
            "{name}: {taken} of {count} were read, the others refused; slowest {slowest:?}, most memory {memory} bytes"
        );
    }
}

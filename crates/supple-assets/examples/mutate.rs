//! Reads damaged files of every format: `cargo run --release -p supple-assets --example mutate -- 1000000 [SEED]`.

#[path = "../tests/common/mutate.rs"]
mod mutate;

fn main() {
    let number = |k: usize, other: u64| std::env::args().nth(k).and_then(|text| text.parse().ok()).unwrap_or(other);
    let (count, seed) = (number(1, 20_000), number(2, 1));
    for format in &mutate::FORMATS {
        let taken = mutate::run(format, count, seed);
        println!("{}: {taken} of {count} were read, the others refused", format.name);
    }
}

//! Prints the table of docs/guide/characters.md: every character of a folder of models, held at rest for ten seconds.
//!
//! `SUPPLE_ASSETS=FOLDER cargo run --release -p supple-assets --example table`

#[path = "../tests/common/mod.rs"]
mod common;
#[path = "../tests/common/table.rs"]
mod table;

fn main() {
    println!("{}", table::HEAD);
    for path in common::characters() {
        match table::row(&path) {
            Ok(row) => {
                assert!(row.finite && row.fallbacks == 0 && row.gap < 1e-6, "{}", row.text);
                println!("{}", row.text);
            }
            Err(error) => println!("| {} | {error} | | | | | | |", path.display()),
        }
    }
}

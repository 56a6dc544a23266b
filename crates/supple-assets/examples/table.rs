//! Prints the table of docs/guide/characters.md: every glTF of a folder of models, held at rest for ten seconds.
//!
//! `SUPPLE_ASSETS=FOLDER cargo run --release -p supple-assets --example table`

#[path = "../tests/common/table.rs"]
mod table;

fn main() {
    let Some(assets) = std::env::var_os("SUPPLE_ASSETS") else {
        eprintln!("SUPPLE_ASSETS names no folder of models");
        std::process::exit(2);
    };
    println!("{}", table::HEAD);
    for path in table::files(std::path::Path::new(&assets)) {
        match table::row(&path) {
            Ok(row) => {
                assert!(row.finite && row.fallbacks == 0 && row.gap < 1e-6, "{}", row.text);
                println!("{}", row.text);
            }
            Err(error) => println!("| {} | {error} | | | | | | |", path.display()),
        }
    }
}

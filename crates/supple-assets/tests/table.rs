//! The table of the guide to characters is what the program does today.

mod common;
#[path = "common/table.rs"]
mod table;

#[test]
fn every_file_is_in_the_guide_as_it_is_and_rests_without_a_fallback() {
    let guide = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/characters.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    let files = common::characters();
    assert!(guide.contains(table::HEAD), "write it anew with `cargo run --release -p supple-assets --example table`");
    for path in files {
        let row = table::row(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        assert!(row.finite && row.fallbacks == 0 && row.gap < 1e-9, "{}", row.text);
        assert!(guide.contains(&row.text), "the guide lacks, or has otherwise: {}", row.text);
    }
}

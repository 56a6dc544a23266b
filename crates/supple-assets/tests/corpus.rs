//! The kept corpus of fuzzing (`fuzz/corpus`), by the same functions as the fuzz targets, without their tools.

#[path = "../../../fuzz/exercise.rs"]
mod exercise;

#[test]
fn the_kept_corpus_is_read_and_stepped() {
    let corpus = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    for (name, target) in exercise::TARGETS {
        let mut files: Vec<_> =
            std::fs::read_dir(corpus.join(name)).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        assert!(!files.is_empty(), "{name} has no corpus");
        for file in &files {
            println!("{}", file.display());
            target(&std::fs::read(file).unwrap());
        }
        println!("{name}: {} files", files.len());
    }
}

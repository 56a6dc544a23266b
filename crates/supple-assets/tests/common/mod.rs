//! Models made by others, and programs that read them independently.

use std::path::PathBuf;

/// The folder of models made by others; says aloud when it is absent, and fails where it must be there.
pub(crate) fn assets() -> Option<PathBuf> {
    let folder = std::env::var_os("SUPPLE_ASSETS").map(PathBuf::from).filter(|folder| folder.is_dir());
    if folder.is_none() {
        assert!(std::env::var_os("SUPPLE_REQUIRE_ASSETS").is_none(), "SUPPLE_ASSETS names no folder");
        eprintln!("SKIPPED: no models made by others (set SUPPLE_ASSETS)");
    }
    folder
}

/// All characters among the models made by others, in order: whatever may hold one, in all folders of them.
#[allow(dead_code)] // each test file has its own copy of this module
pub(crate) fn characters() -> Vec<PathBuf> {
    let folders = ["gltf", "characters", "vrm", "fbx"];
    let of = |folder: &'static str| supple_assets::CHARACTER_ENDINGS.into_iter().flat_map(move |e| files(folder, e));
    let mut found: Vec<PathBuf> = folders.into_iter().flat_map(of).collect();
    found.sort();
    assert!(found.is_empty() || found.len() >= 20, "{found:?}");
    found
}

/// All files with this ending in a folder of the assets, in order.
#[allow(dead_code)] // each test file has its own copy of this module
pub(crate) fn files(folder: &str, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open: Vec<PathBuf> = assets().map(|assets| assets.join(folder)).into_iter().collect();
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_dir() {
                open.push(entry);
            } else if entry.extension().is_some_and(|e| e == ending) {
                found.push(entry);
            }
        }
    }
    found.sort();
    found
}

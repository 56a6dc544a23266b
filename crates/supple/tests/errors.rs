//! Every error code in the sources is explained in `docs/errors.md`, and every code explained there exists.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn sources(folder: &Path, out: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && path.file_name().is_some_and(|n| n != "target" && n != "node_modules" && n != "tests") {
            sources(&path, out);
        } else if path.extension().is_some_and(|e| e == "rs") {
            out.push(path);
        }
    }
}

/// Words of the form `area/name` for the areas that have codes.
fn codes(text: &str) -> BTreeSet<String> {
    let areas = ["model", "step", "scene", "cli", "take", "studio", "file", "import", "bake", "doctor", "export"];
    let mut found = BTreeSet::new();
    for area in areas {
        for (at, _) in text.match_indices(&format!("{area}/")) {
            let before = text[..at].chars().next_back();
            if !matches!(before, Some('"' | '[' | '`')) {
                continue;
            }
            let word: String =
                text[at..].chars().take_while(|c| c.is_ascii_lowercase() || matches!(c, '/' | '-')).collect();
            let after = text[at + word.len()..].chars().next();
            if matches!(after, Some('"' | ']' | '`')) && word.len() > area.len() + 1 {
                found.insert(word);
            }
        }
    }
    found
}

#[test]
fn every_code_is_explained_and_every_explained_code_exists() {
    let mut files = Vec::new();
    sources(&root().join("crates"), &mut files);
    let mut used: BTreeSet<String> = files.iter().flat_map(|f| codes(&std::fs::read_to_string(f).unwrap())).collect();
    used.remove("model/gltf-binary"); // a media type, which has the same form
    let explained = codes(&std::fs::read_to_string(root().join("docs/errors.md")).unwrap());
    assert!(used.len() > 20, "the search found only {used:?}");
    assert_eq!(used.difference(&explained).collect::<Vec<_>>(), Vec::<&String>::new(), "not in docs/errors.md");
    assert_eq!(explained.difference(&used).collect::<Vec<_>>(), Vec::<&String>::new(), "in docs/errors.md only");
}

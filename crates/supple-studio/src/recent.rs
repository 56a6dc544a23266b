//! Files that were opened before, for the start page: a short list in the folder of journals. Losing it costs nothing.

use crate::disk::Disk;
use std::path::{Path, PathBuf};

/// The list, one JSON array of paths, the newest first.
const NAME: &str = "recent.json";
/// It holds this many.
const MOST: usize = 8;
/// A longer list was not written by this program \[bytes\].
const MAX_BYTES: u64 = 1 << 16;

/// The files that were opened before and are still there, the newest first.
pub fn recent_files(folder: &Path) -> Vec<PathBuf> {
    let path = folder.join(NAME);
    if !std::fs::metadata(&path).is_ok_and(|data| data.is_file() && data.len() <= MAX_BYTES) {
        return Vec::new();
    }
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let paths: Vec<PathBuf> = serde_json::from_str(&text).unwrap_or_default();
    paths.into_iter().filter(|path| path.is_absolute() && path.is_file()).take(MOST).collect()
}

/// Puts a file at the beginning of the list. Where the list cannot be written there is none.
pub fn remember_file(folder: &Path, file: &Path) {
    let Ok(file) = std::path::absolute(file) else { return };
    let mut paths = recent_files(folder);
    paths.retain(|path| *path != file);
    paths.insert(0, file);
    paths.truncate(MOST);
    let texts: Vec<_> = paths.iter().filter_map(|path| path.to_str()).collect();
    let list = serde_json::to_string(&texts).unwrap_or_default();
    // For this user alone, and so is the folder: whoever makes it first decides who may look into it.
    let disk = Disk::default();
    let _ = disk.make_folder(folder).and_then(|()| disk.write_whole(&folder.join(NAME), list.as_bytes()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_file_comes_first_and_what_is_gone_is_left_out() {
        let folder = std::env::temp_dir().join(format!("supple-recent-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        let files: Vec<_> = (0..MOST + 2).map(|k| folder.join(format!("{k}.glb"))).collect();
        for file in &files {
            remember_file(&folder, file);
            std::fs::write(file, "").unwrap();
        }
        // Nobody else may look into the folder of the journal, which is made here first, or see what was opened.
        #[cfg(unix)]
        for (path, mode) in [(folder.clone(), 0o700), (folder.join(NAME), 0o600)] {
            use std::os::unix::fs::PermissionsExt;
            let found = std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
            assert_eq!(found, mode, "{}: {found:o}", path.display());
        }
        files.iter().for_each(|file| remember_file(&folder, file));
        remember_file(&folder, &files[5]);
        let found = recent_files(&folder);
        assert_eq!((found.len(), &found[0], &found[1]), (MOST, &files[5], &files[MOST + 1]));
        std::fs::remove_file(&files[5]).unwrap();
        assert_eq!(recent_files(&folder)[0], files[MOST + 1]);
        std::fs::write(folder.join(NAME), "no list").unwrap();
        assert!(recent_files(&folder).is_empty());
        std::fs::remove_dir_all(folder).unwrap();
    }
}

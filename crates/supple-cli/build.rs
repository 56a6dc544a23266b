//! Makes the fingerprint of this build that takes carry: a number that differs when anything differs that is computed. It is taken from the
//! sources of the physics and the versions of what they use, as far as they are there (a published package has its version instead),
//! the compiler, and what it compiles for.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

fn main() {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let mut hash = 0xcbf29ce484222325u64; // FNV-1a
    let mut eat = |bytes: &[u8]| {
        for byte in bytes {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x100000001b3);
        }
    };
    for part in [here.join("../supple/src"), here.join("../../Cargo.lock")] {
        if part.exists() {
            println!("cargo:rerun-if-changed={}", part.display());
            files(&part).iter().for_each(|file| eat(&fs::read(file).unwrap_or_default()));
        }
    }
    let compiler = env::var_os("RUSTC").and_then(|rustc| Command::new(rustc).arg("-V").output().ok());
    eat(&compiler.map(|output| output.stdout).unwrap_or_default());
    for name in ["TARGET", "OPT_LEVEL", "CARGO_CFG_TARGET_FEATURE", "CARGO_PKG_VERSION", "CARGO_ENCODED_RUSTFLAGS"] {
        eat(env::var(name).unwrap_or_default().as_bytes());
    }
    println!("cargo:rustc-env=SUPPLE_BUILD={hash:016x}");
}

/// A file, or all files in a folder, in a fixed order.
fn files(path: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(path) else { return vec![path.to_owned()] };
    let mut found: Vec<PathBuf> = entries.flatten().flat_map(|entry| files(&entry.path())).collect();
    found.sort();
    found
}

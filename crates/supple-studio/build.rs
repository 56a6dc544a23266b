//! Builds the page into `OUT_DIR/page`, in three tiers:
//!
//! 1. `web/package.json` and npm are there: npm builds it.
//! 2. `web/dist` is there (in a published package): it is copied.
//! 3. Otherwise a page that says how to get the real one.
//!
//! The documents of the repository go beside it as `docs/*.html`, whichever tier the page is of.
//!
//! `SUPPLE_PAGE=require` makes a failed first tier an error, for releases; `SUPPLE_PAGE=skip` goes past it.

mod build {
    pub(crate) mod documents;
}

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, io};

fn main() {
    println!("cargo:rerun-if-env-changed=SUPPLE_PAGE");
    let web = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("web");
    for part in ["src", "public", "index.html", "package.json", "package-lock.json", "vite.config.ts", "dist"] {
        if web.join(part).exists() {
            println!("cargo:rerun-if-changed={}", web.join(part).display());
        }
    }
    let page = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it")).join("page");
    let _ = fs::remove_dir_all(&page);
    make_page(&web, &page);

    let docs = web.join("../../../docs");
    println!("cargo:rerun-if-changed={}", if docs.is_dir() { docs.display() } else { web.display() });
    build::documents::write(&docs, &page.join("docs")).expect("OUT_DIR can be written");
    list(&page).expect("OUT_DIR can be written");
}

/// Writes `OUT_DIR/page.rs`: the files of the page by their names, sorted, with their bytes.
fn list(page: &Path) -> io::Result<()> {
    let (mut folders, mut files) = (vec![page.to_owned()], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    let mut lines = Vec::new();
    for file in &files {
        let name = file.strip_prefix(page).map_err(io::Error::other)?.to_string_lossy().replace('\\', "/");
        lines.push((name, file.to_string_lossy()));
    }
    lines.sort();
    let lines = lines.iter().map(|(name, file)| format!("    ({name:?}, include_bytes!({file:?})),\n"));
    fs::write(page.with_extension("rs"), format!("&[\n{}]\n", lines.collect::<String>()))
}

/// The page itself, by the first tier that works.
fn make_page(web: &Path, page: &Path) {
    let wish = env::var("SUPPLE_PAGE").unwrap_or_default();
    let built = if !web.join("package.json").is_file() || env::var_os("DOCS_RS").is_some() || wish == "skip" {
        Err("it was not asked to".to_owned())
    } else {
        with_npm(web, page)
    };
    if built.is_ok() {
        return;
    }
    if let (Err(reason), "require") = (&built, wish.as_str()) {
        panic!("the studio's page could not be built with npm: {reason}");
    }
    if web.join("dist/index.html").is_file() && copy(&web.join("dist"), page).is_ok() {
        return;
    }
    if let Err(reason) = built {
        println!("cargo:warning=the studio gets a placeholder page: npm did not build the real one ({reason})");
    }
    let _ = fs::remove_dir_all(page);
    fs::create_dir_all(page).expect("OUT_DIR can be written");
    fs::write(page.join("index.html"), PLACEHOLDER).expect("OUT_DIR can be written");
}

/// Installs what the page needs, if that was not done since the lock file changed, and builds it.
fn with_npm(web: &Path, page: &Path) -> Result<(), String> {
    let changed = |path: &str| fs::metadata(web.join(path)).and_then(|data| data.modified()).ok();
    if changed("node_modules/.package-lock.json") < changed("package-lock.json")
        || !web.join("node_modules/vite").is_dir()
    {
        npm(web, &["ci", "--no-audit", "--no-fund"]).or_else(|_| npm(web, &["install", "--no-audit", "--no-fund"]))?;
    }
    npm(web, &["run", "build", "--", "--outDir", &page.to_string_lossy(), "--emptyOutDir"])?;
    if page.join("index.html").is_file() { Ok(()) } else { Err("it made no index.html".into()) }
}

fn npm(web: &Path, words: &[&str]) -> Result<(), String> {
    let name = if cfg!(windows) { "npm.cmd" } else { "npm" };
    let output = Command::new(name).args(words).current_dir(web).output().map_err(|e| format!("{name}: {e}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let last = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it said nothing");
    Err(format!("npm {} failed: {last}", words[0]))
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type()?.is_dir() {
            copy(&from, &to)?;
        } else {
            fs::copy(&from, &to)?;
        }
    }
    Ok(())
}

const PLACEHOLDER: &str = r#"<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Supple</title>
<style>
  :root { color-scheme: light dark }
  body { font: 1.1rem/1.6 system-ui, sans-serif; max-width: 38rem; margin: 4rem auto; padding: 0 1rem }
</style>
<h1>The studio's page is not in this binary</h1>
<p>This <code>supple</code> was built on a machine without npm, so its page could not be made. Everything else works: the
simulation runs, and programs can talk to it over the WebSocket at <code>/socket</code>.</p>
<p>To get the page, install Node.js 20.19 or newer (which brings npm) and build again:</p>
<pre>SUPPLE_PAGE=require cargo build --release</pre>
<p>The build then says why if the page cannot be made. <a href="guide">The guide</a> is here in any case.</p>
</html>
"#;

//! The documents as pages: `docs/x.md` becomes `docs/x.html`, pictures are copied, links between documents are kept.

use pulldown_cmark::{CowStr, Event, HeadingLevel, LinkType, Options, Parser, Tag, TagEnd, html};
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Writes all documents under `from` to `to`. Where there are none (in a published package), a page says where they are.
pub(crate) fn write(from: &Path, to: &Path) -> io::Result<()> {
    let mut found = Vec::new();
    if from.is_dir() {
        find(from, Path::new(""), &mut found)?;
    }
    // The guide first, then by name.
    found.sort_by_key(|path| (!path.starts_with("guide"), path.clone()));
    let texts: Vec<(PathBuf, String)> = found
        .iter()
        .filter(|path| has_ending(path, "md"))
        .map(|path| Ok((path.clone(), fs::read_to_string(from.join(path))?)))
        .collect::<io::Result<_>>()?;
    for path in found.iter().filter(|path| ["png", "jpg", "gif", "svg"].iter().any(|ending| has_ending(path, ending))) {
        fs::create_dir_all(to.join(path).parent().expect("it is in a folder"))?;
        fs::copy(from.join(path), to.join(path))?;
    }
    for (path, text) in &texts {
        let target = to.join(path).with_extension("html");
        fs::create_dir_all(target.parent().expect("it is in a folder"))?;
        fs::write(target, page(path, text, &texts))?;
    }
    if texts.is_empty() {
        fs::create_dir_all(to.join("guide"))?;
        let text = "# The guide\n\nThis copy of Supple was built without its documents. They are in the folder `docs` of its repository.";
        fs::write(to.join("guide/studio.html"), page(Path::new("guide/studio.md"), text, &[]))?;
    }
    Ok(())
}

fn has_ending(path: &Path, ending: &str) -> bool {
    path.extension().is_some_and(|e| e == ending)
}

/// Paths of all files, relative to the folder.
fn find(folder: &Path, below: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder.join(below))? {
        let entry = entry?;
        let path = below.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            find(folder, &path, found)?;
        } else {
            found.push(path);
        }
    }
    Ok(())
}

/// A document as a page, with links to all others beside it.
fn page(path: &Path, text: &str, all: &[(PathBuf, String)]) -> String {
    let up = "../".repeat(path.components().count() - 1);
    let mut links = String::new();
    for (other, text) in all {
        let here = if other == path { " aria-current=\"page\"" } else { "" };
        let target = other.with_extension("html").to_string_lossy().replace('\\', "/");
        links.push_str(&format!("<a href=\"{up}{target}\"{here}>{}</a>\n", escape(title(text))));
    }
    let mut body = String::new();
    html::push_html(&mut body, events(path, text, all).into_iter());
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{} · Supple</title>\n<link rel=\"icon\" href=\"data:,\">\n<style>{STYLE}</style>\n\
         <nav aria-label=\"Documents\"><strong>Supple</strong>\n{links}</nav>\n<main>\n{body}</main>\n</html>\n",
        escape(title(text))
    )
}

/// The text of the first heading.
fn title(text: &str) -> &str {
    text.lines().find_map(|line| line.strip_prefix("# ")).unwrap_or("Supple").trim()
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// The document's parts, headings with names to link to, links to documents turned to their pages, links to what is not served left as words.
fn events<'a>(path: &Path, text: &'a str, all: &[(PathBuf, String)]) -> Vec<Event<'a>> {
    let options = Options::ENABLE_TABLES;
    let mut out: Vec<Event<'a>> = Vec::new();
    let mut heading: Option<(usize, HeadingLevel, String)> = None;
    let mut dropped = 0;
    for event in Parser::new_ext(text, options) {
        match event {
            Event::Start(Tag::Heading { level, .. }) => {
                heading = Some((out.len(), level, String::new()));
                out.push(event);
            }
            Event::End(TagEnd::Heading(_)) => {
                let (at, level, words) = heading.take().expect("a heading ends after it began");
                let id = Some(CowStr::from(slug(&words)));
                out[at] = Event::Start(Tag::Heading { level, id, classes: Vec::new(), attrs: Vec::new() });
                out.push(event);
            }
            Event::Start(Tag::Link { link_type: LinkType::Inline, dest_url, title, id }) => {
                match served(path, &dest_url, all) {
                    Some(target) => {
                        out.push(Event::Start(Tag::Link {
                            link_type: LinkType::Inline,
                            dest_url: target.into(),
                            title,
                            id,
                        }));
                    }
                    None => dropped += 1,
                }
            }
            Event::End(TagEnd::Link) if dropped > 0 => dropped -= 1,
            _ => {
                if let (Some((.., words)), Event::Text(text) | Event::Code(text)) = (&mut heading, &event) {
                    words.push_str(text);
                }
                out.push(event);
            }
        }
    }
    out
}

/// Where a link of the document leads on the server, if it leads to something there or elsewhere on the net.
fn served(path: &Path, link: &str, all: &[(PathBuf, String)]) -> Option<String> {
    if link.contains("://") || link.starts_with('#') {
        return Some(link.to_owned());
    }
    let (file, place) = link.split_once('#').map_or((link, String::new()), |(file, place)| (file, format!("#{place}")));
    let mut whole: Vec<&str> = path.parent()?.iter().filter_map(|part| part.to_str()).collect();
    for part in file.split('/') {
        match part {
            ".." => {
                whole.pop()?;
            }
            "." => {}
            name => whole.push(name),
        }
    }
    let whole: PathBuf = whole.iter().collect();
    all.iter().any(|(other, _)| *other == whole).then(|| format!("{}{place}", file.replace(".md", ".html")))
}

/// `Go back and try again` → `go-back-and-try-again`.
fn slug(words: &str) -> String {
    let kept = words.to_lowercase().replace(|c: char| !(c.is_alphanumeric() || c == ' ' || c == '-'), "");
    kept.trim().replace(' ', "-")
}

const STYLE: &str = "
:root { color-scheme: light dark; --ink: #1b222c; --faint: #566173; --line: #d9dee6; --back: #fbfcfd; --code: #eef0f3; --accent: #1f5fa6;
  font: 16px/1.6 -apple-system, BlinkMacSystemFont, 'Segoe UI', Inter, Roboto, 'Noto Sans', Ubuntu, Cantarell, 'Liberation Sans', system-ui, sans-serif;
  color: var(--ink); background: var(--back) }
@media (prefers-color-scheme: dark) { :root { --ink: #e7eaf0; --faint: #9ba7b8; --line: #2a313b; --back: #13171c; --code: #20262f; --accent: #79b4f0 } }
body { margin: 0 auto; max-width: 70rem; padding: 2rem 1.5rem 5rem; display: grid; grid-template-columns: 12rem minmax(0, 1fr); gap: 3rem }
nav { display: grid; gap: 0.35rem; align-content: start; position: sticky; top: 2rem; height: max-content; font-size: 0.92rem }
nav strong { margin-bottom: 0.5rem }
nav a { color: var(--faint); text-decoration: none }
nav a:hover, nav a[aria-current] { color: var(--accent) }
a { color: var(--accent) }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px }
h1 { margin: 0 0 1rem; line-height: 1.2; letter-spacing: -0.01em }
h2 { margin: 2.5rem 0 0.5rem; line-height: 1.3 }
img { max-width: 100%; height: auto; border-radius: 8px; border: 1px solid var(--line) }
code { font: 0.88em ui-monospace, 'Liberation Mono', monospace; background: var(--code); border-radius: 4px; padding: 0.1em 0.3em }
pre { background: var(--code); border-radius: 8px; padding: 0.8rem 1rem; overflow-x: auto }
pre code { padding: 0 }
table { border-collapse: collapse; font-size: 0.92em; display: block; overflow-x: auto }
th, td { text-align: left; vertical-align: top; padding: 0.4rem 0.8rem 0.4rem 0; border-bottom: 1px solid var(--line) }
@media (max-width: 800px) { body { grid-template-columns: minmax(0, 1fr); gap: 1.5rem } nav { position: static; grid-template-columns: repeat(auto-fill, minmax(9rem, 1fr)) } }
";

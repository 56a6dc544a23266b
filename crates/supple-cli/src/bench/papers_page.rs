//! The rows of `supple bench papers` as one page, with curves and pictures. Nothing is loaded from elsewhere.

use super::papers::{Document, Faithful, Paper};
use super::whip_page::{STYLE, escaped};
use crate::table::figure;
use std::fmt::Write as _;

/// A picture or a curve, with its words.
pub(super) struct Picture {
    paper: Paper,
    words: String,
    /// What stands in the page.
    html: String,
}

impl Picture {
    pub(super) fn png(paper: Paper, words: &str, bytes: &[u8]) -> Picture {
        let (words, alt) = (words.to_owned(), escaped(words));
        let html = format!("<img alt=\"{alt}\" src=\"data:image/png;base64,{}\">", base64(bytes));
        Picture { paper, words, html }
    }

    pub(super) fn svg(paper: Paper, words: &str, svg: String) -> Picture {
        Picture { paper, words: words.to_owned(), html: svg }
    }
}

const ADDED: &str = "
nav a { margin-right: 1rem }
img, figure > svg { max-width: 100%; height: auto; display: block }
figure { margin: 1rem 0 }
table { font-size: .85rem; margin-bottom: 1rem }
th { text-align: left }
td:nth-child(1), td:nth-child(2), td:nth-child(6), td:nth-child(7), td:nth-child(8) { text-align: left; white-space: normal }
code { font-size: .8rem }
";

/// The whole page.
pub(super) fn page(document: &Document, pictures: &[Picture]) -> String {
    let mut html = String::new();
    let _ = write!(
        html,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>The five papers</title>\n<style>{STYLE}{ADDED}</style>\n</head>\n<body>\n\
         <h1>The five papers</h1>\n<p>Every table row and figure, published and measured here by the command in its row. The ratio is measured over \
         published. Published times are of the machines of their years; ours of {}.</p>\n<nav>",
        escaped(&document.machine.words())
    );
    let mut papers: Vec<Paper> = Vec::new();
    for row in &document.rows {
        if papers.last() != Some(&row.paper) {
            papers.push(row.paper);
        }
    }
    for (k, paper) in papers.iter().enumerate() {
        let _ = write!(html, "<a href=\"#paper-{k}\">{}</a>", paper.name());
    }
    html.push_str("</nav>\n");
    for (k, paper) in papers.iter().enumerate() {
        let _ = write!(
            html,
            "<h2 id=\"paper-{k}\">{}</h2>\n<table>\n<thead><tr><th>item</th><th>what</th><th>published</th><th>measured</th>\
             <th>ratio</th><th>unit</th><th>method</th><th>command</th></tr></thead>\n<tbody>\n",
            paper.name()
        );
        let or_dash = |x: Option<f64>| x.map_or("–".into(), figure);
        for row in document.rows.iter().filter(|row| row.paper == *paper) {
            let method = match row.faithful {
                Faithful::AsPublished => "as published",
                Faithful::Ours => "ours",
                Faithful::Both => "both",
            };
            let _ = writeln!(
                html,
                "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{method}</td><td><code>{}</code></td></tr>",
                escaped(&row.item),
                escaped(&row.what),
                or_dash(row.published),
                or_dash(row.measured),
                or_dash(row.ratio),
                escaped(row.unit),
                escaped(&row.command)
            );
        }
        html.push_str("</tbody></table>\n");
        for picture in pictures.iter().filter(|picture| picture.paper == *paper) {
            let _ =
                writeln!(html, "<figure><figcaption>{}</figcaption>{}</figure>", escaped(&picture.words), picture.html);
        }
    }
    html.push_str("</body>\n</html>\n");
    html
}

/// Bytes in letters (RFC 4648).
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let of = |k: usize| u32::from(three.get(k).copied().unwrap_or(0));
        let bits = of(0) << 16 | of(1) << 8 | of(2);
        for k in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * k)) as usize & 63] as char;
            text.push(if k <= three.len() { letter } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_those_of_the_standard() {
        for (bytes, text) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }
}

//! The bytes of a glTF file: .glb chunks, the JSON, and its buffers from the file, from data in the JSON, or from files beside it.

use super::compression;
use super::schema::Root;
use crate::files::MOST_BYTES;
use crate::{FileError, InputFile, Note};
use base64::Engine;
use std::path::Path;

/// The most values that the JSON may hold: each takes up to 250 bytes in memory.
const MAX_VALUES: usize = 1_500_000;

/// A glTF file in memory.
#[derive(Debug)]
pub(crate) struct Container {
    pub(crate) root: Root,
    /// The JSON text; of a file that is compressed as it would be without.
    pub(crate) json: String,
    /// By buffer.
    pub(crate) buffers: Vec<Vec<u8>>,
    /// What was noticed when JSON and buffers were made of the file.
    pub(crate) made: Vec<Note>,
    /// Whether the bytes of the file are this very JSON and these buffers: not where meshes were compressed, or the file is no glTF.
    pub(crate) is_own: bool,
}

/// Reads .glb or .gltf, told by the first bytes, with all buffers.
pub(crate) fn read(file: &InputFile) -> Result<Container, FileError> {
    let (path, bytes) = (file.path(), file.bytes());
    let (json, chunk) = match bytes.starts_with(b"glTF") {
        true => chunks(path, bytes)?,
        false => (bytes, None),
    };
    let json = std::str::from_utf8(json).map_err(|e| {
        let place = format!("byte {} of the JSON", e.valid_up_to());
        FileError::new("file/json", path, "the JSON is not UTF-8 text", "export the file again").at(place)
    })?;
    check_values(path, json)?;
    let root = parse(path, json)?;
    if root.asset.version.split('.').next() != Some("2") {
        let what = format!("it is glTF version \"{}\"", root.asset.version);
        return Err(FileError::new("file/version", path, what, "export it as glTF 2.0").at("asset.version"));
    }
    if let Some(name) = root.extensions_required.iter().find(|name| !super::UNDERSTOOD.contains(&name.as_str())) {
        let what = format!("it requires the extension {name}, which Supple does not read");
        let remedy = "export it without this extension, or mark it as used, not required";
        return Err(FileError::new("file/extension", path, what, remedy).at("extensionsRequired"));
    }
    let mut buffers = buffers(file, &root, chunk)?;
    match compression::unpack(path, json, &mut buffers)? {
        None => Ok(Container { root, json: json.to_owned(), buffers, made: Vec::new(), is_own: true }),
        Some(plain) => {
            let root = parse(path, &plain.json)?;
            Ok(Container { root, json: plain.json, buffers, made: vec![plain.note], is_own: false })
        }
    }
}

pub(crate) fn parse(path: &Path, json: &str) -> Result<Root, FileError> {
    serde_json::from_str(json).map_err(|e| {
        let place = format!("line {}, column {} of the JSON", e.line(), e.column());
        let what = e.to_string();
        let what = what.split(" at line ").next().unwrap_or(&what).to_owned();
        FileError::new("file/json", path, what, "export the file again, or correct it by hand").at(place)
    })
}

pub(crate) fn too_large(path: &Path, what: impl Into<String>) -> FileError {
    let remedy = "make it smaller: fewer vertices, shorter clips, or several files";
    FileError::new("file/size", path, what, remedy)
}

/// The JSON and the binary chunk of a .glb.
fn chunks<'a>(path: &Path, bytes: &'a [u8]) -> Result<(&'a [u8], Option<&'a [u8]>), FileError> {
    let broken = |at: usize, what: String| {
        FileError::new("file/container", path, what, "it is cut off or damaged: take another copy")
            .at(format!("byte {at}"))
    };
    let word = |at: usize| {
        let bytes: [u8; 4] = bytes.get(at..at + 4)?.try_into().ok()?;
        Some(u32::from_le_bytes(bytes) as usize)
    };
    let version = word(4).ok_or_else(|| broken(4, "the header is cut off".into()))?;
    if version != 2 {
        let what = format!("it is a .glb of version {version}");
        return Err(FileError::new("file/version", path, what, "export it as glTF 2.0").at("byte 4"));
    }
    let length = word(8).ok_or_else(|| broken(8, "the header is cut off".into()))?;
    if length > bytes.len() {
        return Err(broken(8, format!("it says it has {length} bytes, and it has {}", bytes.len())));
    }
    let (mut at, mut json, mut binary) = (12, None, None);
    while at + 8 <= length {
        let (size, kind) = (word(at).unwrap_or(0), word(at + 4).unwrap_or(0));
        let end = (at + 8).checked_add(size).filter(|end| *end <= length);
        let Some(end) = end else {
            return Err(broken(at, format!("a chunk says it has {size} bytes, and {} are left", length - at - 8)));
        };
        let chunk = &bytes[at + 8..end];
        match kind {
            0x4E4F_534A if json.is_none() => json = Some(chunk),
            0x004E_4942 if binary.is_none() => binary = Some(chunk),
            _ => {}
        }
        at = end;
    }
    let json = json.ok_or_else(|| broken(12, "there is no chunk of JSON".into()))?;
    Ok((json, binary))
}

/// Refuses JSON that would take far more memory than it has bytes: counts commas and opening brackets outside of strings.
fn check_values(path: &Path, json: &str) -> Result<(), FileError> {
    let (mut values, mut in_string, mut escaped) = (0, false, false);
    for byte in json.bytes() {
        match (in_string, byte) {
            (true, _) if escaped => escaped = false,
            (true, b'\\') => escaped = true,
            (true, b'"') => in_string = false,
            (true, _) => {}
            (false, b'"') => in_string = true,
            (false, b',' | b'[' | b'{') => values += 1,
            (false, _) => {}
        }
    }
    if values > MAX_VALUES {
        return Err(too_large(path, format!("its JSON holds {values} values, more than {MAX_VALUES}")));
    }
    Ok(())
}

fn buffers(file: &InputFile, root: &Root, mut chunk: Option<&[u8]>) -> Result<Vec<Vec<u8>>, FileError> {
    let path = file.path();
    let mut all = Vec::new();
    let mut total = 0u64;
    for (i, buffer) in root.buffers.iter().enumerate() {
        let place = format!("buffers[{i}]");
        let bad = |what: String, remedy: &str| FileError::new("file/buffer", path, what, remedy).at(place.clone());
        let bytes = match &buffer.uri {
            // For readers that cannot unpack the views of it: nothing is read of it here.
            _ if buffer.extensions.get(compression::MESHOPT).is_some_and(|told| told["fallback"] == true) => {
                all.push(Vec::new());
                continue;
            }
            None if i == 0 => chunk
                .take()
                .map(<[u8]>::to_vec)
                .ok_or_else(|| bad("it has no uri, and the file has no binary chunk".into(), "export it again"))?,
            None => return Err(bad("it has no uri".into(), "export it again")),
            Some(uri) => match uri.split_once(',') {
                Some((head, text)) if head.starts_with("data:") && head.ends_with(";base64") => {
                    base64::engine::general_purpose::STANDARD
                        .decode(text)
                        .map_err(|e| bad(format!("its data is not base64: {e}"), "export it again"))?
                }
                _ if uri.starts_with("data:") => {
                    return Err(bad("its data is not base64".into(), "export it again"));
                }
                _ => beside(file, uri).map_err(|e| e.at(place.clone()))?,
            },
        };
        if bytes.len() < buffer.byte_length {
            let what = format!("it should have {} bytes, and it has {}", buffer.byte_length, bytes.len());
            return Err(bad(what, "it is cut off: take another copy"));
        }
        total += bytes.len() as u64;
        if total > MOST_BYTES {
            return Err(too_large(path, format!("its buffers have more than {MOST_BYTES} bytes")).at(place));
        }
        all.push(bytes);
    }
    Ok(all)
}

/// The file that a URI names.
pub(crate) fn beside(file: &InputFile, uri: &str) -> Result<Vec<u8>, FileError> {
    let wrong =
        |what: String| FileError::new("file/buffer", file.path(), what, "name a file beside it, or export it again");
    let name = decode_percent(uri).ok_or_else(|| wrong(format!("the uri \"{uri}\" is not one")))?;
    if name.is_empty() || name.contains(['\\', ':', '\0']) {
        return Err(wrong(format!("the uri \"{uri}\" names no file beside it")));
    }
    Ok(file.beside(name)?.into_bytes())
}

/// `a%20b` → `a b`.
pub(crate) fn decode_percent(uri: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(uri.len());
    let mut rest = uri.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'%' => {
                let digit = |b: u8| char::from(b).to_digit(16).map(|d| d as u8);
                bytes.push(16 * digit(rest.next()?)? + digit(rest.next()?)?);
            }
            _ => bytes.push(byte),
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(name: &str, bytes: &[u8]) -> Result<Container, FileError> {
        read(&InputFile::sent(name, bytes.to_vec()))
    }

    fn fault(json: &str) -> FileError {
        sent("test.gltf", json.as_bytes()).expect_err(json)
    }

    #[test]
    fn a_file_that_was_sent_opens_no_other() {
        for (uri, code) in [
            ("Cargo.toml", "file/outside"),
            ("../secret.bin", "file/outside"),
            ("/etc/hostname", "file/outside"),
            ("%2e%2e/b.bin", "file/outside"),
            ("file:///etc/hostname", "file/buffer"),
            ("..\\\\b", "file/buffer"),
            ("", "file/buffer"),
        ] {
            let json = format!(r#"{{"asset":{{"version":"2.0"}},"buffers":[{{"uri":"{uri}","byteLength":4}}]}}"#);
            let error = fault(&json);
            assert_eq!((error.code, error.place.as_deref()), (code, Some("buffers[0]")), "{uri}");
        }
    }

    #[test]
    fn what_is_cut_off_is_told_with_its_place() {
        let mut glb = b"glTF\x02\0\0\0\x40\0\0\0".to_vec();
        let error = sent("a.glb", &glb).unwrap_err();
        assert_eq!((error.code, error.place.as_deref()), ("file/container", Some("byte 8")));
        glb[8] = 20;
        glb.extend(b"\xff\xff\0\0JSON");
        let error = sent("a.glb", &glb).unwrap_err();
        assert_eq!((error.code, error.place.as_deref()), ("file/container", Some("byte 12")));
        let error = fault("{\"asset\": {\"version\": \"2.0\"}, \n \"nodes\": [{\"mesh\": -1}]}");
        assert_eq!((error.code, error.place.as_deref()), ("file/json", Some("line 2, column 22 of the JSON")));
        assert_eq!(fault(r#"{"asset":{"version":"1.0"}}"#).code, "file/version");
        let error = fault(r#"{"asset":{"version":"2.0"},"extensionsRequired":["EXT_nothing"]}"#);
        assert_eq!(error.code, "file/extension");
        assert!(error.remedy.contains("without this extension"));
    }

    #[test]
    fn json_of_very_many_values_is_refused_before_it_is_read() {
        let json = format!("[{}0]", "0,".repeat(MAX_VALUES));
        assert_eq!(fault(&json).code, "file/size");
        // Text in strings is not counted.
        let json = format!(r#"{{"asset":{{"version":"2.0","copyright":"{}"}}}}"#, ",\\\"".repeat(MAX_VALUES));
        assert!(sent("a.gltf", json.as_bytes()).is_ok());
    }
}

//! The one door to the file system: what is opened for which file, and what stays closed.
#![cfg(unix)]

#[path = "common/damage.rs"]
#[allow(dead_code)]
mod damage;

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use supple_assets::{Character, FileError, Files, Imported, InputFile, open};

/// A folder of its own, removed in the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("supple-door-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn code(result: Result<Imported, FileError>) -> &'static str {
    match result {
        Ok(_) => "",
        Err(e) => {
            assert!(!e.what.is_empty() && !e.remedy.is_empty(), "{e}");
            e.code
        }
    }
}

/// The small character with its data in a file of this name.
fn with_buffer(uri: &str) -> (String, Vec<u8>) {
    let text = String::from_utf8(damage::small()).unwrap();
    let at = text.find("data:application/octet-stream;base64,").unwrap();
    let end = at + text[at..].find('"').unwrap();
    let mut bits = (0u32, 0);
    let mut bytes = Vec::new();
    for letter in text[at + 37..end].bytes().filter(|letter| *letter != b'=') {
        let digit = match letter {
            b'A'..=b'Z' => letter - b'A',
            b'a'..=b'z' => letter - b'a' + 26,
            b'0'..=b'9' => letter - b'0' + 52,
            b'+' => 62,
            _ => 63,
        };
        bits = (bits.0 << 6 | u32::from(digit), bits.1 + 6);
        if bits.1 >= 8 {
            bits.1 -= 8;
            bytes.push((bits.0 >> bits.1) as u8);
        }
    }
    (text[..at].to_owned() + uri + &text[end..], bytes)
}

const ENDINGS: [&str; 9] = ["glb", "gltf", "vrm", "fbx", "toml", "urdf", "xml", "bvh", "vrma"];

#[test]
fn only_regular_files_are_read() {
    let folder = Folder::new("regular");
    for ending in ENDINGS {
        let path = folder.0.join(format!("pipe.{ending}"));
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        let error = open(&path).unwrap_err();
        assert_eq!(
            (error.code, error.what.as_str()),
            ("file/read", "it is a pipe or a device, not a file"),
            "{ending}"
        );
        for (target, what) in [("/dev/zero", "device"), ("/dev/null", "device"), ("/tmp", "folder")] {
            let link = folder.0.join(format!("link.{ending}"));
            let _ = std::fs::remove_file(&link);
            symlink(target, &link).unwrap();
            let error = open(&link).unwrap_err();
            assert!(error.code == "file/read" && error.what.contains(what), "{target} as .{ending}: {error}");
        }
        assert_eq!(code(open(&folder.0.join(format!("none.{ending}")))), "file/read");
    }
    // A pipe that a file names is not waited for either.
    let text = with_buffer("pipe.bin").0;
    let gltf = folder.write("a.gltf", text);
    assert!(std::process::Command::new("mkfifo").arg(folder.0.join("pipe.bin")).status().unwrap().success());
    assert_eq!(code(open(&gltf)), "file/read");
}

#[test]
fn files_that_tell_no_length_and_files_that_are_too_large_are_refused() {
    let folder = Folder::new("size");
    for (ending, most) in [("toml", 4u64 << 20), ("xml", 64 << 20), ("gltf", 384 << 20)] {
        let path = folder.0.join(format!("large.{ending}"));
        std::fs::File::create(&path).unwrap().set_len(most + 1).unwrap(); // a hole: nothing is on the disk
        assert_eq!(code(open(&path)), "file/size", "{ending}");
    }
    // What is sent is no larger. (Zeros that nobody touches take no memory.)
    for ending in ["fbx", "glb", "vrm"] {
        let error = Character::from_bytes(Path::new(&format!("a.{ending}")), vec![0; (384 << 20) + 1]).unwrap_err();
        assert_eq!(error.code, "file/size", "{error}");
    }
}

#[test]
fn what_a_gltf_names_lies_in_its_folder() {
    let folder = Folder::new("gltf");
    let bytes = with_buffer("").1;
    folder.write("secret.bin", &bytes);
    folder.write("model/data/inside.bin", &bytes);
    folder.write("model/a b.bin", &bytes);
    symlink(folder.0.join("secret.bin"), folder.0.join("model/link.bin")).unwrap();
    symlink(&folder.0, folder.0.join("model/up")).unwrap();
    symlink("data/inside.bin", folder.0.join("model/near.bin")).unwrap();
    let absolute = folder.0.join("secret.bin").to_string_lossy().into_owned();
    let cases = [
        ("data/inside.bin", ""),
        ("./data/../a%20b.bin", ""),
        ("near.bin", ""),
        ("none.bin", "file/read"),
        ("data", "file/read"),
        ("../secret.bin", "file/outside"),
        ("../none.bin", "file/outside"),
        ("%2e%2e/secret.bin", "file/outside"),
        ("data/../../secret.bin", "file/outside"),
        ("link.bin", "file/outside"),
        ("up/secret.bin", "file/outside"),
        (&absolute, "file/outside"),
        ("file:///etc/hostname", "file/buffer"),
    ];
    for (uri, wanted) in cases {
        let path = folder.write("model/a.gltf", with_buffer(uri).0);
        assert_eq!(code(open(&path)), wanted, "{uri}");
        // Sent alone it has no folder, whatever name it was sent under.
        let sent = Character::from_bytes(&path, with_buffer(uri).0.into_bytes()).unwrap_err();
        assert!(matches!(sent.code, "file/outside" | "file/buffer"), "{uri}: {sent}");
        assert_eq!(sent.place.as_deref(), Some("buffers[0]"), "{uri}");
    }
    // What the user allows is open; and nothing beyond it.
    let files = Files::allowing(std::slice::from_ref(&folder.0)).unwrap();
    let path = folder.write("model/a.gltf", with_buffer("../secret.bin").0);
    assert_eq!(code(files.scene(&path)), "");
    let path = folder.write("model/a.gltf", with_buffer("/etc/hostname").0);
    assert_eq!(code(files.scene(&path)), "file/outside");
    assert_eq!(Files::allowing(&[folder.0.join("none")]).unwrap_err().code, "file/folder");
    assert_eq!(Files::allowing(&[path]).unwrap_err().code, "file/folder");
}

#[test]
fn what_a_scene_file_names_lies_in_its_folder() {
    let folder = Folder::new("scene");
    folder.write("strip.gltf", damage::small());
    folder.write("scenes/strip.gltf", damage::small());
    let scene = |name: &str| folder.write("scenes/scene.toml", format!("[character]\nfile = \"{name}\"\n"));
    assert_eq!(code(open(&scene("strip.gltf"))), "");
    let error = open(&scene("../strip.gltf")).unwrap_err();
    assert_eq!((error.code, error.place.as_deref()), ("file/outside", Some("line 2, column 8")));
    assert!(error.remedy.contains("--allow-dir"), "{error}");
    assert_eq!(code(open(&scene(&folder.0.join("strip.gltf").to_string_lossy()))), "file/outside");
    let files = Files::allowing(std::slice::from_ref(&folder.0)).unwrap();
    assert_eq!(code(files.scene(&scene("../strip.gltf"))), "");
    // The layer of a skin is a file too.
    let path = folder.write(
        "scenes/scene.toml",
        "[character]\nfile = \"strip.gltf\"\n[skin.\"*\"]\ndepth = 0.1\n[layer]\ninner = \"../in.obj\"\n",
    );
    let error = open(&path).unwrap_err();
    assert_eq!(error.code, "file/outside", "{error}");
    let sent = InputFile::sent("scene.toml", b"[character]\nfile = \"strip.gltf\"\n".to_vec());
    assert_eq!(code(sent.scene()), "file/outside");
}

const LINK: &str =
    r#"<link name="a"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial><collision><geometry>"#;
const TETRAHEDRON: &str = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n";

#[test]
fn meshes_of_a_urdf_lie_in_its_package() {
    let folder = Folder::new("urdf");
    for place in ["secret.obj", "plain/near.obj", "robot/meshes/a.obj", "ros/deep/model/meshes/b.obj", "ros/c.obj"] {
        folder.write(place, TETRAHEDRON);
    }
    folder.write("ros/package.xml", "<package/>");
    symlink(folder.0.join("secret.obj"), folder.0.join("plain/link.obj")).unwrap();
    let absolute = folder.0.join("secret.obj").to_string_lossy().into_owned();
    let absolute_uri = format!("file://{absolute}");
    let note = |files: &Files, at: &str, mesh: &str| {
        let text = format!("<robot name=\"r\">{LINK}<mesh filename=\"{mesh}\"/></geometry></collision></link></robot>");
        let imported = files.scene(&folder.write(at, text)).unwrap();
        let hull = imported.scene.model.bodies().iter().any(|body| !body.shapes.is_empty());
        let code = imported.notes.iter().map(|note| note.code).find(|code| code.starts_with("import/"));
        (hull, code.unwrap_or_default())
    };
    let cases = [
        ("plain/r.urdf", "near.obj", ""),
        ("plain/r.urdf", "package://anything/near.obj", ""),
        ("plain/r.urdf", "package://anything/secret.obj", "import/missing-file"),
        ("plain/r.urdf", "../secret.obj", "import/outside"),
        ("plain/r.urdf", "link.obj", "import/outside"),
        ("plain/r.urdf", &absolute, "import/outside"),
        ("plain/r.urdf", &absolute_uri, "import/outside"),
        ("plain/r.urdf", "https://example.org/a.obj", "import/outside"),
        // The folder above `urdf/` is the package, and its name may have changed.
        ("robot/urdf/r.urdf", "package://other/robots/robot/meshes/a.obj", ""),
        ("robot/urdf/r.urdf", "../meshes/a.obj", ""),
        ("robot/urdf/r.urdf", "../../secret.obj", "import/outside"),
        ("robot/urdf/r.urdf", "package://secret.obj", "import/missing-file"),
        // A package.xml tells the root wherever it is.
        ("ros/deep/model/xml/r.urdf", "package://ros/deep/model/meshes/b.obj", ""),
        ("ros/deep/model/xml/r.urdf", "package://ros/c.obj", ""),
        ("ros/deep/model/xml/r.urdf", "../../../../secret.obj", "import/outside"),
    ];
    for (at, mesh, wanted) in cases {
        assert_eq!(note(&Files::default(), at, mesh), (wanted.is_empty(), wanted), "{at}: {mesh}");
    }
    let files = Files::allowing(std::slice::from_ref(&folder.0)).unwrap();
    assert_eq!(note(&files, "plain/r.urdf", "package://secret.obj"), (true, ""));
}

fn mjcf(inner: &str) -> String {
    format!("<mujoco>{inner}<worldbody><body><joint/><geom size=\"1\"/></body></worldbody></mujoco>")
}

#[test]
fn includes_and_meshes_of_an_mjcf_lie_in_its_folder() {
    let folder = Folder::new("mjcf");
    folder.write("secret.xml", "<mujoco><option/></mujoco>");
    folder.write("model/common/more.xml", "<mujoco><option/></mujoco>");
    folder.write("secret.obj", TETRAHEDRON);
    let open = |inner: &str| open(&folder.write("model/a.xml", mjcf(inner)));
    assert_eq!(code(open(r#"<include file="common/more.xml"/>"#)), "");
    assert_eq!(code(open(r#"<include file="../secret.xml"/>"#)), "file/outside");
    assert_eq!(code(open(r#"<include file="/dev/zero"/>"#)), "file/outside");
    assert_eq!(code(open(r#"<include file="none.xml"/>"#)), "file/include");
    // A file is included once, by whatever name: otherwise a few would unfold to very many.
    let twice = r#"<include file="common/more.xml"/><include file="./common/../common/more.xml"/>"#;
    assert_eq!(code(open(twice)), "file/include");
    assert_eq!(code(open(r#"<include file="a.xml"/>"#)), "file/include");
    // Each is another one, and they lead deep.
    for k in 0..30 {
        folder.write(&format!("model/{k}.xml"), format!("<mujoco><include file=\"{}.xml\"/></mujoco>", k + 1));
    }
    folder.write("model/30.xml", "<mujoco><option/></mujoco>");
    assert_eq!(code(open(r#"<include file="0.xml"/>"#)), "file/include");
    assert_eq!(code(open(r#"<include file="15.xml"/>"#)), "");
    let mesh = r#"<asset><mesh name="m" file="../secret.obj"/></asset>"#;
    let body = r#"<worldbody><body><joint/><geom type="mesh" mesh="m"/><geom size="1"/></body></worldbody>"#;
    let text = format!("<mujoco>{mesh}{body}</mujoco>");
    let imported = supple_assets::open(&folder.write("model/b.xml", text)).unwrap();
    assert!(imported.notes.iter().any(|note| note.code == "import/outside"), "{:?}", imported.notes);
    let sent = InputFile::sent("a.xml", mjcf(r#"<include file="common/more.xml"/>"#).into_bytes());
    assert_eq!(code(sent.scene()), "file/outside");
}

#[test]
fn a_name_without_a_folder_means_the_present_one() {
    // Tests run in the folder of their crate.
    assert_eq!(code(open(Path::new("none.gltf"))), "file/read");
    assert!(Files::default().open(Path::new("Cargo.toml")).unwrap().beside("src/lib.rs").is_ok());
    assert_eq!(
        Files::default().open(Path::new("Cargo.toml")).unwrap().beside("../../LICENSE-MIT").unwrap_err().code,
        "file/outside"
    );
}

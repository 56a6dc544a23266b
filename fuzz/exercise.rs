//! What is done with a file in fuzzing, one function for each target; the test `crates/supple-assets/tests/corpus.rs` does the same with the kept
//! corpus. A file is refused with words, or taken: then its scene is stepped, and every number of state and report is finite.

#![allow(dead_code)] // each target uses its own function

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use supple::{Scene, Work};
use supple_assets::{FileError, Files, Imported, InputFile, Recipe, meshes, tetmesh};

/// A target and its name.
pub(crate) type Target = (&'static str, fn(&[u8]));

/// Every target.
pub(crate) const TARGETS: [Target; 8] = [
    ("gltf", gltf),
    ("fbx", fbx),
    ("urdf", urdf),
    ("mjcf", mjcf),
    ("bvh", bvh),
    ("scene", scene),
    ("take", take),
    ("mesh", mesh),
];

/// Steps of a scene that was taken.
const STEPS: usize = 100;
/// Scenes of more bodies are not stepped: a run must go on.
const MOST_BODIES: usize = 12;
/// Larger files are left out.
const MOST_BYTES: usize = 1 << 16;

pub(crate) fn gltf(bytes: &[u8]) {
    read("a.gltf", bytes);
}

pub(crate) fn fbx(bytes: &[u8]) {
    read("a.fbx", bytes);
}

pub(crate) fn urdf(bytes: &[u8]) {
    read("a.urdf", bytes);
}

pub(crate) fn mjcf(bytes: &[u8]) {
    read("a.xml", bytes);
}

pub(crate) fn bvh(bytes: &[u8]) {
    read("a.bvh", bytes);
}

/// A scene file beside a small character.
pub(crate) fn scene(bytes: &[u8]) {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        let folder = std::env::temp_dir().join(format!("supple-fuzz-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("the folder for temporary files can be written");
        std::fs::write(folder.join("strip.gltf"), include_bytes!("strip.gltf")).expect("it can be written");
        folder
    });
    if bytes.len() <= MOST_BYTES {
        let path = folder.join("scene.toml");
        std::fs::write(&path, bytes).expect("it can be written");
        told(Files::default().scene(&path));
    }
}

pub(crate) fn take(bytes: &[u8]) {
    use supple::timeline::file;
    let _ = file::recover(bytes);
    let Ok(taken) = file::read(bytes) else { return };
    // Only what names a small built-in scene is done again.
    let recipe = Recipe::parse(taken.timeline.scene());
    if let Ok(scene) = recipe.map_err(|_| ()).and_then(|recipe| match recipe.source.as_str() {
        "pendulum" => Scene::parse("pendulum").map_err(|_| ()),
        _ => Err(()),
    }) {
        let mut work = Work::new(&scene.model);
        let Ok(mut moment) = taken.timeline.seek(&scene.model, taken.current, 0, &mut work) else { return };
        for _ in 0..STEPS {
            if moment.step >= taken.timeline.takes()[taken.current].end() {
                break;
            }
            let Ok(_) = taken.timeline.advance(&scene.model, taken.current, &mut moment, &mut work) else { return };
            assert!(moment.state.is_finite());
        }
    }
}

/// Meshes of triangles and of tetrahedra; the first byte tells the format.
pub(crate) fn mesh(bytes: &[u8]) {
    let Some((kind, bytes)) = bytes.split_first().filter(|_| bytes.len() <= MOST_BYTES) else { return };
    match kind % 5 {
        0 => _ = meshes::stl(Path::new("a.stl"), bytes),
        1 => _ = meshes::obj(Path::new("a.obj"), bytes),
        2 => _ = tetmesh::read(&InputFile::sent("a.msh", bytes.to_vec())),
        3 => _ = tetmesh::read(&InputFile::sent("a.veg", bytes.to_vec())),
        _ => _ = tetmesh::read(&InputFile::sent("a.vtk", bytes.to_vec())),
    }
}

fn read(name: &str, bytes: &[u8]) {
    if bytes.len() <= MOST_BYTES {
        told(InputFile::sent(name, bytes.to_vec()).scene());
    }
}

fn told(result: Result<Imported, FileError>) {
    match result {
        Err(error) => assert!(!error.what.is_empty() && !error.remedy.is_empty(), "{error}"),
        Ok(imported) => stepped(&imported.scene),
    }
}

/// Steps a scene. A step may refuse; what it returns is finite.
fn stepped(scene: &Scene) {
    let (mut state, mut input) = (scene.state.clone(), scene.input.clone());
    assert!(state.is_finite());
    let small = scene.model.bodies().len() <= MOST_BODIES
        && scene.model.skin().is_none_or(|skin| skin.nodes() <= 200)
        && scene.model.flesh().is_none();
    if !small {
        return;
    }
    let mut work = Work::new(&scene.model);
    for _ in 0..STEPS {
        scene.direct(state.time, &mut input);
        let Ok(report) = supple::step(&scene.model, &input, &mut state, &mut work) else { return };
        assert!(state.is_finite());
        let words = format!("{report:?}");
        assert!(!words.contains("NaN") && !words.contains("inf"), "{words}");
    }
}

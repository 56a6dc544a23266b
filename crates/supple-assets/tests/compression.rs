//! Compressed meshes: what is unpacked is what was compressed.

use serde_json::Value;
use std::path::Path;
use supple_assets::Character;

/// JSON and binary chunk of a .glb.
fn parts(glb: &[u8]) -> (Value, Vec<u8>) {
    let word = |at: usize| u32::from_le_bytes(glb[at..at + 4].try_into().unwrap()) as usize;
    let json = word(12);
    let start = 20 + json + 8;
    (serde_json::from_slice(&glb[20..20 + json]).unwrap(), glb[start..start + word(20 + json)].to_vec())
}

/// The numbers of an accessor, row after row.
fn numbers((root, binary): &(Value, Vec<u8>), accessor: &Value) -> Vec<f64> {
    let accessor = &root["accessors"][accessor.as_u64().unwrap() as usize];
    let view = &root["bufferViews"][accessor["bufferView"].as_u64().unwrap() as usize];
    let size = |v: &Value| v.as_u64().unwrap_or(0) as usize;
    let width =
        [("SCALAR", 1), ("VEC2", 2), ("VEC3", 3), ("VEC4", 4)].iter().find(|k| accessor["type"] == k.0).unwrap().1;
    let kind = accessor["componentType"].as_u64().unwrap();
    let bytes = match kind {
        5120 | 5121 => 1,
        5122 | 5123 => 2,
        _ => 4,
    };
    let stride = view["byteStride"].as_u64().map_or(width * bytes, |s| s as usize);
    let start = size(&view["byteOffset"]) + size(&accessor["byteOffset"]);
    let mut out = Vec::new();
    for row in 0..size(&accessor["count"]) {
        for k in 0..width {
            let b = &binary[start + row * stride + k * bytes..][..bytes];
            out.push(match kind {
                5120 => f64::from(b[0] as i8),
                5121 => f64::from(b[0]),
                5122 => f64::from(i16::from_le_bytes([b[0], b[1]])),
                5123 => f64::from(u16::from_le_bytes([b[0], b[1]])),
                5125 => f64::from(u32::from_le_bytes([b[0], b[1], b[2], b[3]])),
                _ => f64::from(f32::from_le_bytes([b[0], b[1], b[2], b[3]])),
            });
        }
    }
    out
}

/// Files that other programs compressed, beside the same as those programs unpack them: all numbers are the same, floats but for the last digits.
/// `SUPPLE_COMPRESSED=DIR cargo test --workspace --release --test compression -- --ignored`, with DIR made by `tools/compressed.mjs`.
#[test]
#[ignore = "needs a folder of files that the reference encoders wrote"]
fn every_coding_is_read_as_the_reference_reads_it() {
    let folder = std::env::var("SUPPLE_COMPRESSED").expect("SUPPLE_COMPRESSED names the folder");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.retain(|path| path.extension().is_some_and(|e| e == "glb"));
    assert!(files.len() >= 80, "{} files", files.len());
    for path in files {
        let own = parts(&Character::open(&path).unwrap_or_else(|e| panic!("{e}")).drawn());
        let other = parts(&std::fs::read(path.with_extension("plain")).unwrap());
        let (mut compared, mut worst) = (0, 0.0f64);
        for (a, b) in own.0["meshes"].as_array().unwrap().iter().zip(other.0["meshes"].as_array().unwrap()) {
            for (a, b) in a["primitives"].as_array().unwrap().iter().zip(b["primitives"].as_array().unwrap()) {
                assert_eq!(numbers(&own, &a["indices"]), numbers(&other, &b["indices"]), "{}", path.display());
                for (name, accessor) in a["attributes"].as_object().unwrap() {
                    let (x, y) = (numbers(&own, accessor), numbers(&other, &b["attributes"][name]));
                    assert_eq!(x.len(), y.len(), "{} {name}", path.display());
                    let off = x.iter().zip(&y).map(|(x, y)| (x - y).abs() / x.abs().max(1.0)).fold(0.0, f64::max);
                    worst = worst.max(off);
                    // Floats of one digit less than f32 has; integers of filters may round the other way.
                    assert!(
                        off < 2e-6 || (off <= 1.0 && path.to_string_lossy().contains("filter")),
                        "{} {name}: {off}",
                        path.display()
                    );
                    compared += x.len();
                }
            }
        }
        println!("{}: {compared} numbers, worst {worst:e}", path.file_name().unwrap().display());
        assert!(compared > 0);
    }
}

/// The figure of the assets that is compressed, and the same that is not: each vertex within a step of the quantisation of one of the other's, carried by the
/// same bones, in the same triangles.
#[test]
fn the_compressed_figure_is_the_plain_one() {
    let Some(assets) = std::env::var_os("SUPPLE_ASSETS") else {
        eprintln!("skipped: SUPPLE_ASSETS is not set");
        return;
    };
    let open = |name: &str| supple_assets::open(&Path::new(&assets).join(name)).unwrap_or_else(|e| panic!("{e}"));
    let (plain, packed) = (open("gltf/RiggedFigure.glb"), open("characters/RiggedFigure-draco/RiggedFigure.gltf"));
    assert!(packed.notes.iter().any(|note| note.code == "import/compressed"));
    let (a, b) = (&plain.meshes[0], &packed.meshes[0]);
    assert_eq!((a.triangles.len(), b.triangles.len()), (256, 256));
    // The file's own header tells 11 bits over its largest extent, 1.45 m before it is scaled.
    let step = 1.46 / 2047.0 * f64::from(b.vertices.iter().flatten().fold(0.0f32, |m, x| m.max(x.abs()))) / 1.45;
    let near = |v: &[f32; 3]| {
        let off = |w: &[f32; 3]| (0..3).map(|k| f64::from(v[k] - w[k]).powi(2)).sum::<f64>().sqrt();
        (0..a.vertices.len()).map(|i| (off(&a.vertices[i]), i)).min_by(|x, y| x.0.total_cmp(&y.0)).unwrap()
    };
    let mut names = Vec::new();
    for (i, vertex) in b.vertices.iter().enumerate() {
        let (off, same) = near(vertex);
        assert!(off < 2.0 * step, "vertex {i} is {off} m from any");
        let strongest = |carried: &supple_assets::Carried, link: &[supple_assets::Link]| {
            let k = (0..4).max_by(|x, y| carried.weights[*x].total_cmp(&carried.weights[*y])).unwrap();
            (link[carried.bodies[k].index()].name.clone(), carried.weights[k])
        };
        let (x, y) = (strongest(&a.carried[same], &plain.links), strongest(&b.carried[i], &packed.links));
        // Weights have 8 bits; where two bones are alike either may be the first.
        assert!((x.1 - y.1).abs() < 0.02 && (x.0 == y.0 || x.1 < 0.52), "{x:?} {y:?}");
        names.push(a.vertices[same].map(f32::to_bits));
    }
    let corners = |mut t: [[u32; 3]; 3]| {
        let first = (0..3).min_by_key(|k| t[*k]).unwrap();
        t.rotate_left(first);
        t
    };
    let mut of_packed: Vec<_> = b.triangles.iter().map(|t| corners(t.map(|i| names[i as usize]))).collect();
    let mut of_plain: Vec<_> =
        a.triangles.iter().map(|t| corners(t.map(|i| a.vertices[i as usize].map(f32::to_bits)))).collect();
    of_packed.sort_unstable();
    of_plain.sort_unstable();
    assert_eq!(of_packed, of_plain);
}

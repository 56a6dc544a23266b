//! Files that were damaged at random: bytes, numbers of the JSON, lengths, cuts. The same seed gives the same files.

use std::path::Path;
use supple::Work;
use supple_assets::{Character, FileError};

/// A generator of pseudo-random numbers: splitmix64.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }
}

/// The small character with its physics inside, as a .glb.
#[allow(dead_code)] // each user has its own copy of this module
pub(crate) fn small_with_physics() -> Vec<u8> {
    let character = Character::from_bytes(Path::new("small.gltf"), small()).expect("it is sound");
    character.with_physics().expect("it has a rig").bytes
}

/// A skinned strip with two bones, a clip and a sparse accessor, as a .gltf with its data inside.
pub(crate) fn small() -> Vec<u8> {
    let mut data: Vec<u8> = Vec::new();
    let floats = |data: &mut Vec<u8>, values: &[f32]| data.extend(values.iter().flat_map(|v| v.to_le_bytes()));
    for k in 0..10 {
        let (x, y) = ((k % 2) as f32 - 0.5, (k / 2) as f32 * 0.5);
        floats(&mut data, &[x, y, if k % 3 == 0 { 0.2 } else { -0.2 }]); // 0..120 positions
    }
    for k in 0..8u16 {
        let t = if k % 2 == 0 { [k, k + 1, k + 2] } else { [k, k + 2, k + 1] };
        data.extend(t.iter().flat_map(|i| i.to_le_bytes())); // 120..168 indices
    }
    for _ in 0..10 {
        data.extend([0u8, 1, 0, 0]); // 168..208 joints
    }
    for k in 0..10 {
        let w = (k / 2) as f32 / 4.0;
        floats(&mut data, &[1.0 - w, w, 0.0, 0.0]); // 208..368 weights
    }
    for y in [0.0, -1.0] {
        floats(&mut data, &[1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, y, 0.0, 1.0]); // 368..496
    }
    floats(&mut data, &[0.0, 0.5, 1.0]); // 496..508 times
    floats(&mut data, &[0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.6, 0.8, 0.0, 0.0, 0.0, 1.0]); // 508..556 turns
    data.extend([3u8, 0, 0, 0]); // 556..560 sparse index
    floats(&mut data, &[0.5, 0.5, 0.1]); // 560..572 sparse value
    let views = [(0, 120), (120, 48), (168, 40), (208, 160), (368, 128), (496, 12), (508, 48), (556, 4), (560, 12)];
    let views = views.map(|(at, n)| format!(r#"{{"buffer":0,"byteOffset":{at},"byteLength":{n}}}"#)).join(",");
    let digits = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in data.chunks(3) {
        let word = chunk.iter().fold(0u32, |w, b| w << 8 | u32::from(*b)) << (8 * (3 - chunk.len()));
        for i in 0..4 {
            let digit = digits[(word >> (18 - 6 * i) & 63) as usize] as char;
            text.push(if i <= chunk.len() { digit } else { '=' });
        }
    }
    format!(
        r#"{{"asset":{{"version":"2.0"}},"scene":0,"scenes":[{{"nodes":[0,1]}}],
"nodes":[{{"mesh":0,"skin":0,"name":"strip"}},{{"name":"hip","children":[2]}},{{"name":"knee","translation":[0,1,0],"rotation":[0,0,0,1],"scale":[1,1,1]}}],
"meshes":[{{"primitives":[{{"attributes":{{"POSITION":0,"JOINTS_0":2,"WEIGHTS_0":3}},"indices":1,"mode":4}}]}}],
"skins":[{{"joints":[1,2],"inverseBindMatrices":4}}],
"animations":[{{"name":"bend","channels":[{{"sampler":0,"target":{{"node":2,"path":"rotation"}}}}],"samplers":[{{"input":5,"output":6,"interpolation":"LINEAR"}}]}}],
"accessors":[{{"bufferView":0,"componentType":5126,"count":10,"type":"VEC3","sparse":{{"count":1,"indices":{{"bufferView":7,"componentType":5123}},"values":{{"bufferView":8}}}}}},
{{"bufferView":1,"componentType":5123,"count":24,"type":"SCALAR"}},{{"bufferView":2,"componentType":5121,"count":10,"type":"VEC4"}},
{{"bufferView":3,"componentType":5126,"count":10,"type":"VEC4"}},{{"bufferView":4,"componentType":5126,"count":2,"type":"MAT4"}},
{{"bufferView":5,"componentType":5126,"count":3,"type":"SCALAR"}},{{"bufferView":6,"componentType":5126,"count":3,"type":"VEC4"}}],
"bufferViews":[{views}],"buffers":[{{"byteLength":{},"uri":"data:application/octet-stream;base64,{text}"}}]}}"#,
        data.len()
    )
    .into_bytes()
}

/// A damaged copy.
pub(crate) fn damaged(file: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = file.to_vec();
    for _ in 0..1 + random.below(4) {
        if bytes.is_empty() {
            break;
        }
        match random.below(7) {
            // A byte, a bit.
            0 => {
                let at = random.below(bytes.len());
                bytes[at] = random.next() as u8;
            }
            1 => {
                let at = random.below(bytes.len());
                bytes[at] ^= 1 << random.below(8);
            }
            // A number of the text, by one that is not expected there.
            2 | 3 => number(&mut bytes, random),
            // Cut off, cut out, said twice.
            4 => bytes.truncate(random.below(bytes.len() + 1)),
            5 => {
                let (a, b) = (random.below(bytes.len()), random.below(bytes.len()));
                bytes.drain(a.min(b)..a.min(b) + a.abs_diff(b).min(64));
            }
            _ => {
                let (from, to) = (random.below(bytes.len()), random.below(bytes.len()));
                let piece: Vec<u8> = bytes[from..].iter().take(1 + random.below(64)).copied().collect();
                bytes.splice(to..to, piece);
            }
        }
    }
    // A container whose lengths are right gets further in.
    if bytes.starts_with(b"glTF") && bytes.len() > 20 && random.below(2) == 0 {
        let length = (bytes.len() as u32).to_le_bytes();
        bytes[8..12].copy_from_slice(&length);
    }
    bytes
}

fn number(bytes: &mut Vec<u8>, random: &mut Random) {
    const HOSTILE: [&str; 16] = [
        "-1",
        "0",
        "1",
        "2",
        "3",
        "7",
        "255",
        "65536",
        "4294967295",
        "18446744073709551615",
        "1e308",
        "-1e30",
        "1e-300",
        "0.1",
        "null",
        "\"x\"",
    ];
    let start = random.below(bytes.len());
    let digit = |b: &u8| b.is_ascii_digit() || matches!(b, b'-' | b'.');
    let Some(at) = bytes[start..].iter().position(digit).map(|k| start + k) else { return };
    let end = bytes[at..].iter().position(|b| !digit(b)).map_or(bytes.len(), |k| at + k);
    bytes.splice(at..end, HOSTILE[random.below(HOSTILE.len())].bytes());
}

/// All that happens to a file that is opened: read, rig, model, two steps.
pub(crate) fn open(bytes: Vec<u8>) -> Result<(), FileError> {
    open_as("damaged.gltf", bytes)
}

/// The same under a name, whose ending tells the format.
pub(crate) fn open_as(name: &str, bytes: Vec<u8>) -> Result<(), FileError> {
    let character = Character::from_bytes(Path::new(name), bytes)?;
    let imported = character.imported("damaged")?;
    let scene = &imported.scene;
    let (mut state, mut work) = (scene.state.clone(), Work::new(&scene.model));
    for _ in 0..2 {
        // A step may refuse; it must not leave a state that is not finite.
        let _ = supple::step(&scene.model, &scene.input, &mut state, &mut work);
        assert!(state.is_finite());
    }
    Ok(())
}

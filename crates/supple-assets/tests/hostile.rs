//! Damaged and hostile files: an error with a place and a remedy, never a panic, a hang or much memory.

#[path = "common/allocator.rs"]
mod allocator;
#[path = "common/damage.rs"]
mod damage;
#[path = "common/hostile.rs"]
mod hostile;
#[path = "common/watch.rs"]
mod watch;

use damage::{Random, damaged, open, small, small_with_physics};
use std::time::Duration;
use supple_assets::{Character, FileError, Files, InputFile};
use watch::Watch;

#[test]
fn twenty_thousand_damaged_files() {
    let mut bases = vec![small(), small_with_physics()];
    if let Ok(folder) = std::env::var("SUPPLE_ASSETS") {
        let folder = std::path::Path::new(&folder).join("gltf");
        bases.extend(
            ["SimpleSkin.gltf", "RiggedSimple.glb", "InterpolationTest.glb"]
                .map(|f| std::fs::read(folder.join(f)).unwrap()),
        );
    }
    for base in &bases {
        open(base.clone()).unwrap();
    }
    let (mut opened, mut slowest) = (0, Duration::ZERO);
    for seed in 0..20_000u64 {
        let mut random = Random(seed);
        let file = damaged(&bases[random.below(bases.len())], &mut random);
        let start = Watch::start();
        allocator::reset();
        match open(file) {
            Ok(()) => opened += 1,
            Err(error) => assert!(!error.what.is_empty() && !error.remedy.is_empty(), "seed {seed}: {error}"),
        }
        slowest = slowest.max(start.elapsed());
        assert!(allocator::peak() < 1 << 30, "seed {seed}: {} bytes", allocator::peak());
    }
    // A file is opened in milliseconds; five seconds is a hang on any machine.
    assert!(slowest < Duration::from_secs(5), "{slowest:?}");
    // The damage is neither always fatal nor always harmless.
    assert!((300..19_000).contains(&opened), "{opened}");
}

/// The strip as encoders compress it, one file for each way that its data is packed.
const COMPRESSED: [&[u8]; 5] = [
    include_bytes!("../../../fuzz/corpus/gltf/draco-list.glb"),
    include_bytes!("../../../fuzz/corpus/gltf/draco-edges.glb"),
    include_bytes!("../../../fuzz/corpus/gltf/draco-valences.glb"),
    include_bytes!("../../../fuzz/corpus/gltf/meshopt-quantize.glb"),
    include_bytes!("../../../fuzz/corpus/gltf/meshopt-filter.glb"),
];

#[test]
fn twenty_thousand_damaged_compressed_files() {
    damage_compressed(20_000);
}

/// `cargo test --workspace --release --test hostile -- --ignored a_million_damaged_compressed_files`
#[test]
#[ignore = "takes minutes"]
fn a_million_damaged_compressed_files() {
    damage_compressed(1_000_000);
}

fn damage_compressed(count: u64) {
    let (mut opened, mut by_data) = (0, 0);
    for base in COMPRESSED {
        open(base.to_vec()).unwrap();
    }
    for seed in 0..count {
        let mut random = Random(seed ^ 0xD4AC0);
        let base = COMPRESSED[random.below(COMPRESSED.len())];
        // Most of the damage goes into the compressed bytes, behind the JSON.
        let file = match random.below(4) {
            0 => damaged(base, &mut random),
            _ => {
                let start = 28 + u32::from_le_bytes(base[12..16].try_into().unwrap()) as usize;
                let mut file = base.to_vec();
                for _ in 0..1 + random.below(4) {
                    let at = start + random.below(file.len() - start);
                    file[at] = if random.below(2) == 0 { random.next() as u8 } else { file[at] ^ 1 << random.below(8) };
                }
                file
            }
        };
        let start = Watch::start();
        allocator::reset();
        match open(file) {
            Ok(()) => opened += 1,
            Err(error) => {
                by_data += u64::from(error.code == "file/compression");
                assert!(!error.what.is_empty() && !error.remedy.is_empty(), "seed {seed}: {error}");
            }
        }
        assert!(start.elapsed() < Duration::from_secs(5), "seed {seed}: {:?}", start.elapsed());
        assert!(allocator::peak() < 1 << 28, "seed {seed}: {} bytes", allocator::peak());
    }
    println!("{opened} of {count} were read, {by_data} refused for their compressed data");
    assert!(opened > count / 50 && by_data > count / 50, "{opened} {by_data}");
}

#[test]
fn twenty_thousand_damaged_fbx_files() {
    damage_fbx(20_000);
}

/// `cargo test --workspace --release --test hostile -- --ignored a_million_damaged_fbx_files`
#[test]
#[ignore = "takes minutes"]
fn a_million_damaged_fbx_files() {
    damage_fbx(1_000_000);
}

/// The strip as a text FBX; with the models made by others, a binary one in one case of eight.
fn damage_fbx(count: u64) {
    let text = include_bytes!("../../../fuzz/corpus/fbx/strip").to_vec();
    let binary = std::env::var("SUPPLE_ASSETS").ok().map(|folder| {
        std::fs::read(std::path::Path::new(&folder).join("fbx/max_transformed_skin_7500_binary.fbx")).unwrap()
    });
    damage::open_as("strip.fbx", text.clone()).unwrap();
    let mut opened = 0;
    for seed in 0..count {
        let mut random = Random(seed ^ 0xFB0);
        let base = binary.as_ref().filter(|_| random.below(8) == 0).unwrap_or(&text);
        let file = damaged(base, &mut random);
        let start = Watch::start();
        allocator::reset();
        match damage::open_as("damaged.fbx", file) {
            Ok(()) => opened += 1,
            Err(error) => assert!(!error.what.is_empty() && !error.remedy.is_empty(), "seed {seed}: {error}"),
        }
        assert!(start.elapsed() < Duration::from_secs(5), "seed {seed}: {:?}", start.elapsed());
        assert!(allocator::peak() < 1 << 28, "seed {seed}: {} bytes", allocator::peak());
    }
    println!("{opened} of {count} were read");
    assert!(opened > count / 50 && opened < count - count / 50, "{opened}");
}

#[test]
fn twenty_thousand_damaged_avatars() {
    damage_avatars(20_000);
}

/// `cargo test --workspace --release --test hostile -- --ignored a_million_damaged_avatars`
#[test]
#[ignore = "takes minutes"]
fn a_million_damaged_avatars() {
    damage_avatars(1_000_000);
}

/// What files of VRM 1.0, of VRM 0.x and of their motion have beside glTF.
const AVATARS: [(&str, &str); 3] = [
    (
        "damaged.vrm",
        r#"{"VRMC_vrm":{"specVersion":"1.0","humanoid":{"humanBones":{"hips":{"node":1},"leftUpperLeg":{"node":2}}}},
"VRMC_springBone":{"specVersion":"1.0","colliders":[{"node":1,"shape":{"sphere":{"offset":[0,1,0.2],"radius":0.1}}},
{"node":1,"shape":{"capsule":{"offset":[0,0,0],"radius":0.25,"tail":[0,1,0]}}}],"colliderGroups":[{"colliders":[0,1]}],
"springs":[{"name":"ear","joints":[{"node":2,"stiffness":2,"gravityPower":0.5,"dragForce":0.25,"hitRadius":0.02}],"colliderGroups":[0]}]}}"#,
    ),
    (
        "damaged.vrm",
        r#"{"VRM":{"humanoid":{"humanBones":[{"bone":"hips","node":1},{"bone":"leftUpperLeg","node":2}]},
"secondaryAnimation":{"boneGroups":[{"comment":"ear","stiffiness":2,"gravityPower":0.5,"dragForce":0.25,"hitRadius":0.02,"bones":[2],"colliderGroups":[0]}],
"colliderGroups":[{"node":1,"colliders":[{"offset":{"x":0,"y":1,"z":-2},"radius":0.5}]}]}}}"#,
    ),
    (
        "damaged.vrma",
        r#"{"VRMC_vrm_animation":{"specVersion":"1.0","humanoid":{"humanBones":{"hips":{"node":1},"spine":{"node":2}}}}}"#,
    ),
];

fn damage_avatars(count: u64) {
    let text = String::from_utf8(small()).unwrap();
    let with = |extensions: &str| text.replacen('{', &format!("{{\"extensions\":{extensions},"), 1).into_bytes();
    let bases = AVATARS.map(|(name, extensions)| (name, with(extensions), extensions.len() + 20));
    let read = |name: &str, bytes: Vec<u8>| {
        let file = InputFile::sent(name, bytes.clone());
        match name.ends_with(".vrma") {
            true => supple_assets::motion::recording(file, None).map(drop),
            false => damage::open_as(name, bytes),
        }
    };
    for (name, bytes, _) in &bases {
        read(name, bytes.clone()).unwrap_or_else(|e| panic!("{e}"));
    }
    let (mut opened, mut by_avatar) = (0, 0);
    for seed in 0..count {
        let mut random = Random(seed ^ 0xA7A);
        let (name, bytes, length) = &bases[random.below(bases.len())];
        // Most of the damage goes into what avatars have beside glTF, which is at the beginning.
        let (front, back) = bytes.split_at(if random.below(4) == 0 { bytes.len() } else { *length });
        let file = [damaged(front, &mut random), back.to_vec()].concat();
        let start = Watch::start();
        allocator::reset();
        match read(name, file) {
            Ok(()) => opened += 1,
            Err(error) => {
                by_avatar += u64::from(error.code == "file/vrm");
                assert!(!error.what.is_empty() && !error.remedy.is_empty(), "seed {seed}: {error}");
            }
        }
        assert!(start.elapsed() < Duration::from_secs(5), "seed {seed}: {:?}", start.elapsed());
        assert!(allocator::peak() < 1 << 28, "seed {seed}: {} bytes", allocator::peak());
    }
    println!("{opened} of {count} were read, {by_avatar} refused as avatars");
    assert!(opened > count / 50 && by_avatar > count / 50, "{opened} {by_avatar}");
}

/// The small file with one piece of text replaced.
fn with(from: &str, to: &str) -> Vec<u8> {
    let text = String::from_utf8(small()).unwrap();
    assert!(text.contains(from), "{from}");
    text.replacen(from, to, 1).into_bytes()
}

#[test]
fn each_fault_is_told_with_its_place() {
    let cases = [
        (r#""children":[2]"#, r#""children":[2,2]"#, "file/hierarchy", "nodes[2]"),
        (r#""children":[2]"#, r#""children":[9]"#, "file/reference", "nodes[1].children"),
        (r#""name":"knee""#, r#""name":"knee","children":[1]"#, "file/hierarchy", "nodes[1]"),
        (r#""count":10,"type":"VEC3""#, r#""count":4000000000,"type":"VEC3""#, "file/size", ""),
        (r#""count":10,"type":"VEC3""#, r#""count":20000,"type":"VEC3""#, "file/accessor", "accessors[0]"),
        (r#""joints":[1,2]"#, r#""joints":[1,77]"#, "file/reference", "skins[0].joints"),
        (r#""joints":[1,2]"#, r#""joints":[1]"#, "file/reference", "meshes[0].primitives[0]"),
        (r#""translation":[0,1,0]"#, r#""translation":[0,1e300,0]"#, "file/number", "nodes[2]"),
        (r#""rotation":[0,0,0,1]"#, r#""rotation":[0,0,0,0]"#, "file/number", "nodes[2]"),
        (r#""interpolation":"LINEAR""#, r#""interpolation":"BEZIER""#, "file/animation", "animations[0].channels[0]"),
        (r#""skin":0,"#, "", "", ""),
        (r#""byteLength":572"#, r#""byteLength":573"#, "file/buffer", "buffers[0]"),
    ];
    for (from, to, code, place) in cases {
        let result = Character::from_bytes(std::path::Path::new("strip.gltf"), with(from, to));
        match result {
            Ok(_) => assert_eq!(code, "", "{to} was taken"),
            Err(error) => {
                assert_eq!(error.code, code, "{to}: {error}");
                assert!(error.place.as_deref().unwrap_or_default().starts_with(place), "{to}: {error}");
            }
        }
    }
}

/// Memory and work for each byte of a file, beside what every file costs.
const PEAK_PER_BYTE: usize = 256;
const WORK_PER_BYTE: usize = 2048;
const EVERY_FILE: usize = 16 << 20;
/// The same for time, on a machine that does much else: a tenth of it is usual.
const TIME_PER_BYTE: Duration = Duration::from_micros(5);
const EVERY_FILE_TAKES: Duration = Duration::from_secs(2);

#[test]
fn the_hostile_table_is_refused_at_a_bounded_cost() {
    let folder = std::env::temp_dir().join(format!("supple-hostile-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let mut wrong = Vec::new();
    for hostile in hostile::table(std::str::from_utf8(&small()).unwrap()) {
        let hostile::Hostile { name, bytes, code, sent } = hostile;
        if name.ends_with(".take") {
            continue; // read by the command line and the studio
        }
        let path = folder.join(name);
        std::fs::write(&path, &bytes).unwrap();
        let length = bytes.len();
        let mut told = |way: &str,
                        wanted: &str,
                        read: &mut dyn FnMut() -> Result<supple_assets::Imported, FileError>| {
            allocator::reset();
            let start = Watch::start();
            let result = read();
            let (peak, work, took) = (allocator::peak(), allocator::total(), start.elapsed());
            let found = match &result {
                Ok(_) => "",
                Err(e) if e.what.is_empty() || e.remedy.is_empty() => "without words",
                Err(e) => e.code,
            };
            let bounded = peak < PEAK_PER_BYTE * length + EVERY_FILE
                && work < WORK_PER_BYTE * length + 4 * EVERY_FILE
                && took < TIME_PER_BYTE * length as u32 + EVERY_FILE_TAKES;
            let line =
                format!("{name}, {way}: {length} bytes, peak {peak}, work {work}, {took:?}: {found}, wanted {wanted}");
            println!("{line}");
            if found != wanted || !bounded {
                wrong.push(line);
            }
        };
        told("opened", code, &mut || Files::default().scene(&path));
        told("sent", sent, &mut || InputFile::sent(name, bytes.clone()).scene());
    }
    let _ = std::fs::remove_dir_all(&folder);
    assert!(wrong.is_empty(), "{wrong:#?}");
}

//! Soft skin in scene files: bones, painted groups, inner surfaces, and what is wrong with them.

use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::PathBuf;
use supple::glam::{DVec2, DVec3};
use supple::skin::Ball;
use supple::{Input, State, Work, step};
use supple_assets::{FileError, Imported, open};

/// A square bar of 0.2 m by 1 m with two bones, `low` and `high`, cut at its edges as for a texture, painted in its upper half: `_BELLY`.
fn bar() -> Vec<u8> {
    let (rows, side) = (11usize, 5usize);
    let (mut places, mut normals, mut joints, mut weights, mut belly, mut triangles) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::<u32>::new());
    // a grid of columns × rows along two axes from a corner
    let mut sheet = |corner: DVec3, u: DVec3, v: DVec3, nu: usize, nv: usize| {
        let first = places.len() as u32 / 3;
        let normal = u.cross(v).normalize();
        for j in 0..nv {
            for i in 0..nu {
                let p = corner + u * (i as f64 / (nu - 1) as f64) + v * (j as f64 / (nv - 1) as f64);
                places.extend(p.as_vec3().to_array());
                normals.extend(normal.as_vec3().to_array());
                let high = ((p.y - 0.4) / 0.2).clamp(0.0, 1.0) as f32;
                joints.extend([0u8, 1, 0, 0]);
                weights.extend([1.0 - high, high, 0.0, 0.0]);
                belly.push(if p.y > 0.55 { 1.0f32 } else { 0.0 });
            }
        }
        for j in 0..nv as u32 - 1 {
            for i in 0..nu as u32 - 1 {
                let a = first + j * nu as u32 + i;
                let (b, c, d) = (a + 1, a + nu as u32 + 1, a + nu as u32);
                triangles.extend([a, b, c, a, c, d]);
            }
        }
    };
    let (x, y, z) = (DVec3::X * 0.2, DVec3::Y, DVec3::Z * 0.2);
    let low = DVec3::new(-0.1, 0.0, -0.1);
    sheet(low + z, x, y, side, rows);
    sheet(low + x + z, -z, y, side, rows);
    sheet(low + x, -x, y, side, rows);
    sheet(low, z, y, side, rows);
    sheet(low, x, z, side, side);
    sheet(low + y + z, x, -z, side, side);

    let (mut binary, mut views, mut accessors) = (Vec::new(), Vec::new(), Vec::new());
    let count = places.len() / 3;
    let mut add = |bytes: Vec<u8>, kind: &str, component: u32, count: usize| {
        views.push(json!({ "buffer": 0, "byteOffset": binary.len(), "byteLength": bytes.len() }));
        binary.extend(bytes);
        binary.resize(binary.len().next_multiple_of(4), 0);
        accessors
            .push(json!({ "bufferView": views.len() - 1, "componentType": component, "count": count, "type": kind }));
        accessors.len() - 1
    };
    let floats = |values: &[f32]| values.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
    let binds: Vec<f32> = [0.0f32, -0.5]
        .iter()
        .flat_map(|y| [1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, *y, 0.0, 1.0])
        .collect();
    let position = add(floats(&places), "VEC3", 5126, count);
    let normal = add(floats(&normals), "VEC3", 5126, count);
    let joint = add(joints, "VEC4", 5121, count);
    let weight = add(floats(&weights), "VEC4", 5126, count);
    let painted = add(floats(&belly), "SCALAR", 5126, count);
    let index = add(triangles.iter().flat_map(|i| i.to_le_bytes()).collect(), "SCALAR", 5125, triangles.len());
    let bind = add(floats(&binds), "MAT4", 5126, 2);
    let root = json!({
        "asset": { "version": "2.0" }, "scene": 0, "scenes": [{ "nodes": [0, 2] }],
        "nodes": [
            { "name": "low", "children": [1] },
            { "name": "high", "translation": [0.0, 0.5, 0.0] },
            { "name": "bar", "mesh": 0, "skin": 0 },
        ],
        "skins": [{ "joints": [0, 1], "inverseBindMatrices": bind }],
        "meshes": [{ "primitives": [{
            "attributes": { "POSITION": position, "NORMAL": normal, "JOINTS_0": joint, "WEIGHTS_0": weight, "_BELLY": painted },
            "indices": index,
        }] }],
        "accessors": accessors, "bufferViews": views, "buffers": [{ "byteLength": binary.len() }],
    });
    glb(&root, &binary)
}

fn glb(root: &Value, binary: &[u8]) -> Vec<u8> {
    let mut json = root.to_string().into_bytes();
    json.resize(json.len().next_multiple_of(4), b' ');
    let total = (28 + json.len() + binary.len()) as u32;
    let mut out = [b"glTF".as_slice(), &2u32.to_le_bytes(), &total.to_le_bytes()].concat();
    for (kind, chunk) in [(b"JSON", json.as_slice()), (b"BIN\0", binary)] {
        out.extend((chunk.len() as u32).to_le_bytes());
        out.extend(kind);
        out.extend(chunk);
    }
    out
}

/// A box around the middle of the bar as .obj, `gap` metres within its sides; each side cut in 4 × 4.
fn inner_box(gap: f64) -> String {
    let (low, high) = (DVec3::new(-0.1, 0.0, -0.1) + gap, DVec3::new(0.1, 1.0, 0.1) - gap);
    let mut text = String::new();
    let mut first = 1;
    for axis in 0..3 {
        for end in [false, true] {
            let (u, v) = ((axis + 1) % 3, (axis + 2) % 3);
            for at in (0..25).map(|k| DVec2::new((k % 5) as f64, (k / 5) as f64) / 4.0) {
                let mut p = if end { high } else { low };
                p[u] = low[u] + at.x * (high - low)[u];
                p[v] = low[v] + at.y * (high - low)[v];
                writeln!(text, "v {} {} {}", p.x, p.y, p.z).unwrap();
            }
            for k in (0..16).map(|k| first + k % 4 + 5 * (k / 4)) {
                let (a, b, c, d) = (k, k + 1, k + 6, k + 5);
                let turned = if end { [a, b, c, d] } else { [d, c, b, a] };
                writeln!(text, "f {} {} {} {}", turned[0], turned[1], turned[2], turned[3]).unwrap();
            }
            first += 25;
        }
    }
    text
}

/// Tetrahedra of a bar whose boundary is that of the file; cells in the middle are left out, from the second to this one across. Gmsh 2.2.
fn tetrahedra(hollow: usize) -> String {
    let (n, rows) = (5usize, 11usize);
    let number = |i: usize, j: usize, k: usize| 1 + i + n * (j + rows * k);
    let mut nodes = String::new();
    for k in 0..n {
        for j in 0..rows {
            for i in 0..n {
                let (x, y, z) = (-0.1 + 0.05 * i as f64, 0.1 * j as f64, -0.1 + 0.05 * k as f64);
                writeln!(nodes, "{} {x} {y} {z}", number(i, j, k)).unwrap();
            }
        }
    }
    let mut tets = Vec::new();
    for k in 0..n - 1 {
        for j in 0..rows - 1 {
            for i in 0..n - 1 {
                if (1..hollow).contains(&i) && (1..hollow).contains(&k) && (1..9).contains(&j) {
                    continue;
                }
                let c = |a: usize, b: usize, d: usize| number(i + a, j + b, k + d);
                for [p, q] in [
                    [[1, 0, 0], [1, 1, 0]],
                    [[1, 0, 0], [1, 0, 1]],
                    [[0, 1, 0], [1, 1, 0]],
                    [[0, 1, 0], [0, 1, 1]],
                    [[0, 0, 1], [1, 0, 1]],
                    [[0, 0, 1], [0, 1, 1]],
                ] {
                    tets.push([c(0, 0, 0), c(p[0], p[1], p[2]), c(q[0], q[1], q[2]), c(1, 1, 1)]);
                }
            }
        }
    }
    let mut text = format!(
        "$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$Nodes\n{}\n{nodes}$EndNodes\n$Elements\n{}\n",
        n * n * rows,
        tets.len()
    );
    for (t, [a, b, c, d]) in tets.iter().enumerate() {
        writeln!(text, "{} 4 2 0 1 {a} {b} {c} {d}", t + 1).unwrap();
    }
    text + "$EndElements\n"
}

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("supple-skins-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("bar.glb"), bar()).unwrap();
    std::fs::write(folder.join("inner.obj"), inner_box(0.04)).unwrap();
    std::fs::write(folder.join("outside.obj"), inner_box(-0.5)).unwrap();
    std::fs::write(folder.join("hollow.msh"), tetrahedra(3)).unwrap();
    std::fs::write(folder.join("thick.msh"), tetrahedra(2)).unwrap();
    std::fs::write(folder.join("solid.msh"), tetrahedra(0)).unwrap();
    std::fs::write(folder.join("notes.txt"), "nothing").unwrap();
    folder
}

fn scene(name: &str, text: &str) -> Result<Imported, FileError> {
    let folder = folder(name);
    std::fs::write(folder.join("scene.toml"), format!("[character]\nfile = \"bar.glb\"\n{text}")).unwrap();
    let result = open(&folder.join("scene.toml"));
    std::fs::remove_dir_all(&folder).unwrap();
    result
}

fn note<'a>(imported: &'a Imported, part: &str) -> Option<&'a str> {
    imported.notes.iter().map(|n| n.text.as_str()).find(|text| text.contains(part))
}

/// Depths of the layer below the sides of the bar, away from its edges.
fn side_depths(imported: &Imported) -> Vec<f64> {
    let skin = imported.scene.model.skin().unwrap();
    let inside = |x: f64| x.abs() < 0.06;
    let on_side = |p: DVec3| (0.15..0.85).contains(&p.y) && (inside(p.x) || inside(p.z));
    (0..skin.nodes()).filter(|v| on_side(skin.rest[*v])).map(|v| skin.layer.depths[v]).collect()
}

#[test]
fn bones_have_flesh_by_choice_and_entries_add_up() {
    let text = "[skin.\"*\"]\ndepth = 0.02\nstiffness = 50000\n[skin.high]\nstiffness = 10000\nfriction = 0.9\n";
    let imported = scene("sum", text).unwrap();
    let skin = imported.scene.model.skin().unwrap();
    assert!(skin.soft.iter().all(|soft| *soft));
    assert!(side_depths(&imported).iter().all(|d| (d - 0.02).abs() < 1e-9), "the depth of * is that of high too");
    for (v, p) in skin.rest.iter().enumerate() {
        let wanted = if p.y > 0.65 {
            Some(0.9)
        } else if p.y < 0.35 {
            Some(0.5)
        } else {
            None
        };
        assert!(wanted.is_none_or(|w| (skin.friction[v] - w).abs() < 1e-9), "{p}: {}", skin.friction[v]);
    }
    // without flesh by name
    let imported = scene("hard", "[skin.\"*\"]\ndepth = 0.02\n[skin.low]\nsoft = false\n").unwrap();
    let skin = imported.scene.model.skin().unwrap();
    for (v, p) in skin.rest.iter().enumerate().filter(|(_, p)| !(0.35..0.65).contains(&p.y)) {
        assert_eq!(skin.soft[v], p.y > 0.5, "{p}");
    }
}

#[test]
fn what_is_painted_is_soft() {
    let imported =
        scene("painted", "[painted.belly]\nstiffness = 20000\ndepth = 0.03\ndamping = 3\nmass_scale = 2\n").unwrap();
    let skin = imported.scene.model.skin().unwrap();
    for (v, p) in skin.rest.iter().enumerate() {
        let painted = p.y > 0.55;
        assert_eq!(skin.soft[v], painted, "{p}");
        assert!((skin.damping[v] - if painted { 3.0 } else { 10.0 }).abs() < 1e-9);
    }
    // its name as the file has it
    assert!(scene("capitals", "[painted._BELLY]\n").is_ok());
}

#[test]
fn a_layer_ends_at_an_inner_surface() {
    let imported = scene("inner", "[skin.\"*\"]\n[layer]\ninner = \"inner.obj\"\n").unwrap();
    let depths = side_depths(&imported);
    assert!(depths.len() > 50 && depths.iter().all(|d| (d - 0.04).abs() < 1e-6), "{depths:?}");
}

#[test]
fn a_layer_is_the_tetrahedra_of_a_file() {
    // the same, told by tetrahedra: the cells in the middle are left out, 0.05 m below the sides
    let imported = scene("tets", "[skin.\"*\"]\n[layer]\ninner = \"hollow.msh\"\nmap = \"linear\"\n").unwrap();
    let depths = side_depths(&imported);
    assert!(depths.len() > 50 && depths.iter().all(|d| (d - 0.05).abs() < 1e-6), "{depths:?}");
    let skin = imported.scene.model.skin().unwrap();
    assert_eq!(skin.map, supple::PoseMap::Linear);
    // its own elements, every one: 128 cells of 6, on the 194 vertices and the 74 corners of the hollow
    assert_eq!((skin.layer.tets.len(), skin.nodes(), skin.layer.inner.len()), (768, 194, 74));
    let volume: f64 = skin.layer.tets.iter().map(|&t| skin.layer.volume(&skin.rest, t)).sum();
    assert!((volume - 128.0 * 0.05 * 0.05 * 0.1).abs() < 1e-7, "{volume} m³");
    assert!(note(&imported, "768 tetrahedra of the file").is_some(), "{:?}", imported.notes);
    // and it runs
    let (model, mut state) = (&imported.scene.model, imported.scene.state.clone());
    let (mut work, input) = (
        Work::new(model),
        Input { targets: vec![None; imported.scene.input.targets.len()], ..imported.scene.input.clone() },
    );
    for _ in 0..60 {
        step(model, &input, &mut state, &mut work).unwrap();
    }
    assert!(state.is_finite());
}

/// Where tetrahedra lie below one another, the corners between them move too.
#[test]
fn corners_within_a_layer_of_tetrahedra_move() {
    let imported = scene("thick", "[skin.\"*\"]\nstiffness = 20000\n[layer]\ninner = \"thick.msh\"\n").unwrap();
    let (model, mut state) = (&imported.scene.model, imported.scene.state.clone());
    let skin = model.skin().unwrap();
    // of the 81 corners below the surface 36 are on the inner side
    assert_eq!((skin.nodes(), skin.layer.inner.len(), skin.layer.tets.len()), (194 + 45, 36, 6 * (160 - 8)));
    let mut places = Vec::new();
    skin.layer_positions(&state, &mut places);
    assert_eq!(places.len(), 194 + 45 + 36);
    // a ball presses on the thick side, and goes
    let (mut work, mut input) = (Work::new(model), Input { gravity: DVec3::ZERO, ..imported.scene.input.clone() });
    skin.positions(&state, &mut places);
    let face = places.iter().map(|p| p.x).fold(f64::NEG_INFINITY, f64::max);
    let height = places.iter().map(|p| p.y).sum::<f64>() / places.len() as f64;
    let run = |steps: usize, inward: f64, state: &mut State, input: &mut Input, work: &mut Work| {
        for _ in 0..steps {
            let centre = DVec3::new(face + 0.1 - inward, height, 0.0);
            input.balls = vec![Ball { centre, radius: 0.1, velocity: DVec3::ZERO }];
            step(model, input, state, work).unwrap();
        }
        let moved = |nodes: &[supple::NodeState]| nodes.iter().map(|n| n.position.length()).fold(0.0, f64::max);
        (moved(&state.nodes[..194]), moved(&state.nodes[194..]))
    };
    let (outside, within) = run(60, 0.015, &mut state, &mut input, &mut work);
    assert!(outside > 4e-3 && within > 0.2 * outside && within < outside, "{outside} m, {within} m within");
    let (outside, within) = run(120, -0.2, &mut state, &mut input, &mut work);
    assert!(outside < 1e-3 && within < 1e-3, "{outside} m, {within} m within are left");
}

/// The same triangles within: each vertex has its own place below it.
#[test]
fn an_inner_surface_of_the_same_triangles_is_taken_vertex_by_vertex() {
    let folder = folder("same");
    // the file again, drawn in by a fifth towards its axis
    let text = "[character]\nfile = \"bar.glb\"\n[skin.\"*\"]\n[layer]\ninner = \"small.obj\"\n";
    let plain = open(&folder.join("bar.glb")).unwrap();
    let mesh = &plain.meshes[0];
    let mut obj = String::new();
    for [x, y, z] in &mesh.vertices {
        writeln!(obj, "v {} {} {}", 0.8 * x, 0.1 + 0.8 * y, 0.8 * z).unwrap();
    }
    for [a, b, c] in &mesh.triangles {
        writeln!(obj, "f {} {} {}", a + 1, b + 1, c + 1).unwrap();
    }
    std::fs::write(folder.join("small.obj"), obj).unwrap();
    std::fs::write(folder.join("scene.toml"), text).unwrap();
    let imported = open(&folder.join("scene.toml")).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(note(&imported, "has its own").is_some(), "{:?}", imported.notes);
    let skin = imported.scene.model.skin().unwrap();
    for (outer, inner) in skin.rest.iter().zip(&skin.layer.inner) {
        let wanted = DVec3::new(0.8 * outer.x, 0.1 + 0.8 * outer.y, 0.8 * outer.z);
        assert!(inner.distance(wanted) < 1e-6, "{outer}: {inner}");
    }
}

#[test]
fn keyframes_are_followed() {
    let folder = folder("keyframes");
    let text = "floor = false\n[character]\nfile = \"bar.glb\"\n[bones.\"*\"]\nstrength = 10.0\n[[keyframes]]\nat = 0.0\n[[keyframes]]\nat = 1.0\nshift = [0.0, 0.0, 0.2]\npose = { high = [60.0, 0.0, 0.0] }\n";
    std::fs::write(folder.join("scene.toml"), text).unwrap();
    let scene = open(&folder.join("scene.toml")).unwrap().scene;
    std::fs::remove_dir_all(&folder).unwrap();
    let (mut state, mut input, mut work) = (scene.state.clone(), scene.input.clone(), Work::new(&scene.model));
    for _ in 0..150 {
        scene.direct(state.time, &mut input);
        step(&scene.model, &input, &mut state, &mut work).unwrap();
    }
    let [low, high] = [0, 1].map(|b| &state.bodies[b]);
    let start = &scene.model.bodies()[0].start;
    assert!((low.position.z - start.translation.z - 0.2).abs() < 0.02, "{}", low.position);
    let turned = high.orientation.angle_between(low.orientation).to_degrees();
    assert!((turned - 60.0).abs() < 4.0, "{turned}°");
}

#[test]
fn what_is_wrong_is_told_with_its_place_and_remedy() {
    let cases = [
        ("[skin.elbow]\n", "line 3, column 7", "no bone fits \"elbow\"", "low, high"),
        ("[skin.\"*\"]\ndepth = 0.0\n", "line 4, column 9", "depth is 0", "above 0"),
        ("[skin.\"*\"]\ndepth = -0.1\n", "line 4, column 9", "depth is -0.1", "above 0"),
        ("[skin.\"*\"]\nstiffness = 0\n", "line 4, column 13", "stiffness is 0", "above 0"),
        ("[skin.\"*\"]\npoisson = 0.5\n", "line 4, column 11", "poisson is 0.5", "below 0.4999"),
        ("[skin.\"*\"]\ndamping = -1\n", "line 4, column 11", "damping is -1", "0 or more"),
        ("[skin.\"*\"]\ndensity = nan\n", "line 4, column 11", "density is NaN", "above 0"),
        ("[skin.\"*\"]\nsoftness = 1\n", "line 4, column 1", "unknown field `softness`", "guide"),
        ("[skin.\"*\"]\nsoft = false\n", "line 3, column 7", "no bone has flesh", ""),
        ("[painted.cheeks]\n", "line 3, column 10", "no painted group \"cheeks\"", "_BELLY"),
        ("[layer]\ninner = \"inner.obj\"\n", "line 3, column 1", "no bone or painted group", "[skin"),
        ("[skin.\"*\"]\n[layer]\ninner = \"none.obj\"\n", "line 5, column 9", "none.obj", ""),
        (
            "[skin.\"*\"]\n[layer]\ninner = \"/inner.obj\"\n",
            "line 5, column 9",
            "leads out of the folder",
            "--allow-dir",
        ),
        ("[skin.\"*\"]\n[layer]\ninner = \"notes.txt\"\n", "line 5, column 9", "does not end in .txt", ".obj"),
        ("[skin.\"*\"]\n[layer]\ninner = \"outside.obj\"\n", "line 5, column 9", "lies below 0 of", ""),
        ("[skin.\"*\"]\n[layer]\ninner = \"solid.msh\"\n", "line 5, column 9", "fill the whole character", ""),
        ("[[keyframes]]\nat = 1.0\n[[keyframes]]\nat = 0.5\n", "line 6, column 6", "at 0.5 s", "rising"),
        ("[[keyframes]]\nat = 1.0\npose = { elbow = [0.0, 0.0, 1.0] }\n", "line 5, column 10", "no bone \"elbow\"", ""),
    ];
    for (text, place, what, remedy) in cases {
        let error = scene("wrong", text).expect_err(text);
        let at = error.place.as_deref().unwrap_or_default();
        assert!(at == place && error.what.contains(what) && error.remedy.contains(remedy), "{text}: {error}, {at}");
    }
}

/// A mesh with a hole is closed; one with too many faces at an edge is refused.
#[test]
fn open_meshes_are_closed_or_refused() {
    let places = [DVec3::ZERO, DVec3::X, DVec3::Y, DVec3::Z];
    let whole = [[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]];
    let closed = supple::skin::layer::close(&places, &whole[..3]).unwrap();
    assert_eq!((closed.caps, closed.surface.triangles.len()), (1, 4));
    assert!(closed.surface.fault().is_none());
    let third = [whole[0], whole[1], whole[2], whole[3], [0, 2, 1]];
    assert!(supple::skin::layer::close(&places, &third).unwrap_err().contains("share an edge"));
}

/// By its schema, so that no new key is forgotten.
#[test]
fn every_key_of_skin_changes_the_model() {
    let schema: Value = serde_json::from_str(&supple_assets::scene_schema()).unwrap();
    let keys = |of: &str| schema["$defs"][of]["properties"].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let fingerprint =
        |text: &str| scene("keys", text).unwrap_or_else(|e| panic!("{text}: {e}")).scene.model.fingerprint();
    for table in ["[skin.\"*\"]", "[painted.belly]"] {
        let before = fingerprint(&format!("{table}\n"));
        for key in keys("SkinEdit") {
            let text = match key.as_str() {
                "soft" if table.contains("painted") => {
                    let error = scene("keys", &format!("{table}\nsoft = false\n")).unwrap_err();
                    assert!(error.remedy.contains("leave the group out"), "{error}");
                    continue;
                }
                "soft" => "[skin.low]\nsoft = false\n",
                "depth" => "depth = 0.015\n",
                "stiffness" => "stiffness = 20000\n",
                "poisson" => "poisson = 0.3\n",
                "density" => "density = 800\n",
                "damping" => "damping = 3\n",
                "mass_scale" => "mass_scale = 2\n",
                "friction" => "friction = 0.9\n",
                other => panic!("nothing shows {other}"),
            };
            assert_ne!(fingerprint(&format!("{table}\n{text}")), before, "{table} {key}");
        }
    }
    let before = fingerprint("[skin.\"*\"]\n");
    for key in keys("LayerEdit") {
        let text = match key.as_str() {
            "inner" => "inner = \"inner.obj\"",
            "map" => "map = \"linear\"",
            other => panic!("nothing shows {other}"),
        };
        assert_ne!(fingerprint(&format!("[skin.\"*\"]\n[layer]\n{text}\n")), before, "{key}");
    }
}

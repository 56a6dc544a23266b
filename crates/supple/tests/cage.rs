//! Creatures, cages around them, and how they are filled.

use glam::DVec3;
use serde_json::Value;
use std::collections::BTreeMap;
use supple::creature::{Creature, Limb};
use supple::flesh::surface::Inside;
use supple::flesh::{Cage, Diagonalize, Element, Lame, Lattice, Split, SurfaceMesh, cage};

fn oracle(name: &str) -> Value {
    let all: Value = serde_json::from_str(include_str!("data/flesh.json")).unwrap();
    all[name].clone()
}

fn vectors(v: &Value) -> Vec<DVec3> {
    let number = |x: &Value| x.as_f64().unwrap();
    v.as_array().unwrap().iter().map(|p| DVec3::new(number(&p[0]), number(&p[1]), number(&p[2]))).collect()
}

/// Every interior face shared by two tetrahedra, every volume positive, the boundary closed.
fn assert_conforming(cage: &Cage) {
    assert_eq!(cage.fault(), None);
    let mut faces: BTreeMap<[u32; 3], u32> = BTreeMap::new();
    for tet in &cage.tets {
        assert!(cage.volume(*tet) > 0.0);
        for left_out in 0..4 {
            let mut face = [0, 1, 2].map(|k| tet[(left_out + 1 + k) % 4]);
            face.sort_unstable();
            *faces.entry(face).or_default() += 1;
        }
    }
    assert!(faces.values().all(|&count| count <= 2));
    // A lattice may touch itself along an edge; but each directed edge of its boundary has as many opposites.
    let boundary = cage.boundary();
    let mut edges: BTreeMap<(u32, u32), i32> = BTreeMap::new();
    for &[a, b, c] in &boundary.triangles {
        for (a, b) in [(a, b), (b, c), (c, a)] {
            *edges.entry((a, b)).or_default() += 1;
            *edges.entry((b, a)).or_default() -= 1;
        }
    }
    assert!(edges.values().all(|&count| count == 0), "the boundary is closed");
    let volume: f64 = cage.tets.iter().map(|&tet| cage.volume(tet)).sum();
    assert!((boundary.volume() - volume).abs() < 1e-12 * volume, "no tetrahedra overlap, none is missing");
}

fn worm() -> Creature {
    let limb = |k: usize| {
        let x = |k: usize| 0.2 * k as f64 - 0.7;
        Limb::new(format!("{k}"), DVec3::X * x(k), DVec3::X * x(k + 1), 0.08, 0.08)
    };
    Creature { limbs: (0..7).map(limb).collect(), blend: 0.005 }
}

#[test]
fn blocks_have_the_counts_of_the_oracle() {
    let all = oracle("O5_lattice");
    for (split, key) in [(Split::Six, "kuhn_3x3x13"), (Split::Five, "five_3x3x13")] {
        let lattice = Lattice { cell: DVec3::new(1.0, 0.7, 1.3), origin: DVec3::ONE, split };
        let cage = lattice.block([3, 3, 13]);
        let counts = [cage.nodes.len() as u64, cage.tets.len() as u64];
        assert_eq!(counts, ["nodes", "tets"].map(|count| all[key][count].as_u64().unwrap()));
        assert_conforming(&cage);
    }
    let lattice = Lattice { cell: DVec3::ONE, origin: DVec3::ZERO, split: Split::Twelve };
    let cage = lattice.block([3, 2, 4]);
    assert_eq!([cage.nodes.len(), cage.tets.len()], [4 * 3 * 5 + 24, 12 * 24]);
    assert_conforming(&cage);
}

#[test]
fn a_capsule_in_a_lattice_has_the_counts_of_the_oracle() {
    // 1.4 m from end to end, cell-centred about the axis
    let expected = &oracle("O5_lattice")["capsule_L1.4_R0.08_cell_centred_h0.107"];
    let capsule =
        Creature { limbs: vec![Limb::new("all", DVec3::X * -0.62, DVec3::X * 0.62, 0.08, 0.08)], blend: 1e-6 };
    let skin = capsule.grow(DVec3::splat(0.01)).unwrap();
    let h = 0.107;
    let origin = DVec3::new(0.4, 0.5, 0.5) * h;
    let cage = Lattice { cell: DVec3::splat(h), origin, split: Split::Six }.around(&skin.surface).unwrap();
    assert_conforming(&cage);
    let counts = [cage.nodes.len() as u64, cage.tets.len() as u64];
    assert_eq!(counts, ["nodes", "kuhn"].map(|count| expected[count].as_u64().unwrap()));
}

#[test]
fn creatures_are_closed_smooth_and_coloured() {
    for spacing in [0.06, 0.03, 0.015] {
        let skin = worm().grow(DVec3::splat(spacing)).unwrap();
        let SurfaceMesh { vertices, triangles, colours } = &skin.surface;
        assert_eq!(skin.surface.fault(), None);
        assert_eq!(vertices.len(), triangles.len() / 2 + 2, "one closed piece without a hole");
        assert_eq!((colours.len(), skin.weights.len()), (vertices.len(), vertices.len()));
        for (p, weights) in vertices.iter().zip(&skin.weights) {
            // Newton's method brings vertices onto the surface.
            assert!(worm().distance(*p).abs() < 1e-5 * spacing, "{p}");
            let sum: f64 = weights.iter().map(|(_, w)| w).sum();
            assert!((sum - 1.0).abs() < 1e-12);
            // the nearest bone has the largest share
            let nearest = ((p.x + 0.7) / 0.2).floor().clamp(0.0, 6.0) as u32;
            let ties = ((p.x + 0.7) / 0.2).fract().abs() < 1e-6;
            assert!(weights[0].0 == nearest || ties, "{p}: {weights:?}");
        }
        // No needle: the shortest edge against the longest of a triangle
        for &t in triangles {
            let [a, b, c] = skin.surface.corners(t);
            let edges = [a.distance(b), b.distance(c), c.distance(a)];
            let (low, high) = edges.iter().fold((f64::MAX, 0.0f64), |(l, h), e| (l.min(*e), h.max(*e)));
            assert!(low > 0.2 * high, "{edges:?}");
        }
        // A capsule of 1.4 m and 8 cm, a little thicker where limbs meet; polygons lie inside a curve
        let capsule = std::f64::consts::PI * 0.08f64.powi(2) * (1.4 + 4.0 / 3.0 * 0.08);
        let inscribed = 1.0 - 0.4 * (spacing / 0.08).powi(2);
        assert!(
            (inscribed * capsule..1.06 * capsule).contains(&skin.surface.volume()),
            "{}",
            skin.surface.volume() / capsule
        );
    }
}

#[test]
fn wrong_creatures_are_refused() {
    let mut thin = worm();
    thin.limbs[3].radius_to = 0.0;
    assert!(thin.grow(DVec3::splat(0.02)).unwrap_err().contains("\"3\""));
    assert!(worm().grow(DVec3::splat(0.0)).unwrap_err().contains("spacing"));
    assert!(worm().grow(DVec3::splat(1e-6)).unwrap_err().contains("too small"));
    assert!(Creature { limbs: Vec::new(), blend: 0.1 }.grow(DVec3::splat(0.1)).is_err());
    let cell = Lattice { cell: DVec3::splat(1e-6), origin: DVec3::ZERO, split: Split::Six };
    assert!(cell.around(&worm().grow(DVec3::splat(0.05)).unwrap().surface).unwrap_err().contains("too small"));
}

#[test]
fn a_cage_holds_every_vertex_of_its_surface() {
    let skin = worm().grow(DVec3::splat(0.05)).unwrap();
    for (split, shift) in [(Split::Six, 0.5), (Split::Twelve, 0.0), (Split::Five, 0.3)] {
        let origin = DVec3::new(0.013, shift, shift) * 0.107;
        let cage = Lattice { cell: DVec3::splat(0.107), origin, split }.around(&skin.surface).unwrap();
        assert_conforming(&cage);
        let embedded = cage.embed(&skin.surface.vertices);
        for (vertex, p) in embedded.iter().zip(&skin.surface.vertices) {
            assert!(vertex.depth() > -1e-9);
            let corners = cage.corners(cage.tets[vertex.tet as usize]);
            let at: DVec3 = corners.iter().zip(vertex.weights).map(|(x, w)| *x * w).sum();
            assert!((at - *p).length() < 1e-14);
        }
        // The filled volume is that of the surface.
        let inside = Inside::new(&skin.surface);
        let filling = cage.fill(|p| inside.contains(p), 1000.0);
        let volume: f64 = cage.tets.iter().zip(&filling.ratios).map(|(&t, w)| w * cage.volume(t)).sum();
        let mass: f64 = filling.masses.iter().sum();
        // Errors of 0.001 a tetrahedron, of both signs; an element counts as filled to 0.02 at least, which adds so much of the cage at most
        let solid = skin.surface.volume();
        let least = 0.02 * cage.tets.iter().map(|&t| cage.volume(t)).sum::<f64>();
        assert!((mass / 1000.0 / solid - 1.0).abs() < 2e-3, "{mass}");
        assert!((0.998 * solid..1.002 * solid + least).contains(&volume), "{volume}");
        // Its centre of mass is where it should be.
        let centre = cage.nodes.iter().zip(&filling.masses).map(|(x, m)| *x * *m).sum::<DVec3>() / mass;
        assert!(centre.length() < 2e-3, "{centre}");
    }
}

#[test]
fn a_tetrahedron_half_full_has_the_masses_of_the_oracle() {
    let expected = oracle("O4_filled_tet");
    let cage = Cage { nodes: vec![DVec3::ZERO, DVec3::X, DVec3::Y, DVec3::Z], tets: vec![[0, 1, 2, 3]] };
    let filling = cage.fill(|p| p.z < 0.3, 1000.0);
    // 2,048 points: 0.0053 at most
    assert!((filling.ratios[0] - expected["w"].as_f64().unwrap()).abs() < 5.3e-3, "{filling:?}");
    for (m, expected) in filling.masses.iter().zip(expected["mass"].as_array().unwrap()) {
        assert!((m - expected.as_f64().unwrap()).abs() < 0.0053 / 0.657 * 31.7, "{filling:?}");
    }
    // the same points give both: the masses add up exactly
    let sum: f64 = filling.masses.iter().sum();
    assert!((sum - 1000.0 * filling.ratios[0] / 6.0).abs() < 1e-10);
}

#[test]
fn the_forces_of_one_tetrahedron_are_those_of_the_oracle() {
    let expected = oracle("O3b_tet_forces");
    let number = |key: &str| expected[key].as_f64().unwrap();
    let (rest, x) = (vectors(&expected["X"]), vectors(&expected["x"]));
    let cage = Cage { nodes: rest, tets: vec![[0, 1, 2, 3]] };
    let volume = cage.volume([0, 1, 2, 3]);
    assert!((volume - number("vol")).abs() < 1e-12);
    let inverse = cage::edges(&cage.corners([0, 1, 2, 3])).inverse();
    let element = Element { nodes: [0, 1, 2, 3], inverse, filled: number("w") * volume, ratio: number("w") };
    for (g, b) in element.shape_gradients().iter().zip(vectors(&expected["b"])) {
        assert!((*g * -volume - b).length() < 1e-12); // b = −V G
    }
    let lame = Lame { lambda: number("la"), mu: number("mu") };
    let (stress, within) = lame.stress(&element.gradient(&x), Diagonalize::Selective);
    assert!(!within);
    for (f, expected) in element.forces(stress).iter().zip(vectors(&expected["f_ext"])) {
        assert!((*f - expected).length() < 1e-9, "{f} {expected}");
    }
}

//! Scenes with flesh: a worm, a fish and a finger in the sizes of [Kim 2008, table 2].

use supple::*;

#[test]
fn sizes_are_those_of_the_paper_within_a_tenth() {
    // bones, actuators, degrees of freedom, nodes, tetrahedra, vertices, triangles
    let table = [
        ("worm", [7, 6, 543, 224, 714, 262, 520]),
        ("fish", [7, 6, 258, 107, 415, 958, 1912]),
        ("finger", [5, 7, 82, 52, 119, 157, 276]),
    ];
    let mut wrong = Vec::new();
    for (name, published) in table {
        let scene = Scene::parse(name).unwrap();
        let flesh = scene.model.flesh().unwrap();
        let tree: usize = scene.model.joints().iter().map(|joint| joint.mask.free()).sum();
        let loose = scene.model.bodies().len() - scene.model.joints().len();
        let bones = scene.model.joints().len();
        // the root of the finger is moved too
        let actuators = tree - if name == "finger" { 0 } else { 3 };
        let found = [
            bones,
            actuators,
            tree + 6 * loose + flesh.freedoms(),
            flesh.start.len(),
            flesh.elements.len(),
            flesh.surface.vertices.len(),
            flesh.surface.triangles.len(),
        ];
        println!("{name}: {found:?}");
        for (k, (found, published)) in found.into_iter().zip(published).enumerate() {
            let off = (found as f64 / published as f64 - 1.0).abs();
            if off > if k < 2 { 0.0 } else { 0.1 } {
                wrong.push(format!("{name}, column {k}: {found} for {published}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

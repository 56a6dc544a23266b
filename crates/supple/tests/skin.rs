//! Skin on bones [Galoppo 2007]: layers that fit together, bones that carry the surface, momentum, contact, and what touching does to the skeleton.

use supple::creature::{Creature, Limb};
use supple::flesh::SurfaceMesh;
use supple::glam::{DMat3, DQuat, DVec3};
use supple::maths::rotation;
use supple::skin::layer::{self, Layer};
use supple::skin::respond::{Law, local};
use supple::skin::{Ball, Core, Grab, SkinDynamics, SkinEquations, SkinResponse};
use supple::*;

/// The angular spring between two bones: O6. Our torques are in world axes, the oracle's in those of the bones.
#[test]
fn the_angular_spring_is_that_of_the_oracle() {
    let (k, phi) = (3.0, DVec3::new(0.4, 0.6, -0.3));
    // w, x, y, z in the file
    let qi = DQuat::from_xyzw(0.147636255767, -0.098424170511, 0.246060426278, 0.952874852886);
    let qj = DQuat::from_xyzw(0.26472438004, 0.257195399422, 0.150571567798, 0.917114895801);
    assert!(rotation::log(qi.conjugate() * qj).distance(phi) < 1e-10);
    let error = forces::rotation_error(qj, qi, DQuat::IDENTITY);
    let spring = forces::rotation_spring(error, k, 0.0, forces::Derivatives::Exact);
    // on side a, which is j
    assert!((qj.conjugate() * spring.torque).distance(phi * -k) < 1e-9);
    assert!((qi.conjugate() * -spring.torque).distance(phi * k) < 1e-9);
    // dT_i/dω_j of the oracle: torque of i in axes of i, by a turn of j in axes of j
    let expected = DMat3::from_cols(
        DVec3::new(2.8863393811, -0.389381003255, -0.930309498373),
        DVec3::new(0.510618996745, 2.93685521172, 0.554535752441),
        DVec3::new(0.869690501627, -0.645464247559, 2.86865884038),
    );
    for (axis, column) in
        [DVec3::X, DVec3::Y, DVec3::Z].into_iter().zip([expected.x_axis, expected.y_axis, expected.z_axis])
    {
        let by = 1e-6;
        let torque = |t: f64| {
            let turned = qj * rotation::exp(axis * t);
            let error = forces::rotation_error(turned, qi, DQuat::IDENTITY);
            qi.conjugate() * -forces::rotation_spring(error, k, 0.0, forces::Derivatives::Exact).torque
        };
        let slope = (torque(by) - torque(-by)) / (2.0 * by);
        assert!(slope.distance(column) < 1e-7, "{slope} {column}");
    }
}

/// The closed form of one contact with friction: O8.
#[test]
fn one_contact_is_that_of_the_oracle() {
    let cases = [
        ([-0.3, 0.1, 0.2], 2.0, 0.5, [0.15, -0.0335410196625, -0.067082039325]),
        ([-0.3, 0.05, 0.02], 2.0, 0.5, [0.15, -0.025, -0.01]),
        ([0.1, 0.4, 0.0], 2.0, 0.5, [0.0, 0.0, 0.0]),
        ([-1.0, 3.0, -4.0], 0.5, 0.8, [2.0, -0.96, 1.28]),
    ];
    for (c, omega, friction, expected) in cases {
        let law = Law::Push { friction };
        let c = DVec3::from_array(c);
        let push = local(c, omega, DVec3::X, law, 0.0).0.x;
        let (impulse, derivative) = local(c, omega, DVec3::X, law, friction * push);
        assert!(impulse.distance(DVec3::from_array(expected)) < 1e-12, "{impulse}");
        // its derivative, the bound kept
        for axis in DVec3::AXES {
            let d = 1e-7;
            let at = |t: f64| local(c + axis * t, omega, DVec3::X, law, friction * push).0;
            let slope = (at(d) - at(-d)) / (2.0 * d);
            assert!(slope.distance(derivative * axis) < 1e-6, "{slope} {derivative}");
        }
    }
}

/// A closed tube along X: circles of so many vertices, the first of them `first` steps from the top, and a vertex at each end.
fn tube_surface((rings, around, first): (usize, usize, f64), radius: f64, (from, to): (f64, f64)) -> SurfaceMesh {
    let mut surface = SurfaceMesh::default();
    for i in 0..rings {
        for j in 0..around {
            let (s, c) = (std::f64::consts::TAU * (j as f64 + first) / around as f64).sin_cos();
            let x = from + (to - from) * i as f64 / (rings - 1) as f64;
            surface.vertices.push(DVec3::new(x, radius * c, radius * s));
        }
    }
    surface.vertices.extend([from, to].map(|x| DVec3::X * x));
    let at = |i: usize, j: usize| (i * around + j % around) as u32;
    let ends = [0, 1].map(|k| (rings * around + k) as u32);
    for j in 0..around {
        surface.triangles.push([at(0, j + 1), at(0, j), ends[0]]);
        surface.triangles.push([at(rings - 1, j), at(rings - 1, j + 1), ends[1]]);
        for i in 0..rings - 1 {
            surface.triangles.push([at(i, j), at(i, j + 1), at(i + 1, j)]);
            surface.triangles.push([at(i, j + 1), at(i + 1, j + 1), at(i + 1, j)]);
        }
    }
    if surface.volume() < 0.0 {
        surface.triangles.iter_mut().for_each(|t| t.swap(1, 2));
    }
    surface
}

/// A tube of two bones, 40 circles of 16, with the weights of the oracle.
fn tube(map: PoseMap) -> Model {
    let surface = tube_surface((40, 16, 0.0), 0.1, (0.0, 1.0));
    let weights = surface
        .vertices
        .iter()
        .map(|p| {
            let w = [0.25, 0.75].map(|middle: f64| (-((p.x - middle) / 0.5 / 0.45).powi(2)).exp());
            [(0, w[0] / (w[0] + w[1])), (1, w[1] / (w[0] + w[1])), (0, 0.0), (0, 0.0)]
        })
        .collect();
    let mut builder = ModelBuilder::new();
    let bone = |name: &str, x: f64| {
        BodySpec::new(name).shape(Shape::capsule(0.4, 0.04), 1000.0).pose(Pose::at(DVec3::new(x, 0.0, 0.0)))
    };
    let a = builder.body(bone("a", 0.25));
    let b = builder.body(bone("b", 0.75));
    builder.joint(JointSpec::new("joint", JointMask::BALL, b, a).at(DVec3::new(0.5, 0.0, 0.0)));
    let flesh = Some(SkinMaterial::default());
    let bones = [a, b].map(|id| SkinBone { body: id.into(), rest: None, flesh, core: Core::Bone }).to_vec();
    builder.skin(SkinSpec { surface, weights, bones, painted: Vec::new(), map, inner: None });
    builder.obstacle(ObstacleSpec::solid("rod", Shape::capsule(0.5, ROD)).pose(Pose::at(DVec3::Y * 3.0)));
    builder.build().unwrap()
}

/// Thickness of a rod far above the tube \[m\].
const ROD: f64 = 0.006;

/// Volume, and the smallest radius of a circle, of the tube with its second bone turned about the joint.
fn turned(model: &Model, by: DQuat) -> (f64, f64) {
    let mut state = model.start();
    let joint = DVec3::new(0.5, 0.0, 0.0);
    state.bodies[1].position = joint + by * (state.bodies[1].position - joint);
    state.bodies[1].orientation = by * state.bodies[1].orientation;
    let skin = model.skin().unwrap();
    let mut vertices = Vec::new();
    skin.positions(&state, &mut vertices);
    let smallest = vertices[..640]
        .chunks_exact(16)
        .map(|ring| {
            let centre = ring.iter().sum::<DVec3>() / 16.0;
            ring.iter().map(|p| p.distance(centre)).fold(f64::INFINITY, f64::min)
        })
        .fold(f64::INFINITY, f64::min);
    let surface = SurfaceMesh { vertices, triangles: skin.triangles.clone(), colours: Vec::new() };
    (surface.volume(), smallest / 0.1)
}

/// Linear blending collapses at bent and twisted joints, centres of rotation do not: O11, to 1 %.
#[test]
fn pose_maps_keep_the_volume_of_the_oracle() {
    let bend = DQuat::from_rotation_z(90f64.to_radians());
    let twist = DQuat::from_rotation_x(170f64.to_radians());
    for (map, bent, twisted) in
        [(PoseMap::Linear, (0.9481, 0.7127), (0.7964, 0.1528)), (PoseMap::Centres, (0.9958, 1.0), (0.9913, 1.0))]
    {
        let model = tube(map);
        let (whole, _) = turned(&model, DQuat::IDENTITY);
        for (turn, (volume, radius)) in [(bend, bent), (twist, twisted)] {
            let (v, r) = turned(&model, turn);
            assert!((v / whole - volume).abs() < 0.01, "{map:?}: volume {} for {volume}", v / whole);
            assert!((r - radius).abs() < 0.01, "{map:?}: radius {r} for {radius}");
        }
    }
}

/// Velocities of the surface are the differences of its places, with both maps.
#[test]
fn velocities_are_differences_of_places() {
    for map in [PoseMap::Linear, PoseMap::Centres] {
        let model = tube(map);
        let skin = model.skin().unwrap();
        let mut state = model.start();
        let mut seed = 5u64;
        let mut random = || {
            let mut next = || {
                seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                (seed >> 11) as f64 / (1u64 << 52) as f64 - 1.0
            };
            DVec3::new(next(), next(), next())
        };
        for body in &mut state.bodies {
            body.orientation = (rotation::exp(random()) * body.orientation).normalize();
            body.velocity = Twist::new(random(), random());
        }
        for node in &mut state.nodes {
            (node.position, node.velocity) = (random() * 0.01, random() * 0.1);
        }
        let moved = |t: f64| {
            let mut state = state.clone();
            for body in &mut state.bodies {
                body.position += body.velocity.linear * t;
                body.orientation = (rotation::exp(body.velocity.angular * t) * body.orientation).normalize();
            }
            state.nodes.iter_mut().for_each(|node| node.position += node.velocity * t);
            let mut places = Vec::new();
            skin.positions(&state, &mut places);
            places
        };
        let d = 1e-6;
        let (before, after) = (moved(-d), moved(d));
        for (k, (x, v)) in skin.motion(&state).iter().enumerate() {
            let slope = (after[k] - before[k]) / (2.0 * d);
            assert!(slope.distance(*v) < 1e-8, "{map:?} vertex {k} at {x}: {slope} {v}");
        }
    }
}

/// Every face inside a layer belongs to two tetrahedra, every other to a triangle outside or inside; all volumes are positive.
fn assert_conforming(surface: &SurfaceMesh, layer: &Layer) {
    let mut faces: Vec<[u32; 3]> = Vec::new();
    for &[a, b, c, d] in &layer.tets {
        assert!(layer.volume(&surface.vertices, [a, b, c, d]) > 0.0);
        for mut face in [[b, c, d], [a, c, d], [a, b, d], [a, b, c]] {
            face.sort_unstable();
            faces.push(face);
        }
    }
    faces.sort_unstable();
    let mut single = 0;
    for same in faces.chunk_by(|a, b| a == b) {
        assert!(same.len() <= 2, "{same:?}");
        single += usize::from(same.len() == 1);
    }
    assert_eq!(single, 2 * surface.triangles.len());
    assert_eq!(layer.tets.len(), 3 * surface.triangles.len());
}

#[test]
fn layers_fit_together() {
    let limbs = vec![
        Limb::new("a", DVec3::ZERO, DVec3::X * 0.5, 0.12, 0.1),
        Limb::new("b", DVec3::X * 0.5, DVec3::new(0.8, 0.3, 0.0), 0.1, 0.05),
    ];
    let surface = Creature { limbs, blend: 0.02 }.grow(DVec3::splat(0.04)).unwrap().surface;
    let depths = layer::radii(&surface, 1.0).iter().map(|r| 0.4 * r).collect();
    let layer = Layer::under(&surface, depths).unwrap();
    assert!(layer.folded.is_empty());
    assert_conforming(&surface, &layer);
    // the same between two surfaces
    assert_conforming(&surface, &Layer::between(&surface, layer.inner.clone()).unwrap());
    // an inner surface that is outside is refused
    let outside = surface.vertices.iter().map(|p| *p * 1.5).collect();
    assert!(Layer::between(&surface, outside).unwrap_err().contains("turned over"));
}

/// Seams are joined, holes capped, and what cannot be closed is refused with a reason.
#[test]
fn open_surfaces_are_closed_or_refused() {
    // a cube without its top, every face with vertices of its own
    let corner = |k: u32| DVec3::new(f64::from(k & 1), f64::from(k >> 1 & 1), f64::from(k >> 2));
    let quads = [[0, 2, 3, 1], [0, 1, 5, 4], [1, 3, 7, 5], [3, 2, 6, 7], [2, 0, 4, 6]];
    let (mut vertices, mut triangles) = (Vec::new(), Vec::new());
    for quad in quads {
        let first = vertices.len() as u32;
        vertices.extend(quad.map(corner));
        triangles.extend([[first, first + 1, first + 2], [first, first + 2, first + 3]]);
    }
    let closed = layer::close(&vertices, &triangles).unwrap();
    assert_eq!((closed.caps, closed.surface.vertices.len()), (1, 9));
    assert_eq!(closed.surface.fault(), None);
    assert!((closed.surface.volume() - 1.0).abs() < 1e-12);
    assert_eq!(closed.vertex_of.len(), 20);
    // half of its triangles turned inside out
    let mut mixed = triangles.clone();
    mixed.iter_mut().step_by(2).for_each(|t| t.swap(0, 1));
    let reason = layer::close(&vertices, &mixed).unwrap_err();
    assert!(reason.contains("turned against"), "{reason}");
    assert!(layer::close(&[], &[]).unwrap_err().contains("no triangle"));
}

/// Two tubes of two bones across each other, 1 mm apart, in free space.
fn crossed_tubes(young: f64, circles: (usize, usize, f64)) -> Model {
    let radius = 0.08;
    let mut builder = ModelBuilder::new();
    let mut whole: Option<SkinSpec> = None;
    for (name, turn, height) in [("low", 0.0, 0.0), ("high", 0.5 * std::f64::consts::PI, 2.0 * radius + 0.001)] {
        let place = Pose::new(DQuat::from_rotation_y(turn), DVec3::Y * height);
        let mut surface = tube_surface(circles, radius, (-0.4, 0.4));
        surface.vertices.iter_mut().for_each(|p| *p = place.transform_point(*p));
        let weights = surface
            .vertices
            .iter()
            .map(|p| {
                let share = 1.0 / (1.0 + (-30.0 * place.inverse().transform_point(*p).x).exp());
                [(0, 1.0 - share), (1, share), (0, 0.0), (0, 0.0)]
            })
            .collect();
        let bones = [-0.2, 0.2].map(|x| {
            let pose = place.then(Pose::at(DVec3::X * x));
            builder.body(
                BodySpec::new(format!("{name} {x}"))
                    .shape(Shape::capsule(0.3, 0.04), 1000.0)
                    .pose(pose)
                    .collides_with(0),
            )
        });
        let joint = JointSpec::new(name, JointMask::BALL, bones[1], bones[0]).at(place.translation);
        builder.joint(joint.spring(40.0, 2.0));
        let flesh = Some(SkinMaterial { young, depth: skin::Depth::Metres(0.035), ..SkinMaterial::default() });
        let bones = bones.map(|id| SkinBone { body: id.into(), rest: None, flesh, core: Core::Bone }).to_vec();
        let own = SkinSpec { surface, weights, bones, painted: Vec::new(), map: PoseMap::Centres, inner: None };
        whole = Some(match whole {
            None => own,
            Some(before) => before.beside(own).unwrap(),
        });
    }
    builder.skin(whole.unwrap());
    builder.build().unwrap()
}

/// How deep the deepest vertex, or place on an edge, of either half of the skin is inside the other: by the nearest triangle and its side.
fn deepest(skin: &skin::Skin, state: &State) -> f64 {
    let mut places = Vec::new();
    skin.positions(state, &mut places);
    let half = places.len() / 2;
    let mut deepest = 0.0f64;
    let vertices = (0..places.len()).map(|v| (v, places[v]));
    let edges = skin.triangles.iter().flat_map(|t| (0..3).map(|k| (t[k] as usize, t[(k + 1) % 3] as usize)));
    let on_edges = edges.filter(|(a, b)| a < b).flat_map(|(a, b)| {
        let (from, to) = (places[a], places[b]);
        (1..8).map(move |k| (a, from.lerp(to, f64::from(k) / 8.0)))
    });
    for (v, p) in vertices.chain(on_edges) {
        let others = skin.triangles.iter().filter(|t| (t[0] as usize >= half) != (v >= half));
        let mut best = (f64::INFINITY, 0.0);
        for t in others {
            let [a, b, c] = t.map(|i| places[i as usize]);
            let normal = (b - a).cross(c - a).normalize();
            // where the foot of p is within the triangle, or nearly
            let foot = p - normal * normal.dot(p - a);
            let inside = [(a, b), (b, c), (c, a)].iter().all(|(p, q)| (*q - *p).cross(foot - *p).dot(normal) > -1e-9);
            let height = normal.dot(p - a);
            if inside && height.abs() < best.0 {
                best = (height.abs(), height);
            }
        }
        // faces of the far side are farther than the nearest one
        if best.0 < 0.06 {
            deepest = deepest.max(-best.1);
        }
    }
    deepest
}

/// Two soft tubes that are pressed together dent each other, move each other's bones, keep the momentum of both, and come to rest without either being in
/// the other.
fn press(model: &Model) {
    let skin = model.skin().unwrap();
    let (mut state, mut work) = (model.start(), Work::new(model));
    let force = 15.0;
    // pushed together, and kept level by couples: a beam on a beam would roll off
    let press = |state: &State| -> Vec<(BodyId, Wrench)> {
        let one = |b: u32| {
            let body = &state.bodies[b as usize];
            let tilt = rotation::log(body.orientation * model.body(BodyId(b)).start.rotation.conjugate());
            let push = if b < 2 { force } else { -force };
            (BodyId(b), Wrench::new(DVec3::Y * push, tilt * -20.0 - body.velocity.angular * 2.0))
        };
        (0..4).map(one).collect()
    };
    let settings = SkinSettings { refinements: 6, ..SkinSettings::default() };
    let mut input = Input { gravity: DVec3::ZERO, contacts: Contacts::All, skin: settings, ..Input::default() };
    let (mut dents, mut unsettled, mut worst) = ([0.0f64; 2], 0, 0.0f64);
    for _ in 0..240 {
        input.wrenches = press(&state);
        let report = step(model, &input, &mut state, &mut work).unwrap();
        unsettled += report.unconverged;
        // in what they give each other in a second; the equations being solved, what is left is of the order of the step: 1.6e-5 in free flight
        let given = 2.0 * force * state.time.max(1.0);
        worst = worst.max(measure::momentum(model, &state).linear.length() / given);
        for (half, dent) in state.nodes.chunks(skin.nodes() / 2).zip(&mut dents) {
            *dent = half.iter().map(|node| node.position.length()).fold(*dent, f64::max);
        }
    }
    let depth = deepest(skin, &state);
    let speed = state.bodies.iter().map(|body| body.velocity.linear.length()).fold(0.0, f64::max);
    let apart = state.bodies[2].position.y - state.bodies[0].position.y;
    let all = format!(
        "momentum off by {worst}, dents {dents:?}, {depth} m inside, {speed} m/s, {unsettled} steps not settled, {apart} m apart"
    );
    assert!(worst < 1e-4, "{all}");
    assert!(dents.iter().all(|dent| *dent > 2e-3), "{all}");
    assert!(depth < 2e-3, "{all}");
    assert!(speed < 2e-2, "{all}");
    assert!(unsettled <= 5, "{all}");
    // without contact they would have gone through each other
    assert!(apart > 0.1, "{all}");
}

#[test]
fn two_soft_characters_press_on_each_other() {
    press(&crossed_tubes(5e4, (25, 12, 0.5)));
}

/// The same where edges along one tube cross those along the other: no vertex is near.
#[test]
fn edges_that_cross_press_on_each_other() {
    press(&crossed_tubes(5e4, (16, 8, 0.0)));
}

/// A ball smaller than a triangle, pressed into its middle where no vertex is, dents the skin; likewise a rod across edges.
#[test]
fn what_is_between_vertices_dents_the_skin() {
    let run = |balls: bool, settings: SkinSettings| {
        let (model, radius) = (&tube(PoseMap::Centres), ROD);
        let start = model.start();
        let mut input = Input { gravity: DVec3::ZERO, contacts: Contacts::All, skin: settings, ..Input::default() };
        let skin = model.skin().unwrap();
        let (mut state, mut work) = (start.clone(), Work::new(model));
        let mut places = Vec::new();
        skin.positions(&state, &mut places);
        // the triangle nearest to the middle of the top
        let middle = |t: &[u32; 3]| t.iter().map(|&v| places[v as usize]).sum::<DVec3>() / 3.0;
        let top = DVec3::new(0.4, 0.1, 0.0);
        let t =
            *skin.triangles.iter().min_by(|a, b| middle(a).distance(top).total_cmp(&middle(b).distance(top))).unwrap();
        let [a, b, c] = t.map(|v| places[v as usize]);
        let (at, out) = (middle(&t), (b - a).cross(c - a).normalize());
        // the bones are held where they are, so that the skin must give way; the rod lies along Z, over edges of the top between two circles
        let rod = |depth: f64| DVec3::new(at.x, 0.1 + radius - depth, 0.0);
        let (mut touching, mut inside) = (0, 0.0f64);
        for k in 0..90 {
            let depth = 0.008 * (f64::from(k) / 60.0).min(1.0);
            let centre = at + out * (radius - depth);
            let speed = if k < 60 { 0.008 } else { 0.0 };
            if balls {
                input.balls = vec![Ball { centre, radius, velocity: out * -speed }];
            } else {
                let pose = Pose::new(DQuat::from_rotation_y(0.5 * std::f64::consts::PI), rod(depth));
                let velocity = Twist::new(DVec3::Y * -speed, DVec3::ZERO);
                input.obstacles = vec![Some(Target { pose, velocity })];
            }
            input.grips = (0..2)
                .map(|b| Grip {
                    body: BodyId(b),
                    point: DVec3::ZERO,
                    target: start.bodies[b as usize].position,
                    rotation: Some(start.bodies[b as usize].orientation),
                })
                .collect();
            let report = step(model, &input, &mut state, &mut work).unwrap();
            skin.positions(&state, &mut places);
            touching = touching.max(report.flesh_touching);
            if k >= 60 {
                // places of all triangles in what pokes them
                for t in &skin.triangles {
                    let [a, b, c] = t.map(|v| places[v as usize]);
                    for (i, j) in (0..=8).flat_map(|i| (0..=8 - i).map(move |j| (i, j))) {
                        let (u, v) = (f64::from(i) / 8.0, f64::from(j) / 8.0);
                        let p = a + (b - a) * u + (c - a) * v;
                        let gap = if balls {
                            p.distance(centre) - radius
                        } else {
                            let away = p - rod(depth);
                            DVec3::new(away.x, away.y, 0.0).length() - radius
                        };
                        inside = inside.max(-gap);
                    }
                }
            }
        }
        let dent = state.nodes.iter().map(|node| node.position.length()).fold(0.0, f64::max);
        println!("balls {balls}: {touching} touch, dented {dent} m, {inside} m inside");
        (touching, dent, inside)
    };
    let (touching, dent, inside) = run(true, SkinSettings::default());
    assert!(touching > 0 && dent > 5e-3 && inside < 1e-3, "{touching} touch, dented {dent} m, {inside} m inside");
    let (touching, dent, inside) = run(false, SkinSettings::default());
    assert!(touching > 0 && dent > 4e-3 && inside < 2e-3, "{touching} touch, dented {dent} m, {inside} m inside");
    // as published vertices alone are looked at: the ball goes through
    assert_eq!(run(true, SkinSettings::PUBLISHED).0, 0);
}

/// Tangled tubes that are led about: contacts of many soft vertices with one another settle.
#[test]
fn tangled_tubes_settle() {
    for name in ["tubes", "tubes:stiffness=30000", "tubes:friction=1"] {
        let scene = Scene::parse(name).unwrap();
        let (mut state, mut input, mut work) = (scene.state.clone(), scene.input.clone(), Work::new(&scene.model));
        let (mut unsettled, mut touching, mut deepest) = (0, 0, 0.0f64);
        for _ in 0..180 {
            scene.direct(state.time, &mut input);
            let report = step(&scene.model, &input, &mut state, &mut work).unwrap();
            unsettled += report.unconverged.min(1);
            touching = touching.max(report.flesh_touching);
            deepest = deepest.max(report.max_penetration);
        }
        let all = format!("{name}: {unsettled} of 180 steps not settled, {touching} touching, {deepest} m inside");
        println!("{all}");
        // one step in a hundred
        assert!(unsettled <= 2 && touching > 10 && deepest < 2e-3, "{all}");
    }
}

/// How far momentum drifts in free flight, as a share, in 0.3 s.
fn drift(dt: f64, spin: DVec3, settings: SkinSettings) -> (f64, f64) {
    let scene = Scene::parse("tube:3").unwrap();
    let mut state = scene.state.clone();
    for (k, body) in state.bodies.iter_mut().enumerate() {
        let r = body.position - DVec3::Y * 0.62;
        // each link also twists against the next
        let twist = DVec3::X * (0.25 * spin.length() * (k as f64 - 1.0));
        body.velocity = Twist::new(DVec3::new(0.3, 0.1, 0.0) + spin.cross(r), spin + twist);
    }
    let input = Input { dt, gravity: DVec3::ZERO, contacts: Contacts::Off, skin: settings, ..scene.input.clone() };
    let mut work = Work::new(&scene.model);
    let about = |state: &State| {
        let m = measure::momentum(&scene.model, state);
        (m.linear, m.angular)
    };
    // one step first: it brings the velocities into the joints
    step(&scene.model, &input, &mut state, &mut work).unwrap();
    let (p, l) = about(&state);
    for _ in 0..(0.3 / dt).round() as usize {
        step(&scene.model, &input, &mut state, &mut work).unwrap();
    }
    let (p1, l1) = about(&state);
    ((p1 - p).length() / p.length(), (l1 - l).length() / l.length())
}

/// Momentum drifts in proportion to the step, as that of backward Euler does, and to the square of the spin: a step takes directions as they are at its
/// start for velocities of its end, and so errs by at most (Ω h)² of the momentum, h Ω² T in all. At a spin of 1 rad/s the reference has 1.2e-3 to 1.5e-4 at these steps for
/// angular and 3.0e-5 to 4.4e-6 for linear momentum.
#[test]
fn momentum_drift_halves_with_the_step() {
    let settings = SkinSettings { refinements: 6, ..SkinSettings::default() };
    let steps = [0.02, 0.01, 0.005, 0.0025];
    for spin in [DVec3::new(0.3, 0.5, 0.8), DVec3::new(1.0, 2.0, 3.0)] {
        let drifts = steps.map(|dt| drift(dt, spin, settings));
        for pair in drifts.windows(2) {
            let ratio = pair[1].1 / pair[0].1;
            assert!((0.4..0.6).contains(&ratio), "{spin}: {drifts:?}");
        }
        for (dt, (linear, angular)) in steps.iter().zip(drifts) {
            let most = dt * spin.length_squared() * 0.3;
            assert!(
                angular < most && linear < 0.05 * most,
                "{spin}, {dt} s: {linear} {angular}, bound {most}; {drifts:?}"
            );
        }
    }
}

/// Without refinement momentum leaks in free flight; with each sweep to less than a quarter, as the reference has it: 0.40, 0.035, 0.003 %.
#[test]
fn refinement_mends_the_leak_of_momentum() {
    let spin = DVec3::new(0.3, 0.5, 0.8);
    let leak = |refinements: u32| drift(0.01, spin, SkinSettings { refinements, ..SkinSettings::default() }).0;
    let exact = leak(8);
    let leaks = [0, 1, 2].map(|sweeps| (leak(sweeps) - exact).abs());
    assert!(
        leaks[0] < 4e-3 && leaks[1] < 0.25 * leaks[0] && leaks[2] < 0.25 * leaks[1] + 1e-6,
        "{leaks:?}, exact {exact}"
    );
}

/// A poked belly dents and moves the skeleton, and both come back.
#[test]
fn a_poked_belly_moves_the_skeleton_and_returns() {
    let scene = Scene::parse("deer:1748,bird=0,animated=0").unwrap();
    let (model, skin) = (&scene.model, scene.model.skin().unwrap());
    let (mut state, mut input, mut work) = (scene.state.clone(), scene.input.clone(), Work::new(model));
    let spine = model.find_body("spine_2").unwrap().index();
    let run =
        |steps: usize, ball: &dyn Fn(f64) -> Option<Ball>, state: &mut State, input: &mut Input, work: &mut Work| {
            let mut most = (0.0f64, 0.0f64, 0u32);
            for _ in 0..steps {
                scene.direct(state.time, input);
                input.balls.clear();
                input.balls.extend(ball(state.time + input.dt));
                let report = step(model, input, state, work).unwrap();
                let dent = state.nodes.iter().map(|node| node.position.length()).fold(0.0, f64::max);
                most = (most.0.max(dent), most.1.max(report.max_penetration), most.2.max(report.flesh_touching));
            }
            most
        };
    run(120, &|_| None, &mut state, &mut input, &mut work);
    let still = state.clone();
    let start = still.time;
    // up by 9 cm in half a second, from below the belly, and away again
    let path = |t: f64| {
        let s = ((t - start) / 0.5).min(1.0);
        let height = 0.70 + 0.09 * s;
        let velocity = if s < 1.0 { DVec3::Y * 0.18 } else { DVec3::ZERO };
        Some(Ball { centre: DVec3::new(-0.05, height, 0.0), radius: 0.1, velocity })
    };
    let (dent, inside, touching) = run(60, &path, &mut state, &mut input, &mut work);
    let raised = state.bodies[spine].position.y - still.bodies[spine].position.y;
    assert!(touching > 3 && inside < 2e-3, "{touching} vertices touched, {inside} m inside");
    assert!(dent > 5e-3, "the skin was dented by {dent} m");
    assert!(raised > 5e-4, "the spine was raised by {raised} m");
    run(240, &|_| None, &mut state, &mut input, &mut work);
    let left = state.bodies[spine].position.distance(still.bodies[spine].position);
    let dented = state.nodes.iter().zip(&still.nodes).map(|(a, b)| a.position.distance(b.position)).fold(0.0, f64::max);
    assert!(left < 5e-4 && dented < 1e-3, "{left} m of the spine and {dented} m of the skin did not come back");
    assert_eq!(skin.nodes(), 1748);
}

/// A grabbed vertex follows the hand and takes its bones along.
#[test]
fn a_grabbed_vertex_takes_its_bones_along() {
    let scene = Scene::parse("tube:5").unwrap();
    let (mut state, mut work) = (scene.state.clone(), Work::new(&scene.model));
    let skin = scene.model.skin().unwrap();
    let vertex = 0u32;
    let target = skin.rest[0] + DVec3::Y * 0.2;
    let grab = Grab { vertex, target, stiffness: 2000.0, damping: 40.0 };
    let input = Input { gravity: DVec3::ZERO, grabs: vec![grab], ..scene.input.clone() };
    let before = state.bodies[0].position.y;
    for _ in 0..120 {
        step(&scene.model, &input, &mut state, &mut work).unwrap();
    }
    let mut places = Vec::new();
    skin.positions(&state, &mut places);
    assert!(places[0].distance(target) < 0.03, "{} from the hand", places[0].distance(target));
    assert!(state.bodies[0].position.y > before + 0.1);
}

/// All ways to solve keep a tube on its bar: finite, bounded, joints closed, nothing left inside.
#[test]
fn a_tube_falls_over_a_bar_in_every_way() {
    let published = SkinSettings::PUBLISHED;
    let usual = SkinSettings::default();
    for settings in [
        usual,
        published,
        SkinSettings { refinements: 2, ..published },
        SkinSettings { equations: SkinEquations::ConjugateGradients, ..usual },
        SkinSettings { dynamics: SkinDynamics::Carried, ..usual },
    ] {
        for name in ["tube:2", "tube:5,map=linear"] {
            let scene = Scene::parse(name).unwrap();
            let input = Input { skin: settings, ..scene.input.clone() };
            let (mut state, mut work) = (scene.state.clone(), Work::new(&scene.model));
            let mut touched = 0;
            for _ in 0..180 {
                let report = step(&scene.model, &input, &mut state, &mut work).unwrap();
                assert!(report.max_joint_gap < 1e-5, "{name} {settings:?}: gap {}", report.max_joint_gap);
                touched = touched.max(report.flesh_touching);
            }
            let mut places = Vec::new();
            scene.model.skin().unwrap().positions(&state, &mut places);
            let lowest = places.iter().map(|p| p.y).fold(f64::INFINITY, f64::min);
            assert!(touched > 2 && lowest > -2e-3, "{name} {settings:?}: {touched} touched, lowest {lowest}");
            // as published only the skin is braked: it slides off and away
            let farthest = places.iter().map(|p| p.length()).fold(0.0, f64::max);
            assert!(farthest < 8.0, "{name} {settings:?}: {farthest} m away");
        }
    }
}

/// The same step by a fresh work, and after a snapshot, bit for bit.
#[test]
fn skin_is_deterministic() {
    let scene = Scene::parse("tubes").unwrap();
    let (mut state, mut input, mut work) = (scene.state.clone(), scene.input.clone(), Work::new(&scene.model));
    for k in 0..90 {
        scene.direct(state.time, &mut input);
        if k % 30 == 29 {
            let mut other = state.clone();
            step(&scene.model, &input, &mut other, &mut Work::new(&scene.model)).unwrap();
            step(&scene.model, &input, &mut state, &mut work).unwrap();
            assert_eq!(other.hash(), state.hash(), "step {k}");
        } else {
            step(&scene.model, &input, &mut state, &mut work).unwrap();
        }
    }
}

/// Solvers that cannot move skin say so before the run.
#[test]
fn other_solvers_say_that_they_do_not_take_skin() {
    let scene = Scene::parse("tube:2").unwrap();
    for solver in Solver::all().into_iter().skip(1) {
        let input = Input { solver, ..scene.input.clone() };
        let error = step(&scene.model, &input, &mut scene.state.clone(), &mut Work::new(&scene.model)).unwrap_err();
        assert_eq!(error.code(), "step/unsupported");
    }
    assert_eq!(SkinResponse::default(), SkinResponse::Complementary);
}

/// Condensation errs as it was measured on tubes and snakes of other meshes: the matrix within twice as much either way, velocities by no more, and each
/// sweep leaves at most 0.30 of the error, since M̂ is at most 1.43 times the matrix it stands for.
#[test]
fn condensation_errs_as_told() {
    for (name, dt, matrix, velocity) in [
        ("tube:2,stiffness=10000", 0.005, 0.112, 0.268),
        ("tube:5,stiffness=10000,influences=3", 0.02, 0.086, 0.141),
        ("tube:5,influences=3", 0.02, 0.013, 0.030),
        ("snake", 0.005, 0.104, 0.216),
    ] {
        let scene = Scene::parse(name).unwrap();
        let input = Input { dt, ..scene.input.clone() };
        let found = supple::skin::condensation(&scene.model, &input, &scene.state).unwrap();
        assert!((0.5 * matrix..2.0 * matrix).contains(&found.matrix_error), "{name}: {found:?}");
        assert!(found.velocity_errors[0] < velocity, "{name}: {found:?}");
        for pair in found.velocity_errors.windows(2) {
            assert!(pair[1] < 0.3 * pair[0] + 1e-9, "{name}: {found:?}");
        }
    }
}

/// A ball is pressed quickly into a tube whose bones hang on springs: they give way, the skin leaves the ball and springs back. Neither a vertex nor, where the ball is smaller than the triangles,
/// a place between them is inside the ball after any step.
#[test]
fn skin_that_springs_back_does_not_pass_into_what_it_left() {
    let scene = Scene::parse("tube:2").unwrap();
    let (model, skin) = (&scene.model, scene.model.skin().unwrap());
    let mut start = Vec::new();
    skin.positions(&scene.state, &mut start);
    // the foremost vertex near the line through the middle, and the middle of a triangle there
    let into = -DVec3::new(0.55, 0.38, 1.0).normalize();
    let middle = start.iter().sum::<DVec3>() / start.len() as f64;
    let is_near = |p: &DVec3| (*p - middle).reject_from(into).length() < 0.05;
    let foremost = |places: &mut dyn Iterator<Item = DVec3>| {
        places.filter(is_near).min_by(|a, b| a.dot(into).total_cmp(&b.dot(into))).unwrap()
    };
    let vertex = foremost(&mut start.iter().copied());
    let between =
        foremost(&mut skin.triangles.iter().map(|t| t.map(|v| start[v as usize]).iter().sum::<DVec3>() / 3.0));
    let stiffness = model.mass() * 9.81 / 0.002;
    for (at, radius, most) in [(vertex, 0.0415, 1e-4), (between, 0.015, 1e-3)] {
        let (mut state, mut work) = (scene.state.clone(), Work::new(model));
        let mut input = Input { gravity: DVec3::ZERO, ..scene.input.clone() };
        let hold = |(k, body): (usize, &BodyState)| Drag {
            body: BodyId(k as u32),
            point: DVec3::ZERO,
            target: body.position,
            target_velocity: DVec3::ZERO,
            stiffness,
            damping: 2.0 * (stiffness * model.mass()).sqrt(),
        };
        input.drags = state.bodies.iter().enumerate().map(hold).collect();
        let mut centre = at - into * radius;
        let wanted = centre + into * (0.7 * radius);
        let (mut places, mut inside) = (Vec::new(), 0.0f64);
        for _ in 0..60 {
            let way = (wanted - centre).clamp_length_max(30.0 * radius * input.dt);
            centre += way;
            input.balls = vec![Ball { centre, radius, velocity: way / input.dt }];
            step(model, &input, &mut state, &mut work).unwrap();
            skin.positions(&state, &mut places);
            let corners = |t: &[u32; 3]| t.map(|v| places[v as usize]);
            let on = |[a, b, c]: [DVec3; 3], k: u32| {
                a + (b - a) * f64::from(k % 9) / 16.0 + (c - a) * f64::from(k / 9) / 16.0
            };
            let spots = skin.triangles.iter().flat_map(|t| (0..81).map(move |k| on(corners(t), k)));
            let of_vertices = places.iter().copied();
            let looked: &mut dyn Iterator<Item = DVec3> =
                if radius < 0.03 { &mut { spots } } else { &mut { of_vertices } };
            inside = looked.map(|p| radius - p.distance(centre)).fold(inside, f64::max);
        }
        println!("radius {radius}: {inside} m inside");
        assert!(inside < most, "radius {radius}: {inside} m inside");
    }
}

/// Contacts on a patch that is pressed as a whole came to push too much and too little in turn, from step to step, and threw the deer's legs up once in a while:
/// 0.28 m/s to and fro at its chest while the bird sits on it.
#[test]
fn a_patch_that_is_pressed_does_not_go_to_and_fro() {
    let scene = Scene::parse("deer").unwrap();
    let chest = scene.model.bodies().iter().position(|body| body.name == "chest").unwrap();
    let (mut state, mut input, mut work) = (scene.state.clone(), scene.input.clone(), Work::new(&scene.model));
    let (mut before, mut last, mut most) = (DVec3::ZERO, DVec3::ZERO, 0.0f64);
    let mut touching = 0;
    for _ in 0..130 {
        scene.direct(state.time, &mut input);
        let report = step(&scene.model, &input, &mut state, &mut work).unwrap();
        let now = state.bodies[chest].velocity.linear;
        // The bird lies on the back from 1.2 s to 2.2 s.
        if state.time > 1.4 {
            most = most.max((now - last * 2.0 + before).length());
            touching = touching.max(report.flesh_touching);
        }
        (before, last) = (last, now);
    }
    assert!(touching >= 8, "{touching} vertices touch");
    assert!(most < 0.03, "{most} m/s to and fro");
}

//! Contacts: distances and normals of every pair of kinds against an independent search, complete manifolds, nothing that tunnels,
//! keys that stay, the same bits from fresh scratch.

use glam::{DQuat, DVec3};
use supple::contact::{self, detect};
use supple::*;

// ---------------------------------------------------------------------------------------------------------------- tools

struct Random(u64);

impl Random {
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
    fn range(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }
    fn vector(&mut self, size: f64) -> DVec3 {
        DVec3::new(self.range(-size, size), self.range(-size, size), self.range(-size, size))
    }
    fn rotation(&mut self) -> DQuat {
        DQuat::from_xyzw(self.range(-1.0, 1.0), self.range(-1.0, 1.0), self.range(-1.0, 1.0), self.range(-1.0, 1.0))
            .normalize()
    }
    fn pose(&mut self, size: f64) -> Pose {
        Pose::new(self.rotation(), self.vector(size))
    }
}

/// A body of this shape; link and body coordinates coincide for shapes centred on their origin.
fn body(name: &str, shape: Shape, pose: Pose) -> BodySpec {
    BodySpec::new(name).shape(shape, 1000.0).pose(pose)
}

/// One body and one obstacle.
fn against(shape: Shape, pose: Pose, obstacle: ObstacleSpec) -> Model {
    let mut builder = ModelBuilder::new();
    builder.body(body("body", shape, pose));
    builder.obstacle(obstacle);
    builder.build().unwrap()
}

/// Contacts between bodies and obstacles, and among bodies, weightless.
fn all() -> Input {
    Input { contacts: Contacts::All, gravity: DVec3::ZERO, ..Input::default() }
}

/// Looks this far ahead when nothing moves \[m\].
fn ahead(distance: f64) -> Input {
    Input { gravity: DVec3::new(0.0, -0.5 * distance, 0.0), ..all() }
}

fn found(model: &Model, input: &Input, state: &State, h: f64) -> Vec<Contact> {
    let contacts = detect(model, input, state, (h, 0.0), &mut ContactWork::new(model)).to_vec();
    check(model, input, state, h, &contacts);
    contacts
}

/// What holds of all contacts: unit normals, points that belong to the gap, keys in order and unique, sides in order.
fn check(model: &Model, input: &Input, state: &State, h: f64, contacts: &[Contact]) {
    for c in contacts {
        assert!((c.normal.length() - 1.0).abs() < 1e-9, "{c:?}");
        let a = state.bodies[c.a.index()].pose();
        let b = match c.b {
            Other::Body(id) => {
                assert!(c.a < id, "{c:?}");
                state.bodies[id.index()].pose()
            }
            Other::Obstacle(id) => contact::obstacle_motion(model, input, id, h).0,
        };
        let (p, q) = (a.transform_point(c.point_in_a), b.transform_point(c.point_in_b));
        let size = 1.0 + p.length() + q.length();
        assert!((c.normal.dot(p - q) - c.gap).abs() < 1e-12 * size, "{c:?}: {p} {q}");
        assert!(((p + q) * 0.5 - c.point).length() < 1e-12 * size, "{c:?}");
    }
    for pair in contacts.windows(2) {
        assert!(pair[0].key < pair[1].key, "{pair:?}");
    }
}

fn least(contacts: &[Contact]) -> f64 {
    contacts.iter().map(|c| c.gap).fold(f64::INFINITY, f64::min)
}

// -------------------------------------------------------------------------------------- distances of every pair of kinds

/// Farthest extent of a shape along a direction, from its definition.
fn extent(shape: &Shape, d: DVec3) -> f64 {
    match shape {
        Shape::Sphere { radius } => radius * d.length(),
        Shape::Cuboid { size } => 0.5 * (size.x * d.x.abs() + size.y * d.y.abs() + size.z * d.z.abs()),
        Shape::Capsule { length, radius } => 0.5 * length * d.x.abs() + radius * d.length(),
        Shape::Cylinder { length, radius } => 0.5 * length * d.x.abs() + radius * d.y.hypot(d.z),
        Shape::Hull { points } | Shape::Mesh { vertices: points, .. } => {
            points.iter().map(|p| p.dot(d)).fold(f64::NEG_INFINITY, f64::max)
        }
    }
}

/// How far a's least point is beyond b's farthest along n.
fn separation(a: (&Shape, Pose), b: (&Shape, Pose), n: DVec3) -> f64 {
    let low = n.dot(a.1.translation) - extent(a.0, a.1.rotation.conjugate() * -n);
    let high = n.dot(b.1.translation) + extent(b.0, b.1.rotation.conjugate() * n);
    low - high
}

/// The signed distance: the largest separation of all directions, by trying many and climbing from the best few.
fn searched(a: (&Shape, Pose), b: (&Shape, Pose)) -> f64 {
    let count = 300;
    let mut tries: Vec<(f64, DVec3)> = (0..count)
        .map(|k| {
            let y = 1.0 - 2.0 * (k as f64 + 0.5) / count as f64;
            let turn = k as f64 * 2.399963229728653;
            let r = (1.0 - y * y).sqrt();
            let n = DVec3::new(r * turn.cos(), y, r * turn.sin());
            (separation(a, b, n), n)
        })
        .collect();
    tries.sort_by(|p, q| q.0.total_cmp(&p.0));
    let mut best = f64::NEG_INFINITY;
    for &(start, n) in &tries[..4] {
        let (mut most, mut n) = (start, n);
        let mut step = 0.1;
        while step > 1e-9 {
            let (u, v) = n.any_orthonormal_pair();
            let mut better = false;
            for k in 0..8 {
                let angle = std::f64::consts::TAU * f64::from(k) / 8.0;
                let next = (n + (u * angle.cos() + v * angle.sin()) * step).normalize();
                let s = separation(a, b, next);
                if s > most {
                    (most, n, better) = (s, next, true);
                }
            }
            if !better {
                step *= 0.5;
            }
        }
        best = best.max(most);
    }
    best
}

fn hull_points() -> Vec<DVec3> {
    let mut random = Random(77);
    let points: Vec<DVec3> = (0..18).map(|_| random.vector(1.0).normalize() * DVec3::new(0.3, 0.25, 0.4)).collect();
    points
}

fn box_mesh(size: DVec3) -> (Vec<DVec3>, Vec<[u32; 3]>) {
    let vertices = (0..8)
        .map(|k| {
            size * 0.5
                * DVec3::new((k & 1) as f64 * 2.0 - 1.0, (k >> 1 & 1) as f64 * 2.0 - 1.0, (k >> 2) as f64 * 2.0 - 1.0)
        })
        .collect();
    let quads = [[0, 4, 6, 2], [1, 3, 7, 5], [0, 1, 5, 4], [2, 6, 7, 3], [0, 2, 3, 1], [4, 5, 7, 6]];
    let triangles = quads.iter().flat_map(|q| [[q[0], q[1], q[2]], [q[0], q[2], q[3]]]).collect();
    (vertices, triangles)
}

fn kinds() -> Vec<(&'static str, Shape)> {
    vec![
        ("sphere", Shape::sphere(0.3)),
        ("box", Shape::cuboid(0.5, 0.3, 0.7)),
        ("capsule", Shape::capsule(0.6, 0.15)),
        ("cylinder", Shape::cylinder(0.5, 0.25)),
        ("hull", Shape::Hull { points: hull_points() }),
    ]
}

/// The pose of the shape's own frame for a body at `state`.
fn shape_pose(model: &Model, state: &State, k: usize) -> Pose {
    state.bodies[k].pose().then(model.bodies()[k].shapes[0].body_from_shape)
}

#[test]
fn every_pair_of_kinds_has_its_distance_and_normal() {
    let mut random = Random(1);
    for (i, (name_a, a)) in kinds().iter().enumerate() {
        for (name_b, b) in kinds().iter().skip(i) {
            let curved = matches!(a, Shape::Cylinder { .. }) || matches!(b, Shape::Cylinder { .. });
            let (mut short, mut off, mut overlaps) = (f64::NEG_INFINITY, 0.0f64, 0);
            for round in 0..24 {
                let spread = if round % 3 == 0 { 0.15 } else { 0.6 };
                let mut builder = ModelBuilder::new();
                builder.body(body("a", a.clone(), random.pose(spread)));
                builder.body(body("b", b.clone(), random.pose(spread)));
                let model = builder.build().unwrap();
                let state = model.start();
                let contacts = found(&model, &ahead(10.0), &state, 1.0);
                let (pa, pb) = (shape_pose(&model, &state, 0), shape_pose(&model, &state, 1));
                // No direction separates more than the normal, and the gap is what separates along it.
                let along = separation((a, pa), (b, pb), contacts[0].normal);
                overlaps += usize::from(along < 0.0);
                short = short.max(searched((a, pa), (b, pb)) - along);
                off = off.max((least(&contacts) - along).abs());
            }
            println!(
                "{name_a}-{name_b}: normal short by {short:.1e} m, gap off by {off:.1e} m, {overlaps} of 24 overlap"
            );
            assert!(overlaps > 5, "{name_a}-{name_b}");
            // Rounding; a cylinder's rim is followed to 1e-10 of its size, and its corners stand for it within 1e-4 of its size.
            assert!(short < if curved { 1e-8 } else { 1e-12 }, "{name_a}-{name_b}: {short:.1e}");
            assert!(off < if curved { 6e-5 } else { 1e-12 }, "{name_a}-{name_b}: {off:.1e}");
        }
    }
}

#[test]
fn a_half_space_has_the_distance_of_the_lowest_point() {
    let mut random = Random(2);
    let (vertices, triangles) = box_mesh(DVec3::new(0.5, 0.3, 0.7));
    let mut shapes = kinds();
    shapes.push(("mesh", Shape::Mesh { vertices, triangles }));
    for (name, shape) in &shapes {
        for _ in 0..200 {
            let (pose, plane) = (random.pose(1.0), random.pose(1.0));
            let floor = ObstacleSpec::new("floor", ObstacleShape::HalfSpace).pose(plane);
            let model = against(shape.clone(), pose, floor);
            let state = model.start();
            let contacts = found(&model, &ahead(10.0), &state, 1.0);
            let n = plane.rotation * DVec3::Y;
            let own = shape_pose(&model, &state, 0);
            let lowest = n.dot(own.translation - plane.translation) - extent(shape, own.rotation.conjugate() * -n);
            // A cylinder's fixed rim points stand for the lowest one within 1e-4 of its size.
            let tolerance = if matches!(shape, Shape::Cylinder { .. }) { 4e-5 } else { 1e-14 };
            assert!((least(&contacts) - lowest).abs() < tolerance, "{name}: {} {lowest}", least(&contacts));
            assert!(contacts.len() <= 4 && contacts.iter().all(|c| (c.normal - n).length() < 1e-14), "{name}");
        }
    }
}

/// Meshes: apart, a convex shape is as far from a mesh of a box as from the box.
#[test]
fn a_mesh_has_the_distance_of_the_solid_it_encloses() {
    let mut random = Random(3);
    let size = DVec3::new(0.5, 0.3, 0.7);
    let (vertices, triangles) = box_mesh(size);
    let solid = Shape::Cuboid { size };
    for (name, shape) in &kinds() {
        let (mut compared, mut touching) = (0, 0);
        for _ in 0..150 {
            let (pose, place) = (random.pose(0.5), random.pose(0.1));
            let closed = Shape::Mesh { vertices: vertices.clone(), triangles: triangles.clone() };
            let open = ObstacleShape::Mesh { vertices: vertices.clone(), triangles: triangles.clone() };
            let forms = [ObstacleShape::Solid(closed.clone()), open];
            let near = |obstacle: ObstacleShape| {
                let model = against(shape.clone(), pose, ObstacleSpec::new("mesh", obstacle).pose(place));
                least(&found(&model, &ahead(10.0), &model.start(), 1.0))
            };
            let expected = near(ObstacleShape::Solid(solid.clone()));
            // As bodies, on either side.
            let bodies = |first: &Shape, at: Pose, second: &Shape, there: Pose| {
                let mut builder = ModelBuilder::new();
                builder.body(body("first", first.clone(), at));
                builder.body(body("second", second.clone(), there));
                let model = builder.build().unwrap();
                least(&found(&model, &ahead(10.0), &model.start(), 1.0))
            };
            let tolerance = if matches!(shape, Shape::Cylinder { .. }) { 6e-5 } else { 1e-10 };
            if expected > 1e-3 {
                compared += 1;
                for form in forms {
                    let gap = near(form);
                    assert!((gap - expected).abs() < tolerance, "{name}: {gap} {expected}");
                }
                let (one, two) = (bodies(shape, pose, &closed, place), bodies(&closed, place, shape, pose));
                assert!(
                    (one - expected).abs() < tolerance && (two - expected).abs() < tolerance,
                    "{name}: {one} {two}"
                );
            } else if expected < -1e-3 {
                touching += 1;
                assert!(near(forms[0].clone()) < 0.0, "{name} overlaps by {expected}");
            }
        }
        assert!(compared > 20 && touching > 10, "{name}: {compared} {touching}");
    }
}

// ------------------------------------------------------------------------------------------------------------- manifolds

/// Contacts of a body resting on an obstacle whose top is the plane y = 0.
fn resting(shape: &Shape, pose: Pose, obstacle: &ObstacleShape, place: Pose) -> Vec<Contact> {
    let model = against(shape.clone(), pose, ObstacleSpec::new("ground", obstacle.clone()).pose(place));
    found(&model, &all(), &model.start(), 1.0 / 60.0)
}

fn turned_z(angle: f64, y: f64) -> Pose {
    Pose::new(DQuat::from_rotation_z(angle), DVec3::new(0.0, y, 0.0))
}

/// Flat grounds whose top is y = 0: half-space, box, hull, height field, open mesh; the last two of many triangles.
fn grounds() -> Vec<(&'static str, ObstacleShape, Pose)> {
    let n = 12;
    let field = HeightField { columns: n, rows: n, length_x: 4.1, length_z: 3.9, heights: vec![0.0; n * n] };
    let (vertices, triangles) = field.surface();
    let slab = Pose::at(DVec3::new(0.0, -0.5, 0.0));
    let (corners, _) = box_mesh(DVec3::new(4.0, 1.0, 4.0));
    let (closed, faces) = box_mesh(DVec3::new(4.0, 1.0, 4.0));
    vec![
        ("half-space", ObstacleShape::HalfSpace, Pose::IDENTITY),
        ("box", ObstacleShape::Solid(Shape::cuboid(4.0, 1.0, 4.0)), slab),
        ("hull", ObstacleShape::Solid(Shape::Hull { points: corners }), slab),
        ("closed mesh", ObstacleShape::Solid(Shape::Mesh { vertices: closed, triangles: faces }), slab),
        ("height field", ObstacleShape::HeightField(field), Pose::IDENTITY),
        ("open mesh", ObstacleShape::Mesh { vertices, triangles }, Pose::IDENTITY),
    ]
}

/// Whether there is one contact near each of these points (in x and z), and no other.
fn at_points(contacts: &[Contact], points: &[(f64, f64)], tolerance: f64) -> bool {
    contacts.len() == points.len()
        && points.iter().all(|&(x, z)| {
            contacts.iter().filter(|c| (c.point.x - x).abs() < tolerance && (c.point.z - z).abs() < tolerance).count()
                == 1
        })
}

#[test]
fn what_rests_on_flat_ground_touches_with_all_it_has() {
    for gap in [-1e-3, -1e-6, 0.0, 1e-9, 1e-4] {
        for (ground, form, place) in grounds() {
            let say = |what: &str, contacts: &[Contact]| format!("{what} on {ground}, gap {gap}: {contacts:#?}");
            let good = |contacts: &[Contact]| {
                contacts.iter().all(|c| (c.gap - gap).abs() < 1e-12 && (c.normal - DVec3::Y).length() < 1e-12)
            };

            let c = resting(&Shape::sphere(0.2), Pose::at(DVec3::new(0.03, 0.2 + gap, 0.02)), &form, place);
            assert!(at_points(&c, &[(0.03, 0.02)], 1e-9) && good(&c), "{}", say("sphere", &c));

            let c = resting(&Shape::cuboid(0.6, 0.2, 0.4), Pose::at(DVec3::new(0.0, 0.1 + gap, 0.0)), &form, place);
            let corners = [(-0.3, -0.2), (-0.3, 0.2), (0.3, -0.2), (0.3, 0.2)];
            assert!(at_points(&c, &corners, 1e-9) && good(&c), "{}", say("box", &c));

            let (points, _) = box_mesh(DVec3::new(0.6, 0.2, 0.4));
            let c = resting(&Shape::Hull { points }, Pose::at(DVec3::new(0.0, 0.1 + gap, 0.0)), &form, place);
            assert!(at_points(&c, &corners, 1e-9) && good(&c), "{}", say("hull", &c));

            // A mesh is a surface: it is in contact where its edges are.
            let (vertices, triangles) = box_mesh(DVec3::new(0.6, 0.2, 0.4));
            let c =
                resting(&Shape::Mesh { vertices, triangles }, Pose::at(DVec3::new(0.0, 0.1 + gap, 0.0)), &form, place);
            assert!(at_points(&c, &corners, 1e-9) && good(&c), "{}", say("mesh", &c));

            let c = resting(&Shape::capsule(0.5, 0.1), Pose::at(DVec3::new(0.0, 0.1 + gap, 0.0)), &form, place);
            assert!(at_points(&c, &[(-0.25, 0.0), (0.25, 0.0)], 1e-9) && good(&c), "{}", say("capsule", &c));

            let c = resting(&Shape::cylinder(0.5, 0.1), Pose::at(DVec3::new(0.0, 0.1 + gap, 0.0)), &form, place);
            assert!(at_points(&c, &[(-0.25, 0.0), (0.25, 0.0)], 1e-9) && good(&c), "{}", say("lying cylinder", &c));

            let upright = turned_z(std::f64::consts::FRAC_PI_2, 0.25 + gap);
            let c = resting(&Shape::cylinder(0.5, 0.1), upright, &form, place);
            let quarter = [(-0.1, 0.0), (0.1, 0.0), (0.0, -0.1), (0.0, 0.1)];
            assert!(at_points(&c, &quarter, 1e-9) && good(&c), "{}", say("standing cylinder", &c));
        }
    }
}

#[test]
fn boxes_on_boxes_touch_where_their_faces_overlap() {
    let slab = ObstacleShape::Solid(Shape::cuboid(1.0, 1.0, 1.0));
    let place = Pose::at(DVec3::new(0.0, -0.5, 0.0));
    // Hanging over an edge: two corners and two crossings.
    let c = resting(&Shape::cuboid(0.6, 0.2, 0.4), Pose::at(DVec3::new(0.4, 0.1, 0.0)), &slab, place);
    assert!(at_points(&c, &[(0.1, -0.2), (0.1, 0.2), (0.5, -0.2), (0.5, 0.2)], 1e-9), "{c:#?}");
    // Turned by 45°: a square of 0.9 on one of 1: an octagon, of which four points that span most are kept.
    let pose = Pose::new(DQuat::from_rotation_y(std::f64::consts::FRAC_PI_4), DVec3::new(0.0, 0.1, 0.0));
    let c = resting(&Shape::cuboid(0.9, 0.2, 0.9), pose, &slab, place);
    assert_eq!(c.len(), 4);
    let quad: f64 = {
        let mut p: Vec<DVec3> = c.iter().map(|c| c.point).collect();
        p.sort_by(|p, q| p.z.atan2(p.x).total_cmp(&q.z.atan2(q.x)));
        (0..4).map(|k| p[k].x * p[(k + 1) % 4].z - p[(k + 1) % 4].x * p[k].z).sum::<f64>().abs() * 0.5
    };
    // The octagon has 0.736 m²; the best four of its corners span a square of 0.537.
    assert!(quad > 0.5, "{quad}");
    // Edge across edge: one point.
    let pose = Pose::new(
        DQuat::from_rotation_y(std::f64::consts::FRAC_PI_2) * DQuat::from_rotation_x(std::f64::consts::FRAC_PI_4),
        DVec3::new(0.0, 0.1 * 2f64.sqrt(), 0.0),
    );
    let edge_up = Pose::new(DQuat::from_rotation_x(std::f64::consts::FRAC_PI_4), DVec3::new(0.0, -0.5f64.sqrt(), 0.0));
    let c = resting(&Shape::cuboid(2.0, 0.2, 0.2), pose, &slab, edge_up);
    assert_eq!(c.len(), 1, "{c:#?}");
    assert!(c[0].point.length() < 1e-9 && (c[0].normal - DVec3::Y).length() < 1e-9, "{c:#?}");
    // Edge along edge: two.
    let pose =
        Pose::new(DQuat::from_rotation_x(std::f64::consts::FRAC_PI_4), DVec3::new(0.0, 0.1 * 2f64.sqrt() + 1e-4, 0.0));
    let c = resting(&Shape::cuboid(0.6, 0.2, 0.2), pose, &slab, edge_up);
    assert!(at_points(&c, &[(-0.3, 0.0), (0.3, 0.0)], 1e-9), "{c:#?}");
    // A capsule across the top of a narrow box: the ends of what they share.
    let c = resting(&Shape::capsule(2.0, 0.1), Pose::at(DVec3::new(0.0, 0.1, 0.2)), &slab, place);
    assert!(at_points(&c, &[(-0.5, 0.2), (0.5, 0.2)], 1e-8), "{c:#?}");
}

/// A box pulled and turned over a floor of many triangles sees one floor.
#[test]
fn inner_edges_of_a_flat_floor_are_not_felt() {
    for (ground, form, place) in grounds().into_iter().skip(3) {
        for (name, shape, height) in [
            ("box", Shape::cuboid(0.6, 0.2, 0.4), 0.1),
            ("sphere", Shape::sphere(0.1), 0.1),
            ("capsule", Shape::capsule(0.5, 0.1), 0.1),
            ("cylinder", Shape::cylinder(0.5, 0.1), 0.1),
            ("hull", Shape::Hull { points: box_mesh(DVec3::new(0.6, 0.2, 0.4)).0 }, 0.1),
        ] {
            let model = against(shape, Pose::at(DVec3::Y * height), ObstacleSpec::new("g", form.clone()).pose(place));
            let (mut state, mut work) = (model.start(), ContactWork::new(&model));
            let mut before: Vec<ContactKey> = Vec::new();
            let mut lost = 0;
            for k in 0..400 {
                let t = f64::from(k) * 0.01;
                let gap = 1e-3 * (3.0 * t).sin();
                state.bodies[0].position = DVec3::new(0.8 * (0.9 * t).sin(), height + gap, 0.7 * (1.3 * t).cos());
                state.bodies[0].orientation = DQuat::from_rotation_y(0.7 * t);
                state.bodies[0].velocity = Twist::new(DVec3::new(0.72, 0.0, 0.9), DVec3::Y * 0.7);
                let contacts = detect(&model, &all(), &state, (1.0 / 60.0, 0.0), &mut work);
                assert!(!contacts.is_empty() && contacts.len() <= 4, "{name} on {ground}: {contacts:#?}");
                for c in contacts {
                    assert!((c.normal - DVec3::Y).length() < 1e-6, "{name} on {ground} at {t}: {c:#?}");
                    assert!((c.gap - gap).abs() < 1e-9, "{name} on {ground} at {t}: {c:#?}");
                }
                let keys: Vec<ContactKey> = contacts.iter().map(|c| c.key).collect();
                lost += before.iter().filter(|k| !keys.contains(k)).count();
                before = keys;
            }
            // Corners keep their names from triangle to triangle; nothing else touches.
            assert_eq!(lost, 0, "{name} on {ground}");
        }
    }
}

/// A ridge is felt, a valley holds from both sides.
#[test]
fn edges_that_are_edges_are_felt() {
    let roof = |h: f64| {
        let vertices = vec![
            DVec3::new(-1.0, -h, -1.0),
            DVec3::new(-1.0, -h, 1.0),
            DVec3::new(0.0, 0.0, -1.0),
            DVec3::new(0.0, 0.0, 1.0),
            DVec3::new(1.0, -h, -1.0),
            DVec3::new(1.0, -h, 1.0),
        ];
        ObstacleShape::Mesh { vertices, triangles: vec![[0, 1, 2], [2, 1, 3], [2, 3, 4], [4, 3, 5]] }
    };
    // A ball just over the ridge, nearer the right: pushed straight away from the ridge line.
    let c = resting(&Shape::sphere(0.2), Pose::at(DVec3::new(0.02, 0.2, 0.1)), &roof(0.5), Pose::IDENTITY);
    let n = DVec3::new(0.02, 0.2, 0.0).normalize();
    assert!(c.len() == 1 && (c[0].normal - n).length() < 1e-9, "{c:#?}");
    assert!((c[0].gap - (0.02f64.hypot(0.2) - 0.2)).abs() < 1e-12);
    // A box across the ridge lies on it with one line: two points.
    let c = resting(&Shape::cuboid(0.6, 0.2, 0.4), Pose::at(DVec3::new(0.0, 0.1, 0.0)), &roof(0.5), Pose::IDENTITY);
    assert!(at_points(&c, &[(0.0, -0.2), (0.0, 0.2)], 1e-9), "{c:#?}");
    assert!(c.iter().all(|c| (c.normal - DVec3::Y).length() < 1e-9), "{c:#?}");
    // A ball in a valley touches both slopes; slopes of 45°.
    let c =
        resting(&Shape::sphere(0.2), Pose::at(DVec3::new(0.0, 0.2 * 2f64.sqrt(), 0.1)), &roof(-1.0), Pose::IDENTITY);
    assert_eq!(c.len(), 2, "{c:#?}");
    for side in [-1.0, 1.0] {
        let n = DVec3::new(side, 1.0, 0.0).normalize();
        assert!(c.iter().any(|c| (c.normal - n).length() < 1e-9 && c.gap.abs() < 1e-12), "{c:#?}");
    }
}

#[test]
fn an_open_mesh_stops_from_its_front_only() {
    let (_, form, _) = grounds().pop().unwrap();
    let below = Pose::at(DVec3::new(0.03, -0.2001, 0.02));
    assert!(resting(&Shape::sphere(0.2), below, &form, Pose::IDENTITY).is_empty());
    let sunk = Pose::at(DVec3::new(0.03, -0.05, 0.02));
    assert!(resting(&Shape::sphere(0.2), sunk, &form, Pose::IDENTITY).is_empty());
    let above = Pose::at(DVec3::new(0.03, 0.15, 0.02));
    assert_eq!(resting(&Shape::sphere(0.2), above, &form, Pose::IDENTITY).len(), 1);
}

// --------------------------------------------------------------------------------------------------------- what is fast

const DT: f64 = 1.0 / 60.0;

/// Moves a body as it flies, and stops it by its contacts: `gap + h n·v ≥ 0` at each, the velocity cut by the deepest first.
/// Ends when a contact held it; fails when it got through.
fn flies_until_held(model: &Model, velocity: Twist, through: impl Fn(DVec3) -> bool) -> bool {
    let (mut state, mut work) = (model.start(), ContactWork::new(model));
    state.bodies[0].velocity = velocity;
    for _ in 0..30 {
        let body = state.bodies[0];
        let contacts = detect(model, &all(), &state, (DT, 0.0), &mut work);
        let held = contacts.iter().any(|c| {
            let lever = body.orientation * c.point_in_a;
            c.gap + DT * c.normal.dot(body.velocity.at(lever) - c.obstacle_velocity) < 0.0
        });
        if held {
            return true;
        }
        state.bodies[0].position += velocity.linear * DT;
        state.bodies[0].orientation = (DQuat::from_scaled_axis(velocity.angular * DT) * body.orientation).normalize();
        if through(state.bodies[0].position) {
            return false;
        }
    }
    panic!("it neither arrived nor was held: {state:?}");
}

#[test]
fn nothing_tunnels_at_50_metres_a_second() {
    let mut random = Random(5);
    let n = 40;
    let field = HeightField { columns: n, rows: n, length_x: 8.0, length_z: 8.0, heights: vec![0.0; n * n] };
    let (vertices, triangles) = field.surface();
    let (plate, faces) = box_mesh(DVec3::new(8.0, 1e-3, 8.0));
    let floors = [
        ("half-space", ObstacleShape::HalfSpace),
        ("thin plate", ObstacleShape::Solid(Shape::cuboid(8.0, 1e-3, 8.0))),
        ("thin hull", ObstacleShape::Solid(Shape::Hull { points: box_mesh(DVec3::new(8.0, 0.02, 8.0)).0 })),
        ("thin mesh", ObstacleShape::Solid(Shape::Mesh { vertices: plate, triangles: faces })),
        ("height field", ObstacleShape::HeightField(field)),
        ("open mesh", ObstacleShape::Mesh { vertices, triangles }),
    ];
    let shapes = [
        ("sphere", Shape::sphere(0.05)),
        ("small sphere", Shape::sphere(1e-3)),
        ("box", Shape::cuboid(0.1, 0.2, 0.3)),
        ("thin rod", Shape::capsule(1.0, 1e-3)),
        ("thin box", Shape::cuboid(1.0, 1e-3, 1e-3)),
        ("plate", Shape::cuboid(0.5, 1e-3, 0.4)),
        ("coin", Shape::cylinder(2e-3, 0.02)),
        ("hull", Shape::Hull { points: hull_points() }),
        ("mesh", {
            let (vertices, triangles) = box_mesh(DVec3::new(0.1, 0.2, 0.3));
            Shape::Mesh { vertices, triangles }
        }),
    ];
    for (floor, form) in &floors {
        for (name, shape) in &shapes {
            for k in 0..24 {
                let spin = if k % 2 == 0 { DVec3::ZERO } else { random.vector(30.0) };
                let slant = random.vector(20.0) * DVec3::new(1.0, 0.0, 1.0);
                let velocity = Twist::new(DVec3::new(0.0, -50.0, 0.0) + slant, spin);
                let start = DVec3::new(0.0, random.range(1.0, 3.0), 0.0) - slant * 0.03;
                let pose = Pose::new(random.rotation(), start);
                let model = against(shape.clone(), pose, ObstacleSpec::new("floor", form.clone()));
                assert!(
                    flies_until_held(&model, velocity, |x| x.y < -1.0),
                    "{name} through {floor}, {velocity:?} from {pose:?}"
                );
            }
        }
    }
}

#[test]
fn bodies_do_not_pass_through_each_other() {
    let mut random = Random(6);
    for k in 0..200 {
        let mut builder = ModelBuilder::new();
        let shapes = kinds();
        let (a, b) = (&shapes[k % 5].1, &shapes[(k / 5) % 5].1);
        // Head on, 100 m/s together: 1.7 m a step, more than the size of both.
        let y = random.range(1.2, 3.0);
        builder.body(body("a", a.clone(), Pose::new(random.rotation(), DVec3::new(0.0, y, 0.0))));
        builder.body(body("b", b.clone(), Pose::new(random.rotation(), DVec3::new(0.0, -y, 0.0))));
        let model = builder.build().unwrap();
        let (mut state, mut work) = (model.start(), ContactWork::new(&model));
        state.bodies[0].velocity = Twist::new(DVec3::Y * -50.0, random.vector(20.0));
        state.bodies[1].velocity = Twist::new(DVec3::Y * 50.0, random.vector(20.0));
        let mut held = false;
        while !held && state.bodies[0].position.y > state.bodies[1].position.y - 1.0 {
            let [p, q] = [state.bodies[0], state.bodies[1]];
            held = detect(&model, &all(), &state, (DT, 0.0), &mut work).iter().any(|c| {
                let v = p.velocity.at(p.orientation * c.point_in_a) - q.velocity.at(q.orientation * c.point_in_b);
                c.gap + DT * c.normal.dot(v) < 0.0
            });
            for b in &mut state.bodies {
                b.position += b.velocity.linear * DT;
                b.orientation = (DQuat::from_scaled_axis(b.velocity.angular * DT) * b.orientation).normalize();
            }
        }
        assert!(held, "{:?} through {:?}", a, b);
    }
}

/// A ball that flies past a block is not stopped by the plane of a face it never meets.
#[test]
fn what_passes_by_is_left_alone() {
    let block = ObstacleSpec::solid("block", Shape::cuboid(1.0, 1.0, 1.0));
    // From above the left of the block to the right, 5 cm over its top edge, 0.83 m in one step.
    for (x, y) in [(-0.9, 0.66), (-0.7, 0.66), (-0.9, 0.8)] {
        let model = against(Shape::sphere(0.1), Pose::at(DVec3::new(x, y, 0.0)), block.clone());
        let mut state = model.start();
        state.bodies[0].velocity.linear = DVec3::X * 50.0;
        for c in found(&model, &all(), &state, DT) {
            let ahead = c.gap + DT * c.normal.dot(state.bodies[0].velocity.linear);
            assert!(ahead > 0.0, "from {x} {y}: {c:?}");
        }
    }
    // Straight at the side it is stopped there, by the side's normal.
    let model = against(Shape::sphere(0.1), Pose::at(DVec3::new(-0.9, 0.45, 0.0)), block.clone());
    let mut state = model.start();
    state.bodies[0].velocity.linear = DVec3::X * 50.0;
    let c = found(&model, &all(), &state, DT);
    assert!(c.len() == 1 && (c[0].normal + DVec3::X).length() < 1e-9 && (c[0].gap - 0.3).abs() < 1e-3, "{c:#?}");
}

#[test]
fn obstacles_move_as_told() {
    let plate = ObstacleSpec::solid("plate", Shape::cuboid(2.0, 0.1, 2.0)).pose(Pose::at(DVec3::Y * -5.0));
    let model = against(Shape::sphere(0.1), Pose::at(DVec3::Y * 0.5), plate);
    let state = model.start();
    let mut input = all();
    assert!(found(&model, &input, &state, DT).is_empty());
    // The plate rises at 30 m/s and turns; at the end of the step its top is at 0.45, at the start half a metre below.
    let velocity = Twist::new(DVec3::Y * 30.0, DVec3::Y * 2.0);
    let pose = Pose::new(DQuat::from_rotation_y(0.3), DVec3::Y * 0.4);
    input.obstacles = vec![Some(Target { pose, velocity })];
    let c = found(&model, &input, &state, DT);
    assert_eq!(c.len(), 1, "{c:#?}");
    // 0.4 m from the top at the end of the step, less 0.1 of radius, plus what it rises.
    assert!((c[0].gap - (0.5 - 0.1 - 0.45 + 0.5)).abs() < 1e-9, "{c:#?}");
    assert!((c[0].normal - DVec3::Y).length() < 1e-9);
    assert!((c[0].obstacle_velocity - DVec3::Y * 30.0).length() < 1e-9);
    // The point turns with the plate: it is where they will meet, up to 1/30 rad before that now.
    let mut aside = state.clone();
    aside.bodies[0].position.x = 0.5;
    let c = found(&model, &input, &aside, DT);
    assert!((c[0].obstacle_velocity - DVec3::new(0.0, 30.0, -1.0)).length() < 1.0 / 30.0, "{c:#?}");
    // In the first of two parts the plate is lower by what it rises in the second.
    let first = detect(&model, &input, &state, (DT / 2.0, DT / 2.0), &mut ContactWork::new(&model)).to_vec();
    assert!(first.is_empty(), "0.45 m away, 0.25 m in half a step: {first:#?}");
    let second = detect(&model, &input, &state, (DT / 2.0, 0.0), &mut ContactWork::new(&model)).to_vec();
    assert!((second[0].gap - 0.2).abs() < 1e-9, "{second:#?}");
}

// ----------------------------------------------------------------------------------------------------- filters and names

/// Two boxes that overlap, and a floor under both.
fn two_boxes(adjust: impl FnOnce(&mut ModelBuilder, BodyId, BodyId), specs: [fn(BodySpec) -> BodySpec; 2]) -> Model {
    let mut builder = ModelBuilder::new();
    let place = |x: f64| Pose::at(DVec3::new(x, 0.1, 0.0));
    let a = builder.body(specs[0](body("a", Shape::cuboid(0.4, 0.2, 0.2), place(-0.15))));
    let b = builder.body(specs[1](body("b", Shape::cuboid(0.4, 0.2, 0.2), place(0.15))));
    builder.obstacle(ObstacleSpec::floor("floor", 0.0));
    adjust(&mut builder, a, b);
    builder.build().unwrap()
}

#[test]
fn filters_keep_apart_what_they_should() {
    let plain: fn(BodySpec) -> BodySpec = |s| s;
    let count = |model: &Model, contacts: Contacts| {
        let c = found(model, &Input { contacts, ..all() }, &model.start(), DT);
        let bodies = c.iter().filter(|c| matches!(c.b, Other::Body(_))).count();
        (bodies > 0, c.len() - bodies)
    };
    let model = two_boxes(|_, _, _| {}, [plain, plain]);
    assert_eq!(count(&model, Contacts::Off), (false, 0));
    assert_eq!(count(&model, Contacts::Obstacles), (false, 8));
    assert_eq!(count(&model, Contacts::All), (true, 8));
    assert_eq!(Input::default().contacts, Contacts::Obstacles);

    let joined = two_boxes(|b, x, y| _ = b.joint(JointSpec::new("j", JointMask::BALL, x, y)), [plain, plain]);
    assert_eq!(count(&joined, Contacts::All), (false, 8));
    let told = two_boxes(|b, x, y| _ = b.joint(JointSpec::new("j", JointMask::BALL, x, y).collide()), [plain, plain]);
    assert_eq!(count(&told, Contacts::All), (true, 8));
    let strangers = two_boxes(|b, _, _| b.no_collision("b", "a"), [plain, plain]);
    assert_eq!(count(&strangers, Contacts::All), (false, 8));

    // One-sided consent is none.
    let second = |s: BodySpec| s.group(2);
    assert_eq!(count(&two_boxes(|_, _, _| {}, [plain, second]), Contacts::All), (true, 8));
    let only_first = |s: BodySpec| s.collides_with(1);
    assert_eq!(count(&two_boxes(|_, _, _| {}, [only_first, second]), Contacts::All), (false, 8));
    let ghost = |s: BodySpec| s.collides_with(0);
    assert_eq!(count(&two_boxes(|_, _, _| {}, [plain, ghost]), Contacts::All), (false, 4));
}

#[test]
fn materials_meet_by_their_rule() {
    let slick: fn(BodySpec) -> BodySpec = |s| s.material(Material::new(0.4, 0.1));
    let bouncy: fn(BodySpec) -> BodySpec = |s| s.material(Material::new(0.9, 0.7));
    let model = two_boxes(|_, _, _| {}, [slick, bouncy]);
    for c in found(&model, &all(), &model.start(), DT) {
        let (friction, restitution) = match (c.a, c.b) {
            (_, Other::Body(_)) => (0.36f64.sqrt(), 0.7),
            (BodyId(0), _) => ((0.4f64 * 0.6).sqrt(), 0.1),
            _ => ((0.9f64 * 0.6).sqrt(), 0.7),
        };
        assert!((c.friction - friction).abs() < 1e-15 && c.restitution == restitution, "{c:?}");
    }
}

#[test]
fn wrong_obstacles_are_told() {
    let problems = |obstacle: ObstacleSpec| {
        let mut builder = ModelBuilder::new();
        builder.body(body("ball", Shape::sphere(0.1), Pose::IDENTITY));
        builder.obstacle(obstacle);
        match builder.build() {
            Ok(_) => Vec::new(),
            Err(error) => error.problems.iter().map(|p| p.code).collect(),
        }
    };
    let field = |columns, rows, count, length_x| {
        ObstacleShape::HeightField(HeightField { columns, rows, length_x, length_z: 1.0, heights: vec![0.0; count] })
    };
    let mesh = |vertices: usize, triangles: Vec<[u32; 3]>| ObstacleShape::Mesh {
        vertices: [DVec3::ZERO, DVec3::X, DVec3::Z, DVec3::NAN][..vertices].to_vec(),
        triangles,
    };
    let obstacle = |shape| problems(ObstacleSpec::new("o", shape));
    assert!(obstacle(field(3, 2, 6, 1.0)).is_empty());
    assert!(obstacle(mesh(3, vec![[0, 2, 1]])).is_empty());
    for wrong in [
        field(3, 2, 5, 1.0),
        field(1, 2, 2, 1.0),
        field(3, 2, 6, 0.0),
        field(usize::MAX, 2, 6, 1.0),
        mesh(3, vec![[0, 2, 3]]),
        mesh(4, vec![[0, 2, 1]]),
        mesh(3, vec![]),
        ObstacleShape::Solid(Shape::sphere(-1.0)),
        ObstacleShape::Solid(Shape::Hull { points: vec![DVec3::ZERO; 5] }),
    ] {
        assert_eq!(obstacle(wrong.clone()), ["model/obstacle"], "{wrong:?}");
    }
    assert_eq!(problems(ObstacleSpec::floor("f", f64::NAN)), ["model/not-finite"]);
    assert_eq!(problems(ObstacleSpec::floor("f", 0.0).material(Material::new(-1.0, 0.0))), ["model/material"]);
    assert_eq!(problems(ObstacleSpec::floor("f", 0.0).material(Material::new(1.0, 1.5))), ["model/material"]);
    let mut builder = ModelBuilder::new();
    builder.body(body("ball", Shape::sphere(0.1), Pose::IDENTITY).material(Material::new(f64::NAN, 0.0)));
    builder.obstacle(ObstacleSpec::floor("f", 0.0));
    builder.obstacle(ObstacleSpec::floor("f", 1.0));
    builder.no_collision("ball", "bell");
    let codes: Vec<_> = builder.build().unwrap_err().problems.iter().map(|p| p.code).collect();
    assert_eq!(codes, ["model/duplicate-name", "model/material", "model/unknown-body"]);

    // Motions of obstacles are checked by the step.
    let model = against(Shape::sphere(0.1), Pose::at(DVec3::Y), ObstacleSpec::floor("f", 0.0));
    let motion = |translation| Some(Target { pose: Pose::at(translation), velocity: Twist::ZERO });
    for obstacles in [vec![motion(DVec3::NAN)], vec![None, None]] {
        let input = Input { obstacles, ..Input::default() };
        let error = step(&model, &input, &mut model.start(), &mut Work::new(&model)).unwrap_err();
        assert_eq!(error.code(), "step/input");
    }
}

#[test]
fn a_step_reports_its_contacts() {
    let model = against(Shape::cuboid(0.2, 0.2, 0.2), Pose::at(DVec3::Y * 0.1), ObstacleSpec::floor("f", 0.0));
    let (mut state, mut work) = (model.start(), Work::new(&model));
    let report = step(&model, &Input::default(), &mut state, &mut work).unwrap();
    assert_eq!((report.contacts, work.contacts().len()), (4, 4));
    let off = Input { contacts: Contacts::Off, ..Input::default() };
    assert_eq!(step(&model, &off, &mut state, &mut work).unwrap().contacts, 0);
}

// ------------------------------------------------------------------------------------------------- names that stay, bits

#[test]
fn keys_stay_while_bodies_slide_rock_and_roll() {
    let upright = DQuat::from_rotation_z(std::f64::consts::FRAC_PI_2);
    type Path = fn(f64) -> (DQuat, f64);
    let cases: [(&str, Shape, DQuat, Path, usize); 5] = [
        // By so little that no corner leaves the slack of a hundredth of its size.
        (
            "rocking box",
            Shape::cuboid(0.4, 0.2, 0.3),
            DQuat::IDENTITY,
            |t| (DQuat::from_rotation_z(1e-3 * (9.0 * t).sin()), 0.1),
            4,
        ),
        ("rolling cylinder", Shape::cylinder(0.5, 0.1), DQuat::IDENTITY, |t| (DQuat::from_rotation_x(8.0 * t), 0.1), 2),
        ("rolling ball", Shape::sphere(0.1), DQuat::IDENTITY, |t| (DQuat::from_rotation_x(8.0 * t), 0.1), 1),
        ("spinning cylinder", Shape::cylinder(0.2, 0.1), upright, |t| (DQuat::from_rotation_y(5.0 * t), 0.1), 4),
        ("rolling capsule", Shape::capsule(0.5, 0.1), DQuat::IDENTITY, |t| (DQuat::from_rotation_x(8.0 * t), 0.1), 2),
    ];
    for (ground, form, place) in grounds() {
        for (name, shape, start, path, count) in &cases {
            let model = against(shape.clone(), Pose::at(DVec3::Y), ObstacleSpec::new("g", form.clone()).pose(place));
            let (mut state, mut work) = (model.start(), ContactWork::new(&model));
            let mut keys: Option<Vec<ContactKey>> = None;
            for k in 0..300 {
                let t = f64::from(k) * DT;
                let (turn, height) = path(t);
                state.bodies[0].orientation = turn * *start;
                state.bodies[0].position = DVec3::new(0.3 * t.sin(), height, 0.5 * (0.7 * t).cos());
                let now: Vec<ContactKey> =
                    detect(&model, &all(), &state, (DT, 0.0), &mut work).iter().map(|c| c.key).collect();
                assert_eq!(now.len(), *count, "{name} on {ground} at {t}");
                assert_eq!(*keys.get_or_insert(now.clone()), now, "{name} on {ground} at {t}");
            }
        }
    }
}

/// Many bodies of all kinds over a hilly height field, some fast.
fn heap(count: usize, seed: u64) -> (Model, State) {
    let mut random = Random(seed);
    let n = 16;
    let heights = (0..n * n).map(|k| 0.2 * (k as f64 * 0.7).sin()).collect();
    let field = HeightField { columns: n, rows: n, length_x: 4.0, length_z: 4.0, heights };
    let (vertices, triangles) = box_mesh(DVec3::new(0.4, 0.3, 0.5));
    let mut shapes = kinds();
    shapes.push(("mesh", Shape::Mesh { vertices, triangles }));
    let mut builder = ModelBuilder::new();
    for k in 0..count {
        let mut pose = random.pose(1.0);
        pose.translation.y += 0.5;
        builder.body(body(&format!("body {k}"), shapes[k % shapes.len()].1.clone(), pose));
    }
    builder.obstacle(ObstacleSpec::new("hills", ObstacleShape::HeightField(field)));
    builder.obstacle(ObstacleSpec::floor("floor", -0.3));
    builder.obstacle(ObstacleSpec::solid("pillar", Shape::cylinder(2.0, 0.3)));
    let model = builder.build().unwrap();
    let mut state = model.start();
    for b in &mut state.bodies {
        b.velocity = Twist::new(random.vector(10.0), random.vector(10.0));
    }
    (model, state)
}

#[test]
fn fresh_scratch_finds_the_same_bits() {
    let (model, start) = heap(40, 9);
    let mut used = ContactWork::new(&model);
    let mut state = start.clone();
    let mut most = 0;
    for k in 0..40 {
        let contacts = detect(&model, &all(), &state, (DT, 0.0), &mut used).to_vec();
        check(&model, &all(), &state, DT, &contacts);
        let fresh = detect(&model, &all(), &state, (DT, 0.0), &mut ContactWork::new(&model)).to_vec();
        let bits = |list: &[Contact]| format!("{list:?}"); // shortest digits that give the bits back, signs of zeros too
        assert_eq!(bits(&contacts), bits(&fresh), "step {k}");
        most = most.max(contacts.len());
        for b in &mut state.bodies {
            b.position += b.velocity.linear * (0.1 * DT);
            b.orientation = (DQuat::from_scaled_axis(b.velocity.angular * DT) * b.orientation).normalize();
        }
    }
    println!("at most {most} contacts of 40 bodies");
    assert!(most > 100);
}

// --------------------------------------------------------------------------------------------------------------- hostile

#[test]
fn nothing_panics_on_degenerate_input() {
    let (vertices, mut triangles) = box_mesh(DVec3::ONE);
    let closed = Shape::Mesh { vertices: vertices.clone(), triangles: triangles.clone() };
    triangles.extend([[0, 0, 0], [0, 1, 1], [0, 1, 1], [0, 4, 6]]); // no area; twice the same
    let field = HeightField { columns: 2, rows: 2, length_x: 1.0, length_z: 1.0, heights: vec![0.0, 1.0, 1.0, 0.0] };
    let mut shapes: Vec<Shape> = kinds().into_iter().map(|k| k.1).collect();
    shapes.push(closed);
    for size in [1e-4, 1.0, 1e4] {
        shapes.extend([
            Shape::sphere(size),
            Shape::cuboid(size, size, size),
            Shape::capsule(size, 0.1 * size),
            Shape::cylinder(0.01 * size, size),
            Shape::capsule(0.0, size),
        ]);
    }
    let mut random = Random(11);
    for (i, a) in shapes.iter().enumerate() {
        for b in shapes.iter().skip(i) {
            for (k, speed) in [0.0, 1.0, 1e6, 1e150, 1e300].into_iter().enumerate() {
                let mut builder = ModelBuilder::new();
                let turn = if k % 2 == 0 { DQuat::IDENTITY } else { random.rotation() };
                builder.body(body("a", a.clone(), Pose::new(turn, DVec3::ZERO)));
                builder.body(body("b", b.clone(), Pose::IDENTITY)); // the same place
                builder.obstacle(ObstacleSpec::solid("again", b.clone()));
                builder.obstacle(ObstacleSpec::floor("floor", 0.0));
                builder.obstacle(ObstacleSpec::new("hills", ObstacleShape::HeightField(field.clone())));
                let (vertices, triangles) = (vertices.clone(), triangles.clone());
                builder.obstacle(ObstacleSpec::new("mesh", ObstacleShape::Mesh { vertices, triangles }));
                let model = builder.build().unwrap();
                let mut state = model.start();
                state.bodies[0].velocity = Twist::new(DVec3::Y * -speed, DVec3::Z * speed);
                let mut work = ContactWork::new(&model);
                let contacts = detect(&model, &all(), &state, (DT, 0.0), &mut work);
                assert!(contacts.iter().all(|c| c.point.is_finite() && c.gap.is_finite() && c.normal.is_finite()));
                // A mesh is a surface: what is wholly inside touches nothing.
                let surface = matches!(a, Shape::Mesh { .. }) || matches!(b, Shape::Mesh { .. });
                let touches = contacts.iter().any(|c| c.b == Other::Body(BodyId(1)));
                assert!(touches || surface, "{a:?} in {b:?} at {speed}");
            }
        }
    }
}

#[test]
fn small_and_large_keep_their_digits() {
    // A ball of 0.1 mm on a block of 10 km, 1,000 km from the origin.
    let far = DVec3::new(1e6, 0.0, -1e6);
    for (radius, size) in [(1e-4f64, 1e4f64), (1e-4, 1.0), (10.0, 1e4), (1e3, 1e-3)] {
        let gap = 1e-6 * radius.min(size);
        let block = ObstacleSpec::solid("block", Shape::cuboid(size, size, size));
        let block = block.pose(Pose::at(far - DVec3::Y * (0.5 * size)));
        let model = against(Shape::sphere(radius), Pose::at(far + DVec3::Y * (radius + gap)), block);
        let c = found(&model, &all(), &model.start(), DT);
        // Rounding of positions at 1e6 m and of sums as large as the shapes.
        assert!((c[0].gap - gap).abs() < 1e-15 * (size + radius) + 1e-15, "{radius} {size}: {c:?}");
        assert!((c[0].normal - DVec3::Y).length() < 1e-9, "{radius} {size}: {c:?}");
    }
}

// --------------------------------------------------------------------------------------------------------------- scaling

#[test]
fn far_bodies_make_no_pairs() {
    for count in [1_000usize, 10_000] {
        let mut builder = ModelBuilder::new();
        let side = (count as f64).cbrt().ceil() as usize;
        for k in 0..count {
            // On a grid; every tenth touches the next in its row.
            let near = if k % 10 == 0 { 0.4 } else { 0.0 };
            let at = DVec3::new((k % side) as f64 + near, (k / side % side) as f64, (k / side / side) as f64);
            builder.body(body(&format!("{k}"), Shape::sphere(0.3), Pose::at(at)));
        }
        builder.obstacle(ObstacleSpec::floor("floor", -0.3));
        let model = builder.build().unwrap();
        let (state, mut work) = (model.start(), ContactWork::new(&model));
        let mut best = f64::INFINITY;
        for _ in 0..20 {
            let start = std::time::Instant::now();
            detect(&model, &all(), &state, (DT, 0.0), &mut work);
            best = best.min(start.elapsed().as_secs_f64());
        }
        let touching = (0..count - 1).filter(|k| k % 10 == 0 && (k + 1) % side != 0).count();
        let bodies = work.contacts().iter().filter(|c| matches!(c.b, Other::Body(_))).count();
        let floor = work.contacts().len() - bodies;
        println!("{count} bodies: {} pairs, {bodies} + {floor} contacts, {:.2} ms", work.pairs(), best * 1e3);
        assert_eq!(floor, (0..count).filter(|k| (k / side).is_multiple_of(side)).count());
        assert_eq!((bodies, work.pairs()), (touching, count + touching)); // each is looked at with the floor
    }
}

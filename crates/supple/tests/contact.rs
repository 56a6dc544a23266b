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
    let count = 500;
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
    for &(start, n) in &tries[..6] {
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
            for round in 0..36 {
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
                "{name_a}-{name_b}: normal short by {short:.1e} m, gap off by {off:.1e} m, {overlaps} of 36 overlap"
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
    // The octagon has 0.7849 m²; no four of its corners span more than 0.62.
    assert!(quad > 0.5, "{quad}");
    // Edge across edge: one point.
    let pose = Pose::new(
        DQuat::from_rotation_y(std::f64::consts::FRAC_PI_2) * DQuat::from_rotation_x(std::f64::consts::FRAC_PI_4),
        DVec3::new(0.0, 0.2f64.sqrt() * 0.0 + 0.1 * 2f64.sqrt(), 0.0),
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

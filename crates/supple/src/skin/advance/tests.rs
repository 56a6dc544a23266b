use super::*;
use crate::maths::Pose;
use crate::maths::points::PointMatrix;
use crate::model::{BodySpec, JointMask, JointSpec, ModelBuilder};
use crate::scenes::Scene;
use crate::skin::SkinMass;
use crate::skin::layer::Layer;
use crate::skin::pose::PoseMap;
use crate::skin::prune::Proxies;
use crate::skin::touch::Spot;
use crate::skin::{INFLUENCES, Influence};
use glam::DQuat;
use nalgebra::{DMatrix, DVector};

struct Random(u64);
impl Random {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
    fn vector(&mut self) -> DVec3 {
        DVec3::new(self.next(), self.next(), self.next())
    }
    fn below(&mut self, n: usize) -> usize {
        ((self.next() * 0.5 + 0.5) * n as f64) as usize % n
    }
}

/// Two bones, three nodes: the model, the skin and the state of the oracle.
fn oracle() -> (Model, Skin, State) {
    let mut builder = ModelBuilder::new();
    let inertia = DMat3::from_diagonal(DVec3::new(0.004, 0.03, 0.03));
    let bone = |name: &str, x: f64| {
        BodySpec::new(name).mass(2.0).inertia(inertia, DVec3::ZERO).pose(Pose::at(DVec3::new(x, 0.0, 0.0)))
    };
    let first = builder.body(bone("first", 0.25));
    let second = builder.body(bone("second", 0.75));
    builder.joint(JointSpec::new("joint", JointMask::BALL, second, first).at(DVec3::new(0.5, 0.0, 0.0)));
    let model = builder.build().unwrap();
    let nodes = [
        (DVec3::new(0.3, 0.1, 0.0), [0.8, 0.2], 0.2, DVec3::new(0.01, 0.0, -0.02)),
        (DVec3::new(0.5, 0.1, 0.0), [0.5, 0.5], 0.3, DVec3::new(0.0, 0.02, 0.01)),
        (DVec3::new(0.6, -0.1, 0.05), [0.25, 0.75], 0.25, DVec3::new(-0.01, 0.01, 0.0)),
    ];
    let mut stiffness = PointMatrix::new(3, [(1, 0), (2, 1)]);
    let k = DMat3::from_diagonal(DVec3::new(800.0, 1000.0, 900.0));
    for (i, times) in [(0, 2.0), (1, 3.0), (2, 2.0)] {
        stiffness.add(i, i, k * times);
    }
    stiffness.add(1, 0, -k);
    stiffness.add(2, 1, -k);
    let influences = nodes.map(|(_, [a, b], _, _)| {
        let mut own = [Influence::default(); INFLUENCES];
        own[0] = Influence { body: 0, weight: a };
        own[1] = Influence { body: 1, weight: b };
        own
    });
    let rest: Vec<DVec3> = nodes.iter().map(|node| node.0).collect();
    let skin = Skin {
        triangles: vec![[0, 1, 2], [0, 2, 1]],
        colours: Vec::new(),
        layer: Layer::default(),
        influences: influences.to_vec(),
        counts: vec![2; 3],
        masses: nodes.iter().map(|node| node.2).collect(),
        soft: vec![true; 3],
        stiffness,
        damping: vec![0.0; 3],
        friction: vec![0.0; 3],
        body_from_rest: model.bodies().iter().map(|body| body.start.inverse()).collect(),
        map: PoseMap::Linear,
        centres: rest.clone(),
        bones: vec![0, 1],
        pairs: vec![(0, 0), (1, 0), (1, 1)],
        slots: vec![[0, 1, 2, 0, 0, 0, 0, 0, 0, 0]; 3],
        depth: 0.1,
        edge: 0.1,
        proxies: Proxies::default(),
        rest,
    };
    let mut state = model.start();
    state.bodies[1].position = DVec3::new(0.5, 0.25, 0.0);
    state.bodies[1].orientation = DQuat::from_rotation_z(std::f64::consts::FRAC_PI_2);
    // body ω of the oracle, turned to the world
    let v = [0.0515151515152, -0.293939393939, 0.0235294117647, 0.0, -0.00588235294118, 0.351515151515];
    let w = [0.0484848484848, -0.206060606061, -0.0235294117647, 0.0, 0.194117647059, 0.0121212121212];
    for (body, v) in state.bodies.iter_mut().zip([v, w]) {
        let angular = body.orientation * DVec3::new(v[3], v[4], v[5]);
        body.velocity = Twist::new(DVec3::new(v[0], v[1], v[2]), angular);
    }
    let rates = [DVec3::new(0.0, -0.3, 0.1), DVec3::new(0.05, 0.0, 0.0), DVec3::new(0.0, 0.1, -0.1)];
    state.nodes = nodes.iter().zip(rates).map(|(node, velocity)| NodeState { position: node.3, velocity }).collect();
    (model, skin, state)
}

/// Places, R and B of the linear blend, the condensed matrix and the answer of two contacts: O7. Its ω are in body axes: blocks of body 1, which is not
/// turned, are compared as they are.
#[test]
fn two_bones_and_three_nodes_are_those_of_the_oracle() {
    let (model, skin, state) = oracle();
    let h = 0.01;
    let mut work = SkinWork::new(&model, &skin);
    work.posed.pose(&skin, &state);
    let places = [[0.328, 0.042, -0.02], [0.44, 0.06, 0.01], [0.59, 0.045, 0.05]];
    for (x, expected) in work.posed.places.iter().zip(places) {
        assert!(x.distance(DVec3::from_array(expected)) < 1e-12, "{x}");
    }
    let turn = work.posed.turns[1];
    assert!((turn * DVec3::X).distance(DVec3::new(0.5, 0.5, 0.0)) < 1e-12, "{turn}");
    // −w [R u] of node 1 in bone 1
    let lever = work.posed.levers(1)[0];
    assert!((lever * DVec3::Y).distance(DVec3::new(0.005, 0.0, -0.125)) < 1e-12, "{lever}");
    assert!((lever * DVec3::Z).distance(DVec3::new(-0.06, 0.125, 0.0)) < 1e-12, "{lever}");

    let settings = SkinSettings { response: SkinResponse::Published, ..SkinSettings::default() };
    let input = Input { dt: h, skin: settings, gravity: DVec3::ZERO, ..Input::default() };
    work.matrix.set(&skin, h, settings.equations).unwrap();
    work.make_room(&model, &skin, &input);
    work.assemble(&model, &skin, &input, &state, Span { h, after: 0.0, halvings: 0 });
    work.skeleton.factor_base().unwrap();
    let column = |c: usize| {
        let mut x = vec![[0.0; 6]; work.skeleton.nodes()];
        x[0][c] = 1.0;
        let mut y = vec![[0.0; 6]; work.skeleton.nodes()];
        work.skeleton.base.subtract_product(&x, &mut y);
        y[0].map(|y| -y)
    };
    // Mcond_hat, rows and columns of body 1
    assert!((column(0)[0] - 2.14528394478).abs() < 1e-10, "{:?}", column(0));
    assert!((column(0)[4] - -0.000539158316396).abs() < 1e-12);
    assert!((column(0)[5] - -0.0140873560129).abs() < 1e-12);

    // Two contacts along +Y
    work.v.clear();
    work.v.extend(state.bodies.iter().map(|body| from_twist(body.velocity)));
    work.responder.clear(3);
    let SkinWork { posed, matrix, skeleton, responder, yields, v, .. } = &mut work;
    let ground = Ground { model: &model, skin: &skin, posed, state: &state, yields, h };
    let mut biases = Vec::new();
    for vertex in [0u32, 2] {
        let a = vertex as usize;
        let relative = condense::carried(&skin, posed, a, v) + posed.turns[a] * state.nodes[a].velocity;
        biases.push(relative.y);
        let key = ContactKey { shape_a: 0, shape_b: 0, place: vertex, feature: 0 };
        let (velocity, friction) = (DVec3::ZERO, 0.0);
        let touch = Touch {
            spot: Spot::vertex(vertex),
            side: Side::Fixed,
            normal: DVec3::Y,
            gap: 0.0,
            velocity,
            friction,
            key,
        };
        responder.add_touch(&ground, &touch, relative, DVec3::ZERO);
    }
    for (bias, expected) in biases.iter().zip([-0.500509803922, -0.165053921569]) {
        assert!((bias - expected).abs() < 1e-11, "{bias}");
    }
    let dv: Vec<Vector> = responder.stop(&ground, skeleton).unwrap().to_vec();
    for (row, expected) in responder.rows.iter().zip([0.270112, 0.089287]) {
        assert!((row.impulse.y - expected).abs() < 1e-6, "{}", row.impulse.y);
    }
    // the contacts stop, exactly
    let mut moved = state.nodes.clone();
    responder.move_skin(&skin, posed, |a| matrix.blocks[a], |a, dv| moved[a].velocity += dv);
    let after: Vec<Vector> = v
        .iter()
        .zip(&dv)
        .map(|(v, dv)| {
            let mut sum = *v;
            add_scaled(&mut sum, 1.0, dv);
            sum
        })
        .collect();
    for a in [0, 2] {
        let end = condense::carried(&skin, posed, a, &after) + posed.turns[a] * moved[a].velocity;
        assert!(end.y.abs() < 1e-12, "{}", end.y);
    }
}

/// A tube, bent and moving, with its equations made.
fn bent(name: &str, dt: f64) -> (Scene, State, SkinWork, Input) {
    let scene = Scene::parse(name).unwrap();
    let mut random = Random(3);
    let mut state = scene.state.clone();
    for body in &mut state.bodies {
        body.orientation = (exp(random.vector() * 0.1) * body.orientation).normalize();
        body.velocity = Twist::new(random.vector(), random.vector());
    }
    for node in &mut state.nodes {
        *node = NodeState { position: random.vector() * 0.003, velocity: random.vector() * 0.1 };
    }
    let skin = scene.model.skin().unwrap();
    let mut work = SkinWork::new(&scene.model, skin);
    let input = Input { dt, ..scene.input.clone() };
    work.posed.pose(skin, &state);
    work.matrix.set(skin, dt, input.skin.equations).unwrap();
    work.make_room(&scene.model, skin, &input);
    work.assemble(&scene.model, skin, &input, &state, Span { h: dt, after: 0.0, halvings: 0 });
    work.skeleton.factor_base().unwrap();
    (scene, state, work, input)
}

/// The whole system as one dense matrix, solved by another method, is what refinement converges to.
#[test]
fn refinement_converges_to_the_coupled_solution() {
    let (scene, _, mut work, _) = bent("tube:2,stiffness=10000", 0.005);
    let (model, skin) = (&scene.model, scene.model.skin().unwrap());
    let (bodies, n) = (model.bodies().len(), skin.nodes());
    let rows: usize = model.joints().iter().map(|joint| joint.mask.rows()).sum();
    let size = 6 * bodies + 3 * n + rows;
    let mut dense = DMatrix::<f64>::zeros(size, size);
    let mut right = DVector::<f64>::zeros(size);
    // A and J, taken from the blocks; M_bs and M_s from the surface, vertex by vertex
    for (i, j, block) in &work.core {
        for r in 0..6 {
            for c in 0..6 {
                dense[(6 * i + r, 6 * j + c)] += block.get(r, c);
                if i != j {
                    dense[(6 * j + c, 6 * i + r)] += block.get(r, c);
                }
            }
        }
    }
    for a in 0..n {
        let mut b = DMatrix::<f64>::zeros(3, 6 * bodies);
        for (i, lever) in skin.influences[a][..skin.counts[a] as usize].iter().zip(work.posed.levers(a)) {
            for r in 0..3 {
                b[(r, 6 * i.body as usize + r)] += i.weight;
                for c in 0..3 {
                    b[(r, 6 * i.body as usize + 3 + c)] += lever.col(c)[r];
                }
            }
        }
        let m = skin.masses[a];
        let turn = DMatrix::from_fn(3, 3, |r, c| work.posed.turns[a].col(c)[r]);
        let mut corner = dense.view_mut((0, 0), (6 * bodies, 6 * bodies));
        corner += b.transpose() * &b * m;
        let coupling = b.transpose() * turn * m;
        let at = 6 * bodies + 3 * a;
        dense.view_mut((0, at), (6 * bodies, 3)).copy_from(&coupling);
        dense.view_mut((at, 0), (3, 6 * bodies)).copy_from(&coupling.transpose());
        let h = 0.005;
        for r in 0..3 {
            dense[(at + r, at + r)] += m * (1.0 + h * skin.damping[a]);
            for c in 0..3 {
                dense[(at + r, at + c)] += h * h * skin.stiffness.diagonal[a].col(c)[r];
            }
            right[at + r] = work.f_s[a][r];
        }
    }
    for (&(i, j), block) in skin.stiffness.edges.iter().zip(&skin.stiffness.lower) {
        for r in 0..3 {
            for c in 0..3 {
                let (p, q) = (6 * bodies + 3 * i as usize + r, 6 * bodies + 3 * j as usize + c);
                let x = 0.005 * 0.005 * block.col(c)[r];
                dense[(p, q)] += x;
                dense[(q, p)] += x;
            }
        }
    }
    let mut at = 6 * bodies + 3 * n;
    for (j, joint) in model.joints().iter().enumerate() {
        for k in 0..joint.mask.rows() {
            // the row, out of the sparse matrix
            let mut unit = vec![[0.0; 6]; work.skeleton.nodes()];
            unit[bodies + j][k] = 1.0;
            let mut row = vec![[0.0; 6]; work.skeleton.nodes()];
            work.skeleton.base.subtract_part(&unit, &mut row, bodies);
            for (i, x) in row[..bodies].iter().flatten().enumerate() {
                dense[(at, i)] = -x;
                dense[(i, at)] = -x;
            }
            right[at] = work.f_b[bodies + j][k];
            at += 1;
        }
    }
    for i in 0..6 * bodies {
        right[i] = work.f_b[i / 6][i % 6];
    }
    let truth = dense.lu().solve(&right).unwrap();
    let equations = Equations { skin, posed: &work.posed, mass: SkinMass::Full, core: &work.core };
    let mut errors = Vec::new();
    for sweeps in [0, 1, 2, 3, 40] {
        let right = (&work.f_b[..], &work.f_s[..]);
        equations.solve(&mut work.skeleton, &mut work.matrix, right, sweeps, &mut work.solution, &mut |_| {});
        let (mut apart, mut size) = (0.0f64, 0.0f64);
        for (i, x) in work.solution.bones[..bodies].iter().flatten().enumerate() {
            apart += (x - truth[i]).powi(2);
            size += truth[i].powi(2);
        }
        for (a, x) in work.solution.skin.iter().enumerate() {
            for k in 0..3 {
                apart += (x[k] - truth[6 * bodies + 3 * a + k]).powi(2);
                size += truth[6 * bodies + 3 * a + k].powi(2);
            }
        }
        errors.push((apart / size).sqrt());
    }
    for pair in errors[..4].windows(2) {
        assert!(pair[1] < 0.45 * pair[0], "{errors:?}");
    }
    // what is left is the compliance of joints
    assert!(errors[4] < 1e-7, "{errors:?}");
}

/// Where only neighbours share vertices, nothing fills in: the cost is that of the tree.
#[test]
fn neighbours_that_share_fill_nothing_in() {
    let blocks = |name: &str| {
        let (scene, _, work, _) = bent(name, 0.01);
        (scene.model.bodies().len(), work.skeleton.blocks())
    };
    // each body but the root: its joint, its parent, and the joint's parent
    let (bodies, with_two) = blocks("tube:10,influences=2");
    assert_eq!(with_two, 3 * (bodies - 1));
    let (_, with_three) = blocks("tube:10,influences=3");
    assert!(with_three > with_two);
}

/// Contacts of random vertices with obstacles, up to three on one vertex, and with random triangles of the skin itself: they push or are open, rub within
/// the cone, and against the motion; and they settle.
#[test]
fn random_contacts_are_complementary_and_dissipate() {
    let (scene, state, mut work, input) = bent("tube:5", 0.01);
    let (model, skin) = (&scene.model, scene.model.skin().unwrap());
    let span = Span { h: 0.01, after: 0.0, halvings: 0 };
    // room for contacts between any two bones
    let pairs: Vec<(usize, usize)> = (0..5).flat_map(|i| (0..i).map(move |j| (i, j))).collect();
    work.skeleton.make_room(model, skin, &pairs, &[]);
    work.assemble(model, skin, &input, &state, span);
    work.skeleton.factor_base().unwrap();
    let mut random = Random(11);
    let (mut unsettled, mut faults, mut crowded) = (Vec::new(), Vec::new(), 0);
    for case in 0..240 {
        let count = [1, 3, 10, 40][case % 4];
        let friction = [0.0, 0.3, 0.8, 1.5][case / 4 % 4];
        let kind = case / 16 % 3; // each vertex once, up to three times, with triangles
        work.responder.clear(skin.nodes());
        let SkinWork { posed, skeleton, responder, yields, .. } = &mut work;
        let ground = Ground { model, skin, posed, state: &state, yields, h: 0.01 };
        let mut normals: Vec<DVec3> = Vec::new();
        let mut taken = vec![0; skin.nodes()];
        // a vertex goes one way, whatever obstacles are about it
        let velocities: Vec<DVec3> = (0..skin.nodes()).map(|_| random.vector()).collect();
        for _ in 0..count {
            // few vertices in one case in three, so that they are met again, by obstacles that stand still all about the outside
            let mut vertex = random.below(if kind == 1 { 1 + count / 3 } else { skin.nodes() });
            while taken[vertex] == if kind == 0 { 1 } else { 3 } {
                vertex = (vertex + 1) % skin.nodes();
            }
            taken[vertex] += 1;
            crowded += usize::from(taken[vertex] > 1);
            let mut normal = random.vector().normalize();
            if kind == 1 {
                let outward = (posed.places[vertex] - state.bodies[2].position).normalize();
                normal = (normal + outward * 1.2).normalize();
            }
            let corners = [0; 3].map(|_| random.below(skin.nodes()) as u32);
            let shares = DVec3::new(0.5, 0.3, 0.2);
            let is_own = kind == 2 && corners[0] != corners[1] && corners[1] != corners[2] && corners[0] != corners[2];
            let side = if is_own { Side::Surface(Spot { corners, shares }) } else { Side::Fixed };
            let vertex = vertex as u32;
            let key = ContactKey { shape_a: 0, shape_b: 0, place: vertex, feature: 0 };
            let touch =
                Touch { spot: Spot::vertex(vertex), side, normal, gap: 0.0, velocity: DVec3::ZERO, friction, key };
            let relative = if is_own { random.vector() } else { velocities[vertex as usize] };
            responder.add_touch(&ground, &touch, relative, DVec3::ZERO);
            normals.push(normal);
        }
        responder.solve(&ground, skeleton).unwrap();
        let rows = responder.rows.clone();
        let most = rows.iter().map(|row| row.impulse.length()).fold(0.0, f64::max);
        if !responder.settled {
            unsettled.push((case, kind, count, friction));
        }
        for (row, normal) in rows.iter().zip(&normals) {
            let c = responder.end_velocity(&ground, row);
            let (along, pushed) = (normal.dot(c), normal.dot(row.impulse));
            let rubbed = row.impulse - *normal * pushed;
            // velocities of 1 m/s; impulses are found to 1e-4
            let tolerance = 1e-3;
            let is_sound = pushed >= -1e-12 * most
                && along > -tolerance
                && along * pushed <= tolerance * most
                && rubbed.length() <= friction * pushed + tolerance * most
                && rubbed.dot(c) <= tolerance * most;
            if !is_sound {
                faults.push(format!(
                    "case {case}, {count} contacts, kind {kind}, friction {friction}: pushes by {pushed}, rubs by {}, opens at {along}, friction drives by {}",
                    rubbed.length(),
                    rubbed.dot(c)
                ));
            }
        }
    }
    println!("{} unsettled {unsettled:?}", unsettled.len());
    assert!(faults.is_empty(), "{} faults: {:#?}", faults.len(), &faults[..faults.len().min(12)]);
    assert!(unsettled.is_empty(), "{unsettled:?} did not settle");
    assert!(crowded > 300, "{crowded} contacts on vertices that had one");
}

/// A vertex between two walls that close has no answer: impulses stay bounded, finite and in balance, and others settle.
#[test]
fn a_vertex_between_closing_walls_is_borne() {
    let (scene, state, mut work, _) = bent("tube:5", 0.01);
    let (model, skin) = (&scene.model, scene.model.skin().unwrap());
    work.responder.clear(skin.nodes());
    let SkinWork { posed, skeleton, responder, yields, .. } = &mut work;
    let ground = Ground { model, skin, posed, state: &state, yields, h: 0.01 };
    for (vertex, normal, toward) in [(40, DVec3::Z, -1.0), (40, -DVec3::Z, 1.0), (90, DVec3::Y, -1.0)] {
        let key = ContactKey { shape_a: 0, shape_b: 0, place: vertex, feature: 0 };
        let (velocity, friction) = (DVec3::ZERO, 0.5);
        let touch = Touch { spot: Spot::vertex(vertex), side: Side::Fixed, normal, gap: 0.0, velocity, friction, key };
        let relative = if normal.z == 0.0 { DVec3::Y * toward } else { DVec3::Z * toward };
        responder.add_touch(&ground, &touch, relative, DVec3::ZERO);
    }
    responder.solve(&ground, skeleton).unwrap();
    let rows = responder.rows.clone();
    let alone = 1.0 / yields[40].x_axis.x; // the impulse that stops the vertex by itself at 1 m/s
    assert!(rows.iter().all(|row| row.impulse.is_finite() && row.impulse.length() < 1e3 * alone), "{rows:?}");
    assert!((rows[0].impulse + rows[1].impulse).z.abs() < 0.1 * rows[0].impulse.z, "{rows:?}");
    assert!(responder.end_velocity(&ground, &rows[2]).y > -1e-3);
}

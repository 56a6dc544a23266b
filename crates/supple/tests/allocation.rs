//! A step allocates nothing once it has run: counted by the allocator of this binary.
#![allow(unsafe_code)] // a global allocator cannot be written without; it only counts and passes on

mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use supple::control::{Goal, Keyframes, Mode, Style};
use supple::glam::{DQuat, DVec3};
use supple::model::Coordinates;
use supple::solver::Threads;
use supple::solver::reduced::Integration;
use supple::*;
use support::*;

struct Counting;

/// One counter a test, so that tests can run side by side; slot 0 is nobody's.
static COUNTS: [AtomicUsize; 64] = [const { AtomicUsize::new(0) }; 64];
static NEXT: AtomicUsize = AtomicUsize::new(1);

thread_local! {
    /// The counter of this thread.
    static SLOT: Cell<usize> = const { Cell::new(0) };
}

fn count() {
    // A thread that is ending has no slot any more: nobody's.
    let slot = SLOT.try_with(Cell::get).unwrap_or(0);
    COUNTS[slot].fetch_add(1, Ordering::Relaxed);
}

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        unsafe { System.alloc(layout) }
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        unsafe { System.alloc_zeroed(layout) }
    }
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        unsafe { System.realloc(pointer, layout, size) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A counter of one's own.
fn take_slot() -> usize {
    let slot = NEXT.fetch_add(1, Ordering::Relaxed);
    assert!(slot < COUNTS.len());
    slot
}

/// How many allocations this thread makes in `work`.
fn allocations(slot: usize, work: impl FnOnce()) -> usize {
    let before = COUNTS[slot].load(Ordering::Relaxed);
    let outside = SLOT.replace(slot);
    work();
    SLOT.set(outside);
    COUNTS[slot].load(Ordering::Relaxed) - before
}

const WARM: usize = 2;
const STEPS: usize = 120;

/// Allocations of the steps after the first two, the scene's direction included.
fn of_scene(name: &str, slot: usize, adjust: impl Fn(&mut Input)) -> usize {
    let scene = Scene::parse(name).unwrap();
    let (mut state, mut input, mut work) = (scene.state.clone(), scene.input.clone(), Work::new(&scene.model));
    input.solver = published();
    adjust(&mut input);
    let mut advance = |steps: usize| {
        for _ in 0..steps {
            scene.direct(state.time, &mut input);
            step(&scene.model, &input, &mut state, &mut work).unwrap();
        }
    };
    advance(WARM);
    allocations(slot, || advance(STEPS))
}

/// The scenes in which nothing touches and nothing is of flesh: what touches may touch more later, and then lists grow.
fn apart() -> impl Iterator<Item = &'static str> {
    let names = supple::scenes::catalogue().iter().map(|info| info.name);
    names.filter(|name| {
        let scene = Scene::parse(name).unwrap();
        !contact::wanted(&scene.model, &scene.input) && scene.model.flesh().is_none()
    })
}

/// The scenes that solver `tree` moves.
fn trees() -> impl Iterator<Item = &'static str> {
    let own = |name: &str| matches!(Scene::parse(name).unwrap().input.solver, Solver::Tree(_));
    apart().filter(move |name| own(name) && solver_takes(name, published()))
}

#[test]
fn assembly_allocates_nothing() {
    use supple::solver::assembly::{Linear, Scheme};
    let slot = take_slot();
    for name in apart() {
        for scheme in [Scheme::Displacements, Scheme::Posing, Scheme::Projected] {
            for linear in [Linear::Factored, Linear::Plain, Linear::Biconjugate] {
                let settings = Assembly { scheme, linear, ..Assembly::default() };
                if !solver_takes(name, Solver::Assembly(settings)) {
                    continue; // grips, which the baselines do not take
                }
                let adjust = |input: &mut Input| input.solver = Solver::Assembly(settings);
                assert_eq!(of_scene(name, slot, adjust), 0, "{name}, {scheme:?}, {linear:?}");
            }
        }
    }
    let baumgarte = Assembly { scheme: Scheme::Baumgarte, ..Assembly::default() };
    let adjust = |input: &mut Input| (input.solver, input.dt) = (Solver::Assembly(baumgarte), 1e-4);
    assert_eq!(of_scene("chain:5,stiffness=0", slot, adjust), 0);
}

/// Awake, and once all bodies sleep.
#[test]
fn sleep_allocates_nothing() {
    let slot = take_slot();
    let adjust = |input: &mut Input| (input.solver, input.sleep) = (Solver::default(), true);
    assert_eq!(of_scene("chain:5", slot, adjust), 0);
    let scene = Scene::parse("ragdoll").unwrap();
    let (mut state, mut work) = (scene.state.clone(), Work::new(&scene.model));
    let input = Input { sleep: true, ..scene.input.clone() };
    let mut run =
        |steps: usize| (0..steps).map(|_| step(&scene.model, &input, &mut state, &mut work).unwrap().asleep).last();
    assert_eq!(run(1200), Some(scene.model.bodies().len() as u32));
    let mut last = None;
    assert_eq!(allocations(slot, || last = run(STEPS)), 0);
    assert_eq!(last, Some(scene.model.bodies().len() as u32));
}

/// What was touched before is touched again without a new allocation.
#[test]
fn skin_allocates_nothing() {
    let slot = take_slot();
    for name in ["tube:5", "tube:2,map=linear", "snake"] {
        for skin in [SkinSettings::default(), SkinSettings::PUBLISHED] {
            let scene = Scene::parse(name).unwrap();
            let mut input = Input { skin, ..scene.input.clone() };
            let (mut state, mut work) = (scene.state.clone(), Work::new(&scene.model));
            let mut touched = 0;
            let mut run = |state: &mut State| {
                for _ in 0..STEPS {
                    scene.direct(state.time, &mut input);
                    touched = touched.max(step(&scene.model, &input, state, &mut work).unwrap().flesh_touching);
                }
            };
            run(&mut state);
            state.clone_from(&scene.state);
            assert_eq!(allocations(slot, || run(&mut state)), 0, "{name} {skin:?}");
            assert!(touched > 3, "{name}: {touched}");
        }
    }
}

#[test]
fn flesh_allocates_nothing() {
    let slot = take_slot();
    let swims = |input: &mut Input| {
        (input.solver, input.contacts, input.gravity) = (Solver::default(), Contacts::Off, DVec3::ZERO)
    };
    assert_eq!(of_scene("fish", slot, swims), 0, "implicit");
    let explicit = |input: &mut Input| {
        swims(input);
        (input.solver, input.dt) = (Solver::Reduced(Reduced::default()), 1e-3);
    };
    assert_eq!(of_scene("fish", slot, explicit), 0, "explicit");
}

#[test]
fn control_allocates_nothing() {
    let slot = take_slot();
    for (name, style) in [
        ("robot", Style::LeastAcceleration),
        ("robot", Style::LeastTorque),
        ("worm", Style::LeastVelocity),
        ("worm", Style::LeastTorque),
    ] {
        for mode in [Mode::Goals, Mode::Keyframes, Mode::Landing] {
            let count = of_scene(name, slot, |input| {
                input.solver = Solver::Reduced(Reduced::default());
                input.dt = 1e-3;
                let scene = Scene::parse(name).unwrap();
                input.control.mode = mode;
                input.control.style = style;
                input.control.pose_share = 0.5;
                let last = BodyId(scene.model.bodies().len() as u32 - 1);
                let up = DQuat::IDENTITY;
                input.control.goals =
                    vec![Goal::drag(last, DVec3::ZERO, DVec3::Y), Goal::keep_orientation(BodyId(1), up)];
                let coordinates = Coordinates::of(&scene.model, &scene.state);
                input.control.keyframes = Keyframes { share: 0.5, ..Keyframes::new() };
                (0..3).for_each(|k| input.control.keyframes.insert(f64::from(k), &coordinates));
            });
            assert_eq!(count, 0, "{name} {style:?} {mode:?}");
        }
    }
}

#[test]
fn the_counter_counts() {
    let slot = take_slot();
    assert_eq!(allocations(slot, || drop(std::hint::black_box(vec![1u8; 100]))), 1);
    assert_eq!(allocations(slot, || {}), 0);
}

#[test]
fn loops_allocate_nothing() {
    let slot = take_slot();
    for name in ["fourbars", "ring", "ladder"] {
        assert_eq!(of_scene(name, slot, |input| input.solver = Solver::default()), 0, "{name}");
    }
}

#[test]
fn a_step_allocates_nothing() {
    let slot = take_slot();
    for name in trees() {
        assert_eq!(of_scene(name, slot, |_| {}), 0, "{name}");
    }
    assert_eq!(of_scene("tree:511", slot, |_| {}), 0, "tree:511");
}

#[test]
fn a_step_in_parts_allocates_nothing() {
    let slot = take_slot();
    for name in ["chain", "hand", "robot"] {
        assert_eq!(of_scene(name, slot, |input| input.substeps = 4), 0, "{name}");
    }
}

#[test]
fn watching_allocates_nothing() {
    fn clock() -> u64 {
        7
    }
    let slot = take_slot();
    for choice in Solver::choices().iter().filter(|choice| choice.name != "tree:acceleration") {
        let scene = Scene::parse("robot").unwrap();
        let (mut state, mut input, mut work) = (scene.state.clone(), scene.input.clone(), Work::new(&scene.model));
        input.solver = choice.solver;
        work.watch(Watch { clock: Some(clock), impulses: supple::solver::Impulses::Keep });
        let mut advance = |steps: usize| {
            for _ in 0..steps {
                scene.direct(state.time, &mut input);
                step(&scene.model, &input, &mut state, &mut work).unwrap();
            }
        };
        advance(WARM);
        assert_eq!(allocations(slot, || advance(STEPS)), 0, "{}", choice.name);
    }
}

#[test]
fn keeping_impulses_allocates_nothing() {
    let slot = take_slot();
    let keep = |input: &mut Input| {
        let impulses = supple::solver::Impulses::Keep;
        input.solver = Solver::Tree(Tree { scheme: TreeScheme::Published, impulses, ..Tree::default() });
    };
    for name in ["chain", "hand", "robot"] {
        assert_eq!(of_scene(name, slot, keep), 0, "{name}");
    }
}

#[test]
fn the_default_step_allocates_nothing() {
    let slot = take_slot();
    for name in trees() {
        let adjust = |input: &mut Input| input.solver = Solver::default();
        assert_eq!(of_scene(name, slot, adjust), 0, "{name}");
    }
    let whip = |input: &mut Input| (input.solver, input.dt) = (Solver::default(), 1.0 / 30.0);
    assert_eq!(of_scene("whip:10,tip_mass=1e4", slot, whip), 0, "a whip that halves its steps");
}

#[test]
fn the_other_schemes_allocate_nothing() {
    let slot = take_slot();
    for scheme in [TreeScheme::Exact, TreeScheme::Acceleration] {
        for (name, dt) in [("chain:5,stiffness=1", 1e-3), ("robot", 1e-4)] {
            let adjust = |input: &mut Input| (input.solver, input.dt) = (with_scheme(scheme), dt);
            assert_eq!(of_scene(name, slot, adjust), 0, "{name}, {scheme:?}");
        }
    }
}

#[test]
fn the_recursion_allocates_nothing() {
    let slot = take_slot();
    for integration in [Integration::Euler, Integration::Midpoint] {
        let solver = Solver::Reduced(Reduced { integration, ..Reduced::default() });
        for name in apart().filter(|name| solver_takes(name, solver)) {
            assert_eq!(of_scene(name, slot, |input| input.solver = solver), 0, "{name}");
        }
        let whip = |input: &mut Input| (input.solver, input.dt) = (solver, 1.0 / 30.0);
        assert_eq!(of_scene("whip:10,tip_mass=1e4", slot, whip), 0, "a whip that halves its steps");
    }
}

/// Whether a solver takes a built-in scene.
fn solver_takes(name: &str, solver: Solver) -> bool {
    let scene = Scene::parse(name).unwrap();
    solver.takes(&scene.model, &scene.input).is_ok()
}

#[test]
fn impulses_allocate_nothing() {
    let slot = take_slot();
    let by = |settings: solver::Impulse| move |input: &mut Input| input.solver = Solver::Impulse(settings);
    let system = solver::Impulse::default();
    // Scenes that start broken are assembled first by whoever runs them; lattices take many parts.
    for name in trees().chain(["ring", "ladder", "fourbars"]) {
        assert_eq!(of_scene(name, slot, by(system)), 0, "{name}");
    }
    let split = solver::Impulse { variant: solver::impulse::Variant::SplitLoops, ..system };
    assert_eq!(of_scene("ladder:4", slot, by(split)), 0, "split loops");
    let joint_by_joint = solver::Impulse {
        variant: solver::impulse::Variant::JointByJoint,
        tolerance: 1e-3,
        velocity_tolerance: 1e-2,
        ..system
    };
    for name in ["tree:31", "robot"] {
        assert_eq!(of_scene(name, slot, by(joint_by_joint)), 0, "{name}, joint by joint");
    }
    // A grip that is in reach of none: it is held, halved, and gives way.
    let gripped = |input: &mut Input| {
        by(system)(input);
        let target = glam::DVec3::NEG_Y * 3.0;
        input.grips = vec![Grip { body: BodyId(9), point: glam::DVec3::ZERO, target, rotation: None }];
    };
    assert_eq!(of_scene("chain:10,stiffness=1,damping=0.1", slot, gripped), 0, "gripped");
}

#[test]
fn integrals_allocate_nothing() {
    let slot = take_slot();
    let mut builder = ModelBuilder::new();
    let body = builder.body(block("block", glam::DVec3::ZERO));
    let motor = Motor { stiffness: 10.0, damping: 1.0, max: 5.0, integral: 3.0 };
    builder.joint(JointSpec::new("hinge", JointMask::HINGE, body, BodyRef::World).motor(motor));
    let model = builder.build().unwrap();
    let (mut state, mut work, mut input) = (model.start(), Work::new(&model), input(1.0 / 60.0));
    input.joint_mut(&model, 0).servo = Some(ServoTarget::Position { position: 0.5, rate: 0.0 });
    let mut advance = |steps: usize| (0..steps).for_each(|_| _ = step(&model, &input, &mut state, &mut work).unwrap());
    advance(WARM);
    assert_eq!(allocations(slot, || advance(STEPS)), 0);
}

#[test]
fn springs_between_far_bodies_allocate_nothing() {
    let slot = take_slot();
    let mut builder = ModelBuilder::new();
    for i in 0..4 {
        let x = glam::DVec3::X * (0.2 * i as f64);
        let body = builder.body(block(&format!("block {i}"), x));
        let parent = if i == 0 { BodyRef::World } else { BodyId(i as u32 - 1).into() };
        builder.joint(JointSpec::new(format!("joint {i}"), JointMask::BALL, body, parent).at(x - glam::DVec3::X * 0.1));
    }
    builder.anchor_spring(AnchorSpringSpec {
        name: "rope".into(),
        a: "block 0".into(),
        point_in_a: glam::DVec3::ZERO,
        b: "block 3".into(),
        point_in_b: glam::DVec3::ZERO,
        stiffness: 100.0,
        damping: 1.0,
        rest_length: 0.3,
    });
    let model = builder.build().unwrap();
    for solver in [published(), Solver::Reduced(Reduced::default())] {
        let (mut state, mut work, input) = (model.start(), Work::new(&model), Input { solver, ..input(1.0 / 60.0) });
        let mut advance =
            |steps: usize| (0..steps).for_each(|_| _ = step(&model, &input, &mut state, &mut work).unwrap());
        advance(WARM);
        assert_eq!(allocations(slot, || advance(STEPS)), 0);
    }
}

#[test]
fn many_threads_allocate_nothing() {
    // The threads of this pool count for this test, and all of the step runs on them.
    let slot = take_slot();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).start_handler(move |_| SLOT.set(slot)).build().unwrap();
    let many = |input: &mut Input| {
        input.solver = Solver::Tree(Tree { scheme: TreeScheme::Published, threads: Threads::Many, ..Tree::default() });
    };
    for name in ["chain", "hand", "robot", "tree:511"] {
        let count = pool.install(|| {
            // Each thread of the pool allocates its own bookkeeping when it first takes work from another: wait until
            // both have.
            let both = std::sync::Barrier::new(2);
            rayon::join(|| both.wait(), || both.wait());
            of_scene(name, slot, many)
        });
        assert_eq!(count, 0, "{name}");
    }
}

#[test]
fn a_crowd_allocates_nothing() {
    let slot = take_slot();
    for name in ["chain", "hand", "robot"] {
        let scene = Scene::parse(name).unwrap();
        let (mut inputs, mut states) = (vec![scene.input.clone(); 6], vec![scene.state.clone(); 6]);
        inputs.iter_mut().for_each(|i| i.solver = published());
        let mut work = Work::new(&scene.model);
        let mut advance = |steps: usize| {
            for _ in 0..steps {
                for (input, state) in inputs.iter_mut().zip(&states) {
                    scene.direct(state.time, input);
                }
                step_crowd(&scene.model, &inputs, &mut states, &mut work).unwrap();
            }
        };
        advance(WARM);
        assert_eq!(allocations(slot, || advance(STEPS)), 0, "{name}");
    }
}

#[test]
fn finding_contacts_allocates_nothing() {
    let slot = take_slot();
    let mut builder = ModelBuilder::new();
    let shapes = [
        Shape::sphere(0.2),
        Shape::cuboid(0.3, 0.4, 0.5),
        Shape::capsule(0.4, 0.1),
        Shape::cylinder(0.4, 0.2),
        Shape::Hull {
            points: (0..24)
                .map(|k| glam::DVec3::new(0.2 * (k as f64).sin(), 0.2 * (2.1 * k as f64).cos(), 0.01 * k as f64))
                .collect(),
        },
    ];
    for k in 0..25usize {
        let at = glam::DVec3::new(0.35 * (k % 5) as f64, 0.1, 0.35 * (k / 5) as f64);
        let pose = Pose::new(glam::DQuat::from_rotation_x(k as f64), at);
        builder.body(BodySpec::new(format!("{k}")).shape(shapes[k % 5].clone(), 1000.0).pose(pose));
    }
    builder.obstacle(ObstacleSpec::floor("floor", -0.1));
    let heights = (0..400).map(|k| 0.05 * (k as f64).sin()).collect();
    let field = HeightField { columns: 20, rows: 20, length_x: 4.0, length_z: 4.0, heights };
    builder.obstacle(ObstacleSpec::new("hills", ObstacleShape::HeightField(field)));
    let model = builder.build().unwrap();
    let (mut state, mut work) = (model.start(), ContactWork::new(&model));
    let input = Input { contacts: Contacts::All, ..Input::default() };
    let mut look = |times: usize| {
        for k in 0..times {
            for (i, body) in state.bodies.iter_mut().enumerate() {
                // There and back, so that the second round asks for no more room than the first.
                body.position.y = 0.1 + 0.05 * ((k % 60) as f64 * 0.1 + i as f64).sin();
            }
            supple::contact::detect(&model, &input, &state, (1.0 / 60.0, 0.0), &mut work);
        }
        work.contacts().len()
    };
    assert!(look(60) > 100);
    assert_eq!(allocations(slot, || _ = look(120)), 0);
}

#[test]
fn touching_allocates_nothing() {
    let slot = take_slot();
    let mut builder = ModelBuilder::new();
    let limits = Limits { angle: Some(Range::new(-0.3, 0.3)), ..Limits::default() };
    for i in 0..3 {
        let at = glam::DVec3::new(0.3 * i as f64, 0.11, 0.0);
        let body = BodySpec::new(format!("link {i}")).shape(Shape::cuboid(0.25, 0.2, 0.2), 1000.0);
        builder.body(body.pose(Pose::at(at)));
        if i > 0 {
            let (child, parent) = (BodyId(i as u32), BodyId(i as u32 - 1));
            let joint = JointSpec::new(format!("joint {i}"), JointMask::HINGE, child, parent);
            builder.joint(joint.at(at - glam::DVec3::X * 0.15).axis(glam::DVec3::Z).limits(limits));
        }
    }
    builder.obstacle(ObstacleSpec::floor("floor", 0.0));
    let model = builder.build().unwrap();
    let by_joint = solver::Impulse { variant: solver::impulse::Variant::JointByJoint, ..solver::Impulse::default() };
    for solver in [
        Solver::Impulse(solver::Impulse::default()),
        Solver::Impulse(by_joint),
        Solver::Assembly(Assembly::default()),
        Solver::Reduced(Reduced::default()),
        published(),
        Solver::Tree(Tree { contacts: ContactLaw::Penalty(Penalty::default()), ..Tree::default() }),
    ] {
        let input = Input { solver, ..input(1.0 / 60.0) };
        let (mut state, mut work) = (model.start(), Work::new(&model));
        let mut advance =
            |steps: usize| (0..steps).for_each(|_| _ = step(&model, &input, &mut state, &mut work).unwrap());
        advance(60);
        assert_eq!(allocations(slot, || advance(STEPS)), 0, "{solver:?}");
    }
}

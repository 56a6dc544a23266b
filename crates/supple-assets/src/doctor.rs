//! A doctor for rigs: what would make a model explode or move wrongly, the worst first, with a remedy for each that can be applied.
//!
//! Faults are looked for in the parts of the model and ranked by their kind and size. Then the model is jerked about for two seconds: what that
//! showed is told, and is a fault of its own where nothing else explains it.

use crate::rig::masses::usual as usual_mass;
use crate::{Class, Kind, Note, Rig, Turn};
use glam::{DMat3, DVec3};
use std::collections::{BTreeMap, BTreeSet};
use supple::contact::{ContactWork, Other, detect};
use supple::maths::rotation::log;
use supple::model::{PlacedShape, RotationKind};
use supple::{
    AnchorSpringSpec, Body, BodyId, BodyRef, BodySpec, Contacts, Coupling, Input, Joint, JointId, JointSpec, Model,
    ModelBuilder, ModelError, ObstacleShape, ObstacleSpec, Pose, Range, Scene, Shape, State, TrackerSpec, Work, Wrench,
    step,
};

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// Lengths are not metres.
    Units,
    /// A bone is there twice.
    Duplicate,
    /// An inertia does not fit the shape and mass of its body.
    Inertia,
    /// A bone has no length and next to no inertia.
    ZeroLength,
    /// A body is far lighter or heavier than the one it hangs on.
    MassRatio,
    /// A mass that no body has: in all for its height, of one side against the other, or of the head.
    Mass,
    /// A limit excludes the pose that the rig starts in.
    Limit,
    /// Bodies that may touch overlap at the start.
    Overlap,
    /// The jerks failed and nothing else explains it.
    Unstable,
}

impl Cause {
    /// Stable code, listed in `docs/errors.md`.
    pub fn code(self) -> &'static str {
        match self {
            Cause::Units => "doctor/units",
            Cause::Duplicate => "doctor/duplicate",
            Cause::Inertia => "doctor/inertia",
            Cause::ZeroLength => "doctor/zero-length",
            Cause::MassRatio => "doctor/mass-ratio",
            Cause::Mass => "doctor/mass",
            Cause::Limit => "doctor/limit",
            Cause::Overlap => "doctor/overlap",
            Cause::Unstable => "doctor/unstable",
        }
    }
}

/// A fault with its remedy.
#[derive(Clone, Debug)]
pub struct Finding {
    /// What is wrong.
    pub cause: Cause,
    /// The body or joint it is about.
    pub part: String,
    /// What was found.
    pub what: String,
    /// What [`mend`] does about it.
    pub remedy: String,
    /// How grave: the order of the list.
    pub weight: f64,
    fix: Fix,
}

/// What is to be done.
#[derive(Clone, Debug)]
enum Fix {
    Scale(f64),
    Remove(BodyId, BodyId),
    Inertia(BodyId, DMat3),
    Mass(BodyId, f64),
    /// Masses times this: of one body, of all.
    MassTimes(Option<BodyId>, f64),
    Limit(JointId),
    Strangers(BodyId, BodyId),
    None,
}

/// What two seconds of jerks showed.
#[derive(Clone, Debug, Default)]
pub struct Trial {
    /// Simulated time that went well \[s\].
    pub seconds: f64,
    /// Largest joint gap \[m\].
    pub gap: f64,
    /// Fastest body \[m/s\].
    pub fastest: f64,
    /// Why a step failed.
    pub failure: Option<String>,
}

/// What the doctor says.
#[derive(Clone, Debug)]
pub struct Diagnosis {
    /// The gravest first.
    pub findings: Vec<Finding>,
    /// The jerks.
    pub trial: Trial,
}

/// A neighbour this many times lighter or heavier is a fault. The light bodies that importers put between two axes of a link have a
/// ten-thousandth of it, and hang on links that may be a hundred times heavier: they are none.
const LARGEST_RATIO: f64 = 1e6;
/// Sizes of figures and robots in metres.
const SIZES: Range = Range { min: 0.04, max: 25.0 };
/// An inertia that differs from that of its shape by this factor along one axis and not along another is not of that shape.
const ODD_INERTIA: f64 = 30.0;

/// Looks at a model and jerks it about.
pub fn examine(model: &Model, input: &Input) -> Diagnosis {
    examine_figure(model, input, None)
}

/// The same of a character: its masses are looked at as those of a figure.
pub fn examine_figure(model: &Model, input: &Input, rig: Option<&Rig>) -> Diagnosis {
    let mut findings = Vec::new();
    // The model may have been mended since: bodies stand for bones only while all are there.
    if let Some(rig) = rig.filter(|rig| rig.bones.len() == model.bodies().len()) {
        masses(model, rig, &mut findings);
    }
    units(model, &mut findings);
    let twins = duplicates(model, &mut findings);
    inertias(model, &mut findings);
    zero_lengths(model, &mut findings);
    mass_ratios(model, &mut findings);
    limits(model, &mut findings);
    overlaps(model, input, &twins, &mut findings);
    let trial = jerk(model, input, 2.0, 1);
    if let Some(failure) = &trial.failure
        && findings.is_empty()
    {
        let what = format!("after {:.2} s of jerks: {failure}", trial.seconds);
        findings.push(Finding {
            cause: Cause::Unstable,
            part: "model".into(),
            what,
            remedy: "take a shorter step".into(),
            weight: 1.0,
            fix: Fix::None,
        });
    }
    findings.sort_by(|a, b| b.weight.total_cmp(&a.weight));
    Diagnosis { findings, trial }
}

/// Applies the remedies of all findings.
pub fn mend(model: &Model, findings: &[Finding]) -> Result<Model, ModelError> {
    let mut parts = Parts::of(model);
    for finding in findings {
        parts.apply(&finding.fix);
    }
    parts.build()
}

/// The scene with a mended model, at its start.
pub fn mended(scene: &Scene, findings: &[Finding]) -> Result<Scene, ModelError> {
    let model = mend(&scene.model, findings)?;
    // Joints, trackers and bodies may have gone: what names them stays only where all are there.
    let sizes = |model: &Model| [model.bodies().len(), model.joints().len(), model.trackers().len()];
    let input = match sizes(&model) == sizes(&scene.model) {
        true => scene.input.clone(),
        false => Input { gravity: scene.input.gravity, contacts: scene.input.contacts, ..Input::default() },
    };
    let state = model.start();
    let name = format!("{} (mended)", scene.name.trim_end_matches(" (mended)"));
    Ok(Scene::from_parts(name, model, state, input))
}

/// Random jerks for some seconds: five times a second a body, chosen at random, gets the blow that would throw it, with all it carries, up to
/// 2 m/s, and half as much turning.
pub fn jerk(model: &Model, input: &Input, seconds: f64, seed: u64) -> Trial {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut input = input.clone();
    input.dt = 1.0 / 60.0;
    let (mut state, mut work) = (model.start(), Work::new(model));
    let mut trial = Trial::default();
    let steps = (seconds * 60.0).round() as usize;
    let given = input.wrenches.clone();
    for k in 0..steps {
        input.wrenches.clone_from(&given);
        if k % 12 == 0 {
            let b = (random.next() * model.bodies().len() as f64) as usize % model.bodies().len();
            let body = &model.bodies()[b];
            let trace = body.inertia.x_axis.x + body.inertia.y_axis.y + body.inertia.z_axis.z;
            let force = random.direction() * (body.mass * 2.0 / input.dt);
            let torque = random.direction() * (trace / 3.0 * 10.0 / input.dt);
            input.wrenches.push((BodyId(b as u32), Wrench::new(force, torque)));
        }
        match step(model, &input, &mut state, &mut work) {
            Ok(report) => trial.gap = trial.gap.max(report.max_joint_gap),
            Err(e) => {
                trial.failure = Some(e.to_string());
                return trial;
            }
        }
        trial.fastest = state.bodies.iter().map(|b| b.velocity.linear.length()).fold(trial.fastest, f64::max);
        trial.seconds = (k + 1) as f64 * input.dt;
    }
    trial
}

/// Xorshift.
struct Random(u64);

impl Random {
    /// From 0 to 1.
    fn next(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    fn direction(&mut self) -> DVec3 {
        let mut pick = || 2.0 * self.next() - 1.0;
        DVec3::new(pick(), pick(), pick()).normalize_or(DVec3::Y)
    }
}

/// Size of a shape: half the diagonal of a box around it \[m\].
fn reach(shape: &Shape) -> f64 {
    let far = |points: &[DVec3]| points.iter().map(|p| p.length()).fold(0.0, f64::max);
    match shape {
        Shape::Sphere { radius } => *radius,
        Shape::Cuboid { size } => 0.5 * size.length(),
        Shape::Capsule { length, radius } | Shape::Cylinder { length, radius } => 0.5 * length + radius,
        Shape::Hull { points } => far(points),
        Shape::Mesh { vertices, .. } => far(vertices),
    }
}

/// How far a body reaches from its centre: its shapes and joints \[m\].
fn extent(model: &Model, body: BodyId) -> f64 {
    let shapes = model.body(body).shapes.iter().map(|s| s.body_from_shape.translation.length() + reach(&s.shape));
    let joints = model.joints().iter().filter_map(|joint| {
        let own = (joint.child == body).then_some(joint.child_from_joint);
        own.or((joint.parent == Some(body)).then_some(joint.parent_from_joint)).map(|pose| pose.translation.length())
    });
    shapes.chain(joints).fold(0.0, f64::max)
}

/// The diagonal of a box around the bodies and what they reach \[m\].
fn size(model: &Model) -> f64 {
    let (mut low, mut high) = (DVec3::INFINITY, DVec3::NEG_INFINITY);
    for (b, body) in model.bodies().iter().enumerate() {
        let reach = DVec3::splat(extent(model, BodyId(b as u32)));
        (low, high) = (low.min(body.start.translation - reach), high.max(body.start.translation + reach));
    }
    (high - low).length()
}

fn units(model: &Model, out: &mut Vec<Finding>) {
    let size = size(model);
    if SIZES.excess(size) == 0.0 {
        return;
    }
    // Millimetres or centimetres taken as metres, or the other way round: what brings it nearest to the size of a person.
    let off = |scale: &f64| (size * scale / 1.7).ln().abs();
    let scale = [1e-3, 1e-2, 1e2, 1e3].into_iter().min_by(|a, b| off(a).total_cmp(&off(b))).unwrap_or(1.0);
    out.push(Finding {
        cause: Cause::Units,
        part: "model".into(),
        what: format!("it is {size:.3} m large: its lengths are not metres"),
        remedy: format!("all lengths times {scale}"),
        weight: 1000.0,
        fix: Fix::Scale(scale),
    });
}

/// A total this many times that of the height, or less than that part of it, is told.
const FAR_FROM_USUAL: f64 = 2.5;
/// Twins that differ by more than this part are told, and are made equal from here on.
const TWINS_DIFFER: f64 = 0.1;
/// A head heavier than this part of the whole is told; a usual one has the second.
const HEAD: (f64, f64) = (0.15, 0.08);

/// Masses that no body has.
fn masses(model: &Model, rig: &Rig, out: &mut Vec<Finding>) {
    let mass = |b: usize| model.bodies()[b].mass;
    let total: f64 = (0..model.bodies().len()).map(mass).sum();
    let mut tell = |part: &str, what: String, remedy: String, weight: f64, fix: Fix| {
        out.push(Finding { cause: Cause::Mass, part: part.to_owned(), what, remedy, weight, fix });
    };
    if rig.kind() == Kind::Biped && rig.height > 0.0 {
        let usual = usual_mass(rig.height);
        let ratio = total / usual;
        if !(1.0 / FAR_FROM_USUAL..=FAR_FROM_USUAL).contains(&ratio) {
            let what = format!("it weighs {total:.1} kg, and is {:.2} m high", rig.height);
            let remedy = format!("all masses times {:.3}: {usual:.1} kg", 1.0 / ratio);
            tell("model", what, remedy, 5.0, Fix::MassTimes(None, 1.0 / ratio));
        }
    }
    for (i, bone) in rig.bones.iter().enumerate() {
        if let Some(twin) = rig.twin(i)
            && mass(i) < (1.0 - TWINS_DIFFER) * mass(twin)
        {
            let other = &rig.bones[twin].name;
            let what = format!("it weighs {:.3} kg, and \"{other}\" on the other side {:.3} kg", mass(i), mass(twin));
            let remedy = format!("{:.3} kg, as the other", mass(twin));
            let fix = Fix::MassTimes(Some(BodyId(i as u32)), mass(twin) / mass(i));
            tell(&bone.name, what, remedy, 3.0, fix);
        }
    }
    let heads = || rig.bones.iter().enumerate().filter(|(_, bone)| bone.class == Class::Head);
    let head: f64 = heads().map(|(i, _)| mass(i)).sum();
    if head > HEAD.0 * total && rig.kind() != Kind::Other && head < total {
        // x / (total − head + x) = share
        let wanted = HEAD.1 * (total - head) / (1.0 - HEAD.1);
        for (i, bone) in heads() {
            let (now, then) = (mass(i), mass(i) * wanted / head);
            let what = format!("it has {:.0} % of the mass", 100.0 * now / total);
            let fix = Fix::MassTimes(Some(BodyId(i as u32)), then / now);
            tell(&bone.name, what, format!("{:.0} %", 100.0 * HEAD.1), 2.0, fix);
        }
    }
}

impl Finding {
    /// What lengths are to be multiplied by, where that is the remedy: of a character its file is read anew in that unit.
    pub fn scale(&self) -> Option<f64> {
        match self.fix {
            Fix::Scale(scale) => Some(scale),
            _ => None,
        }
    }
}

/// Bodies that are where another is, with its mass, on the same parent.
fn duplicates(model: &Model, out: &mut Vec<Finding>) -> BTreeSet<(BodyId, BodyId)> {
    let mut twins = BTreeSet::new();
    let joint_of = |b: usize| model.joints().iter().find(|joint| joint.child.index() == b);
    for b in 0..model.bodies().len() {
        for a in 0..b {
            let (one, other) = (&model.bodies()[a], &model.bodies()[b]);
            let near = (one.start.translation - other.start.translation).length()
                < 1e-6 * (1.0 + extent(model, BodyId(a as u32)));
            let turned = log(one.start.rotation * other.start.rotation.conjugate()).length() < 1e-6;
            let same_mass = (one.mass - other.mass).abs() <= 1e-6 * one.mass;
            let parents = (joint_of(a).map(|j| j.parent), joint_of(b).map(|j| j.parent));
            if near
                && turned
                && same_mass
                && parents.0 == parents.1
                && one.shapes.len() == other.shapes.len()
                && !one.shapes.is_empty()
            {
                let (a, b) = (BodyId(a as u32), BodyId(b as u32));
                twins.insert((a, b));
                out.push(Finding {
                    cause: Cause::Duplicate,
                    part: other.name.clone(),
                    what: format!("it is where body \"{}\" is, with the same mass and parent", one.name),
                    remedy: format!("remove it, and let \"{}\" carry what hangs on it", one.name),
                    weight: 500.0,
                    fix: Fix::Remove(b, a),
                });
            }
        }
    }
    twins
}

/// The inertia that the shapes of a body would have with its mass, all of one density.
fn shape_inertia(body: &Body) -> Option<DMat3> {
    let shapes: Option<Vec<_>> = body
        .shapes
        .iter()
        .map(|s| {
            crate::robot::Inertial::of_shape(&s.shape, s.shape.solid().ok()?.volume).map(|i| i.moved(s.body_from_shape))
        })
        .collect();
    let sum = shapes?.into_iter().reduce(|a, b| a.plus(&b))?;
    Some(sum.scaled(body.mass / sum.mass).inertia)
}

/// How far bodies reach from their centres, usually: the middle one of all \[m\].
fn usual_extent(model: &Model) -> f64 {
    let mut extents: Vec<f64> = (0..model.bodies().len()).map(|b| extent(model, BodyId(b as u32))).collect();
    extents.sort_by(f64::total_cmp);
    extents[extents.len() / 2]
}

/// A body that reaches less far than this share of the others is a point: its shape tells nothing of its inertia.
const POINT: f64 = 1e-4;

fn inertias(model: &Model, out: &mut Vec<Finding>) {
    let usual = usual_extent(model);
    for (b, body) in model.bodies().iter().enumerate() {
        let Some(shape) = shape_inertia(body) else { continue };
        if extent(model, BodyId(b as u32)) < POINT * usual {
            continue;
        }
        let axes = [0, 1, 2].map(|k| body.inertia.col(k)[k] / shape.col(k)[k]);
        let (least, most) =
            (axes.iter().copied().fold(f64::INFINITY, f64::min), axes.iter().copied().fold(0.0, f64::max));
        let odd = (most / least).max(most).max(1.0 / least.max(1e-300));
        if odd > ODD_INERTIA * ODD_INERTIA || (most / least) > ODD_INERTIA {
            out.push(Finding {
                cause: Cause::Inertia,
                part: body.name.clone(),
                what: format!(
                    "its moments of inertia are {:.2e}, {:.2e} and {:.2e} times those of its shape",
                    axes[0], axes[1], axes[2]
                ),
                remedy: "take the inertia of its shapes".into(),
                weight: 300.0 + odd.log10(),
                fix: Fix::Inertia(BodyId(b as u32), shape),
            });
        }
    }
}

fn zero_lengths(model: &Model, out: &mut Vec<Finding>) {
    let usual = usual_extent(model);
    for (b, body) in model.bodies().iter().enumerate() {
        let own = extent(model, BodyId(b as u32));
        let trace = body.inertia.x_axis.x + body.inertia.y_axis.y + body.inertia.z_axis.z;
        let radius = (trace / body.mass).sqrt();
        if own < POINT * usual && radius < 1e-3 * usual {
            out.push(Finding {
                cause: Cause::ZeroLength,
                part: body.name.clone(),
                what: format!("it reaches {:.1e} m from its centre, others {usual:.2} m", own),
                remedy: "give it the inertia of a ball a twentieth as large as the others".into(),
                weight: 200.0,
                fix: Fix::Inertia(BodyId(b as u32), DMat3::IDENTITY * (0.4 * body.mass * (0.05 * usual).powi(2))),
            });
        }
    }
}

fn kilograms(mass: f64) -> String {
    if (1e-3..1e5).contains(&mass) { format!("{mass:.3} kg") } else { format!("{mass:.1e} kg") }
}

fn mass_ratios(model: &Model, out: &mut Vec<Finding>) {
    for joint in model.joints() {
        let Some(parent) = joint.parent else { continue };
        let (child, above) = (model.body(joint.child), model.body(parent));
        let ratio = child.mass / above.mass;
        if (1.0 / LARGEST_RATIO..=LARGEST_RATIO).contains(&ratio) {
            continue;
        }
        // The one that is not like the others is wrong.
        let mut masses: Vec<f64> = model.bodies().iter().map(|body| body.mass).collect();
        masses.sort_by(f64::total_cmp);
        let usual = masses[masses.len() / 2];
        let odd = |mass: f64| (mass / usual).ln().abs();
        let (wrong, other) =
            if odd(child.mass) > odd(above.mass) { (joint.child, above.mass) } else { (parent, child.mass) };
        // once, though both its neighbours differ from it
        if out.iter().any(|f| matches!(f.fix, Fix::Mass(body, _) if body == wrong)) {
            continue;
        }
        out.push(Finding {
            cause: Cause::MassRatio,
            part: model.body(wrong).name.clone(),
            what: format!(
                "it has {}, and its neighbour across joint \"{}\" {}",
                kilograms(model.body(wrong).mass),
                joint.name,
                kilograms(other)
            ),
            remedy: format!("give it {}, the middle one of all masses", kilograms(usual)),
            weight: 100.0 + ratio.ln().abs(),
            fix: Fix::Mass(wrong, usual),
        });
    }
}

fn limits(model: &Model, out: &mut Vec<Finding>) {
    let state = model.start();
    for (k, joint) in model.joints().iter().enumerate() {
        let excess = excess(model, &state, k);
        if excess > 0.01 {
            out.push(Finding {
                cause: Cause::Limit,
                part: joint.name.clone(),
                what: format!("the pose it starts in is {excess:.3} (rad, m) outside its limits"),
                remedy: "widen the limits to hold the pose".into(),
                weight: 50.0 + excess.min(10.0),
                fix: Fix::Limit(JointId(k as u32)),
            });
        }
    }
}

/// How far a joint is outside its limits at the start \[rad, m\].
fn excess(model: &Model, state: &State, k: usize) -> f64 {
    let joint = &model.joints()[k];
    let limits = &joint.limits;
    let relative = state.relative_rotation(model, joint);
    let (s1, s2, _) = supple::model::joint::swing_twist(relative);
    let slide = joint.relative_translation(state.bodies[joint.child.index()].pose(), model.parent_pose(joint, state)).x;
    let angle = limits.angle.map_or(0.0, |r| r.excess(state.joints[k].angle).abs());
    let swing = limits.swing.map_or(0.0, |e| e.violation(s1, s2).0.max(0.0));
    angle.max(swing).max(limits.slide.map_or(0.0, |r| r.excess(slide).abs()))
}

fn overlaps(model: &Model, input: &Input, twins: &BTreeSet<(BodyId, BodyId)>, out: &mut Vec<Finding>) {
    let all = Input { contacts: Contacts::All, ..input.clone() };
    let mut work = ContactWork::new(model);
    let state = model.start();
    let mut deepest: std::collections::BTreeMap<(BodyId, BodyId), f64> = std::collections::BTreeMap::new();
    for contact in detect(model, &all, &state, (1e-6, 0.0), &mut work) {
        if let Other::Body(b) = contact.b {
            let depth = deepest.entry((contact.a, b)).or_insert(0.0);
            *depth = depth.min(contact.gap);
        }
    }
    for ((a, b), gap) in deepest {
        let small = extent(model, a).min(extent(model, b));
        if -gap < 0.2 * small || twins.contains(&(a, b)) {
            continue;
        }
        out.push(Finding {
            cause: Cause::Overlap,
            part: model.body(b).name.clone(),
            what: format!("it overlaps body \"{}\" by {:.4} m at the start", model.body(a).name, -gap),
            remedy: "let the two not touch each other".into(),
            weight: 10.0 + (-gap / small).min(10.0),
            fix: Fix::Strangers(a, b),
        });
    }
}

/// Applies remedies to the rig of a character, whose bones are the bodies of `model` in order: masses and limits. What a rig has no words for is told.
pub fn mend_rig(rig: &mut Rig, model: &Model, findings: &[Finding]) -> Vec<Note> {
    let mut notes = Vec::new();
    for finding in findings {
        match &finding.fix {
            Fix::Mass(body, mass) => rig.make_mass(body.index(), *mass),
            Fix::MassTimes(Some(body), factor) => {
                rig.make_mass(body.index(), rig.bones[body.index()].mass * factor);
            }
            Fix::MassTimes(None, factor) => rig.scale_mass(*factor),
            Fix::Limit(joint) => rig.bones[model.joint(*joint).child.index()].joint.hold_rest(),
            Fix::None => {}
            Fix::Scale(_) | Fix::Remove(..) | Fix::Inertia(..) | Fix::Strangers(..) => {
                let text =
                    format!("{}: a scene file has no words for that remedy; write the model as .xml", finding.what);
                notes.push(Note { code: "export/left-out", part: finding.part.clone(), text });
            }
        }
    }
    notes
}

impl Turn {
    /// Widens limits so that they hold the pose at rest.
    fn hold_rest(&mut self) {
        const BEYOND: f64 = 0.02;
        match self {
            Turn::Hinge { range, .. } => *range = Range::new(range.min.min(-BEYOND), range.max.max(BEYOND)),
            Turn::Ball { middle, swing, twist, .. } => {
                swing.about_z = swing.about_z.max(middle.abs() + BEYOND).min(std::f64::consts::PI);
                *twist = Range::new(twist.min.min(-BEYOND), twist.max.max(BEYOND));
            }
            // In frames of its own: without limits it holds every pose.
            Turn::Given(given) => (given.limits.angle, given.limits.swing) = (None, None),
        }
    }
}

/// The parts of a model as plain data, to be changed and built again.
#[derive(Clone, Debug)]
pub struct Parts {
    /// In the order of the model.
    pub bodies: Vec<Body>,
    /// In the order of the model.
    pub joints: Vec<Joint>,
    /// Further pairs that do not touch.
    pub strangers: Vec<(BodyId, BodyId)>,
    /// What springs, trackers and obstacles are taken from.
    model: Model,
    /// Lengths of those are multiplied by it.
    lengths: f64,
}

impl Parts {
    /// Of a model.
    pub fn of(model: &Model) -> Parts {
        let mut strangers = Vec::new();
        for b in 0..model.bodies().len() as u32 {
            let meet = |a: u32| model.body(BodyId(a)).groups.meet(model.body(BodyId(b)).groups);
            strangers.extend(
                (0..b).filter(|&a| meet(a) && !model.may_touch(BodyId(a), BodyId(b))).map(|a| (BodyId(a), BodyId(b))),
            );
        }
        Parts {
            bodies: model.bodies().to_vec(),
            joints: model.joints().to_vec(),
            strangers,
            model: model.clone(),
            lengths: 1.0,
        }
    }

    fn apply(&mut self, fix: &Fix) {
        match fix {
            Fix::None => {}
            Fix::Scale(s) => self.scale(*s),
            Fix::MassTimes(of, factor) => {
                let bodies = self.bodies.iter_mut().enumerate();
                for (_, body) in bodies.filter(|(b, _)| of.is_none_or(|of| of.index() == *b)) {
                    (body.mass, body.inertia) = (body.mass * factor, body.inertia * *factor);
                }
            }
            Fix::Remove(body, heir) => self.remove(*body, *heir),
            // found at the model's own size: a change of unit may have come before
            Fix::Inertia(body, inertia) => self.bodies[body.index()].inertia = *inertia * self.lengths.powi(2),
            Fix::Mass(body, mass) => {
                let body = &mut self.bodies[body.index()];
                body.inertia *= *mass / body.mass;
                body.mass = *mass;
            }
            Fix::Limit(joint) => {
                let state = self.model.start();
                let k = joint.index();
                let (relative, slide) = {
                    let j = &self.model.joints()[k];
                    let child = state.bodies[j.child.index()].pose();
                    (
                        state.relative_rotation(&self.model, j),
                        j.relative_translation(child, self.model.parent_pose(j, &state)).x,
                    )
                };
                let limits = &mut self.joints[k].limits;
                let angle = state.joints[k].angle;
                let hold =
                    |range: &mut Range, x: f64| *range = Range::new(range.min.min(x - 0.01), range.max.max(x + 0.01));
                limits.angle.as_mut().into_iter().for_each(|range| hold(range, angle));
                limits.slide.as_mut().into_iter().for_each(|range| hold(range, slide * self.lengths));
                if let Some(swing) = &mut limits.swing {
                    let (s1, s2, _) = supple::model::joint::swing_twist(relative);
                    let wide = (s1.hypot(s2) + 0.02).min(std::f64::consts::PI);
                    (swing.about_y, swing.about_z) = (swing.about_y.max(wide), swing.about_z.max(wide));
                }
            }
            Fix::Strangers(a, b) => self.strangers.push((*a, *b)),
        }
    }

    /// All lengths times `s`; masses stay.
    pub fn scale(&mut self, s: f64) {
        self.lengths *= s;
        let pose = |p: Pose| Pose::new(p.rotation, p.translation * s);
        for body in &mut self.bodies {
            body.inertia *= s * s;
            body.centre_in_link *= s;
            body.start = pose(body.start);
            for PlacedShape { shape, body_from_shape } in &mut body.shapes {
                *body_from_shape = pose(*body_from_shape);
                scale_shape(shape, s);
            }
        }
        for joint in &mut self.joints {
            joint.child_from_joint = pose(joint.child_from_joint);
            joint.parent_from_joint = pose(joint.parent_from_joint);
            joint.slide_spring.rest *= s;
            if let Some(range) = &mut joint.limits.slide {
                *range = Range::new(range.min * s, range.max * s);
            }
        }
    }

    /// Takes a body out; what hangs on it goes to another that is in the same place.
    fn remove(&mut self, body: BodyId, heir: BodyId) {
        self.joints.retain(|joint| joint.child != body);
        for joint in self.joints.iter_mut().filter(|joint| joint.parent == Some(body)) {
            joint.parent = Some(heir);
        }
        self.bodies[body.index()].name.clear(); // told by its empty name; numbers stay until the model is built
    }

    /// The model of the parts, with the springs, trackers and obstacles of the model they came from.
    pub fn build(&self) -> Result<Model, ModelError> {
        let mut builder = ModelBuilder::new();
        let kept: Vec<Option<BodyId>> = self
            .bodies
            .iter()
            .map(|body| (!body.name.is_empty()).then(|| builder.body(BodySpec::from(body))))
            .collect();
        let new = |id: BodyId| kept[id.index()];
        let mut joints = BTreeMap::new();
        for joint in &self.joints {
            let (Some(child), parent) = (new(joint.child), joint.parent.map(new)) else { continue };
            let parent = match parent {
                None => BodyRef::World,
                Some(Some(parent)) => BodyRef::Id(parent),
                Some(None) => continue,
            };
            let in_link = |pose: Pose, body: Option<BodyId>| {
                let centre = body.map_or(DVec3::ZERO, |b| self.bodies[b.index()].centre_in_link);
                Pose::new(pose.rotation, pose.translation + centre)
            };
            let frames =
                (in_link(joint.child_from_joint, Some(joint.child)), in_link(joint.parent_from_joint, joint.parent));
            let mut spec = JointSpec::new(joint.name.clone(), joint.mask, child, parent)
                .frames(frames.0, frames.1)
                .rotation_spring(joint.rotation_spring)
                .slide_spring(joint.slide_spring)
                .limits(joint.limits);
            if let Some(motor) = joint.motor {
                spec = spec.motor(motor);
            }
            let id = builder.joint(if joint.collide { spec.collide() } else { spec });
            joints.insert(joint.name.as_str(), (id, joint.mask.rotation() == RotationKind::Held));
        }
        for coupling in self.model.couplings() {
            let find = |id: JointId| joints.get(self.model.joint(id).name.as_str()).copied();
            let Some((follower, slides)) = find(coupling.follower) else { continue };
            let leader = match coupling.leader.map(find) {
                None => None,
                Some(Some(leader)) => Some(leader),
                Some(None) => continue,
            };
            // y = Σ c_k x^k, each in its own new unit
            let unit = |slides: bool| if slides { self.lengths } else { 1.0 };
            let mut scale = unit(slides);
            let polynomial = coupling.polynomial.map(|c| {
                let scaled = c * scale;
                scale /= leader.map_or(1.0, |(_, slides)| unit(slides));
                scaled
            });
            let leader = leader.map(|(id, _)| id);
            builder.coupling(Coupling { name: coupling.name.clone(), follower, leader, polynomial });
        }
        for &(a, b) in &self.strangers {
            if let (Some(a), Some(b)) = (new(a), new(b)) {
                builder.no_collision(a, b);
            }
        }
        self.add_others(&mut builder, new);
        builder.build()
    }

    /// Springs, trackers and obstacles, scaled; those of bodies that are gone go with them.
    fn add_others(&self, builder: &mut ModelBuilder, new: impl Fn(BodyId) -> Option<BodyId>) {
        let s = self.lengths;
        let in_link = |point: DVec3, body: BodyId| point * s + self.bodies[body.index()].centre_in_link;
        for spring in self.model.anchor_springs() {
            let Some(a) = new(spring.a) else { continue };
            let (b, point_in_b) = match spring.b {
                None => (BodyRef::World, spring.point_in_b * s),
                Some(b) => match new(b) {
                    Some(id) => (BodyRef::Id(id), in_link(spring.point_in_b, b)),
                    None => continue,
                },
            };
            builder.anchor_spring(AnchorSpringSpec {
                name: spring.name.clone(),
                a: BodyRef::Id(a),
                point_in_a: in_link(spring.point_in_a, spring.a),
                b,
                point_in_b,
                stiffness: spring.stiffness,
                damping: spring.damping,
                rest_length: spring.rest_length * s,
            });
        }
        for tracker in self.model.trackers() {
            let Some(body) = new(tracker.body) else { continue };
            builder.tracker(TrackerSpec {
                name: tracker.name.clone(),
                body: BodyRef::Id(body),
                point: in_link(tracker.point, tracker.body),
                stiffness: tracker.stiffness,
                damping: tracker.damping,
                rotation_stiffness: tracker.rotation_stiffness * s * s,
                rotation_damping: tracker.rotation_damping * s * s,
            });
        }
        for obstacle in self.model.obstacles() {
            let mut shape = obstacle.shape.clone();
            match &mut shape {
                ObstacleShape::HalfSpace => {}
                ObstacleShape::Solid(solid) => scale_shape(solid, s),
                ObstacleShape::Mesh { vertices, .. } => vertices.iter_mut().for_each(|p| *p *= s),
                ObstacleShape::HeightField(field) => {
                    (field.length_x, field.length_z) = (field.length_x * s, field.length_z * s);
                    field.heights.iter_mut().for_each(|y| *y *= s);
                }
            }
            let pose = Pose::new(obstacle.pose.rotation, obstacle.pose.translation * s);
            builder.obstacle(
                ObstacleSpec::new(obstacle.name.clone(), shape)
                    .pose(pose)
                    .material(obstacle.material)
                    .group(obstacle.groups.member)
                    .collides_with(obstacle.groups.collides_with),
            );
        }
    }
}

fn scale_shape(shape: &mut Shape, s: f64) {
    match shape {
        Shape::Sphere { radius } => *radius *= s,
        Shape::Cuboid { size } => *size *= s,
        Shape::Capsule { length, radius } | Shape::Cylinder { length, radius } => {
            (*length, *radius) = (*length * s, *radius * s)
        }
        Shape::Hull { points } => points.iter_mut().for_each(|p| *p *= s),
        Shape::Mesh { vertices, .. } => vertices.iter_mut().for_each(|p| *p *= s),
    }
}

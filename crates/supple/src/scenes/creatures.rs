//! A worm, a fish and a finger with flesh [Kim 2008, fig. 6, table 2].

use super::{Parameters, Scene, SceneError, Script, damping, entries, takes};
use crate::creature::{Creature, Limb};
use crate::flesh::{Cage, FleshMaterial, FleshSpec, Hold, Lattice, Split, SurfaceMesh};
use crate::input::{Contacts, Input, JointInput};
use crate::maths::Pose;
use crate::model::{
    BodyRef, BodySpec, JointMask, JointSpec, Limits, ModelBuilder, ModelError, Motor, ObstacleSpec, Problem, Range,
    ServoTarget, Shape,
};
use glam::{DQuat, DVec3};
use std::f64::consts::TAU;

/// What a creature is grown from.
struct Recipe {
    creature: Creature,
    /// Of the surface's vertices along X, Y and Z \[m\].
    spacing: DVec3,
    lattice: Lattice,
    /// Nodes nearer than this to a limb's segment are fixed to its body \[m\].
    reach: fn(&Limb) -> f64,
    /// How far a joint bends either way before it stops softly \[rad\].
    bend: Option<f64>,
}

/// A bone of a chain along X.
struct Bone {
    name: String,
    from: DVec3,
    to: DVec3,
}

impl Bone {
    fn length(&self) -> f64 {
        self.from.distance(self.to)
    }
}

const THICKNESS: f64 = 0.15; // of a bone in parts of its length
const STOP: f64 = 4.0; // stiffness at the end of a joint's range, in parts of its motor's

impl Recipe {
    /// Surface and cage, `fine` times as fine along each axis.
    fn grow(&self, fine: f64) -> Result<(SurfaceMesh, Cage), SceneError> {
        let lattice = Lattice { cell: self.lattice.cell / fine, ..self.lattice };
        let grown = self.creature.grow(self.spacing / fine.sqrt()).and_then(|skin| {
            let cage = lattice.around(&skin.surface)?;
            Ok((skin.surface, cage))
        });
        grown.map_err(|what| {
            let remedy = "give other parameters".into();
            SceneError::Model(ModelError {
                problems: vec![Problem { code: "model/flesh", part: "flesh".into(), what, remedy }],
            })
        })
    }
}

/// Puts bones and flesh into a builder. `ratio` is the mass of all flesh to that of all bones.
fn build(
    builder: &mut ModelBuilder,
    recipe: &Recipe,
    bones: &[Bone],
    root: impl Fn(JointSpec) -> JointSpec,
    parameters: &Parameters<'_>,
) -> Result<(), SceneError> {
    let material = FleshMaterial { young: parameters.positive("stiffness")?, ..FleshMaterial::default() };
    let ratio = parameters.positive("ratio")?;
    let (surface, cage) = recipe.grow(parameters.positive("fine")?)?;
    let flesh_mass = material.density * surface.volume();
    let length: f64 = bones.iter().map(Bone::length).sum();
    let mut last = None;
    for bone in bones {
        let l = bone.length();
        let mass = flesh_mass / ratio * l / length;
        let shape = Shape::capsule(l * (1.0 - 2.0 * THICKNESS), THICKNESS * l);
        let turn = DQuat::from_rotation_arc(DVec3::X, (bone.to - bone.from) / l);
        let pose = Pose::new(turn, 0.5 * (bone.from + bone.to));
        // it lies within flesh, which touches things for it
        let body = builder.body(BodySpec::new(&bone.name).shape(shape, 1000.0).mass(mass).pose(pose).collides_with(0));
        match last {
            None => {
                builder.joint(root(JointSpec::new("root", JointMask::PLANAR, body, BodyRef::World)));
            }
            Some(last) => {
                // a motor that would turn the flesh of two bones four times a second
                let inertia = (flesh_mass + flesh_mass / ratio) / bones.len() as f64 * l * l;
                let stiffness = inertia * (4.0 * TAU).powi(2);
                let motor =
                    Motor { stiffness, damping: damping(1.0, stiffness, inertia), max: f64::INFINITY, integral: 0.0 };
                let joint = JointSpec::new(format!("{}_joint", bone.name), JointMask::HINGE, body, last);
                let limits = Limits {
                    angle: recipe.bend.map(|bend| Range::new(-bend, bend)),
                    stiffness: STOP * stiffness,
                    damping: damping(1.0, STOP * stiffness, inertia),
                    ..Limits::default()
                };
                builder.joint(joint.axis(DVec3::Z).at(bone.from).motor(motor).limits(limits));
            }
        }
        last = Some(body);
    }
    let holds = recipe.creature.limbs.iter().map(|limb| Hold {
        body: limb.body.as_str().into(),
        from: limb.from,
        to: limb.to,
        reach: (recipe.reach)(limb),
    });
    builder.flesh(FleshSpec { cage, surface: Some(surface), material, holds: holds.collect() });
    Ok(())
}

/// The plane normal to Z, through the origin.
fn upright() -> Pose {
    Pose::new(DQuat::from_rotation_arc(DVec3::X, DVec3::Z), DVec3::ZERO)
}

const GROUND: f64 = 0.0; // m

fn ground() -> ObstacleSpec {
    ObstacleSpec::floor("ground", GROUND)
}

const WORM_BONES: usize = 7;
const WORM_LENGTH: f64 = 1.4; // m, from end to end
const WORM_RADIUS: f64 = 0.08; // m
const WORM_CELL: f64 = 0.107; // m

/// A worm on the ground that sends waves along its body.
pub(super) fn worm(parameters: &Parameters<'_>) -> Result<Scene, SceneError> {
    let height = DVec3::Y * WORM_RADIUS;
    let half = 0.5 * WORM_LENGTH - WORM_RADIUS;
    let at = |k: usize| height + DVec3::X * (2.0 * half * k as f64 / WORM_BONES as f64 - half);
    let bones: Vec<Bone> =
        (0..WORM_BONES).map(|k| Bone { name: format!("segment_{k}"), from: at(k), to: at(k + 1) }).collect();
    let skin = [0.64, 0.27, 0.22];
    let saddle = [0.78, 0.46, 0.36];
    let limbs = bones.iter().enumerate().map(|(k, bone)| {
        // a little thinner towards the tail
        let radius = |k: usize| WORM_RADIUS * if k > 4 { 1.0 - 0.02 * (k - 4) as f64 } else { 1.0 };
        let colour = if k == 2 { saddle } else { skin };
        Limb::new(&bone.name, bone.from, bone.to, radius(k), radius(k + 1)).colour(colour)
    });
    let recipe = Recipe {
        creature: Creature { limbs: limbs.collect(), blend: 0.004 },
        spacing: DVec3::new(0.072, 0.0585, 0.0585),
        lattice: Lattice {
            cell: DVec3::splat(WORM_CELL),
            origin: height + DVec3::new(0.4, 0.5, 0.5) * WORM_CELL,
            split: Split::Six,
        },
        reach: |_| 0.72 * WORM_CELL,
        bend: Some(1.6),
    };
    let mut builder = ModelBuilder::new();
    build(&mut builder, &recipe, &bones, |joint| joint.frame(upright()), parameters)?;
    builder.obstacle(ground());
    let model = builder.build()?;
    let wave = Wave { first: 1, joints: WORM_BONES - 1, size: 0.45, hertz: 0.8, lag: 1.1 };
    takes::apply("worm", takes::WORM, parameters, Scene::new(model, Script::Wave(wave)))
}

const BACK: [f32; 3] = [0.10, 0.24, 0.32];
const FIN: [f32; 3] = [0.55, 0.22, 0.08];
const FISH_BONES: usize = 7;
const FISH_CELL: DVec3 = DVec3::new(0.14, 0.145, 0.075); // m
const FISH_REACH: f64 = 0.082; // m

/// A fish on a dock that beats its tail.
pub(super) fn fish(parameters: &Parameters<'_>) -> Result<Scene, SceneError> {
    let height = DVec3::Y * 0.16;
    // places along the body \[m\], half its height there \[m\]
    let along = [-0.36, -0.27, -0.16, -0.05, 0.06, 0.16, 0.25, 0.31];
    let tall = [0.045, 0.085, 0.115, 0.115, 0.09, 0.055, 0.035, 0.03];
    let at = |k: usize| height + DVec3::X * along[k];
    let bones: Vec<Bone> =
        (0..FISH_BONES).map(|k| Bone { name: format!("spine_{k}"), from: at(k), to: at(k + 1) }).collect();
    let mut limbs = Vec::new();
    for (k, bone) in bones.iter().enumerate().take(FISH_BONES - 1) {
        limbs.push(Limb::new(&bone.name, bone.from, bone.to, tall[k], tall[k + 1]).flat(DVec3::Z, 0.52).colour(BACK));
        if (1..5).contains(&k) {
            // a pale belly
            let low = |k: usize| at(k) - DVec3::Y * (0.36 * tall[k]);
            let limb = Limb::new(&bone.name, low(k), low(k + 1), 0.66 * tall[k], 0.66 * tall[k + 1]);
            limbs.push(limb.flat(DVec3::Z, 0.6).colour([0.62, 0.66, 0.62]));
        }
    }
    // Fins, by pieces: body, ends from the middle of the fish, half heights \[m\]. A forked tail, one on the back, one below.
    let mut fin = |body: &str, from: (f64, f64), to: (f64, f64), radii: (f64, f64)| {
        let [from, to] = [from, to].map(|(x, y)| height + DVec3::new(x, y, 0.0));
        limbs.push(Limb::new(body, from, to, radii.0, radii.1).flat(DVec3::Z, 0.42).colour(FIN));
    };
    fin("spine_6", (0.25, 0.0), (0.31, 0.0), (0.034, 0.036));
    for up in [1.0, -1.0] {
        fin("spine_6", (0.30, 0.012 * up), (0.355, 0.068 * up), (0.036, 0.042));
        fin("spine_6", (0.355, 0.068 * up), (0.41, 0.125 * up), (0.042, 0.026));
    }
    fin("spine_2", (-0.10, 0.09), (-0.05, 0.135), (0.045, 0.036));
    fin("spine_3", (-0.05, 0.135), (0.06, 0.08), (0.036, 0.032));
    fin("spine_4", (0.03, -0.07), (0.085, -0.105), (0.036, 0.028));
    for side in [1.0, -1.0] {
        let eye = |z: f64| height + DVec3::new(-0.31, 0.02, z * side);
        limbs.push(Limb::new("spine_0", eye(0.032), eye(0.038), 0.017, 0.017).colour([0.01, 0.01, 0.012]));
    }
    let recipe = Recipe {
        creature: Creature { limbs, blend: 0.006 },
        spacing: DVec3::new(0.0255, 0.0255, 0.0185),
        lattice: Lattice { cell: FISH_CELL, origin: height + DVec3::X * (0.25 * FISH_CELL.x), split: Split::Twelve },
        // fins are thin: their nodes are free
        reach: |limb| if limb.colour == BACK { FISH_REACH } else { 0.02 },
        // six joints: turning over, it bends its tail over its head
        bend: Some(1.2),
    };
    let mut builder = ModelBuilder::new();
    build(&mut builder, &recipe, &bones, |joint| joint.frame(upright()), parameters)?;
    builder.obstacle(ground());
    let model = builder.build()?;
    let wave = Wave { first: 1, joints: FISH_BONES - 1, size: 0.3, hertz: 1.5, lag: 0.8 };
    takes::apply("fish", takes::FISH, parameters, Scene::new(model, Script::Wave(wave)))
}

/// A finger that is led over a ball.
pub(super) fn finger(parameters: &Parameters<'_>) -> Result<Scene, SceneError> {
    // Along the finger \[m\]: wrist, knuckle, three phalanges
    let along = [0.0, 0.030, 0.050, 0.082, 0.108, 0.128];
    let thick = [0.011, 0.011, 0.0108, 0.0102, 0.0094, 0.0085];
    let height = DVec3::Y * 0.06;
    let at = |k: usize| height + DVec3::X * along[k];
    let bones: Vec<Bone> = ["wrist", "knuckle", "proximal", "middle", "distal"]
        .iter()
        .enumerate()
        .map(|(k, name)| Bone { name: (*name).into(), from: at(k), to: at(k + 1) })
        .collect();
    let (skin, tip) = ([0.72, 0.46, 0.34], [0.76, 0.40, 0.32]);
    let limbs = bones.iter().enumerate().map(|(k, bone)| {
        let colour = if k == 4 { tip } else { skin };
        Limb::new(&bone.name, bone.from, bone.to, thick[k], thick[k + 1]).colour(colour)
    });
    let recipe = Recipe {
        creature: Creature { limbs: limbs.collect(), blend: 0.0008 },
        spacing: DVec3::splat(0.0086),
        lattice: Lattice {
            cell: DVec3::new(0.03, 0.0135, 0.0135),
            origin: height - DVec3::X * 0.0115,
            split: Split::Six,
        },
        // soft at the tip, held by the bones behind it
        reach: |limb| if limb.body == "distal" { 0.001 } else { 0.0195 },
        bend: Some(1.6),
    };
    let mut builder = ModelBuilder::new();
    let size = 1.0;
    let motor = Motor { stiffness: 40.0 * size, damping: 1.0, max: f64::INFINITY, integral: 0.0 };
    build(&mut builder, &recipe, &bones, |joint| joint.frame(upright()).motor(motor), parameters)?;
    let ball = BodySpec::new("ball").shape(Shape::sphere(0.02), 400.0).pose(Pose::at(DVec3::new(0.11, 0.02, 0.0)));
    builder.body(ball);
    builder.obstacle(ground());
    let model = builder.build()?;
    let wave = Wave { first: 1, joints: 4, size: 0.25, hertz: 0.7, lag: 0.3 };
    let mut scene = Scene::new(model, Script::Wave(wave));
    scene.input.contacts = Contacts::All; // it touches the ball
    takes::apply("finger", takes::FINGER, parameters, scene)
}

/// Hinges that swing one after the other.
#[derive(Clone, Debug)]
pub(super) struct Wave {
    /// The first of the joints, and how many.
    first: usize,
    joints: usize,
    /// \[rad\]
    size: f64,
    /// \[1/s\]
    hertz: f64,
    /// From one joint to the next \[rad\].
    lag: f64,
}

impl Wave {
    pub(super) fn direct(&self, time: f64, input: &mut Input) {
        let t = time + input.dt;
        // it comes up within a second
        let rise = t.min(1.0);
        let (rise, rising) = (rise * rise * (3.0 - 2.0 * rise), 6.0 * rise * (1.0 - rise));
        let joints = entries(&mut input.joints, self.first + self.joints, JointInput::default());
        for (k, joint) in joints[self.first..].iter_mut().take(self.joints).enumerate() {
            let omega = TAU * self.hertz;
            let phase = omega * t - self.lag * k as f64;
            let position = self.size * rise * phase.sin();
            let rate = self.size * (rise * omega * phase.cos() + rising * phase.sin());
            joint.servo = Some(ServoTarget::Position { position, rate });
        }
    }
}

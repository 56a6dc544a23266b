//! Characters in soft skin [Galoppo 2007, table 1, fig. 1, 3, 5, 6]: tubes, a snake, a deer, and a hand on a table [Hernández 2011, fig. 1].

use super::{Parameters, Scene, SceneError, Script, damping, entries, hand};
use crate::creature::{self, Creature, Limb};
use crate::flesh::SurfaceMesh;
use crate::input::{Contacts, Input, Target};
use crate::maths::{Pose, Twist};
use crate::model::{
    BodyRef, BodySpec, JointMask, JointSpec, ModelBuilder, ModelError, ObstacleShape, ObstacleSpec, Problem, Shape,
    TrackerSpec,
};
use crate::skin::{Core, Depth, PoseMap, SkinBone, SkinMaterial, SkinSpec};
use glam::{DQuat, DVec3};
use std::f64::consts::{PI, TAU};

/// A bone with the limb around it.
struct Bone {
    name: String,
    parent: Option<usize>,
    from: DVec3,
    to: DVec3,
    /// Of the skin \[m\].
    radius: f64,
}

impl Bone {
    fn length(&self) -> f64 {
        self.from.distance(self.to)
    }

    fn middle(&self) -> DVec3 {
        0.5 * (self.from + self.to)
    }

    fn pose(&self) -> Pose {
        Pose::new(DQuat::from_rotation_arc(DVec3::X, (self.to - self.from) / self.length()), self.middle())
    }
}

const BONE_DENSITY: f64 = 1000.0; // kg/m³
/// Thickness of a bone's core in that of its skin.
const CORE: f64 = 0.55;

/// Adds bodies on balls with springs that would turn what hangs on them so often in a second.
fn add_bones(builder: &mut ModelBuilder, bones: &[Bone], hertz: f64) {
    let mass = |bone: &Bone| BONE_DENSITY * PI * bone.radius * bone.radius * bone.length();
    for (k, bone) in bones.iter().enumerate() {
        let (l, r) = (bone.length(), CORE * bone.radius);
        let shape = Shape::capsule((l - 2.0 * r).max(0.2 * l), r);
        // within skin, which touches things for it
        let body = BodySpec::new(&bone.name).shape(shape, BONE_DENSITY).pose(bone.pose()).collides_with(0);
        let body = builder.body(body);
        let Some(parent) = bone.parent else { continue };
        // everything beyond it
        let beyond = |mut i: usize| loop {
            if i == k {
                return true;
            }
            match bones[i].parent {
                Some(p) => i = p,
                None => return false,
            }
        };
        let inertia: f64 = (0..bones.len())
            .filter(|&i| beyond(i))
            .map(|i| mass(&bones[i]) * (bones[i].middle().distance_squared(bone.from) + bones[i].radius.powi(2)))
            .sum();
        let stiffness = inertia * (TAU * hertz).powi(2);
        let joint = JointSpec::new(format!("{}_joint", bone.name), JointMask::BALL, body, bones[parent].name.as_str());
        builder.joint(joint.at(bone.from).spring(stiffness, damping(0.7, stiffness, inertia)));
    }
}

fn add_trackers(builder: &mut ModelBuilder, bones: &[Bone], hertz: f64) {
    for bone in bones {
        let mass = BONE_DENSITY * PI * bone.radius * bone.radius * bone.length();
        let inertia = mass * (bone.length().powi(2) / 12.0 + bone.radius.powi(2));
        let (k, turn) = (mass * (TAU * hertz).powi(2), inertia * (TAU * hertz).powi(2));
        builder.tracker(TrackerSpec {
            name: bone.name.clone(),
            body: bone.name.as_str().into(),
            point: DVec3::ZERO,
            stiffness: k,
            damping: damping(0.7, k, mass),
            rotation_stiffness: turn,
            rotation_damping: damping(0.7, turn, inertia),
        });
    }
}

fn skin_bones(bones: &[Bone], material: SkinMaterial) -> Vec<SkinBone> {
    let bone =
        |bone: &Bone| SkinBone { body: bone.name.as_str().into(), rest: None, flesh: Some(material), core: Core::Bone };
    bones.iter().map(bone).collect()
}

/// What parameters say of the material.
fn material(parameters: &Parameters<'_>) -> Result<(SkinMaterial, PoseMap), SceneError> {
    let material = SkinMaterial {
        young: parameters.positive("stiffness")?,
        friction: parameters.number("friction")?,
        ..SkinMaterial::default()
    };
    let map = if parameters.switch("map", "centres", "linear")? { PoseMap::Centres } else { PoseMap::Linear };
    Ok((material, map))
}

/// A closed tube about a path, given at t from 0 to 1 with its radius; circles of `around` vertices and a vertex at each end.
fn sweep(
    rings: usize,
    around: usize,
    path: impl Fn(f64) -> (DVec3, f64),
    colour: impl Fn(f64) -> [f32; 3],
) -> SurfaceMesh {
    let mut surface = SurfaceMesh::default();
    let mut up = DVec3::Y;
    for i in 0..rings {
        let t = i as f64 / (rings - 1) as f64;
        let (at, radius) = path(t);
        let along = (path((t + 1e-4).min(1.0)).0 - path((t - 1e-4).max(0.0)).0).normalize();
        up = up.reject_from_normalized(along).normalize();
        let side = along.cross(up);
        for j in 0..around {
            let (s, c) = (TAU * j as f64 / around as f64).sin_cos();
            surface.vertices.push(at + (up * c + side * s) * radius);
            surface.colours.push(colour(t));
        }
    }
    let [first, last] = [(rings * around) as u32, (rings * around + 1) as u32];
    for t in [0.0, 1.0] {
        surface.vertices.push(path(t).0);
        surface.colours.push(colour(t));
    }
    for j in 0..around {
        let next = (j + 1) % around;
        let at = |i: usize, j: usize| (i * around + j) as u32;
        surface.triangles.push([at(0, next), at(0, j), first]);
        surface.triangles.push([at(rings - 1, j), at(rings - 1, next), last]);
        for i in 0..rings - 1 {
            surface.triangles.push([at(i, j), at(i, next), at(i + 1, j)]);
            surface.triangles.push([at(i, next), at(i + 1, next), at(i + 1, j)]);
        }
    }
    if surface.volume() < 0.0 {
        surface.triangles.iter_mut().for_each(|t| t.swap(1, 2));
    }
    surface
}

/// Shares that fall off from the middle of each bone, `exp(−(d/0.45)²)`, d in bone lengths; the largest are kept.
fn weights(surface: &SurfaceMesh, bones: &[Bone], kept: usize) -> Vec<[(u32, f64); 4]> {
    let one = |p: &DVec3| {
        let mut all: Vec<(u32, f64)> = bones
            .iter()
            .enumerate()
            .map(|(k, bone)| {
                let along = (bone.to - bone.from) / bone.length();
                let d = (*p - bone.middle()).dot(along) / bone.length();
                (k as u32, (-(d / 0.45).powi(2)).exp())
            })
            .collect();
        all.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        let mut out = [(0, 0.0); 4];
        let kept = kept.min(all.len()).min(4);
        let sum: f64 = all[..kept].iter().map(|(_, w)| w).sum();
        (0..kept).for_each(|i| out[i] = (all[i].0, all[i].1 / sum));
        out
    };
    surface.vertices.iter().map(one).collect()
}

/// Bones one after the other along a line.
fn chain(name: &str, count: usize, from: DVec3, to: DVec3, radius: f64) -> Vec<Bone> {
    let at = |k: usize| from.lerp(to, k as f64 / count as f64);
    (0..count)
        .map(|k| Bone { name: format!("{name}_{k}"), parent: k.checked_sub(1), from: at(k), to: at(k + 1), radius })
        .collect()
}

const TUBE_LENGTH: f64 = 1.0; // m
const TUBE_RADIUS: f64 = 0.1; // m
const TUBE_DEPTH: f64 = 0.04; // m
const RINGS: usize = 29;
const AROUND: usize = 10; // 29 · 10 + 2 = 292 vertices

/// A tube that falls over a bar.
pub(super) fn tube(parameters: &Parameters<'_>) -> Result<Scene, SceneError> {
    let count = parameters.size()?;
    if count > 20 {
        return Err(parameters.wrong_size("give from 1 to 20 bones".into()));
    }
    let (material, map) = material(parameters)?;
    let material = SkinMaterial { depth: Depth::Metres(TUBE_DEPTH), ..material };
    let kept = parameters.positive("influences")? as usize;
    let (from, to) = (DVec3::new(-0.5 * TUBE_LENGTH, 0.62, 0.0), DVec3::new(0.5 * TUBE_LENGTH, 0.62, 0.0));
    let bones = chain("link", count, from, to, TUBE_RADIUS);
    let surface = sweep(RINGS, AROUND, |t| (from.lerp(to, t), TUBE_RADIUS), |t| stripes(t, count));
    let mut builder = ModelBuilder::new();
    add_bones(&mut builder, &bones, 1.0);
    let weights = weights(&surface, &bones, kept);
    let bones = skin_bones(&bones, material);
    builder.skin(SkinSpec { surface, weights, bones, painted: Vec::new(), map, inner: None });
    let bar = Pose::new(DQuat::from_rotation_y(0.5 * PI), DVec3::new(0.03, 0.3, 0.0));
    builder.obstacle(ObstacleSpec::solid("bar", Shape::capsule(1.0, 0.12)).pose(bar));
    builder.obstacle(ObstacleSpec::floor("floor", 0.0));
    Ok(Scene::new(builder.build()?, Script::Still))
}

fn stripes(t: f64, count: usize) -> [f32; 3] {
    if ((t * count as f64) as usize).is_multiple_of(2) { [0.62, 0.22, 0.16] } else { [0.80, 0.52, 0.30] }
}

const TUBES: usize = 3;
const LINKS: usize = 3;

/// Three tubes of three links that lie across one another, their ends led about.
pub(super) fn tubes(parameters: &Parameters<'_>) -> Result<Scene, SceneError> {
    let (material, map) = material(parameters)?;
    let material = SkinMaterial { depth: Depth::Metres(0.03), ..material };
    let radius = 0.07;
    let mut builder = ModelBuilder::new();
    let mut whole: Option<SkinSpec> = None;
    for k in 0..TUBES {
        let turn = DQuat::from_rotation_y(k as f64 * PI / TUBES as f64 + 0.3);
        let middle = DVec3::Y * (0.6 + 0.17 * k as f64);
        let (from, to) = (middle - turn * DVec3::X * 0.5, middle + turn * DVec3::X * 0.5);
        let bones = chain(["red", "gold", "blue"][k], LINKS, from, to, radius);
        let colour = [[0.62, 0.16, 0.14], [0.80, 0.58, 0.22], [0.16, 0.30, 0.55]][k];
        let surface = sweep(RINGS, AROUND, |t| (from.lerp(to, t), radius), |_| colour);
        let weights = weights(&surface, &bones, 2);
        let skin_bones = skin_bones(&bones, material);
        let own = SkinSpec { surface, weights, bones: skin_bones, painted: Vec::new(), map, inner: None };
        whole = Some(match whole {
            None => own,
            Some(before) => before.beside(own).map_err(problem)?,
        });
        add_bones(&mut builder, &bones, 1.5);
        let led: Vec<Bone> = bones
            .into_iter()
            .enumerate()
            .filter(|(i, _)| *i != 1)
            .map(|(_, bone)| Bone { parent: None, ..bone })
            .collect();
        add_trackers(&mut builder, &led, 4.0);
    }
    whole.into_iter().for_each(|skin| builder.skin(skin));
    builder.obstacle(ObstacleSpec::floor("floor", 0.0));
    let model = builder.build()?;
    let rest = model.trackers().iter().map(|tracker| model.body(tracker.body).start).collect();
    let mut scene = Scene::new(model, Script::Show(Show::Tubes(rest)));
    scene.input.contacts = Contacts::All;
    Ok(scene)
}

const SNAKE_BONES: usize = 16;
const SNAKE_LENGTH: f64 = 3.0; // m

fn snake_radius(t: f64) -> f64 {
    // head, neck, body, tail \[m\]
    let body = 0.062 * (1.0 - ((t - 0.42) / 0.62).powi(2)).max(0.0).sqrt() + 0.014;
    let head = 0.026 * (-((t - 0.035) / 0.03).powi(2)).exp();
    (body + head).max(0.016)
}

/// A snake on the ground, touched by a fish.
pub(super) fn snake(parameters: &Parameters<'_>) -> Result<Scene, SceneError> {
    let (material, map) = material(parameters)?;
    let height = 0.078;
    let place = |t: f64| {
        let x = (t - 0.5) * SNAKE_LENGTH * 0.86;
        DVec3::new(x, height, 0.16 * (TAU * 1.5 * t).sin())
    };
    let at = |k: usize| place(k as f64 / SNAKE_BONES as f64);
    let bones: Vec<Bone> = (0..SNAKE_BONES)
        .map(|k| Bone {
            name: format!("rib_{k}"),
            parent: k.checked_sub(1),
            from: at(k),
            to: at(k + 1),
            radius: snake_radius((k as f64 + 0.5) / SNAKE_BONES as f64),
        })
        .collect();
    let colour = |t: f64| if ((t * 22.0) as usize).is_multiple_of(2) { [0.22, 0.34, 0.12] } else { [0.52, 0.50, 0.20] };
    // 155 · 20 + 2 = 3,102 vertices
    let surface = sweep(155, 20, |t| (place(t), snake_radius(t)), colour);
    let mut builder = ModelBuilder::new();
    add_bones(&mut builder, &bones, 0.8);
    let weights = weights(&surface, &bones, 2);
    let bones = skin_bones(&bones, material);
    builder.skin(SkinSpec { surface, weights, bones, painted: Vec::new(), map, inner: None });
    builder.obstacle(ObstacleSpec::floor("floor", 0.0));
    let fish = fish().map_err(problem)?;
    builder.obstacle(ObstacleSpec::new("fish", fish).pose(FISH_START));
    Ok(Scene::new(builder.build()?, Script::Show(Show::Fish)))
}

const FISH_START: Pose = Pose { rotation: DQuat::IDENTITY, translation: DVec3::new(-0.1, 0.55, 0.45) };

fn problem(what: String) -> SceneError {
    let remedy = "give other parameters".into();
    let problems = vec![Problem { code: "model/skin", part: "skin".into(), what, remedy }];
    SceneError::Model(ModelError { problems })
}

/// A stiff fish that swims along −Z.
fn fish() -> Result<ObstacleShape, String> {
    let limb = |from: DVec3, to: DVec3, a: f64, b: f64| Limb::new("fish", from, to, a, b);
    let nose = DVec3::new(0.0, 0.0, -0.16);
    let tail = DVec3::new(0.0, 0.0, 0.16);
    let mut limbs = vec![
        limb(nose, DVec3::ZERO, 0.05, 0.085).flat(DVec3::X, 0.6),
        limb(DVec3::ZERO, tail, 0.085, 0.025).flat(DVec3::X, 0.6),
    ];
    for up in [1.0, -1.0] {
        limbs.push(limb(tail, tail + DVec3::new(0.0, 0.07 * up, 0.07), 0.025, 0.02).flat(DVec3::X, 0.6));
    }
    let grown = Creature { limbs, blend: 0.006 }.grow(DVec3::splat(0.016))?;
    let SurfaceMesh { vertices, triangles, .. } = grown.surface;
    Ok(ObstacleShape::Mesh { vertices, triangles })
}

/// How much larger the bird is than it is drawn up below.
const BIRD: f64 = 1.8;

/// The limbs of a bird that flies along −Z, with the bone of `BIRD_BONES` that each is around.
fn bird_limbs() -> Vec<(usize, Limb)> {
    let limb = |from: DVec3, to: DVec3, a: f64, b: f64| {
        Limb::new("bird", BIRD * from, BIRD * to, BIRD * a, BIRD * b).colour([0.20, 0.24, 0.34])
    };
    let mut limbs = vec![
        (0, limb(DVec3::new(0.0, 0.0, -0.08), DVec3::new(0.0, 0.0, 0.08), 0.065, 0.05)),
        (1, limb(DVec3::new(0.0, 0.06, -0.13), DVec3::new(0.0, 0.07, -0.15), 0.045, 0.042)),
        (1, limb(DVec3::new(0.0, 0.06, -0.18), DVec3::new(0.0, 0.05, -0.24), 0.020, 0.010).colour([0.75, 0.50, 0.12])),
        (0, limb(DVec3::new(0.0, 0.0, 0.1), DVec3::new(0.0, 0.02, 0.24), 0.035, 0.02).flat(DVec3::Y, 0.5)),
    ];
    for (bone, side) in [(2, 1.0), (3, -1.0)] {
        let tip = DVec3::new(0.26 * side, 0.10, 0.05);
        let wing = limb(DVec3::new(0.04 * side, 0.02, -0.01), tip, 0.045, 0.025).flat(DVec3::Y, 0.5);
        limbs.push((bone, wing.colour([0.14, 0.17, 0.26])));
    }
    limbs
}

fn grow_bird() -> Result<creature::Skin, String> {
    let limbs = bird_limbs().into_iter().map(|(_, limb)| limb).collect();
    Creature { limbs, blend: BIRD * 0.008 }.grow(DVec3::splat(BIRD * 0.014))
}

/// A stiff bird.
fn bird() -> Result<ObstacleShape, String> {
    let SurfaceMesh { vertices, triangles, .. } = grow_bird()?.surface;
    Ok(ObstacleShape::Mesh { vertices, triangles })
}

/// The bones of a soft bird: body, head, wings.
fn bird_bones() -> Vec<Bone> {
    let v = DVec3::new;
    let bone = |name: &str, parent: Option<usize>, from: DVec3, to: DVec3, radius: f64| Bone {
        name: format!("bird_{name}"),
        parent,
        from: BIRD * from,
        to: BIRD * to,
        radius: BIRD * radius,
    };
    vec![
        bone("body", None, v(0.0, 0.0, 0.10), v(0.0, 0.0, -0.08), 0.055),
        bone("head", Some(0), v(0.0, 0.03, -0.09), v(0.0, 0.06, -0.20), 0.04),
        bone("left_wing", Some(0), v(0.03, 0.02, 0.0), v(0.24, 0.09, 0.04), 0.03),
        bone("right_wing", Some(0), v(-0.03, 0.02, 0.0), v(-0.24, 0.09, 0.04), 0.03),
    ]
}

/// Adds the bones of a bird in soft skin that starts at a pose, and its trackers; returns its skin.
fn soft_bird(
    builder: &mut ModelBuilder,
    start: Pose,
    (material, map): (SkinMaterial, PoseMap),
) -> Result<SkinSpec, String> {
    let at = |p: DVec3| start.transform_point(p);
    let bones: Vec<Bone> =
        bird_bones().into_iter().map(|bone| Bone { from: at(bone.from), to: at(bone.to), ..bone }).collect();
    let creature::Skin { mut surface, weights } = grow_bird()?;
    surface.vertices.iter_mut().for_each(|p| *p = at(*p));
    let owners: Vec<u32> = bird_limbs().iter().map(|(bone, _)| *bone as u32).collect();
    let weights = weights.iter().map(|list| list.map(|(limb, w)| (owners[limb as usize], w))).collect();
    add_bones(builder, &bones, 4.0);
    add_trackers(builder, &bones, 4.0);
    let bones = skin_bones(&bones, SkinMaterial { depth: Depth::Share(0.5), ..material });
    Ok(SkinSpec { surface, weights, bones, painted: Vec::new(), map, inner: None })
}

/// The skeleton of a deer that looks along X, on the ground, with what is around each bone.
fn deer_bones() -> Vec<Bone> {
    let mut bones: Vec<Bone> = Vec::new();
    let v = DVec3::new;
    let add = |bones: &mut Vec<Bone>, name: &str, parent: Option<&str>, from: DVec3, to: DVec3, radius: f64| {
        let parent = parent.and_then(|p| bones.iter().position(|b| b.name == p));
        bones.push(Bone { name: name.into(), parent, from, to, radius });
    };
    add(&mut bones, "pelvis", None, v(-0.42, 1.03, 0.0), v(-0.26, 1.05, 0.0), 0.145);
    add(&mut bones, "spine_1", Some("pelvis"), v(-0.26, 1.05, 0.0), v(-0.12, 1.04, 0.0), 0.145);
    add(&mut bones, "spine_2", Some("spine_1"), v(-0.12, 1.04, 0.0), v(0.03, 1.03, 0.0), 0.155);
    add(&mut bones, "spine_3", Some("spine_2"), v(0.03, 1.03, 0.0), v(0.18, 1.03, 0.0), 0.168);
    add(&mut bones, "chest", Some("spine_3"), v(0.18, 1.03, 0.0), v(0.36, 1.06, 0.0), 0.165);
    add(&mut bones, "neck_1", Some("chest"), v(0.36, 1.08, 0.0), v(0.48, 1.22, 0.0), 0.105);
    add(&mut bones, "neck_2", Some("neck_1"), v(0.48, 1.22, 0.0), v(0.56, 1.37, 0.0), 0.078);
    add(&mut bones, "neck_3", Some("neck_2"), v(0.56, 1.37, 0.0), v(0.61, 1.51, 0.0), 0.068);
    add(&mut bones, "head", Some("neck_3"), v(0.62, 1.55, 0.0), v(0.76, 1.50, 0.0), 0.080);
    add(&mut bones, "jaw", Some("head"), v(0.76, 1.48, 0.0), v(0.89, 1.42, 0.0), 0.050);
    for (side, z) in [("left", -1.0), ("right", 1.0)] {
        let from = v(0.585, 1.61, 0.06 * z);
        add(&mut bones, &format!("{side}_ear"), Some("head"), from, v(0.54, 1.69, 0.19 * z), 0.038);
    }
    add(&mut bones, "tail_1", Some("pelvis"), v(-0.54, 1.08, 0.0), v(-0.61, 1.03, 0.0), 0.044);
    add(&mut bones, "tail_2", Some("tail_1"), v(-0.61, 1.03, 0.0), v(-0.65, 0.94, 0.0), 0.040);
    for (side, z) in [("left", -1.0), ("right", 1.0)] {
        let z = 0.105 * z;
        let hind = [
            ("thigh", v(-0.38, 0.96, 0.8 * z), v(-0.33, 0.72, z), 0.100),
            ("shin", v(-0.33, 0.72, z), v(-0.48, 0.48, z), 0.058),
            ("hock", v(-0.48, 0.48, z), v(-0.46, 0.26, z), 0.040),
            ("pastern", v(-0.46, 0.26, z), v(-0.43, 0.12, z), 0.037),
            ("hoof", v(-0.43, 0.12, z), v(-0.40, 0.047, z), 0.040),
        ];
        let fore = [
            ("shoulder", v(0.30, 0.98, 0.8 * z), v(0.34, 0.76, z), 0.088),
            ("foreleg", v(0.34, 0.76, z), v(0.31, 0.53, z), 0.052),
            ("knee", v(0.31, 0.53, z), v(0.31, 0.29, z), 0.040),
            ("fetlock", v(0.31, 0.29, z), v(0.33, 0.12, z), 0.037),
            ("forehoof", v(0.33, 0.12, z), v(0.36, 0.047, z), 0.040),
        ];
        for (legs, root) in [(hind, "pelvis"), (fore, "chest")] {
            let mut parent = root.to_owned();
            for (name, from, to, radius) in legs {
                let name = format!("{side}_{name}");
                add(&mut bones, &name, Some(&parent), from, to, radius);
                parent = name;
            }
        }
    }
    bones
}

const COAT: [f32; 3] = [0.46, 0.27, 0.13];
const WHITE: [f32; 3] = [0.80, 0.72, 0.60];
const DARK: [f32; 3] = [0.07, 0.05, 0.04];

/// What is around a bone: its half thickness at both ends, and its colour.
fn deer_limb(bones: &[Bone], bone: &Bone) -> Limb {
    let name = bone.name.as_str();
    // legs and neck run into what follows
    let next = bones.iter().find(|b| b.from == bone.to).map_or(bone.radius, |b| b.radius);
    let (from, to, colour) = match name {
        "head" => (bone.radius, 0.060, COAT),
        "jaw" => (0.054, 0.042, COAT),
        "tail_1" | "tail_2" => (bone.radius, bone.radius, WHITE),
        _ if name.contains("hoof") => (0.037, bone.radius, DARK),
        _ => (bone.radius, next, COAT),
    };
    let limb = Limb::new(name, bone.from, bone.to, from, to).colour(colour);
    if name.contains("ear") {
        // leaves that look forward
        let along = (bone.to - bone.from).normalize();
        return Limb { radius_to: 0.031, ..limb.flat(along.cross(DVec3::X), 1.7) };
    }
    limb
}

/// What is around the bones of a deer.
fn deer_creature(bones: &[Bone]) -> Creature {
    let v = DVec3::new;
    let mut limbs: Vec<Limb> = bones.iter().map(|bone| deer_limb(bones, bone)).collect();
    let mark = |name: &str, from: DVec3, to: DVec3, r: f64, colour| Limb::new(name, from, to, r, r).colour(colour);
    limbs.push(mark("jaw", v(0.905, 1.425, 0.0), v(0.925, 1.415, 0.0), 0.040, DARK));
    for z in [-1.0, 1.0] {
        limbs.push(mark("head", v(0.70, 1.555, 0.060 * z), v(0.72, 1.550, 0.056 * z), 0.030, DARK));
    }
    for (name, x, y) in [("spine_1", -0.2, 0.925), ("spine_2", -0.04, 0.91), ("spine_3", 0.12, 0.90)] {
        limbs.push(mark(name, v(x - 0.06, y, 0.0), v(x + 0.06, y, 0.0), 0.05, WHITE));
    }
    Creature { limbs, blend: 0.012 }
}

/// The surface of the deer with exactly so many vertices: grown coarser, then its longest edges split.
fn deer_surface(bones: &[Bone], nodes: usize) -> Result<creature::Skin, String> {
    let creature = deer_creature(bones);
    // spacings at which no two limbs touch within a cell of the grid: 1,682, 2,644 and 4,050 vertices
    let spacing = match nodes {
        ..2644 => 0.0467,
        2644..4050 => 0.0378,
        4050.. => 0.0309,
    };
    let mut surface = creature.grow(DVec3::splat(spacing))?.surface;
    if surface.vertices.len() > nodes {
        return Err(format!("the deer has at least {} vertices", surface.vertices.len()));
    }
    split_edges(&mut surface, nodes, &|p| onto(&creature, p));
    let weights = surface.vertices.iter().map(|&p| deer_weights(bones, p)).collect();
    Ok(creature::Skin { surface, weights })
}

/// A point near a creature's surface, moved onto it.
fn onto(creature: &Creature, mut p: DVec3) -> DVec3 {
    let d = 1e-5;
    for _ in 0..2 {
        let slope = DVec3::AXES.map(|e| (creature.distance(p + e * d) - creature.distance(p - e * d)) / (2.0 * d));
        let slope = DVec3::from_array(slope);
        p -= slope * (creature.distance(p) / slope.length_squared().max(0.1));
    }
    p
}

/// Shares of the nearest bones, in units of their thickness; no more than three, and no small ones.
fn deer_weights(bones: &[Bone], p: DVec3) -> [(u32, f64); 4] {
    let mut all: Vec<(u32, f64)> = bones
        .iter()
        .enumerate()
        .map(|(k, bone)| {
            let along = bone.to - bone.from;
            let t = ((p - bone.from).dot(along) / along.length_squared()).clamp(0.0, 1.0);
            (k as u32, (-(p.distance(bone.from + along * t) / (0.6 * bone.radius)).powi(2)).exp())
        })
        .collect();
    all.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    // only with the nearest bone and its neighbours in the skeleton, so that nothing is pulled across a gap
    let nearest = all[0].0 as usize;
    let are_near = |k: u32| {
        let k = k as usize;
        k == nearest || bones[k].parent == Some(nearest) || bones[nearest].parent == Some(k)
    };
    let kept: Vec<(u32, f64)> =
        all.iter().copied().filter(|(k, w)| are_near(*k) && *w > 0.05 * all[0].1).take(3).collect();
    let sum: f64 = kept.iter().map(|(_, w)| w).sum();
    let mut out = [(0, 0.0); 4];
    kept.iter().zip(&mut out).for_each(|((k, w), out)| *out = (*k, w / sum));
    out
}

/// Splits the longest edges until there are so many vertices; new ones are put onto the surface.
fn split_edges(surface: &mut SurfaceMesh, nodes: usize, onto: &dyn Fn(DVec3) -> DVec3) {
    while surface.vertices.len() < nodes {
        // as many edges of different triangles as are missing, the longest first
        let mut edges: Vec<(f64, u32, u32)> = surface
            .triangles
            .iter()
            .flat_map(|&[a, b, c]| [(a, b), (b, c), (c, a)])
            .filter(|(a, b)| a < b)
            .map(|(a, b)| (surface.vertices[a as usize].distance(surface.vertices[b as usize]), a, b))
            .collect();
        edges.sort_by(|p, q| q.0.total_cmp(&p.0).then((p.1, p.2).cmp(&(q.1, q.2))));
        let mut used = vec![false; surface.triangles.len()];
        let mut beside: Vec<((u32, u32), usize)> = Vec::new();
        for (t, &[a, b, c]) in surface.triangles.iter().enumerate() {
            beside.extend([(a, b), (b, c), (c, a)].map(|(p, q)| ((p.min(q), p.max(q)), t)));
        }
        beside.sort_unstable();
        let missing = nodes - surface.vertices.len();
        for (_, a, b) in edges.into_iter().take(4 * missing) {
            if surface.vertices.len() == nodes {
                break;
            }
            let from = beside.partition_point(|(edge, _)| *edge < (a, b));
            let two: Vec<usize> = beside[from..].iter().take_while(|(e, _)| *e == (a, b)).map(|(_, t)| *t).collect();
            if two.iter().any(|&t| used[t]) {
                continue;
            }
            let middle = surface.vertices.len() as u32;
            surface.vertices.push(onto(0.5 * (surface.vertices[a as usize] + surface.vertices[b as usize])));
            let (p, q) = (surface.colours[a as usize], surface.colours[b as usize]);
            surface.colours.push(std::array::from_fn(|k| 0.5 * (p[k] + q[k])));
            for t in two {
                used[t] = true;
                let old = surface.triangles[t];
                surface.triangles[t] = old.map(|i| if i == b { middle } else { i });
                surface.triangles.push(old.map(|i| if i == a { middle } else { i }));
            }
        }
    }
}

/// A deer that breathes and looks about, and a bird that lands on its back.
pub(super) fn deer(parameters: &Parameters<'_>) -> Result<Scene, SceneError> {
    let nodes = parameters.size()?;
    if !(1682..=20_000).contains(&nodes) {
        return Err(parameters.wrong_size("give from 1,682 to 20,000 vertices".into()));
    }
    let (material, map) = material(parameters)?;
    let bird_kind = match parameters.choice("bird", &["0", "1", "soft"])? {
        "soft" => BirdKind::Soft,
        "1" => BirdKind::Stiff,
        _ => BirdKind::None,
    };
    let is_animated = parameters.switch("animated", "1", "0")?;
    let bones = deer_bones();
    let creature::Skin { surface, weights } = deer_surface(&bones, nodes).map_err(problem)?;
    let mut builder = ModelBuilder::new();
    add_bones(&mut builder, &bones, 1.5);
    add_trackers(&mut builder, &bones, 2.5);
    let skin_bones = skin_bones(&bones, SkinMaterial { depth: Depth::Share(0.45), ..material });
    let mut skin = SkinSpec { surface, weights, bones: skin_bones, painted: Vec::new(), map, inner: None };
    builder.obstacle(ObstacleSpec::floor("floor", 0.0));
    match bird_kind {
        BirdKind::None => {}
        BirdKind::Stiff => {
            builder.obstacle(ObstacleSpec::new("bird", bird().map_err(problem)?).pose(bird_at(0.0)));
        }
        BirdKind::Soft => {
            let bird = soft_bird(&mut builder, bird_at(0.0), (material, map)).map_err(problem)?;
            skin = skin.beside(bird).map_err(problem)?;
        }
    }
    builder.skin(skin);
    let frames = bones.iter().map(|bone| (bone.name.clone(), bone.parent, bone.from, bone.pose())).collect();
    let herd = Deer { frames, is_animated, bird: bird_kind };
    let mut scene = Scene::new(builder.build()?, Script::Show(Show::Deer(herd)));
    if bird_kind == BirdKind::Soft {
        scene.input.contacts = Contacts::All;
    }
    Ok(scene)
}

/// Where the bird is: it comes down on the back, presses, and flies off again.
fn bird_at(t: f64) -> Pose {
    let s = t.rem_euclid(4.0);
    let down = if s < 1.2 {
        s / 1.2
    } else if s < 2.2 {
        1.0
    } else {
        ((4.0 - s) / 1.8).clamp(0.0, 1.0)
    };
    let down = down * down * (3.0 - 2.0 * down);
    let high = DVec3::new(0.05, 1.75, 0.75);
    let low = DVec3::new(0.0, 1.19, 0.0);
    Pose::new(DQuat::from_rotation_x(-0.3 * (1.0 - down)), high.lerp(low, down))
}

/// The bones of the deer: name, parent, joint, and pose at the start.
#[derive(Clone, Debug)]
pub(super) struct Deer {
    frames: Vec<(String, Option<usize>, DVec3, Pose)>,
    is_animated: bool,
    bird: BirdKind,
}

/// What lands on the deer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BirdKind {
    None,
    /// An obstacle.
    Stiff,
    /// A character in soft skin.
    Soft,
}

impl Deer {
    /// How far a joint turns in the animation.
    fn turn(&self, name: &str, t: f64) -> DVec3 {
        if !self.is_animated {
            return DVec3::ZERO;
        }
        // at rest at the start
        let rise = (t / 1.0).min(1.0);
        let wave = |hertz: f64, phase: f64| rise * ((TAU * hertz * t + phase).sin() - phase.sin());
        match name {
            "neck_1" => DVec3::new(0.0, 0.10 * wave(0.25, 0.0), -0.10 * wave(0.35, 0.0)),
            "neck_2" | "neck_3" => DVec3::new(0.0, 0.12 * wave(0.25, 0.3), -0.07 * wave(0.35, 0.4)),
            "head" => DVec3::new(0.0, 0.15 * wave(0.3, 0.2), 0.10 * wave(0.5, 0.0)),
            "left_ear" => DVec3::X * (0.25 * wave(1.3, 0.0)),
            "right_ear" => DVec3::X * (0.25 * wave(1.1, 0.5)),
            "tail_1" => DVec3::new(0.0, 0.35 * wave(1.6, 0.0), 0.0),
            "tail_2" => DVec3::new(0.0, 0.35 * wave(1.6, -0.7), 0.0),
            "chest" | "spine_2" => DVec3::Z * (0.02 * wave(0.5, 0.0)),
            _ => DVec3::ZERO,
        }
    }

    fn poses(&self, t: f64) -> Vec<Pose> {
        // each bone carried by its parent, then turned about its joint
        let mut moved: Vec<Pose> = Vec::with_capacity(self.frames.len());
        for (name, parent, joint, _) in &self.frames {
            let turn = Pose::new(DQuat::from_scaled_axis(self.turn(name, t)), DVec3::ZERO);
            let own = Pose::at(*joint).then(turn).then(Pose::at(-*joint));
            moved.push(parent.map_or(own, |p| moved[p].then(own)));
        }
        moved.iter().zip(&self.frames).map(|(moved, (_, _, _, start))| moved.then(*start)).collect()
    }
}

/// What directs a scene with skin.
#[derive(Clone, Debug)]
pub(super) enum Show {
    /// The ends of tubes, from these poses, go round.
    Tubes(Vec<Pose>),
    /// A fish comes down on the snake, goes along it and leaves.
    Fish,
    /// The deer is tracked; the bird flies.
    Deer(Deer),
    /// The hand presses on a table.
    Hand,
}

/// A pose and its velocity, by differences.
fn target(pose: impl Fn(f64) -> Pose, t: f64) -> Target {
    let d = 1e-4;
    let (a, b) = (pose(t - d), pose(t + d));
    let mut turn = b.rotation * a.rotation.conjugate();
    if turn.w < 0.0 {
        turn = -turn;
    }
    let velocity = Twist::new((b.translation - a.translation) / (2.0 * d), turn.to_scaled_axis() / (2.0 * d));
    Target { pose: pose(t), velocity }
}

fn smooth(x: f64) -> f64 {
    let x = x.clamp(0.0, 1.0);
    x * x * (3.0 - 2.0 * x)
}

fn tube_end(start: Pose, k: usize, t: f64) -> Pose {
    // the two ends of a tube go opposite ways round, down and up again
    let way = if k.is_multiple_of(2) { 1.0 } else { -1.0 };
    let tube = k / 2;
    let low = smooth(t / 1.5) * (0.17 * tube as f64 - 0.12);
    let turn = DQuat::from_rotation_y(0.5 * smooth(t / 2.0) * (tube as f64 - 1.0) + 0.25 * (0.8 * t).sin() * smooth(t));
    let bend = way * 0.10 * smooth(t / 2.0);
    let centre = DVec3::Y * start.translation.y;
    let at = centre + turn * (start.translation - centre) - DVec3::Y * low + DVec3::Y * bend;
    Pose::new(turn * start.rotation, at)
}

fn fish_at(t: f64) -> Pose {
    let s = t.rem_euclid(5.0);
    let down = smooth(s / 1.0) * smooth((5.0 - s) / 1.2);
    let along = smooth((s - 1.2) / 2.0) * DVec3::new(0.35, 0.0, -0.05);
    let low = DVec3::new(-0.12, 0.185, 0.02);
    let turn = DQuat::from_rotation_y(0.15 * (TAU * 0.8 * s).sin() * down);
    Pose::new(turn, FISH_START.translation.lerp(low, down) + along)
}

impl Show {
    pub(super) fn direct(&self, time: f64, input: &mut Input) {
        let t = time + input.dt;
        match self {
            Show::Tubes(rest) => {
                let targets = entries(&mut input.targets, rest.len(), None);
                for (k, (to, start)) in targets.iter_mut().zip(rest).enumerate() {
                    *to = Some(target(|t| tube_end(*start, k, t), t));
                }
            }
            Show::Fish => entries(&mut input.obstacles, 2, None)[1] = Some(target(fish_at, t)),
            Show::Deer(deer) => {
                let d = 1e-4;
                let [before, now, after] = [t - d, t, t + d].map(|t| deer.poses(t));
                let birds = if deer.bird == BirdKind::Soft { bird_bones() } else { Vec::new() };
                let targets = entries(&mut input.targets, deer.frames.len() + birds.len(), None);
                let (own, of_bird) = targets.split_at_mut(deer.frames.len());
                for (to, bone) in of_bird.iter_mut().zip(&birds) {
                    *to = Some(target(|t| bird_at(t).then(bone.pose()), t));
                }
                for (k, to) in own.iter_mut().enumerate() {
                    let of = |s: f64| {
                        if s < t {
                            before[k]
                        } else if s > t {
                            after[k]
                        } else {
                            now[k]
                        }
                    };
                    *to = Some(target(of, t));
                }
                if deer.bird == BirdKind::Stiff {
                    entries(&mut input.obstacles, 2, None)[1] = Some(target(bird_at, t));
                }
            }
            Show::Hand => {
                let frames = |t: f64| hand::pressing_bones(t);
                let d = 1e-4;
                let [before, now, after] = [t - d, t, t + d].map(frames);
                let targets = entries(&mut input.targets, hand::BONES, None);
                for (bone, to) in targets.iter_mut().enumerate() {
                    let centre = |pose: Pose| pose.then(Pose::at(hand::centre(bone)));
                    let of = |s: f64| {
                        centre(if s < t {
                            before[bone]
                        } else if s > t {
                            after[bone]
                        } else {
                            now[bone]
                        })
                    };
                    *to = Some(target(of, t));
                }
            }
        }
    }
}

/// The hand in soft skin, pressed on a table.
pub(super) fn soft_hand(parameters: &Parameters<'_>) -> Result<Scene, SceneError> {
    let (material, map) = material(parameters)?;
    let start = hand::pressing_bones(0.0);
    let mut builder = ModelBuilder::new();
    hand::build(&mut builder, &start, hand::Strength::Pressing)?;
    let tone = |k: usize| if k == 0 { [0.74, 0.48, 0.36] } else { [0.78, 0.50, 0.38] };
    let mut limbs = Vec::new();
    let mut owners: Vec<u32> = Vec::new();
    let rest = hand::open_bones();
    let at = |bone: usize, p: DVec3| rest[bone].transform_point(p);
    for (f, finger) in hand::FINGERS.iter().enumerate() {
        for k in 0..3 {
            let (bone, r) = (1 + 3 * f + k, 1.12 * finger.radii[k]);
            let next = 1.06 * finger.radii[(k + 1).min(2)];
            let name = format!("{}_{}", finger.name, hand::PHALANGES[k]);
            let limb = Limb::new(name, at(bone, DVec3::ZERO), at(bone, DVec3::X * finger.lengths[k]), r, next);
            limbs.push(limb.colour(tone(1)));
            owners.push(bone as u32);
        }
        // metacarpals give the palm its form
        let base = rest[0].inverse().transform_point(at(1 + 3 * f, DVec3::ZERO));
        let heel = DVec3::new(0.012, -0.002, 0.55 * base.z);
        let limb = Limb::new("palm", at(0, heel), at(0, base), 0.0155, 1.25 * finger.radii[0]);
        limbs.push(limb.colour(tone(0)));
        owners.push(0);
    }
    let creature = Creature { limbs, blend: 0.002 };
    // fingers stand close together: the first spacing of the grid that tells them apart
    let tried = [0.0064, 0.0060, 0.0056, 0.0052, 0.0048, 0.0044, 0.0040]
        .map(|spacing| move |c: &Creature| c.grow(DVec3::splat(spacing)));
    let grown =
        tried.iter().find_map(|grow| grow(&creature).ok()).ok_or_else(|| problem("its fingers touch".into()))?;
    let names: Vec<String> = hand::bone_names();
    let weights = grown.weights.iter().map(|list| list.map(|(limb, w)| (owners[limb as usize], w))).collect();
    let bone = |(name, rest): (&String, &Pose)| SkinBone {
        body: BodyRef::Name(name.clone()),
        rest: Some(*rest),
        flesh: Some(SkinMaterial { depth: Depth::Share(0.5), ..material }),
        core: Core::Whole,
    };
    let bones = names.iter().zip(&rest).map(bone).collect();
    builder.skin(SkinSpec { surface: grown.surface, weights, bones, painted: Vec::new(), map, inner: None });
    let table = Shape::cuboid(0.5, 0.04, 0.4);
    builder.obstacle(ObstacleSpec::solid("table", table).pose(Pose::at(DVec3::new(0.1, hand::TABLE - 0.02, 0.0))));
    Ok(Scene::new(builder.build()?, Script::Show(Show::Hand)))
}

//! Motion from elsewhere on a character: a recording (.bvh), or a clip of another character's file.

use crate::bvh::{self, Bvh};
use crate::plant::{Planted, Sole, lowest};
use crate::retarget::{Part, Retargeted, Roles, Side, by_names, retarget_as};
use crate::{Character, FileError, Files, Imported, InputFile, Recording, RigOptions, split_clip};
use glam::DVec3;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use supple::Motion;

/// A motion with what its joints are.
#[derive(Clone, Debug)]
pub struct Source {
    path: PathBuf,
    bvh: Bvh,
    joints: Vec<Option<(Part, Side)>>,
}

impl Files {
    /// Opens `FILE.bvh`, or `FILE#CLIP` of a character; the clip may be left out where the file has one.
    pub fn motion(&self, text: &str) -> Result<Source, FileError> {
        let (path, clip) = split_clip(text);
        Source::read(self.with_rig(RigOptions::default()).open(Path::new(path))?, clip)
    }
}

/// Endings of files whose bones a rig tells, where they have a body.
const ENDINGS: [&str; 4] = ["glb", "gltf", "vrm", "fbx"];

impl Source {
    /// Whether a text names a file of motion, with or without a clip, rather than a clip.
    pub fn is_file(text: &str) -> bool {
        crate::motion::is_recording(text)
    }

    /// The motion of a file that was opened; `clip` names one of a character's.
    pub fn read(file: InputFile, clip: Option<&str>) -> Result<Source, FileError> {
        let path = file.path().to_owned();
        match (&*file.ending(), clip) {
            ("bvh", None) => {
                let bvh = bvh::read(&file)?;
                Ok(Source { path, joints: by_names(&bvh), bvh })
            }
            ("bvh", Some(_)) => {
                Err(FileError::new("file/clip", &path, "a recording has one motion", "leave out the clip"))
            }
            (ending, clip) if ENDINGS.contains(&ending) => {
                match Character::read_with(file.clone(), &RigOptions::default()) {
                    Ok(character) => Source::of_clip(&character, clip),
                    // Bones and clips without a body, as libraries of motion have them.
                    Err(error) if error.code == "file/nothing" => Source::of_bones(file, clip),
                    Err(error) => Err(error),
                }
            }
            (_, clip) => Source::of_bones(file, clip),
        }
    }

    /// A clip of bones alone.
    fn of_bones(file: InputFile, clip: Option<&str>) -> Result<Source, FileError> {
        let path = file.path().to_owned();
        let bvh = crate::motion::recording(file, clip)?;
        Ok(Source { path, joints: by_names(&bvh), bvh })
    }

    /// A clip of a character; `None`: the only one.
    pub fn of_clip(character: &Character, clip: Option<&str>) -> Result<Source, FileError> {
        let path = character.source();
        let imported = character.imported(&path.to_string_lossy())?;
        let motion = match (clip, &imported.clips[..]) {
            (Some(name), _) => {
                imported.clip(name).map_err(|e| FileError::new("file/clip", path, e.what, e.remedy))?.clone()
            }
            (None, [only]) => only.clone(),
            (None, clips) => {
                let what = format!("it has {} clips", clips.len());
                let names = clips.iter().map(|clip| clip.name()).collect::<Vec<_>>().join(", ");
                let remedy = format!("give one after the file's name, as FILE#CLIP: {names}");
                return Err(FileError::new("file/clip", path, what, remedy));
            }
        };
        let model = &imported.scene.model;
        let mut recording = Recording::default();
        for frame in 0..motion.frames() {
            recording.times.push(frame as f64 / motion.rate());
            recording.poses.extend_from_slice(motion.frame(frame));
        }
        let (mut bvh, _) = crate::export_bvh(model, &recording);
        bvh.frame_time = 1.0 / motion.rate();
        let roles = character.rig.roles();
        let joints = model.topology().nodes.iter().map(|node| roles[node.body.index()]).collect();
        let named = format!("{}#{}", path.display(), motion.name());
        Ok(Source { path: named.into(), bvh, joints })
    }

    /// Where it came from.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// How a motion looks on a character, before any physics.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Taken {
    /// How fast what stands moves along the ground, mean over all that stands \[m/s\].
    pub slide_mean: f64,
    /// The largest \[m/s\].
    pub slide_max: f64,
    /// How far the lowest vertex of a foot that stands is from the ground, mean \[m\].
    pub foot_height: f64,
    /// Angle between bodies and what the motion asks of them, mean \[°\].
    pub angle_error: f64,
    /// How long feet stand, both together \[s\].
    pub planted: f64,
    /// How long the motion is \[s\].
    pub seconds: f64,
}

impl Character {
    /// Brings a motion from elsewhere onto the character: rest poses aligned, sizes by leg and hips, feet planted on their own soles. `imported` is the character's
    /// own; `map` names bodies and the joints of the motion that they follow, where neither names nor form tell.
    pub fn take_on(
        &self,
        imported: &Imported,
        source: &Source,
        map: &[(String, String)],
    ) -> Result<Retargeted, FileError> {
        let roles = Roles { bodies: self.rig.roles(), joints: source.joints.clone() };
        let (scene, soles) = (&imported.scene, self.soles(imported));
        retarget_as(&source.path, &source.bvh, &scene.model, &scene.state, map, &roles, &soles)
    }

    /// Adds a motion from elsewhere to the clips of the character, called as its clip or its file is; the name that it got.
    pub fn add_motion(&self, imported: &mut Imported, source: &Source) -> Result<String, FileError> {
        let taken = self.take_on(imported, source, &[])?;
        let text = source.path.to_string_lossy();
        let (file, clip) = text.rsplit_once('#').map_or((&*text, None), |(file, clip)| (file, Some(clip)));
        let stem = Path::new(file).file_stem().map(|stem| stem.to_string_lossy().into_owned());
        let wanted = clip.map(str::to_owned).or(stem).unwrap_or_else(|| "motion".into());
        let taken_already = |name: &str| imported.clips.iter().any(|clip| clip.name() == name);
        let numbered = (2..).map(|k| format!("{wanted} {k}"));
        let name =
            std::iter::once(wanted.clone()).chain(numbered).find(|name| !taken_already(name)).unwrap_or_default();
        let motion = &taken.motion;
        let poses = (0..motion.frames()).flat_map(|frame| motion.frame(frame).to_vec()).collect();
        let named = Motion::new(&name, motion.rate(), motion.bodies(), poses, motion.ending());
        imported.clips.extend(named.map(Arc::new));
        Ok(name)
    }

    /// Measures a motion from elsewhere on the character.
    pub fn measure_taken(&self, imported: &Imported, on: &Retargeted) -> Taken {
        let soles = self.soles(imported);
        let motion = &on.motion;
        let mut taken = Taken { seconds: motion.seconds(), ..Taken::default() };
        let (mut slides, mut heights, mut count) = (0.0, 0.0, 0.0);
        for Planted { body, frames, point, .. } in &on.planted {
            let at = |frame: usize| motion.frame(frame)[*body].transform_point(*point);
            for frame in frames.0..frames.1 {
                let far = at(frame + 1) - at(frame);
                let speed = far.x.hypot(far.z) * motion.rate();
                let low = soles.iter().filter(|sole| sole.leg[2] == *body).map(|sole| off_ground(sole, motion, frame));
                (slides, heights, count) = (slides + speed, heights + low.fold(0.0, f64::max), count + 1.0);
                taken.slide_max = taken.slide_max.max(speed);
            }
        }
        if count > 0.0 {
            (taken.slide_mean, taken.foot_height) = (slides / count, heights / count);
        }
        taken.planted = count / motion.rate();
        let misfits = on.pairs.iter().map(|pair| pair.misfit);
        taken.angle_error = (misfits.sum::<f64>() / on.pairs.len().max(1) as f64).to_degrees();
        taken
    }

    /// Where the nodes are that hang on that of a bone, and go with it.
    fn below(&self, bone: usize) -> Vec<DVec3> {
        let (document, node) = (&self.document, self.rig.bones[bone].node);
        let goes_along = |n: &usize| document.parents[*n] == Some(node) && self.rig.bone_of_node[*n] == Some(bone);
        document.order.iter().copied().filter(goes_along).map(|n| document.world[n].translation).collect()
    }

    /// The soles of a figure's feet.
    fn soles(&self, imported: &Imported) -> Vec<Sole> {
        let (rig, model, roles) = (&self.rig, &imported.scene.model, self.rig.roles());
        let mut points: Vec<Vec<DVec3>> = vec![Vec::new(); rig.bones.len()];
        for mesh in self.meshes.iter() {
            for (v, place) in mesh.vertices.iter().enumerate() {
                let most = mesh.influences(v).iter().max_by(|a, b| a.weight.total_cmp(&b.weight));
                if let Some(bone) = most.and_then(|influence| rig.bone_of_node[influence.node]) {
                    points[bone].push(*place);
                }
            }
        }
        let find = |part: Part, side: Side| roles.iter().position(|role| *role == Some((part, side)));
        let least = |list: &[DVec3]| list.iter().map(|p| p.y).fold(f64::INFINITY, f64::min);
        let mut soles = Vec::new();
        for side in [Side::Left, Side::Right] {
            let leg = [Part::Thigh, Part::Shin, Part::Foot].map(|part| find(part, side));
            let [Some(thigh), Some(calf), Some(foot)] = leg else { continue };
            let toe = find(Part::Toe, side).filter(|toe| rig.bones[*toe].parent == Some(foot));
            let toe_points = toe.map(|toe| points[toe].clone()).unwrap_or_default();
            let ground = least(&points[foot]).min(least(&toe_points));
            if !ground.is_finite() {
                continue;
            }
            let ankle = rig.bones[foot].pivot();
            let tip = match toe {
                Some(toe) => rig.bones[toe].pivot() - ankle,
                None => tip(&points[foot], ankle, rig.forward(), &self.below(foot)),
            };
            // The ball is where toes begin; a foot without any stands on seven tenths of its length, and one that has no sole there on what is lowest of it.
            let low = ground + 0.25 * (ankle.y - ground);
            let is_sole = |p: &DVec3| p.y < low && (*p - ankle).dot(tip) > 0.4 * tip.length_squared();
            let lowest = points[foot].iter().min_by(|a, b| a.y.total_cmp(&b.y));
            let ball = match (toe, lowest) {
                (None, Some(lowest)) if !points[foot].iter().any(is_sole) => *lowest,
                (None, _) => ankle + tip * 0.7,
                (Some(_), _) => ankle + tip,
            };
            let within = |b: usize, p: DVec3| model.bodies()[b].start.inverse().transform_point(p);
            soles.push(Sole {
                side,
                leg: [thigh, calf, foot],
                toe,
                ball: within(foot, DVec3::new(ball.x, ground, ball.z)),
                tip: within(foot, ankle + tip),
                foot_points: points[foot].iter().map(|p| within(foot, *p)).collect(),
                toe_points: toe.map_or(Vec::new(), |toe| toe_points.iter().map(|p| within(toe, *p)).collect()),
                ground,
            });
        }
        // One ground for both.
        let ground = soles.iter().map(|sole| sole.ground).fold(f64::INFINITY, f64::min);
        soles.iter_mut().for_each(|sole| sole.ground = ground);
        soles
    }
}

/// From the ankle to the tip of a foot, level: along the foot, which is to a node before it that it carries, such as an end or toes without a vertex; else to where most of
/// it is; where it is as much behind the ankle as before it, to where the body looks.
fn tip(points: &[DVec3], ankle: DVec3, forward: Option<DVec3>, nodes: &[DVec3]) -> DVec3 {
    let level = |p: DVec3| DVec3::new(p.x - ankle.x, 0.0, p.z - ankle.z);
    let middle = points.iter().map(|p| level(*p)).sum::<DVec3>() / points.len().max(1) as f64;
    let size = points.iter().map(|p| level(*p).length()).fold(0.0, f64::max);
    let ahead = |d: &DVec3| d.length() > 0.3 * size && forward.is_none_or(|f| f.dot(*d) > 0.5 * d.length());
    let told = nodes.iter().map(|p| level(*p)).filter(ahead).max_by(|a, b| a.length().total_cmp(&b.length()));
    let clear = Some(middle).filter(|m| m.length() > 0.2 * size);
    let Some(along) = told.or(clear).or(forward).and_then(DVec3::try_normalize) else { return DVec3::ZERO };
    let reach = points.iter().map(|p| level(*p).dot(along)).fold(0.0, f64::max);
    along * reach + middle.reject_from_normalized(along)
}

/// How far the lowest vertex of a foot is from the ground \[m\].
fn off_ground(sole: &Sole, motion: &Motion, frame: usize) -> f64 {
    (lowest(sole, |body| motion.frame(frame)[body]) - sole.ground).abs()
}

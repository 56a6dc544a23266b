//! The figure of a recording itself: a body for every joint, with capsules along its bones, that follows the recorded motion.

use crate::bvh::{Bvh, Channel};
use crate::retarget::{Followed, by_names, up_of};
use crate::{FileError, Imported, InputFile, Link, Note, motion};
use glam::{DQuat, DVec3};
use std::path::Path;
use std::sync::Arc;
use supple::maths::rotation::between;
use supple::{
    BodyId, BodyRef, BodySpec, BodyState, Ending, Input, JointMask, JointSpec, ModelBuilder, Motion, Pose, Scene, Shape,
};

/// Height of a figure whose own height is not that of a person in metres \[m\].
const HEIGHT: f64 = 1.7;
/// Thickness of bones, as a part of their length, and least and most of it, as parts of the height.
const THICKNESS: (f64, f64, f64) = (0.12, 0.006, 0.04);
/// \[kg/m³\]
const DENSITY: f64 = 1000.0;

/// What a file of motion alone becomes: its skeleton, moved by its motion.
pub(crate) fn open(file: InputFile) -> Result<Imported, FileError> {
    let path = file.path().to_owned();
    build(&path, &motion::recording(file, None)?)
}

/// What a recording becomes.
pub(crate) fn build(path: &Path, recording: &Bvh) -> Result<Imported, FileError> {
    let mut notes = Vec::new();
    let mut note = |code, text: String| notes.push(Note { code, part: path.to_string_lossy().into_owned(), text });
    let rest = recording.rest();
    let turn = between(up_of(&by_names(recording), &rest), DVec3::Y);
    let heights = rest.iter().zip(&recording.joints).flat_map(|(pose, joint)| {
        let ends = joint.ends.iter().map(|end| pose.transform_point(*end)).chain([pose.translation]);
        ends.map(|p| (turn * p).y).collect::<Vec<_>>()
    });
    let (low, high) = heights.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), y| (a.min(y), b.max(y)));
    let height = high - low;
    if !(height > 1e-9 && height.is_finite()) {
        return Err(FileError::new("file/bvh", path, "its skeleton has no height", "give a figure with bones"));
    }
    let scale = if (0.5..2.6).contains(&height) { 1.0 } else { HEIGHT / height };
    if scale != 1.0 {
        note("import/scale", format!("it is {height:.2} high, which is no person in metres: scaled to {HEIGHT} m"));
    }
    if recording
        .joints
        .iter()
        .any(|joint| joint.parent.is_some() && joint.channels.iter().any(|c| matches!(c, Channel::Position(_))))
    {
        note("import/clip", "joints within the figure have positions of their own: they stay at their offsets".into());
    }
    let first = usize::from(recording.begins_at_rest());
    if first == 1 {
        note("import/rest-frame", "its first frame is a rest pose from which it jumps: left out".into());
    }

    notes.extend(recording.jump_note(path, first));

    // Bodies at rest; link frames at the joints, with the axes of the recording turned upright.
    let height = height * scale;
    let place = |pose: &Pose| Pose::new(turn * pose.rotation, turn * pose.translation * scale);
    let mut builder = ModelBuilder::new();
    let mut ids = Vec::new();
    let mut names = std::collections::BTreeSet::new();
    for (j, joint) in recording.joints.iter().enumerate() {
        let mut name = if joint.name.is_empty() { format!("joint {j}") } else { joint.name.clone() };
        if !names.insert(name.clone()) {
            name = format!("{name} {j}");
            names.insert(name.clone());
        }
        let children = recording.joints.iter().filter(|child| child.parent == Some(j)).map(|child| child.offset);
        let bones: Vec<DVec3> = children
            .chain(joint.ends.iter().copied())
            .map(|end| end * scale)
            .filter(|b| b.length() > 1e-3 * height)
            .collect();
        let mut spec = BodySpec::new(name).pose(place(&rest[j]));
        for bone in &bones {
            let length = bone.length();
            let radius = (THICKNESS.0 * length).clamp(THICKNESS.1 * height, THICKNESS.2 * height);
            let along = Pose::new(between(DVec3::X, *bone / length), *bone * 0.5);
            spec = spec.shape_at(Shape::capsule((length - 2.0 * radius).max(0.0), radius), DENSITY, along);
        }
        if bones.is_empty() {
            spec = spec.shape(Shape::sphere(2.0 * THICKNESS.1 * height), DENSITY);
        }
        ids.push(builder.body(spec));
    }
    for (j, joint) in recording.joints.iter().enumerate() {
        if let Some(parent) = joint.parent {
            let spec =
                JointSpec::new(format!("joint {j} {}", joint.name), JointMask::BALL, ids[j], BodyRef::Id(ids[parent]));
            builder.joint(spec.frames(Pose::IDENTITY, Pose::at(joint.offset * scale)));
        }
    }
    let failed = |e: supple::ModelError| {
        let problem = &e.problems[0];
        FileError::new("file/model", path, problem.what.clone(), problem.remedy.clone()).at(problem.part.clone())
    };
    // Trackers need the masses that the shapes give.
    let plain = builder.clone().build().map_err(failed)?;
    for (b, body) in plain.bodies().iter().enumerate() {
        let held = recording.joints[b].parent.map(|_| -body.centre_in_link);
        let followed = Followed { mass: body.mass, inertia: body.inertia, centre_in_link: body.centre_in_link, held };
        builder.tracker(followed.tracker(BodyId(b as u32), body.name.clone()));
    }
    let model = builder.build().map_err(failed)?;

    let mut poses = Vec::with_capacity((recording.frames() - first) * ids.len());
    let mut turned: Vec<Pose> = Vec::with_capacity(ids.len());
    for f in first..recording.frames() {
        let frame = recording.frame(f);
        turned.clear();
        for (j, joint) in recording.joints.iter().enumerate() {
            let pose = match joint.parent {
                None => place(&frame[j]),
                Some(parent) => {
                    let local: DQuat = frame[parent].rotation.conjugate() * frame[j].rotation;
                    turned[parent].then(Pose::new(local, joint.offset * scale))
                }
            };
            turned.push(pose);
        }
        poses.extend(
            turned
                .iter()
                .zip(model.bodies())
                .map(|(pose, body)| Pose::new(pose.rotation.normalize(), pose.transform_point(body.centre_in_link))),
        );
    }
    let name = path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
    let motion = Motion::new(name, 1.0 / recording.frame_time, ids.len(), poses, Ending::Hold).map(Arc::new);
    let too_large =
        || FileError::new("file/bvh", path, "its numbers are too large for a motion", "correct the recording");
    let motion = motion.ok_or_else(too_large)?;

    let mut state = model.start();
    for (b, body) in state.bodies.iter_mut().enumerate() {
        let start = motion.at(0.0, b);
        *body = BodyState { velocity: start.velocity, ..BodyState::at_rest(start.pose) };
    }
    state.recount_turns(&model);
    let link = |(j, body): (usize, &supple::Body)| Link {
        name: recording.joints[j].name.clone(),
        node: Some(j),
        body_from_link: Pose::at(-body.centre_in_link),
    };
    let links = model.bodies().iter().enumerate().map(link).collect();
    let scene = Scene::from_parts(path.to_string_lossy(), model, state, Input::default());
    let scene = scene.follow(motion.clone()).ok_or_else(too_large)?;
    let (meshes, things, clips) = (Vec::new(), Vec::new(), vec![motion]);
    let cast = crate::Cast::default();
    Imported { source: path.to_owned(), scene, links, clips, meshes, notes, things, cast }.within_reach()
}

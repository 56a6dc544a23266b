//! Scene files: a character, what is changed of its rig, what stands around it and what happens to it.

mod keyframes;
mod schema;
mod shapes;
mod simulation;
mod skin;
mod write;

use crate::imported::{MOST_LENGTH, far_away, stands_near};
use crate::rig::{Rig, TOLD};
use crate::{
    Character, FileError, Imported, InputFile, JointFrom, RigOptions, Source, SpringFrom, ThingTold, Turn, plain,
    split_clip,
};
use glam::{DQuat, DVec3};
pub use schema::{BoneChange, JointKind};
use schema::{FloorEdit, HitsEdit, ObstacleEdit, SceneFile};
pub(crate) use shapes::{Shaped, note};
use std::collections::BTreeMap;
use std::ops::Range as Span;
use std::sync::Arc;
use supple::maths::rotation;
use supple::model::RotationKind;
use supple::scenes::{Happenings, Pull, Push};
use supple::{
    BodyId, BodyState, Drag, Material, ObstacleShape, ObstacleSpec, Pose, Range, Scene, Shape, State, States,
    SwingEllipse, TrackerId,
};

/// The JSON schema of scene files, for editors.
pub fn scene_schema() -> String {
    let schema = schemars::schema_for!(SceneFile);
    let mut text = serde_json::to_string_pretty(&schema).unwrap_or_default();
    text.push('\n');
    text
}

/// A scene file in memory, to say where in it something is wrong.
struct Text<'a> {
    file: &'a InputFile,
    text: &'a str,
}

impl Text<'_> {
    fn wrong(&self, span: Span<usize>, what: impl Into<String>, remedy: impl Into<String>) -> FileError {
        let before = self.text.get(..span.start).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        FileError::new("file/scene", self.file.path(), what, remedy).at(format!("line {line}, column {column}"))
    }

    /// A file that it names.
    fn beside(&self, name: &toml::Spanned<String>) -> Result<InputFile, FileError> {
        self.file
            .beside(name.get_ref())
            .map_err(|e| FileError { code: e.code, ..self.wrong(name.span(), e.what, e.remedy) })
    }
}

/// Reads a scene file and all it names.
pub(crate) fn open(from: &InputFile) -> Result<Imported, FileError> {
    let (character, file) = read(from)?;
    finish(&character, &Text { file: from, text: from.text()? }, &file)
}

/// The character of a scene file, with its changes, for a bake.
pub(crate) fn character(from: &InputFile) -> Result<Character, FileError> {
    read(from).map(|(character, _)| character)
}

fn read(from: &InputFile) -> Result<(Character, SceneFile), FileError> {
    let at = Text { file: from, text: from.text()? };
    let file = parse(&at)?;
    let name = file.character.file.get_ref();
    let endings = [".glb", ".gltf"];
    if name.is_empty() || !endings.iter().any(|e| name.to_lowercase().ends_with(e)) {
        return Err(at.wrong(
            file.character.file.span(),
            format!("\"{name}\" is not a .glb or .gltf file"),
            "give the path of the character from the folder of the scene file",
        ));
    }
    let named = at.beside(&file.character.file)?;
    // What the call asks for goes before what the file does.
    let options = from.rig().or(options(&at, &file)?);
    let mut character = Character::read_with(named, &options)?;
    edit(&mut character, &at, &file)?;
    Ok((character, file))
}

/// What a scene file asks of the rig before it is made.
fn options(at: &Text<'_>, file: &SceneFile) -> Result<RigOptions, FileError> {
    let edit = &file.character;
    let told = |value: &Option<toml::Spanned<f64>>| value.as_ref().map(|value| *value.get_ref());
    let options = RigOptions { mass: told(&edit.mass), scale: told(&edit.scale), height: told(&edit.height) };
    let span = [&edit.mass, &edit.scale, &edit.height].into_iter().flatten().map(toml::Spanned::span).next_back();
    let wrong = |e: FileError| at.wrong(span.unwrap_or(0..0), e.what, e.remedy);
    options.check(at.file.path()).map_err(wrong)?;
    Ok(options)
}

fn parse(at: &Text<'_>) -> Result<SceneFile, FileError> {
    toml::from_str(at.text).map_err(|e| {
        let message = e.message().to_owned();
        at.wrong(e.span().unwrap_or(0..0), message, "see the guide to scene files, or let your editor use the schema")
    })
}

/// Whether a name fits a pattern with `*` and `?`.
pub fn fits(pattern: &str, name: &str) -> bool {
    let (p, n): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    let (mut i, mut k, mut star) = (0, 0, None);
    while k < n.len() {
        if i < p.len() && (p[i] == '?' || p[i] == n[k]) && p[i] != '*' {
            (i, k) = (i + 1, k + 1);
        } else if i < p.len() && p[i] == '*' {
            star = Some((i, k));
            i += 1;
        } else if let Some((at, from)) = star {
            // The star takes one letter more.
            star = Some((at, from + 1));
            (i, k) = (at + 1, from + 1);
        } else {
            return false;
        }
    }
    p[i..].iter().all(|c| *c == '*')
}

/// The bone of a name, or what is wrong with it.
fn bone_index(rig: &Rig, text: &Text<'_>, name: &toml::Spanned<String>) -> Result<usize, FileError> {
    let wanted = name.get_ref();
    rig.bones.iter().position(|b| b.name == *wanted).ok_or_else(|| {
        text.wrong(
            name.span(),
            format!("there is no bone \"{wanted}\""),
            "`supple inspect` of the character lists its bones",
        )
    })
}

/// Changes the rig as the file says.
fn edit(character: &mut Character, text: &Text<'_>, file: &SceneFile) -> Result<(), FileError> {
    let (rig, shaped) = (&mut character.rig, &mut character.shaped);
    if let Some(told) = &file.character.mass_scale {
        let scale = *told.get_ref();
        if !TOLD.contains(&scale) {
            let remedy = format!("give a number from {} to {}", plain(*TOLD.start()), plain(*TOLD.end()));
            return Err(text.wrong(told.span(), format!("mass_scale is {}", plain(scale)), remedy));
        }
        rig.scale_mass(scale);
    }
    for (pattern, change) in &file.bones {
        let mut any = false;
        for bone in rig.bones.iter_mut().filter(|bone| fits(pattern.get_ref(), &bone.name)) {
            any = true;
            change_bone(bone, change).map_err(|what| {
                let what = format!("bone \"{}\": {what}", bone.name);
                text.wrong(pattern.span(), what, "correct the value, or take it out")
            })?;
            shapes::note(shaped, &bone.name, change);
        }
        if !any {
            let what = format!("no bone fits \"{}\"", pattern.get_ref());
            return Err(text.wrong(pattern.span(), what, "`supple inspect` of the character lists its bones"));
        }
    }
    if let Some(floor) = &file.floor {
        match *floor.get_ref() {
            FloorEdit::Present(true) => {}
            FloorEdit::Present(false) => rig.floor = None,
            FloorEdit::Height(height) if height.abs() < MOST_LENGTH => rig.floor = Some(height),
            FloorEdit::Height(height) => {
                let what = format!("the floor's height is {}", plain(height));
                let remedy = format!("give metres, within {MOST_LENGTH} of the ground, or false");
                return Err(text.wrong(floor.span(), what, remedy));
            }
        }
    }
    for obstacle in &file.obstacles {
        rig.obstacles.push(obstacle_spec(obstacle).map_err(|(what, remedy)| {
            let what = format!("obstacle \"{}\": {what}", obstacle.name.get_ref());
            text.wrong(obstacle.name.span(), what, remedy)
        })?);
    }
    Ok(())
}

/// The obstacle, or what is wrong with it and the remedy.
fn obstacle_spec(edit: &ObstacleEdit) -> Result<ObstacleSpec, (String, String)> {
    let kinds = "give one of box, sphere or capsule with positive lengths";
    let shape = match (edit.cuboid, edit.sphere, edit.capsule) {
        (Some([x, y, z]), None, None) => Shape::cuboid(x, y, z),
        (None, Some(radius), None) => Shape::sphere(radius),
        (None, None, Some([length, radius])) => Shape::capsule(length, radius),
        _ => return Err(("it has no shape, or several".into(), kinds.into())),
    };
    shape.solid().map_err(|fault| (fault.to_string(), kinds.into()))?;
    let turn = DVec3::from(edit.rotation.map(f64::to_radians));
    let pose = Pose::new(rotation::exp(turn), DVec3::from(edit.position));
    if !(pose.is_finite() && stands_near(pose.translation, &ObstacleShape::Solid(shape.clone()))) {
        return Err((far_away(), "correct its place or its size".into()));
    }
    let material = Material::new(edit.friction.unwrap_or(Material::default().friction), 0.0);
    let material = material.rolling(edit.rolling.unwrap_or(0.0));
    if let Some((what, remedy)) = material.fault() {
        return Err((what, remedy.into()));
    }
    Ok(ObstacleSpec::solid(edit.name.get_ref(), shape).pose(pose).material(material))
}

/// What is wrong with the change, if anything.
pub(crate) fn change_bone(bone: &mut crate::Bone, change: &BoneChange) -> Result<(), String> {
    let within = |value: Option<f64>, name: &str, low: f64, high: f64| match value {
        Some(x) if !(x.is_finite() && x >= low && x <= high) => {
            Err(format!("{name} is {}, and must be from {} to {}", plain(x), plain(low), plain(high)))
        }
        other => Ok(other),
    };
    bone.mass = within(change.mass, "mass", 1e-9, 1e9)?.unwrap_or(bone.mass);
    bone.sag = within(change.sag, "sag", 0.001, 180.0)?.map_or(bone.sag, f64::to_radians);
    bone.settle = within(change.settle, "settle", 0.001, 1000.0)?.unwrap_or(bone.settle);
    bone.strength = within(change.strength, "strength", 0.0, 1e6)?.unwrap_or(bone.strength);
    let (width, length) = (within(change.width, "width", 0.05, 20.0)?, within(change.length, "length", 0.05, 20.0)?);
    if width.is_some() || length.is_some() {
        shapes::stretch(&mut bone.shapes, width.unwrap_or(1.0), length.unwrap_or(1.0));
    }
    match (change.sag, change.settle, bone.spring_from) {
        (Some(_), _, _) => (bone.spring_from, bone.swing) = (SpringFrom::Scene, None),
        (None, Some(_), SpringFrom::File) => (bone.spring_from, bone.swing) = (SpringFrom::Asked, None),
        _ => {}
    }
    let pair = |value: Option<[f64; 2]>, name: &str| match value {
        Some([a, b]) if !(a <= b && a.is_finite() && b.is_finite()) => {
            Err(format!("{name} is {} … {}: the lower end comes first", plain(a), plain(b)))
        }
        other => Ok(other.map(|[a, b]| Range::new(a.to_radians(), b.to_radians()))),
    };
    let (range, twist) = (pair(change.range, "range")?, pair(change.twist, "twist")?);
    let axis = match change.axis {
        None => None,
        Some(axis) => Some(DVec3::from(axis).try_normalize().ok_or("axis has no direction")?),
    };
    let swing = match change.swing {
        None => None,
        Some([side, bend]) if [side, bend].iter().all(|x| *x > 0.0 && *x <= 180.0) => {
            Some(SwingEllipse { about_y: side.to_radians(), about_z: bend.to_radians() })
        }
        Some([side, bend]) => {
            return Err(format!("swing is {} × {}, and must be above 0 and up to 180", plain(side), plain(bend)));
        }
    };
    match (change.joint, bone.joint) {
        (Some(JointKind::Hinge), Turn::Ball { frame, swing, .. }) => {
            // It goes on bending as far as it did.
            let range = Range::new(-swing.about_z, swing.about_z);
            bone.joint = Turn::Hinge { axis: frame * DVec3::Z, range };
        }
        (Some(JointKind::Ball), Turn::Hinge { axis, range }) => {
            let x = axis.any_orthonormal_vector();
            let frame = DQuat::from_mat3(&glam::DMat3::from_cols(x, axis.cross(x), axis)).normalize();
            let bend = range.max.abs().max(range.min.abs()).clamp(0.02, std::f64::consts::PI);
            let swing = SwingEllipse { about_y: 0.5, about_z: bend };
            bone.joint = Turn::Ball { frame, middle: 0.0, swing, twist: Range::new(-0.5, 0.5) };
        }
        _ => {}
    }
    let given = range.is_some() || twist.is_some() || axis.is_some() || swing.is_some() || change.joint.is_some();
    let hinge = bone.axis().is_some();
    match &mut bone.joint {
        Turn::Given(joint) => {
            if axis.is_some() || change.joint.is_some() {
                return Err("its joint is that of the file: range, or swing and twist, can be given".into());
            }
            if range.is_some() && !hinge {
                return Err("it is no hinge: give swing and twist".into());
            }
            if (swing.is_some() || twist.is_some()) && joint.mask.rotation() != RotationKind::Free {
                return Err("it is no ball: give range".into());
            }
            let rest = joint.angle_at_rest();
            let range = range.map(|r| Range::new(r.min + rest, r.max + rest));
            joint.limits.angle = range.or(twist).or(joint.limits.angle);
            joint.limits.swing = swing.or(joint.limits.swing);
        }
        Turn::Hinge { axis: old_axis, range: old_range } => {
            if swing.is_some() || twist.is_some() {
                return Err("it is a hinge: give axis and range, or joint = \"ball\"".into());
            }
            (*old_axis, *old_range) = (axis.unwrap_or(*old_axis), range.unwrap_or(*old_range));
        }
        Turn::Ball { swing: old_swing, twist: old_twist, .. } => {
            if range.is_some() || axis.is_some() {
                return Err("it is a ball: give swing and twist, or joint = \"hinge\"".into());
            }
            (*old_swing, *old_twist) = (swing.unwrap_or(*old_swing), twist.unwrap_or(*old_twist));
        }
    }
    if given && bone.parent.is_some() {
        bone.joint_from = JointFrom::Scene;
    }
    Ok(())
}

/// Pose, clip, pushes and settings on top of the character's scene.
fn finish(character: &Character, text: &Text<'_>, file: &SceneFile) -> Result<Imported, FileError> {
    let mut imported = character.imported(&text.file.path().to_string_lossy())?;
    imported.source = text.file.path().to_owned();
    if !(file.skin.is_empty() && file.painted.is_empty()) {
        imported = skin::skinned(&imported, character, text, file)?;
    } else if let Some(layer) = &file.layer {
        let what = "a layer is told of, and no bone or painted group has soft skin";
        return Err(text.wrong(layer.span(), what, "add [skin.\"*\"], or leave [layer] out"));
    }
    let Scene { model, input, .. } = &mut imported.scene;
    file.simulation.apply(text, model, input)?;
    if let Some((bone, _)) = file.pose.first_key_value() {
        if is_led(file) {
            let what = "the start is that of the clip or of the first keyframe";
            return Err(text.wrong(bone.span(), what, "leave out [pose], or the clip or keyframes"));
        }
        let turns = turns(&character.rig, text, &file.pose)?;
        pose(&character.rig, &imported.scene, &turns, DVec3::ZERO).clone_into(&mut imported.scene.state);
    }
    if let Some(clip) = keyframes::motion(&character.rig, &imported.scene, text, file)? {
        imported.scene = imported.led_by(&clip).ok_or_else(|| {
            let first = file.keyframes.first().map_or(0..0, |key| key.at.span());
            text.wrong(first, "the keyframes have other bodies than the rig", "leave them out")
        })?;
        imported.scene.name = text.file.path().to_string_lossy().into_owned();
    }
    if let Some(name) = &file.character.track {
        let clip = if Source::is_file(name.get_ref()) {
            let (path, clip) = split_clip(name.get_ref());
            let at = |e: FileError| FileError { code: e.code, ..text.wrong(name.span(), e.what, e.remedy) };
            let source = text.file.beside(path).and_then(|named| Source::read(named, clip)).map_err(at)?;
            let on = character.take_on(&imported, &source, &[]).map_err(at)?;
            imported.notes.extend(on.notes);
            let motion = Arc::new(on.motion);
            imported.clips.push(motion.clone());
            motion
        } else {
            imported.clip(name.get_ref()).cloned().map_err(|e| text.wrong(name.span(), e.what, e.remedy))?
        };
        let others = || text.wrong(name.span(), "the clip has other bodies than the rig", "leave `track` out");
        imported.scene = imported.following(&clip).ok_or_else(others)?;
        imported.scene.name = text.file.path().to_string_lossy().into_owned();
    }
    let things: Vec<ThingTold> = file.things.iter().map(|told| told.get_ref().clone()).collect();
    if let Some(first) = file.things.first() {
        let at = |e: FileError| FileError { code: e.code, ..text.wrong(first.span(), e.what, e.remedy) };
        let open = |name: &str| Character::read(text.file.beside(name)?).map(Some);
        imported.cast.call(Some(character), &things, open).map_err(at)?;
        imported
            .furnish(things)
            .map_err(|what| text.wrong(first.span(), what, "see [[things]] in the guide to scene files"))?;
    }
    let happenings = happenings(character, text, file, &imported.scene)?;
    if happenings != Happenings::default() {
        imported.scene = imported.scene.with(happenings);
    }
    let states = states(&imported.scene, text, file)?;
    let first = file.states.first().map(|s| s.at.span()).or(file.hits.as_ref().map(toml::Spanned::span));
    let wrong =
        |e: supple::tone::ToneError| text.wrong(first.clone().unwrap_or(0..0), e.to_string(), "correct the state");
    imported.scene = imported.scene.with_states(states).map_err(wrong)?;
    imported.within_reach()
}

/// Changes of state and the answer to blows.
fn states(scene: &Scene, text: &Text<'_>, file: &SceneFile) -> Result<States, FileError> {
    let mut states = States::default();
    for told in &file.states {
        let mut bodies = Vec::new();
        for pattern in &told.bones {
            let bones = &scene.model.bodies()[..scene.model.bodies().len() - scene.things()];
            let fit = bones.iter().enumerate().filter(|(_, body)| fits(pattern.get_ref(), &body.name));
            let before = bodies.len();
            bodies.extend(fit.map(|(k, _)| BodyId(k as u32)));
            if bodies.len() == before {
                let what = format!("no bone fits \"{}\"", pattern.get_ref());
                return Err(text.wrong(pattern.span(), what, "`supple inspect` of the character lists its bones"));
            }
        }
        let change = supple::tone::Change::named(&told.state, told.blend, told.strength)
            .map_err(|e| text.wrong(told.at.span(), e.to_string(), "correct the state"))?;
        states.keys.push((*told.at.get_ref(), supple::tone::Change { bodies, ..change }));
    }
    states.hits = file.hits.as_ref().map(|hits| {
        let HitsEdit { impulse, recovery } = hits.get_ref();
        supple::tone::Hits { impulse: *impulse, recovery: recovery.unwrap_or(0.8) }
    });
    Ok(states)
}

/// Pushes, pulls and letting go.
fn happenings(
    character: &Character,
    text: &Text<'_>,
    file: &SceneFile,
    scene: &Scene,
) -> Result<Happenings, FileError> {
    let mut happenings = Happenings::default();
    let finite = |numbers: &[f64]| numbers.iter().all(|x| x.is_finite() && x.abs() < 1e9);
    for push in &file.pushes {
        let body = BodyId(bone_index(&character.rig, text, &push.bone)? as u32);
        if !(finite(&[push.from, push.to]) && finite(&push.force)) {
            return Err(text.wrong(push.bone.span(), "a time or force is not finite", "give seconds and newtons"));
        }
        happenings.pushes.push(Push { body, from: push.from, to: push.to, force: DVec3::from(push.force) });
    }
    for pull in &file.pulls {
        let body = BodyId(bone_index(&character.rig, text, &pull.bone)? as u32);
        // k = m g / 5 cm, critical damping
        let mass = scene.model.mass();
        let stiffness = pull.stiffness.unwrap_or(mass * 9.81 / 0.05);
        if !(finite(&[pull.from, pull.to, stiffness]) && finite(&pull.target) && stiffness >= 0.0) {
            let what = "a time, place or stiffness is not finite, or negative";
            return Err(text.wrong(pull.bone.span(), what, "give seconds, metres and N/m"));
        }
        if DVec3::from(pull.target).length() >= MOST_LENGTH {
            let what = format!("its target is more than {MOST_LENGTH} m away");
            return Err(text.wrong(pull.bone.span(), what, "give a place near the character"));
        }
        let drag = Drag {
            body,
            point: DVec3::ZERO,
            target: DVec3::from(pull.target),
            target_velocity: DVec3::ZERO,
            stiffness,
            damping: 2.0 * (stiffness * mass).sqrt(),
        };
        happenings.pulls.push(Pull { drag, from: pull.from, to: pull.to });
    }
    if let Some((span, at)) = let_go(text, file)? {
        // Trackers by body come first, then the holds.
        let holds = character.rig.bones.len()..scene.model.trackers().len();
        let held = |k: &usize| scene.input.targets.get(*k).is_some_and(Option::is_some);
        if !holds.clone().any(|k| held(&k)) {
            let what = match is_led(file) {
                true => "the roots are led by the clip or the keyframes, not held",
                false => "no root of the character is held",
            };
            return Err(text.wrong(span, what, "take it out"));
        }
        happenings.releases.extend(holds.map(|k| (TrackerId(k as u32), at)));
    }
    Ok(happenings)
}

/// Whether a clip or keyframes lead the character.
fn is_led(file: &SceneFile) -> bool {
    file.character.track.is_some() || !file.keyframes.is_empty()
}

/// When the hold of the roots lets go, and where that is told: `release`, or `hold = false` for the start.
fn let_go(text: &Text<'_>, file: &SceneFile) -> Result<Option<(Span<usize>, f64)>, FileError> {
    let not_held = file.simulation.hold.as_ref().filter(|hold| !*hold.get_ref());
    match (&file.release, not_held) {
        (Some(_), Some(hold)) => Err(text.wrong(
            hold.span(),
            "nothing is held, so that nothing can be released",
            "leave out hold or release",
        )),
        (Some(told), None) => {
            let at = *told.get_ref();
            if !(at.is_finite() && at >= 0.0) {
                return Err(text.wrong(told.span(), format!("release is {}", plain(at)), "give seconds, 0 or more"));
            }
            Ok(Some((told.span(), at)))
        }
        (None, hold) => Ok(hold.map(|hold| (hold.span(), 0.0))),
    }
}

/// By bone: how it is turned from rest, as a rotation vector.
fn turns(
    rig: &Rig,
    text: &Text<'_>,
    told: &BTreeMap<toml::Spanned<String>, [f64; 3]>,
) -> Result<Vec<DVec3>, FileError> {
    let mut turns = vec![DVec3::ZERO; rig.bones.len()];
    for (name, turn) in told {
        if turn.iter().any(|x| !x.is_finite() || x.abs() > 360.0) {
            return Err(text.wrong(name.span(), "an angle is not within 360°", "give degrees"));
        }
        turns[bone_index(rig, text, name)?] = DVec3::from(turn.map(f64::to_radians));
    }
    Ok(turns)
}

/// The state in which bones are turned from rest, each with all that hangs on it, and the roots shifted.
fn pose(rig: &Rig, scene: &Scene, turns: &[DVec3], shift: DVec3) -> State {
    let mut state = scene.state.clone();
    let mut links: Vec<Pose> = Vec::with_capacity(rig.bones.len());
    for (i, bone) in rig.bones.iter().enumerate() {
        // What the bone above did to the world at rest, then the bone's own turn about its joint.
        let above = bone.parent.map_or(Pose::at(shift), |p| links[p].then(rig.bones[p].link.inverse()));
        let turned = Pose::new(rotation::exp(turns[i]) * bone.link.rotation, bone.link.translation);
        let link = above.then(turned);
        let centre = scene.model.bodies()[i].centre_in_link;
        state.bodies[i] = BodyState::at_rest(link.then(Pose::at(centre)));
        links.push(link);
    }
    state.recount_turns(&scene.model);
    state
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit() {
        for (pattern, name) in [
            ("arm*", "arm.l"),
            ("*.l", "hand.l"),
            ("?humb_0*", "thumb_01.r"),
            ("*", ""),
            ("a*b*c", "aXbYbZc"),
            ("arm", "arm"),
        ] {
            assert!(fits(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [("arm", "arm.l"), ("*.l", "hand.r"), ("?", ""), ("a*b", "acd"), ("", "a")] {
            assert!(!fits(pattern, name), "{pattern} {name}");
        }
    }

    #[test]
    fn faults_have_line_and_column() {
        let file = InputFile::sent("scene.toml", Vec::new());
        let fault = |text: &str| parse(&Text { file: &file, text }).expect_err(text);
        let error = fault("[character]\nfile = \"a.glb\"\n[bones.arm]\nmas = 3\n");
        assert_eq!(error.place.as_deref(), Some("line 4, column 1"));
        assert!(error.what.contains("mas") && error.what.contains("mass"), "{error}");
        let error = fault("[character]\nfile = 3\n");
        assert_eq!(error.place.as_deref(), Some("line 2, column 8"));
        let error = fault("[character\n");
        assert_eq!(error.code, "file/scene");
    }

    #[test]
    fn the_schema_in_the_documents_is_that_of_the_program() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/scene.schema.json");
        let stored = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(stored, scene_schema(), "write it anew with `supple rig --schema > docs/scene.schema.json`");
    }
}

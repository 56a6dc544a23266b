//! A motion made of keyframes in a scene file.

use super::schema::SceneFile;
use super::{Text, pose, turns};
use crate::rig::Rig;
use crate::{FileError, plain};
use glam::DVec3;
use std::sync::Arc;
use supple::{Ending, Motion, Scene};

/// Poses a second.
const RATE: f64 = 60.0;
/// No motion goes on for longer \[s\].
const MAX_SECONDS: f64 = 600.0;

/// The motion through the keyframes of a file, which holds its last pose; `None` when there are none. Between two of them turns and shifts are eased: they begin and
/// end at rest.
pub(super) fn motion(
    rig: &Rig,
    scene: &Scene,
    text: &Text<'_>,
    file: &SceneFile,
) -> Result<Option<Arc<Motion>>, FileError> {
    let mut keys: Vec<(f64, Vec<DVec3>, DVec3)> = Vec::new();
    for key in &file.keyframes {
        let (at, shift) = (*key.at.get_ref(), DVec3::from(key.shift));
        let after = keys.last().map_or(0.0, |(before, ..)| *before);
        if !(at >= after && at <= MAX_SECONDS) || (at == after && !keys.is_empty()) {
            let what = format!("a keyframe is at {} s, the one before at {} s", plain(at), plain(after));
            let remedy = format!("give rising times from 0 to {MAX_SECONDS} s");
            return Err(text.wrong(key.at.span(), what, remedy));
        }
        if !(shift.is_finite() && shift.length() < 1e4) {
            return Err(text.wrong(key.at.span(), "its shift is not finite, or beyond 10 km", "give metres"));
        }
        keys.push((at, turns(rig, text, &key.pose)?, shift));
    }
    let Some((end, ..)) = keys.last() else { return Ok(None) };
    if let Some(track) = &file.character.track {
        let what = "a clip is followed already";
        return Err(text.wrong(track.span(), what, "leave out `track`, or the keyframes"));
    }
    let frames = (end * RATE).ceil() as usize + 1;
    let mut poses = Vec::with_capacity(frames * rig.bones.len());
    for frame in 0..frames.max(2) {
        let time = frame as f64 / RATE;
        let next = keys.partition_point(|(at, ..)| *at <= time);
        let (a, b) = (&keys[next.saturating_sub(1)], &keys[next.min(keys.len() - 1)]);
        let u = if b.0 > a.0 { ((time - a.0) / (b.0 - a.0)).clamp(0.0, 1.0) } else { 0.0 };
        let eased = u * u * (3.0 - 2.0 * u);
        let turned: Vec<DVec3> = a.1.iter().zip(&b.1).map(|(a, b)| a.lerp(*b, eased)).collect();
        let state = pose(rig, scene, &turned, a.2.lerp(b.2, eased));
        poses.extend(state.bodies.iter().map(|body| body.pose()));
    }
    Ok(Motion::new("keyframes", RATE, rig.bones.len(), poses, Ending::Hold).map(Arc::new))
}

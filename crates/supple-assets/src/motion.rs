//! Motion of any file that has some, as a recording: .bvh as it is; a clip of a .glb, .gltf, .vrm, .vrma or .fbx as the skeleton of its nodes.
//!
//! With `W_j` the rotation of a node in the world, 0 its rest and `p_j` its place, a joint of the recording has no turn at rest, and
//!
//! ```text
//! G_j(t) = W_j(t) W_j(0)⁻¹,   turn in its parent = G_parent⁻¹ G_j,   offset = p_j(0) − p_parent(0)
//! ```

use crate::bvh::{self, Bvh, Channel, Joint};
use crate::gltf::{Clip, Document, rigid};
use crate::imported::MOST_LENGTH;
use crate::{FileError, InputFile, export_bvh};
use glam::{DAffine3, DQuat, DVec3};
use std::path::Path;

/// Endings of files that [`recording`] reads, without the dot.
pub const MOTION_ENDINGS: [&str; 6] = ["bvh", "vrma", "glb", "gltf", "vrm", "fbx"];

/// Frames a second that clips are read with.
const RATE: f64 = 60.0;
/// Most numbers of a recording: longer clips are read with fewer frames.
const MOST_NUMBERS: usize = 8 << 20;

/// Whether the text names a file with motion, with or without a clip after `#`.
pub fn is_recording(text: &str) -> bool {
    MOTION_ENDINGS.contains(&crate::files::ending(Path::new(crate::split_clip(text).0)).as_str())
}

/// The motion of a file: of one with several clips the one of this name, or the only one.
pub fn recording(file: InputFile, clip: Option<&str>) -> Result<Bvh, FileError> {
    if file.ending() == "bvh" {
        if let Some(name) = clip {
            let what = format!("there is no clip \"{name}\": a recording has no clips");
            return Err(FileError::new("file/clip", file.path(), what, "leave the clip out"));
        }
        return bvh::read(&file);
    }
    if !MOTION_ENDINGS.contains(&file.ending().as_str()) {
        let what = format!("\".{}\" is not an ending of a file with motion", file.ending());
        let endings = MOTION_ENDINGS.map(|ending| format!(".{ending}")).join(", ");
        return Err(FileError::new("file/ending", file.path(), what, format!("give one of {endings}")));
    }
    let document = Document::read(file)?;
    let clips = document.clips(&mut Vec::new())?;
    let clip = pick(&document.path, &clips, clip)?;
    of_clip(&document, clip)
}

fn pick<'c>(path: &Path, clips: &'c [Clip], name: Option<&str>) -> Result<&'c Clip, FileError> {
    let names = || clips.iter().map(|clip| clip.name.as_str()).collect::<Vec<_>>().join(", ");
    let refused = |what: String, remedy: String| FileError::new("file/clip", path, what, remedy);
    let Some(name) = name else {
        return match clips {
            [only] => Ok(only),
            [] => Err(refused("the file has no clip".into(), "give a file with motion".into())),
            _ => {
                let remedy = format!("give one after the file's name, as FILE#CLIP: {}", names());
                Err(refused(format!("the file has {} clips", clips.len()), remedy))
            }
        };
    };
    let whole = clips.iter().find(|clip| clip.name == name);
    let lower = name.to_lowercase();
    let mut near = clips.iter().filter(|clip| clip.name.to_lowercase().contains(&lower));
    let near = near.next().filter(|_| near.next().is_none());
    whole
        .or(near)
        .ok_or_else(|| refused(format!("there is no one clip \"{name}\""), format!("give one of {}", names())))
}

/// A clip of nodes as a recording. Joints are the nodes that move, carry a skin or are bones of a human, and all below the first of them.
fn of_clip(document: &Document, clip: &Clip) -> Result<Bvh, FileError> {
    let told = document.human_bones();
    let mut wanted: Vec<bool> = told.iter().map(Option::is_some).collect();
    clip.nodes().for_each(|node| wanted[node] = true);
    for joint in document.root().skins.iter().flat_map(|skin| &skin.joints) {
        wanted[*joint] = true;
    }
    let mut joint_of: Vec<Option<usize>> = vec![None; wanted.len()];
    let (mut nodes, mut joints): (Vec<usize>, Vec<Joint>) = (Vec::new(), Vec::new());
    for &node in &document.order {
        let above = document.parents[node].and_then(|parent| joint_of[parent]);
        joint_of[node] = above;
        if !wanted[node] {
            continue;
        }
        let offset = document.world[node].translation
            - above.map_or(DVec3::ZERO, |j: usize| document.world[nodes[j]].translation);
        // Bones keep their lengths: only what hangs on nothing has a place of its own.
        let mut channels: Vec<Channel> =
            if above.is_none() { [0, 1, 2].map(Channel::Position).to_vec() } else { Vec::new() };
        channels.extend([2, 1, 0].map(Channel::Rotation));
        let name = told[node].clone().unwrap_or_else(|| document.names[node].clone());
        joint_of[node] = Some(joints.len());
        joints.push(Joint { name, parent: above, offset, channels, ends: Vec::new() });
        nodes.push(node);
    }
    if joints.is_empty() {
        let what = "it has no bones that move";
        return Err(FileError::new("file/clip", &document.path, what, "give a file with motion"));
    }
    let rest: Vec<DQuat> = nodes.iter().map(|&node| turn(&document.world[node])).collect();
    let most = (MOST_NUMBERS / (6 * joints.len())).max(2);
    let frames = ((clip.end * RATE).ceil() as usize + 1).clamp(2, most);
    let frame_time = if clip.end > 0.0 { clip.end / (frames - 1) as f64 } else { 1.0 / RATE };
    let mut values = Vec::with_capacity(frames * 6 * joints.len());
    let mut angles = vec![DVec3::ZERO; joints.len()];
    for frame in 0..frames {
        let world = clip.world(document, frame as f64 * frame_time);
        let near = |node: &usize| world[*node].is_finite() && world[*node].translation.length() < MOST_LENGTH;
        if !nodes.iter().all(near) {
            let what = format!("the clip \"{}\" leads more than {MOST_LENGTH} m away", clip.name);
            let remedy = "correct its keys";
            return Err(FileError::new("file/number", &document.path, what, remedy).at(format!("frame {frame}")));
        }
        let turns: Vec<DQuat> =
            nodes.iter().zip(&rest).map(|(&node, rest)| (turn(&world[node]) * rest.conjugate()).normalize()).collect();
        for (j, joint) in joints.iter().enumerate() {
            let above = joint.parent.map(|p| (turns[p], world[nodes[p]].translation));
            let (above, origin) = above.unwrap_or((DQuat::IDENTITY, DVec3::ZERO));
            if joint.parent.is_none() {
                values.extend((above.conjugate() * (world[nodes[j]].translation - origin)).to_array());
            }
            angles[j] = export_bvh::angles_near(above.conjugate() * turns[j], angles[j]);
            values.extend(angles[j].to_array().map(f64::to_degrees));
        }
    }
    Ok(Bvh { joints, frame_time, values })
}

/// The rotation of a node's place.
fn turn(place: &DAffine3) -> DQuat {
    rigid(place.matrix3).unwrap_or(DQuat::IDENTITY)
}

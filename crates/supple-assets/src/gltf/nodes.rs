//! Where the nodes of a file are while its bodies move: every node in its own hierarchy, whatever the tree of bodies is.

use super::document::{Document, Part};
use crate::Character;
use glam::{DAffine3, DQuat, DVec3};
use supple::{Model, Pose};

/// The nodes of a file as bodies carry them.
pub(crate) struct NodePlaces<'c> {
    document: &'c Document,
    /// By node: the body that carries it and its frame in that body's; `None`: it keeps its place in its parent.
    carried: Vec<Option<(usize, DAffine3)>>,
    /// Where nodes are in the world.
    pub(crate) world: Vec<DAffine3>,
    /// Where they are by what is written, rotations and translations alone: the same but for shear.
    pub(crate) written: Vec<DAffine3>,
    /// How far the axes of a node are from what can be written.
    pub(crate) sheared: f64,
}

/// Scale, rotation and translation of a node in its parent.
pub(crate) fn steps(part: &Part) -> (DVec3, DQuat, DVec3) {
    match *part {
        Part::Steps { translation, rotation, scale } => (scale, rotation, translation),
        Part::Matrix(matrix) => matrix.to_scale_rotation_translation(),
    }
}

impl<'c> NodePlaces<'c> {
    pub(crate) fn new(character: &'c Character, model: &Model) -> NodePlaces<'c> {
        let (document, rig) = (&*character.document, &character.rig);
        let mut is_bone = vec![false; document.parents.len()];
        for bone in &rig.bones {
            is_bone[bone.node] = true;
        }
        // A node above bones that carries no vertex, such as the root of a skeleton, stays where it is.
        let mut above_bones = is_bone.clone();
        for &node in document.order.iter().rev() {
            if let Some(parent) = document.parents[node] {
                above_bones[parent] |= above_bones[node];
            }
        }
        let mut shows = vec![false; document.parents.len()];
        for influence in character.meshes.iter().flat_map(|mesh| &mesh.influences) {
            shows[influence.node] = true;
        }
        let mut carrier: Vec<Option<usize>> = vec![None; document.parents.len()];
        let mut carried = vec![None; document.parents.len()];
        for &node in &document.order {
            let above = document.parents[node].and_then(|p| carrier[p]);
            let own = rig.bone_of_node[node];
            let stays = above.is_none() && above_bones[node] && !is_bone[node] && !shows[node];
            carrier[node] = if stays { None } else { own.or(above) };
            if let Some(b) = carrier[node]
                && (is_bone[node] || above != Some(b))
            {
                let start = model.bodies()[b].start;
                let body = DAffine3::from_rotation_translation(start.rotation, start.translation);
                carried[node] = Some((b, body.inverse() * document.world[node]));
            }
        }
        let world = document.world.clone();
        NodePlaces { document, carried, written: world.clone(), world, sheared: 0.0 }
    }

    /// The nodes that are written, in the order of the tree, with the bodies that carry them.
    pub(crate) fn moving(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.document.order.iter().filter_map(|&node| Some((node, self.carried[node]?.0)))
    }

    /// Moves the nodes to where bodies at these poses carry them; calls `write` with the node, rotation and translation of each in its parent.
    pub(crate) fn place(&mut self, poses: &[Pose], mut write: impl FnMut(usize, DQuat, DVec3)) {
        let document = self.document;
        for &node in &document.order {
            let parent = document.parents[node];
            let above = |worlds: &[DAffine3]| parent.map_or(document.world_from_file(), |p| worlds[p]);
            let Some((body, body_from_node)) = self.carried[node] else {
                let local = document.local[node].matrix();
                self.world[node] = above(&self.world) * local;
                self.written[node] = above(&self.written) * local;
                continue;
            };
            let pose = poses[body];
            self.world[node] = DAffine3::from_rotation_translation(pose.rotation, pose.translation) * body_from_node;
            let local = above(&self.world).inverse() * self.world[node];
            let (scale, rotation, translation) = local.to_scale_rotation_translation();
            let (rest_scale, rest_rotation, rest_translation) = steps(&document.local[node]);
            let (rotation, translation) = if local.is_finite() && rotation.is_finite() {
                let back = DAffine3::from_scale_rotation_translation(scale, rotation, translation);
                let size = local.matrix3.to_cols_array().iter().fold(1e-300f64, |m, x| m.max(x.abs()));
                let off = (back.matrix3 - local.matrix3).to_cols_array().iter().fold(0.0f64, |m, x| m.max(x.abs()));
                self.sheared = self.sheared.max(off / size);
                (rotation.normalize(), translation)
            } else {
                (rest_rotation, rest_translation)
            };
            self.written[node] =
                above(&self.written) * DAffine3::from_scale_rotation_translation(rest_scale, rotation, translation);
            write(node, rotation, translation);
        }
    }
}

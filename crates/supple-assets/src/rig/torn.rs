//! How far a character comes apart: where the nodes of its file put its vertices against where its limbs carry them, and how far limbs that share
//! vertices are from each other.

use crate::Character;
use crate::gltf::NodePlaces;
use glam::{DAffine3, DVec3};
use std::collections::BTreeMap;
use supple::{Model, Pose};

/// At most about this many vertices are looked at, evenly over all.
const LOOKED_AT: usize = 3000;
/// Bodies as many joints apart share vertices because their skins meet, not because one hangs on the other.
const NEAR: usize = 2;

/// A character with its model, to be asked how far it is torn in poses of its bodies.
pub struct Tearing<'c> {
    places: NodePlaces<'c>,
    vertices: Vec<Vertex>,
    ties: Vec<Tie>,
    /// Of bodies in the world at the start, turned round.
    start: Vec<DAffine3>,
    /// Of nodes.
    rest: Vec<DAffine3>,
}

struct Vertex {
    at: DVec3,
    /// Node, its body, weight.
    influences: Vec<(usize, usize, f64)>,
}

/// Two bodies that share vertices and no joint is near to hold them together: the middle of what they share.
struct Tie {
    bodies: [usize; 2],
    at: DVec3,
}

fn affine(pose: &Pose) -> DAffine3 {
    DAffine3::from_rotation_translation(pose.rotation, pose.translation)
}

impl<'c> Tearing<'c> {
    /// Of the model that [`Character::imported`] made.
    pub fn new(character: &'c Character, model: &Model) -> Tearing<'c> {
        let rig = &character.rig;
        let count: usize = character.meshes.iter().map(|mesh| mesh.vertices.len()).sum();
        let every = count.div_ceil(LOOKED_AT).max(1);
        let mut vertices = Vec::new();
        let mut shared: BTreeMap<(usize, usize), (f64, DVec3)> = BTreeMap::new();
        let mut k = 0;
        for mesh in character.meshes.iter() {
            for (v, at) in mesh.vertices.iter().enumerate() {
                let carried = |i: &crate::gltf::Influence| Some((i.node, rig.bone_of_node[i.node]?, i.weight));
                let influences: Vec<_> = mesh.influences(v).iter().filter_map(carried).collect();
                for (n, a) in influences.iter().enumerate() {
                    for b in influences[n + 1..].iter().filter(|b| b.1 != a.1) {
                        let (weight, sum) = shared.entry((a.1.min(b.1), a.1.max(b.1))).or_default();
                        (*weight, *sum) = (*weight + a.2.min(b.2), *sum + *at * a.2.min(b.2));
                    }
                }
                if k % every == 0 && !influences.is_empty() {
                    vertices.push(Vertex { at: *at, influences });
                }
                k += 1;
            }
        }
        // By bone: the other one with which it shares most.
        let strongest = |i: usize| {
            let of = shared.iter().filter(|((a, b), _)| *a == i || *b == i);
            of.max_by(|x, y| x.1.0.total_cmp(&y.1.0)).map(|(pair, _)| *pair)
        };
        let mut pairs: Vec<_> = (0..rig.bones.len()).filter_map(strongest).collect();
        pairs.sort_unstable();
        pairs.dedup();
        let ties = pairs.into_iter().filter(|(a, b)| rig.joints_between(*a, *b).is_none_or(|n| n > NEAR));
        let ties = ties.map(|(a, b)| {
            let (weight, sum) = shared[&(a, b)];
            Tie { bodies: [a, b], at: sum / weight }
        });
        let start = model.bodies().iter().map(|body| affine(&body.start).inverse()).collect();
        let rest = character.document.world.iter().map(|world| world.inverse()).collect();
        Tearing { places: NodePlaces::new(character, model), vertices, ties: ties.collect(), start, rest }
    }

    /// The largest distance in these poses of all bodies \[m\].
    pub fn at(&mut self, poses: &[Pose]) -> f64 {
        self.places.place(poses, |_, _, _| {});
        let bodies: Vec<DAffine3> = poses.iter().zip(&self.start).map(|(pose, start)| affine(pose) * *start).collect();
        let nodes: Vec<DAffine3> = self.places.written.iter().zip(&self.rest).map(|(now, rest)| *now * *rest).collect();
        let mut worst = 0.0f64;
        for vertex in &self.vertices {
            let (mut by_node, mut by_limb) = (DVec3::ZERO, DVec3::ZERO);
            for (node, body, weight) in &vertex.influences {
                by_node += nodes[*node].transform_point3(vertex.at) * *weight;
                by_limb += bodies[*body].transform_point3(vertex.at) * *weight;
            }
            worst = worst.max(by_node.distance(by_limb));
        }
        for Tie { bodies: [a, b], at } in &self.ties {
            worst = worst.max(bodies[*a].transform_point3(*at).distance(bodies[*b].transform_point3(*at)));
        }
        worst
    }
}

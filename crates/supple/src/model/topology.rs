//! The tree of a model: which joint leads to which body, in an order in which parents come first.
//!
//! This is the only file that knows how the tree is found. A spanning tree is grown from the world: a component with
//! a joint to the world hangs on its first such joint; a floating one on its first body that is nobody's child. The order is
//! a preorder (each subtree is contiguous), so sweeping it backwards visits children before parents: the perfect elimination
//! order of [Hernández 2011, §3.3]. Joints left over close loops.

use super::{Body, BodyId, Joint, JointId};

/// A body in tree order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeNode {
    /// The body.
    pub body: BodyId,
    /// Index of the parent's node plus one; 0 is the world.
    pub parent: usize,
    /// The joint that leads to it; `None` for a floating body.
    pub joint: Option<JointId>,
    /// The body is side b of that joint, its tree parent side a.
    pub flipped: bool,
    /// Number of nodes of the subtree, this one included.
    pub subtree: usize,
}

/// The spanning tree.
#[derive(Clone, Debug, Default)]
pub struct Topology {
    /// Bodies, parents first, each subtree contiguous.
    pub nodes: Vec<TreeNode>,
    /// For each body, its index in `nodes`.
    pub node_of: Vec<usize>,
    /// Joints that are not in the tree.
    pub loops: Vec<JointId>,
}

impl Topology {
    /// Grows the spanning tree.
    pub fn new(bodies: &[Body], joints: &[Joint]) -> Topology {
        // For each body the joints that touch it, in the order of declaration.
        let mut first = vec![0usize; bodies.len() + 1];
        let mut is_child = vec![false; bodies.len()];
        for joint in joints {
            first[joint.child.index() + 1] += 1;
            if let Some(parent) = joint.parent {
                first[parent.index() + 1] += 1;
                is_child[joint.child.index()] = true;
            }
        }
        for i in 0..bodies.len() {
            first[i + 1] += first[i];
        }
        let mut fill = first.clone();
        let mut touching = vec![0usize; first[bodies.len()]];
        for (j, joint) in joints.iter().enumerate() {
            for body in [Some(joint.child), joint.parent].into_iter().flatten() {
                touching[fill[body.index()]] = j;
                fill[body.index()] += 1;
            }
        }

        let mut topology = Topology {
            nodes: Vec::with_capacity(bodies.len()),
            node_of: vec![usize::MAX; bodies.len()],
            loops: Vec::new(),
        };
        let mut used = vec![false; joints.len()];
        let to_world = (0..joints.len()).filter(|&j| joints[j].parent.is_none()).map(|j| (joints[j].child, Some(j)));
        let nobodys_child = (0..bodies.len()).filter(|&i| !is_child[i]).map(|i| (BodyId(i as u32), None));
        let any = (0..bodies.len()).map(|i| (BodyId(i as u32), None));
        let roots: Vec<(BodyId, Option<usize>)> = to_world.chain(nobodys_child).chain(any).collect();
        let mut stack = Vec::new();
        for (root, joint) in roots {
            if topology.node_of[root.index()] != usize::MAX {
                continue;
            }
            stack.push((root, 0usize, joint));
            while let Some((body, parent, joint)) = stack.pop() {
                if topology.node_of[body.index()] != usize::MAX {
                    continue; // reached another way: the joint closes a loop
                }
                if let Some(j) = joint {
                    used[j] = true;
                }
                let index = topology.nodes.len();
                topology.node_of[body.index()] = index;
                topology.nodes.push(TreeNode {
                    body,
                    parent,
                    joint: joint.map(|j| JointId(j as u32)),
                    flipped: joint.is_some_and(|j| joints[j].child != body),
                    subtree: 1,
                });
                // Pushed backwards, so that children follow in the order of declaration.
                for &j in touching[first[body.index()]..first[body.index() + 1]].iter().rev() {
                    let joint = &joints[j];
                    let Some(parent_side) = joint.parent else { continue };
                    let other = if joint.child == body { parent_side } else { joint.child };
                    if !used[j] && topology.node_of[other.index()] == usize::MAX {
                        stack.push((other, index + 1, Some(j)));
                    }
                }
            }
        }
        for i in (0..topology.nodes.len()).rev() {
            let node = topology.nodes[i];
            if node.parent > 0 {
                topology.nodes[node.parent - 1].subtree += node.subtree;
            }
        }
        topology.loops = (0..joints.len()).filter(|&j| !used[j]).map(|j| JointId(j as u32)).collect();
        topology
    }

    /// Whether no joint closes a loop.
    pub fn is_tree(&self) -> bool {
        self.loops.is_empty()
    }
}

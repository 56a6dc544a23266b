//! Which nodes are bodies, and what hangs on what: by the skin and by how nodes move in the clips, not by the node tree alone.
//!
//! A node that carries vertices is a body, unless it is a small part of another. A node that carries none is a helper: it goes with a body. A body hangs on the
//! nearest one above it in the file, unless clips move it away from there (feet that are targets of IK hang from the root): then on the one with which it
//! shares vertices and moves.

use super::names::{self, Class};
use super::{extent, fit, nearest};
use crate::Note;
use crate::gltf::{Clip, Document, SkinnedMesh, rigid};
use glam::{DAffine3, DVec3};
use std::collections::BTreeMap;

/// Bodies and what hangs on what.
pub(super) struct Structure {
    /// By bone: its node, in the order of the file.
    pub(super) nodes: Vec<usize>,
    pub(super) parents: Vec<Option<usize>>,
    /// By node: the bone that carries it.
    pub(super) bone_of_node: Vec<Option<usize>>,
}

/// Bones smaller than this part of the character are merged into the one above.
const TINY: f64 = 0.004;
/// An origin that stays this near to its place on a body moves with it, and one that leaves it by more does not \[of the size\].
const STAYS: f64 = 0.004;
const LEAVES: f64 = 0.02;
/// A piece that goes further than this from what it shares vertices with hangs on that for want of anything else; one that shares none begins this near to what it
/// hangs on \[of the size\].
const FAR: f64 = 0.1;
const NEAR: f64 = 0.05;
/// A bone that is part of no other shares at least this part of its vertices with what it hangs on.
const SHARED: f64 = 0.03;
/// At most this many frames of all clips are looked at.
const FRAMES: usize = 160;

/// What is known of the file.
pub(super) struct Known<'a> {
    pub(super) document: &'a Document,
    pub(super) meshes: &'a [SkinnedMesh],
    /// By node: whether it may become a body.
    pub(super) candidates: &'a [bool],
    /// By node: the class that the file itself tells.
    pub(super) told: &'a [Option<Class>],
    /// Largest extent \[m\].
    pub(super) size: f64,
    /// Whether a bone is called a head.
    headed: bool,
    /// By node what it hangs on, and the nodes with those above first: as in the file, but for skeletons that it holds in pieces.
    pub(super) parents: Vec<Option<usize>>,
    pub(super) order: Vec<usize>,
    /// The worlds of all nodes in some frames of the clips.
    frames: Vec<Vec<DAffine3>>,
}

impl<'a> Known<'a> {
    pub(super) fn new(
        document: &'a Document,
        meshes: &'a [SkinnedMesh],
        clips: &'a [Clip],
        candidates: &'a [bool],
        told: &'a [Option<Class>],
        size: f64,
    ) -> Known<'a> {
        let each = (FRAMES / clips.len().max(1)).clamp(2, 24);
        let times = |clip: &Clip| (0..each).map(|k| clip.end * k as f64 / (each - 1) as f64).collect::<Vec<_>>();
        let frames = clips.iter().flat_map(|clip| times(clip).into_iter().map(|t| clip.world(document, t))).collect();
        let (parents, order) = (document.parents.clone(), document.order.clone());
        let is_head = |n: &usize| candidates[*n] && names::class(&document.names[*n], None) == Class::Head;
        let headed = document.order.iter().any(is_head);
        Known { document, meshes, candidates, told, size, headed, parents, order, frames }
    }

    /// How far the origin of a node goes, over the clips, from its place at rest in the frame of another, as a part of the size.
    fn leaves(&self, node: usize, other: usize) -> f64 {
        let seen = |world: &[DAffine3]| {
            let turned = rigid(world[other].matrix3)?.conjugate();
            Some(turned * (world[node].translation - world[other].translation))
        };
        let Some(rest) = seen(&self.document.world) else { return 0.0 };
        let far = self.frames.iter().filter_map(|world| seen(world)).map(|at| at.distance(rest)).fold(0.0, f64::max);
        far / self.size
    }
}

/// Finds the bodies.
pub(super) fn find(mut known: Known<'_>, notes: &mut Vec<Note>) -> Structure {
    let Known { document, meshes, candidates, size, .. } = known;
    let count = document.parents.len();
    let carrier = nearest(&known.order, &known.parents, |node| candidates[node]);
    let body_meshes = body_meshes(document, meshes);
    let (loads, _) = fit::shares(meshes, &body_meshes, count, |node| carrier[node]);
    let mut chosen: Vec<bool> = (0..count)
        .map(|node| candidates[node] && loads[node].points.len() >= 3 && extent(&loads[node].points) > TINY * size)
        .collect();
    if !chosen.contains(&true) {
        // Everything is tiny, or nothing has a form: take whatever there is.
        chosen = candidates.to_vec();
    }
    join_trees(&mut known, &chosen, &body_meshes, &loads, notes);
    let known = &known;
    let ties = Ties::new(meshes, &body_meshes, &carrier);
    weld(known, &mut chosen, &loads, &ties, notes);
    one_sided(known, &mut chosen, &ties);

    let nodes: Vec<usize> = known.order.iter().copied().filter(|n| chosen[*n]).collect();
    let mut index_of = vec![None; count];
    for (i, node) in nodes.iter().enumerate() {
        index_of[*node] = Some(i);
    }
    let ancestor = nearest(&known.order, &known.parents, |node| chosen[node]);
    let first_branch = super::representatives(known, &chosen, &loads);
    let above = |node: usize| {
        let above = known.parents[node]?;
        ancestor[above].or(first_branch[above]).filter(|other| *other != node)
    };
    let mut parents: Vec<Option<usize>> = nodes.iter().map(|node| above(*node).and_then(|n| index_of[n])).collect();
    let mut bone_of_node: Vec<Option<usize>> = (0..count)
        .map(|node| {
            let own = ancestor[node].or(first_branch[node]);
            own.or_else(|| candidates[node].then(|| nodes.first().copied()).flatten()).and_then(|n| index_of[n])
        })
        .collect();
    helpers(known, &ancestor, &chosen, &nodes, &ties, &mut bone_of_node);

    let ties = Ties::new(meshes, &body_meshes, &bone_of_node);
    join(known, &nodes, &ties, &mut parents, notes);
    Structure { nodes, parents, bone_of_node }
}

/// By mesh: whether it is part of the body. In a file with a skin, what hangs on nodes without one is carried along: weapons, shields, hats.
pub(super) fn body_meshes(document: &Document, meshes: &[SkinnedMesh]) -> Vec<bool> {
    let skinned: Vec<bool> = meshes.iter().map(|m| document.root().nodes[m.node].skin.is_some()).collect();
    let vertices = |with: bool| -> usize {
        meshes.iter().zip(&skinned).filter(|(_, s)| **s == with).map(|(m, _)| m.vertices.len()).sum()
    };
    // Where most of it has no skin the parts are the body.
    if vertices(true) >= vertices(false) { skinned } else { vec![true; meshes.len()] }
}

/// How much of the skin bones share.
pub(super) struct Ties {
    /// By pair, the lesser first: the sum over vertices of the lesser weight.
    pub(super) shared: BTreeMap<(usize, usize), f64>,
    /// By bone: the sum of its weights.
    own: BTreeMap<usize, f64>,
}

impl Ties {
    fn new(meshes: &[SkinnedMesh], of_body: &[bool], bone_of: &[Option<usize>]) -> Ties {
        let (mut shared, mut own) = (BTreeMap::<(usize, usize), f64>::new(), BTreeMap::new());
        for (mesh, _) in meshes.iter().zip(of_body).filter(|(_, of_body)| **of_body) {
            for v in 0..mesh.vertices.len() {
                let mut here: Vec<(usize, f64)> = Vec::new();
                for influence in mesh.influences(v) {
                    let Some(bone) = bone_of[influence.node] else { continue };
                    match here.iter_mut().find(|(other, _)| *other == bone) {
                        Some((_, sum)) => *sum += influence.weight,
                        None => here.push((bone, influence.weight)),
                    }
                }
                for (k, (i, a)) in here.iter().enumerate() {
                    *own.entry(*i).or_default() += a;
                    for (j, b) in &here[k + 1..] {
                        *shared.entry((*i.min(j), *i.max(j))).or_default() += a.min(*b);
                    }
                }
            }
        }
        Ties { shared, own }
    }

    /// What two share, as a part of what the first carries.
    fn part(&self, of: usize, with: usize) -> f64 {
        let shared = self.shared.get(&(of.min(with), of.max(with))).copied().unwrap_or(0.0);
        shared / self.own.get(&of).copied().unwrap_or(0.0).max(1e-12)
    }

    fn weight(&self, of: usize) -> f64 {
        self.own.get(&of).copied().unwrap_or(0.0)
    }
}

/// Takes small parts out of the bodies: they go with what they are on.
fn weld(known: &Known<'_>, chosen: &mut [bool], loads: &[fit::Share], ties: &Ties, notes: &mut Vec<Note>) {
    let document = known.document;
    let mut note = |node: usize, into: usize, why: &str| {
        let text = format!("{why}: part of \"{}\"", document.names[into]);
        notes.push(Note { code: "import/welded", part: document.names[node].clone(), text });
    };
    // From the ends in, so that a part whose own parts are gone is an end too.
    let ends: Vec<usize> = known.order.iter().rev().copied().filter(|n| chosen[*n]).collect();
    for node in ends {
        let mut above = known.parents[node];
        while let Some(parent) = above.filter(|p| !chosen[*p]) {
            above = known.parents[parent];
        }
        let Some(parent) = above else { continue };
        let below = |of: usize| known.order.iter().copied().filter(move |n| is_below(known, *n, of));
        let is_end = !below(node).any(|n| chosen[n]);
        let name = &document.names[node];
        let (class, class_above) = (known.class(node, parent), known.class_of(parent));
        if known.told[node].is_some() {
            continue;
        }
        let here = document.world[node].translation;
        let start = document.world[parent].translation;
        // A roll bone lies on the segment that it helps to twist.
        let beside = below(parent).filter(|n| chosen[*n] && *n != node && !is_below(known, *n, node));
        let on_segment = |limit: f64, off: f64| {
            beside.clone().any(|next| {
                let along = document.world[next].translation - start;
                let t = (here - start).dot(along) / along.length_squared().max(1e-300);
                let aside = (here - start - along * t).length();
                (-0.05..limit).contains(&t) && aside < off * along.length() && along.length() > 0.03 * known.size
            })
        };
        let limb = |c: Class| matches!(c, Class::Thigh | Class::Calf | Class::UpperArm | Class::Forearm);
        let rolls = names::is_roll(name);
        let why = if is_end && ((rolls && on_segment(1.1, 0.3)) || (limb(class_above) && on_segment(0.9, 0.08))) {
            Some("it helps to twist")
        } else if limb(class) && class == class_above && straight(known, parent, node, loads) {
            Some("it goes straight on")
        } else if is_end && names::is_prop(name) {
            Some("it is carried along")
        } else if is_end && class_above == Class::Head && class != Class::Tail {
            Some("it is a part of the face")
        } else if is_end && names::is_end(name) && ties.weight(node) < 0.25 * ties.weight(parent) {
            Some("it is an end")
        } else if is_end
            && class == Class::Unknown
            && ties.part(node, parent) < 0.01
            && within(&loads[node].points, &loads[parent].points)
            && known.leaves(node, parent) < STAYS
        {
            Some("it lies within")
        } else {
            None
        };
        if let Some(why) = why {
            chosen[node] = false;
            note(node, parent, why);
        }
    }
}

impl Known<'_> {
    /// The class of a node by its name or as told, and that of the one above.
    fn class(&self, node: usize, above: usize) -> Class {
        self.told[node].unwrap_or_else(|| self.named(node, Some(self.class_of(above))))
    }

    /// The class of a node by its name. Where a head is called so, what counts up to it is all neck.
    fn named(&self, node: usize, above: Option<Class>) -> Class {
        let name = &self.document.names[node];
        match names::class(name, above) {
            Class::Head if self.headed && names::class(name, None) == Class::Neck => Class::Neck,
            class => class,
        }
    }

    /// The class of a node by the names from the root down to it.
    fn class_of(&self, node: usize) -> Class {
        let mut path = vec![node];
        while let Some(parent) = self.parents[path[path.len() - 1]].filter(|p| self.candidates[*p]) {
            path.push(parent);
        }
        let by_name = |above, node: usize| Some(self.told[node].unwrap_or_else(|| self.named(node, above)));
        path.into_iter().rev().fold(None, by_name).unwrap_or(Class::Unknown)
    }
}

fn is_below(known: &Known<'_>, node: usize, above: usize) -> bool {
    let mut at = known.parents[node];
    while let Some(parent) = at {
        if parent == above {
            return true;
        }
        at = known.parents[parent];
    }
    false
}

/// Whether a bone goes on in the direction of the one above it.
fn straight(known: &Known<'_>, parent: usize, node: usize, loads: &[fit::Share]) -> bool {
    let (start, here) = (known.document.world[parent].translation, known.document.world[node].translation);
    let points = &loads[node].points;
    let middle = points.iter().sum::<DVec3>() / points.len().max(1) as f64;
    (here - start).angle_between(middle - here) < 0.35
}

/// Whether points lie within the box around others, a little enlarged.
fn within(points: &[DVec3], others: &[DVec3]) -> bool {
    let fold =
        |list: &[DVec3]| list.iter().fold((DVec3::INFINITY, DVec3::NEG_INFINITY), |(l, h), p| (l.min(*p), h.max(*p)));
    let ((low, high), (from, to)) = (fold(points), fold(others));
    let room = 0.1 * (to - from);
    low.cmpge(from - room).all() && high.cmple(to + room).all()
}

/// A bone that carries little, and whose twin carries nothing, is none.
fn one_sided(known: &Known<'_>, chosen: &mut [bool], ties: &Ties) {
    let document = known.document;
    let all: f64 = known.order.iter().map(|n| ties.weight(*n)).sum();
    for &node in &known.order {
        let name = &document.names[node];
        if !chosen[node] || names::side(name) == names::Side::Middle || ties.weight(node) > 0.02 * all {
            continue;
        }
        let key = names::without_side(name);
        let is_twin =
            |n: usize| n != node && known.candidates[n] && names::without_side(&document.names[n]) == key && !chosen[n];
        if known.order.iter().any(|n| is_twin(*n)) {
            chosen[node] = false;
        }
    }
}

/// Nodes that hang from no body, and carry none: each goes with the body that it moves with, or stands at.
fn helpers(
    known: &Known<'_>,
    ancestor: &[Option<usize>],
    chosen: &[bool],
    nodes: &[usize],
    ties: &Ties,
    bone_of_node: &mut [Option<usize>],
) {
    let document = known.document;
    let mut above_bodies = chosen.to_vec();
    for &node in known.order.iter().rev() {
        if let Some(parent) = known.parents[node] {
            above_bodies[parent] |= above_bodies[node];
        }
    }
    for &node in &known.order {
        if !known.candidates[node] || ancestor[node].is_some() || above_bodies[node] {
            continue;
        }
        let here = document.world[node].translation;
        let near = |other: usize| document.world[other].translation.distance(here) / known.size;
        let shares = nodes.iter().map(|n| ties.part(node, *n)).enumerate().max_by(|a, b| a.1.total_cmp(&b.1));
        bone_of_node[node] = match shares {
            Some((bone, part)) if part > 0.0 => Some(bone),
            _ => {
                // The nearest of those with which it moves.
                let along = |n: usize| known.leaves(node, n) + 0.01 * near(n);
                let best = nodes.iter().map(|n| along(*n)).enumerate().min_by(|a, b| a.1.total_cmp(&b.1));
                // One that goes its own way, such as the pole of an elbow, stays with the root.
                let moves_along = |bone: &usize| known.leaves(node, nodes[*bone]) < LEAVES;
                best.map(|(bone, _)| bone).filter(moves_along).or(bone_of_node[node])
            }
        };
    }
}

/// Skeletons that the file holds in pieces, such as the deforming bones alone of a rig of controls, or bones in one flat list: pieces that share vertices hang
/// together by the strongest ties, from the one that is named as a root is, or carries most, outwards; pieces of one skin that share none, by where they stay.
fn join_trees(
    known: &mut Known<'_>,
    chosen: &[bool],
    body_meshes: &[bool],
    loads: &[fit::Share],
    notes: &mut Vec<Note>,
) {
    let document = known.document;
    // Controls that carry nothing tie nothing together here: what is left over they do, later.
    let body = nearest(&known.order, &known.parents, |node| chosen[node]);
    // By body the first one of its piece; bodies come with those above first.
    let mut piece = vec![usize::MAX; chosen.len()];
    let bodies: Vec<usize> = known.order.iter().copied().filter(|n| chosen[*n]).collect();
    let above = |node: usize| known.parents[node].and_then(|p| body[p]).filter(|other| *other != node);
    for &node in &bodies {
        let mut top = node;
        while let Some(next) = above(top) {
            top = next;
        }
        piece[node] = top;
    }
    let mut open: Vec<usize> = bodies.iter().copied().filter(|n| piece[*n] == *n).collect();
    if open.len() < 2 {
        return;
    }
    let name = |node: usize| document.names[node].as_str();
    let class = |node: usize| known.told[node].unwrap_or_else(|| names::class(name(node), Some(Class::Unknown)));
    let ties = Ties::new(known.meshes, body_meshes, &body);
    let mut tied: Vec<Vec<(usize, f64)>> = vec![Vec::new(); chosen.len()];
    for ((a, b), sum) in &ties.shared {
        tied[*a].push((*b, *sum));
        tied[*b].push((*a, *sum));
    }
    // The root of a body: what is called so, in the middle; else of the trunk what shares most with hips and thighs; else a hand; else what carries most.
    let carried = |top: usize| bodies.iter().filter(|n| piece[**n] == top).map(|n| loads[*n].volume.abs()).sum::<f64>();
    let by_hips = |node: usize| {
        let hip = |n: usize| matches!(class(n), Class::Thigh | Class::Pelvis);
        tied[node].iter().filter(|(other, _)| hip(*other)).map(|(_, sum)| sum).sum::<f64>()
    };
    let rank = |top: usize| {
        let middle = names::side(name(top)) == names::Side::Middle;
        match class(top) {
            Class::Pelvis if middle => (3, carried(top)),
            Class::Spine if middle && by_hips(top) > 0.0 => (2, by_hips(top)),
            Class::Pelvis | Class::Hand => (1, carried(top)),
            _ => (0, carried(top)),
        }
    };
    let skins: Vec<Vec<usize>> = {
        let mut skins = vec![Vec::new(); chosen.len()];
        for (k, skin) in document.root().skins.iter().enumerate() {
            skin.joints.iter().for_each(|joint| skins[*joint].push(k));
        }
        skins
    };
    // How strongly a piece holds on to a bone: neighbours in the palm share vertices too, and so do both thighs, but a finger hangs on the wrist, and a thigh on the hips.
    let hold = |top: usize, here: usize, there: usize, sum: f64| {
        let fingers = matches!((names::finger(name(here)), names::finger(name(there))), (Some(a), Some(b)) if a != b);
        let (a, b) = (names::side(name(here)), names::side(name(there)));
        let across = a != b && a != names::Side::Middle && b != names::Side::Middle;
        let away = known.leaves(top, there) > FAR;
        let factor = |weak: bool, by: f64| if weak { by } else { 1.0 };
        sum * factor(fingers, 1e-3) * factor(across, 1e-3) * factor(away, 1e-3) * factor(here != top, 0.1)
    };
    let mut joins: Vec<(usize, usize, &str)> = Vec::new();
    while let Some(start) = open.iter().copied().max_by(|a, b| {
        let ((x, v), (y, w)) = (rank(*a), rank(*b));
        x.cmp(&y).then(v.total_cmp(&w)).then(b.cmp(a))
    }) {
        // The strongest tie to what is joined already, time and again [Prim].
        let mut best: Vec<Option<(f64, usize)>> = vec![None; chosen.len()];
        let mut joined = vec![false; chosen.len()];
        let mut next = Some(start);
        while let Some(top) = next {
            open.retain(|other| *other != top);
            for &there in bodies.iter().filter(|n| piece[**n] == top) {
                joined[there] = true;
                for &(here, sum) in tied[there].iter().filter(|(here, _)| open.contains(&piece[*here])) {
                    let of = piece[here];
                    let held = hold(of, here, there, sum);
                    if best[of].is_none_or(|(most, _)| held > most) {
                        best[of] = Some((held, there));
                    }
                }
            }
            let strongest = open.iter().copied().filter_map(|of| Some((of, best[of]?)));
            let strongest = strongest.max_by(|a, b| a.1.0.total_cmp(&b.1.0).then(b.0.cmp(&a.0)));
            next = strongest.map(|(of, (_, there))| {
                joins.push((of, there, "shares vertices"));
                of
            });
            if next.is_some() {
                continue;
            }
            // A rigid part that is no body by itself stays where it is on another of the same skin.
            let stays = |of: usize| {
                if known.frames.is_empty() && class(of) == Class::Unknown {
                    return None;
                }
                let origin = document.world[of].translation;
                let near = |n: usize| loads[n].points.iter().map(|p| p.distance(origin)).fold(f64::INFINITY, f64::min);
                let same = |n: &usize| joined[*n] && skins[*n].iter().any(|skin| skins[of].contains(skin));
                let others = bodies.iter().copied().filter(same).map(|n| (n, near(n)));
                let close = others.filter(|(_, far)| *far < NEAR * known.size);
                let with = close.map(|(n, far)| (n, known.leaves(of, n) + 0.1 * far / known.size));
                with.min_by(|a, b| a.1.total_cmp(&b.1)).filter(|(n, _)| known.leaves(of, *n) < LEAVES)
            };
            let beside = open.iter().copied().filter_map(|of| Some((of, stays(of)?)));
            let beside = beside.min_by(|a, b| a.1.1.total_cmp(&b.1.1).then(a.0.cmp(&b.0)));
            next = beside.map(|(of, (there, _))| {
                joins.push((of, there, "moves"));
                of
            });
        }
    }
    for (of, there, why) in joins {
        let text = format!("its node is not below a bone: it hangs on \"{}\", with which it {why}", name(there));
        notes.push(Note { code: "import/joined-by-skin", part: name(of).into(), text });
        known.parents[of] = Some(there);
    }
    // Those above first again.
    let mut below: Vec<Vec<usize>> = vec![Vec::new(); chosen.len()];
    known.order.iter().for_each(|n| known.parents[*n].into_iter().for_each(|p| below[p].push(*n)));
    let mut stack: Vec<usize> = known.order.iter().rev().copied().filter(|n| known.parents[*n].is_none()).collect();
    known.order.clear();
    while let Some(node) = stack.pop() {
        known.order.push(node);
        stack.extend(below[node].iter().rev());
    }
}

/// Bones that clips move away from what they hang on in the file: each hangs on the one with which it shares vertices and moves.
fn join(known: &Known<'_>, nodes: &[usize], ties: &Ties, parents: &mut [Option<usize>], notes: &mut Vec<Note>) {
    for i in 0..nodes.len() {
        let Some(parent) = parents[i] else { continue };
        let far = known.leaves(nodes[i], nodes[parent]);
        // Without clips the skin alone must tell: no vertex with the one above, many with another.
        let torn = if known.frames.is_empty() { ties.part(i, parent) < 1e-3 } else { far > LEAVES };
        if !torn {
            continue;
        }
        let under = |mut b: usize, parents: &[Option<usize>]| loop {
            if b == i {
                return true;
            }
            match parents[b] {
                Some(next) => b = next,
                None => return false,
            }
        };
        let score = |b: usize| {
            let moves = known.leaves(nodes[i], nodes[b]);
            let shared = ties.part(i, b);
            // A foot whose skin begins at the shin, or a rigid one that stays at its end.
            let holds = (shared > SHARED && moves < 0.5 * far.max(LEAVES)) || (moves < STAYS && far > LEAVES);
            holds.then_some(shared - 10.0 * moves)
        };
        let others = (0..nodes.len()).filter(|b| *b != i && !under(*b, parents));
        let best = others.filter_map(|b| Some((b, score(b)?))).max_by(|a, b| a.1.total_cmp(&b.1));
        if let Some((bone, _)) = best.filter(|(bone, _)| *bone != parent) {
            parents[i] = Some(bone);
            let name = |i: usize| &known.document.names[nodes[i]];
            let text = format!(
                "in the file it hangs on \"{}\"; it shares vertices and moves with \"{}\", and hangs on that",
                name(parent),
                name(bone)
            );
            notes.push(Note { code: "import/joined-by-motion", part: name(i).clone(), text });
        }
    }
}

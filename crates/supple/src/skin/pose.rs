//! Where the bones carry the surface, and how it moves with them.
//!
//! With `T_i u = Q_i u + t_i` the motion of bone i from the rest pose, c_i its centre of mass, Ω_i its angular velocity, world axes:
//!
//! ```text
//! linear blend [Galoppo 2007, eq. 1]     x = Σ w_i T_i u                       R = Σ w_i Q_i                                     (1)
//! optimised centres [Le 2016]            x = R (u − p) + Σ w_i T_i p           R from  n = Σ w_i s_i q_i,  s_i = ±1              (2)
//! velocity                               ẋ = Σ (w_i ċ_i + X_i Ω_i) + R u̇_s
//!     of (1)                             X_i = −w_i [T_i u − c_i]
//!     of (2)                             X_i = −w_i [T_i p − c_i] − [R (u − p)] (w_i s_i/N) (r_s 1 − [r_u]),  r = q_i q̄,  q = n/N
//! ```
//! The linear blend collapses at bent joints; (2) turns each vertex by a rotation and does not. What is left of ẍ when all accelerations are zero, with
//! `d = R (u − p)`, `ω = 2 vec(ṅ n̄)/N²` the turning of R and `ω̇ = 2 vec(n̈ n̄)/N² − 2 ω (n·ṅ)/N²`, `n̈ = −¼ Σ w_i s_i |Ω_i|² q_i`:
//!
//! ```text
//! of (1)    Σ w_i (Ω_i × (Ω_i × (T_i u − c_i)) + 2 Ω_i × Q_i u̇_s)
//! of (2)    Σ w_i Ω_i × (Ω_i × (T_i p − c_i)) + ω̇ × d + ω × (ω × d) + 2 ω × R u̇_s                                               (3)
//! ```

use super::{INFLUENCES, Influence, Skin};
use crate::flesh::SurfaceMesh;
use crate::maths::rotation::skew;
use crate::model::State;
use glam::{DMat3, DQuat, DVec3, DVec4};

/// How bones carry the surface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PoseMap {
    /// The mean of where each bone would carry a vertex, as published.
    Linear,
    /// A rotation about an optimised centre: joints keep their volume.
    #[default]
    Centres,
}

/// A bone's motion from the rest pose.
#[derive(Clone, Copy, Debug)]
struct Bone {
    turn: DMat3,
    quat: DQuat,
    shift: DVec3,
    /// c_i.
    at: DVec3,
    velocity: DVec3,
    spin: DVec3,
}

/// All bones of a skin in a state, by body.
#[derive(Debug, Default)]
pub struct Bones {
    all: Vec<Bone>,
}

fn vec4(q: DQuat) -> DVec4 {
    DVec4::new(q.x, q.y, q.z, q.w)
}

/// `vec(a b̄)`.
fn vector_part(a: DVec4, b: DVec4) -> DVec3 {
    let (av, bv) = (a.truncate(), b.truncate());
    av * b.w - bv * a.w - av.cross(bv)
}

/// `q̇ = ½ Ω q`.
fn rate_of(q: DVec4, spin: DVec3) -> DVec4 {
    let (v, s) = (q.truncate(), q.w);
    (spin * s + spin.cross(v)).extend(-spin.dot(v)) * 0.5
}

/// The vertex of (2): n, and the signs.
fn blend(bones: &[Bone], own: &[Influence]) -> (DVec4, [f64; INFLUENCES]) {
    let first = vec4(bones[own[0].body as usize].quat);
    let (mut n, mut signs) = (DVec4::ZERO, [1.0; INFLUENCES]);
    for (i, sign) in own.iter().zip(&mut signs) {
        let q = vec4(bones[i.body as usize].quat);
        *sign = if q.dot(first) < 0.0 { -1.0 } else { 1.0 };
        n += q * (i.weight * *sign);
    }
    (n, signs)
}

impl Bones {
    /// The bones in a state.
    pub fn new(skin: &Skin, state: &State) -> Bones {
        let mut bones = Bones::default();
        bones.set(skin, state);
        bones
    }

    pub(super) fn set(&mut self, skin: &Skin, state: &State) {
        self.all.clear();
        self.all.extend(state.bodies.iter().zip(&skin.body_from_rest).map(|(body, rest)| {
            let world_from_rest = body.pose().then(*rest);
            Bone {
                turn: DMat3::from_quat(world_from_rest.rotation),
                quat: world_from_rest.rotation,
                shift: world_from_rest.translation,
                at: body.position,
                velocity: body.velocity.linear,
                spin: body.velocity.angular,
            }
        }));
    }

    /// Where a vertex with this displacement is \[m\].
    pub fn place(&self, skin: &Skin, a: usize, displacement: DVec3) -> DVec3 {
        let own = &skin.influences[a][..skin.counts[a] as usize];
        let u = skin.rest[a] + displacement;
        let carry = |p: DVec3| -> DVec3 {
            own.iter()
                .map(|i| {
                    let bone = &self.all[i.body as usize];
                    (bone.turn * p + bone.shift) * i.weight
                })
                .sum()
        };
        match skin.map {
            PoseMap::Linear => carry(u),
            PoseMap::Centres => {
                let p = skin.centres[a];
                let (n, _) = blend(&self.all, own);
                let turn = DQuat::from_vec4(n.normalize_or(DVec4::W));
                turn * (u - p) + carry(p)
            }
        }
    }
}

/// The surface in a state.
#[derive(Debug, Default)]
pub struct Posed {
    bones: Bones,
    /// x \[m\].
    pub places: Vec<DVec3>,
    /// ẋ \[m/s\].
    pub velocities: Vec<DVec3>,
    /// By how much they are displaced \[m\].
    pub displaced: Vec<DVec3>,
    /// R of (1) or (2), rest axes to world axes.
    pub turns: Vec<DMat3>,
    /// X_i, by influence, one vertex after the other \[m\].
    levers: Vec<DMat3>,
    /// Those of vertex a are `first[a]..first[a + 1]`.
    first: Vec<u32>,
    /// (3) \[m/s²\].
    pub bends: Vec<DVec3>,
}

impl Posed {
    /// Room for a skin.
    pub fn new(skin: &Skin) -> Posed {
        let n = skin.nodes();
        let mut first = vec![0u32];
        for &count in &skin.counts {
            first.push(first[first.len() - 1] + u32::from(count));
        }
        Posed {
            bones: Bones::default(),
            places: vec![DVec3::ZERO; n],
            velocities: vec![DVec3::ZERO; n],
            displaced: vec![DVec3::ZERO; n],
            turns: vec![DMat3::IDENTITY; n],
            levers: vec![DMat3::ZERO; first[n] as usize],
            first,
            bends: vec![DVec3::ZERO; n],
        }
    }

    /// X_i of a vertex, by influence \[m\].
    #[inline]
    pub fn levers(&self, a: usize) -> &[DMat3] {
        &self.levers[self.first[a] as usize..self.first[a + 1] as usize]
    }

    /// R of a vertex, of the bones alone.
    pub(super) fn turn(&self, skin: &Skin, a: usize) -> DMat3 {
        let own = &skin.influences[a][..skin.counts[a] as usize];
        match skin.map {
            PoseMap::Linear => own.iter().map(|i| self.bones.all[i.body as usize].turn * i.weight).sum(),
            PoseMap::Centres => {
                DMat3::from_quat(DQuat::from_vec4(blend(&self.bones.all, own).0.normalize_or(DVec4::W)))
            }
        }
    }

    /// Takes only places and velocities from a state: what a search for contacts needs.
    pub(super) fn look(&mut self, skin: &Skin, state: &State) {
        self.bones.set(skin, state);
        let bones = &self.bones.all;
        for a in 0..skin.nodes() {
            let own = &skin.influences[a][..skin.counts[a] as usize];
            let node = &state.nodes[a];
            let u = skin.rest[a] + node.position;
            // one bone: both maps are the same
            let is_centred = skin.map == PoseMap::Centres && own.len() > 1;
            let carried = if is_centred { skin.centres[a] } else { u };
            let (mut x, mut velocity) = (DVec3::ZERO, DVec3::ZERO);
            self.displaced[a] = own.iter().map(|i| bones[i.body as usize].turn * node.position * i.weight).sum();
            for i in own {
                let bone = &bones[i.body as usize];
                let arm = bone.turn * carried + bone.shift - bone.at;
                let rate = if is_centred { DVec3::ZERO } else { bone.turn * node.velocity };
                x += (bone.at + arm) * i.weight;
                velocity += (bone.velocity + bone.spin.cross(arm) + rate) * i.weight;
            }
            if is_centred {
                let (n, signs) = blend(bones, own);
                let size = n.length_squared().max(1e-30);
                let mut n_dot = DVec4::ZERO;
                for (i, sign) in own.iter().zip(signs) {
                    n_dot +=
                        rate_of(vec4(bones[i.body as usize].quat), bones[i.body as usize].spin) * (i.weight * sign);
                }
                let turn = DQuat::from_vec4(n / size.sqrt());
                let d = turn * (u - carried);
                x += d;
                velocity += (vector_part(n_dot, n) * (2.0 / size)).cross(d) + turn * node.velocity;
            }
            (self.places[a], self.velocities[a]) = (x, velocity);
        }
    }

    /// Takes everything from a state.
    pub fn pose(&mut self, skin: &Skin, state: &State) {
        self.bones.set(skin, state);
        let bones = &self.bones.all;
        for a in 0..skin.nodes() {
            let own = &skin.influences[a][..skin.counts[a] as usize];
            let node = &state.nodes[a];
            let u = skin.rest[a] + node.position;
            let levers = &mut self.levers[self.first[a] as usize..self.first[a + 1] as usize];
            // one bone: both maps are the same
            if let [only] = own {
                let bone = &bones[only.body as usize];
                let arm = bone.turn * u + bone.shift - bone.at;
                let rate = bone.turn * node.velocity;
                self.turns[a] = bone.turn;
                self.displaced[a] = bone.turn * node.position;
                levers[0] = -skew(arm);
                self.places[a] = bone.at + arm;
                self.velocities[a] = bone.velocity + bone.spin.cross(arm) + rate;
                self.bends[a] = bone.spin.cross(bone.spin.cross(arm) + rate * 2.0);
                continue;
            }
            let (mut x, mut velocity, mut bend) = (DVec3::ZERO, DVec3::ZERO, DVec3::ZERO);
            match skin.map {
                PoseMap::Linear => {
                    let mut turn = DMat3::ZERO;
                    for (k, i) in own.iter().enumerate() {
                        let (bone, w) = (&bones[i.body as usize], i.weight);
                        let arm = bone.turn * u + bone.shift - bone.at;
                        let rate = bone.turn * node.velocity;
                        levers[k] = skew(arm * -w);
                        turn += bone.turn * w;
                        x += (bone.at + arm) * w;
                        velocity += (bone.velocity + bone.spin.cross(arm) + rate) * w;
                        bend += bone.spin.cross(bone.spin.cross(arm) + rate * 2.0) * w;
                    }
                    self.turns[a] = turn;
                }
                PoseMap::Centres => {
                    let p = skin.centres[a];
                    let (n, signs) = blend(bones, own);
                    let size = n.length_squared().max(1e-30);
                    let q = n / size.sqrt();
                    let turn = DMat3::from_quat(DQuat::from_vec4(q));
                    let d = turn * (u - p);
                    let rate = turn * node.velocity;
                    let (mut omega, mut n_dot, mut n_bend) = (DVec3::ZERO, DVec4::ZERO, DVec4::ZERO);
                    let across = skew(d);
                    for (k, i) in own.iter().enumerate() {
                        let (bone, w) = (&bones[i.body as usize], i.weight);
                        let q_i = vec4(bone.quat) * signs[k];
                        // r = q_i q̄
                        let (r_s, r_u) = (q_i.dot(q), vector_part(q_i, q));
                        let share = (DMat3::from_diagonal(DVec3::splat(r_s)) - skew(r_u)) * (w / size.sqrt());
                        omega += share * bone.spin;
                        n_dot += rate_of(q_i, bone.spin) * w;
                        n_bend -= q_i * (0.25 * w * bone.spin.length_squared());
                        let arm = bone.turn * p + bone.shift - bone.at;
                        levers[k] = skew(arm * -w) - across * share;
                        x += (bone.at + arm) * w;
                        velocity += (bone.velocity + bone.spin.cross(arm)) * w;
                        bend += bone.spin.cross(bone.spin.cross(arm)) * w;
                    }
                    let omega_dot = (vector_part(n_bend, n) - omega * n.dot(n_dot)) * (2.0 / size);
                    self.turns[a] = turn;
                    x += d;
                    velocity += omega.cross(d) + rate;
                    bend += omega_dot.cross(d) + omega.cross(omega.cross(d) + rate * 2.0);
                }
            }
            (self.places[a], self.velocities[a], self.bends[a]) = (x, velocity, bend);
            self.displaced[a] = self.turns[a] * node.position;
        }
    }
}

/// How alike two sets of weights must be for a triangle to count in a centre.
const ALIKE: f64 = 0.1;

/// The centre of rotation of each vertex [Le 2016, eq. 1]: the mean place of the triangles with weights alike,
///
/// ```text
/// s(v, t) = Σ_{j≠k} w_vj w_vk w_tj w_tk exp(−(w_vj w_tk − w_vk w_tj)²/σ²)
/// ```
/// by s and area. A vertex that follows one bone, or that no triangle is like, is its own centre.
pub(super) fn centres(surface: &SurfaceMesh, influences: &[[Influence; INFLUENCES]], counts: &[u8]) -> Vec<DVec3> {
    // Triangles by pairs of bones that their corners follow, with the mean weights
    struct Patch {
        centre: DVec3,
        area: f64,
        weights: Vec<(u32, f64)>,
    }
    let patches: Vec<Patch> = surface
        .triangles
        .iter()
        .map(|&t| {
            let [a, b, c] = surface.corners(t);
            let mut weights: Vec<(u32, f64)> = Vec::new();
            for i in t.iter().flat_map(|&v| &influences[v as usize][..counts[v as usize] as usize]) {
                match weights.iter_mut().find(|(body, _)| *body == i.body) {
                    Some((_, w)) => *w += i.weight / 3.0,
                    None => weights.push((i.body, i.weight / 3.0)),
                }
            }
            weights.sort_unstable_by_key(|(body, _)| *body);
            Patch { centre: (a + b + c) / 3.0, area: 0.5 * (b - a).cross(c - a).length(), weights }
        })
        .collect();
    let mut by_pair: Vec<((u32, u32), u32)> = Vec::new();
    for (t, patch) in patches.iter().enumerate() {
        for (k, (j, _)) in patch.weights.iter().enumerate() {
            by_pair.extend(patch.weights[..k].iter().map(|(i, _)| ((*i, *j), t as u32)));
        }
    }
    by_pair.sort_unstable();
    let weight_of = |patch: &Patch, body: u32| patch.weights.iter().find(|(b, _)| *b == body).map_or(0.0, |(_, w)| *w);
    let one = |v: usize| {
        let own = &influences[v][..counts[v] as usize];
        let (mut sum, mut total) = (DVec3::ZERO, 0.0);
        for (k, j) in own.iter().enumerate() {
            for i in &own[..k] {
                let pair = (i.body.min(j.body), i.body.max(j.body));
                let from = by_pair.partition_point(|(p, _)| *p < pair);
                for (_, t) in by_pair[from..].iter().take_while(|(p, _)| *p == pair) {
                    let patch = &patches[*t as usize];
                    let (w_i, w_j) = (weight_of(patch, i.body), weight_of(patch, j.body));
                    let apart = (i.weight * w_j - j.weight * w_i) / ALIKE;
                    // both orders of the pair
                    let s = 2.0 * i.weight * j.weight * w_i * w_j * (-apart * apart).exp() * patch.area;
                    sum += patch.centre * s;
                    total += s;
                }
            }
        }
        if total > 0.0 { sum / total } else { surface.vertices[v] }
    };
    (0..surface.vertices.len()).map(one).collect()
}

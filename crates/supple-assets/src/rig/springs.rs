//! Stiffness and damping of joints by what they do: how far a joint gives way under what it carries, and how long it takes to come to rest.
//!
//! Sag. In a tree the torques of rest follow from the pose alone. Held level, what a joint carries turns it by `τ/k`, `τ = m g r`, so
//! 1. `k = τ / sag`, joint by joint.
//!
//! Settling. Near rest, with x the angles of all joints and the places of the held roots,
//! 2. `M ẍ + C ẋ + K x = 0`, K and C diagonal. With `A = K^−½ M K^−½`, `A u = λ u`, each mode is one mass on one spring, `ω² = 1/λ`. A damper that is
//!    `β = c/k` of its spring takes from a mode in proportion to the part `(e·u)²` that its joint has in it: damping ratio `ζ = ½ ω Σ β (e·u)²`; what
//!    dampers take across modes is left out.
//! 3. Joint i, turned aside alone and let go, puts the share `(e·u)²` of the energy into each mode, e its unit vector. Shares, frequencies and what the
//!    other dampers take come from three products with M, by the method of Lanczos: the three modes of the tridiagonal matrix that it makes of A stand
//!    for all [Golub 1969].
//! 4. It has come to rest at T when `Σ share · E(ω, ζ, T) = 0.02²`, E the energy left of a mode: 2 % of the swing. This gives its β, and `c = β k`;
//!    dampers feel each other, so all are gone through a few times. No β is fast enough for what is soft and heavy: then the joint must be
//!    stiffer, `k ≥ I (5.83/T)²`, that of critical damping.
//!
//! M is never formed: its product with a vector is a sweep down the tree for velocities and one up for momenta, in linear time.

use super::build::{GRAVITY, centre_and_inertia};
use super::{Bone, SpringFrom, Turn};
use glam::{DMat3, DVec3};
use std::ops::Range as Span;
use supple::maths::{rotation, singular};

/// A critically damped spring of frequency ω is within 2 % after this over ω: (1 + x) e⁻ˣ = 0.02.
const CRITICAL: f64 = 5.834;
/// What is left of the energy when the swing is down to 2 %.
const LEFT: f64 = 0.02 * 0.02;
/// Least and largest damping ratio of the slowest mode: less rings on for ever, more creeps.
const RATIOS: (f64, f64) = (0.05, 1.0);
/// How often all dampers are gone through.
const ROUNDS: usize = 4;
/// In a tree of more bones than this each joint is taken as one mass on one spring: the sweeps are as many as the bones, and each visits all.
const MANY: usize = 600;

/// What hangs on a joint.
#[derive(Clone, Copy, Debug)]
pub(super) struct Carries {
    /// \[kg\]
    pub(super) mass: f64,
    /// Centre of mass \[m\].
    pub(super) centre: DVec3,
    /// About the joint, world axes \[kg·m²\].
    pub(super) inertia: DMat3,
}

impl Carries {
    /// The torque about a point that holds it against its weight: `−r × m g` \[N·m\].
    pub(super) fn holding(&self, about: DVec3) -> DVec3 {
        (self.centre - about).cross(DVec3::Y * (self.mass * GRAVITY))
    }

    /// The largest torque of its weight, and its largest moment, that a joint can feel \[N·m, kg·m²\].
    fn felt_by(&self, bone: &Bone) -> (f64, f64) {
        let lever = self.centre - bone.pivot();
        let (lever, moment) = match bone.axis() {
            Some(axis) => (lever.reject_from_normalized(axis).length(), axis.dot(self.inertia * axis)),
            None => (lever.length(), largest_moment(self.inertia)),
        };
        (self.mass * GRAVITY * lever, moment)
    }
}

/// Spring and damper of a joint.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spring {
    /// \[N·m/rad\]
    pub(super) stiffness: f64,
    /// \[N·m·s/rad\]
    pub(super) damping: f64,
    /// The largest moment of what it carries \[kg·m²\].
    pub(super) inertia: f64,
    /// The largest torque of its weight \[N·m\].
    pub(super) load: f64,
    /// The torque that holds what it carries in the pose at rest, world axes \[N·m\].
    pub(super) holding: DVec3,
}

/// Inertia of a point mass at `p` about the origin.
pub(super) fn point_inertia(p: DVec3, mass: f64) -> DMat3 {
    (DMat3::from_diagonal(DVec3::splat(p.length_squared())) - DMat3::from_cols(p * p.x, p * p.y, p * p.z)) * mass
}

pub(super) fn largest_moment(inertia: DMat3) -> f64 {
    singular::eigen(inertia).0.max_element()
}

/// What each joint carries, leaves to roots.
pub(super) fn carries(bones: &[Bone]) -> Vec<Carries> {
    // Mass, first moment and inertia about the world's origin add up.
    let mut sums: Vec<(f64, DVec3, DMat3)> = bones
        .iter()
        .map(|bone| {
            let (centre, inertia) = centre_and_inertia(bone);
            let at = bone.link.transform_point(centre);
            let inertia = rotation::turned_inertia(bone.link.rotation, inertia) + point_inertia(at, bone.mass);
            (bone.mass, at * bone.mass, inertia)
        })
        .collect();
    for i in (0..bones.len()).rev() {
        if let Some(parent) = bones[i].parent {
            let (mass, moment, inertia) = sums[i];
            let sum = &mut sums[parent];
            *sum = (sum.0 + mass, sum.1 + moment, sum.2 + inertia);
        }
    }
    let about_joint = |bone: &Bone, (mass, moment, inertia): (f64, DVec3, DMat3)| {
        let centre = moment / mass;
        let at_centre = inertia - point_inertia(centre, mass);
        Carries { mass, centre, inertia: at_centre + point_inertia(centre - bone.pivot(), mass) }
    };
    bones.iter().zip(sums).map(|(bone, sum)| about_joint(bone, sum)).collect()
}

/// Spring and damper of every joint; `hold` is the squared frequency of the springs that hold the roots \[1/s²\]. Roots have entries without meaning.
pub(super) fn springs(bones: &[Bone], carries: &[Carries], hold: f64) -> Vec<Spring> {
    let asked = |bone: &Bone| {
        bone.is_joined() && bone.spring_from != SpringFrom::File && (bone.axis().is_some() || bone.turns_all_ways())
    };
    let mut springs: Vec<Spring> = bones
        .iter()
        .zip(carries)
        .map(|(bone, carried)| {
            let (load, inertia) = carried.felt_by(bone);
            // (1), and the last line of (4)
            let stiffness = (load / bone.sag.max(1e-4)).max(inertia * (CRITICAL / bone.settle.max(1e-3)).powi(2));
            Spring { stiffness, damping: 0.0, inertia, load, holding: carried.holding(bone.pivot()) }
        })
        .collect();
    for (bone, spring) in bones.iter().zip(&mut springs) {
        if let Turn::Given(joint) = &bone.joint
            && bone.spring_from == SpringFrom::File
        {
            (spring.stiffness, spring.damping) = (joint.spring.stiffness, joint.spring.damping);
        }
        if let Some(swing) = bone.swing {
            (spring.stiffness, spring.damping) = (spring.inertia * swing.square, spring.inertia * swing.drag);
        }
    }
    let mut tree = Tree::new(bones, carries, &springs, hold);
    for round in 0..ROUNDS {
        for i in (0..bones.len()).filter(|i| asked(&bones[*i])) {
            if springs[i].stiffness <= 0.0 {
                continue;
            }
            let modes = if tree.trees[i].len() > MANY {
                let square = springs[i].stiffness / springs[i].inertia;
                [1.0, 0.0, 0.0].map(|share| Mode { share, square, own: 1.0, others: 0.0 })
            } else {
                tree.modes(i, &bones[i], &carries[i])
            };
            // At first the others are taken to be damped as this one is.
            let modes = modes.map(|m| if round == 0 { Mode { own: 1.0, others: 0.0, ..m } } else { m });
            let beta = proportion(&modes, bones[i].settle.max(1e-3));
            springs[i].damping = beta * springs[i].stiffness;
            tree.directions[tree.first[i]..tree.first[i + 1]].iter_mut().for_each(|d| d.damping = beta);
        }
    }
    springs
}

/// How long a joint with this stiffness and damping takes to come to rest, by (4), as one mass on one spring \[s\].
pub(super) fn settling(spring: &Spring) -> f64 {
    let omega = (spring.stiffness / spring.inertia).sqrt();
    let ratio = spring.damping * omega / (2.0 * spring.stiffness);
    let (mut low, mut high) = (0.0, 1e3);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if energy_left(omega, ratio, middle) > LEFT { low = middle } else { high = middle }
    }
    high
}

/// A mode in which a joint takes part.
#[derive(Clone, Copy, Debug)]
struct Mode {
    /// Of the energy that the joint puts in.
    share: f64,
    /// ω² \[1/s²\]
    square: f64,
    /// The part of the mode that the joint itself has, and `Σ β (e·u)²` of the other dampers \[s\].
    own: f64,
    others: f64,
}

/// β of (4).
fn proportion(modes: &[Mode; 3], settle: f64) -> f64 {
    let left = |beta: f64| -> f64 {
        let of = |m: &Mode| {
            let omega = m.square.sqrt();
            m.share * energy_left(omega, 0.5 * omega * (m.own * beta + m.others), settle)
        };
        modes.iter().map(of).sum()
    };
    let slowest = modes.iter().filter(|m| m.share > 1e-3).map(|m| m.square).fold(f64::INFINITY, f64::min);
    let (least, most) = (2.0 * RATIOS.0 / slowest.sqrt(), 2.0 * RATIOS.1 / slowest.sqrt());
    if !(least.is_finite() && most.is_finite()) {
        return 0.0;
    }
    // More damping takes more energy, until it creeps: the first that is enough, else the best.
    let (mut before, mut best) = (least, (left(least), least));
    let mut beta = least;
    while beta < most && best.0 > LEFT {
        before = beta;
        beta = (1.05 * beta).min(most);
        let now = left(beta);
        if now < best.0 {
            best = (now, beta);
        }
    }
    if best.0 > LEFT || best.1 == least {
        return best.1;
    }
    let (mut low, mut high) = (before, best.1);
    for _ in 0..40 {
        let middle = 0.5 * (low + high);
        if left(middle) > LEFT { low = middle } else { high = middle }
    }
    high
}

/// The energy at time t of one mass on one spring, of 1 at the start, let go at rest: `x² + (v/ω)²` of `ẍ + 2 ζ ω ẋ + ω² x = 0`.
fn energy_left(omega: f64, ratio: f64, t: f64) -> f64 {
    let ratio = if (ratio - 1.0).abs() < 1e-6 { 1.0 + 1e-6 } else { ratio };
    let (x, v) = if ratio < 1.0 {
        let s = (1.0 - ratio * ratio).sqrt();
        let (sin, cos) = (omega * s * t).sin_cos();
        let decay = (-ratio * omega * t).exp();
        (decay * (cos + ratio / s * sin), -decay * sin / s)
    } else {
        let s = (ratio * ratio - 1.0).sqrt();
        let (slow, fast) = ((-(ratio - s) * omega * t).exp(), (-(ratio + s) * omega * t).exp());
        (((ratio + s) * slow - (ratio - s) * fast) / (2.0 * s), -(slow - fast) / (2.0 * s))
    };
    x * x + v * v
}

/// A direction in which the tree can move: a twist, its linear part at the world's origin, and the stiffness that holds it.
#[derive(Clone, Copy, Debug)]
struct Direction {
    angular: DVec3,
    linear: DVec3,
    /// `1/√k`
    softness: f64,
    /// `β = c/k` \[s\]
    damping: f64,
}

/// The tree at rest, to be multiplied by.
struct Tree<'a> {
    bones: &'a [Bone],
    /// By bone: mass, centre of mass in the world, inertia about it in world axes.
    inertias: Vec<(f64, DVec3, DMat3)>,
    directions: Vec<Direction>,
    /// By bone, and one more: where its directions begin.
    first: Vec<usize>,
    /// By bone: the bones of the tree that it is in. They stand together.
    trees: Vec<Span<usize>>,
    /// Scratch by bone: twists, then momenta (linear, and angular about the world's origin).
    twists: Vec<(DVec3, DVec3)>,
    momenta: Vec<(DVec3, DVec3)>,
}

impl<'a> Tree<'a> {
    fn new(bones: &'a [Bone], carries: &[Carries], springs: &[Spring], hold: f64) -> Tree<'a> {
        let (mut directions, mut first) = (Vec::new(), vec![0]);
        for (i, bone) in bones.iter().enumerate() {
            let at = bone.pivot();
            // A turn about a through p: the point at the origin moves with p × a.
            let turn = |axis: DVec3, stiffness: f64| Direction {
                angular: axis,
                linear: at.cross(axis),
                softness: 1.0 / stiffness.sqrt(),
                damping: springs[i].damping / stiffness,
            };
            let all = [DVec3::X, DVec3::Y, DVec3::Z];
            if !bone.is_joined() {
                let (mass, moment) = (carries[i].mass * hold, largest_moment(carries[i].inertia) * hold);
                let damping = 2.0 / hold.sqrt(); // critical
                let slide =
                    |axis| Direction { angular: DVec3::ZERO, linear: axis, softness: 1.0 / mass.sqrt(), damping };
                directions.extend(all.map(slide));
                directions.extend(all.map(|axis| Direction { damping, ..turn(axis, moment) }));
            } else if springs[i].stiffness > 0.0 {
                match bone.axis() {
                    Some(axis) => directions.push(turn(axis, springs[i].stiffness)),
                    None if bone.turns_all_ways() => {
                        directions.extend(all.map(|axis| turn(axis, springs[i].stiffness)));
                    }
                    None => {}
                }
            }
            first.push(directions.len());
        }
        let inertias = bones.iter().map(|bone| {
            let (centre, inertia) = centre_and_inertia(bone);
            let turned = rotation::turned_inertia(bone.link.rotation, inertia);
            (bone.mass, bone.link.transform_point(centre), turned)
        });
        // Parents come first, and each tree is whole before the next begins.
        let roots: Vec<usize> = (0..bones.len()).filter(|i| bones[*i].parent.is_none()).chain([bones.len()]).collect();
        let trees = roots.windows(2).flat_map(|w| vec![w[0]..w[1]; w[1] - w[0]]).collect();
        let scratch = vec![(DVec3::ZERO, DVec3::ZERO); bones.len()];
        let (inertias, twists) = (inertias.collect(), scratch.clone());
        Tree { bones, inertias, directions, first, trees, twists, momenta: scratch }
    }

    /// `y = A x` of (2), for the directions of one tree.
    fn times(&mut self, tree: &Span<usize>, x: &[f64], y: &mut [f64]) {
        let begin = self.first[tree.start];
        // Velocities: V = V_parent + Σ S x, from the root out; momenta of each body alone.
        for i in tree.clone() {
            let (mut linear, mut angular) = self.bones[i].parent.map_or((DVec3::ZERO, DVec3::ZERO), |p| self.twists[p]);
            for k in self.first[i]..self.first[i + 1] {
                let (direction, x) = (&self.directions[k], x[k - begin] * self.directions[k].softness);
                (linear, angular) = (linear + direction.linear * x, angular + direction.angular * x);
            }
            self.twists[i] = (linear, angular);
            let (mass, centre, inertia) = self.inertias[i];
            let momentum = (linear + angular.cross(centre)) * mass;
            self.momenta[i] = (momentum, inertia * angular + centre.cross(momentum));
        }
        // Momenta of all that hangs on each, from the leaves in: y = Sᵀ H.
        for i in tree.clone().rev() {
            let (momentum, spin) = self.momenta[i];
            for k in self.first[i]..self.first[i + 1] {
                let direction = &self.directions[k];
                y[k - begin] = direction.softness * (direction.angular.dot(spin) + direction.linear.dot(momentum));
            }
            if let Some(parent) = self.bones[i].parent {
                let above = &mut self.momenta[parent];
                *above = (above.0 + momentum, above.1 + spin);
            }
        }
    }

    /// The modes of (3) for joint i, a ball turned the way it carries most.
    fn modes(&mut self, i: usize, bone: &Bone, carried: &Carries) -> [Mode; 3] {
        let tree = self.trees[i].clone();
        let (begin, end) = (self.first[tree.start], self.first[tree.end]);
        let n = end - begin;
        let at = self.first[i] - begin;
        let mut q = vec![0.0; n];
        match bone.axis() {
            Some(_) => q[at] = 1.0,
            None => {
                let (_, axes) = super::fit::eigen(carried.inertia);
                q[at..at + 3].copy_from_slice(&axes.x_axis.to_array());
            }
        }
        // A q_k = b_{k−1} q_{k−1} + a_k q_k + b_k q_{k+1}
        let mut basis = [q, vec![0.0; n], vec![0.0; n]];
        let mut product = vec![0.0; n];
        let (mut a, mut b) = ([0.0; 3], [0.0; 3]);
        for k in 0..3 {
            self.times(&tree, &basis[k], &mut product);
            a[k] = dot(&basis[k], &product);
            for j in 0..n {
                product[j] -= a[k] * basis[k][j];
                if k > 0 {
                    product[j] -= b[k - 1] * basis[k - 1][j];
                }
            }
            b[k] = dot(&product, &product).sqrt();
            if b[k] <= 1e-9 * a[0] {
                // The joint moves in these modes alone: those that are missing have no share.
                b[k] = 0.0;
                let missing = a[0];
                a[k + 1..].fill(missing);
                break;
            }
            if k < 2 {
                for j in 0..n {
                    basis[k + 1][j] = product[j] / b[k];
                }
            }
        }
        let tridiagonal =
            DMat3::from_cols(DVec3::new(a[0], b[0], 0.0), DVec3::new(b[0], a[1], b[1]), DVec3::new(0.0, b[1], a[2]));
        let (values, vectors) = singular::eigen(tridiagonal);
        let mut modes = [0, 1, 2].map(|j| Mode {
            share: vectors.col(j).x.powi(2),
            square: 1.0 / values[j].max(1e-12 * a[0]),
            own: 0.0,
            others: 0.0,
        });
        let own = at..self.first[i + 1] - begin;
        for (k, direction) in self.directions[begin..end].iter().enumerate() {
            let here = DVec3::new(basis[0][k], basis[1][k], basis[2][k]);
            for (j, mode) in modes.iter_mut().enumerate() {
                let part = here.dot(vectors.col(j)).powi(2);
                if own.contains(&k) { mode.own += part } else { mode.others += part * direction.damping }
            }
        }
        modes
    }
}

fn dot(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| x * y).sum()
}

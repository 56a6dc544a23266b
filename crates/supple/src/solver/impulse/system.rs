//! The rows of joints and grips at one pose, and the linear system that couples them [Bender 2006, §4.5].
//!
//! With J the rows, `M` the masses and `G` the implicit forces (`kicks.rs`), a change of velocity ΔV and impulses p solve
//!
//! ```text
//! (M + G) ΔV − Jᵀ p = r,     J ΔV = c                                                                   (1)
//! S p = c,   S = J M⁻¹ Jᵀ,   ΔV = M⁻¹ Jᵀ p          when G and r are zero                                (2)
//! ```
//! (2) is the paper's matrix: its blocks K, L, W, U and their signs are the products of the rows here. It is factored with joints as nodes. A body that
//! carries many joints makes it dense; (1) has bodies and joints as nodes and stays sparse, so it is factored in that case, and when there are
//! implicit forces. On a tree (1) is eliminated in tree order, each body before its joint [Hernández 2011, §3.3]; nothing fills in.
//!
//! Rows that close loops may say the same thing twice: S is singular then. Each is given a little give, `−μ` on its diagonal, `μ` a ten-thousand-millionth
//! of its own `J M⁻¹ Jᵀ`: enough for pivots, and so little that the rows of a four-bar that comes to lie flat, which are nearly dependent, still close. The caller
//! repeats its corrections until the joints are closed, which takes the give out again: no answer is changed by it. That
//! replaces the two alternating systems of [Bender 2006, §4.6], which are there for comparison (`Variant::SplitLoops`).

use super::Elimination;
use super::kicks::Soft;
use crate::flesh::together::Law;
use crate::input::Grip;
use crate::maths::block::{Block, Vector, add_scaled, from_twist, to_twist, to_wrench};
use crate::maths::rotation::turned_inertia;
use crate::maths::sparse::{Ldl, Slot, Sparse};
use crate::maths::{Pose, Twist, Wrench};
use crate::model::joint::{Errors, Hold};
use crate::model::{BodyId, BodyState, JointId, JointMask, Model};
use crate::step::Failure;
use glam::{DMat3, DVec3};

/// Share of a closing row's own `J M⁻¹ Jᵀ` that it gives.
const GIVE: f64 = 1e-10;
/// With more joints than this on one body, bodies and joints are eliminated together: the clique of its joints costs their number cubed.
const MANY_JOINTS: usize = 8;

/// The inverse mass of a body at one pose.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mass {
    /// \[1/kg\]
    pub inverse: f64,
    /// World axes \[1/(kg·m²)\].
    pub inverse_inertia: DMat3,
}

impl Mass {
    /// `M⁻¹ w`.
    pub(super) fn answer(&self, w: &Vector) -> Vector {
        let (f, t) = (DVec3::new(w[0], w[1], w[2]) * self.inverse, self.inverse_inertia * DVec3::new(w[3], w[4], w[5]));
        [f.x, f.y, f.z, t.x, t.y, t.z]
    }
}

/// A joint or a grip: what is held between which bodies.
pub(super) struct Held {
    pub a: usize,
    /// `None` is the world.
    pub b: Option<usize>,
    pub hold: Hold,
    /// `None`: a grip.
    pub joint: Option<JointId>,
    /// Whether it closes a loop, so that its rows may repeat what others say.
    closes: bool,
}

/// Rows of one of them.
#[derive(Clone, Copy)]
pub(super) struct HeldRows {
    pub count: usize,
    /// J of both sides.
    a: Block,
    b: Block,
    /// `M⁻¹ Jᵀ` of both sides.
    answer_a: Block,
    answer_b: Block,
}

const NO_ROWS: HeldRows = HeldRows {
    count: 0,
    a: Block::zeros(0, 6),
    b: Block::zeros(0, 6),
    answer_a: Block::zeros(6, 0),
    answer_b: Block::zeros(6, 0),
};

/// Which matrix is factored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// (2)
    Joints,
    /// (1)
    Bodies,
}

/// A matrix, its factors, and where blocks go.
struct Factored {
    matrix: Sparse,
    factors: Ldl,
    slots: Vec<Slot>,
}

/// What a factorisation was made from: while it is the same, so are the factors.
#[derive(Default)]
struct MadeFrom {
    kind: Option<Kind>,
    h: f64,
    poses: Vec<Pose>,
    soft: Vec<Soft>,
    /// Whether flesh was in it, which is never the same twice.
    flesh: bool,
}

/// Rows, masses and factors.
pub(super) struct System {
    pub held: Vec<Held>,
    pub rows: Vec<HeldRows>,
    pub masses: Vec<Mass>,
    /// The constants the masses follow from: 1/m, and the inverse inertia in body axes.
    inverses: Vec<(f64, DMat3)>,
    inertias: Vec<(f64, DMat3)>,
    /// The held of body i, with their side, are `touching[first[i]..first[i + 1]]`.
    touching: Vec<(usize, Side)>,
    first: Vec<usize>,
    /// Bodies with a force between them.
    springs: Vec<(usize, usize)>,
    joints: Option<Factored>,
    bodies: Option<Factored>,
    made_from: MadeFrom,
    /// Right-hand side and answer, by node.
    x: Vec<Vector>,
    /// The bodies of the grips and whether their rotation is held: what the matrix's blocks depend on.
    grips: Vec<(usize, JointMask)>,
    closed_joints: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    A,
    B,
}

/// Which joints a system holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Which {
    All,
    /// Those of the spanning tree.
    Tree,
    /// Those that close loops: the marked ones of [Bender 2006, §4.6].
    Closing,
}

impl System {
    pub(super) fn new(model: &Model, which: Which) -> System {
        let loops = &model.topology().loops;
        let held: Vec<Held> = model
            .joints()
            .iter()
            .enumerate()
            .filter(|(_, joint)| joint.mask.rows() > 0)
            .map(|(k, joint)| Held {
                a: joint.child.index(),
                b: joint.parent.map(|p| p.index()),
                hold: joint.hold(),
                joint: Some(JointId(k as u32)),
                closes: loops.binary_search(&JointId(k as u32)).is_ok(),
            })
            .filter(|held| match which {
                Which::All => true,
                Which::Tree => !held.closes,
                Which::Closing => held.closes,
            })
            .collect();
        let sprung = model.joints().iter().filter(|j| {
            let springs = [
                j.rotation_spring.stiffness,
                j.rotation_spring.damping,
                j.slide_spring.stiffness,
                j.slide_spring.damping,
            ];
            springs.iter().any(|k| *k > 0.0) || j.limits.any() || j.motor.is_some()
        });
        let pair = |a: usize, b: Option<usize>| b.map(|b| (a, b));
        let springs = sprung
            .filter_map(|j| pair(j.child.index(), j.parent.map(|p| p.index())))
            .chain(model.anchor_springs().iter().filter_map(|s| pair(s.a.index(), s.b.map(|b| b.index()))))
            .chain(Law::pairs(model))
            .collect();
        let mut system = System {
            closed_joints: held.len(),
            held,
            rows: Vec::new(),
            masses: vec![Mass { inverse: 0.0, inverse_inertia: DMat3::ZERO }; model.bodies().len()],
            inverses: model.bodies().iter().map(|b| (1.0 / b.mass, b.inertia.inverse())).collect(),
            inertias: model.bodies().iter().map(|b| (b.mass, b.inertia)).collect(),
            touching: Vec::new(),
            first: Vec::new(),
            springs,
            joints: None,
            bodies: None,
            made_from: MadeFrom::default(),
            x: Vec::new(),
            grips: Vec::new(),
        };
        system.connect();
        system
    }

    /// Holds these grips besides the joints. Allocates when other bodies are gripped than before.
    pub(super) fn hold_grips(&mut self, grips: &[Grip]) {
        let mask = |grip: &Grip| if grip.rotation.is_some() { JointMask::WELD } else { JointMask::BALL };
        let same = grips.iter().map(|g| (g.body.index(), mask(g))).eq(self.grips.iter().copied());
        if !same {
            self.grips = grips.iter().map(|g| (g.body.index(), mask(g))).collect();
            self.held.truncate(self.closed_joints);
            for grip in grips {
                let (a, b, hold) = (grip.body.index(), None, grip_hold(grip, mask(grip)));
                self.held.push(Held { a, b, hold, joint: None, closes: true });
            }
            self.connect();
        }
        for (held, grip) in self.held[self.closed_joints..].iter_mut().zip(grips) {
            held.hold = grip_hold(grip, mask(grip));
        }
        if !grips.is_empty() {
            self.made_from.kind = None; // their rows may turn with the target
        }
    }

    /// Sets room aside for this many implicit forces.
    pub(super) fn make_room(&mut self, soft: usize) {
        let missing = soft.saturating_sub(self.made_from.soft.len());
        self.made_from.soft.reserve(missing);
    }

    /// Finds out what touches what.
    fn connect(&mut self) {
        let bodies = self.masses.len();
        let sides = |held: &Held| [Some((held.a, Side::A)), held.b.map(|b| (b, Side::B))].into_iter().flatten();
        self.first = vec![0; bodies + 1];
        for held in &self.held {
            sides(held).for_each(|(body, _)| self.first[body + 1] += 1);
        }
        for i in 0..bodies {
            self.first[i + 1] += self.first[i];
        }
        let mut fill = self.first.clone();
        self.touching = vec![(0, Side::A); self.first[bodies]];
        for (k, held) in self.held.iter().enumerate() {
            for (body, side) in sides(held) {
                self.touching[fill[body]] = (k, side);
                fill[body] += 1;
            }
        }
        self.rows = vec![NO_ROWS; self.held.len()];
        self.x = vec![[0.0; 6]; bodies + self.held.len()];
        (self.joints, self.bodies) = (None, None);
        self.made_from.kind = None;
    }

    /// Which matrix to factor.
    fn kind(&self, elimination: Elimination, (soft, flesh): (&[Soft], Option<&Law>)) -> Kind {
        match elimination {
            Elimination::Bodies => Kind::Bodies,
            _ if !soft.is_empty() || flesh.is_some() => Kind::Bodies,
            Elimination::Joints => Kind::Joints,
            Elimination::Automatic => {
                let many = self.first.windows(2).any(|f| f[1] - f[0] > MANY_JOINTS);
                if many { Kind::Bodies } else { Kind::Joints }
            }
        }
    }

    /// Takes the masses at these poses.
    pub(super) fn weigh(&mut self, bodies: &[BodyState]) {
        for (mass, (body, (inverse, inverse_inertia))) in self.masses.iter_mut().zip(bodies.iter().zip(&self.inverses))
        {
            *mass = Mass { inverse: *inverse, inverse_inertia: turned_inertia(body.orientation, *inverse_inertia) };
        }
    }

    /// Takes the rows at these poses; the masses must be theirs.
    pub(super) fn place(&mut self, bodies: &[BodyState]) {
        for (rows, held) in self.rows.iter_mut().zip(&self.held) {
            let errors = held.errors(bodies);
            rows.set(&errors, &self.masses[held.a], held.b.map(|b| &self.masses[b]));
        }
    }

    /// Takes masses and rows at these poses and factors the system for a part `h`, unless all that was done already; how many factorisations it
    /// took.
    pub(super) fn factor(
        &mut self,
        model: &Model,
        elimination: Elimination,
        bodies: &[BodyState],
        (soft, flesh): (&[Soft], Option<&Law>),
        h: f64,
    ) -> Result<u32, Failure> {
        let kind = self.kind(elimination, (soft, flesh));
        if flesh.is_none() && self.is_made_from(kind, bodies, soft, h) {
            return Ok(0);
        }
        self.made_from.kind = None;
        self.place(bodies);
        let factored = match kind {
            Kind::Joints => self.assemble_joints(),
            Kind::Bodies => self.assemble_bodies(model, bodies, (soft, flesh), h),
        };
        let Factored { matrix, factors, .. } = factored;
        factors.factor(matrix).map_err(|node| self.failure(kind, node))?;
        self.made_from.kind = Some(kind);
        self.made_from.h = h;
        self.made_from.poses.clear();
        self.made_from.poses.extend(bodies.iter().map(BodyState::pose));
        self.made_from.soft.clear();
        self.made_from.soft.extend(soft.iter().map(Soft::shape));
        self.made_from.flesh = flesh.is_some();
        Ok(1)
    }

    fn is_made_from(&self, kind: Kind, bodies: &[BodyState], soft: &[Soft], h: f64) -> bool {
        let made = &self.made_from;
        let bits =
            |pose: &Pose| (pose.translation.to_array().map(f64::to_bits), pose.rotation.to_array().map(f64::to_bits));
        made.kind == Some(kind)
            && !made.flesh
            && (soft.is_empty() || made.h == h)
            && made.poses.iter().map(bits).eq(bodies.iter().map(|b| bits(&b.pose())))
            && made.soft.iter().copied().eq(soft.iter().map(Soft::shape))
    }

    fn failure(&self, kind: Kind, node: usize) -> Failure {
        let held = match kind {
            Kind::Joints => node,
            Kind::Bodies if node < self.masses.len() => return Failure::NotFinite(BodyId(node as u32)),
            Kind::Bodies => node - self.masses.len(),
        };
        self.failure_at(held)
    }

    /// The block of this joint or grip is singular.
    pub(super) fn failure_at(&self, held: usize) -> Failure {
        match self.held[held].joint {
            Some(joint) => Failure::Factor(joint),
            None => Failure::NotFinite(BodyId(self.held[held].a as u32)),
        }
    }

    /// (2): `S_ij = Σ J_i M⁻¹ J_jᵀ` over the bodies that i and j share.
    fn assemble_joints(&mut self) -> &mut Factored {
        let System { held, rows, touching, first, joints, .. } = self;
        let pairs = || {
            (0..first.len() - 1).flat_map(|body| {
                let on_body = &touching[first[body]..first[body + 1]];
                on_body.iter().enumerate().flat_map(move |(k, i)| on_body[..=k].iter().map(move |j| (*i, *j)))
            })
        };
        let Factored { matrix, slots, .. } = joints.get_or_insert_with(|| {
            let sizes: Vec<usize> = held.iter().map(|h| h.hold.mask.rows()).collect();
            let edges: Vec<(usize, usize)> = pairs().map(|(i, j)| (i.0, j.0)).collect();
            let matrix = Sparse::new(&sizes, &edges);
            let slots = edges.iter().map(|&(i, j)| matrix.slot(i, j)).collect();
            Factored { factors: Ldl::new(&matrix), matrix, slots }
        });
        matrix.clear();
        for ((i, j), slot) in pairs().zip(slots.iter()) {
            let block = rows[i.0].side(i.1).times(rows[j.0].answer(j.1));
            matrix.add_to(*slot, &block);
        }
        for (k, held) in held.iter().enumerate().filter(|(_, h)| h.closes) {
            let scale = matrix.trace(k) / held.hold.mask.rows() as f64;
            matrix.add_diagonal(k, GIVE * scale);
        }
        joints.as_mut().expect("just made")
    }

    /// (1) as `[M + G, Jᵀ; J, −μ] [ΔV; −p] = [r; c]`.
    fn assemble_bodies(
        &mut self,
        model: &Model,
        bodies: &[BodyState],
        (soft, flesh): (&[Soft], Option<&Law>),
        h: f64,
    ) -> &mut Factored {
        let System { held, rows, springs, inertias, bodies: factored, .. } = self;
        let n = bodies.len();
        let is_tree = held.iter().all(|h| !h.closes);
        let Factored { matrix, slots, .. } = factored.get_or_insert_with(|| {
            let sizes: Vec<usize> = (0..n).map(|_| 6).chain(held.iter().map(|h| h.hold.mask.rows())).collect();
            let of_rows = held
                .iter()
                .enumerate()
                .flat_map(|(k, h)| [Some((n + k, h.a)), h.b.map(|b| (n + k, b))].into_iter().flatten());
            let of_rows: Vec<(usize, usize)> = of_rows.collect();
            let edges: Vec<(usize, usize)> = of_rows.iter().chain(springs.iter()).copied().collect();
            let matrix = Sparse::new(&sizes, &edges);
            let slots = of_rows.iter().map(|&(i, j)| matrix.slot(i, j)).collect();
            let factors = match tree_order(model, held, n) {
                Some(order) => Ldl::in_order(&matrix, &order),
                None => Ldl::new(&matrix),
            };
            Factored { factors, matrix, slots }
        });
        matrix.clear();
        for (i, (body, (mass, inertia))) in bodies.iter().zip(inertias.iter()).enumerate() {
            let linear = DMat3::from_diagonal(DVec3::splat(*mass));
            let angular = turned_inertia(body.orientation, *inertia);
            matrix.add(i, i, &Block::from_quarters(linear, DMat3::ZERO, DMat3::ZERO, angular));
        }
        for soft in soft {
            let block = soft.block(h);
            matrix.add(soft.a, soft.a, &block.aa);
            if let Some(b) = soft.b {
                matrix.add(b, b, &block.bb);
                matrix.add(soft.a, b, &block.ab);
            }
        }
        for (i, j, block) in flesh.iter().flat_map(|law| &law.blocks) {
            matrix.add(*i, *j, block);
        }
        let mut slots = slots.iter();
        let mut next = || *slots.next().expect("a slot for each side");
        for (k, (held, rows)) in held.iter().zip(rows.iter()).enumerate() {
            matrix.add_to(next(), &rows.a);
            if held.b.is_some() {
                matrix.add_to(next(), &rows.b);
            }
            if !is_tree {
                matrix.add_diagonal(n + k, -GIVE * rows.scale(held.b.is_some()));
            }
        }
        factored.as_mut().expect("just made")
    }

    /// Solves (1) for the changes `c` wanted of the rows and for what bodies are owed, and adds ΔV to the velocities.
    pub(super) fn solve(&mut self, owed: &[Vector], wanted: &[Vector], velocities: &mut [Twist]) {
        let n = velocities.len();
        match self.made_from.kind {
            None => unreachable!("the system was factored"),
            Some(Kind::Joints) => {
                // nothing is owed: implicit forces make bodies nodes
                let x = &mut self.x[..wanted.len()];
                x.copy_from_slice(wanted);
                self.joints.as_mut().expect("factored").factors.solve(x);
                for (k, p) in x.iter().enumerate() {
                    apply(&self.held[k], &self.rows[k], p, velocities);
                }
            }
            Some(Kind::Bodies) => {
                let (of_bodies, of_held) = self.x.split_at_mut(n);
                of_bodies.copy_from_slice(owed);
                of_held.copy_from_slice(wanted);
                self.bodies.as_mut().expect("factored").factors.solve(&mut self.x);
                for (velocity, change) in velocities.iter_mut().zip(&self.x) {
                    *velocity = *velocity + to_twist(change);
                }
            }
        }
    }

    /// With velocities that changed by `change` while bodies were given the impulses `given`, implicit forces aside: calls `visit` with the impulse of each joint
    /// on its child. The factors must be those of (1).
    pub(super) fn find_impulses(&mut self, given: &[Vector], change: &[Twist], mut visit: impl FnMut(JointId, Wrench)) {
        let n = change.len();
        self.x[..n].copy_from_slice(given);
        for k in 0..self.held.len() {
            self.x[n + k] = self.rate(k, change);
        }
        self.bodies.as_mut().expect("factored").factors.solve(&mut self.x);
        for ((held, rows), p) in self.held.iter().zip(&self.rows).zip(&self.x[n..]) {
            if let Some(joint) = held.joint {
                visit(joint, -to_wrench(&rows.a.transpose_times_vector(p)));
            }
        }
    }

    /// The change of all velocities by these impulses on bodies: joints stay as they are, implicit forces answer.
    pub(super) fn answer(&mut self, impulses: &[(usize, Vector)], change: &mut [Twist]) {
        change.fill(Twist::ZERO);
        self.x.fill([0.0; 6]);
        match self.made_from.kind {
            None => unreachable!("the system was factored"),
            Some(Kind::Joints) => {
                // ΔV = M⁻¹ w + M⁻¹ Jᵀ p with S p = −J M⁻¹ w
                for (body, impulse) in impulses {
                    let alone = self.masses[*body].answer(impulse);
                    change[*body] = change[*body] + to_twist(&alone);
                    for &(k, side) in &self.touching[self.first[*body]..self.first[*body + 1]] {
                        add_scaled(&mut self.x[k], -1.0, &self.rows[k].side(side).times_vector(&alone));
                    }
                }
                let x = &mut self.x[..self.held.len()];
                self.joints.as_mut().expect("factored").factors.solve(x);
                for (k, p) in x.iter().enumerate() {
                    apply(&self.held[k], &self.rows[k], p, change);
                }
            }
            Some(Kind::Bodies) => {
                for (body, impulse) in impulses {
                    add_scaled(&mut self.x[*body], 1.0, impulse);
                }
                self.bodies.as_mut().expect("factored").factors.solve(&mut self.x);
                for (change, x) in change.iter_mut().zip(&self.x) {
                    *change = to_twist(x);
                }
            }
        }
    }

    /// `J V` of one of the held.
    pub(super) fn rate(&self, k: usize, velocities: &[Twist]) -> Vector {
        let (held, rows) = (&self.held[k], &self.rows[k]);
        let mut rate = rows.a.times_vector(&from_twist(velocities[held.a]));
        if let Some(b) = held.b {
            add_scaled(&mut rate, 1.0, &rows.b.times_vector(&from_twist(velocities[b])));
        }
        rate
    }

    /// `J_k M⁻¹ J_kᵀ` of one of the held, with its give.
    pub(super) fn own_block(&self, k: usize) -> Block {
        let (held, rows) = (&self.held[k], &self.rows[k]);
        let mut block = rows.a.times(&rows.answer_a);
        if held.b.is_some() {
            block.add_scaled(1.0, &rows.b.times(&rows.answer_b));
        }
        block
    }
}

/// `V += M⁻¹ Jᵀ p` on both sides.
pub(super) fn apply(held: &Held, rows: &HeldRows, p: &Vector, velocities: &mut [Twist]) {
    velocities[held.a] = velocities[held.a] + to_twist(&rows.answer_a.times_vector(p));
    if let Some(b) = held.b {
        velocities[b] = velocities[b] + to_twist(&rows.answer_b.times_vector(p));
    }
}

impl Held {
    /// How far it is open.
    pub(super) fn errors(&self, bodies: &[BodyState]) -> Errors {
        self.hold.errors(bodies[self.a].pose(), self.b.map_or(Pose::IDENTITY, |b| bodies[b].pose()))
    }
}

impl HeldRows {
    fn set(&mut self, errors: &Errors, mass_a: &Mass, mass_b: Option<&Mass>) {
        let m = errors.len();
        self.count = m;
        (self.a, self.b) = (Block::zeros(m, 6), Block::zeros(m, 6));
        (self.answer_a, self.answer_b) = (Block::zeros(6, m), Block::zeros(6, m));
        for (i, row) in errors.iter().enumerate() {
            let a = from_twist(row.a);
            self.a.set_row(i, &a);
            self.answer_a.set_column(i, &mass_a.answer(&a));
            if let Some(mass_b) = mass_b {
                let b = from_twist(row.b);
                self.b.set_row(i, &b);
                self.answer_b.set_column(i, &mass_b.answer(&b));
            }
        }
    }

    fn side(&self, side: Side) -> &Block {
        match side {
            Side::A => &self.a,
            Side::B => &self.b,
        }
    }

    fn answer(&self, side: Side) -> &Block {
        match side {
            Side::A => &self.answer_a,
            Side::B => &self.answer_b,
        }
    }

    /// The mean of the diagonal of its own `J M⁻¹ Jᵀ`.
    fn scale(&self, has_b: bool) -> f64 {
        let mut sum = 0.0;
        for i in 0..self.count {
            for k in 0..6 {
                sum += self.a.get(i, k) * self.answer_a.get(k, i);
                if has_b {
                    sum += self.b.get(i, k) * self.answer_b.get(k, i);
                }
            }
        }
        sum / self.count as f64
    }
}

fn grip_hold(grip: &Grip, mask: JointMask) -> Hold {
    Hold {
        mask,
        child_from_joint: Pose::at(grip.point),
        parent_from_joint: Pose::new(grip.rotation.unwrap_or(glam::DQuat::IDENTITY).normalize(), grip.target),
    }
}

/// Bodies, each before the joint that leads to it, children before parents; `None` where loops are closed.
fn tree_order(model: &Model, held: &[Held], bodies: usize) -> Option<Vec<u32>> {
    let mut node_of = vec![None; model.joints().len()];
    for (k, held) in held.iter().enumerate() {
        node_of[held.joint.filter(|_| !held.closes)?.index()] = Some((bodies + k) as u32);
    }
    let mut order = Vec::with_capacity(bodies + held.len());
    for node in model.topology().nodes.iter().rev() {
        order.push(node.body.0);
        order.extend(node.joint.and_then(|joint| node_of[joint.index()]));
    }
    Some(order)
}

//! The two sweeps over all nodes: up (assemble, factor, right-hand side) and down (velocities, poses, gaps).

use super::kernel::*;
use super::loads::{Loads, quaternion, vector};
use super::plan::*;
use crate::input::Input;
use crate::maths::Pose;
use crate::maths::lanes::{Kernel, Real};
use crate::maths::small::*;
use crate::model::{BodyState, JointId, Model, State};
use crate::solver::Threads;

/// The arrays of the sweeps, for one character or four side by side.
pub(crate) struct Sweep<T> {
    /// By node; 0 is the world.
    pub(crate) moving: Vec<Moving<T>>,
    /// By joint, as far as any winds.
    turns: Vec<V3<T>>,
    /// By node; written on the way up.
    pub(crate) passages: Vec<Passage<T>>,
    pub(crate) generals: Vec<General<T>>,
    /// Articulated inertias by node, when kept.
    pub(crate) kept: Vec<Kept<T>>,
    slots: Vec<Inertia<T>>,
    task_slots: Vec<Inertia<T>>,
    /// By task: the trunk node it hangs on, after the step.
    roots: Vec<Moving<T>>,
    pub(crate) loads: Loads<T>,
    pub(crate) again: Again<T>,
}

/// Further right-hand sides with the same factors, by node: `(linear, angular)`, world axes.
pub(crate) struct Again<T> {
    /// Momenta about the centres of mass.
    pub(crate) rhs: Vec<(V3<T>, V3<T>)>,
    /// Momenta at the anchors, children included.
    pub(crate) totals: Vec<(V3<T>, V3<T>)>,
    /// The solution.
    pub(crate) velocities: Vec<(V3<T>, V3<T>)>,
    /// A solution set aside.
    first: Vec<(V3<T>, V3<T>)>,
}

impl<T: Real> Again<T> {
    fn resize(&mut self, nodes: usize) {
        for list in [&mut self.rhs, &mut self.totals, &mut self.velocities, &mut self.first] {
            list.resize(nodes, (V3::zero(), V3::zero()));
        }
    }

    /// No momentum anywhere.
    pub(crate) fn clear(&mut self) {
        self.rhs.fill((V3::zero(), V3::zero()));
    }
}

/// What the way down measured.
#[derive(Clone, Copy)]
pub(crate) struct Measured<T> {
    /// Largest squared gap and its node.
    pub(crate) gap: f64,
    pub(crate) widest: u32,
    /// Largest squared sine of a tilt.
    pub(crate) tilt: f64,
    /// Sum of squares of all velocities and positions: finite if they all are.
    pub(crate) total: T,
}

impl<T: Real> Measured<T> {
    fn none() -> Self {
        Measured { gap: 0.0, widest: NONE, tilt: 0.0, total: T::zero() }
    }

    fn and(self, o: Self) -> Self {
        let wider = if o.gap > self.gap || self.widest == NONE { o } else { self };
        Measured { gap: wider.gap, widest: wider.widest, tilt: self.tilt.max(o.tilt), total: self.total + o.total }
    }

    pub(crate) fn is_finite(&self) -> bool {
        (0..T::LANES).all(|l| self.total.lane(l).is_finite())
    }
}

/// Whether the way up keeps what further right-hand sides need.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    No,
    Yes,
}

impl<T: Real> Sweep<T> {
    pub(crate) fn new(plan: &Plan) -> Self {
        let o = V3::zero();
        let passage = Passage { own: o, lever: o, c: o, e: o, turn: o, factor: Factor::Weld };
        let winding = plan.nodes.iter().filter(|n| n.flags & WINDS != 0).map(|n| n.joint as usize + 1).max();
        Sweep {
            turns: vec![o; winding.unwrap_or(0)],
            moving: vec![Moving::world(); plan.nodes.len()],
            passages: vec![passage; plan.nodes.len()],
            generals: vec![General::zero(); plan.generals],
            kept: Vec::new(),
            slots: vec![Inertia::zero(); plan.slots],
            task_slots: vec![Inertia::zero(); plan.tasks * plan.task_slots],
            roots: vec![Moving::world(); plan.tasks],
            loads: Loads::new(plan.nodes.len()),
            again: Again { rhs: Vec::new(), totals: Vec::new(), velocities: Vec::new(), first: Vec::new() },
        }
    }

    /// Reads poses and velocities, one state per lane.
    pub(crate) fn gather(&mut self, plan: &Plan, states: &[&State]) {
        T::enter(Gather { sweep: self, plan, states });
    }

    /// Writes poses and velocities back, one state per lane.
    pub(crate) fn scatter(&self, plan: &Plan, states: &mut [&mut State]) {
        T::enter(Scatter { moving: &self.moving, passages: &self.passages, plan, states });
    }

    /// Up: assembles, factors and carries the right-hand side to the root. Returns how many limits act.
    pub(crate) fn up(
        &mut self,
        plan: &Plan,
        model: &Model,
        inputs: &[&Input],
        h: f64,
        keep: Keep,
        threads: Threads,
    ) -> T {
        if keep == Keep::Yes {
            self.kept.resize(plan.nodes.len(), Kept { inertia: Inertia::zero(), inverse: S3::zero() });
        }
        let Sweep { moving, turns, passages, generals, kept, slots, task_slots, loads, .. } = self;
        T::enter(Collect { plan, model, inputs, h, loads, moving });
        let kept: &mut [Kept<T>] = if keep == Keep::Yes { kept } else { &mut [] };
        let up = Up { plan, inputs, h, moving, turns, loads };
        let parts = Parts {
            segments: &plan.segments,
            passages: &mut passages[1..],
            generals,
            kept: kept.get_mut(1..).unwrap_or(&mut []),
            slots: task_slots,
        };
        let limits = if plan.tasks > 0 { up.tasks(parts, threads) } else { T::zero() };
        let kept = kept_tail(keep, kept);
        limits + T::enter(UpTrunk { up, passages: &mut passages[1..], generals, kept, slots, task_slots })
    }

    /// Down: velocities from the root to the leaves, new poses, angles and gaps.
    pub(crate) fn down(&mut self, plan: &Plan, h: f64, threads: Threads) -> Measured<T> {
        let Sweep { moving, passages, generals, roots, .. } = self;
        let down = Down { plan, h: T::splat(h), passages, generals };
        let trunk = T::enter(DownTrunk { down, moving: &mut *moving });
        if plan.tasks == 0 {
            return trunk;
        }
        for segment in &plan.segments {
            if segment.task != NONE {
                roots[segment.task as usize] = moving[segment.parent as usize];
            }
        }
        trunk.and(down.tasks(&plan.segments, &mut moving[1..], roots, threads))
    }

    /// Velocities of the right-hand side of the way up, into `again`; poses stay.
    pub(crate) fn solve_present(&mut self, plan: &Plan) {
        self.again.resize(plan.nodes.len());
        T::enter(Descend { sweep: self, plan });
    }

    /// Sets the solution aside; the solves that follow are increments, whose joints do not close any further.
    pub(crate) fn set_first(&mut self) {
        let Again { velocities, first, .. } = &mut self.again;
        first.copy_from_slice(velocities);
        for passage in &mut self.passages {
            (passage.c, passage.e) = (V3::zero(), V3::zero());
        }
    }

    /// Adds the solution set aside.
    pub(crate) fn add_first(&mut self) {
        let Again { velocities, first, .. } = &mut self.again;
        for (v, f) in velocities.iter_mut().zip(first) {
            *v = (v.0 + f.0, v.1 + f.1);
        }
    }

    /// Solves for `again.rhs` with the factors of the way up, which must have been kept.
    pub(crate) fn solve_again(&mut self, plan: &Plan) {
        T::enter(Ascend { sweep: self, plan });
        T::enter(Descend { sweep: self, plan });
    }

    /// As [`down`](Self::down), with the velocities in `again`.
    pub(crate) fn place(&mut self, plan: &Plan, h: f64) -> Measured<T> {
        T::enter(Place { sweep: self, plan, h })
    }
}

fn kept_tail<T>(keep: Keep, kept: &mut [Kept<T>]) -> &mut [Kept<T>] {
    if keep == Keep::Yes { &mut kept[1..] } else { kept }
}

struct Gather<'a, T> {
    sweep: &'a mut Sweep<T>,
    plan: &'a Plan,
    states: &'a [&'a State],
}

impl<T: Real> Kernel for Gather<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for i in 1..self.plan.nodes.len() {
            let node = &self.plan.nodes[i];
            let body = node.body as usize;
            let moving = &mut self.sweep.moving[i];
            moving.x = vector(|l| self.states[l].bodies[body].position);
            moving.q = quaternion(|l| self.states[l].bodies[body].orientation);
            moving.v = vector(|l| self.states[l].bodies[body].velocity.linear);
            moving.w = vector(|l| self.states[l].bodies[body].velocity.angular);
            if node.flags & TURNS != 0 {
                moving.angle = T::gather(|l| self.states[l].joints[node.joint as usize].angle);
            }
            if node.flags & WINDS != 0 {
                self.sweep.turns[node.joint as usize] = vector(|l| self.states[l].turn_of(JointId(node.joint)));
            }
        }
    }
}

struct Scatter<'a, 's, T> {
    moving: &'a [Moving<T>],
    passages: &'a [Passage<T>],
    plan: &'a Plan,
    states: &'a mut [&'s mut State],
}

impl<T: Real> Kernel for Scatter<'_, '_, T> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for i in 1..self.plan.nodes.len() {
            let node = &self.plan.nodes[i];
            let moving = &self.moving[i];
            for lane in 0..T::LANES {
                let state = &mut *self.states[lane];
                let body: &mut BodyState = &mut state.bodies[node.body as usize];
                body.position = moving.x.lane(lane);
                body.orientation = moving.q.lane(lane);
                body.velocity.linear = moving.v.lane(lane);
                body.velocity.angular = moving.w.lane(lane);
                if node.flags & TURNS != 0 {
                    state.joints[node.joint as usize].angle = moving.angle.lane(lane);
                }
                if node.flags & WINDS != 0 {
                    state.joints[node.joint as usize].turn = self.passages[i].turn.lane(lane);
                }
                state.remembers = true;
            }
        }
    }
}

struct Collect<'a, T> {
    plan: &'a Plan,
    model: &'a Model,
    inputs: &'a [&'a Input],
    h: f64,
    loads: &'a mut Loads<T>,
    moving: &'a [Moving<T>],
}

impl<T: Real> Kernel for Collect<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let cx = Context::new(self.plan, self.inputs, &[], self.h);
        self.loads.collect(&cx, self.model, self.moving);
    }
}

/// What the way up reads.
#[derive(Clone, Copy)]
struct Up<'a, T> {
    plan: &'a Plan,
    inputs: &'a [&'a Input],
    h: f64,
    moving: &'a [Moving<T>],
    turns: &'a [V3<T>],
    loads: &'a Loads<T>,
}

/// What tasks of the way up write: the pieces of the arrays that belong to `segments`.
struct Parts<'a, T> {
    segments: &'a [Segment],
    passages: &'a mut [Passage<T>],
    generals: &'a mut [General<T>],
    /// Empty when nothing is kept.
    kept: &'a mut [Kept<T>],
    slots: &'a mut [Inertia<T>],
}

impl<'a, T: Real> Parts<'a, T> {
    /// In front of segment `k`, and from it on.
    fn split(self, k: usize, plan: &Plan) -> (Parts<'a, T>, Parts<'a, T>) {
        let (front, back) = self.segments.split_at(k);
        let nodes = (back[0].lo - front[0].lo) as usize;
        let generals = (back[0].general - front[0].general) as usize;
        let tasks = front.iter().filter(|s| s.task != NONE).count();
        let (p0, p1) = self.passages.split_at_mut(nodes);
        let (g0, g1) = self.generals.split_at_mut(generals);
        let (k0, k1) = self.kept.split_at_mut(if self.kept.is_empty() { 0 } else { nodes });
        let (s0, s1) = self.slots.split_at_mut(tasks * plan.task_slots);
        (
            Parts { segments: front, passages: p0, generals: g0, kept: k0, slots: s0 },
            Parts { segments: back, passages: p1, generals: g1, kept: k1, slots: s1 },
        )
    }
}

impl<T: Real> Up<'_, T> {
    /// The tasks among `parts.segments`, in halves on two threads.
    fn tasks(self, parts: Parts<'_, T>, threads: Threads) -> T {
        let count = parts.segments.len();
        if count == 1 {
            return if parts.segments[0].task == NONE { T::zero() } else { T::enter(UpTask { up: self, parts }) };
        }
        let (front, back) = parts.split(count / 2, self.plan);
        let (a, b) = match threads {
            Threads::One => (self.tasks(front, threads), self.tasks(back, threads)),
            Threads::Many => rayon::join(|| self.tasks(front, threads), || self.tasks(back, threads)),
        };
        a + b
    }

    /// The nodes of one segment, backwards.
    #[inline(always)]
    fn segment(
        &self,
        cx: &Context<'_, T>,
        segment: &Segment,
        passages: &mut [Passage<T>],
        generals: &mut [General<T>],
        kept: &mut [Kept<T>],
        slots: &mut [Inertia<T>],
    ) -> T {
        let mut limits = T::zero();
        let lo = segment.lo as usize;
        for i in (lo..segment.hi as usize).rev() {
            let node = &self.plan.nodes[i];
            let waiting = if node.slot_in == NONE { None } else { Some(&slots[node.slot_in as usize]) };
            let general = if node.general == NONE {
                None
            } else {
                Some(&mut generals[(node.general - segment.general) as usize])
            };
            let (load, passage) = (self.loads.get(i), &mut passages[i - lo]);
            let passed = ascend(cx, i, self.moving, load, waiting, general, kept.get_mut(i - lo), &mut limits, passage);
            if node.slot_out != NONE {
                put(&mut slots[node.slot_out as usize], &passed, node.first);
            }
        }
        limits
    }
}

#[inline(always)]
fn put<T: Real>(slot: &mut Inertia<T>, passed: &Inertia<T>, first: bool) {
    if first {
        *slot = *passed;
    } else {
        *slot = slot.plus(passed);
    }
}

struct UpTask<'a, T> {
    up: Up<'a, T>,
    parts: Parts<'a, T>,
}

impl<T: Real> Kernel for UpTask<'_, T> {
    type Output = T;
    #[inline(always)]
    fn run(self) -> T {
        let cx = Context::new(self.up.plan, self.up.inputs, self.up.turns, self.up.h);
        let Parts { segments, passages, generals, kept, slots } = self.parts;
        self.up.segment(&cx, &segments[0], passages, generals, kept, slots)
    }
}

struct UpTrunk<'a, T> {
    up: Up<'a, T>,
    passages: &'a mut [Passage<T>],
    generals: &'a mut [General<T>],
    kept: &'a mut [Kept<T>],
    slots: &'a mut [Inertia<T>],
    task_slots: &'a [Inertia<T>],
}

impl<T: Real> Kernel for UpTrunk<'_, T> {
    type Output = T;
    #[inline(always)]
    fn run(self) -> T {
        let plan = self.up.plan;
        let cx = Context::new(plan, self.up.inputs, self.up.turns, self.up.h);
        let mut limits = T::zero();
        for segment in plan.segments.iter().rev() {
            if segment.task != NONE {
                let sum = &self.task_slots[segment.task as usize * plan.task_slots];
                put(&mut self.slots[segment.slot_out as usize], sum, segment.first);
                continue;
            }
            let (lo, hi) = (segment.lo as usize - 1, segment.hi as usize - 1);
            let kept = if self.kept.is_empty() { &mut [][..] } else { &mut self.kept[lo..hi] };
            let generals = &mut self.generals[segment.general as usize..];
            limits = limits + self.up.segment(&cx, segment, &mut self.passages[lo..hi], generals, kept, self.slots);
        }
        limits
    }
}

/// What the way down reads.
#[derive(Clone, Copy)]
struct Down<'a, T> {
    plan: &'a Plan,
    h: T,
    passages: &'a [Passage<T>],
    generals: &'a [General<T>],
}

impl<T: Real> Down<'_, T> {
    /// The tasks among `segments`, in halves on two threads; `moving` holds their nodes.
    fn tasks(
        self,
        segments: &[Segment],
        moving: &mut [Moving<T>],
        roots: &[Moving<T>],
        threads: Threads,
    ) -> Measured<T> {
        let count = segments.len();
        if count == 1 {
            let segment = segments[0];
            if segment.task == NONE {
                return Measured::none();
            }
            return T::enter(DownTask { down: self, segment, moving, root: roots[segment.task as usize] });
        }
        let (front, back) = segments.split_at(count / 2);
        let (m0, m1) = moving.split_at_mut((back[0].lo - front[0].lo) as usize);
        let (a, b) = match threads {
            Threads::One => (self.tasks(front, m0, roots, threads), self.tasks(back, m1, roots, threads)),
            Threads::Many => {
                rayon::join(|| self.tasks(front, m0, roots, threads), || self.tasks(back, m1, roots, threads))
            }
        };
        a.and(b)
    }

    #[inline(always)]
    fn node(&self, i: usize, own: &mut Moving<T>, parent: &Moving<T>, measured: &mut Measured<T>) {
        (own.v, own.w) = descend(&self.passages[i], self.generals, parent.v, parent.w);
        self.settle(i, own, parent, measured);
    }

    /// Moves a node whose velocities are known; measures its joint.
    #[inline(always)]
    fn settle(&self, i: usize, own: &mut Moving<T>, parent: &Moving<T>, measured: &mut Measured<T>) {
        let node = &self.plan.nodes[i];
        integrate(own, self.h);
        measured.total = measured.total + own.v.dot(own.v) + own.w.dot(own.w) + own.x.dot(own.x);
        match node.link {
            Link::Floating => {}
            Link::Ball | Link::Hinge => {
                let gap = gap_squared(node, own, parent);
                if gap.any_above(measured.gap) || measured.widest == NONE {
                    widen(measured, gap, i);
                }
            }
            Link::Weld | Link::General(_) => measure_slowly(self.plan, i, own, parent, measured),
        }
        if node.flags & TURNS != 0 {
            let (angle, tilt) = turned_angle(self.plan, node, own, parent);
            own.angle = angle;
            if node.link == Link::Hinge && tilt.any_above(measured.tilt) {
                measured.tilt = largest(tilt);
            }
        }
    }
}

fn largest<T: Real>(x: T) -> f64 {
    (0..T::LANES).map(|l| x.lane(l)).fold(0.0, f64::max)
}

#[inline(never)]
fn widen<T: Real>(measured: &mut Measured<T>, gap: T, node: usize) {
    measured.gap = largest(gap);
    measured.widest = node as u32;
}

/// The gap of a joint of any kind, lane by lane.
#[inline(never)]
fn measure_slowly<T: Real>(plan: &Plan, i: usize, own: &Moving<T>, parent: &Moving<T>, measured: &mut Measured<T>) {
    let node = &plan.nodes[i];
    let (a, b) = if node.flags & FLIPPED != 0 { (parent, own) } else { (own, parent) };
    for lane in 0..T::LANES {
        let pose = |m: &Moving<T>| Pose::new(m.q.lane(lane), m.x.lane(lane));
        let (gap, tilt) = plan.details[node.detail as usize].joint.gap(pose(a), pose(b));
        if gap * gap > measured.gap || measured.widest == NONE {
            (measured.gap, measured.widest) = (gap * gap, i as u32);
        }
        measured.tilt = measured.tilt.max(tilt * tilt);
    }
}

struct DownTrunk<'a, T> {
    down: Down<'a, T>,
    moving: &'a mut [Moving<T>],
}

impl<T: Real> Kernel for DownTrunk<'_, T> {
    type Output = Measured<T>;
    #[inline(always)]
    fn run(self) -> Measured<T> {
        let mut measured = Measured::none();
        for segment in &self.down.plan.segments {
            if segment.task != NONE {
                continue;
            }
            for i in segment.lo as usize..segment.hi as usize {
                let (before, rest) = self.moving.split_at_mut(i);
                let parent = &before[self.down.plan.nodes[i].parent as usize];
                self.down.node(i, &mut rest[0], parent, &mut measured);
            }
        }
        measured
    }
}

struct DownTask<'a, T> {
    down: Down<'a, T>,
    segment: Segment,
    /// The nodes of the segment.
    moving: &'a mut [Moving<T>],
    root: Moving<T>,
}

impl<T: Real> Kernel for DownTask<'_, T> {
    type Output = Measured<T>;
    #[inline(always)]
    fn run(self) -> Measured<T> {
        let mut measured = Measured::none();
        let lo = self.segment.lo as usize;
        for i in lo..self.segment.hi as usize {
            let (before, rest) = self.moving.split_at_mut(i - lo);
            let p = self.down.plan.nodes[i].parent as usize;
            let parent = if p < lo { &self.root } else { &before[p - lo] };
            self.down.node(i, &mut rest[0], parent, &mut measured);
        }
        measured
    }
}

/// The way up for `again.rhs`.
struct Ascend<'a, T> {
    sweep: &'a mut Sweep<T>,
    plan: &'a Plan,
}

impl<T: Real> Kernel for Ascend<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let Sweep { passages, generals, kept, again: Again { rhs, totals, .. }, .. } = self.sweep;
        let count = self.plan.nodes.len();
        for i in 1..count {
            let (f, n) = rhs[i];
            totals[i] = (f, n - passages[i].own.cross(f));
        }
        for i in (1..count).rev() {
            let p = self.plan.nodes[i].parent as usize;
            let hop = passages[i].lever - passages[p].own;
            let (f, n) = totals[i];
            let (f, n) = ascend_again(&mut passages[i], generals, &kept[i], f, n, hop);
            if p != 0 {
                let (f0, n0) = totals[p];
                totals[p] = (f0 + f, n0 + n);
            }
        }
    }
}

/// The way down into `again.velocities`.
struct Descend<'a, T> {
    sweep: &'a mut Sweep<T>,
    plan: &'a Plan,
}

impl<T: Real> Kernel for Descend<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let Sweep { passages, generals, again: Again { velocities, .. }, .. } = self.sweep;
        velocities[0] = (V3::zero(), V3::zero());
        for i in 1..self.plan.nodes.len() {
            let (v, w) = velocities[self.plan.nodes[i].parent as usize];
            velocities[i] = descend(&passages[i], generals, v, w);
        }
    }
}

/// Moves all nodes with the velocities in `again`.
struct Place<'a, T> {
    sweep: &'a mut Sweep<T>,
    plan: &'a Plan,
    h: f64,
}

impl<T: Real> Kernel for Place<'_, T> {
    type Output = Measured<T>;
    #[inline(always)]
    fn run(self) -> Measured<T> {
        let Sweep { moving, passages, generals, again, .. } = self.sweep;
        let down = Down { plan: self.plan, h: T::splat(self.h), passages, generals };
        let mut measured = Measured::none();
        for i in 1..self.plan.nodes.len() {
            let (before, rest) = moving.split_at_mut(i);
            let own = &mut rest[0];
            (own.v, own.w) = again.velocities[i];
            down.settle(i, own, &before[self.plan.nodes[i].parent as usize], &mut measured);
        }
        measured
    }
}

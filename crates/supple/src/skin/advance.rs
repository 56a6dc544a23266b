//! One part of a step of a character with skin.
//!
//! ```text
//! pose the surface → find contacts → equations at the start of the part → free velocities (condense.rs) → contacts answer (respond.rs)
//! → velocities, poses, displacements → joints closed → vertices that are still inside put onto what they touch
//! ```
//! As published [Galoppo 2007, §5.6] contacts are looked for at the places of the free motion, and again at the end. Everything is backward Euler with
//! forces linear in the velocities at the end. On failure the state is half changed: the caller puts it back.

use super::condense::{self, Diagonal, Equations, Skeleton, SkinMatrix, Solution};
use super::pose::{Bones, Posed};
use super::respond::{Ground, Responder};
use super::touch::{Search, Side, Touch};
use super::{Grab, Skin, SkinDynamics, SkinResponse, SkinSettings};
use crate::contact::{Contact, ContactKey, Other};
use crate::forces::{self, Derivatives, Stop};
use crate::input::Input;
use crate::loads::Ledger;
use crate::maths::block::{Block, Vector, add_scaled, from_twist, from_wrench, to_twist};
use crate::maths::rotation::{exp, log, skew, turned_inertia};
use crate::maths::{Twist, Wrench};
use crate::measure;
use crate::model::{BodyId, BodyState, ContactMemory, JointId, Model, NodeState, State};
use crate::solver::tree;
use crate::step::{Cause, Failure, Report, Span};
use crate::watch::{Notes, Stage};
use glam::{DMat3, DVec3};

/// A bone that turns farther than this in a part is followed in halves \[rad\].
const TURN: f64 = 1.2;
/// Halvings that are left when it is slowed down instead.
const LEAST_HALVINGS: u32 = 4;
/// Joints are closed to this share of the character's size, in at most so many rounds.
const CLOSED: f64 = 1e-9;
const MOST_CLOSINGS: usize = 4;

/// Scratch of a character with skin.
pub(crate) struct SkinWork {
    posed: Posed,
    /// After the free motion, or at the end; as published.
    posed_ahead: Posed,
    ahead: State,
    bones: Bones,
    matrix: SkinMatrix,
    skeleton: Skeleton,
    pub(crate) search: Search,
    responder: Responder,
    solution: Solution,
    core: Vec<(usize, usize, Block)>,
    yields: Vec<DMat3>,
    /// D⁻¹ by vertex as contacts answer with it \[1/kg\]; which way each is pushed, and how it goes.
    scalars: Vec<f64>,
    headings: Vec<DVec3>,
    pushed: Vec<DVec3>,
    f_b: Vec<Vector>,
    f_s: Vec<DVec3>,
    u: Vec<DVec3>,
    /// Velocities of bodies.
    v: Vec<Vector>,
    /// Multipliers of joints and grips.
    multipliers: Vec<Vector>,
    stops: Vec<Stop>,
    grips: Vec<(u32, u8)>,
    pairs: Vec<(usize, usize)>,
    touches: Vec<Touch>,
    /// Impulse of the part before of each touch, then of contacts of bodies, then of stops \[N·s\].
    start: Vec<DVec3>,
    contacts: Vec<Contact>,
    closing: Vec<Vector>,
    /// What pushed in the last part: vertex, force \[N\].
    pub(crate) pressures: Vec<(u32, DVec3)>,
    size: f64,
    /// The most that a vertex was inside anything after the second search \[m\].
    inside: f64,
}

impl SkinWork {
    pub(crate) fn new(model: &Model, skin: &Skin) -> SkinWork {
        let low = skin.rest.iter().copied().fold(DVec3::INFINITY, DVec3::min);
        let high = skin.rest.iter().copied().fold(DVec3::NEG_INFINITY, DVec3::max);
        SkinWork {
            posed: Posed::new(skin),
            posed_ahead: Posed::new(skin),
            ahead: model.start(),
            bones: Bones::default(),
            matrix: SkinMatrix::new(skin),
            skeleton: Skeleton::new(model, skin),
            search: Search::new(model, skin),
            responder: Responder::default(),
            solution: Solution::default(),
            core: Vec::new(),
            yields: Vec::new(),
            scalars: Vec::new(),
            headings: vec![DVec3::ZERO; skin.nodes()],
            pushed: vec![DVec3::ZERO; skin.nodes()],
            f_b: Vec::new(),
            f_s: Vec::new(),
            u: Vec::new(),
            v: Vec::new(),
            multipliers: Vec::new(),
            stops: Vec::new(),
            grips: Vec::new(),
            pairs: Vec::new(),
            touches: Vec::new(),
            start: Vec::new(),
            contacts: Vec::new(),
            closing: Vec::new(),
            pressures: Vec::new(),
            size: (high - low).length(),
            inside: 0.0,
        }
    }

    /// Iterations of the last solution by conjugate gradients.
    pub(crate) fn gradient_iterations(&self) -> usize {
        self.matrix.iterations
    }
}

/// The key of a contact's memory, and its impulse over a part of length h.
fn remembered(state: &State, key: ContactKey, h: f64) -> DVec3 {
    match state.contacts.binary_search_by_key(&key, |memory| memory.key) {
        Ok(k) => state.contacts[k].first * h,
        Err(_) => DVec3::ZERO,
    }
}

/// Whether bodies of a contact are free of skin.
fn is_bare(skin: &Skin, contact: &Contact) -> bool {
    let bare = |body: BodyId| skin.bones.binary_search(&body.0).is_err();
    bare(contact.a)
        && match contact.b {
            Other::Body(b) => bare(b),
            Other::Obstacle(_) => true,
        }
}

/// One part of a step; `contacts` are those of bodies, as found at its start.
pub(crate) fn substep(
    (model, skin): (&Model, &Skin),
    input: &Input,
    contacts: &[Contact],
    span: Span,
    state: &mut State,
    work: &mut SkinWork,
    notes: &mut Notes,
) -> Result<Report, Failure> {
    let h = span.h;
    let settings = input.skin;
    if settings.dynamics == SkinDynamics::Carried {
        state.nodes.fill(NodeState::default());
    }
    work.contacts.clear();
    work.contacts.extend(contacts.iter().filter(|c| is_bare(skin, c)));
    work.posed.pose(skin, state);
    if work.matrix.set(skin, h, settings.equations).is_err() {
        return Err(Failure::NotFinite(BodyId(skin.bones[0])));
    }
    notes.mark(Stage::Forces);

    // What may touch
    work.touches.clear();
    if settings.response == SkinResponse::Complementary {
        work.search.find(model, skin, input, (state, &work.posed), (h, span.after));
        work.touches.extend_from_slice(&work.search.all);
    }
    tree::near_stops(model, state, h, work.size, &mut work.stops);
    notes.mark(Stage::Check);
    work.make_room(model, skin, input);

    // Free velocities
    let limits = work.assemble(model, skin, input, state, span);
    work.start_from_before(skin, state, h);
    notes.mark(Stage::Forces);
    work.skeleton.factor_base().map_err(|node| failure(model, node))?;
    notes.mark(Stage::Factor);
    let equations = Equations { skin, posed: &work.posed, mass: settings.mass, core: &work.core };
    let right = (&work.f_b[..], &work.f_s[..]);
    match settings.dynamics {
        SkinDynamics::Soft => {
            let mut mark = |stage| notes.mark(stage);
            equations.solve(
                &mut work.skeleton,
                &mut work.matrix,
                right,
                settings.refinements,
                &mut work.solution,
                &mut mark,
            );
        }
        SkinDynamics::Carried => work.solution.carried(&mut work.skeleton, right),
    }
    for (v, dv) in work.v.iter_mut().zip(&work.solution.bones) {
        add_scaled(v, 1.0, dv);
    }
    let bodies = model.bodies().len();
    work.multipliers.clear();
    work.multipliers.extend_from_slice(&work.solution.bones[bodies..]);
    for (node, dv) in state.nodes.iter_mut().zip(&work.solution.skin) {
        node.velocity += *dv;
    }
    notes.mark(Stage::Solve);

    // Contacts answer
    match settings.response {
        SkinResponse::Complementary => {
            work.respond((model, skin), input, state, h)?;
            if notes.ledger.is_open {
                work.note_contacts(state, &mut notes.ledger);
            }
        }
        SkinResponse::Published => {
            // limits, grabs and bodies without skin as ever; the skin's own as published
            work.respond((model, skin), input, state, h)?;
            if notes.ledger.is_open {
                work.note_contacts(state, &mut notes.ledger);
            }
            notes.mark(Stage::Close);
            work.search_ahead((model, skin), input, state, span);
            notes.mark(Stage::Check);
            work.respond_as_published((model, skin), state, h)?;
        }
    }
    if notes.ledger.is_open {
        work.note_joints(model, state, &mut notes.ledger);
    }
    notes.mark(Stage::Close);

    // Move
    let mut slowed = None;
    for (i, (body, v)) in state.bodies.iter_mut().zip(&work.v).enumerate() {
        let mut twist = to_twist(v);
        if !twist.is_finite() {
            return Err(Failure::NotFinite(BodyId(i as u32)));
        }
        if twist.angular.length() * h > TURN {
            if span.halvings > LEAST_HALVINGS {
                return Err(Failure::Turned(BodyId(i as u32)));
            }
            // a tiny bone that spins however short the part: it turns no faster than can be followed
            twist.angular = twist.angular.clamp_length_max(TURN / h);
            slowed = Some(BodyId(i as u32));
        }
        *body = moved(body, twist, h);
    }
    if settings.dynamics == SkinDynamics::Soft {
        for node in &mut state.nodes {
            node.position += node.velocity * h;
        }
        if !state.nodes.iter().all(NodeState::is_finite) {
            return Err(Failure::NotFinite(BodyId(skin.bones[0])));
        }
    }
    work.close(model, state);
    state.follow_turns(model);
    state.forget_forces();
    let penetration = match settings.response {
        SkinResponse::Complementary => work.settle_vertices(skin, state, h),
        SkinResponse::Published => {
            notes.mark(Stage::Measure);
            work.project_as_published((model, skin), input, state, span);
            notes.mark(Stage::Check);
            work.inside
        }
    };
    work.remember(state, settings, h);
    let gap = measure::joint_gap(model, state);
    let pushes = work.touches.iter().zip(&work.responder.rows).filter(|(_, row)| row.impulse != DVec3::ZERO);
    let touching = pushes.count() as u32;
    let found = work.touches.len() + work.contacts.len();
    notes.mark(Stage::Measure);
    let mut report = Report {
        max_joint_gap: gap.distance,
        max_joint_tilt: gap.tilt,
        widest_joint: gap.joint,
        substeps: 1,
        factorisations: 1 + work.responder.newton,
        solves: 1 + settings.refinements + work.responder.newton,
        limits_active: limits,
        contacts: found as u32,
        unconverged: u32::from(!work.responder.settled),
        max_penetration: penetration,
        flesh_newton: work.responder.newton,
        flesh_touching: touching,
        resorts: u32::from(slowed.is_some()),
        ..Report::default()
    };
    if let Some(body) = slowed {
        report.note(body, Cause::Resort);
    }
    Ok(report)
}

/// The failure at a node of the skeleton's matrix.
fn failure(model: &Model, node: usize) -> Failure {
    let (bodies, joints) = (model.bodies().len(), model.joints().len());
    if node < bodies {
        Failure::NotFinite(BodyId(node as u32))
    } else if node < bodies + joints {
        Failure::Factor(JointId((node - bodies) as u32))
    } else {
        Failure::NotFinite(BodyId(0))
    }
}

fn moved(body: &BodyState, velocity: Twist, h: f64) -> BodyState {
    BodyState {
        position: body.position + velocity.linear * h,
        orientation: (exp(velocity.angular * h) * body.orientation).normalize(),
        velocity,
    }
}

/// Puts a vertex aside, no farther than its layer is deep: bones that are deep inside something come out by their own motion.
fn put(skin: &Skin, node: &mut NodeState, a: usize, by: DVec3) {
    let farthest = node.position.length().max(skin.layer.depths.get(a).copied().unwrap_or(skin.depth));
    node.position = (node.position + by).clamp_length_max(farthest);
}

impl SkinWork {
    /// Room in the matrix for all pairs of bodies that touch, and for grips.
    fn make_room(&mut self, model: &Model, skin: &Skin, input: &Input) {
        let SkinWork { pairs, touches, contacts, grips, skeleton, .. } = self;
        pairs.clear();
        let own = |v: u32| skin.influences[v as usize][..skin.counts[v as usize] as usize].iter();
        for touch in touches.iter() {
            let all = || touch.vertices().map(|(v, _)| v);
            if all().count() > 1 {
                for i in all().flat_map(own) {
                    pairs.extend(all().flat_map(own).map(|j| (i.body as usize, j.body as usize)));
                }
            }
            if let Side::Body(body, _) = touch.side {
                pairs.extend(all().flat_map(own).map(|i| (i.body as usize, body.index())));
            }
        }
        for contact in contacts.iter() {
            if let Other::Body(b) = contact.b {
                pairs.push((contact.a.index(), b.index()));
            }
        }
        grips.clear();
        grips.extend(input.grips.iter().map(|grip| (grip.body.0, if grip.rotation.is_some() { 6 } else { 3 })));
        skeleton.make_room(model, skin, pairs, grips);
    }

    /// Finds D⁻¹ of the vertices that are touched. What acts on a part from its start is answered by M̃_s⁻¹, and what contacts change of it by D⁻¹. So from
    /// part to part their impulses follow `λ ← λ − D P (λ − λ*)` with `P = M̃_s⁻¹` among the vertices that are touched: to and fro, ever wider, where P is more
    /// than twice D⁻¹. A vertex that is pushed alone yields P_aa, but a patch that is pushed as a whole yields far more, since the springs within it hold none
    /// of it. With P symmetric and without negative entries, and m the masses,
    ///
    /// ```text
    /// D_a⁻¹ = (P m)_a / m_a,      Σ y_a² D_a⁻¹ − Σ y_a P_ab y_b = ½ Σ m_a P_ab m_b (y_a/m_a − y_b/m_b)² ≥ 0
    /// ```
    /// so that impulses come to rest from one side; in one part where a contact is alone. It is at most 1/m, as if all springs were cut.
    fn weigh_touches(&mut self, skin: &Skin, h: f64) {
        let SkinWork { posed, matrix, touches, scalars, headings, pushed, .. } = self;
        scalars.clone_from(&matrix.scalars);
        if touches.is_empty() {
            return;
        }
        headings.fill(DVec3::ZERO);
        for touch in touches.iter() {
            for (v, share) in touch.vertices().filter(|(v, _)| skin.soft[*v as usize]) {
                headings[v as usize] += posed.turns[v as usize].transpose() * (touch.normal * share);
            }
        }
        for (a, (heading, pushed)) in headings.iter_mut().zip(pushed.iter_mut()).enumerate() {
            *heading = heading.normalize_or_zero();
            *pushed = *heading * skin.masses[a];
        }
        matrix.solve(pushed);
        for (a, heading) in headings.iter().enumerate().filter(|(_, heading)| **heading != DVec3::ZERO) {
            let most = 1.0 / (skin.masses[a] * (1.0 + h * skin.damping[a]));
            scalars[a] = (heading.dot(pushed[a]) / skin.masses[a]).clamp(scalars[a], most.max(scalars[a]));
        }
    }

    /// The equations at the start of a part; returns how many limits act.
    fn assemble(&mut self, model: &Model, skin: &Skin, input: &Input, state: &State, span: Span) -> u32 {
        let h = span.h;
        self.weigh_touches(skin, h);
        let settings = input.skin;
        let SkinWork { posed, matrix, skeleton, core, yields, scalars, f_b, f_s, u, v, .. } = self;
        let bodies = model.bodies().len();
        v.clear();
        v.extend(state.bodies.iter().map(|body| from_twist(body.velocity)));
        f_b.clear();
        f_b.resize(skeleton.nodes(), [0.0; 6]);

        // Core: M, h (m g + gyroscopic torque), outside wrenches
        core.clear();
        for (i, (body, s)) in model.bodies().iter().zip(&state.bodies).enumerate() {
            let mass = DMat3::from_diagonal(DVec3::splat(body.mass));
            let inertia = turned_inertia(s.orientation, body.inertia);
            core.push((i, i, Block::from_quarters(mass, DMat3::ZERO, DMat3::ZERO, inertia)));
            let in_body = s.orientation.conjugate() * s.velocity.angular;
            let turned = s.orientation * forces::gyroscopic(body.inertia, in_body, h);
            let pull = Wrench::new(input.gravity * (body.mass * h), inertia * (turned - s.velocity.angular));
            f_b[i] = from_wrench(pull);
        }
        for (body, wrench) in &input.wrenches {
            add_scaled(&mut f_b[body.index()], h, &from_wrench(*wrench));
        }
        // Springs: A += h² K + h D,  f += h W − (h² K + h D) v
        let limits = forces::collect(model, input, state, h, Derivatives::Symmetric, |acting| {
            let block = acting.force.block(h * h, h);
            let [on_a, on_b] = acting.force.wrenches();
            let a = acting.a.index();
            add_scaled(&mut f_b[a], h, &from_wrench(on_a));
            add_scaled(&mut f_b[a], -1.0, &block.aa.times_vector(&v[a]));
            core.push((a, a, block.aa));
            if let Some(b) = acting.b.map(BodyId::index) {
                add_scaled(&mut f_b[b], h, &from_wrench(on_b));
                add_scaled(&mut f_b[a], -1.0, &block.ab.times_vector(&v[b]));
                add_scaled(&mut f_b[b], -1.0, &block.ba.times_vector(&v[a]));
                add_scaled(&mut f_b[b], -1.0, &block.bb.times_vector(&v[b]));
                core.push((b, b, block.bb));
                core.push((a, b, block.ab));
            }
        });
        let mass = model.bodies().iter().map(|body| body.mass).sum::<f64>() / bodies as f64;
        skeleton.clear(mass);
        for (i, j, block) in core.iter() {
            skeleton.add(*i, *j, block);
        }

        // Skin: W of the condensed matrix, and h m (g − bend) on bones and skin
        let diagonal = match settings.response {
            SkinResponse::Complementary => Diagonal::Scalars(scalars),
            SkinResponse::Published => Diagonal::Blocks(&matrix.blocks),
        };
        yields.clear();
        match settings.dynamics {
            SkinDynamics::Soft => {
                yields.extend((0..skin.nodes()).map(|a| condense::yielding(posed, diagonal, a)));
            }
            SkinDynamics::Carried => yields.resize(skin.nodes(), DMat3::ZERO),
        }
        skeleton.add_skin(skin, posed, yields, settings.mass);
        u.clear();
        u.extend(state.nodes.iter().map(|node| node.position + node.velocity * h));
        f_s.resize(skin.nodes(), DVec3::ZERO);
        skin.stiffness.product(u, f_s);
        for a in 0..skin.nodes() {
            let pull = (input.gravity - posed.bends[a]) * (skin.masses[a] * h);
            condense::pull(skin, posed, a, pull, f_b);
            let damping = state.nodes[a].velocity * (skin.masses[a] * skin.damping[a] * h);
            f_s[a] = if skin.soft[a] { posed.turns[a].transpose() * pull - f_s[a] * h - damping } else { DVec3::ZERO };
        }

        // J v = −C/h for joints, and what grips ask
        for (j, joint) in model.joints().iter().enumerate() {
            let sides = model.sides(joint, state);
            let rows = joint.mask.rows();
            let (mut on_a, mut on_b) = (Block::zeros(rows, 6), Block::zeros(rows, 6));
            for (k, row) in joint.rows(&sides).iter().enumerate() {
                let (a, b) = (from_twist(row.a), from_twist(row.b));
                on_a.set_row(k, &a);
                on_b.set_row(k, &b);
                let (va, vb) = (from_twist(sides.a_velocity), from_twist(sides.b_velocity));
                let rate: f64 = (0..6).map(|i| a[i] * va[i] + b[i] * vb[i]).sum();
                f_b[bodies + j][k] = -row.residual / h - rate;
            }
            skeleton.add(bodies + j, joint.child.index(), &on_a);
            if let Some(parent) = joint.parent {
                skeleton.add(bodies + j, parent.index(), &on_b);
            }
        }
        let first = bodies + model.joints().len();
        for (g, grip) in input.grips.iter().enumerate() {
            let s = &state.bodies[grip.body.index()];
            let lever = s.orientation * grip.point;
            let left = span.h + span.after;
            let rows = if grip.rotation.is_some() { 6 } else { 3 };
            let mut block = Block::zeros(rows, 6);
            let across = skew(lever);
            let go = (grip.target - s.position - lever) / left - s.velocity.at(lever);
            for k in 0..3 {
                let mut row = [0.0; 6];
                row[k] = 1.0;
                (0..3).for_each(|c| row[3 + c] = -across.col(c)[k]);
                block.set_row(k, &row);
                f_b[first + g][k] = go[k];
            }
            if let Some(rotation) = grip.rotation {
                let turn = log(rotation * s.orientation.conjugate()) / left - s.velocity.angular;
                for k in 0..3 {
                    let mut row = [0.0; 6];
                    row[3 + k] = 1.0;
                    block.set_row(3 + k, &row);
                    f_b[first + g][3 + k] = turn[k];
                }
            }
            skeleton.add(first + g, grip.body.index(), &block);
        }
        limits
    }

    /// Contacts that pushed in the part before push on from the start.
    fn start_from_before(&mut self, skin: &Skin, state: &State, h: f64) {
        let SkinWork { posed, touches, contacts, stops, start, f_b, f_s, .. } = self;
        start.clear();
        for touch in touches.iter() {
            let before = remembered(state, touch.key, h);
            // only what pushes, within the friction of now
            let along = touch.normal.dot(before).max(0.0);
            let across = before - touch.normal * touch.normal.dot(before);
            let impulse = touch.normal * along + across.clamp_length_max(touch.friction * along);
            start.push(impulse);
            let mut push = |v: u32, impulse: DVec3| {
                let v = v as usize;
                condense::pull(skin, posed, v, impulse, f_b);
                if skin.soft[v] {
                    f_s[v] += posed.turns[v].transpose() * impulse;
                }
            };
            if impulse != DVec3::ZERO {
                touch.vertices().for_each(|(v, share)| push(v, impulse * share));
                if let Side::Body(body, lever) = touch.side {
                    add_scaled(&mut f_b[body.index()], 1.0, &from_wrench(Wrench::at(lever, -impulse)));
                }
            }
        }
        for contact in contacts.iter() {
            let impulse = remembered(state, contact.key, h);
            start.push(impulse);
            let lever = contact.point - state.bodies[contact.a.index()].position;
            add_scaled(&mut f_b[contact.a.index()], 1.0, &from_wrench(Wrench::at(lever, impulse)));
            if let Other::Body(b) = contact.b {
                let lever = contact.point - state.bodies[b.index()].position;
                add_scaled(&mut f_b[b.index()], 1.0, &from_wrench(Wrench::at(lever, -impulse)));
            }
        }
        for stop in stops.iter() {
            let impulse = remembered(state, ContactKey::limit(stop.joint, stop.place as u32), h).x;
            start.push(DVec3::X * impulse);
            add_scaled(&mut f_b[stop.child.index()], impulse, &from_twist(stop.a));
            if let Some(parent) = stop.parent {
                add_scaled(&mut f_b[parent.index()], impulse, &from_twist(stop.b));
            }
        }
    }

    /// Contacts, limits and grabs answer to the free motion.
    fn respond(
        &mut self,
        (model, skin): (&Model, &Skin),
        input: &Input,
        state: &mut State,
        h: f64,
    ) -> Result<(), Failure> {
        self.add_rows(model, skin, &input.grabs, state, h);
        if self.responder.rows.is_empty() {
            return Ok(());
        }
        let SkinWork { posed, scalars, skeleton, responder, yields, v, multipliers, .. } = self;
        let ground = Ground { model, skin, posed, state, yields, h };
        let dv = responder.solve(&ground, skeleton).map_err(|node| failure(model, node))?;
        for (v, dv) in v.iter_mut().chain(multipliers).zip(dv) {
            add_scaled(v, 1.0, dv);
        }
        if input.skin.dynamics == SkinDynamics::Soft {
            let nodes = &mut state.nodes;
            let inverse = |a: usize| DMat3::from_diagonal(DVec3::splat(scalars[a]));
            responder.move_skin(skin, posed, inverse, |a, dv| nodes[a].velocity += dv);
        }
        Ok(())
    }

    /// Notes what joints gave; the state is still that of the start.
    fn note_joints(&self, model: &Model, state: &State, ledger: &mut Ledger) {
        let SkinWork { multipliers, .. } = self;
        ledger.knows_constraints();
        for (j, (joint, multiplier)) in model.joints().iter().zip(multipliers).enumerate() {
            let mut on_child = Wrench::ZERO;
            for (row, multiplier) in joint.rows(&model.sides(joint, state)).iter().zip(multiplier) {
                on_child += Wrench::new(row.a.linear, row.a.angular) * -*multiplier;
            }
            ledger.constrain(JointId(j as u32), on_child);
        }
    }

    /// Notes what limits and contacts of bare bodies gave, by the rows of the response.
    fn note_contacts(&self, state: &State, ledger: &mut Ledger) {
        let SkinWork { touches, contacts, stops, responder, .. } = self;
        let rows = responder.rows.get(touches.len()..).unwrap_or(&[]);
        for (contact, row) in contacts.iter().zip(rows) {
            let lever = |body: BodyId| contact.point - state.bodies[body.index()].position;
            ledger.touch(contact.a, Wrench::at(lever(contact.a), row.impulse));
            if let Other::Body(b) = contact.b {
                ledger.touch(b, Wrench::at(lever(b), -row.impulse));
            }
        }
        for (stop, row) in stops.iter().zip(rows.get(contacts.len()..).unwrap_or(&[])) {
            ledger.stop(stop.joint, Wrench::new(stop.a.linear, stop.a.angular) * row.impulse.x);
        }
    }

    fn add_rows(&mut self, model: &Model, skin: &Skin, grabs: &[Grab], state: &State, h: f64) {
        let SkinWork { posed, responder, touches, contacts, stops, start, yields, v, .. } = self;
        responder.clear(skin.nodes());
        let ground = Ground { model, skin, posed, state, yields, h };
        let end = |a: usize| condense::carried(skin, posed, a, v) + posed.turns[a] * state.nodes[a].velocity;
        let at = |body: BodyId, lever: DVec3| to_twist(&v[body.index()]).at(lever);
        for (touch, start) in touches.iter().zip(start.iter()) {
            let other = match touch.side {
                Side::Fixed => touch.velocity,
                Side::Body(body, lever) => at(body, lever),
                Side::Surface(spot) => spot.sum(end),
            };
            responder.add_touch(&ground, touch, touch.spot.sum(end) - other, *start);
        }
        for (contact, start) in contacts.iter().zip(&start[touches.len()..]) {
            let lever = contact.point - state.bodies[contact.a.index()].position;
            let mut relative = at(contact.a, lever) - contact.obstacle_velocity;
            if let Other::Body(b) = contact.b {
                relative -= at(b, contact.point - state.bodies[b.index()].position);
            }
            responder.add_contact(&ground, contact, relative, *start);
        }
        for (stop, start) in stops.iter().zip(&start[touches.len() + contacts.len()..]) {
            let mut rate = forces::along(stop.a, to_twist(&v[stop.child.index()]));
            rate += stop.parent.map_or(0.0, |b| forces::along(stop.b, to_twist(&v[b.index()])));
            responder.add_stop(&ground, stop, rate, start.x);
        }
        for grab in grabs {
            responder.add_grab(&ground, grab, end(grab.vertex as usize));
        }
    }

    /// What is inside something after the free motion, one contact for each vertex.
    fn search_ahead(&mut self, (model, skin): (&Model, &Skin), input: &Input, state: &State, span: Span) {
        let h = span.h;
        let SkinWork { ahead, posed_ahead, v, search, touches, .. } = self;
        ahead.clone_from(state);
        for (body, v) in ahead.bodies.iter_mut().zip(v.iter()) {
            *body = moved(body, to_twist(v), h);
        }
        ahead.nodes.iter_mut().for_each(|node| node.position += node.velocity * h);
        posed_ahead.look(skin, ahead);
        search.find(model, skin, input, (ahead, posed_ahead), (0.0, span.after));
        touches.extend_from_slice(&search.all);
        // one for each vertex: the deepest
        let vertex = |touch: &Touch| touch.spot.corners[0];
        touches
            .sort_unstable_by(|a, b| vertex(a).cmp(&vertex(b)).then(a.gap.total_cmp(&b.gap)).then(a.key.cmp(&b.key)));
        touches.dedup_by_key(|touch| vertex(touch));
    }

    /// Contacts at the places of the free motion stop along their normals; friction by vertex afterwards [Galoppo 2007, §4.3, §5.5].
    fn respond_as_published(
        &mut self,
        (model, skin): (&Model, &Skin),
        state: &mut State,
        h: f64,
    ) -> Result<(), Failure> {
        let SkinWork { posed, posed_ahead, matrix, skeleton, responder, touches, yields, v, multipliers, .. } = self;
        responder.clear(skin.nodes());
        if touches.is_empty() {
            return Ok(());
        }
        let ground = Ground { model, skin, posed, state, yields, h };
        for touch in touches.iter_mut() {
            let a = touch.spot.corners[0] as usize;
            match touch.side {
                Side::Fixed => {}
                Side::Body(body, lever) => touch.velocity = to_twist(&v[body.index()]).at(lever),
                Side::Surface(spot) => touch.velocity = spot.sum(|v| posed_ahead.velocities[v]),
            }
            let end = condense::carried(skin, posed, a, v) + posed.turns[a] * state.nodes[a].velocity;
            let alone = Touch { side: Side::Fixed, gap: 0.0, ..*touch };
            responder.add_touch(&ground, &alone, end - touch.velocity, DVec3::ZERO);
        }
        let dv = responder.stop(&ground, skeleton).map_err(|node| failure(model, node))?;
        for (v, dv) in v.iter_mut().chain(multipliers).zip(dv) {
            add_scaled(v, 1.0, dv);
        }
        let nodes = &mut state.nodes;
        responder.move_skin(skin, posed, |a| matrix.blocks[a], |a, dv| nodes[a].velocity += dv);
        for (touch, row) in touches.iter().zip(&responder.rows) {
            let a = touch.spot.corners[0] as usize;
            let pushed = touch.normal.dot(row.impulse);
            if pushed <= 0.0 || !skin.soft[a] {
                continue;
            }
            let end = condense::carried(skin, posed, a, v) + posed.turns[a] * nodes[a].velocity - touch.velocity;
            let across = end - touch.normal * touch.normal.dot(end);
            let change = pushed * touch.normal.dot(yields[a] * touch.normal);
            let slower = across.clamp_length_max(touch.friction * change);
            nodes[a].velocity -= posed.turns[a].inverse() * slower;
        }
        Ok(())
    }

    /// Closes the joints at the new poses, with the matrix of the part.
    fn close(&mut self, model: &Model, state: &mut State) {
        let bodies = model.bodies().len();
        for _ in 0..MOST_CLOSINGS {
            let x = &mut self.closing;
            x.clear();
            x.resize(self.skeleton.nodes(), [0.0; 6]);
            let mut widest = 0.0f64;
            for (j, joint) in model.joints().iter().enumerate() {
                for (k, row) in joint.rows(&model.sides(joint, state)).iter().enumerate() {
                    x[bodies + j][k] = -row.residual;
                    widest = widest.max(row.residual.abs());
                }
            }
            if widest <= CLOSED * self.size {
                return;
            }
            self.skeleton.solve(x);
            for (body, step) in state.bodies.iter_mut().zip(x.iter()) {
                let step = to_twist(step);
                body.position += step.linear;
                body.orientation = (exp(step.angular) * body.orientation).normalize();
            }
        }
    }

    /// Puts vertices that are still inside what they touch onto it; returns how deep the deepest is that does not move.
    fn settle_vertices(&mut self, skin: &Skin, state: &mut State, h: f64) -> f64 {
        let SkinWork { posed, bones, touches, .. } = self;
        if touches.is_empty() {
            return 0.0;
        }
        bones.set(skin, state);
        let mut deepest = 0.0f64;
        for touch in touches.iter() {
            let went = |v: usize| bones.place(skin, v, state.nodes[v].position) - posed.places[v];
            let with = match touch.side {
                Side::Fixed => touch.velocity * h,
                Side::Surface(spot) => spot.sum(went),
                Side::Body(body, lever) => state.bodies[body.index()].velocity.at(lever) * h,
            };
            let gap = touch.gap + touch.normal.dot(touch.spot.sum(went) - with);
            if gap >= 0.0 {
                continue;
            }
            // two surfaces go half the way each, their corners by their shares; what does not move leaves it to the other
            let squares = |of: &mut dyn Iterator<Item = (u32, f64)>| -> f64 {
                of.filter(|(v, _)| skin.soft[*v as usize]).map(|(_, share)| share * share).sum()
            };
            let (own, other) = (squares(&mut touch.spot.corners()), squares(&mut touch.side.corners()));
            let back = match (other > 0.0, own > 0.0) {
                (false, _) => 0.0,
                (true, true) => 0.5,
                (true, false) => 1.0,
            };
            for (v, share) in touch.vertices().filter(|(v, _)| skin.soft[*v as usize]) {
                let by = if share > 0.0 { (1.0 - back) * share / own } else { back * share / other };
                let v = v as usize;
                let push = posed.turns[v].transpose() * (touch.normal * (-gap * by));
                put(skin, &mut state.nodes[v], v, push);
            }
            if own == 0.0 {
                deepest = deepest.max(-gap * (1.0 - back));
            }
        }
        deepest
    }

    /// A second search, at the places of the end; what is inside is put onto what it is inside of [Galoppo 2007, §5.6].
    fn project_as_published(&mut self, (model, skin): (&Model, &Skin), input: &Input, state: &mut State, span: Span) {
        self.inside = 0.0;
        self.posed_ahead.look(skin, state);
        self.search.find(model, skin, input, (state, &self.posed_ahead), (0.0, span.after));
        for touch in &self.search.all {
            let a = touch.spot.corners[0] as usize;
            if touch.gap >= 0.0 {
                continue;
            }
            if skin.soft[a] {
                let out = self.posed_ahead.turn(skin, a).inverse() * (touch.normal * -touch.gap);
                put(skin, &mut state.nodes[a], a, out);
            } else {
                self.inside = self.inside.max(-touch.gap);
            }
        }
    }

    /// What the next part starts from, and what pressed.
    fn remember(&mut self, state: &mut State, settings: SkinSettings, h: f64) {
        let SkinWork { responder, touches, contacts, stops, pressures, .. } = self;
        pressures.clear();
        state.contacts.clear();
        let rows = &responder.rows;
        for (touch, row) in touches.iter().zip(rows) {
            if row.impulse != DVec3::ZERO {
                pressures.extend(touch.vertices().map(|(v, share)| (v, row.impulse * (share / h))));
            }
        }
        if settings.response == SkinResponse::Published {
            return;
        }
        let of_touches = &rows[..touches.len().min(rows.len())];
        let of_contacts = rows.get(touches.len()..touches.len() + contacts.len()).unwrap_or_default();
        let of_stops = rows.get(touches.len() + contacts.len()..).unwrap_or_default();
        let mut keep = |key: ContactKey, impulse: DVec3| {
            if impulse != DVec3::ZERO {
                state.contacts.push(ContactMemory { key, first: impulse / h, second: DVec3::ZERO });
            }
        };
        contacts.iter().zip(of_contacts).for_each(|(contact, row)| keep(contact.key, row.impulse));
        touches.iter().zip(of_touches).for_each(|(touch, row)| keep(touch.key, row.impulse));
        let key = |stop: &Stop| ContactKey::limit(stop.joint, stop.place as u32);
        stops.iter().zip(of_stops).for_each(|(stop, row)| keep(key(stop), row.impulse));
    }
}

/// How good the condensed solution of a state is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Condensation {
    /// `‖M̂ − M‖/‖M‖` of the condensed matrix of the bones, spectral norm.
    pub matrix_error: f64,
    /// Error of the bones' velocities after 0, 1, 2 and 3 refinements, in the norm of the energy of motion.
    pub velocity_errors: [f64; 4],
}

/// Sweeps after which nothing is left of the error.
const EXACT_SWEEPS: u32 = 60;

/// Measures the error of the condensed solution for random forces on a state; `None` for a model without skin, or where a factorisation fails.
pub fn condensation(model: &Model, input: &Input, state: &State) -> Option<Condensation> {
    let skin = model.skin()?;
    let mut work = SkinWork::new(model, skin);
    let input = Input { skin: SkinSettings { response: SkinResponse::Published, ..input.skin }, ..input.clone() };
    work.posed.pose(skin, state);
    work.matrix.set(skin, input.dt, input.skin.equations).ok()?;
    work.make_room(model, skin, &input);
    work.assemble(model, skin, &input, state, Span { h: input.dt, after: 0.0, halvings: 0 });
    work.skeleton.factor_base().ok()?;
    let bodies = model.bodies().len();
    let n = 6 * bodies;
    let equations = Equations { skin, posed: &work.posed, mass: input.skin.mass, core: &work.core };
    // the exact operator and the condensed one, column by column
    let nodes = work.skeleton.nodes();
    let (mut exact, mut hat) = (vec![0.0; n * n], vec![0.0; n * n]);
    for c in 0..n {
        let mut x = vec![[0.0; 6]; nodes];
        x[c / 6][c % 6] = 1.0;
        let column = equations.condensed_product(&mut work.matrix, &x);
        let mut approximate = vec![[0.0; 6]; nodes];
        work.skeleton.base.subtract_product(&x, &mut approximate);
        for r in 0..n {
            exact[r * n + c] = column[r / 6][r % 6];
            hat[r * n + c] = -approximate[r / 6][r % 6];
        }
    }
    let difference: Vec<f64> = hat.iter().zip(&exact).map(|(a, b)| a - b).collect();
    let matrix_error = spectral_norm(&difference, n) / spectral_norm(&exact, n);

    // random forces on bones and skin, the same each time
    let mut seed = 12345u64;
    let mut random = || {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (seed >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    };
    let mut f_b = vec![[0.0; 6]; nodes];
    f_b[..bodies].iter_mut().flatten().for_each(|x| *x = random());
    let f_s: Vec<DVec3> = skin
        .soft
        .iter()
        .map(|soft| if *soft { DVec3::new(random(), random(), random()) * 0.1 } else { DVec3::ZERO })
        .collect();
    let mut solve = |sweeps: u32| {
        equations.solve(&mut work.skeleton, &mut work.matrix, (&f_b, &f_s), sweeps, &mut work.solution, &mut |_| {});
        work.solution.bones.clone()
    };
    let truth = solve(EXACT_SWEEPS);
    let energy = |x: &[Vector]| {
        let at = |i: usize| x[i / 6][i % 6];
        (0..n).map(|r| at(r) * (0..n).map(|c| exact[r * n + c] * at(c)).sum::<f64>()).sum::<f64>().sqrt()
    };
    let mut velocity_errors = [0.0; 4];
    for (sweeps, error) in velocity_errors.iter_mut().enumerate() {
        let mut apart = solve(sweeps as u32);
        apart.iter_mut().zip(&truth).for_each(|(x, y)| add_scaled(x, -1.0, y));
        *error = energy(&apart) / energy(&truth);
    }
    Some(Condensation { matrix_error, velocity_errors })
}

/// The largest eigenvalue, by size, of a symmetric matrix: powers of it.
fn spectral_norm(a: &[f64], n: usize) -> f64 {
    let mut x: Vec<f64> = (0..n).map(|i| 1.0 + 0.37 * (i as f64 * 1.7).sin()).collect();
    let mut norm = 0.0;
    for _ in 0..400 {
        let y: Vec<f64> = (0..n).map(|r| (0..n).map(|c| a[r * n + c] * x[c]).sum()).collect();
        norm = y.iter().map(|y| y * y).sum::<f64>().sqrt();
        if norm == 0.0 {
            return 0.0;
        }
        x = y.iter().map(|y| y / norm).collect();
    }
    norm
}

#[cfg(test)]
mod tests;

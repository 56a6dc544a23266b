//! Feet of a retargeted motion: where the recording's feet stand, the figure's stand too, on their own soles, and do not slide.
//!
//! A foot stands while its ball is low and slow in the recording. For that time the figure's ball gets one place on the ground, the mean of those that it would have
//! had; before and after, the difference fades into that of the next time that it stands. Legs follow by turning hip, knee and ankle; where they are too short
//! or at their limits, the hips are moved by what is missing.

use crate::retarget::{MARGIN, Part, Side, advance, keep_inside};
use glam::{DMat3, DQuat, DVec3};
use supple::maths::rotation::{exp, log};
use supple::model::Coordinates;
use supple::model::coordinates::Link;
use supple::{Model, Pose, State};

/// A person's leg from hip to ankle \[m\]: recordings are measured in it, so that what is low and slow means the same in any unit.
pub(crate) const LEG: f64 = 0.85;
/// The ball of a foot that stands is less than this above where it is lowest, and slower than this \[m, m/s\]; one that has stood goes on up to twice as fast.
const LOW: f64 = 0.05;
const SLOW: f64 = 0.4;
/// A foot stands at least this long, and what parts two times by less is a fault of the recording \[s\].
const SHORTEST: f64 = 0.08;
/// The difference of a place to stand fades in this time \[s\].
const FADE: f64 = 0.25;
/// Hips are moved ahead of need and for this long after it \[s\].
const AHEAD: f64 = 0.2;
/// How often legs are led to their places, hips being moved between, and how often that may be of no use.
const ROUNDS: usize = 12;
const IN_VAIN: u32 = 3;
/// How often a foot is moved up or down until its lowest vertex is on the ground, and what is near enough \[m\].
const TRIES: usize = 5;
const NEAR: f64 = 2e-4;
/// What moves by less is where it was \[m\].
const STILL: f64 = 1e-7;
/// What an orientation counts against a place, a leg's length being 1: soles are to be level before toes point where the source's do.
const TURN: DVec3 = DVec3::new(0.1, 0.02, 0.1);

/// The sole of a foot, in the coordinates of its body.
#[derive(Clone, Debug)]
pub(crate) struct Sole {
    pub(crate) side: Side,
    /// Thigh, calf and foot.
    pub(crate) leg: [usize; 3],
    pub(crate) toe: Option<usize>,
    /// What stands: the ball, on the ground under the joint of the toes, or the tip of a foot that has none.
    pub(crate) ball: DVec3,
    /// Where the foot points to from its joint.
    pub(crate) tip: DVec3,
    /// The vertices of the foot, and of the toes in the coordinates of their body.
    pub(crate) foot_points: Vec<DVec3>,
    pub(crate) toe_points: Vec<DVec3>,
    /// The height of the ground \[m\].
    pub(crate) ground: f64,
}

/// A foot that stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Planted {
    /// The body of the foot.
    pub body: usize,
    /// Frames of the motion, the last included.
    pub frames: (usize, usize),
    /// What stands, in body coordinates \[m\].
    pub point: DVec3,
    /// Where it stands \[m\].
    pub place: DVec3,
}

/// By frame: whether a foot stands whose ball is here, in metres of a person.
pub(crate) fn stands(places: &[DVec3], frame_time: f64) -> Vec<bool> {
    let n = places.len();
    let mut heights: Vec<f64> = places.iter().map(|p| p.y).collect();
    heights.sort_by(f64::total_cmp);
    // Not the lowest of all: a marker may have been lost.
    let lowest = heights.get(n / 50).copied().unwrap_or(0.0);
    // Over a twentieth of a second: markers tremble.
    let half = ((0.025 / frame_time).round() as usize).max(1);
    let speed = |k: usize| {
        let (a, b) = (k.saturating_sub(half), (k + half).min(n - 1));
        (places[b] - places[a]).length() / ((b - a).max(1) as f64 * frame_time)
    };
    let mut out = vec![false; n];
    for k in 0..n {
        let limit = if k > 0 && out[k - 1] { 2.0 * SLOW } else { SLOW };
        out[k] = places[k].y - lowest < LOW && speed(k) < limit;
    }
    let shortest = (SHORTEST / frame_time).ceil() as usize;
    for wanted in [false, true] {
        for (from, to) in runs(&out, wanted) {
            // A pause at either end is one.
            if to - from < shortest && (wanted || (from > 0 && to < n)) {
                out[from..to].fill(!wanted);
            }
        }
    }
    out
}

/// Where a list is `wanted`: from, and up to.
fn runs(list: &[bool], wanted: bool) -> Vec<(usize, usize)> {
    let mut out = Vec::new();
    let mut from = None;
    for k in 0..=list.len() {
        match (list.get(k) == Some(&wanted), from) {
            (true, None) => from = Some(k),
            (false, Some(start)) => {
                out.push((start, k));
                from = None;
            }
            _ => {}
        }
    }
    out
}

/// Leads feet to where they stand, frame by frame. `found` are coordinates of the model; `wishes` the orientations that bodies are to have.
#[allow(clippy::too_many_arguments)] // one call, with all that the motion is
pub(crate) fn plant(
    model: &Model,
    coordinates: &mut Coordinates,
    state: &mut State,
    found: &mut [Vec<f64>],
    wishes: &[Vec<Option<DQuat>>],
    soles: &[Sole],
    contacts: &[Vec<bool>],
    frame_time: f64,
) -> Vec<Planted> {
    let frames = found.len();
    let mut planted = Vec::new();
    // By sole and frame: how far the ball is to be moved.
    let mut shifts: Vec<Vec<DVec3>> = Vec::new();
    let balls: Vec<Vec<DVec3>> = {
        let mut balls = vec![Vec::with_capacity(frames); soles.len()];
        for positions in found.iter() {
            coordinates.positions.clone_from(positions);
            coordinates.write(model, state);
            for (sole, list) in soles.iter().zip(&mut balls) {
                list.push(state.bodies[sole.leg[2]].pose().transform_point(sole.ball));
            }
        }
        balls
    };
    for ((sole, ball), stands) in soles.iter().zip(&balls).zip(contacts) {
        let mut shift = vec![DVec3::ZERO; frames];
        let times = runs(stands, true);
        for &(from, to) in &times {
            let mean = ball[from..to].iter().sum::<DVec3>() / (to - from) as f64;
            let place = DVec3::new(mean.x, sole.ground, mean.z);
            (from..to).for_each(|k| shift[k] = place - ball[k]);
            planted.push(Planted { body: sole.leg[2], frames: (from, to - 1), point: sole.ball, place });
        }
        shifts.push(shift);
    }
    let mut given: Vec<Vec<f64>> = found.to_vec();
    let root = coordinates.position_range(0).start;
    let longer = |a: DVec3, b: DVec3| if b.length() > a.length() { b } else { a };
    // What moving the hips did not bring nearer is let be: two feet may ask for what one pair of hips cannot give.
    let mut before = vec![(f64::INFINITY, 0); frames];
    let mut short = vec![DVec3::ZERO; frames];
    // Frames in which something has changed.
    let mut anew = vec![true; frames];
    for round in 0..ROUNDS {
        for (s, sole) in soles.iter().enumerate() {
            let old = shifts[s].clone();
            fade(&mut shifts[s], &balls[s], sole, &contacts[s], frame_time);
            let moved = shifts[s].iter().zip(&old).map(|(a, b)| a.distance(*b) > STILL);
            anew.iter_mut().zip(moved).for_each(|(anew, moved)| *anew |= moved);
        }
        for f in (0..frames).filter(|f| anew[*f]) {
            short[f] = DVec3::ZERO;
            coordinates.positions.clone_from(&given[f]);
            coordinates.write(model, state);
            for (s, sole) in soles.iter().enumerate() {
                let stands = contacts[s][f];
                let turn = wishes[f][sole.leg[2]].unwrap_or(state.bodies[sole.leg[2]].orientation);
                let turn = if stands { on_ground(sole, turn) } else { turn };
                let last = f.checked_sub(1).map(|last| found[last].clone());
                let mut place = balls[s][f] + shifts[s][f];
                let left = set_down(model, coordinates, state, sole, &mut place, turn, stands, last.as_deref());
                if stands {
                    shifts[s][f] = place - balls[s][f];
                    short[f] = longer(short[f], left);
                }
            }
            found[f].clone_from(&coordinates.positions);
        }
        for ((now, before), anew) in short.iter_mut().zip(&mut before).zip(&anew) {
            before.1 += u32::from(*anew && now.length() > 0.8 * before.0);
            before.0 = now.length();
            let given_up = before.1 >= IN_VAIN || now.length() < NEAR;
            *now = if given_up { DVec3::ZERO } else { *now };
        }
        if round + 1 == ROUNDS || short.iter().all(|far| *far == DVec3::ZERO) {
            break;
        }
        // As far as anything near in time needs, and no jerk into it.
        let reach = ((AHEAD / frame_time).round() as usize).max(1);
        let near = |k: usize| k.saturating_sub(reach)..(k + reach + 1).min(frames);
        let most: Vec<DVec3> = (0..frames).map(|k| short[near(k)].iter().copied().fold(DVec3::ZERO, longer)).collect();
        for (k, row) in given.iter_mut().enumerate() {
            let by = most[near(k)].iter().sum::<DVec3>() * (1.1 / near(k).len() as f64);
            row[root..root + 3].iter_mut().zip(by.to_array()).for_each(|(x, by)| *x += by);
            anew[k] = by.length() > STILL;
        }
    }
    planted
}

/// Between two times that a foot stands: from the difference of the one to that of the next, or to none where there is time.
fn fade(shift: &mut [DVec3], ball: &[DVec3], sole: &Sole, stands: &[bool], frame_time: f64) {
    let weight = |k: usize, at: usize| {
        let far = (k as f64 - at as f64).abs() * frame_time / FADE;
        let x = (1.0 - far).clamp(0.0, 1.0);
        x * x * x * (x * (6.0 * x - 15.0) + 10.0)
    };
    for (from, to) in runs(stands, false) {
        let before = from.checked_sub(1).map(|k| shift[k]);
        let after = shift.get(to).copied().filter(|_| to < stands.len());
        for k in from..to {
            let (a, b) = (before.map_or(0.0, |_| weight(k, from - 1)), after.map_or(0.0, |_| weight(k, to)));
            // Where both reach a frame they share it.
            let share = (a + b).max(1.0);
            shift[k] = (before.unwrap_or_default() * a + after.unwrap_or_default() * b) / share;
            // Nothing goes through the ground.
            let low = sole.ground - (ball[k].y + shift[k].y);
            shift[k].y += low.max(0.0);
        }
    }
}

/// Leads a foot to a place; then up or down by what its lowest vertex is off the ground: where the ankle does not let the sole lie flat the foot stands on what is lowest of it. One
/// that does not stand is raised where it would go through the ground. `last` are the coordinates of the frame before. Returns what the ball is short of its place
/// \[m\].
#[allow(clippy::too_many_arguments)] // one call, with all that the foot is
fn set_down(
    model: &Model,
    coordinates: &mut Coordinates,
    state: &mut State,
    sole: &Sole,
    place: &mut DVec3,
    turn: DQuat,
    stands: bool,
    last: Option<&[f64]>,
) -> DVec3 {
    let nodes = &model.topology().node_of;
    let toe = sole.toe.map(|toe| coordinates.position_range(nodes[toe]));
    let toe_given = toe.clone().map(|range| coordinates.positions[range].to_vec());
    let (mut left, size) = lead(model, coordinates, state, sole, *place, turn);
    if let Some(last) = last.filter(|_| size > NEAR * NEAR) {
        // Limits keep it from where it should be, and may do so in several poses: that of the frame before, unless another is much better.
        let caught = coordinates.positions.clone();
        for body in sole.leg {
            let range = coordinates.position_range(nodes[body]);
            coordinates.positions[range.clone()].copy_from_slice(&last[range]);
        }
        let again = lead(model, coordinates, state, sole, *place, turn);
        let (far, was) = (again.0.length().max(NEAR), left.length().max(NEAR));
        // The place before the turn.
        let as_good = if far == was { again.1 < 2.0 * size } else { far < 1.2 * was };
        if as_good {
            left = again.0;
        } else {
            coordinates.positions = caught;
            coordinates.write(model, state);
        }
    }
    for k in 0..TRIES {
        if stands {
            lay_toes(model, coordinates, state, sole);
        }
        // Were the ball at its place: what it is short of that is for the hips to give.
        let off = lowest(sole, |body| state.bodies[body].pose()) - sole.ground + left.y;
        if k + 1 == TRIES || off.abs() < NEAR || (!stands && off > 0.0) {
            break;
        }
        place.y -= off;
        if let Some((range, given)) = toe.clone().zip(toe_given.as_ref()) {
            coordinates.positions[range].copy_from_slice(given);
        }
        left = lead(model, coordinates, state, sole, *place, turn).0;
    }
    left
}

/// The height of the lowest vertex of a foot and its toes, bodies being here \[m\].
pub(crate) fn lowest(sole: &Sole, pose: impl Fn(usize) -> Pose) -> f64 {
    let least = |body: usize, points: &[DVec3]| {
        let pose = pose(body);
        points.iter().map(|p| pose.transform_point(*p).y).fold(f64::INFINITY, f64::min)
    };
    let toes = sole.toe.map_or(f64::INFINITY, |toe| least(toe, &sole.toe_points));
    least(sole.leg[2], &sole.foot_points).min(toes)
}

/// The orientation in which no vertex of a foot is below its ball: it is turned about the ball until the lowest is as low.
fn on_ground(sole: &Sole, turn: DQuat) -> DQuat {
    let mut turn = turn;
    for _ in 0..3 {
        let lever = |p: &DVec3| turn * (*p - sole.ball);
        // By the steepest: the angle below the horizon, of what is not at the ball itself.
        let level = |d: DVec3| d.x.hypot(d.z);
        let size = sole.foot_points.iter().map(|p| p.distance(sole.ball)).fold(0.0, f64::max);
        let deep = |d: &DVec3| (-d.y).atan2(level(*d));
        let far = sole.foot_points.iter().map(lever).filter(|d| level(*d) > 0.1 * size);
        let Some(worst) = far.max_by(|a, b| deep(a).total_cmp(&deep(b))) else { break };
        let angle = deep(&worst);
        let Some(axis) = worst.cross(DVec3::Y).try_normalize().filter(|_| angle > 1e-4) else { break };
        turn = exp(axis * angle) * turn;
    }
    turn
}

/// Turns the toes up until none of their vertices is below the ground.
fn lay_toes(model: &Model, coordinates: &mut Coordinates, state: &mut State, sole: &Sole) {
    let Some(toe) = sole.toe else { return };
    let node = model.topology().node_of[toe];
    let link = (node, Link::new(model, &model.topology().nodes[node]));
    let turns = link.1.mask.free_translations()..link.1.mask.free();
    for _ in 0..4 {
        coordinates.write(model, state);
        let lowest = |state: &State| {
            let pose = state.bodies[toe].pose();
            sole.toe_points.iter().map(|p| pose.transform_point(*p).y).fold(f64::INFINITY, f64::min) - sole.ground
        };
        let low = lowest(state);
        let below = low < -1e-4;
        if !below {
            return;
        }
        // Up the slope of the lowest point's height in the joint's turns.
        const DELTA: f64 = 1e-4;
        let slope: Vec<f64> = turns
            .clone()
            .map(|k| {
                let mut moved = coordinates.clone();
                advance(&mut moved, &link, k, DELTA);
                moved.write(model, state);
                (lowest(state) - low) / DELTA
            })
            .collect();
        let square: f64 = slope.iter().map(|x| x * x).sum();
        if square < 1e-12 {
            return;
        }
        for (k, x) in turns.clone().zip(&slope) {
            advance(coordinates, &link, k, (-low * x / square).clamp(-0.3, 0.3));
        }
        keep_inside(model, coordinates, node, &link.1, MARGIN);
    }
    coordinates.write(model, state);
}

/// Turns hip, knee and ankle until the ball is where it should be and the foot as it should be, the first before the second. Returns what the ball is short of its place \[m\], and
/// the square of all that is left.
fn lead(
    model: &Model,
    coordinates: &mut Coordinates,
    state: &mut State,
    sole: &Sole,
    place: DVec3,
    turn: DQuat,
) -> (DVec3, f64) {
    let nodes = &model.topology().nodes;
    // From the foot up to the thigh.
    let top = model.topology().node_of[sole.leg[0]];
    let mut chain = vec![model.topology().node_of[sole.leg[2]]];
    while *chain.last().expect("not empty") != top {
        let Some(parent) = nodes[*chain.last().expect("not empty")].parent.checked_sub(1) else {
            return (DVec3::ZERO, 0.0);
        };
        chain.push(parent);
    }
    chain.reverse();
    let links: Vec<(usize, Link)> = chain.iter().map(|&i| (i, Link::new(model, &nodes[i]))).collect();
    coordinates.write(model, state);
    let base = nodes[top].parent.checked_sub(1).map_or(Pose::IDENTITY, |p| state.bodies[nodes[p].body.index()].pose());
    let turns: Vec<(usize, usize)> = links
        .iter()
        .enumerate()
        .flat_map(|(c, (_, link))| (link.mask.free_translations()..link.mask.free()).map(move |k| (c, k)))
        .collect();
    let foot = |coordinates: &Coordinates| {
        links.iter().fold(base, |pose, (i, link)| {
            pose.then(link.pose(link.mask.pose(&coordinates.positions[coordinates.position_range(*i)])))
        })
    };
    let errors = |pose: Pose| (place - pose.transform_point(sole.ball), log(turn * pose.rotation.conjugate()) * TURN);
    let size = |(far, turned): (DVec3, DVec3)| far.length_squared() + turned.length_squared();
    // By turn: what it does to the errors; at a limit, what is left of it. There each is tried in the sense in which it would help.
    let slopes = |coordinates: &Coordinates, here: (DVec3, DVec3)| -> Vec<(DVec3, DVec3)> {
        const DELTA: f64 = 1e-6;
        let slope = |(c, k): (usize, usize), by: f64| {
            let mut moved = coordinates.clone();
            advance(&mut moved, &links[c], k, by);
            keep_inside(model, &mut moved, links[c].0, &links[c].1, MARGIN);
            let there = errors(foot(&moved));
            ((here.0 - there.0) / by, (here.1 - there.1) / by)
        };
        let helps = |(a, b): (DVec3, DVec3)| a.dot(here.0) + b.dot(here.1);
        let best = |turn: (usize, usize)| {
            let (up, down) = (slope(turn, DELTA), slope(turn, -DELTA));
            // What helps most by going its own way.
            if helps(up).max(0.0) >= -helps(down).min(0.0) { up } else { down }
        };
        turns.iter().map(|turn| best(*turn)).collect()
    };
    let mut best = errors(foot(coordinates));
    let mut damping = 1e-8;
    for _ in 0..20 {
        let columns = slopes(coordinates, best);
        // δ = Jᵀ (J Jᵀ + μ)⁻¹ e, by two blocks of three: places, turns.
        let outer = |a: DVec3, b: DVec3| DMat3::from_cols(a * b.x, a * b.y, a * b.z);
        let regular = DMat3::from_diagonal(DVec3::splat(damping));
        let (mut aa, mut ab, mut bb) = (regular, DMat3::ZERO, regular);
        for (a, b) in &columns {
            (aa, ab, bb) = (aa + outer(*a, *a), ab + outer(*a, *b), bb + outer(*b, *b));
        }
        let below = bb.inverse();
        let shur = (aa - ab * below * ab.transpose()).inverse();
        let x = shur * (best.0 - ab * (below * best.1));
        let y = below * (best.1 - ab.transpose() * x);
        let before = coordinates.positions.clone();
        for (&(c, k), (a, b)) in turns.iter().zip(&columns) {
            advance(coordinates, &links[c], k, (a.dot(x) + b.dot(y)).clamp(-0.3, 0.3));
        }
        for (i, link) in &links {
            keep_inside(model, coordinates, *i, link, MARGIN);
        }
        let now = errors(foot(coordinates));
        let better = size(now) < size(best);
        if !better {
            coordinates.positions = before;
            damping *= 30.0;
            if damping > 1e-2 {
                break;
            }
            continue;
        }
        let gained = size(best) - size(now);
        (best, damping) = (now, (damping / 30.0).max(1e-8));
        if gained < 1e-14 {
            break;
        }
    }
    // The place alone: what the foot's turn keeps from it is given up.
    let mut length = 1.0;
    for _ in 0..20 {
        let far = best.0;
        if far.length() < 1e-7 || length < 0.05 {
            break;
        }
        let columns = slopes(coordinates, (far, DVec3::ZERO));
        let mut square = DMat3::from_diagonal(DVec3::splat(1e-7));
        for (a, _) in &columns {
            square += DMat3::from_cols(*a * a.x, *a * a.y, *a * a.z);
        }
        let weights = square.inverse() * far;
        let before = coordinates.positions.clone();
        for (&(c, k), (column, _)) in turns.iter().zip(&columns) {
            advance(coordinates, &links[c], k, (length * column.dot(weights)).clamp(-0.2, 0.2));
        }
        for (i, link) in &links {
            keep_inside(model, coordinates, *i, link, MARGIN);
        }
        let now = errors(foot(coordinates));
        let nearer = now.0.length() < far.length();
        if nearer {
            best = now;
        } else {
            coordinates.positions = before;
            length *= 0.5;
        }
    }
    coordinates.write(model, state);
    (best.0, size(best))
}

/// What a class of a rig is in a recording.
pub(crate) fn part(class: crate::Class) -> Option<Part> {
    use crate::Class;
    Some(match class {
        Class::Pelvis => Part::Hips,
        Class::Spine => Part::Spine,
        Class::Neck => Part::Neck,
        Class::Head => Part::Head,
        Class::Clavicle => Part::Clavicle,
        Class::UpperArm => Part::UpperArm,
        Class::Forearm => Part::Forearm,
        Class::Hand => Part::Hand,
        Class::Thigh => Part::Thigh,
        Class::Calf => Part::Shin,
        Class::Foot => Part::Foot,
        Class::Toe => Part::Toe,
        Class::Metacarpal | Class::FingerBase | Class::Finger | Class::Tail | Class::Unknown => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_foot_stands_while_it_is_low_and_slow() {
        // A step: half a second on the ground, half a second through the air, again.
        let place = |k: usize| {
            let t = k as f64 / 100.0;
            let (steps, phase) = (t.floor(), t.fract());
            let air = ((phase - 0.5) / 0.5).max(0.0);
            DVec3::new(1.2 * (steps + air), 0.03 + 0.15 * (std::f64::consts::PI * air).sin(), 0.0)
        };
        let places: Vec<DVec3> = (0..300).map(place).collect();
        let found = runs(&stands(&places, 0.01), true);
        assert_eq!(found.len(), 3, "{found:?}");
        for (k, (from, to)) in found.iter().enumerate() {
            assert!(from.abs_diff(100 * k) < 6 && to.abs_diff(100 * k + 50) < 6, "{found:?}");
        }
    }
}

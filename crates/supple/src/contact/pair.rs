//! The spots where two shapes touch, or will within the part.
//!
//! What moves little is looked at where it is. What moves farther than a quarter of its thickness is carried on to the moment of its first
//! touch, by steps that cannot overshoot [Mirtich 1996]: with n the direction at the present distance d, no point of the shapes
//! approaches along n faster than `−n·(v_a − v_b) + |n × ω_a| r_a + |n × ω_b| r_b`, so there is no touch for d over that speed. Faces
//! and normals are those of that moment, the gap is that of the start: a ball that passes beside an edge does not bounce off the face's plane.

use super::collider::{Collider, Form};
use super::convex::{Convex, Placed};
use super::distance::{Axis, along, distance};
use super::manifold::{self, Margin, Nearest, Spot, spots_on_plane};
use super::surface::{Back, Surface};
use super::{Bounds, Motion, Spots, moved};
use crate::maths::{Pose, Twist};
use glam::{DMat3, DVec3};

/// Two shapes whose boxes overlap.
#[derive(Clone, Copy)]
pub(super) struct Pair<'m> {
    pub(super) a: &'m Collider,
    pub(super) b: &'m Collider,
    pub(super) motion_a: Motion,
    pub(super) motion_b: Motion,
    /// Spots are given from here.
    pub(super) origin: DVec3,
    pub(super) h: f64,
    /// What both may gain by forces within the part \[m\].
    pub(super) fall: f64,
}

/// One convex side.
#[derive(Clone, Copy)]
struct Side<'m> {
    core: Convex<'m>,
    rounding: f64,
    size: f64,
    thickness: f64,
    reach: f64,
    place: Pose,
    motion: Motion,
}

/// What a part of a step does to two shapes.
#[derive(Clone, Copy)]
struct Reach {
    origin: DVec3,
    h: f64,
    /// Gaps within this are contacts even at rest \[m\].
    slack: f64,
    /// Gaps beyond this cannot close within the part \[m\].
    most: f64,
    /// How far the shapes may turn against each other \[rad\].
    turn: f64,
}

/// Parts of the thickness up to which a shape is looked at where it is.
const SHORT: f64 = 0.25;
/// The largest turn for which faces are looked at that may come to lie flat \[rad\].
const LARGEST_TURN: f64 = 0.3;
/// Steps towards the first touch.
const MOST_ADVANCES: usize = 40;
/// Spots whose normals differ by less than the angle of this cosine (6°) are reduced together.
const SAME_WAY: f64 = 0.995;

/// Fills `work.kept`, in coordinates from `pair.origin` at the start of the part.
pub(super) fn spots(pair: Pair<'_>, work: &mut Spots) {
    work.found.clear();
    let (a, b) = (pair.a, pair.b);
    let reach = pair.reach();
    match (&a.form, &b.form) {
        (_, Form::HalfSpace) => {
            on_half_space(&pair, reach, work);
            manifold::reduce(0, &mut work.found);
            work.kept.append(&mut work.found);
        }
        (Form::Surface(surface_a), Form::Surface(surface_b)) => {
            let bounds =
                seen(&pair.b.bounds, &pair.motion_b.pose.then(b.place), &pair.motion_a.pose.then(a.place), reach.most);
            let mut triangles = std::mem::take(&mut work.triangles);
            triangles.clear();
            surface_a.near(&bounds, |t| triangles.push(t));
            for &t in &triangles {
                let side = triangle(surface_a, t, a, pair.motion_a);
                on_surface(&side, Some((surface_a, t)), surface_b, b, pair.motion_b, reach, work);
            }
            work.triangles = triangles;
            cluster(work);
        }
        (_, Form::Surface(surface)) => {
            if let Some(side) = Side::new(a, pair.motion_a) {
                on_surface(&side, None, surface, b, pair.motion_b, reach, work);
                cluster(work);
            }
        }
        (Form::Surface(surface), _) => {
            if let Some(side) = Side::new(b, pair.motion_b) {
                on_surface(&side, None, surface, a, pair.motion_a, reach, work);
                for spot in &mut work.found {
                    let Spot { normal, on_a, on_b, .. } = *spot;
                    (spot.normal, spot.on_a, spot.on_b) = (-normal, on_b, on_a);
                    spot.feature = manifold::exchanged(spot.feature);
                }
                cluster(work);
            }
        }
        _ => {
            let (Some(a), Some(b)) = (Side::new(a, pair.motion_a), Side::new(b, pair.motion_b)) else { return };
            let Some((t, pa, pb, axis)) = first_touch(&a, &b, reach, work) else { return };
            let rounding = [a.rounding, b.rounding];
            let margin = Margin { gap: reach.most, turn: reach.turn };
            manifold::spots((&pa, &pb), &axis, rounding, margin, Nearest::Add, &mut work.found);
            back_to_start(&a, &b, t, reach, 0, &mut work.found);
            if matches!(a.core, Convex::Point) || matches!(b.core, Convex::Point) {
                work.found.iter_mut().for_each(|s| s.feature = 0); // it has but one
            }
            manifold::reduce(0, &mut work.found);
            work.kept.append(&mut work.found);
        }
    }
}

impl Pair<'_> {
    fn reach(&self) -> Reach {
        let (va, vb) = (self.motion_a.twist, self.motion_b.twist);
        let mut speed = (va.linear - vb.linear).length() + va.angular.length() * self.a.reach;
        let mut slack = self.a.slack();
        if !matches!(self.b.form, Form::HalfSpace) {
            speed += vb.angular.length() * self.b.reach;
            slack = slack.min(self.b.slack());
        }
        let slack = slack + self.fall;
        let turn = (self.h * (va.angular - vb.angular).length()).min(LARGEST_TURN);
        Reach { origin: self.origin, h: self.h, slack, most: slack + self.h * speed, turn }
    }
}

impl<'m> Side<'m> {
    fn new(collider: &'m Collider, motion: Motion) -> Option<Side<'m>> {
        let Collider { rounding, size, thickness, reach, place, .. } = *collider;
        Some(Side { core: collider.convex()?, rounding, size, thickness, reach, place, motion })
    }

    /// Where it is after time `t`.
    fn placed(&self, t: f64, origin: DVec3) -> Placed<'m> {
        let pose = moved(self.motion.pose, self.motion.twist, t);
        let axes = DMat3::from_quat(pose.rotation * self.place.rotation);
        let at = pose.translation - origin + pose.rotation * self.place.translation;
        Placed { core: self.core, axes, at, size: self.size }
    }
}

/// One triangle of a surface as a side.
fn triangle<'m>(surface: &Surface, t: u32, owner: &Collider, motion: Motion) -> Side<'m> {
    let corners = surface.corners(t);
    let size = corners.iter().map(|c| c.length()).fold(0.0, f64::max);
    // About a corner, so that the size is that of the triangle.
    let local = corners.map(|c| c - corners[0]);
    let extent = local[1].length().max(local[2].length());
    let place = owner.place.then(Pose::at(corners[0]));
    let reach = owner.reach.min(owner.place.translation.length() + size);
    Side { core: Convex::Triangle(local), rounding: 0.0, size: extent, thickness: f64::INFINITY, reach, place, motion }
}

/// When and how two sides touch first: at the start when they are near or move little. `None` when they do not within the part.
fn first_touch<'m>(
    a: &Side<'m>,
    b: &Side<'m>,
    reach: Reach,
    work: &mut Spots,
) -> Option<(f64, Placed<'m>, Placed<'m>, Axis)> {
    let rounding = a.rounding + b.rounding;
    let mut t = 0.0;
    for round in 0..MOST_ADVANCES {
        let (pa, pb) = (a.placed(t, reach.origin), b.placed(t, reach.origin));
        if !(pa.at.is_finite() && pb.at.is_finite()) {
            return None;
        }
        let axis = distance(&pa, &pb, &mut work.distance);
        let gap = axis.gap - rounding;
        if round == 0 {
            let short = reach.most - reach.slack <= SHORT * a.thickness.min(b.thickness);
            if gap > reach.most {
                return None;
            }
            if gap <= reach.slack || short {
                return Some((t, pa, pb, axis));
            }
        }
        let touching = 0.5 * reach.slack;
        if gap <= touching || round + 1 == MOST_ADVANCES {
            return Some((t, pa, pb, axis));
        }
        let n = axis.normal;
        let (va, vb) = (a.motion.twist, b.motion.twist);
        let turning = |v: Twist, r: f64| n.cross(v.angular).length() * r;
        let speed = -n.dot(va.linear - vb.linear) + turning(va, a.reach) + turning(vb, b.reach);
        if speed.is_nan() || speed <= 0.0 {
            return None;
        }
        t += (gap - 0.9 * touching) / speed;
        if t.is_nan() || t > reach.h {
            return None;
        }
    }
    None
}

/// Takes the spots from `first` on, found at time `t`, back to the start.
fn back_to_start(a: &Side<'_>, b: &Side<'_>, t: f64, reach: Reach, first: usize, spots: &mut [Spot]) {
    if t == 0.0 {
        return;
    }
    let back = |motion: Motion, point: DVec3| {
        let then = moved(motion.pose, motion.twist, t);
        let in_owner = then.rotation.conjugate() * (point + (reach.origin - then.translation));
        motion.pose.rotation * in_owner + (motion.pose.translation - reach.origin)
    };
    for spot in &mut spots[first..] {
        (spot.on_a, spot.on_b) = (back(a.motion, spot.on_a), back(b.motion, spot.on_b));
        spot.gap = spot.normal.dot(spot.on_a - spot.on_b);
    }
}

fn on_half_space(pair: &Pair<'_>, reach: Reach, work: &mut Spots) {
    let a = pair.a;
    let plane = pair.motion_b.pose.then(pair.b.place);
    let n = plane.rotation * DVec3::Y;
    let core = match &a.form {
        Form::Surface(surface) => match &surface.hull {
            Some(hull) => Convex::Polytope(hull),
            None => return,
        },
        _ => match a.convex() {
            Some(core) => core,
            None => return,
        },
    };
    let axes = DMat3::from_quat(pair.motion_a.pose.rotation * a.place.rotation);
    let pose = pair.motion_a.pose;
    let at = pose.translation - reach.origin + pose.rotation * a.place.translation;
    let placed = Placed { core, axes, at, size: a.size };
    let origin = plane.translation - reach.origin;
    spots_on_plane(&placed, origin, n, a.rounding, reach.most, &mut work.found);
}

/// A box of one frame in another, widened.
fn seen(bounds: &Bounds, world_from_box: &Pose, world_from_frame: &Pose, wider: f64) -> Bounds {
    let frame_from_box = world_from_frame.inverse().then(*world_from_box);
    let axes = DMat3::from_quat(frame_from_box.rotation);
    let half = bounds.half();
    let half = axes.x_axis.abs() * half.x + axes.y_axis.abs() * half.y + axes.z_axis.abs() * half.z;
    Bounds::around(frame_from_box.transform_point(bounds.centre()), half + DVec3::splat(wider))
}

/// The spots of a convex side, or of a triangle of another surface, on a surface that is side b.
fn on_surface(
    a: &Side<'_>,
    from: Option<(&Surface, u32)>,
    surface: &Surface,
    owner: &Collider,
    motion: Motion,
    reach: Reach,
    work: &mut Spots,
) {
    let world_from_surface = motion.pose.then(owner.place);
    let own = Placed { at: DVec3::ZERO, axes: DMat3::IDENTITY, ..a.placed(0.0, reach.origin) };
    let far = |sign: f64| [DVec3::X, DVec3::Y, DVec3::Z].map(|d| own.support(d * sign).0.dot(d));
    let local = Bounds { min: DVec3::from(far(-1.0)), max: DVec3::from(far(1.0)) };
    let world_from_a = a.motion.pose.then(a.place);
    let bounds = seen(&local, &world_from_a, &world_from_surface, a.rounding + reach.most);
    let mut near = std::mem::take(&mut work.near);
    near.clear();
    surface.near(&bounds, |t| near.push(t));
    for &t in &near {
        on_triangle(a, from, (surface, t), (owner, motion), reach, work);
    }
    work.near = near;
}

fn on_triangle(
    a: &Side<'_>,
    from: Option<(&Surface, u32)>,
    (surface, t): (&Surface, u32),
    (owner, motion): (&Collider, Motion),
    reach: Reach,
    work: &mut Spots,
) {
    let b = triangle(surface, t, owner, motion);
    let Some((time, pa, pb, mut axis)) = first_touch(a, &b, reach, work) else { return };
    let up = pb.axes * surface.normal(t);
    let behind = up.dot(pa.middle() - pb.at) < 0.0;
    let slope = up.dot(axis.normal);
    // From behind, or beyond it; but what has its middle inside a solid, straight under the triangle, is pushed out.
    let inside = surface.back == Back::Solid && axis.gap <= a.rounding && slope < -0.999_999;
    if (behind && axis.gap > 0.0 && !inside) || (behind && surface.back == Back::Open) {
        return;
    }
    if !behind && axis.gap > 0.0 && slope < -1e-6 {
        return;
    }
    let mut nearest = Nearest::Add;
    let flat = slope > 0.0 && up.cross(axis.normal).length() < 1e-6;
    let in_surface = |point: DVec3| surface.corners(t)[0] + pb.axes.transpose() * (point - pb.at);
    if !flat && (slope < 0.0 || !surface.pushes_along(t, in_surface(axis.on_b), pb.axes.transpose() * axis.normal)) {
        axis = along(&pa, &pb, up);
        nearest = Nearest::Leave;
    }
    if let Some((other, k)) = from {
        // The other surface must be extreme there too.
        let down = pa.axes.transpose() * -axis.normal;
        let on_a = other.corners(k)[0] + pa.axes.transpose() * (pa.support(-axis.normal).0 - pa.at);
        let flat = other.normal(k).dot(down) > 0.0 && other.normal(k).cross(down).length() < 1e-6;
        if !flat && !other.pushes_along(k, on_a, down) {
            return;
        }
    }
    let first = work.found.len();
    let margin = Margin { gap: reach.most, turn: 0.0 };
    manifold::spots((&pa, &pb), &axis, [a.rounding, 0.0], margin, nearest, &mut work.found);
    back_to_start(a, &b, time, reach, first, &mut work.found);
    for spot in &mut work.found[first..] {
        let alone = matches!(a.core, Convex::Point);
        if alone {
            spot.feature = 0;
        }
        spot.place = match from {
            // A corner that slides over many triangles is the same spot while they face the same way.
            None if alone || manifold::is_corner_of_a(spot.feature) => facing(pb.axes.transpose() * spot.normal),
            None => 1 << 31 | t,
            Some((_, k)) => 1 << 31 | t.wrapping_mul(0x9e37_79b1) ^ k,
        };
    }
}

/// Roughly the direction of a unit vector; the borders avoid the common angles.
fn facing(n: DVec3) -> u32 {
    let step = |x: f64| (2.9 * x).round() as i32 + 3;
    (step(n.x) * 49 + step(n.y) * 7 + step(n.z)) as u32
}

/// Moves `found` to `kept`: spots that face the same way together, at most four of each such set.
fn cluster(work: &mut Spots) {
    let Spots { found, cluster, kept, .. } = work;
    while !found.is_empty() {
        let order = |s: &Spot| (s.gap, s.feature, s.place);
        let leader = found.iter().map(|s| (order(s), s.normal)).reduce(|x, y| {
            let ((g, f, p), (h, e, q)) = (x.0, y.0);
            if h.total_cmp(&g).then((e, q).cmp(&(f, p))).is_lt() { y } else { x }
        });
        let Some((_, n)) = leader else { return };
        cluster.clear();
        found.retain(|s| {
            let with = s.normal.dot(n) >= SAME_WAY || s.normal.dot(n).is_nan();
            if with {
                cluster.push(*s);
            }
            !with
        });
        // The same corner on two triangles is one spot, the deeper.
        cluster.sort_unstable_by(|p, q| (p.feature, p.place).cmp(&(q.feature, q.place)).then(p.gap.total_cmp(&q.gap)));
        cluster.dedup_by(|later, first| (later.feature, later.place) == (first.feature, first.place));
        manifold::reduce(0, cluster);
        kept.append(cluster);
    }
}

//! What body the bones make: twins, legs, arms, trunk, head and tail.
//!
//! Names are hints. Legs are the pairs of limbs that reach the ground; a body whose pairs stand behind each other walks on four. What names leave open is
//! told by the order of bones along a limb, and of creatures on four legs by that order alone: hip, knee, hock, paw.

use super::names::{self, Class, Side};
use glam::DVec3;

/// What kind of body a character has, by its legs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Two legs.
    Biped,
    /// Four legs.
    Quadruped,
    /// Anything else.
    #[default]
    Other,
}

/// A bone as the plan needs it.
pub(super) struct Part<'a> {
    pub(super) name: &'a str,
    /// Parents come first.
    pub(super) parent: Option<usize>,
    pub(super) origin: DVec3,
    /// What it carries, in the world at rest.
    pub(super) points: &'a [DVec3],
    /// \[m³\]
    pub(super) volume: f64,
    /// What the file itself says that it is.
    pub(super) told: Option<Class>,
}

/// The plan of a body.
#[derive(Clone, Debug, Default)]
pub(super) struct Plan {
    pub(super) kind: Kind,
    pub(super) classes: Vec<Class>,
    /// By bone: the one on the other side.
    pub(super) twins: Vec<Option<usize>>,
    /// To the left of the body, level, and where its middle is along that \[m\].
    pub(super) left: Option<DVec3>,
    pub(super) middle: f64,
}

/// A bone further than this from where its mirror image should be is no twin, and one nearer to the middle has none \[of the size\].
const MIRRORED: f64 = 0.03;
const MIDDLE: f64 = 0.015;
/// A limb that comes this near to the ground is a leg, and it is at least this long \[of the height\].
const GROUNDED: f64 = 0.1;
const LONG: f64 = 0.15;
/// A limb that names do not call a leg reaches lower than what it is on, by this \[of the height\].
const CLEAR: f64 = 0.02;
/// Limbs with fingers that reach the ground are legs where they begin this much further behind the feet's than above them.
const PAWS: f64 = 1.5;
/// A bone before a long leg that is smaller than this is no thigh \[of the volume of the next\].
const HIP: f64 = 0.5;
/// Fingers of a hand: how far the thumb points away from the others, at least and at most, and those from their mean, at most \[rad\].
const THUMB: (f64, f64) = (0.4, 1.8);
const FINGERS: f64 = 0.6;
/// They begin in a row, no further from it than this \[of its length\], and the thumb further; the nearest neighbours no nearer than this \[of the furthest\]: legs stand in
/// pairs, and a cape has no thumb.
const ROW: f64 = 0.35;
const EVEN: f64 = 0.3;
/// The last bone of a neck that is smaller than this is a part of the head that it is on \[of its volume\].
const FACE: f64 = 0.25;

/// Recognises a body.
pub(super) fn recognise(parts: &[Part<'_>]) -> Plan {
    let mut classes: Vec<Class> = Vec::with_capacity(parts.len());
    for part in parts {
        let class = part.told.unwrap_or_else(|| names::class(part.name, part.parent.map(|p| classes[p])));
        let root = part.parent.is_none() && class == Class::Unknown;
        classes.push(if root { Class::Pelvis } else { class });
    }
    let body = Body::new(parts);
    // A root is a pelvis where nothing tells what it is.
    let says_nothing = |b: usize| match classes[b] {
        Class::Unknown => true,
        class => parts[b].parent.is_none() && parts[b].told.is_none() && class == Class::Pelvis,
    };
    if let Some(labels) = body.hand().filter(|_| (0..parts.len()).all(says_nothing)) {
        labels.into_iter().for_each(|(bone, class)| classes[bone] = class);
        return Plan { classes, twins: vec![None; parts.len()], ..Plan::default() };
    }
    let by_names = leftward(parts);
    let (axis, twins) = body.mirror(by_names);
    let mut plan = Plan { kind: Kind::Other, classes, twins, left: by_names, middle: 0.0 };
    let limbs = body.limbs(&plan);
    let reach: Vec<&Limb> = limbs.iter().filter(|limb| body.is_leg(limb, &plan)).collect();
    // Hands on the ground: paws with fingers, where they stand well behind or before the feet.
    let is_hand = |limb: &Limb| body.has_fingers(limb, &plan);
    let on_paws = |a: &Limb| reach.iter().any(|b| !is_hand(b) && body.behind(a, b, axis) > PAWS);
    let legs: Vec<&Limb> = reach.iter().copied().filter(|limb| !is_hand(limb) || on_paws(limb)).collect();
    plan.kind = match legs[..] {
        [_] => Kind::Biped,
        [a, b] if body.behind(a, b, axis) > 1.0 => Kind::Quadruped,
        // Hands that reach the ground are no feet: the names, or the lower pair, tell.
        [_, _] => Kind::Biped,
        // Six and more: an insect, a spider.
        [_, _, _, ..] => Kind::Other,
        [] => body.kind_by_names(&plan.classes),
    };
    let named = |limb: &Limb, wanted: [Class; 2]| {
        wanted.iter().all(|class| limb.left.iter().any(|b| plan.classes[*b] == *class))
    };
    let mut labels: Vec<(usize, Class)> = Vec::new();
    match plan.kind {
        Kind::Quadruped => legs.iter().for_each(|leg| body.label_leg(leg, &mut labels)),
        Kind::Other if legs.len() > 2 => legs.iter().for_each(|leg| body.label_leg(leg, &mut labels)),
        _ => {
            let leg = legs.iter().copied().min_by(|a, b| body.top(a).total_cmp(&body.top(b)));
            for leg in leg.into_iter().filter(|leg| !named(leg, [Class::Thigh, Class::Calf])) {
                body.label_leg(leg, &mut labels);
            }
            let is_leg = |limb: &&Limb| leg.is_some_and(|leg| leg.left[0] == limb.left[0]);
            let is_none = |limb: &&Limb| {
                limb.left.iter().any(|b| matches!(plan.classes[*b], Class::Tail | Class::Thigh)) // a wing, a leg
            };
            // What has wings for arms has no others, unless names tell.
            let is_wing =
                |limb: &Limb| limb.left.len() > 1 && limb.left.iter().any(|b| plan.classes[*b] == Class::Tail);
            let winged = limbs.iter().any(is_wing);
            let arms = limbs.iter().filter(|limb| !winged && !is_leg(limb) && !is_none(limb));
            let arms = arms.filter(|limb| body.length(&limb.left) > LONG * body.height);
            let arm = arms.max_by(|a, b| body.length(&a.left).total_cmp(&body.length(&b.left)));
            if let Some(arm) =
                arm.filter(|arm| plan.kind == Kind::Biped && !named(arm, [Class::UpperArm, Class::Forearm]))
            {
                body.label_arm(arm, &mut labels);
            }
        }
    }
    for (bone, class) in labels {
        if parts[bone].told.is_none() {
            plan.classes[bone] = class;
        }
    }
    body.label_ends(&mut plan);
    body.label_trunk(&mut plan);
    // Names of sides may be those of who looks at the figure: feet point forward.
    plan.left = axis.map(|axis| body.leftward_by_feet(&plan, axis));
    plan.middle = axis.map_or(0.0, |_| body.middle(plan.left.unwrap_or(DVec3::X)));
    plan
}

/// To the left, by the names of bones, level.
fn leftward(parts: &[Part<'_>]) -> Option<DVec3> {
    let middle = |side: Side| {
        let points: Vec<DVec3> = parts.iter().filter(|p| names::side(p.name) == side).map(|p| p.origin).collect();
        (!points.is_empty()).then(|| points.iter().sum::<DVec3>() / points.len() as f64)
    };
    let left = middle(Side::Left)? - middle(Side::Right)?;
    DVec3::new(left.x, 0.0, left.z).try_normalize()
}

/// A pair of limbs, each from where it leaves the trunk to its end.
struct Limb {
    left: Vec<usize>,
    right: Vec<usize>,
}

/// The bones with what follows from them.
struct Body<'a> {
    parts: &'a [Part<'a>],
    children: Vec<Vec<usize>>,
    /// By bone: the lowest point of all that hangs on it.
    lowest: Vec<f64>,
    ground: f64,
    height: f64,
    size: f64,
}

impl<'a> Body<'a> {
    fn new(parts: &'a [Part<'a>]) -> Body<'a> {
        let mut children = vec![Vec::new(); parts.len()];
        let least = |part: &Part<'_>| part.points.iter().map(|p| p.y).fold(part.origin.y, f64::min);
        let mut lowest: Vec<f64> = parts.iter().map(least).collect();
        for i in (0..parts.len()).rev() {
            if let Some(parent) = parts[i].parent {
                children[parent].push(i);
                lowest[parent] = lowest[parent].min(lowest[i]);
            }
        }
        children.iter_mut().for_each(|list| list.reverse());
        let points = || parts.iter().flat_map(|part| part.points.iter().copied().chain([part.origin]));
        let (low, high) = (points().fold(DVec3::INFINITY, DVec3::min), points().fold(DVec3::NEG_INFINITY, DVec3::max));
        let extent = if parts.is_empty() { DVec3::ONE } else { high - low };
        Body {
            parts,
            children,
            lowest,
            ground: low.y,
            height: extent.y.max(1e-9),
            size: extent.max_element().max(1e-9),
        }
    }

    /// The axis across the body, and by bone the one on the other side: by its name, else by its place.
    fn mirror(&self, by_names: Option<DVec3>) -> (Option<DVec3>, Vec<Option<usize>>) {
        let mut twins = vec![None; self.parts.len()];
        let keys: Vec<(Side, String)> =
            self.parts.iter().map(|p| (names::side(p.name), names::without_side(p.name))).collect();
        for (i, (side, key)) in keys.iter().enumerate().filter(|(_, (side, _))| *side != Side::Middle) {
            let other = |(s, k): &(Side, String)| *s != *side && *s != Side::Middle && k == key;
            let mut others = keys.iter().enumerate().filter(|(_, other_key)| other(other_key));
            twins[i] = others.next().map(|(j, _)| j).filter(|_| others.next().is_none());
        }
        // Twins hang on one bone, or on twins: numbers in names may count from either end. Parents come first.
        for i in 0..twins.len() {
            let same = |j: &usize| match (self.parts[i].parent, self.parts[*j].parent) {
                (Some(p), Some(q)) => p == q || twins[p] == Some(q),
                (p, q) => p == q,
            };
            twins[i] = twins[i].filter(|j: &usize| twins[*j] == Some(i) && same(j));
        }
        for i in 0..twins.len() {
            twins[i] = twins[i].filter(|j: &usize| twins[*j] == Some(i));
        }
        let axes: Vec<DVec3> = by_names.map_or_else(|| self.across(), |left| vec![left]);
        let best = axes.into_iter().map(|axis| (axis, self.by_place(axis))).max_by_key(|(_, (pairs, _))| pairs.len());
        let Some((axis, (pairs, aside))) = best else { return (None, twins) };
        // Where few of the bones aside have an image it is no mirror: a hand, a tree.
        if by_names.is_none() && 2 * pairs.len() < aside.max(1) {
            return (None, twins);
        }
        for (i, j) in pairs {
            if twins[i].is_none() && twins[j].is_none() {
                (twins[i], twins[j]) = (Some(j), Some(i));
            }
        }
        // What is alone on a twin is the twin of what is alone on the other.
        for i in 0..twins.len() {
            let Some(j) = twins[i] else { continue };
            if let ([a], [b]) = (&self.children[i][..], &self.children[j][..])
                && twins[*a].is_none()
                && twins[*b].is_none()
            {
                (twins[*a], twins[*b]) = (Some(*b), Some(*a));
            }
        }
        (Some(axis), twins)
    }

    /// Axes that may lead across a body without names, the likeliest last: a mirror image turns no principal axis of how bones are spread over the ground, so that
    /// the one across the body is among them however it stands; what pairs they find tells it exactly.
    fn across(&self) -> Vec<DVec3> {
        let level = |d: DVec3| DVec3::new(d.x, 0.0, d.z);
        let middle = self.parts.iter().map(|p| p.origin).sum::<DVec3>() / self.parts.len().max(1) as f64;
        let spread = self.parts.iter().map(|p| p.origin - middle);
        let (xx, xz, zz) = spread.fold((0.0, 0.0, 0.0), |(a, b, c), d| (a + d.x * d.x, b + d.x * d.z, c + d.z * d.z));
        // tan 2θ = 2 Σxz / (Σxx − Σzz)
        let (sin, cos) = (0.5 * (2.0 * xz).atan2(xx - zz)).sin_cos();
        let exact = |axis: DVec3| {
            let along = |(i, j): &(usize, usize)| level(self.parts[*i].origin - self.parts[*j].origin);
            self.by_place(axis).0.iter().map(along).sum::<DVec3>().try_normalize().unwrap_or(axis)
        };
        let principal = [DVec3::new(-sin, 0.0, cos), DVec3::new(cos, 0.0, sin)].map(exact);
        [principal[0], principal[1], DVec3::X, DVec3::Z].into()
    }

    /// Where the middle of the body is along an axis: that of its bones.
    fn middle(&self, axis: DVec3) -> f64 {
        let mut across: Vec<f64> = self.parts.iter().map(|part| part.origin.dot(axis)).collect();
        across.sort_by(f64::total_cmp);
        across.get(across.len() / 2).copied().unwrap_or(0.0)
    }

    /// Pairs of bones that are each other's mirror images across a plane in the middle of the body, and how many bones are on one side of it.
    fn by_place(&self, axis: DVec3) -> (Vec<(usize, usize)>, usize) {
        let middle = self.middle(axis);
        let image = |p: DVec3| p - axis * (2.0 * (p.dot(axis) - middle));
        let nearest = |i: usize| {
            let to = image(self.parts[i].origin);
            let others = (0..self.parts.len()).filter(|j| *j != i);
            let far = |j: &usize| self.parts[*j].origin.distance(to);
            let best = others.min_by(|a, b| far(a).total_cmp(&far(b)))?;
            (far(&best) < MIRRORED * self.size).then_some(best)
        };
        let side = |sign: f64| {
            let aside = move |i: &usize| sign * (self.parts[*i].origin.dot(axis) - middle) > MIDDLE * self.size;
            (0..self.parts.len()).filter(aside)
        };
        let pair = |i: usize| nearest(i).filter(|j| nearest(*j) == Some(i)).map(|j| (i, j));
        (side(1.0).filter_map(pair).collect(), side(1.0).count().max(side(-1.0).count()))
    }

    /// Pairs of limbs: chains that begin at twins whose parent has none.
    fn limbs(&self, plan: &Plan) -> Vec<Limb> {
        let mut limbs = Vec::new();
        for i in 0..self.parts.len() {
            let (Some(j), Some(parent)) = (plan.twins[i], self.parts[i].parent) else { continue };
            if i < j && plan.twins[parent].is_none() && plan.classes[i] != Class::Tail {
                limbs.push(Limb { left: self.chain(i), right: self.chain(j) });
            }
        }
        limbs
    }

    /// From a bone on, always along the child that reaches furthest.
    fn chain(&self, from: usize) -> Vec<usize> {
        let mut chain = vec![from];
        let mut at = from;
        while let Some(next) =
            self.children[at].iter().copied().max_by(|a, b| self.reach(*a).total_cmp(&self.reach(*b)))
        {
            chain.push(next);
            at = next;
        }
        chain
    }

    /// How far a bone and all that hangs on it reach from where its parent begins \[m\].
    fn reach(&self, bone: usize) -> f64 {
        let from = self.parts[bone].parent.map_or(self.parts[bone].origin, |p| self.parts[p].origin);
        self.furthest(bone, from)
    }

    fn furthest(&self, bone: usize, from: DVec3) -> f64 {
        let own = self.parts[bone].points.iter().map(|p| p.distance(from)).fold(0.0, f64::max);
        self.children[bone].iter().map(|child| self.furthest(*child, from)).fold(own, f64::max)
    }

    /// Of a chain \[m\].
    fn length(&self, chain: &[usize]) -> f64 {
        chain.first().map_or(0.0, |first| self.furthest(*first, self.parts[*first].origin))
    }

    /// The height of the joint where a limb begins.
    fn top(&self, limb: &Limb) -> f64 {
        self.parts[limb.left[0]].origin.y
    }

    fn is_leg(&self, limb: &Limb, plan: &Plan) -> bool {
        let low = |chain: &[usize]| self.lowest[chain[0]] - self.ground < GROUNDED * self.height;
        let is_arm = limb.left.iter().any(|b| self.parts[*b].told.is_some() && plan.classes[*b] == Class::Forearm);
        let of_leg = |b: &usize| matches!(plan.classes[*b], Class::Thigh | Class::Calf | Class::Foot);
        // Fins reach no lower than what they are on; what is called a leg may.
        let own_lowest = |b: usize| self.parts[b].points.iter().map(|p| p.y).fold(f64::INFINITY, f64::min);
        let trunk = std::iter::successors(self.parts[limb.left[0]].parent, |b| self.parts[*b].parent);
        let belly = trunk.map(own_lowest).fold(f64::INFINITY, f64::min);
        let carries = self.lowest[limb.left[0]] < belly - CLEAR * self.height;
        limb.left.len() >= 2
            && low(&limb.left)
            && low(&limb.right)
            && self.length(&limb.left) > LONG * self.height
            && !is_arm
            && (carries || limb.left.iter().any(of_leg))
    }

    /// Whether names tell fingers on a limb, and no thigh: the toes of a bird may be called so.
    fn has_fingers(&self, limb: &Limb, plan: &Plan) -> bool {
        let finger = |b: &usize| matches!(plan.classes[*b], Class::Metacarpal | Class::FingerBase | Class::Finger);
        limb.left.iter().any(finger) && !limb.left.iter().any(|b| plan.classes[*b] == Class::Thigh)
    }

    /// How much further two pairs of legs begin behind each other than above each other.
    fn behind(&self, a: &Limb, b: &Limb, axis: Option<DVec3>) -> f64 {
        let middle = |limb: &Limb| 0.5 * (self.parts[limb.left[0]].origin + self.parts[limb.right[0]].origin);
        let between = middle(a) - middle(b);
        let level = DVec3::new(between.x, 0.0, between.z);
        let level = axis.map_or(level, |axis| level.reject_from_normalized(axis));
        level.length() / between.y.abs().max(1e-9 * self.size)
    }

    /// Toes of paws that names call fingers; of several bones side by side in a hand those of the palm; of a neck all before the head.
    fn label_ends(&self, plan: &mut Plan) {
        let hand = |c: Class| matches!(c, Class::Hand | Class::Metacarpal | Class::FingerBase | Class::Finger);
        let free = |b: usize| self.parts[b].told.is_none();
        for b in 0..self.parts.len() {
            let Some(above) = self.parts[b].parent else { continue };
            let foot = matches!(plan.classes[above], Class::Foot | Class::Toe);
            if foot && hand(plan.classes[b]) && free(b) {
                plan.classes[b] = Class::Toe;
            }
        }
        let palms: Vec<usize> = (0..self.parts.len())
            .filter(|b| {
                let is_hand = |b: usize| plan.classes[b] == Class::Hand;
                let beside = |p: usize| self.children[p].iter().filter(|c| is_hand(**c)).count() > 1;
                is_hand(*b) && free(*b) && self.parts[*b].parent.is_some_and(|p| is_hand(p) && beside(p))
            })
            .collect();
        palms.into_iter().for_each(|b| plan.classes[b] = Class::Metacarpal);
        for b in (0..self.parts.len()).rev() {
            let is_neck = names::class(self.parts[b].name, None) == Class::Neck;
            let head = |c: &usize| plan.classes[*c] == Class::Head || (plan.classes[*c] == Class::Neck);
            let leads = |b: usize| {
                let mut below = self.children[b].clone();
                while let Some(c) = below.pop() {
                    if plan.classes[c] == Class::Head {
                        return true;
                    }
                    below.extend(self.children[c].iter().copied().filter(|c| head(c)));
                }
                false
            };
            if is_neck && free(b) && plan.classes[b] == Class::Head && leads(b) {
                plan.classes[b] = Class::Neck;
            }
        }
    }

    /// Bipeds and quadrupeds by the thighs that names tell, where no limb reaches the ground.
    fn kind_by_names(&self, classes: &[Class]) -> Kind {
        let is_top =
            |i: &usize| classes[*i] == Class::Thigh && self.parts[*i].parent.is_none_or(|p| classes[p] != Class::Thigh);
        match (0..classes.len()).filter(is_top).count() {
            2 => Kind::Biped,
            4 => Kind::Quadruped,
            _ => Kind::Other,
        }
    }

    /// How far a bone is from the next one along a chain \[m\].
    fn segment(&self, chain: &[usize], k: usize) -> f64 {
        match chain.get(k + 1) {
            Some(next) => self.parts[*next].origin.distance(self.parts[chain[k]].origin),
            None => self.furthest(chain[k], self.parts[chain[k]].origin),
        }
    }

    /// Hip, knee, ankle or hock, toes or paw, by their order. A short or small bone before a long leg is the shoulder blade or a part of the hip: of a leg the thigh
    /// is the largest.
    fn label_leg(&self, leg: &Limb, labels: &mut Vec<(usize, Class)>) {
        // Both sides together: they are labelled alike.
        let volume = |k: usize| {
            [&leg.left, &leg.right].map(|chain| chain.get(k).map_or(0.0, |b| self.parts[*b].volume)).iter().sum::<f64>()
        };
        let small = volume(0) < HIP * volume(1);
        for chain in [&leg.left, &leg.right] {
            let blade = chain.len() > 3 && (small || self.segment(chain, 0) < 0.45 * self.segment(chain, 1));
            let first = usize::from(blade || chain.len() > 4);
            for (k, bone) in chain.iter().enumerate() {
                let class = match k.checked_sub(first) {
                    None => Class::Clavicle,
                    Some(0) => Class::Thigh,
                    Some(1) => Class::Calf,
                    Some(2) => Class::Foot,
                    Some(_) => Class::Toe,
                };
                labels.push((*bone, class));
            }
        }
    }

    /// A hand by itself: all that there is are fingers and what leads to where they begin. Fingers are four to six lines of bones of like length that begin in a row
    /// and point the same way, but for one at an end of it, the thumb.
    fn hand(&self) -> Option<Vec<(usize, Class)>> {
        let root = self.parts.first().filter(|part| part.parent.is_none()).map(|_| 0)?;
        let alone = |b: &usize| match self.children[*b][..] {
            [next] => Some(next),
            _ => None,
        };
        let stem: Vec<usize> = std::iter::successors(Some(root), alone).collect();
        let palm = *stem.last()?;
        let fingers: Vec<Vec<usize>> =
            self.children[palm].iter().map(|b| std::iter::successors(Some(*b), alone).collect()).collect();
        let count = stem.len() + fingers.iter().map(Vec::len).sum::<usize>();
        let all = count == self.parts.len() && stem.len() <= 3 && (4..=6).contains(&fingers.len());
        if !all || !fingers.iter().all(|finger| (2..=5).contains(&finger.len())) {
            return None;
        }
        let from = self.parts[palm].origin;
        let lengths: Vec<f64> = fingers.iter().map(|finger| self.length(finger)).collect();
        let (short, long) = lengths.iter().fold((f64::INFINITY, 0.0f64), |(a, b), l| (a.min(*l), b.max(*l)));
        let run = |finger: &[usize]| self.parts[finger[finger.len() - 1]].origin - self.parts[finger[0]].origin;
        let directions: Vec<DVec3> = fingers.iter().map(|finger| run(finger).normalize_or_zero()).collect();
        let mean_but = |k: usize| {
            let others = directions.iter().enumerate().filter(|(i, _)| *i != k);
            others.map(|(_, d)| *d).sum::<DVec3>().normalize_or_zero()
        };
        let angle = |k: usize| directions[k].dot(mean_but(k)).clamp(-1.0, 1.0).acos();
        let thumb = (0..fingers.len()).max_by(|a, b| angle(*a).total_cmp(&angle(*b)))?;
        let mean = mean_but(thumb);
        let others: Vec<usize> = (0..fingers.len()).filter(|k| *k != thumb).collect();
        let side_by_side = others.iter().all(|k| directions[*k].dot(mean) > FINGERS.cos());
        if long > 3.0 * short || !(THUMB.0..THUMB.1).contains(&angle(thumb)) || !side_by_side {
            return None;
        }
        // Where the second bones begin: the first may all begin at the wrist.
        let begin = |k: usize| self.parts[fingers[k][1]].origin;
        let begins: Vec<DVec3> = others.iter().map(|k| begin(*k)).collect();
        let pairs = begins.iter().flat_map(|a| begins.iter().map(move |b| *b - *a));
        let row = pairs.max_by(|a, b| a.length().total_cmp(&b.length()))?;
        let (along, length) = (row.try_normalize()?, row.length());
        let middle = begins.iter().sum::<DVec3>() / begins.len() as f64;
        let aside = |p: DVec3| (p - middle).reject_from_normalized(along).length();
        let off = begins.iter().map(|p| aside(*p)).fold(0.0, f64::max);
        let mut places: Vec<f64> = begins.iter().map(|p| p.dot(along)).collect();
        places.sort_by(f64::total_cmp);
        let gaps = || places.windows(2).map(|pair| pair[1] - pair[0]);
        let even = gaps().fold(f64::INFINITY, f64::min) > EVEN * gaps().fold(0.0, f64::max);
        if off > ROW * length || aside(begin(thumb)) < ROW * length || !even {
            return None;
        }
        let mut labels: Vec<(usize, Class)> =
            stem.iter().rev().copied().zip([Class::Hand, Class::Forearm, Class::UpperArm]).collect();
        // Of fingers with a bone in the palm the first begins near the wrist; a thumb has one bone less.
        let far = |b: usize| self.parts[b].origin.distance(from);
        let in_palm = |k: &usize| fingers[*k].len() > 3 && far(fingers[*k][0]) < 0.6 * far(fingers[*k][1]);
        let palms = 2 * others.iter().filter(|k| in_palm(k)).count() > others.len();
        for (k, finger) in fingers.iter().enumerate() {
            let first = usize::from(palms && (in_palm(&k) || (k == thumb && finger.len() > 2)));
            for (n, bone) in finger.iter().enumerate() {
                let class = match n.checked_sub(first) {
                    None => Class::Metacarpal,
                    Some(0) => Class::FingerBase,
                    Some(_) => Class::Finger,
                };
                labels.push((*bone, class));
            }
        }
        Some(labels)
    }

    /// Collar bone, upper arm, forearm, hand and fingers, by their order: the hand is where the chain branches, or its end.
    fn label_arm(&self, arm: &Limb, labels: &mut Vec<(usize, Class)>) {
        for chain in [&arm.left, &arm.right] {
            let branches = chain.iter().position(|b| self.children[*b].len() >= 2);
            // Upper arm and forearm are about as long: one of four bones is a collar bone before them, or a second one of the hand.
            let unlike = |k: usize| (self.segment(chain, k) / self.segment(chain, k + 1).max(1e-300)).ln().abs();
            let without_collar = chain.len() >= 4 && unlike(0) < unlike(1);
            let by_length = if without_collar { 2 } else { chain.len().min(4) - 1 };
            let hand = branches.filter(|k| *k >= 2).or((chain.len() >= 3).then_some(by_length));
            let elbow = hand.map_or(1, |hand| hand - 1);
            for (k, bone) in chain.iter().enumerate() {
                let class = match k {
                    _ if Some(k) == hand => Class::Hand,
                    _ if k == elbow => Class::Forearm,
                    _ if k + 1 == elbow => Class::UpperArm,
                    _ if k < elbow => Class::Clavicle,
                    _ => continue,
                };
                labels.push((*bone, class));
            }
            let Some(hand) = hand.map(|hand| chain[hand]) else { continue };
            // What goes on alone is the same hand, not a finger.
            let alone = |b: usize| match self.children[b][..] {
                [next] => Some(next),
                _ => None,
            };
            let palm = alone(hand).filter(|next| without_collar && self.children[*next].len() != 1);
            labels.extend(palm.map(|palm| (palm, Class::Hand)));
            let hand = palm.unwrap_or(hand);
            for &finger in &self.children[hand] {
                labels.push((finger, Class::FingerBase));
                let below = |b: &usize| self.is_below(*b, finger);
                labels.extend((0..self.parts.len()).filter(below).map(|b| (b, Class::Finger)));
            }
        }
    }

    fn is_below(&self, bone: usize, above: usize) -> bool {
        std::iter::successors(self.parts[bone].parent, |b| self.parts[*b].parent).any(|b| b == above)
    }

    /// Bones in the middle that names leave open: those that carry limbs are the spine, of the chains that go on the one with the largest end leads
    /// to the head, all others are tails; so are chains of light bones aside.
    fn label_trunk(&self, plan: &mut Plan) {
        let open = |plan: &Plan, b: usize| plan.classes[b] == Class::Unknown;
        let carries_limb = |plan: &Plan, b: usize| {
            let limb = |c: Class| matches!(c, Class::Thigh | Class::UpperArm | Class::Clavicle);
            (0..self.parts.len()).any(|c| limb(plan.classes[c]) && self.is_below(c, b))
        };
        let whole: f64 = self.parts.iter().map(|p| p.volume.max(0.0)).sum();
        let light = |b: usize| self.parts[b].volume < 0.02 * whole;
        if plan.kind != Kind::Other {
            for b in 0..self.parts.len() {
                if open(plan, b) && plan.twins[b].is_none() && carries_limb(plan, b) {
                    plan.classes[b] = Class::Spine;
                }
            }
            if !plan.classes.contains(&Class::Head) {
                // Some number the spine up to the head: what of it carries no limb is neck and head.
                let beyond = |plan: &Plan, b: usize| {
                    let spine = matches!(plan.classes[b], Class::Spine | Class::Neck) && !carries_limb(plan, b);
                    plan.twins[b].is_none() && (open(plan, b) || spine)
                };
                // Hair on a head is no neck.
                let is_end = |b: &usize| {
                    beyond(plan, *b)
                        && !light(*b)
                        && !self.children[*b].iter().any(|c| plan.twins[*c].is_none() && !light(*c))
                };
                let ends = (0..self.parts.len()).filter(is_end);
                let head = ends.max_by(|a, b| self.parts[*a].volume.total_cmp(&self.parts[*b].volume));
                // A snout or a visor is a part of the head that it is on.
                let above = |b: usize| self.parts[b].parent.filter(|p| beyond(plan, *p) && !carries_limb(plan, *p));
                let smaller = |b: usize, p: usize| self.parts[b].volume < FACE * self.parts[p].volume;
                let head = head.map(|b| above(b).filter(|p| smaller(b, *p)).unwrap_or(b));
                if let Some(head) = head {
                    plan.classes[head] = Class::Head;
                    let mut at = self.parts[head].parent;
                    while let Some(neck) = at.filter(|b| beyond(plan, *b)) {
                        plan.classes[neck] = Class::Neck;
                        at = self.parts[neck].parent;
                    }
                }
            }
        }
        for b in 0..self.parts.len() {
            let Some(parent) = self.parts[b].parent else { continue };
            let in_chain =
                plan.classes[parent] == Class::Tail || self.children[b].iter().any(|c| open(plan, *c) && light(*c));
            let on_body =
                !matches!(plan.classes[parent], Class::Hand | Class::FingerBase | Class::Finger | Class::Unknown);
            if plan.kind != Kind::Other && open(plan, b) && light(b) && in_chain && on_body {
                plan.classes[b] = Class::Tail;
            }
        }
    }

    /// To the left along an axis across the body: feet point forward.
    fn leftward_by_feet(&self, plan: &Plan, axis: DVec3) -> DVec3 {
        let mut forward = DVec3::ZERO;
        for (b, part) in self.parts.iter().enumerate() {
            if plan.classes[b] == Class::Foot && !part.points.is_empty() {
                let whole = (0..self.parts.len()).filter(|c| *c == b || self.is_below(*c, b));
                let points: Vec<DVec3> = whole.flat_map(|c| self.parts[c].points.iter().copied()).collect();
                forward += points.iter().sum::<DVec3>() / points.len() as f64 - part.origin;
            }
        }
        // left = up × forward; feet that stand as far behind the ankle as before it tell nothing.
        let across = DVec3::Y.cross(forward).dot(axis);
        if across < -0.01 * self.height { -axis } else { axis }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Boxes of points around segments given by name, parent, both ends.
    /// Name, parent, and the two ends of a bone \[m\].
    type Told<'a> = (&'a str, Option<usize>, [f64; 3], [f64; 3]);

    fn plan_of(bones: &[Told<'_>]) -> Plan {
        let clouds: Vec<Vec<DVec3>> = bones
            .iter()
            .map(|(_, _, a, b)| {
                let (a, b) = (DVec3::from(*a), DVec3::from(*b));
                let corner = |k: usize| DVec3::new((k & 1) as f64, (k >> 1 & 1) as f64, (k >> 2) as f64) * 0.04 - 0.02;
                (0..16).map(|k| if k < 8 { a + corner(k) } else { b + corner(k - 8) }).collect()
            })
            .collect();
        let parts: Vec<Part<'_>> = bones
            .iter()
            .zip(&clouds)
            .map(|((name, parent, a, b), points)| Part {
                name,
                parent: *parent,
                origin: DVec3::from(*a),
                points,
                volume: DVec3::from(*a).distance(DVec3::from(*b)) * 0.01,
                told: None,
            })
            .collect();
        recognise(&parts)
    }

    #[test]
    fn a_nameless_figure_is_understood_by_its_shape() {
        let mut bones = vec![
            ("Bone", None, [0.0, 1.0, 0.0], [0.0, 1.2, 0.0]),
            ("Bone.001", Some(0), [0.0, 1.2, 0.0], [0.0, 1.5, 0.0]),
            ("Bone.002", Some(1), [0.0, 1.5, 0.0], [0.0, 1.75, 0.0]),
        ];
        for x in [1.0, -1.0] {
            let at = bones.len();
            bones.push(("Bone.a", Some(0), [0.1 * x, 1.0, 0.0], [0.1 * x, 0.5, 0.0]));
            bones.push(("Bone.b", Some(at), [0.1 * x, 0.5, 0.0], [0.1 * x, 0.1, 0.0]));
            bones.push(("Bone.c", Some(at + 1), [0.1 * x, 0.1, 0.0], [0.1 * x, 0.02, 0.2]));
            bones.push(("Bone.d", Some(1), [0.2 * x, 1.45, 0.0], [0.5 * x, 1.45, 0.0]));
            bones.push(("Bone.e", Some(at + 3), [0.5 * x, 1.45, 0.0], [0.75 * x, 1.45, 0.0]));
            bones.push(("Bone.f", Some(at + 4), [0.75 * x, 1.45, 0.0], [0.9 * x, 1.45, 0.0]));
        }
        let plan = plan_of(&bones);
        use Class::*;
        assert_eq!(plan.kind, Kind::Biped);
        assert_eq!(plan.classes[..9], [Pelvis, Spine, Head, Thigh, Calf, Foot, UpperArm, Forearm, Hand]);
        assert_eq!(plan.twins[4], Some(10));
        assert!((plan.left.unwrap() - DVec3::X).length() < 1e-9, "feet point along +Z");
    }

    /// A figure of two legs whose bones are called like this, turned about the upright \[rad\].
    fn person(names: [&'static str; 11], turn: f64) -> Vec<Told<'static>> {
        let turned = |p: [f64; 3]| (glam::DQuat::from_rotation_y(turn) * DVec3::from(p)).to_array();
        let spine = [[0.0, 1.0, 0.0], [0.0, 1.2, 0.0], [0.0, 1.45, 0.0], [0.0, 1.53, 0.0], [0.0, 1.9, 0.0]];
        let mut bones: Vec<Told<'_>> =
            (0..4).map(|k| (names[k], k.checked_sub(1), turned(spine[k]), turned(spine[k + 1]))).collect();
        for x in [1.0, -1.0] {
            let at = bones.len();
            let leg = [[0.1 * x, 1.0, 0.0], [0.1 * x, 0.5, 0.0], [0.1 * x, 0.1, 0.0], [0.1 * x, 0.02, 0.2]];
            let arm = [0.2, 0.45, 0.68, 0.73, 0.9].map(|out| [out * x, 1.4, 0.0]);
            for k in 0..3 {
                let above = if k == 0 { 0 } else { at + k - 1 };
                bones.push((names[4 + k], Some(above), turned(leg[k]), turned(leg[k + 1])));
            }
            for k in 0..4 {
                let above = if k == 0 { 1 } else { at + k + 2 };
                bones.push((names[7 + k], Some(above), turned(arm[k]), turned(arm[k + 1])));
            }
        }
        bones
    }

    /// However it stands, and with a wrist before the hand.
    #[test]
    fn a_nameless_figure_is_understood_however_it_stands() {
        use Class::*;
        let classes = [Pelvis, Spine, Neck, Head, Thigh, Calf, Foot, UpperArm, Forearm, Hand, Hand];
        for degrees in [0.0, 20.0, 37.0, 45.0, 60.0, 90.0, 120.0, 200.0, 290.0] {
            let turn = f64::to_radians(degrees);
            let plan = plan_of(&person(["Bone"; 11], turn));
            assert_eq!(plan.kind, Kind::Biped, "{degrees}°");
            assert_eq!(plan.classes[..11], classes, "{degrees}°");
            let left = glam::DQuat::from_rotation_y(turn) * DVec3::X;
            assert!((plan.left.unwrap() - left).length() < 1e-6, "{degrees}°: {:?}", plan.left);
        }
    }

    /// Rigify calls neck and head by the numbers of the spine.
    #[test]
    fn a_spine_that_is_numbered_up_to_the_head_ends_in_a_head() {
        let mut names = ["Bone"; 11];
        names[..4].copy_from_slice(&["DEF-spine", "DEF-spine.003", "DEF-spine.004", "DEF-spine.006"]);
        let plan = plan_of(&person(names, 0.0));
        assert_eq!(plan.classes[..4], [Class::Pelvis, Class::Spine, Class::Neck, Class::Head]);
    }

    /// Fingers of three bones that begin a palm's length from the wrist, curled a little, the thumb first; `turn` is how the hand lies.
    fn nameless_hand(turn: glam::DQuat, stem: usize) -> Vec<Told<'static>> {
        let at = |p: [f64; 3]| (turn * DVec3::from(p)).to_array();
        let mut bones: Vec<Told<'_>> = Vec::new();
        for k in 0..stem {
            let y = 0.25 * (stem - k) as f64;
            bones.push(("q", k.checked_sub(1), at([0.0, -y, 0.0]), at([0.0, 0.25 - y, 0.0])));
        }
        bones.push(("q", stem.checked_sub(1), at([0.0, 0.0, 0.0]), at([0.0, 0.09, 0.0])));
        for finger in 0..5 {
            let x = 0.02 * (finger as f64 - 2.5);
            let (from, lean) =
                if finger == 0 { ([-0.025, 0.03, 0.01], 0.9f64) } else { ([x, 0.09, 0.0], -0.04 * x.signum()) };
            let (mut above, mut here) = (stem, DVec3::from(from));
            for k in 0..3 {
                let (length, curl) = (0.04 - 0.008 * k as f64, 0.1 * (k + 1) as f64);
                let along = DVec3::new(-lean.sin() * curl.cos(), lean.cos() * curl.cos(), curl.sin());
                let there = here + along * length;
                bones.push(("q", Some(above), at(here.to_array()), at(there.to_array())));
                (above, here) = (bones.len() - 1, there);
            }
        }
        bones
    }

    #[test]
    fn a_nameless_hand_is_one_however_it_lies_and_little_else_is() {
        use Class::*;
        for stem in 0..2 {
            for k in 0..12 {
                let angle = |n: usize| (k as f64 * (0.7548 + 0.1 * n as f64)).fract() * std::f64::consts::TAU;
                let turn = glam::DQuat::from_euler(glam::EulerRot::XYZ, angle(0), angle(1), angle(2));
                let plan = plan_of(&nameless_hand(turn, stem));
                let mut wanted = vec![Forearm; stem];
                wanted.push(Hand);
                (0..5).for_each(|_| wanted.extend([FingerBase, Finger, Finger]));
                assert_eq!((plan.classes, plan.kind), (wanted, Kind::Other), "{stem} {k}");
            }
        }
        // A bone that has a name is what it is called.
        let mut named = nameless_hand(glam::DQuat::IDENTITY, 0);
        named[4].0 = "head";
        assert!(!plan_of(&named).classes.contains(&Hand));
        // Five lines of three bones that go out from one: round about, as a starfish; side by side, as a cape; four legs and a neck.
        let lines = |from: &dyn Fn(usize) -> [f64; 3], along: &dyn Fn(usize) -> [f64; 3]| {
            let mut bones: Vec<Told<'_>> = vec![("q", None, [0.0, 1.0, 0.0], [0.0, 1.1, 0.0])];
            for k in 0..5 {
                let (from, along) = (DVec3::from(from(k)), DVec3::from(along(k)) * 0.2);
                for n in 0..3 {
                    let above = if n == 0 { 0 } else { bones.len() - 1 };
                    let place = |n: usize| (from + along * n as f64).to_array();
                    bones.push(("q", Some(above), place(n), place(n + 1)));
                }
            }
            plan_of(&bones).classes[0] == Hand
        };
        let round = |k: usize| {
            let (sin, cos) = (1.2566 * k as f64).sin_cos();
            [cos, 0.0, sin]
        };
        assert!(!lines(&|k| round(k).map(|x| 0.1 * x), &round), "a starfish");
        assert!(!lines(&|k| [0.1 * k as f64 - 0.2, 1.0, 0.0], &|_| [0.0, -1.0, 0.0]), "a cape");
        let corner = |k: usize| {
            if k == 4 { [0.0, 1.0, 0.35] } else { [0.12 - 0.24 * (k % 2) as f64, 1.0, 0.3 - 0.6 * (k / 2) as f64] }
        };
        assert!(!lines(&corner, &|k| if k == 4 { [0.0, 0.5, 0.8] } else { [0.0, -1.0, 0.0] }), "four legs and a neck");
    }

    /// A leg that begins with a small bone of the hip.
    #[test]
    fn the_thigh_is_the_largest_bone_of_a_leg() {
        let mut bones: Vec<Told<'_>> =
            vec![("q", None, [0.0, 0.6, -0.4], [0.0, 0.6, 0.5]), ("q", Some(0), [0.0, 0.7, 0.5], [0.0, 0.9, 0.8])];
        for z in [0.4, -0.4] {
            for x in [0.15, -0.15] {
                let at = bones.len();
                // As long as the thigh and half as large: its volume is that of its length, below.
                let joints = [[x, 0.66, z], [x, 0.55, z + 0.03], [x, 0.3, z + 0.05], [x, 0.1, z - 0.05], [x, 0.02, z]];
                for k in 0..4 {
                    bones.push(("q", Some(if k == 0 { 0 } else { at + k - 1 }), joints[k], joints[k + 1]));
                }
            }
        }
        let plan = plan_of(&bones);
        use Class::*;
        assert_eq!(plan.kind, Kind::Quadruped);
        for leg in 0..4 {
            assert_eq!(plan.classes[2 + 4 * leg..6 + 4 * leg], [Clavicle, Thigh, Calf, Foot]);
        }
    }

    #[test]
    fn four_legs_are_told_by_where_they_stand_whatever_they_are_called() {
        let mut bones =
            vec![("trunk", None, [0.0, 0.6, -0.4], [0.0, 0.6, 0.5]), ("b", Some(0), [0.0, 0.7, 0.5], [0.0, 0.9, 0.8])];
        for (z, limb) in [(0.4, "arm"), (-0.4, "leg")] {
            for (x, side) in [(0.15, "L"), (-0.15, "R")] {
                let at = bones.len();
                let name = |k: usize| -> &'static str { Box::leak(format!("{limb}{k}.{side}").into_boxed_str()) };
                bones.push((name(1), Some(0), [x, 0.6, z], [x, 0.4, z + 0.05]));
                bones.push((name(2), Some(at), [x, 0.4, z + 0.05], [x, 0.2, z - 0.05]));
                bones.push((name(3), Some(at + 1), [x, 0.2, z - 0.05], [x, 0.02, z]));
            }
        }
        let plan = plan_of(&bones);
        use Class::*;
        assert_eq!(plan.kind, Kind::Quadruped);
        for leg in 0..4 {
            assert_eq!(plan.classes[2 + 3 * leg..5 + 3 * leg], [Thigh, Calf, Foot]);
        }
        assert_eq!(plan.classes[1], Head);
    }
}

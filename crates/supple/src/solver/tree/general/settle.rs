//! Newton's method on momenta, joints and one-sided rows together.

use super::system::{Part, System};
use super::{LARGEST_TURN, TOLERANCE};
use crate::input::FleshCoupling;
use crate::maths::Wrench;
use crate::maths::block::{Vector, add_scaled, to_twist};
use crate::model::{BodyId, State};
use crate::step::{Failure, Report};

/// Passes in which joints may still close when no more rounds of (5) begin.
const CLOSING: u32 = 20;
/// What a contact may be off by when passes are used up, as a share of the speed at hand.
const FAR_OFF: f64 = 1.0;
/// Halvings of a step that leads too far.
const SHORTENINGS: u32 = 8;
/// What gaps cannot be told to, as a share of the model's size.
const ROUNDING: f64 = 1e-11;
/// What a look at where v leads leaves missing beyond this share of the look before asks for the rows of the end.
const SLOW: f64 = 0.3;
/// Joints nearer to closed than this are kept as they are while a line is searched.
const NEARLY_CLOSED: f64 = 1e-6;

/// When passes end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Until {
    /// When contacts are settled.
    Settled,
    /// After the first round of (5), in which contacts give way like springs: that is a convex function's minimum, which exists whatever they ask for.
    Balanced,
}

/// What is to be solved beside the law of contacts.
pub(super) trait Equations {
    /// Sets `x` to what is missing at v without touches, and the shifts of touches; returns how far links are open.
    fn residual(&mut self, system: &mut System) -> Result<f64, Failure>;

    /// Sets rows of links in `stiffened` and of gaps to those by which v moves them at the last residual, where they are others than those of the matrix.
    fn derive(&mut self, system: &mut System);
}

/// What contacts and momenta may be off by.
pub(super) struct Wanted {
    pub(super) off: f64,
    pub(super) missing: f64,
}

/// How what is missing at v is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    /// From where v leads.
    Truly,
    /// From where the last v that was followed led, and the derivatives there: with joints and gaps linear, what is left is convex, and a line can be searched.
    ByDerivatives,
}

impl System {
    /// Solves `p(v) = …` with the rows of links and touches from the present v, y and f̄. Joints must close; contacts that do not settle are counted.
    pub(super) fn settle(
        &mut self,
        part: &Part<'_>,
        state: &State,
        report: &mut Report,
        until: Until,
        equations: &mut impl Equations,
    ) -> Result<(), Failure> {
        let speed = self.speed_at_hand(part);
        // What is missing is given to the bodies afterwards: it need not be less than what contacts are asked for.
        let enough = (part.accuracy.contacts * speed * part.h / part.reach).max(ROUNDING);
        let (mut open, mut before) = (f64::INFINITY, f64::INFINITY);
        let mut told = Told::Truly;
        // Flesh that begins or ceases to touch bends what is missing so much that whole steps may lead to and fro.
        let bends = part.model.flesh().is_some() && part.input.flesh == FleshCoupling::Together;
        let mut last = f64::INFINITY;
        let (mut truth, mut follows_end) = (f64::INFINITY, true);
        let (passes, mut tries) = (part.accuracy.passes, part.accuracy.newton);
        for pass in 0..passes + CLOSING {
            let mut missing = f64::INFINITY;
            if told == Told::ByDerivatives {
                missing = self.missing_with_touches(part, state);
            }
            let off = self.largest_off(part);
            // Early rounds need not be exact.
            let enough_for_now = enough.max(0.3 * off * part.h / part.reach);
            if told == Told::Truly || missing <= enough_for_now {
                open = self.follow(pass, equations)?;
                self.plain.copy_from_slice(&self.x);
                if pass == 0 {
                    self.guess_sliding();
                    self.discs.begin();
                }
                missing = self.missing_with_touches(part, state);
                if bends && pass > 0 {
                    (open, missing) = self.shorten(part, state, (open, missing), last, equations)?;
                }
                if bends {
                    last = open.max(missing);
                    self.note_place();
                }
                told = Told::Truly;
            }
            if !(open.is_finite() && missing.is_finite()) {
                break;
            }
            let off = self.largest_off(part);
            let enough_for_now = enough.max(0.3 * off * part.h / part.reach);
            let mut again = false;
            if pass > 0 && told == Told::Truly && open < TOLERANCE.max(enough_for_now) && missing <= enough_for_now {
                let settled = off <= part.accuracy.contacts * speed && missing <= enough;
                let balanced = until == Until::Balanced && missing <= enough;
                if open < TOLERANCE && (settled || balanced || pass >= passes) {
                    if until == Until::Settled {
                        self.check_settled(part, off, speed)?;
                    }
                    report.iterations += pass;
                    report.unconverged |= u32::from(!settled);
                    return Ok(());
                }
                if until == Until::Settled && !bends && pass < passes {
                    let wanted = Wanted { off: part.accuracy.contacts * speed, missing: enough };
                    if self.newton(part, state, report, &wanted, open, &mut tries, equations)? {
                        report.iterations += pass;
                        return Ok(());
                    }
                }
                if pass < passes && until == Until::Settled {
                    self.touches.iter_mut().for_each(|t| t.next_round());
                    self.discs.next(&mut self.touches);
                    last = open.max(self.missing_with_touches(part, state));
                    again = true;
                }
            }
            // Rows of the start do not tell where contacts that press hard lead: those of the end do.
            let is_slow = missing > SLOW * truth || pass >= passes;
            if told == Told::Truly && !again && pass > 0 && is_slow && follows_end {
                (truth, before) = (missing, 0.0);
                report.factorisations += 1;
                report.solves += 1;
                // Near poses in which rows become dependent it may lead anywhere.
                if self.find_step(equations) && self.size_of_step(part) < LARGEST_TURN {
                    self.follow_step(1.0);
                    continue;
                }
                follows_end = false;
                self.missing_with_touches(part, state);
            }
            if told == Told::Truly {
                truth = if again { f64::INFINITY } else { missing };
            }
            // What the last factors did not foresee but lessen by half needs no new ones.
            if pass == 0 || again || told == Told::ByDerivatives || missing > 0.5 * before {
                self.stiffen_and_factor(part.model)?;
                report.factorisations += 1;
            }
            before = if again || told == Told::ByDerivatives { f64::INFINITY } else { missing };
            report.solves += 1;
            self.keep.copy_from_slice(&self.x);
            self.ldl.solve(&mut self.x);
            let share = if told == Told::ByDerivatives || open < NEARLY_CLOSED { self.search_line() } else { 1.0 };
            self.x.iter_mut().for_each(|x| x.iter_mut().for_each(|x| *x *= share));
            self.go(1.0);
            self.step.copy_from_slice(&self.x);
            self.matrix.subtract_product(&self.x, &mut self.plain);
            self.subtract_bent();
            told = Told::ByDerivatives;
        }
        report.iterations += passes + CLOSING;
        let open = equations.residual(self)?;
        self.plain.copy_from_slice(&self.x);
        self.push();
        if open < TOLERANCE {
            if until == Until::Settled {
                self.check_settled(part, self.largest_off(part), speed)?;
            }
            report.unconverged = 1;
            return Ok(());
        }
        Err(self.widest_open(part.model))
    }

    /// Fails when a contact is off by more than is at hand and shorter parts may be tried: such an end is no motion that contacts allow, and the impulses that are remembered of it
    /// lead the next step astray.
    fn check_settled(&self, part: &Part<'_>, off: f64, speed: f64) -> Result<(), Failure> {
        if !part.must_settle || off <= FAR_OFF * speed {
            return Ok(());
        }
        let acting = self.touches.iter().filter(|t| t.acts);
        let worst = acting.max_by(|s, t| s.off(part.accuracy.friction).total_cmp(&t.off(part.accuracy.friction)));
        Err(Failure::Unsettled(BodyId(worst.map_or(0, |touch| touch.a) as u32)))
    }

    /// The step that was found, as the largest turn or share of the model's size that it moves a body by in h; infinite when it is none.
    fn size_of_step(&self, part: &Part<'_>) -> f64 {
        let size = |v: &Vector| {
            let v = to_twist(v);
            part.h * v.angular.length().max(v.linear.length() / part.reach)
        };
        self.step[..self.bodies].iter().map(size).fold(0.0, |a, x| if x.is_nan() { f64::INFINITY } else { a.max(x) })
    }

    /// Goes this share of the step `x`.
    fn go(&mut self, share: f64) {
        let (bodies, links) = self.x.split_at(self.bodies);
        for (v, dv) in self.v.iter_mut().zip(bodies) {
            add_scaled(v, share, dv);
        }
        for (link, dy) in self.links.iter_mut().zip(links) {
            add_scaled(&mut link.y, share, dy);
        }
    }

    /// What is missing where v leads. Where it leads too far round, the last step was too long: near poses in which rows become dependent.
    fn follow(&mut self, pass: u32, equations: &mut impl Equations) -> Result<f64, Failure> {
        for _ in 0..SHORTENINGS {
            match equations.residual(self) {
                Err(Failure::Turned(_)) if pass > 0 => {
                    self.step.iter_mut().for_each(|x| x.iter_mut().for_each(|x| *x *= 0.5));
                    self.x.copy_from_slice(&self.step);
                    self.go(-1.0);
                }
                done => return done,
            }
        }
        equations.residual(self)
    }

    /// Notes v and y as those that were followed last.
    fn note_place(&mut self) {
        self.place.clear();
        self.place.extend_from_slice(&self.v);
        self.place.extend(self.links.iter().map(|link| link.y));
    }

    /// Goes back half of the way to the place that was followed last, again and again, while more is open or missing than was there; returns both.
    fn shorten(
        &mut self,
        part: &Part<'_>,
        state: &State,
        (mut open, mut missing): (f64, f64),
        last: f64,
        equations: &mut impl Equations,
    ) -> Result<(f64, f64), Failure> {
        for _ in 0..SHORTENINGS {
            if open.max(missing) <= last.max(TOLERANCE) {
                break;
            }
            let y = self.links.iter_mut().map(|link| &mut link.y);
            for (now, then) in self.v.iter_mut().chain(y).zip(&self.place) {
                *now = std::array::from_fn(|k| 0.5 * (now[k] + then[k]));
            }
            open = equations.residual(self)?;
            self.plain.copy_from_slice(&self.x);
            missing = self.missing_with_touches(part, state);
        }
        Ok((open, missing))
    }

    /// Sets `x` to what is missing with the impulses of touches at v; returns its size.
    fn missing_with_touches(&mut self, part: &Part<'_>, state: &State) -> f64 {
        self.x.copy_from_slice(&self.plain);
        self.push();
        self.largest_momentum(part, state)
    }

    /// Decides which contacts that were not there before slide.
    fn guess_sliding(&mut self) {
        for touch in self.touches.iter_mut().filter(|t| t.acts) {
            touch.evaluate(&self.v);
            touch.guess_sliding();
        }
    }

    pub(super) fn largest_off(&self, part: &Part<'_>) -> f64 {
        self.touches.iter().filter(|t| t.acts).map(|t| t.off(part.accuracy.friction)).fold(0.0, f64::max)
    }

    /// The fastest velocity at v, or what a fall of the model's size gives \[m/s\].
    fn speed_at_hand(&self, part: &Part<'_>) -> f64 {
        let speed = |v: &Vector| {
            let v = to_twist(v);
            v.linear.length().max(v.angular.length() * part.reach)
        };
        let fastest = self.v.iter().map(speed).fold(0.0, f64::max);
        fastest.max((part.input.gravity.length() * part.reach).sqrt()).min(part.reach / part.h).max(f64::MIN_POSITIVE)
    }

    /// Adds the impulses of touches at v to what is missing.
    fn push(&mut self) {
        for touch in self.touches.iter_mut().filter(|t| t.acts) {
            touch.evaluate(&self.v);
            touch.push(1.0, &mut self.x);
        }
    }

    /// The share of the step `x` at which the convex function behind (5) is least; 1 unless it rises before.
    fn search_line(&mut self) -> f64 {
        let d = &self.x[..self.bodies];
        let along =
            |y: &[[f64; 6]]| -> f64 { d.iter().zip(y).map(|(a, b)| (0..6).map(|k| a[k] * b[k]).sum::<f64>()).sum() };
        let start = -along(&self.plain);
        let mut bend = along(&self.keep);
        for touch in self.touches.iter_mut().filter(|t| t.acts) {
            bend -= touch.aim(d);
        }
        let touches = &self.touches;
        let slope = |share: f64| {
            start + share * bend - touches.iter().filter(|t| t.acts).map(|t| t.power_along(share)).sum::<f64>()
        };
        let first = slope(0.0);
        let (mut low, mut high) = ((0.0, first), (1.0, slope(1.0)));
        if first.is_nan() || first >= 0.0 || high.1 <= 1e-3 * first.abs() {
            return 1.0;
        }
        // The slope grows: false position, the end that stays halved.
        let mut share = 1.0;
        for _ in 0..20 {
            share = (low.0 * high.1 - high.0 * low.1) / (high.1 - low.1);
            let s = slope(share);
            if s.abs() <= 0.01 * first.abs() {
                break;
            }
            if s < 0.0 {
                low = (share, s);
                high.1 *= 0.5;
            } else {
                high = (share, s);
                low.1 *= 0.5;
            }
        }
        share.clamp(1e-6, 1.0)
    }

    /// The largest momentum in `x`, as the part of the model's size or the angle by which it would take its body off.
    pub(super) fn largest_momentum(&self, part: &Part<'_>, state: &State) -> f64 {
        let mut largest = 0.0f64;
        for (i, x) in self.x[..self.bodies].iter().enumerate() {
            let x = to_twist(x);
            let size = self.moved_by(part, state, BodyId(i as u32), &Wrench::new(x.linear, x.angular));
            largest = if size.is_nan() { f64::NAN } else { largest.max(size) };
        }
        largest
    }

    /// By how much an impulse moves a body that is free, in h: a share of the model's size, or an angle.
    pub(super) fn moved_by(&self, part: &Part<'_>, state: &State, body: BodyId, impulse: &Wrench) -> f64 {
        let ((per_mass, per_inertia), s) = (self.lightness[body.index()], &state.bodies[body.index()]);
        let turn = per_inertia * (s.orientation.conjugate() * impulse.torque);
        part.h * (impulse.force.length() * per_mass / part.reach).max(turn.length())
    }
}

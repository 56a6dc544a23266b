//! Limits from motion: the narrowest ranges that hold what recorded motions do, and the pose at rest.

use super::{Bone, JointFrom, Rig, Turn};
use crate::Note;
use glam::{DQuat, DVec3};
use std::f64::consts::PI;
use supple::model::joint::swing_twist;
use supple::{Motion, Range, SwingEllipse};

/// Beyond what the motions do \[rad\].
const MARGIN: f64 = 0.05;
/// The narrowest half range \[rad\].
const NARROWEST: f64 = 0.02;

impl Rig {
    /// Fits the limits of every joint to motions of all bones, in order: a range for a hinge, a swing ellipse and a range of twist for a ball, 0.05 rad beyond what
    /// they do. What a hinge cannot do of them is told. Kinds and axes stay.
    pub fn fit_limits(&mut self, motions: &[&Motion]) -> Vec<Note> {
        let mut notes = Vec::new();
        let bones = &self.bones;
        let fitted: Vec<Option<Turn>> = (0..bones.len())
            .map(|i| {
                if matches!(bones[i].joint, Turn::Given(_)) {
                    return None; // as its file has it
                }
                let turns = turns(bones, i, bones[i].parent?, motions);
                let (turn, across) = fit(bones[i].joint, &turns);
                if across > 2.0 * MARGIN {
                    let text =
                        format!("it is a hinge, and the motions turn it by up to {across:.2} rad across its axis");
                    notes.push(Note { code: "import/across", part: bones[i].name.clone(), text });
                }
                Some(turn)
            })
            .collect();
        for (bone, turn) in self.bones.iter_mut().zip(fitted) {
            if let Some(turn) = turn {
                (bone.joint, bone.joint_from) = (turn, JointFrom::Clips);
            }
        }
        notes
    }
}

/// What the motions make bone `i` do on its parent, and rest, as turns in world axes at rest.
fn turns(bones: &[Bone], i: usize, parent: usize, motions: &[&Motion]) -> Vec<DQuat> {
    let (rest, above) = (bones[i].link.rotation, bones[parent].link.rotation);
    let frames = motions.iter().flat_map(|motion| (0..motion.frames()).map(|f| motion.frame(f)));
    let turn = |frame: &[supple::Pose]| {
        let turn = above * frame[parent].rotation.conjugate() * frame[i].rotation * rest.conjugate();
        if turn.w < 0.0 { -turn } else { turn }
    };
    std::iter::once(DQuat::IDENTITY).chain(frames.map(turn)).collect()
}

/// The narrowest limits around turns, and how far these turn across the axis of a hinge \[rad\].
fn fit(joint: Turn, turns: &[DQuat]) -> (Turn, f64) {
    match joint {
        Turn::Hinge { axis, .. } => {
            let (mut range, mut across) = (Range::new(0.0, 0.0), 0f64);
            for turn in turns {
                let v = DVec3::new(turn.x, turn.y, turn.z);
                let angle = 2.0 * v.dot(axis).atan2(turn.w);
                range = Range::new(range.min.min(angle), range.max.max(angle));
                across = across.max(2.0 * v.reject_from_normalized(axis).length().min(1.0).asin());
            }
            let range = Range::new((range.min - MARGIN).min(-NARROWEST), (range.max + MARGIN).max(NARROWEST));
            (Turn::Hinge { axis, range }, across)
        }
        Turn::Ball { frame, middle, .. } => {
            let local = |turn: &DQuat| DQuat::from_rotation_z(-middle) * frame.conjugate() * *turn * frame;
            let seen: Vec<_> = turns.iter().map(|turn| swing_twist(local(turn))).collect();
            let swings: Vec<[f64; 2]> =
                seen.iter().map(|&(s1, s2, _)| [s1.abs() + MARGIN, s2.abs() + MARGIN]).collect();
            let twists = seen.iter().map(|s| s.2);
            let twist =
                twists.fold(Range::new(0.0, 0.0), |r, t| Range::new(r.min.min(t - MARGIN), r.max.max(t + MARGIN)));
            (Turn::Ball { frame, middle, swing: narrowest(&swings), twist }, 0.0)
        }
        // The physics of the file tells its limits.
        Turn::Given(given) => (Turn::Given(given), 0.0),
    }
}

/// The ellipse of least area `a b` with its axes along the coordinates that holds all points: over ratios `a/b`, each with the b that just holds them.
fn narrowest(points: &[[f64; 2]]) -> SwingEllipse {
    let holding = |ratio: f64| points.iter().map(|[x, y]| (x / ratio).hypot(*y)).fold(0.0, f64::max);
    let area = |log: f64| log.exp() * holding(log.exp()).powi(2);
    // The area has one minimum over the logarithm of the ratio, as that of (s_1/a)² + (s_2/b)² ≤ 1 over 1/a², 1/b²: golden section.
    let golden = 0.5 * (5f64.sqrt() - 1.0);
    let (mut low, mut high) = (-4.0, 4.0);
    for _ in 0..80 {
        let (left, right) = (high - golden * (high - low), low + golden * (high - low));
        if area(left) < area(right) { high = right } else { low = left }
    }
    let ratio = (0.5 * (low + high)).exp();
    let b = holding(ratio);
    SwingEllipse { about_y: (ratio * b).min(PI), about_z: b.min(PI) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_narrowest_ellipse_holds_all_and_touches_some() {
        // Points of an ellipse of half axes 0.3 and 0.9, one along each axis among them.
        let points: Vec<[f64; 2]> =
            (0..=90).map(|k| f64::from(k).to_radians()).map(|a| [0.3 * a.cos(), 0.9 * a.sin()]).collect();
        let fitted = narrowest(&points);
        assert!((fitted.about_y - 0.3).abs() < 1e-3 && (fitted.about_z - 0.9).abs() < 1e-3, "{fitted:?}");
        // Of a box the ellipse through its corner with a : b as its sides has the least area: √2 of each.
        let fitted = narrowest(&[[0.2, 0.5]]);
        assert!((fitted.about_y - 0.2 * 2f64.sqrt()).abs() < 1e-6, "{fitted:?}");
        assert!((fitted.about_z - 0.5 * 2f64.sqrt()).abs() < 1e-6, "{fitted:?}");
    }

    #[test]
    fn a_hinge_gets_the_range_that_was_seen() {
        let hinge = Turn::Hinge { axis: DVec3::Z, range: Range::new(-3.0, 3.0) };
        let turns: Vec<DQuat> = (0..=20).map(|k| DQuat::from_rotation_z(-0.1 + 0.05 * f64::from(k))).collect();
        let (fitted, across) = fit(hinge, &turns);
        let Turn::Hinge { range, .. } = fitted else { panic!("{fitted:?}") };
        assert!((range.min + 0.15).abs() < 1e-12 && (range.max - 0.95).abs() < 1e-12 && across < 1e-12, "{range:?}");
        let (_, across) = fit(hinge, &[DQuat::from_rotation_x(0.4)]);
        assert!((across - 0.4).abs() < 1e-12);
    }
}

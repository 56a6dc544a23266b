//! Two takes side by side: by how much each joint differs, over time, from the stored poses.

use super::{Playback, TakeError, Timeline, poses};
use crate::maths::Pose;
use crate::model::{JointId, Model};

/// By how much a joint's pose differs between two takes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Difference {
    /// Between the rotations of the child's joint frame in the parent's \[rad\].
    pub angle: f64,
    /// Between the positions of the child's joint frame in the parent's \[m\].
    pub shift: f64,
}

impl Difference {
    fn max(self, other: Difference) -> Difference {
        Difference { angle: self.angle.max(other.angle), shift: self.shift.max(other.shift) }
    }
}

/// Two takes compared from the step at which they part to the end of the shorter one.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The last step that they share.
    pub first: u64,
    /// The last step compared.
    pub last: u64,
    /// Each column of `joints` holds the largest difference within this many steps.
    pub steps_per_column: u64,
    /// The time at which each column begins \[s\], in the first of the two takes.
    pub times: Vec<f64>,
    /// Stored poses are rounded: smaller differences may come from that.
    pub resolution: Difference,
    /// For each joint of the model.
    pub joints: Vec<JointDifference>,
}

/// How one joint differs.
#[derive(Clone, Debug, PartialEq)]
pub struct JointDifference {
    /// The joint.
    pub joint: JointId,
    /// The largest of all.
    pub largest: Difference,
    /// Over time, by column.
    pub columns: Vec<Difference>,
}

/// Numbers kept for all joints together; a character of many joints is compared in fewer columns.
const MAX_NUMBERS: usize = 1 << 20;

/// Compares two takes in at most `columns` columns.
pub fn compare(
    timeline: &Timeline,
    model: &Model,
    [a, b]: [usize; 2],
    columns: usize,
) -> Result<Comparison, TakeError> {
    for take in [a, b] {
        if timeline.takes().get(take).is_none_or(|t| t.is_removed()) {
            return Err(TakeError::Step { take, step: 0, end: None });
        }
    }
    timeline.check_bodies(model)?;
    let columns = columns.min(MAX_NUMBERS / model.joints().len().max(1)).max(2) as u64;
    let first = timeline.parting(a, b);
    let last = timeline.takes()[a].end().min(timeline.takes()[b].end()).max(first);
    let steps_per_column = (last - first + 1).div_ceil(columns);
    let mut comparison = Comparison {
        first,
        last,
        steps_per_column,
        times: Vec::new(),
        resolution: resolution(timeline, model),
        joints: (0..model.joints().len())
            .map(|k| JointDifference { joint: JointId(k as u32), largest: Difference::default(), columns: Vec::new() })
            .collect(),
    };
    let (mut one, mut other) = (Playback::default(), Playback::default());
    for step in first..=last {
        timeline.look(a, step, &mut one)?;
        timeline.look(b, step, &mut other)?;
        let begins = (step - first).is_multiple_of(steps_per_column);
        if begins {
            comparison.times.push(one.time);
        }
        for (k, line) in comparison.joints.iter_mut().enumerate() {
            let difference = difference(model, k, &one, &other);
            line.largest = line.largest.max(difference);
            match line.columns.last_mut() {
                Some(column) if !begins => *column = column.max(difference),
                _ => line.columns.push(difference),
            }
        }
    }
    Ok(comparison)
}

/// By how much the joints of two equal takes may seem to differ: the poses of two bodies in two takes are rounded, four in all. A position is
/// off by `√3/2` grid lines at most, a rotation by `4 · 2⁻¹⁵`, which moves a joint at the end of an arm.
fn resolution(timeline: &Timeline, model: &Model) -> Difference {
    let angle = 4.0 * 0.5 * poses::ROTATION;
    let arms = model.joints().iter().flat_map(|joint| [joint.child_from_joint, joint.parent_from_joint]);
    let arm = arms.map(|frame| frame.translation.length()).fold(0.0, f64::max);
    Difference { angle: 4.0 * angle, shift: 4.0 * (0.75f64.sqrt() * timeline.grid.line() + angle * arm) }
}

/// The difference of one joint.
fn difference(model: &Model, joint: usize, one: &Playback, other: &Playback) -> Difference {
    let joint = &model.joints()[joint];
    // parent_joint_frame_from_child_joint_frame
    let relative = |playback: &Playback| {
        let parent = joint.parent.map_or(Pose::IDENTITY, |parent| playback.pose(parent.index()));
        let child = playback.pose(joint.child.index());
        parent.then(joint.parent_from_joint).inverse().then(child.then(joint.child_from_joint))
    };
    let (one, other) = (relative(one), relative(other));
    // The angle of a rotation q is 2 atan2(|vector part|, |w|): exact also near zero, where an arc cosine is not.
    let turn = one.rotation.conjugate() * other.rotation;
    Difference {
        angle: 2.0 * turn.xyz().length().atan2(turn.w.abs()),
        shift: (one.translation - other.translation).length(),
    }
}

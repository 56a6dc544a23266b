//! Going over between goals and keyframes, and to a target pose: what a person switches at once is raised and lowered step by step, in simulated
//! time, so that no joint is jerked. Each step is recorded with the shares it had: played again, a take is the same.

use super::Stage;
use super::posing::poses;
use supple::control::{Control, Mode};

/// Simulated time in which keyframes come to count wholly, or not at all any more \[s\].
const KEYS_OVER: f64 = 0.2;
/// The same of the target pose \[s\].
const POSE_OVER: f64 = 0.5;

/// How much keyframes and target pose counted in a step.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Shares {
    keys: f64,
    pose: f64,
    /// The target pose it was.
    toward: Vec<f64>,
}

impl Shares {
    /// Those of a step with this control.
    pub(super) fn of(control: &Control) -> Shares {
        let (keys, pose) = match control.mode {
            Mode::Off | Mode::Landing => (0.0, 0.0),
            Mode::Goals => (0.0, control.pose_share),
            Mode::Keyframes => (control.keyframes.share, control.pose_share),
        };
        Shares { keys, pose, toward: control.pose.clone() }
    }

    /// Makes a control that was switched at once one that a step of this length may have after these shares.
    fn go_over(&self, control: &mut Control, dt: f64) {
        if !matches!(control.mode, Mode::Goals | Mode::Keyframes) {
            return;
        }
        if !control.keyframes.times.is_empty() {
            let wanted = if control.mode == Mode::Keyframes { control.keyframes.share } else { 0.0 };
            let keys = toward(self.keys, wanted, dt / KEYS_OVER);
            if keys > 0.0 {
                (control.mode, control.keyframes.share) = (Mode::Keyframes, keys);
            }
        }
        // Another pose is gone to after the one before was let go.
        let other = self.pose > 0.0 && self.toward != control.pose;
        let wanted = if other { 0.0 } else { control.pose_share };
        control.pose_share = toward(self.pose, wanted, dt / POSE_OVER);
        if other && control.pose_share > 0.0 {
            control.pose.clone_from(&self.toward);
        }
    }
}

/// From one number towards another, no further than this.
fn toward(from: f64, to: f64, most: f64) -> f64 {
    if (to - from).abs() <= most { to } else { from + most.copysign(to - from) }
}

/// What a person asked for while it was being gone over to.
#[derive(Clone, Debug)]
pub(super) struct Wish {
    mode: Mode,
    share: f64,
    pose_share: f64,
    pose: Vec<f64>,
}

impl Wish {
    fn of(control: &Control) -> Wish {
        let Control { mode, pose_share, pose, keyframes, .. } = control;
        Wish { mode: *mode, share: keyframes.share, pose_share: *pose_share, pose: pose.clone() }
    }
}

impl Stage {
    /// The next step goes over to what is asked for, as far as one step may.
    pub(super) fn go_over(&mut self) {
        let input = &mut self.now.input;
        self.shares.go_over(&mut input.control, input.dt);
    }

    /// Notes the shares of the step that was just done, and what was asked for if it is not there yet: whoever comes back to this step goes on over to it.
    pub(super) fn note_shares(&mut self) {
        let (done, asked) = (&self.now.input.control, &self.settings.control);
        self.shares = Shares::of(done);
        let same = (done.mode, done.keyframes.share, done.pose_share, &done.pose)
            == (asked.mode, asked.keyframes.share, asked.pose_share, &asked.pose);
        if !same && !poses(self.now.input.solver) {
            self.wishes.insert((self.take, self.now.step), Wish::of(asked));
        }
    }

    /// At a recorded step: its shares, and what was asked for while it was being gone over to.
    pub(super) fn adopt_shares(&mut self) {
        self.shares = Shares::of(&self.now.input.control);
        let mut take = self.take;
        while let Some(fork) = self.timeline.takes()[take].fork
            && self.now.step <= fork.step
        {
            take = fork.take;
        }
        if let Some(wish) = self.wishes.get(&(take, self.now.step)) {
            let control = &mut self.settings.control;
            (control.mode, control.keyframes.share, control.pose_share) = (wish.mode, wish.share, wish.pose_share);
            control.pose.clone_from(&wish.pose);
        }
    }
}

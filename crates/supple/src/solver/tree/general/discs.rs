//! The discs of friction of all contacts that slide, from round to round.
//!
//! The radii R of a round lead to normal impulses, and these to the radii G(R) that Coulomb's law asks for. Taking those for the next round need not end: where the normal
//! impulse answers to friction by more than the change, as where something jams, it swings ever wider. So the next radii are a combination of those of the last rounds, that in
//! which the differences F = G − R would cancel best if they were linear in R [Anderson 1965]:
//!
//! ```text
//! γ = argmin | F − Σ γ_j ΔF_j |²,      R ← R + F − Σ γ_j (ΔR_j + ΔF_j)                                            (6)
//! ```

use super::touch::Touch;

/// Differences that are kept.
const KEPT: usize = 4;
/// What is added to the diagonal of the normal equations, as a share of it.
const REGULAR: f64 = 1e-8;

/// What discs were in the last rounds.
#[derive(Default)]
pub(super) struct Discs {
    /// R and F of the last round, by touch; those that do not slide are 0.
    radii: Vec<f64>,
    lacks: Vec<f64>,
    sliding: Vec<bool>,
    /// ΔR and ΔF of rounds, newest last.
    steps: [(Vec<f64>, Vec<f64>); KEPT],
    kept: usize,
}

impl Discs {
    /// Forgets the rounds of another system.
    pub(super) fn begin(&mut self) {
        self.kept = 0;
        self.sliding.clear();
    }

    /// Gives every disc its radius for the next round.
    pub(super) fn next(&mut self, touches: &mut [Touch]) {
        let again = self.sliding.len() == touches.len()
            && touches.iter().zip(&self.sliding).all(|(touch, slid)| touch.disc().is_some() == *slid);
        if !again {
            self.kept = 0;
            self.sliding.clear();
            self.sliding.extend(touches.iter().map(|touch| touch.disc().is_some()));
        } else {
            if self.kept == KEPT {
                self.steps.rotate_left(1);
                self.kept -= 1;
            }
            let (moved, changed) = &mut self.steps[self.kept];
            moved.clear();
            changed.clear();
            for (k, touch) in touches.iter().enumerate() {
                let [radius, wanted] = touch.disc().unwrap_or_default();
                moved.push(radius - self.radii[k]);
                changed.push(wanted - radius - self.lacks[k]);
            }
            self.kept += 1;
        }
        self.radii.clear();
        self.lacks.clear();
        for touch in touches.iter() {
            let [radius, wanted] = touch.disc().unwrap_or_default();
            self.radii.push(radius);
            self.lacks.push(wanted - radius);
        }
        let shares = self.shares();
        for (k, touch) in touches.iter_mut().enumerate() {
            if touch.disc().is_some() {
                let less: f64 =
                    self.steps[..self.kept].iter().zip(shares).map(|((dr, df), share)| share * (dr[k] + df[k])).sum();
                touch.set_disc(self.radii[k] + self.lacks[k] - less);
            }
        }
    }

    /// γ of (6), by Cholesky's factorisation of the normal equations.
    fn shares(&self) -> [f64; KEPT] {
        let n = self.kept;
        let dot = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
        let (mut a, mut y) = ([[0.0; KEPT]; KEPT], [0.0; KEPT]);
        for i in 0..n {
            for j in 0..=i {
                a[i][j] = dot(&self.steps[i].1, &self.steps[j].1);
            }
            a[i][i] += REGULAR * a[i][i] + f64::MIN_POSITIVE;
            y[i] = dot(&self.steps[i].1, &self.lacks);
        }
        for i in 0..n {
            for j in 0..=i {
                let rest = a[i][j] - (0..j).map(|k| a[i][k] * a[j][k]).sum::<f64>();
                a[i][j] = if i == j { rest.max(f64::MIN_POSITIVE).sqrt() } else { rest / a[j][j] };
            }
            y[i] = (y[i] - (0..i).map(|k| a[i][k] * y[k]).sum::<f64>()) / a[i][i];
        }
        for i in (0..n).rev() {
            y[i] = (y[i] - (i + 1..n).map(|k| a[k][i] * y[k]).sum::<f64>()) / a[i][i];
        }
        if y.iter().all(|y| y.is_finite()) { y } else { [0.0; KEPT] }
    }
}

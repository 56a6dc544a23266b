//! A cubic spline through keys: position, velocity and acceleration are continuous [Kim 2008, §3.3].
//!
//! With `m_k` the second derivatives at the keys, `h_k = t_{k+1} − t_k` and `s_k = (y_{k+1} − y_k)/h_k`, the first derivative is continuous when
//!
//! ```text
//! h_{k−1} m_{k−1} + 2 (h_{k−1} + h_k) m_k + h_k m_{k+1} = 6 (s_k − s_{k−1})
//! at rest at both ends:   2 h_0 m_0 + h_0 m_1 = 6 s_0,      h m_{n−2} + 2 h m_{n−1} = −6 s_{n−2}
//! natural:                m_0 = m_{n−1} = 0
//! ```
//! Before the first key and after the last the motion stands still.

use super::Ends;

/// Scratch of [`evaluate`].
#[derive(Clone, Debug, Default)]
pub struct Spline {
    /// Second derivatives at the keys.
    bend: Vec<f64>,
    /// The matrix's diagonal above, as elimination leaves it.
    above: Vec<f64>,
}

impl Spline {
    /// Makes room for this many keys, whether or not they are needed yet.
    pub fn fit(&mut self, keys: usize) {
        for list in [&mut self.bend, &mut self.above] {
            list.reserve(keys.saturating_sub(list.len()));
        }
    }
}

/// Second derivatives at the keys of a spline through `values`, to be given to [`at`].
pub fn bends(times: &[f64], values: &[f64], ends: Ends) -> Vec<f64> {
    let mut scratch = Spline::default();
    solve(times, &|k| values[k], ends, &mut scratch);
    scratch.bend
}

/// Value and first and second derivative at `time` of a spline through `values` that bends so at its keys.
pub fn at(times: &[f64], values: &[f64], bends: &[f64], time: f64) -> [f64; 3] {
    let last = times.len() - 1;
    if time <= times[0] {
        return [values[0], 0.0, 0.0];
    }
    if time >= times[last] {
        return [values[last], 0.0, 0.0];
    }
    within(times, &|k| values[k], bends, times.partition_point(|t| *t <= time) - 1, time)
}

/// Value and first and second derivative at `time` of the spline through the keys: key k is `values[k · stride + offset]` at `times[k]`. There is at least one key,
/// and times grow.
pub fn evaluate(
    times: &[f64],
    (values, stride, offset): (&[f64], usize, usize),
    ends: Ends,
    time: f64,
    scratch: &mut Spline,
) -> [f64; 3] {
    let y = |k: usize| values[k * stride + offset];
    let last = times.len() - 1;
    if time <= times[0] {
        return [y(0), 0.0, 0.0];
    }
    if time >= times[last] {
        return [y(last), 0.0, 0.0];
    }
    solve(times, &y, ends, scratch);
    let k = times.partition_point(|t| *t <= time) - 1;
    within(times, &y, &scratch.bend, k, time)
}

/// Between the keys k and k + 1.
fn within(times: &[f64], y: &impl Fn(usize) -> f64, bend: &[f64], k: usize, time: f64) -> [f64; 3] {
    let h = times[k + 1] - times[k];
    let (a, b) = ((times[k + 1] - time) / h, (time - times[k]) / h);
    let (ma, mb) = (bend[k], bend[k + 1]);
    [
        a * y(k) + b * y(k + 1) + h * h / 6.0 * ((a * a * a - a) * ma + (b * b * b - b) * mb),
        (y(k + 1) - y(k)) / h + h / 6.0 * ((3.0 * b * b - 1.0) * mb - (3.0 * a * a - 1.0) * ma),
        a * ma + b * mb,
    ]
}

/// Second derivatives at all keys, by elimination down and back.
fn solve(times: &[f64], y: &impl Fn(usize) -> f64, ends: Ends, scratch: &mut Spline) {
    let n = times.len();
    let Spline { bend, above } = scratch;
    bend.clear();
    bend.resize(n, 0.0);
    above.clear();
    above.resize(n, 0.0);
    let h = |k: usize| times[k + 1] - times[k];
    let s = |k: usize| (y(k + 1) - y(k)) / h(k);
    for k in 0..n {
        let (left, diagonal, right, rhs) = match (k, ends) {
            (0, Ends::AtRest) => (0.0, 2.0 * h(0), h(0), 6.0 * s(0)),
            (k, Ends::AtRest) if k + 1 == n => (h(k - 1), 2.0 * h(k - 1), 0.0, -6.0 * s(k - 1)),
            (k, Ends::Natural) if k == 0 || k + 1 == n => (0.0, 1.0, 0.0, 0.0),
            (k, _) => (h(k - 1), 2.0 * (h(k - 1) + h(k)), h(k), 6.0 * (s(k) - s(k - 1))),
        };
        let (before, bent) = if k == 0 { (0.0, 0.0) } else { (above[k - 1], bend[k - 1]) };
        let pivot = diagonal - left * before;
        above[k] = right / pivot;
        bend[k] = (rhs - left * bent) / pivot;
    }
    for k in (0..n.saturating_sub(1)).rev() {
        bend[k] -= above[k] * bend[k + 1];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_through_its_keys_with_continuous_acceleration() {
        let (times, y) = ([0.0, 0.4, 1.0, 1.1, 2.5], [0.3, -1.0, 2.0, 2.2, 0.0]);
        let mut scratch = Spline::default();
        for ends in [Ends::AtRest, Ends::Natural] {
            let mut at = |t: f64| evaluate(&times, (&y, 1, 0), ends, t, &mut scratch);
            for (t, y) in times.iter().zip(y) {
                assert!((at(*t)[0] - y).abs() < 1e-14);
            }
            for t in &times[1..4] {
                // three derivatives from both sides, the third being bounded by about 1e3
                let (before, after) = (at(t - 1e-9), at(t + 1e-9));
                for k in 0..3 {
                    assert!((before[k] - after[k]).abs() < 1e-5, "{before:?} {after:?}");
                }
            }
            // derivatives against central differences
            for k in 1..240 {
                let (t, e) = (0.01 * f64::from(k) + 0.003, 1e-6);
                if times.iter().any(|key| (key - t).abs() < 2.0 * e) || t >= 2.5 {
                    continue;
                }
                let (a, b, c) = (at(t - e), at(t), at(t + e));
                assert!(((c[0] - a[0]) / (2.0 * e) - b[1]).abs() < 1e-6 * b[1].abs().max(10.0));
                assert!(((c[1] - a[1]) / (2.0 * e) - b[2]).abs() < 1e-6 * b[2].abs().max(1e3));
            }
            assert_eq!(at(-1.0), [0.3, 0.0, 0.0]);
            assert_eq!(at(9.0), [0.0, 0.0, 0.0]);
        }
        assert_eq!(evaluate(&[1.0], (&[5.0], 1, 0), Ends::AtRest, 3.0, &mut scratch), [5.0, 0.0, 0.0]);
    }
}

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

/// A spline of several values through keys.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spline {
    times: Vec<f64>,
    /// Key by key, and their number at a key.
    values: Vec<f64>,
    stride: usize,
    ends: Ends,
    /// Second derivatives, as the values.
    bends: Vec<f64>,
    /// The matrix's diagonal above, as elimination leaves it.
    above: Vec<f64>,
}

impl Spline {
    /// Through keys: value `o` of key k is `values[k · stride + o]`, at `times[k]`. There is at least one key, and times grow.
    pub fn new(times: &[f64], values: &[f64], stride: usize, ends: Ends) -> Spline {
        let mut spline = Spline::default();
        spline.lead(times, values, stride, ends);
        spline
    }

    /// Leads it through keys. Nothing is done when they are those it goes through already.
    pub fn lead(&mut self, times: &[f64], values: &[f64], stride: usize, ends: Ends) {
        if (self.stride, self.ends) == (stride, ends) && self.times == times && self.values == values {
            return;
        }
        self.times.clear();
        self.times.extend_from_slice(times);
        self.values.clear();
        self.values.extend_from_slice(values);
        (self.stride, self.ends) = (stride, ends);
        self.solve();
    }

    /// A value with its first and second derivative at a time.
    pub fn at(&self, value: usize, time: f64) -> [f64; 3] {
        let (times, y) = (&self.times, |k: usize| self.values[k * self.stride + value]);
        let last = times.len() - 1;
        if time <= times[0] {
            return [y(0), 0.0, 0.0];
        }
        if time >= times[last] {
            return [y(last), 0.0, 0.0];
        }
        let k = times.partition_point(|t| *t <= time) - 1;
        let h = times[k + 1] - times[k];
        let (a, b) = ((times[k + 1] - time) / h, (time - times[k]) / h);
        let [ma, mb] = [k, k + 1].map(|k| self.bends[k * self.stride + value]);
        [
            a * y(k) + b * y(k + 1) + h * h / 6.0 * ((a * a * a - a) * ma + (b * b * b - b) * mb),
            (y(k + 1) - y(k)) / h + h / 6.0 * ((3.0 * b * b - 1.0) * mb - (3.0 * a * a - 1.0) * ma),
            a * ma + b * mb,
        ]
    }

    /// Second derivatives at all keys, by elimination down and back.
    fn solve(&mut self) {
        let Spline { times, values, stride, ends, bends, above } = self;
        let (n, stride) = (times.len(), *stride);
        bends.clear();
        bends.resize(n * stride, 0.0);
        above.clear();
        above.resize(n, 0.0);
        if n < 2 {
            return;
        }
        let h = |k: usize| times[k + 1] - times[k];
        for k in 0..n {
            let (left, diagonal, right) = match (k, &*ends) {
                (0, Ends::AtRest) => (0.0, 2.0 * h(0), h(0)),
                (k, Ends::AtRest) if k + 1 == n => (h(k - 1), 2.0 * h(k - 1), 0.0),
                (k, Ends::Natural) if k == 0 || k + 1 == n => (0.0, 1.0, 0.0),
                (k, _) => (h(k - 1), 2.0 * (h(k - 1) + h(k)), h(k)),
            };
            let pivot = diagonal - if k == 0 { 0.0 } else { left * above[k - 1] };
            above[k] = right / pivot;
            for value in 0..stride {
                let y = |k: usize| values[k * stride + value];
                let slope = |k: usize| (y(k + 1) - y(k)) / h(k);
                let rhs = match (k, &*ends) {
                    (0, Ends::AtRest) => slope(0),
                    (k, Ends::AtRest) if k + 1 == n => -slope(k - 1),
                    (k, Ends::Natural) if k == 0 || k + 1 == n => 0.0,
                    (k, _) => slope(k) - slope(k - 1),
                };
                let before = if k == 0 { 0.0 } else { left * bends[(k - 1) * stride + value] };
                bends[k * stride + value] = (6.0 * rhs - before) / pivot;
            }
        }
        for k in (0..n - 1).rev() {
            for value in 0..stride {
                bends[k * stride + value] -= above[k] * bends[(k + 1) * stride + value];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_through_its_keys_with_continuous_acceleration() {
        let (times, y) = ([0.0, 0.4, 1.0, 1.1, 2.5], [0.3, -1.0, 2.0, 2.2, 0.0]);
        for ends in [Ends::AtRest, Ends::Natural] {
            // beside another value that it must not mind
            let values: Vec<f64> = y.iter().flat_map(|y| [y * y - 3.0, *y]).collect();
            let spline = Spline::new(&times, &values, 2, ends);
            let at = |t: f64| spline.at(1, t);
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
        assert_eq!(Spline::new(&[1.0], &[5.0], 1, Ends::AtRest).at(0, 3.0), [5.0, 0.0, 0.0]);
    }

    #[test]
    fn other_keys_lead_it_elsewhere_and_the_same_do_not() {
        let times = [0.0, 1.0, 2.0];
        let mut spline = Spline::new(&times, &[0.0, 1.0, 0.0], 1, Ends::AtRest);
        let first = spline.clone();
        spline.lead(&times, &[0.0, 1.0, 0.0], 1, Ends::AtRest);
        assert_eq!(spline, first);
        for (times, values, ends) in [
            ([0.0, 1.0, 2.0], [0.0, 2.0, 0.0], Ends::AtRest),
            ([0.0, 1.5, 2.0], [0.0, 2.0, 0.0], Ends::AtRest),
            ([0.0, 1.5, 2.0], [0.0, 2.0, 0.0], Ends::Natural),
        ] {
            spline.lead(&times, &values, 1, ends);
            assert_eq!(spline, Spline::new(&times, &values, 1, ends));
        }
    }
}

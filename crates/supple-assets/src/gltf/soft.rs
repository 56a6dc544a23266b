//! A surface of flesh over time as morph targets: few shapes whose weighted sums come near every frame.
//!
//! With y_f the vertices of frame f and y_0 those of the first, targets b_k and weights w are sought with
//!
//! ```text
//! | y_f − y_0 − Σ_k w_fk b_k | ≤ tolerance     at every vertex of every frame                                              (1)
//! ```
//! The frame that is worst off gives the next target, what the targets before can tell of it taken away, until none is off: a reduced basis, found greedily. Normals
//! follow with the same weights, by least squares.

use super::bake::Channel;
use glam::DVec3;

/// Targets and weights of a surface.
#[derive(Debug)]
pub(super) struct Morphs {
    /// b_k, by target, then by vertex \[m\].
    pub(super) targets: Vec<Vec<DVec3>>,
    /// w, by frame, then by target.
    pub(super) weights: Vec<Vec<f64>>,
}

/// Finds targets and weights for the frames of a surface, `vertices` of them a frame, to (1).
pub(super) fn morphs(frames: &[DVec3], vertices: usize, tolerance: f64) -> Morphs {
    let count = frames.len().checked_div(vertices).unwrap_or(0);
    let mut rest: Vec<Vec<DVec3>> =
        (0..count).map(|f| (0..vertices).map(|v| frames[f * vertices + v] - frames[v]).collect()).collect();
    let mut found = Morphs { targets: Vec::new(), weights: vec![Vec::new(); count] };
    let longest = |shape: &[DVec3]| shape.iter().map(|d| d.length_squared()).fold(0.0, f64::max);
    // each round makes one frame exact
    for _ in 0..count {
        let worst = rest.iter().map(|shape| longest(shape)).enumerate().max_by(|a, b| a.1.total_cmp(&b.1));
        let Some((frame, off)) = worst else { break };
        if off.sqrt() <= tolerance {
            break;
        }
        // a target moves the vertex that moves most by 1 m at weight 1
        let target: Vec<DVec3> = rest[frame].iter().map(|d| *d / off.sqrt()).collect();
        let size: f64 = target.iter().map(|d| d.length_squared()).sum();
        for (shape, weights) in rest.iter_mut().zip(&mut found.weights) {
            let weight = shape.iter().zip(&target).map(|(a, b)| a.dot(*b)).sum::<f64>() / size;
            shape.iter_mut().zip(&target).for_each(|(d, t)| *d -= *t * weight);
            weights.push(weight);
        }
        found.targets.push(target);
    }
    found
}

impl Morphs {
    /// The weights over time as a channel, keys left out where the others lead every vertex this near \[m\].
    pub(super) fn channel(&self, node: usize, times: &[f64], tolerance: f64) -> Channel {
        let sizes: Vec<f64> = self.targets.iter().map(|t| t.iter().map(|d| d.length()).fold(0.0, f64::max)).collect();
        let error = |a: usize, b: usize, k: usize| {
            let u = (times[k] - times[a]) / (times[b] - times[a]);
            let off = |t: usize| {
                let [a, b, k] = [a, b, k].map(|f| self.weights[f][t]);
                (a + u * (b - a) - k).abs() * sizes[t]
            };
            (0..sizes.len()).map(off).sum()
        };
        let keys = super::bake::reduce(times.len(), tolerance, error);
        Channel {
            node,
            path: "weights",
            width: 1,
            times: keys.iter().map(|k| times[*k] as f32).collect(),
            values: keys.iter().flat_map(|k| self.weights[*k].iter().map(|w| *w as f32)).collect(),
        }
    }

    /// For values of every frame, `values` a frame, what each target adds to those of the first: least squares over the frames.
    pub(super) fn fit(&self, frames: &[DVec3], values: usize) -> Vec<Vec<DVec3>> {
        let n = self.targets.len();
        // WᵀW x = Wᵀ (n_f − n_0), by Cholesky; a little is added so that targets that hardly act do not matter
        let mut gram = vec![vec![0.0; n]; n];
        for weights in &self.weights {
            for i in 0..n {
                for j in 0..=i {
                    gram[i][j] += weights[i] * weights[j];
                }
            }
        }
        let mut sums = vec![vec![DVec3::ZERO; values]; n];
        for (f, weights) in self.weights.iter().enumerate() {
            for (i, w) in weights.iter().enumerate() {
                for v in 0..values {
                    sums[i][v] += (frames[f * values + v] - frames[v]) * *w;
                }
            }
        }
        let largest = (0..n).map(|i| gram[i][i]).fold(0.0, f64::max);
        (0..n).for_each(|i| gram[i][i] += 1e-9 * largest + f64::MIN_POSITIVE);
        for j in 0..n {
            for k in 0..j {
                let l = gram[j][k];
                for i in j..n {
                    gram[i][j] -= l * gram[i][k];
                }
            }
            let d = gram[j][j].max(f64::MIN_POSITIVE).sqrt();
            (j..n).for_each(|i| gram[i][j] /= d);
        }
        for v in 0..values {
            for i in 0..n {
                for k in 0..i {
                    let known = sums[k][v];
                    sums[i][v] -= known * gram[i][k];
                }
                sums[i][v] /= gram[i][i];
            }
            for i in (0..n).rev() {
                for k in i + 1..n {
                    let known = sums[k][v];
                    sums[i][v] -= known * gram[k][i];
                }
                sums[i][v] /= gram[i][i];
            }
        }
        sums
    }
}

/// Smooth normals of a surface: each vertex's triangles by their areas.
pub(super) fn normals(vertices: &[DVec3], triangles: &[[u32; 3]]) -> Vec<DVec3> {
    let mut normals = vec![DVec3::ZERO; vertices.len()];
    for t in triangles {
        let [a, b, c] = t.map(|i| vertices[i as usize]);
        let normal = (b - a).cross(c - a);
        t.iter().for_each(|i| normals[*i as usize] += normal);
    }
    normals.into_iter().map(|n| n.normalize_or(DVec3::Y)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_targets_come_near_every_frame() {
        // A rod of 20 points that turns and swings: displacements are those of two directions, and a bend
        let (points, frames) = (20, 100);
        let at = |f: usize, p: usize| {
            let (t, x) = (f as f64 * 0.05, p as f64 / 19.0);
            DVec3::new(x * t.cos() + 0.1 * t, x * t.sin(), 0.2 * x * x * (3.0 * t).sin())
        };
        let all: Vec<DVec3> = (0..frames).flat_map(|f| (0..points).map(move |p| at(f, p))).collect();
        let found = morphs(&all, points, 1e-6);
        assert_eq!(found.targets.len(), 4); // shift, cos, sin, bend
        for f in 0..frames {
            for p in 0..points {
                let sum: DVec3 = found.targets.iter().zip(&found.weights[f]).map(|(t, w)| t[p] * *w).sum();
                assert!((at(0, p) + sum).distance(at(f, p)) <= 1e-6);
            }
        }
        // What is a sum of the targets is fitted exactly.
        let fitted = found.fit(&all, points);
        for (a, b) in fitted.iter().flatten().zip(found.targets.iter().flatten()) {
            assert!(a.distance(*b) < 1e-6);
        }
        assert!(morphs(&all, points, 10.0).targets.is_empty());
        assert!(morphs(&[], 0, 1e-3).targets.is_empty());
    }
}

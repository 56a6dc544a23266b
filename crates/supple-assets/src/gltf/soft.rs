//! A surface of flesh over time as morph targets: few shapes whose weighted sums come near every frame.
//!
//! With y_f the vertices of frame f and y those of the mesh, targets b_k and weights w are sought with
//!
//! ```text
//! | y_f − y − Σ_k w_fk b_k | ≤ tolerance     at every vertex of every frame                                                (1)
//! ```
//! The frame that is worst off gives the next shape, what the shapes before can tell of it taken away, until none is off by more than half the tolerance. The
//! targets are the principal components of the frames within these shapes, the largest first, as many as (1) needs. Normals follow with the same weights, by least
//! squares.

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

/// The square of the longest displacement of a shape \[m²\].
fn longest(shape: &[DVec3]) -> f64 {
    shape.iter().map(|d| d.length_squared()).fold(0.0, f64::max)
}

/// Finds targets and weights that lead a mesh with vertices `base` to every frame, to (1).
pub(super) fn morphs(base: &[DVec3], frames: &[DVec3], tolerance: f64) -> Morphs {
    let mut rest: Vec<Vec<DVec3>> = match base.len() {
        0 => Vec::new(),
        n => frames.chunks_exact(n).map(|frame| frame.iter().zip(base).map(|(y, b)| *y - *b).collect()).collect(),
    };
    let count = rest.len();
    // shapes of unit length as vectors of all vertices, each at right angles to the others; and how much of each every frame has
    let (mut shapes, mut shares) = (Vec::<Vec<DVec3>>::new(), vec![Vec::new(); count]);
    // each round makes one frame exact
    for _ in 0..count {
        let worst = rest.iter().map(|shape| longest(shape)).enumerate().max_by(|a, b| a.1.total_cmp(&b.1));
        let Some((frame, off)) = worst else { break };
        if off.sqrt() <= 0.5 * tolerance {
            break;
        }
        let size = rest[frame].iter().map(|d| d.length_squared()).sum::<f64>().sqrt();
        let shape: Vec<DVec3> = rest[frame].iter().map(|d| *d / size).collect();
        for (rest, shares) in rest.iter_mut().zip(&mut shares) {
            let share = rest.iter().zip(&shape).map(|(a, b)| a.dot(*b)).sum::<f64>();
            rest.iter_mut().zip(&shape).for_each(|(d, s)| *d -= *s * share);
            shares.push(share);
        }
        shapes.push(shape);
    }

    // principal components: the eigenvectors of the sum of squares of the shares
    let turned = principal_axes(&shares, shapes.len());
    let mut found = Morphs { targets: Vec::new(), weights: Vec::with_capacity(count) };
    for axis in &turned {
        let mut target = vec![DVec3::ZERO; base.len()];
        for (shape, x) in shapes.iter().zip(axis) {
            target.iter_mut().zip(shape).for_each(|(t, s)| *t += *s * *x);
        }
        found.targets.push(target);
    }
    for shares in &shares {
        found.weights.push(turned.iter().map(|axis| axis.iter().zip(shares).map(|(a, s)| a * s).sum()).collect());
    }
    // the smallest are given up while the tolerance allows it
    while let Some(target) = found.targets.last() {
        let k = found.targets.len() - 1;
        let fits = rest.iter().zip(&found.weights).all(|(rest, weights)| {
            rest.iter().zip(target).all(|(d, t)| (*d + *t * weights[k]).length_squared() <= tolerance * tolerance)
        });
        if !fits {
            break;
        }
        for (rest, weights) in rest.iter_mut().zip(&mut found.weights) {
            rest.iter_mut().zip(target).for_each(|(d, t)| *d += *t * weights[k]);
            weights.pop();
        }
        found.targets.pop();
    }
    // a target moves the vertex that moves most by 1 m at weight 1
    for (k, target) in found.targets.iter_mut().enumerate() {
        let size = longest(target).sqrt().max(f64::MIN_POSITIVE);
        target.iter_mut().for_each(|t| *t /= size);
        found.weights.iter_mut().for_each(|w| w[k] *= size);
    }
    found
}

/// The eigenvectors of `Σ_f s_f s_fᵀ`, that of the largest eigenvalue first, by Jacobi rotations.
fn principal_axes(shares: &[Vec<f64>], n: usize) -> Vec<Vec<f64>> {
    let sum = |i: usize, j: usize| shares.iter().map(|s| s[i] * s[j]).sum::<f64>();
    let mut a: Vec<Vec<f64>> = (0..n).map(|i| (0..n).map(|j| sum(i, j)).collect()).collect();
    let mut axes: Vec<Vec<f64>> = (0..n).map(|i| (0..n).map(|j| f64::from(u8::from(i == j))).collect()).collect();
    let scale: f64 = (0..n).map(|i| a[i][i]).sum();
    for _ in 0..MOST_SWEEPS {
        let off: f64 = (0..n).flat_map(|i| (0..i).map(move |j| (i, j))).map(|(i, j)| a[i][j].abs()).fold(0.0, f64::max);
        if off <= 1e-14 * scale {
            break;
        }
        for p in 0..n {
            for q in p + 1..n {
                if a[p][q].abs() <= 1e-16 * scale {
                    continue;
                }
                let theta = (a[q][q] - a[p][p]) / (2.0 * a[p][q]);
                let t = theta.signum() / (theta.abs() + (1.0 + theta * theta).sqrt());
                let c = 1.0 / (1.0 + t * t).sqrt();
                let s = t * c;
                for row in &mut a {
                    (row[p], row[q]) = (c * row[p] - s * row[q], s * row[p] + c * row[q]);
                }
                for rows in [&mut a, &mut axes] {
                    let (above, below) = rows.split_at_mut(q);
                    for (x, y) in above[p].iter_mut().zip(&mut below[0]) {
                        (*x, *y) = (c * *x - s * *y, s * *x + c * *y);
                    }
                }
            }
        }
    }
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&i, &j| a[j][j].total_cmp(&a[i][i]));
    order.into_iter().map(|i| std::mem::take(&mut axes[i])).collect()
}

/// Sweeps of Jacobi rotations; they converge quadratically, six to ten are usual.
const MOST_SWEEPS: usize = 40;

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

    /// For values of every frame, what each target adds to those of the mesh, `base`: least squares over the frames.
    pub(super) fn fit(&self, base: &[DVec3], frames: &[DVec3]) -> Vec<Vec<DVec3>> {
        let (n, values) = (self.targets.len(), base.len());
        // WᵀW x = Wᵀ (n_f − n), by Cholesky; a little is added so that targets that hardly act do not matter
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
                    sums[i][v] += (frames[f * values + v] - base[v]) * *w;
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
        let (first, tolerance) = (&all[..points], 1e-6);
        let found = morphs(first, &all, tolerance);
        assert_eq!(found.targets.len(), 4); // shift, cos, sin, bend
        for f in 0..frames {
            for p in 0..points {
                let sum: DVec3 = found.targets.iter().zip(&found.weights[f]).map(|(t, w)| t[p] * *w).sum();
                assert!((at(0, p) + sum).distance(at(f, p)) <= tolerance * (1.0 + 1e-6));
            }
        }
        // What is a sum of the targets is fitted exactly.
        let fitted = found.fit(first, &all);
        for (a, b) in fitted.iter().flatten().zip(found.targets.iter().flatten()) {
            assert!(a.distance(*b) < 1e-6);
        }
        assert!(morphs(first, &all, 10.0).targets.is_empty());
        assert!(morphs(&[], &[], 1e-3).targets.is_empty());
    }
}

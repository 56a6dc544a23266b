//! The material of flesh against numbers computed elsewhere, and against its own energy.
//!
//! `data/flesh.json` holds results of an independent program to 12 digits; matrices are lists of rows.

mod common;

use common::Random;
use glam::{DMat3, DQuat, DVec3};
use nalgebra::{DMatrix, SymmetricEigen};
use serde_json::Value;
use supple::flesh::material::{Diagonalize, Lame, Modes, in_range};

fn oracle(name: &str) -> Value {
    let all: Value = serde_json::from_str(include_str!("data/flesh.json")).unwrap();
    all[name].clone()
}

fn numbers(v: &Value) -> Vec<f64> {
    v.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
}

fn matrix(v: &Value) -> DMat3 {
    let rows: Vec<DVec3> = v.as_array().unwrap().iter().map(|row| DVec3::from_slice(&numbers(row))).collect();
    DMat3::from_cols(rows[0], rows[1], rows[2]).transpose()
}

fn largest(m: DMat3) -> f64 {
    m.to_cols_array().into_iter().fold(0.0, |a, b| a.max(b.abs()))
}

fn rotation(random: &mut Random) -> DMat3 {
    let q = DQuat::from_xyzw(
        random.range(-1.0, 1.0),
        random.range(-1.0, 1.0),
        random.range(-1.0, 1.0),
        random.range(-1.0, 1.0),
    );
    DMat3::from_quat(q.normalize())
}

/// Any state of an element: near rest, stretched, flattened, inverted.
fn gradient(random: &mut Random, case: usize) -> DMat3 {
    let mut stretch = || 1.0 + [0.05, 0.4, 1.5, 2.5][case % 4] * random.range(-1.0, 1.0);
    let s = DVec3::new(stretch(), stretch(), stretch());
    rotation(random) * DMat3::from_diagonal(s) * rotation(random)
}

const LAME: Lame = Lame { lambda: 1000.0, mu: 500.0 };

/// `dP` for a change dF, by the modes: U [Ĥ : (Uᵀ dF V)] Vᵀ.
fn along(modes: &Modes, df: DMat3) -> DMat3 {
    let d = (modes.u.transpose() * df * modes.v).to_cols_array_2d();
    let get = |i: usize, j: usize| d[j][i];
    let mut out = [[0.0; 3]; 3]; // columns
    for i in 0..3 {
        for j in 0..3 {
            out[j][i] = if i == j {
                (0..3).map(|k| modes.stretch.col(k)[i] * get(k, k)).sum()
            } else {
                let k = 3 - i - j; // the pair is known by its third axis
                let (alpha, beta) = (0.5 * (modes.twist[k] + modes.flip[k]), 0.5 * (modes.flip[k] - modes.twist[k]));
                alpha * get(i, j) + beta * get(j, i)
            };
        }
    }
    modes.u * DMat3::from_cols_array_2d(&out) * modes.v.transpose()
}

/// The 9×9 matrix ∂P/∂F.
fn dense(modes: &Modes) -> DMatrix<f64> {
    let mut m = DMatrix::zeros(9, 9);
    for k in 0..9 {
        let mut unit = [0.0; 9];
        unit[k] = 1.0;
        let column = along(modes, DMat3::from_cols_array(&unit)).to_cols_array();
        (0..9).for_each(|i| m[(i, k)] = column[i]);
    }
    m
}

#[test]
fn stress_energy_and_derivative_are_those_of_the_oracle() {
    let all = oracle("O3_stvk");
    for case in all["cases"].as_array().unwrap() {
        let f = matrix(&case["F"]);
        assert_eq!(in_range(&f), case["in_range"].as_bool().unwrap());
        // 12 digits of numbers up to 6,500
        let energy = case["psi_ext"].as_f64().unwrap();
        assert!((LAME.energy(&f) - energy).abs() < 1e-8, "{} {energy}", LAME.energy(&f));
        for way in [Diagonalize::Selective, Diagonalize::Always] {
            let (stress, _) = LAME.stress(&f, way);
            assert!(largest(stress - matrix(&case["P_ext"])) < 1e-7, "{way:?}");
        }
        let mut values: Vec<f64> =
            SymmetricEigen::new(dense(&LAME.exact_modes(&f))).eigenvalues.iter().copied().collect();
        values.sort_by(f64::total_cmp);
        for (a, b) in values.iter().zip(numbers(&case["dPdF_eigenvalues_sorted"])) {
            assert!((a - b).abs() < 1e-6, "{values:?}");
        }
    }
}

#[test]
fn the_range_is_told_for_any_rotation() {
    let all = oracle("O12_range_test");
    let mut random = Random::new(5);
    for case in all["cases"].as_array().unwrap() {
        let s = DMat3::from_diagonal(DVec3::from_slice(&numbers(&case["sigma"])));
        for _ in 0..1000 {
            let f = rotation(&mut random) * s * rotation(&mut random);
            assert_eq!(in_range(&f), case["in_range"].as_bool().unwrap(), "{case}");
        }
    }
    // Random stretches: the singular values decide, but for those on the border to rounding.
    let (low, high) = ((2.0f64 / 3.0).sqrt(), (5.0f64 / 3.0).sqrt());
    for case in 0..100_000 {
        let f = gradient(&mut random, case);
        let s = supple::maths::singular::singular(f).values;
        if s.to_array().iter().all(|s| (s - low).abs() > 1e-9 && (s - high).abs() > 1e-9) {
            assert_eq!(in_range(&f), s.min_element() > low && s.max_element() < high, "{s}");
        }
    }
}

#[test]
fn stress_is_the_gradient_of_energy() {
    let mut random = Random::new(7);
    for case in 0..2000 {
        let f = gradient(&mut random, case);
        let (p, _) = LAME.stress(&f, Diagonalize::Selective);
        let df = DMat3::from_cols_array(&std::array::from_fn(|_| random.range(-1.0, 1.0)));
        let h = 1e-6;
        let difference = (LAME.energy(&(f + df * h)) - LAME.energy(&(f - df * h))) / (2.0 * h);
        let exact: f64 = p.to_cols_array().iter().zip(df.to_cols_array()).map(|(p, d)| p * d).sum();
        // At the range's border the second derivative jumps by k₀/3: h k₀/12 |dF|²; elsewhere rounding of energies of 1e4 over h.
        assert!((difference - exact).abs() < 2.0 * h * LAME.uniaxial(), "case {case}: {difference} {exact}");
    }
}

#[test]
fn the_derivative_of_stress_is_that_of_differences() {
    let mut random = Random::new(11);
    let mut worst: f64 = 0.0;
    for case in 0..2000 {
        let f = gradient(&mut random, case);
        let s = supple::maths::singular::singular(f).values;
        let (low, high) = ((2.0f64 / 3.0).sqrt(), (5.0f64 / 3.0).sqrt());
        let border = s.to_array().iter().any(|s| (s - low).abs() < 1e-3 || (s - high).abs() < 1e-3);
        let (sum, gap) = (s.y + s.z, (s.x - s.y).min(s.y - s.z));
        if border || sum.abs() < 0.05 || gap < 0.02 {
            continue; // a jump or a pole of the derivative within the difference
        }
        let df = DMat3::from_cols_array(&std::array::from_fn(|_| random.range(-1.0, 1.0)));
        let h = 1e-5;
        let p = |f: DMat3| LAME.stress(&f, Diagonalize::Selective).0;
        let difference = (p(f + df * h) - p(f - df * h)) * (0.5 / h);
        let exact = along(&LAME.exact_modes(&f), df);
        worst = worst.max(largest(difference - exact) / (LAME.uniaxial() + largest(exact)));
    }
    assert!(worst < 1e-6, "{worst:e}"); // h² times a third derivative that grows as 1/gap²
}

#[test]
fn the_projected_derivative_is_never_negative() {
    let mut random = Random::new(13);
    let mut lowest_exact: f64 = 0.0;
    for case in 0..3000 {
        let f = gradient(&mut random, case);
        let values = SymmetricEigen::new(dense(&LAME.modes(&f))).eigenvalues;
        let k0 = LAME.uniaxial();
        assert!(values.min() > -1e-12 * k0 && values.max() < 10.0 * k0 * (1.0 + 1e-12), "{values}");
        lowest_exact = lowest_exact.min(SymmetricEigen::new(dense(&LAME.exact_modes(&f))).eigenvalues.min());
    }
    assert!(lowest_exact < -LAME.uniaxial(), "the cases need the projection: {lowest_exact}");
}

#[test]
fn blocks_of_an_element_are_those_of_its_modes() {
    let mut random = Random::new(17);
    for case in 0..200 {
        let modes = LAME.modes(&gradient(&mut random, case));
        let [ga, gb]: [DVec3; 2] = std::array::from_fn(|_| {
            DVec3::new(random.range(-1.0, 1.0), random.range(-1.0, 1.0), random.range(-1.0, 1.0))
        });
        let block = modes.block(modes.v.transpose() * ga, modes.v.transpose() * gb);
        for k in 0..3 {
            // x_b += e_k changes F by e_k gbᵀ, and the force on a by P ga
            let df = DMat3::from_cols(DVec3::AXES[k] * gb.x, DVec3::AXES[k] * gb.y, DVec3::AXES[k] * gb.z);
            let expected = along(&modes, df) * ga;
            assert!((block.col(k) - expected).length() < 1e-11 * 10.0 * LAME.uniaxial());
        }
    }
}

#[test]
fn an_inverted_element_is_pushed_back() {
    // One stretch alone, P̂/k₀ with λ = 0: (2) at s = 1.6, 0.8, 0.3, 0, −0.5
    let lame = Lame { lambda: 0.0, mu: 0.5 };
    // (at s = −1 all stretches are one size, and any axis may be the inverted one)
    let expected = [0.945341, -0.147080, -0.480414, -0.680414, -1.013747];
    for (s, expected) in [1.6, 0.8, 0.3, 0.0, -0.5].into_iter().zip(expected) {
        let f = DMat3::from_diagonal(DVec3::new(1.0, s, 1.0));
        let (p, _) = lame.stress(&f, Diagonalize::Selective);
        assert!((p.y_axis.y - expected).abs() < 1e-6, "{s}: {}", p.y_axis.y);
    }
}

#[test]
fn blocks_within_the_range_are_those_of_differences() {
    let mut random = Random::new(17);
    let mut tried = 0;
    for case in 0..4000 {
        let f = gradient(&mut random, case);
        if !in_range(&f) {
            continue;
        }
        tried += 1;
        let g = [random.vector(1.0), random.vector(1.0), random.vector(1.0)];
        let blocks = LAME.blocks_within(&f, g);
        for (block, (a, b)) in blocks.iter().zip([(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)]) {
            // The stress at node a while node b moves along each axis
            let step = 1e-6;
            for (k, axis) in DVec3::AXES.into_iter().enumerate() {
                let moved = |size: f64| {
                    let d = axis * size;
                    let df = DMat3::from_cols(d * g[b].x, d * g[b].y, d * g[b].z);
                    LAME.stress(&(f + df), Diagonalize::Always).0 * g[a]
                };
                let column = (moved(step) - moved(-step)) / (2.0 * step);
                // stiffness of 2,000 Pa, differences to 1e-6 of it
                assert!((column - block.col(k)).length() < 1e-2, "{case}: {column} {}", block.col(k));
            }
        }
    }
    assert!(tried > 100, "{tried}");
}

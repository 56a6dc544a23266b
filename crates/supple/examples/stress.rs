//! Random trees of every kind under everything at once, many of them: `cargo run --release -p supple --example stress -- 50000`.
//!
//! A second number is the first seed. `seed N` tells one case step by step.

#[path = "../tests/common/mod.rs"]
mod common;

use common::chaos::{Case, Outcome, endure, energy, stress};
use std::collections::BTreeMap;
use supple::*;

const STEPS: usize = 20;

/// Sums over cases of a kind.
#[derive(Default)]
struct Row {
    cases: u64,
    errors: u64,
    not_finite: u64,
    with_resorts: u64,
    resorts: u64,
    with_backward: u64,
    steps: u64,
    factorisations: u64,
    most: u32,
    gap: (f64, u64),
    gain: (f64, u64),
}

impl Row {
    fn add(&mut self, seed: u64, out: &Outcome) {
        self.cases += 1;
        self.errors += u64::from(out.error.is_some());
        self.not_finite += u64::from(out.not_finite);
        self.with_resorts += u64::from(out.resorts > 0);
        self.resorts += u64::from(out.resorts);
        self.with_backward += u64::from(out.backward > 0);
        self.steps += u64::from(out.steps);
        self.factorisations += out.factorisations;
        self.most = self.most.max(out.most_factorisations);
        if out.gap > self.gap.0 {
            self.gap = (out.gap, seed);
        }
        if out.gain > self.gain.0 {
            self.gain = (out.gain, seed);
        }
    }

    fn merge(&mut self, o: &Row) {
        self.cases += o.cases;
        self.errors += o.errors;
        self.not_finite += o.not_finite;
        self.with_resorts += o.with_resorts;
        self.resorts += o.resorts;
        self.with_backward += o.with_backward;
        self.steps += o.steps;
        self.factorisations += o.factorisations;
        self.most = self.most.max(o.most);
        if o.gap.0 > self.gap.0 {
            self.gap = o.gap;
        }
        if o.gain.0 > self.gain.0 {
            self.gain = o.gain;
        }
    }
}

/// The kinds a case belongs to.
fn kinds(case: &Case) -> Vec<&'static str> {
    let model = &case.model;
    let joints = model.joints();
    let stiffest = joints.iter().map(|j| j.rotation_spring.stiffness).fold(0.0, f64::max);
    let mut kinds = vec!["all"];
    let mut kind = |on: bool, name| {
        if on {
            kinds.push(name)
        }
    };
    let limits = joints.iter().any(|j| j.limits.any());
    let anchors = !model.anchor_springs().is_empty();
    kind(case.driven, "driven");
    kind(!case.driven, "not driven");
    kind(!case.driven && !limits && !anchors, "no limits, anchors, drives");
    kind(!case.driven && !limits && !anchors && stiffest == 0.0, "joints alone");
    kind(anchors, "anchor springs");
    kind(limits, "limits");
    kind(stiffest > 1e5, "stiffness above 1e5");
    kind(joints.iter().all(|j| j.mask == JointMask::BALL), "balls only");
    kind(case.input.dt > 0.03, "dt 1/30");
    kind(case.input.dt < 0.005, "dt 1/240");
    kinds
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [word, seed] = &arguments[..]
        && word == "seed"
    {
        return tell(seed.parse().expect("a seed"));
    }
    let number = |k: usize, missing: u64| arguments.get(k).map_or(missing, |a| a.parse().expect("a number"));
    let (count, first) = (number(0, 2000), number(1, 0));
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get()) as u64;
    let start = std::time::Instant::now();
    let run = |from: u64| {
        let mut rows: BTreeMap<&'static str, Row> = BTreeMap::new();
        let mut worst: Vec<(u32, u64)> = Vec::new();
        for seed in (first + from..first + count).step_by(threads as usize) {
            let case = stress(seed);
            let out = endure(&case, STEPS);
            kinds(&case).into_iter().for_each(|kind| rows.entry(kind).or_default().add(seed, &out));
            if let Some(error) = &out.error {
                println!("seed {seed}: {error}");
            }
            if out.not_finite || out.gap > 1e-9 || out.gain > 5e-3 {
                println!("seed {seed}: finite {}, gap {:.1e}, gain {:.1e}", !out.not_finite, out.gap, out.gain);
            }
            if out.resorts > 0 {
                worst.push((out.resorts, seed));
            }
        }
        (rows, worst)
    };
    let parts: Vec<_> = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..threads).map(|t| scope.spawn(move || run(t))).collect();
        handles.into_iter().map(|h| h.join().expect("no panic")).collect()
    });
    let (mut rows, mut worst): (BTreeMap<&'static str, Row>, Vec<_>) = Default::default();
    for (part, seeds) in parts {
        part.iter().for_each(|(kind, row)| rows.entry(kind).or_default().merge(row));
        worst.extend(seeds);
    }
    println!("{count} cases of {STEPS} steps in {:.1} s", start.elapsed().as_secs_f64());
    println!(
        "{:28} {:>7} {:>6} {:>6} {:>9} {:>8} {:>9} {:>9} {:>6} {:>18} {:>18}",
        "",
        "cases",
        "errors",
        "finite",
        "resorted",
        "resorts",
        "backward",
        "factors",
        "most",
        "worst gap (seed)",
        "worst gain (seed)"
    );
    for (kind, r) in &rows {
        println!(
            "{kind:28} {:7} {:6} {:6} {:8.2}% {:8} {:8.2}% {:9.2} {:6} {:>18} {:>18}",
            r.cases,
            r.errors,
            r.cases - r.not_finite,
            100.0 * r.with_resorts as f64 / r.cases as f64,
            r.resorts,
            100.0 * r.with_backward as f64 / r.cases as f64,
            r.factorisations as f64 / r.steps as f64,
            r.most,
            format!("{:.1e} ({})", r.gap.0, r.gap.1),
            format!("{:.1e} ({})", r.gain.0, r.gain.1)
        );
    }
    worst.sort_unstable_by(|a, b| b.cmp(a));
    let list: Vec<_> = worst.iter().take(12).map(|(n, seed)| format!("{seed} ({n})")).collect();
    println!("most resorts: {}", list.join(", "));
}

/// One case, step by step.
fn tell(seed: u64) {
    let Case { model, input, mut state, driven, size } = stress(seed);
    println!(
        "seed {seed}: {} bodies, dt {:.5}, driven {driven}, size {size:.2}, anchors {}, gravity {}",
        model.bodies().len(),
        input.dt,
        model.anchor_springs().len(),
        input.gravity.y
    );
    for (k, joint) in model.joints().iter().enumerate() {
        let body = model.body(joint.child);
        println!(
            "  {} {} child {} parent {:?}, spring {:.1e} damper {:.1e}, slide spring {:.1e} damper {:.1e}, limits {}, motor {:?}, servo {:?}; child {:.2e} kg",
            joint.name,
            joint.mask.name(),
            joint.child.0,
            joint.parent.map(|p| p.0),
            joint.rotation_spring.stiffness,
            joint.rotation_spring.damping,
            joint.slide_spring.stiffness,
            joint.slide_spring.damping,
            if joint.limits.any() { format!("{:.1e}", joint.limits.stiffness) } else { "none".into() },
            joint.motor,
            input.joint(k).servo,
            body.mass
        );
    }
    let mut work = Work::new(&model);
    for n in 0..STEPS {
        match step(&model, &input, &mut state, &mut work) {
            Ok(r) => {
                let (kinetic, potential) = energy(&model, &input, &state);
                println!(
                    "step {n}: substeps {} factors {} solves {} fallbacks {} turned {} backward {} resorts {} projections {} limits {}, gap {:.1e}, E {kinetic:.4e} + {potential:.4e}",
                    r.substeps,
                    r.factorisations,
                    r.solves,
                    r.fallbacks,
                    r.rotation_halvings,
                    r.backward_parts,
                    r.resorts,
                    r.projections,
                    r.limits_active,
                    r.max_joint_gap
                );
            }
            Err(error) => return println!("step {n}: {error}"),
        }
    }
}

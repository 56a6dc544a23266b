use supple::solver::Impulse;
use supple::solver::impulse::*;
use supple::*;
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let name = &args[1];
    let dt: f64 = 1.0 / args[2].parse::<f64>().unwrap();
    let seconds: f64 = args[3].parse().unwrap();
    let variant = if args.get(4).is_some_and(|x| x == "j") { Variant::JointByJoint } else { Variant::System };
    let scene = Scene::parse(name).unwrap();
    let mut set = Impulse { variant, ..Impulse::default() };
    if args.get(5).is_some_and(|x| x == "b") {
        set.elimination = Elimination::Bodies;
    }
    let (mut state, mut input, mut work) = (scene.state.clone(), scene.input.clone(), Work::new(&scene.model));
    input.dt = dt;
    input.solver = Solver::Impulse(set);
    let e0 = measure::energy(&scene.model, &input, &state).total();
    let n = (seconds / dt).round() as usize;
    let (mut gap, mut tilt, mut emax, mut jc, mut vc, mut jcmax, mut fac, mut sub, mut fall) =
        (0.0f64, 0.0f64, e0, 0, 0, 0, 0, 0, 0);
    let mut best = f64::MAX;
    let mut total = 0.0;
    for k in 0..n {
        scene.direct(state.time, &mut input);
        let t = std::time::Instant::now();
        let r = match step(&scene.model, &input, &mut state, &mut work) {
            Ok(r) => r,
            Err(e) => {
                println!("step {k}: {e}");
                break;
            }
        };
        let t = t.elapsed().as_secs_f64();
        best = best.min(t);
        total += t;
        gap = gap.max(r.max_joint_gap);
        tilt = tilt.max(r.max_joint_tilt);
        jc += r.corrections;
        vc += r.velocity_corrections;
        jcmax = jcmax.max(r.corrections);
        fac += r.factorisations;
        sub += r.substeps;
        fall += r.fallbacks;
        emax = emax.max(measure::energy(&scene.model, &input, &state).total());
    }
    let e1 = measure::energy(&scene.model, &input, &state).total();
    let f = n as f64;
    println!(
        "{name} 1/{}: gap {gap:.1e} tilt {tilt:.1e} E {e0:.3} max {emax:.3} last {e1:.3}; jc {:.2} max {jcmax} vc {:.2} fac {:.2} sub {:.2} fall {fall}; best {:.3} ms mean {:.3} ms",
        1.0 / dt,
        jc as f64 / f,
        vc as f64 / f,
        fac as f64 / f,
        sub as f64 / f,
        best * 1e3,
        total / f * 1e3
    );
}

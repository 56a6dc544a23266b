//! `finite` means every number that a run reports.

use supple::{Report, Run, Scene};

#[test]
fn a_run_is_finite_when_every_number_of_it_is() {
    let scene = Scene::parse("pendulum").unwrap();
    let is_finite = |report: Report, energy: Option<f64>| {
        let mut run = Run::new(&scene.model, &scene.input, &scene.state);
        run.add(&scene.model, &scene.input, &scene.state, &report, energy);
        // What came once is not forgotten.
        run.add(&scene.model, &scene.input, &scene.state, &Report::default(), Some(1.0));
        let quality = run.quality(&scene.model, &scene.input, &scene.state);
        let told = quality.words().iter().any(|words| words.contains("overflowed"));
        assert_ne!(told, run.is_finite(&scene.state), "{quality:?}");
        run.is_finite(&scene.state)
    };
    assert!(is_finite(Report::default(), None) && is_finite(Report::default(), Some(2.0)));
    let fields: [fn(&mut Report) -> &mut f64; 6] = [
        |report| &mut report.max_joint_gap,
        |report| &mut report.max_joint_tilt,
        |report| &mut report.closed,
        |report| &mut report.max_penetration,
        |report| &mut report.residual_before,
        |report| &mut report.residual,
    ];
    for wrong in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        for (k, field) in fields.iter().enumerate() {
            let mut report = Report::default();
            *field(&mut report) = wrong;
            assert!(!is_finite(report, Some(2.0)), "field {k}: {wrong}");
        }
        assert!(!is_finite(Report::default(), Some(wrong)), "energy {wrong}");
    }
    let mut state = scene.state.clone();
    state.bodies[0].velocity.linear.x = f64::NAN;
    assert!(!Run::new(&scene.model, &scene.input, &scene.state).is_finite(&state));
}

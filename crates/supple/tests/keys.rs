//! Every setting changes a result, or is refused with a reason: walked over the table itself, so that no new one is forgotten.

use supple::settings::{Value, Values};
use supple::{FleshCoupling, Input, Report, SETTINGS, Scene, Setting, Solver, Work, step};

/// Where a setting shows: the scene, what is set before it, the steps that are done.
struct Case {
    scene: &'static str,
    before: &'static [(&'static str, &'static str)],
    steps: usize,
}

fn case(key: &str) -> Case {
    let of = |scene, before, steps| Case { scene, before, steps };
    match key {
        "contacts" => of("block", &[], 30),
        "sleep" => of("block", &[], 120),
        "flesh" => of("worm", &[], 3),
        "tree.depth" => of("whip:10", &[("dt", "1"), ("gravity", "100")], 3),
        "tree.threads" => of("chain:3", &[("tree.scheme", "published")], 20),
        "tree.contacts" => of("block", &[], 30),
        "tree.contact_stiffness" | "tree.contact_slip" => of("block", &[("tree.contacts", "penalty")], 30),
        "assembly.cut" => of("double_pendulum", &[("assembly.truncation", "0.001"), ("assembly.outer", "3")], 30),
        // with springs, joints are closed before the corrections begin
        "assembly.outer" | "assembly.truncation" => of("double_pendulum", &[], 30),
        "tree.instructions" => of("chain:3", &[], 20),
        // where there are springs, velocities are corrected with them, by the matrix of the bodies
        "impulse.elimination" | "impulse.velocity_tolerance" | "impulse.velocity_correction" => {
            of("double_pendulum", &[], 20)
        }
        "reduced.contact_stiffness" => of("block", &[], 30),
        "reduced.contact_slip" => of("block", &[], 100),
        "reduced.diagonalize" => of("worm", &[], 3),
        key if key.starts_with("skin.") => of("tubes", &[], 12),
        _ => of("chain:3", &[], 20),
    }
}

/// The scene and its input, with the solver whose setting it is.
fn prepared(key: &str, case: &Case) -> (Scene, Input) {
    let scene = Scene::parse(case.scene).unwrap();
    let mut input = scene.input.clone();
    let owner = SETTINGS.iter().find(|setting| setting.key == key).and_then(Setting::owner);
    if let Some(owner) = owner.filter(|owner| *owner != input.solver.name()) {
        input.solver = Solver::all().into_iter().find(|solver| solver.name() == owner).unwrap();
    }
    for (key, text) in case.before {
        let setting = Setting::find(key, &input.solver).unwrap();
        assert!(setting.set(&mut input, setting.parse(text).unwrap()), "{key}={text}");
    }
    (scene, input)
}

/// What comes of a run: the hash of its state, its figures, and how many joint loads were told; or why it could not be done.
fn outcome(scene: &Scene, input: &Input, steps: usize) -> Result<(u64, Report, usize), String> {
    let (mut state, mut input, mut work) = (scene.state.clone(), input.clone(), Work::new(&scene.model));
    let mut last = Report::default();
    for _ in 0..steps {
        scene.direct(state.time, &mut input);
        last = step(&scene.model, &input, &mut state, &mut work).map_err(|error| error.to_string())?;
    }
    Ok((state.hash(), last, work.joint_impulses().len()))
}

/// Values other than the present one, plain ones first.
fn others(setting: &Setting, now: Value) -> Vec<Value> {
    let numbers = |x: f64| vec![10.0 * x, 0.1 * x, 1000.0 * x, 1e-3 * x, 0.5, 0.0];
    let all = match (setting.values(), now) {
        (Values::Whole(least, most), Value::Whole(n)) => [n + 1, n / 2, least, most.min(50)].map(Value::Whole).to_vec(),
        (Values::Choice(words), _) => words.into_iter().map(Value::Word).collect(),
        (_, Value::Number(x)) => numbers(x).into_iter().map(Value::Number).collect(),
        (_, Value::Vector(v)) => vec![Value::Vector(0.5 * v)],
        (values, value) => panic!("{}: {values:?} {value:?}", setting.key),
    };
    all.into_iter().filter(|value| *value != now && setting.takes(*value)).collect()
}

#[test]
fn every_setting_changes_a_result() {
    let mut idle = Vec::new();
    for setting in SETTINGS {
        let key = setting.key;
        let case = case(key);
        let (scene, input) = prepared(key, &case);
        assert_eq!(setting.idle(&scene.model, &input), None, "{key} in {}", case.scene);
        let now = setting.get(&input).unwrap_or_else(|| panic!("{key} in {}", case.scene));
        let before = outcome(&scene, &input, case.steps);
        let changes = others(setting, now).into_iter().any(|value| {
            let mut input = input.clone();
            assert!(setting.set(&mut input, value), "{key} {value:?}");
            outcome(&scene, &input, case.steps) != before
        });
        // Threads promise the same bits, in less time for large trees; without fused operations there is one kind of instructions.
        let quiet = key == "tree.threads" || (key == "tree.instructions" && !supple::maths::lanes::has_fused());
        if changes == quiet {
            idle.push(key);
        }
    }
    assert!(idle.is_empty(), "settings that do not do what they say: {idle:?}");
}

/// In each scheme of `tree` every other of its settings changes a result in one scene or another, or is refused in all of them.
#[test]
fn every_scheme_of_the_tree_takes_a_setting_or_refuses_it() {
    let scheme = SETTINGS.iter().find(|setting| setting.key == "tree.scheme").unwrap();
    let Values::Choice(schemes) = scheme.values() else { panic!("tree.scheme") };
    assert!(schemes.len() >= 7);
    let of_tree = || SETTINGS.iter().filter(|setting| setting.owner() == Some("tree") && setting.key != "tree.scheme");
    // The worm does not last for long in every scheme, and the explicit one throws the block unless steps are short.
    let scenes = [
        ("chain:3", "1/60", "9.81", 20),
        ("whip:10", "1", "100", 3),
        ("block:speed=0.5", "1/2000", "9.81", 400),
        ("worm", "1/60", "9.81", 4),
        ("ring", "1/60", "9.81", 20),
    ];
    let (mut idle, mut refused) = (Vec::new(), 0);
    for word in schemes {
        for setting in of_tree() {
            let (mut taken, mut acts) = (0, false);
            for (name, dt, gravity, steps) in scenes {
                let scene = Scene::parse(name).unwrap();
                let mut input = Input { solver: Solver::default(), ..scene.input.clone() };
                for (key, text) in [("dt", dt), ("gravity", gravity)] {
                    let setting = Setting::find(key, &input.solver).unwrap();
                    assert!(setting.set(&mut input, setting.parse(text).unwrap()), "{key}={text}");
                }
                input.flesh = FleshCoupling::Loose; // which every scheme takes
                assert!(scheme.set(&mut input, Value::Word(word)));
                let is_refused = setting.idle(&scene.model, &input).is_some();
                if acts && !is_refused {
                    continue;
                }
                let before = outcome(&scene, &input, steps);
                let values = setting.get(&input).map_or_else(Vec::new, |now| others(setting, now));
                let changes = values.into_iter().any(|value| {
                    let mut input = input.clone();
                    assert!(setting.set(&mut input, value));
                    outcome(&scene, &input, steps) != before
                });
                if is_refused {
                    refused += 1;
                    // What is no spring has no stiffness to be told: setting one makes it a spring.
                    let law = setting.key.starts_with("tree.contact_");
                    assert!(!changes || law, "{} acts in {name} by {word}, and is refused", setting.key);
                } else {
                    (taken, acts) = (taken + 1, acts || changes);
                }
            }
            let quiet = setting.key == "tree.threads"
                || !supple::maths::lanes::has_fused() && setting.key == "tree.instructions";
            if taken > 0 && !acts && !quiet {
                idle.push((word, setting.key));
            }
        }
    }
    assert!(idle.is_empty(), "settings that do nothing anywhere and are taken: {idle:?}");
    assert!(refused > 30, "{refused}");
}

/// What would do nothing is refused, and the reason is true: forced all the same, it changes no bit.
#[test]
fn settings_that_would_do_nothing_are_refused() {
    let mut refused = 0;
    for scene in ["pendulum", "chain:3"] {
        for solver in Solver::all() {
            let scene = Scene::parse(scene).unwrap();
            let input = Input { solver, ..scene.input.clone() };
            let before = outcome(&scene, &input, 10).unwrap();
            for setting in SETTINGS {
                let (Some(reason), Some(now)) = (setting.idle(&scene.model, &input), setting.get(&input)) else {
                    continue;
                };
                assert!(!reason.is_empty());
                refused += 1;
                for value in others(setting, now) {
                    let mut input = input.clone();
                    assert!(setting.set(&mut input, value));
                    // what cannot be taken is refused a second time, by the step
                    if let Ok(after) = outcome(&scene, &input, 10) {
                        assert_eq!(
                            after.0,
                            before.0,
                            "{} {value:?} in {} by {}",
                            setting.key,
                            scene.name,
                            solver.name()
                        );
                    }
                }
            }
        }
    }
    assert!(refused > 20, "{refused}");
}

/// The table of the guide, as the engine has it.
fn table() -> String {
    let cell = |value: Option<Value>| match value {
        Some(Value::Whole(n)) => n.to_string(),
        Some(Value::Number(x)) if x.is_finite() => {
            format!("{x:.6}").trim_end_matches('0').trim_end_matches('.').to_owned()
        }
        Some(Value::Number(_)) => "off".into(),
        Some(Value::Word(word)) => word.into(),
        Some(Value::Vector(v)) => format!("{},{},{}", v.x, v.y, v.z),
        None => "–".into(),
    };
    let row =
        |s: &Setting| format!("| `{}` | {} | {} | {} |\n", s.key, s.words, s.range_words(), cell(s.default_value()));
    format!(
        "| key | what it is | what it takes | unless told |\n| --- | --- | --- | --- |\n{}",
        SETTINGS.iter().map(row).collect::<String>()
    )
}

#[test]
fn the_guide_lists_every_setting() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/settings.md");
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    let head = text.split_once("| key |").map_or(text.as_str(), |(head, _)| head).to_owned();
    if std::env::var_os("SUPPLE_WRITE_GUIDE").is_some() {
        std::fs::write(&path, format!("{head}{}", table())).unwrap();
        return;
    }
    assert_eq!(
        text,
        format!("{head}{}", table()),
        "write it anew: SUPPLE_WRITE_GUIDE=1 cargo test --test keys the_guide"
    );
}

//! `supple bench papers`: every table row and every figure of the five papers, the published number beside the measured one, each with the command that
//! measures it again. `-o papers.html` writes them as a page with curves and pictures.

use super::papers_page::{self, Picture};
use super::processor::Processor;
use super::{Destination, Machine, assembly, chain, creatures, hand, peak, skin, trees};
use crate::error::Error;
use crate::output;
use crate::render::film;
use crate::table::{Align, Table, figure};
use crate::terminal::Terminal;
use clap::{Args, ValueEnum};
use serde::Serialize;
use supple::glam::DVec3;
use supple::maths::rotation::log;
use supple::{
    Assembly, Diagonalize, Impulse, Input, JointMask, Scene, SkinSettings, Solver, State, Work, assemble, measure, step,
};

/// Options of the bench.
#[derive(Args, Debug)]
pub(crate) struct PapersArgs {
    /// Only this paper; may be given again
    #[arg(long, value_name = "NAME")]
    paper: Vec<Paper>,
    #[command(flatten)]
    destination: Destination,
}

/// The papers, as docs/papers.md calls them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
pub(super) enum Paper {
    #[value(name = "hernandez")]
    #[serde(rename = "Hernández 2011")]
    Hernandez,
    #[value(name = "galoppo")]
    #[serde(rename = "Galoppo 2007")]
    Galoppo,
    #[value(name = "faure")]
    #[serde(rename = "Faure 1998")]
    Faure,
    #[value(name = "kim")]
    #[serde(rename = "Kim 2008")]
    Kim,
    #[value(name = "bender")]
    #[serde(rename = "Bender 2006")]
    Bender,
}

impl Paper {
    const ALL: [Paper; 5] = [Paper::Hernandez, Paper::Galoppo, Paper::Faure, Paper::Kim, Paper::Bender];

    pub(super) fn name(self) -> &'static str {
        match self {
            Paper::Hernandez => "Hernández 2011",
            Paper::Galoppo => "Galoppo 2007",
            Paper::Faure => "Faure 1998",
            Paper::Kim => "Kim 2008",
            Paper::Bender => "Bender 2006",
        }
    }
}

/// What was run: the method of the paper, ours, or one that is both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Faithful {
    AsPublished,
    Ours,
    Both,
}

use Faithful::{AsPublished, Both, Ours};

/// The keys are a promise: add, do not rename.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    pub(super) paper: Paper,
    /// `table 1`, `figure 3` or `§5`.
    pub(super) item: String,
    /// What the number is.
    pub(super) what: String,
    /// Null where the paper gives none.
    pub(super) published: Option<f64>,
    /// Null where the item is a drawing or an algorithm: the command is the test that checks it.
    pub(super) measured: Option<f64>,
    pub(super) unit: &'static str,
    /// Measured over published.
    pub(super) ratio: Option<f64>,
    pub(super) command: String,
    pub(super) faithful: Faithful,
}

#[derive(Debug, Serialize)]
pub(super) struct Document {
    bench: &'static str,
    pub(super) machine: Machine,
    pub(super) rows: Vec<Row>,
}

/// What is gathered: rows, and what the page shows beside them.
struct Book<'a> {
    paper: Paper,
    rows: Vec<Row>,
    pictures: Vec<Picture>,
    /// Whether there is a page to draw pictures for.
    is_drawn: bool,
    terminal: &'a Terminal,
}

impl Book<'_> {
    fn row(
        &mut self,
        (item, what): (&str, impl Into<String>),
        (published, measured): (Option<f64>, Option<f64>),
        unit: &'static str,
        (command, faithful): (impl Into<String>, Faithful),
    ) {
        let ratio = published.zip(measured).map(|(published, measured)| measured / published);
        let (item, what, command) = (item.into(), what.into(), command.into());
        self.rows.push(Row { paper: self.paper, item, what, published, measured, unit, ratio, command, faithful });
    }

    /// A drawing or an algorithm, checked by a test.
    fn checked(&mut self, item: &str, what: &str, test: &str, faithful: Faithful) {
        let command = format!("cargo test --release -p supple {test}");
        self.row((item, what), (None, None), "", (command, faithful));
    }

    /// A film strip.
    fn film(&mut self, words: &str, scene: &str, times: &[f64], camera: &str) -> Result<(), Error> {
        if self.is_drawn {
            let mut shown = open(scene)?;
            shown.state = crate::scenes::start(&shown, self.terminal)?;
            self.draw(words, shown, times, camera)?;
        }
        Ok(())
    }

    fn draw(&mut self, words: &str, scene: Scene, times: &[f64], camera: &str) -> Result<(), Error> {
        let size = [if times.len() > 1 { 1200 } else { 560 }, if times.len() > 1 { 260 } else { 400 }];
        let png = film(scene, times, size, camera, self.terminal)?;
        self.pictures.push(Picture::png(self.paper, words, &png));
        Ok(())
    }

    fn curve(&mut self, words: &str, svg: impl FnOnce() -> Result<String, Error>) -> Result<(), Error> {
        if self.is_drawn {
            self.pictures.push(Picture::svg(self.paper, words, svg()?));
        }
        Ok(())
    }
}

fn open(text: &str) -> Result<Scene, Error> {
    Scene::parse(text).map_err(|e| Error::scene(&e, text))
}

/// Measures, writes, prints.
pub(super) fn run(args: &PapersArgs, terminal: &Terminal) -> Result<(), Error> {
    let files = args.destination.files(&["json", "html"])?;
    let is_drawn = files.ending("html").next().is_some();
    let papers: Vec<Paper> =
        Paper::ALL.into_iter().filter(|p| args.paper.is_empty() || args.paper.contains(p)).collect();
    let mut book = Book { paper: papers[0], rows: Vec::new(), pictures: Vec::new(), is_drawn, terminal };
    let bar = terminal.progress(papers.len() as u64, "papers");
    for paper in papers {
        bar.set_message(paper.name());
        bar.tick();
        book.paper = paper;
        match paper {
            Paper::Hernandez => hernandez(&mut book)?,
            Paper::Galoppo => galoppo(&mut book)?,
            Paper::Faure => faure(&mut book)?,
            Paper::Kim => kim(&mut book)?,
            Paper::Bender => bender(&mut book)?,
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    let Book { rows, pictures, .. } = book;
    let document = Document { bench: "papers", machine: Machine::here(), rows };
    for path in files.ending("html") {
        output::write_text(path, &papers_page::page(&document, &pictures))?;
    }
    args.destination.deliver(&document, &files, terminal, || print(&document, terminal))
}

/// Steps of 1/60 s in a second.
const SECOND: usize = 60;

fn hernandez(book: &mut Book<'_>) -> Result<(), Error> {
    let soft = skin::TABLE.iter().find(|row| row.scene == "soft_hand").expect("the hand is in the table");
    let soft = skin::measure(soft, SkinSettings::default())?;
    let fps = Some(1e3 / 21.0);
    let pressed = ("figure 1", "a frame of the whole hand, its flesh pressed on a table (21 frames a second)");
    book.row(pressed, (fps, soft.total_contact_ms), "ms", ("supple bench skin", Ours));
    book.film("figure 1, 5: the hand in soft skin, pressed on a table", "soft_hand", &[0.0, 0.5, 1.0, 1.5], "118,26")?;
    let words = "six bodies, five joints: every block stays with parent and grandparent";
    book.checked("figure 2", words, "--lib solver::tree", Both);
    for (torques, words) in
        [("on", "joints of the left side turn by, all together, torques on"), ("off", "the same, torques off")]
    {
        let name = format!("robot:torques={torques}");
        let command = format!("supple simulate {name} --seconds 2 -o robot.csv");
        book.row(("figure 3", words), (None, Some(left_turn(&name)?)), "rad", (command, Both));
        book.film(
            &format!("figure 3: pulled by the left hand, torques {torques}"),
            &name,
            &[0.5, 1.0, 1.5, 2.0],
            "32,14",
        )?;
    }
    let peak = peak::gflops();
    let mut rows = Vec::new();
    for links in [10, 100, 1000, 10_000] {
        rows.extend(chain::of_links(links, SECOND, peak)?);
    }
    for row in rows.iter().filter(|row| row.published_ms.is_some()) {
        let faithful = if row.variant == chain::Variant::Plain { AsPublished } else { Ours };
        let what = format!("a frame of a chain of {} links", row.links);
        let command = format!("supple bench chain --links {}", row.links);
        book.row(("figure 4", what), (row.published_ms, Some(1e-3 * row.us_per_step)), "ms", (command, faithful));
    }
    for (variant, faithful) in [(chain::Variant::Plain, AsPublished), (chain::Variant::Default, Ours)] {
        let published = Some((285.0f64 / 22.0).log10());
        let slope = chain::slope_of(&rows, variant);
        let what = "exponent of the time over the number of links";
        book.row(("figure 4", what), (published, slope), "", ("supple bench chain", faithful));
    }
    book.curve("figure 4: time of a frame over the number of links", || chain::chart(&rows))?;
    let scene = open("hand")?;
    for (variant, faithful) in [(hand::Variant::Full, AsPublished), (hand::Variant::Default, Ours)] {
        let row = hand::alone(&scene, variant, 10 * SECOND)?;
        if faithful == AsPublished {
            let counts = [("bones of the hand", 16.0, row.bodies), ("joints of the hand", 15.0, row.joints)];
            for (what, published, count) in counts {
                let command = "supple bench hand --json";
                book.row(("figure 5, left", what), (Some(published), Some(count as f64)), "", (command, Both));
            }
        }
        let measured = Some(1e-3 * row.us_per_step);
        let published = Some(1e-3 * hand::PUBLISHED_US);
        book.row(("§5", "a frame of the hand's bones"), (published, measured), "ms", ("supple bench hand", faithful));
    }
    let touching = f64::from(soft.max_contacts);
    let what = "vertices that touch the table at most";
    book.row(("figure 5, middle", what), (None, Some(touching)), "", ("supple bench skin", Ours));
    let what = "the hand's middle finger and its target apart, pressed";
    let command = "supple simulate soft_hand --seconds 1.5 -o hand.csv";
    book.row(("figure 5, right", what), (None, Some(1e3 * led_apart("soft_hand", 1.5)?)), "mm", (command, Ours));
    Ok(())
}

/// Runs a scene with its own input, or with this solver; calls `each` after every step.
fn play(
    scene: &Scene,
    change: impl FnOnce(&mut Input),
    seconds: f64,
    mut each: impl FnMut(&Input, &State, &supple::Report),
) -> Result<State, Error> {
    let (mut state, mut input, mut work) = (scene.state.clone(), scene.input.clone(), Work::new(&scene.model));
    change(&mut input);
    for k in 0..(seconds / input.dt).round() as usize {
        scene.direct(state.time, &mut input);
        let report = step(&scene.model, &input, &mut state, &mut work)
            .map_err(|e| Error::step(&e, format_args!("{}, step {}", scene.name, k + 1)))?;
        each(&input, &state, &report);
    }
    Ok(state)
}

/// How far the joints of the left side turn in two seconds, all together \[rad\].
fn left_turn(name: &str) -> Result<f64, Error> {
    let scene = open(name)?;
    let end = play(&scene, |_| {}, 2.0, |_, _, _| {})?;
    let left = scene.model.joints().iter().filter(|joint| joint.name.contains("left"));
    Ok(left
        .map(|joint| {
            let (a, b) =
                (scene.state.relative_rotation(&scene.model, joint), end.relative_rotation(&scene.model, joint));
            log(b * a.conjugate()).length()
        })
        .sum())
}

/// How far the middle finger's tip is from where it is led \[m\].
fn led_apart(name: &str, seconds: f64) -> Result<f64, Error> {
    let scene = open(name)?;
    let mut apart = 0.0;
    play(
        &scene,
        |_| {},
        seconds,
        |input, state, _| {
            for (tracker, target) in scene.model.trackers().iter().zip(&input.targets) {
                let name = &scene.model.body(tracker.body).name;
                if let Some(target) = target
                    && name.contains("middle")
                    && name.contains("distal")
                {
                    apart = state.bodies[tracker.body.index()].position.distance(target.pose.translation);
                }
            }
        },
    )?;
    Ok(apart)
}

/// Table 1 by columns \[ms\]: nodes, bones, contacts, setup, bones and skin without contact, search, setup, bones and skin of the answer, whole frames.
const GALOPPO: [(&str, [f64; 12]); 6] = [
    ("deer:1748", [1748.0, 34.0, 13.0, 19.7, 34.0, 17.9, 6.1, 11.1, 15.8, 7.7, 74.8, 123.8]),
    ("deer:2755", [2755.0, 34.0, 41.0, 39.3, 36.6, 29.6, 10.8, 11.3, 14.7, 9.9, 114.1, 160.4]),
    ("deer:8408", [8408.0, 34.0, 162.0, 127.0, 64.9, 96.2, 41.1, 24.5, 17.8, 33.9, 310.0, 449.7]),
    ("snake", [3102.0, 16.0, 28.0, 38.9, 18.1, 36.5, 13.6, 6.2, 2.2, 12.9, 106.5, 140.6]),
    ("tube:2", [292.0, 2.0, 73.0, 2.5, 1.6, 1.9, 3.9, 0.8, 0.2, 0.8, 9.5, 13.8]),
    ("tube:5", [292.0, 5.0, 74.0, 3.7, 2.7, 2.1, 7.7, 1.5, 0.6, 1.0, 14.6, 23.3]),
];

fn galoppo(book: &mut Book<'_>) -> Result<(), Error> {
    let mut touching = Vec::new();
    let mut searched = (0.0, 0.0);
    for (settings, faithful) in [(SkinSettings::PUBLISHED, AsPublished), (SkinSettings::default(), Ours)] {
        for (scene, published) in GALOPPO {
            let case = skin::TABLE.iter().find(|row| row.scene == scene).expect("the table has it");
            let row = skin::measure(case, settings)?;
            let [n, k, m, setup, bones, soft, search, setup_2, bones_2, soft_2, free, contact] = published;
            let sizes = [("nodes", n, row.nodes as f64), ("bones", k, row.bones as f64)];
            let times = [
                ("setup", setup, row.setup_ms),
                ("bones", bones, row.bones_ms),
                ("skin", soft, row.skin_ms),
                ("search", search, row.detection_ms),
                ("answer to contacts", setup_2 + bones_2 + soft_2, row.response_ms),
            ];
            let mut put = |what: &str, published: f64, measured: Option<f64>, unit| {
                let item = ("table 1", format!("{scene}: {what}"));
                book.row(item, (Some(published), measured), unit, ("supple bench skin", faithful));
            };
            if faithful == AsPublished {
                sizes.into_iter().for_each(|(what, published, count)| put(what, published, Some(count), ""));
                put("contacts at most", m, Some(f64::from(row.max_contacts)), "");
                if scene == "deer:2755" {
                    searched = (search, row.detection_ms);
                }
            }
            times.into_iter().for_each(|(what, published, ms)| put(what, published, Some(ms), "ms"));
            put("a frame, nothing touching", free, row.total_ms, "ms");
            put("a frame with contacts", contact, row.total_contact_ms, "ms");
            touching.push((scene, faithful, row.total_contact_ms));
        }
    }
    let of = |name: &str, faithful| touching.iter().find(|t| t.0 == name && t.1 == faithful).and_then(|t| t.2);
    for faithful in [AsPublished, Ours] {
        let what = "a frame of the deer of 2,755 vertices and the bird (almost 10 frames a second)";
        let measured = of("deer:2755", faithful);
        book.row(("figure 1", what), (Some(100.0), measured), "ms", ("supple bench skin", faithful));
        let what = "a frame of the snake that the fish touches (7 frames a second)";
        let measured = of("snake", faithful);
        book.row(("figure 5", what), (Some(1e3 / 7.0), measured), "ms", ("supple bench skin", faithful));
    }
    book.film("figure 1: the bird on the deer", "deer:1748", &[0.0, 0.8, 1.2, 1.8, 2.6], "40,14")?;
    book.checked("figure 2", "displacements in the rest pose, carried by the bones", "--test skin", Both);
    for (name, what) in [("snake", "soft"), ("snake:stiffness=1e9", "skin that gives no way")] {
        let row = skin::one_tube(name, "stiffness")?;
        let command = format!("supple simulate {name} --seconds 3");
        let item = ("figure 3", format!("the snake's skin gives way by, {what}"));
        book.row(item, (None, Some(1e3 * row.max_displacement)), "mm", (command.clone(), Ours));
        let item = ("figure 3", format!("deepest vertex inside the fish, {what}"));
        book.row(item, (None, Some(1e3 * row.max_penetration)), "mm", (command, Ours));
    }
    let what = "the search of the deer of 2,755 vertices, ours by hierarchies without a graphics card";
    book.row(("figure 4", what), (Some(searched.0), Some(searched.1)), "ms", ("supple bench skin", Ours));
    book.film("figure 3, 5: the fish on the snake", "snake", &[0.0, 0.6, 1.2, 2.0, 3.0], "30,24")?;
    let tubes = skin::one_tube("tubes", "moving constraints")?;
    let what = "a frame of three tangled tubes (20 frames a second)";
    book.row(("figure 6", what), (Some(50.0), Some(tubes.ms_per_step)), "ms", ("supple bench tubes", Ours));
    book.film("figure 6: tangled tubes, their ends led about", "tubes", &[0.0, 1.0, 2.0, 3.0], "30,22")?;
    let worst = skin::condensed()?.iter().map(|row| row.matrix_error).fold(0.0, f64::max);
    let what = "error of the condensed matrix at most (published: below)";
    book.row(("§5.1", what), (Some(10.0), Some(100.0 * worst)), "%", ("supple bench condensation", AsPublished));
    let equations = skin::equations()?;
    let what = "conjugate gradients over factors, time of the skin's equations";
    let ratio = equations.gradients_ms / equations.factored_ms;
    book.row(("§6", what), (Some(4.0), Some(ratio)), "×", ("supple bench skin", AsPublished));
    let answers = skin::contacts()?;
    for (response, faithful) in [("published", AsPublished), ("default", Ours)] {
        let at = |count| answers.iter().find(|a| a.response == response && a.contacts == count).map(|a| a.response_ms);
        let ratio = at(41).zip(at(1)).map(|(many, one)| many / one);
        let what = "time of the answer to 41 contacts over that to 1 (published: practically unchanged)";
        book.row(("§6", what), (Some(1.0), ratio), "×", ("supple bench skin", faithful));
    }
    Ok(())
}

fn faure(book: &mut Book<'_>) -> Result<(), Error> {
    book.checked("figure 1", "a joint's two frames, their errors and rows", "--lib model::joint", Both);
    // The copy of the paper that was read has lost the crosses of its table 1.
    let joints = [
        ("universal", JointMask::UNIVERSAL),
        ("pin", JointMask::HINGE),
        ("cylindrical", JointMask::CYLINDRICAL),
        ("prismatic", JointMask::PRISMATIC),
        ("ball-socket", JointMask::BALL),
        ("smooth surface contact", JointMask::POINT_ON_PLANE),
    ];
    for (name, mask) in joints {
        let command = "cargo test --release -p supple --lib model::joint";
        let item = ("table 1", format!("rows of a {name} joint"));
        book.row(item, (None, Some(mask.rows() as f64)), "", (command, Both));
    }
    for case in assembly::CASES {
        let row = assembly::measure(&case)?;
        let (item, constraints, bodies) = match case.scene {
            "bar" => ("figure 2", None, None),
            "crowd_of_two" => ("figure 3", Some(758.0), None),
            "circle" => ("figure 4", None, None),
            "lattice" => ("figure 5", Some(261.0), Some(56.0)),
            _ => ("figure 6", Some(108.0), Some(28.0)),
        };
        let (words, faithful) = match case.settings {
            assembly::Settings::Printed => (format!("{} of {}, as printed", case.outer, case.inner), AsPublished),
            assembly::Settings::Published => (format!("{} of {}, least squares", case.outer, case.inner), Both),
            assembly::Settings::Thorough => (format!("{} of {}, turning resisted", case.outer, case.inner), Ours),
            assembly::Settings::Default => ("default".into(), Ours),
        };
        let command = format!("supple bench assembly --scene {}", case.scene);
        let is_first = !book.rows.iter().any(|row| (row.paper, row.item.as_str()) == (Paper::Faure, item));
        if is_first {
            let counts = [("scalar constraints", constraints, row.rows), ("bodies", bodies, row.bodies)];
            for (what, published, count) in counts.into_iter().filter(|(_, published, _)| published.is_some()) {
                book.row((item, what), (published, Some(count as f64)), "", (command.clone(), Both));
            }
        }
        let what = format!("{}, {words}: time", case.scene);
        book.row((item, what), (row.published_ms, Some(row.ms)), "ms", (command.clone(), faithful));
        let what = format!("{}, {words}: error left, of {:.2}", case.scene, row.error_before);
        book.row((item, what), (None, Some(row.error_after)), "m, rad", (command.clone(), faithful));
        let what = format!("{}, {words}: linearisations", case.scene);
        book.row((item, what), (None, Some(row.outer_done)), "", (command, faithful));
    }
    if book.is_drawn {
        // Each before and after it is brought together.
        for (item, name, camera) in [("figure 2", "bar", "8,8"), ("figure 3", "crowd_of_two", "20,12")] {
            let mut scene = open(name)?;
            book.draw(&format!("{item}: {name}, as it starts"), scene.clone(), &[0.0], camera)?;
            let settings = Assembly { outer: 100, ..Assembly::default() };
            assemble(&scene.model, &settings, &[], &mut scene.state, &mut Work::new(&scene.model))
                .map_err(|e| Error::step(&e, name))?;
            book.draw(&format!("{item}: {name}, brought together"), scene, &[0.0], camera)?;
        }
    }
    book.film("figure 4: a particle on a circle", "circle", &[0.0, 0.5, 1.0, 1.5, 2.0], "0,60")?;
    book.film("figure 5: the lattice, led by a corner", "lattice", &[0.0, 0.5, 1.0, 1.5, 2.0], "20,14")?;
    book.film("figure 6: the plate, shaken by hand", "plate", &[0.0, 0.5, 1.0, 1.5, 2.0], "20,10")
}

/// A motion of table 1: what it is called there, its figure, the take and how long it is \[s\], the share of largely deformed elements, and the speed-up.
struct Take {
    name: &'static str,
    figure: &'static str,
    scene: &'static str,
    seconds: f64,
    ratio: f64,
    speedup: f64,
}

const fn take(
    name: &'static str,
    figure: &'static str,
    scene: &'static str,
    seconds: f64,
    ratio: f64,
    speedup: f64,
) -> Take {
    Take { name, figure, scene, seconds, ratio, speedup }
}

const KIM: [Take; 8] = [
    take("worm jump", "figure 7", "worm:take=jump", 0.8, 0.33, 1.76),
    take("worm jump 2", "figure 7", "worm:take=jump2", 1.2, 0.29, 1.85),
    take("worm waving", "figure 7", "worm:take=wave", 2.4, 0.18, 2.21),
    take("worm bending", "figure 7", "worm:take=bend", 2.4, 0.18, 2.21),
    take("worm limping", "figure 7", "worm:take=limp", 2.4, 0.30, 1.83),
    take("worm rolling", "figure 7", "worm:take=roll", 4.0, 0.47, 1.43),
    take("fish escaping", "figure 8", "fish:take=escape", 1.1, 0.45, 1.33),
    take("finger manipulation", "figure 9", "finger:take=push", 1.2, 0.11, 1.23),
];

/// What a motion shows.
#[derive(Default)]
struct Shown {
    /// Mean share of elements outside the range of the material.
    ratio: f64,
    /// Processor time with all elements diagonalised over that with those outside the range.
    speedup: f64,
    /// How far the lowest point of the skin rises \[m\].
    rise: f64,
    /// How far the centre of mass of the bones goes along X \[m\].
    travel: f64,
    /// How far the last body goes \[m\].
    last: f64,
    /// The least and the most that a bone turns \[rad\].
    turns: [f64; 2],
    /// How far bones go up and down, the least of all over that of the first.
    swing: f64,
}

fn show(take: &Take) -> Result<Shown, Error> {
    let scene = open(take.scene)?;
    let Some(flesh) = scene.model.flesh() else { return Ok(Shown::default()) };
    let bones = scene.model.joints().len();
    let mut shown = Shown::default();
    let (mut outside, mut steps, mut lies) = (0u64, 0u64, f64::INFINITY);
    let (mut nodes, mut vertices) = (Vec::new(), Vec::new());
    let mut turned = vec![0.0; bones];
    let mut last: Vec<_> = scene.state.bodies[..bones].iter().map(|body| body.orientation).collect();
    let (mut low, mut high) = (vec![f64::INFINITY; bones], vec![f64::NEG_INFINITY; bones]);
    let end = play(
        &scene,
        |_| {},
        take.seconds,
        |_, state, report| {
            outside += u64::from(report.flesh_outside);
            steps += 1;
            flesh.positions(state, &mut nodes);
            flesh.surface_positions(&nodes, &mut vertices);
            let lowest = vertices.iter().map(|p: &DVec3| p.y).fold(f64::INFINITY, f64::min);
            lies = lies.min(lowest);
            shown.rise = shown.rise.max(lowest - lies.max(0.0));
            for (k, body) in state.bodies[..bones].iter().enumerate() {
                turned[k] += log(body.orientation * last[k].conjugate()).z;
                last[k] = body.orientation;
                (low[k], high[k]) = (low[k].min(body.position.y), high[k].max(body.position.y));
            }
        },
    )?;
    shown.ratio = outside as f64 / (steps as f64 * flesh.elements.len() as f64);
    let centre = |state: &State| {
        let (sum, mass) = scene.model.bodies()[..bones]
            .iter()
            .zip(&state.bodies)
            .fold((DVec3::ZERO, 0.0), |(sum, mass), (body, s)| (sum + s.position * body.mass, mass + body.mass));
        sum / mass
    };
    shown.travel = (centre(&end) - centre(&scene.state)).x.abs();
    let ends = [&scene.state, &end].map(|state| state.bodies[state.bodies.len() - 1].position);
    shown.last = ends[0].distance(ends[1]);
    let size = |of: &f64| of.abs();
    shown.turns = [turned.iter().map(size).fold(f64::INFINITY, f64::min), turned.iter().map(size).fold(0.0, f64::max)];
    let swings: Vec<f64> = low.iter().zip(&high).map(|(low, high)| high - low).collect();
    shown.swing = swings.iter().copied().fold(f64::INFINITY, f64::min) / swings[0];
    let mut worked = [0.0; 2];
    for (diagonalize, worked) in [Diagonalize::Selective, Diagonalize::Always].into_iter().zip(&mut worked) {
        let processor = Processor::start();
        play(&scene, |input| input.solver = creatures::explicit(diagonalize), take.seconds, |_, _, _| {})?;
        *worked = processor.seconds();
    }
    shown.speedup = worked[1] / worked[0];
    Ok(shown)
}

fn kim(book: &mut Book<'_>) -> Result<(), Error> {
    let mut motions = Vec::new();
    for take in &KIM {
        let shown = show(take)?;
        let command = format!("supple simulate {} --seconds {}", take.scene, take.seconds);
        let item = ("table 1", format!("{}: share of largely deformed elements", take.name));
        book.row(item, (Some(take.ratio), Some(shown.ratio)), "", (command.clone(), Both));
        let item = ("table 1", format!("{}: all elements diagonalised over those alone", take.name));
        book.row(
            item,
            (Some(take.speedup), Some(shown.speedup)),
            "×",
            ("supple bench papers --paper kim", AsPublished),
        );
        let (what, measured, unit) = match take.name {
            "worm waving" | "worm bending" => ("least swing of a bone over the head's", shown.swing, "×"),
            "worm limping" => ("way of the centre of mass", shown.travel, "m"),
            "worm rolling" => ("least turn of a bone", shown.turns[0], "rad"),
            "finger manipulation" => ("way of the ball", shown.last, "m"),
            _ => ("the skin's lowest point rises by", shown.rise, "m"),
        };
        let item = (take.figure, format!("{}: {what}", take.name));
        book.row(item, (None, Some(measured)), unit, (command, Both));
        let times: Vec<f64> = (0..6).map(|k| take.seconds * f64::from(k) / 5.0).collect();
        book.film(&format!("{}: {}", take.figure, take.name), take.scene, &times, "8,8")?;
        motions.push(shown);
    }
    let turnover = take("fish turning over", "figure 8", "fish:take=turnover", 7.4, 0.0, 0.0);
    let shown = show(&turnover)?;
    let command = format!("supple simulate {} --seconds {}", turnover.scene, turnover.seconds);
    let item = ("figure 8", "fish turning over: least turn of a bone");
    book.row(item, (None, Some(shown.turns[0])), "rad", (command, Both));
    book.film("figure 8: fish turning over", turnover.scene, &[0.0, 1.5, 3.0, 4.5, 6.0, 7.4], "8,8")?;
    let warped = show(&take("warped jump", "figure 1", "worm:take=warped", 1.0, 0.0, 0.0))?;
    for (what, rise) in [("jump", motions[0].rise), ("jump with its timing warped", warped.rise)] {
        let item = ("figure 1", format!("the worm's {what}: its lowest point rises by"));
        book.row(item, (None, Some(rise)), "m", ("cargo test --release -p supple --test takes", Both));
    }
    book.film("figure 1: the jump with its timing warped", "worm:take=warped", &[0.0, 0.1, 0.2, 0.3, 0.4, 0.5], "8,8")?;
    book.checked("figure 2", "goals of bones become commands of actuators", "--test directing", Both);
    book.checked("figure 3", "a surface in a coarse mesh, some nodes fixed to bones", "--test cage", Both);
    book.checked("figure 4", "the range of stretches is told from a cubic", "--test flesh_material", Ours);
    // DOF, bones, actuators, nodes, tetrahedra, vertices, triangles
    let sizes = [
        ("worm", [543.0, 7.0, 6.0, 224.0, 714.0, 262.0, 520.0], 0.9),
        ("fish", [258.0, 7.0, 6.0, 107.0, 415.0, 958.0, 1912.0], 0.8),
        ("finger", [82.0, 5.0, 7.0, 52.0, 119.0, 157.0, 276.0], 0.6),
    ];
    for ((name, published, limit), timed) in sizes.into_iter().zip(&creatures::TABLE) {
        let scene = open(name)?;
        let found = sizes_of(&scene, name);
        let names = ["degrees of freedom", "bones", "actuators", "nodes", "tetrahedra", "vertices", "triangles"];
        for ((what, published), found) in names.iter().zip(published).zip(found) {
            let command = "cargo test --release -p supple --test creatures";
            book.row(("table 2", format!("{name}: {what}")), (Some(published), Some(found)), "", (command, Both));
        }
        let command = format!("supple bench {name}");
        let selective = creatures::explicit(Diagonalize::Selective);
        let joint = creatures::measure(&scene, selective, timed.dt, creatures::EXPLICIT_STEPS)?;
        let directed = open(&format!("{name}:take={}", timed.take))?;
        let cartesian = creatures::measure(&directed, selective, timed.dt, creatures::EXPLICIT_STEPS)?;
        let times = [("joint", timed.joint_ms, joint), ("Cartesian", timed.cartesian_ms, cartesian)];
        for (what, published, row) in times {
            let item = ("table 2", format!("{name}: a step of {} ms under {what} control", 1e3 * timed.dt));
            book.row(item, (Some(published), Some(row.ms_per_step)), "ms", (command.clone(), AsPublished));
        }
        let points = creatures::curve(&scene)?;
        let slower = points.iter().find(|p| p.selective_ms > p.full_ms).map_or(1.0, |p| p.ratio);
        let what = format!("{name}: share of largely deformed elements from which selecting no longer pays (1: never)");
        book.row(("figure 5", what), (Some(limit), Some(slower)), "", (command, AsPublished));
        book.curve(&format!("figure 5: {name}"), || creatures::chart(name, &points))?;
        book.film(&format!("figure 6: {name}"), name, &[0.0], "20,12")?;
    }
    book.checked("figure 6", "the three models have the published sizes within a tenth", "--test creatures", Both);
    book.checked("table 3", "recursive hybrid dynamics", "--test reduced", Both);
    book.checked("table 4", "the symbols of table 3", "--test reduced", Both);
    book.checked("table 5", "recursive dynamics of mass particles", "--lib solver::reduced", Both);
    book.checked("table 6", "derivatives of hybrid dynamics, corrected", "--test reduced", Both);
    Ok(())
}

/// Degrees of freedom, bones, actuators, nodes, tetrahedra, vertices and triangles of a creature.
fn sizes_of(scene: &Scene, name: &str) -> [f64; 7] {
    let model = &scene.model;
    let Some(flesh) = model.flesh() else { return [0.0; 7] };
    let tree: usize = model.joints().iter().map(|joint| joint.mask.free()).sum();
    let loose = model.bodies().len() - model.joints().len();
    // the root of the finger is moved too
    let passive = if name == "finger" { 0 } else { 3 };
    [
        tree + 6 * loose + flesh.freedoms(),
        model.joints().len(),
        tree - passive,
        flesh.start.len(),
        flesh.elements.len(),
        flesh.surface.vertices.len(),
        flesh.surface.triangles.len(),
    ]
    .map(|count| count as f64)
}

fn bender(book: &mut Book<'_>) -> Result<(), Error> {
    book.checked("figure 1", "predict, correct, fly, correct velocities", "--test impulse", Both);
    let masks = [
        ("figure 2", "a point on a point", 3, JointMask::BALL),
        ("figure 2", "a point on a line", 2, JointMask::POINT_ON_LINE),
        ("figure 2", "a point on a plane", 1, JointMask::POINT_ON_PLANE),
        ("figure 4", "no rotation", 3, JointMask::from_bits(JointMask::RX | JointMask::RY | JointMask::RZ)),
        ("figure 4", "rotation about one axis", 2, JointMask::from_bits(JointMask::RY | JointMask::RZ)),
        ("figure 4", "rotation about two axes", 1, JointMask::from_bits(JointMask::RX)),
    ];
    for (item, what, rows, mask) in masks {
        let command = "cargo test --release -p supple --test impulse all_64_joints_move_as_solver_tree_moves_them";
        let item = (item, format!("degrees of freedom that a joint removes: {what}"));
        book.row(item, (Some(f64::from(rows)), Some(mask.rows() as f64)), "", (command, Both));
    }
    book.checked("figure 3", "impulses of a ball joint", "--test impulse", Both);
    book.checked("figure 5", "two balls, the matrix of both", "--test impulse", Both);
    let rings = open("ring:16")?;
    let loops = rings.model.topology().loops.len() as f64;
    let item = ("figure 6", "joints of a ring that are marked as closing a loop");
    book.row(item, (Some(1.0), Some(loops)), "", ("supple inspect ring:16", Both));
    let mut rows = Vec::new();
    for name in ["tree:31", "tree:63", "tree:127", "tree:255", "star:127"] {
        let scene = open(name)?;
        let free: usize = scene.model.joints().iter().map(|joint| joint.mask.rows()).sum();
        if name == "tree:127" {
            let counts = [("ball joints", 127.0, scene.model.joints().len()), ("degrees removed", 381.0, free)];
            for (what, published, count) in counts {
                book.row(
                    ("figure 7", what),
                    (Some(published), Some(count as f64)),
                    "",
                    ("supple inspect tree:127", Both),
                );
            }
        }
        for tolerance in trees::TOLERANCES {
            for variant in trees::VARIANTS {
                // the star is published at 1e-4 alone
                if name != "star:127" || tolerance == 1e-4 {
                    rows.push(trees::measure(&scene, tolerance, variant, 120)?);
                }
            }
        }
    }
    for row in &rows {
        let Some(published) = row.published_ms else { continue };
        let item = if row.variant == "system" { "table 3" } else { "table 2" };
        let what = format!("{} at {:.0e}", row.scene, row.tolerance);
        let command = format!("supple bench trees --scene {}", row.scene);
        book.row((item, what), (Some(published), Some(row.ms_per_step)), "ms", (command, AsPublished));
        if row.scene == "tree:127" && row.tolerance == 1e-6 {
            let command = "supple bench trees --scene tree:127";
            let (positions, velocities) = if row.variant == "system" { (2.0, 1.0) } else { (518.15, 745.54) };
            let words = row.variant.replace('_', " ");
            let lines = [
                ("time of a step", published, row.ms_per_step, "ms"),
                ("iterations of joints", positions, row.iterations_jc_mean, ""),
                ("iterations of velocities", velocities, row.iterations_vc_mean, ""),
            ];
            for (what, published, measured, unit) in lines {
                let item = ("table 1", format!("{what}, {words}"));
                book.row(item, (Some(published), Some(measured)), unit, (command, AsPublished));
            }
            let item = ("figure 8", format!("time of a step, {words}"));
            book.row(item, (Some(published), Some(row.ms_per_step)), "ms", (command, AsPublished));
        }
    }
    for ratio in trees::ratios(&rows) {
        let Some(published) = ratio.published_ratio else { continue };
        let what = format!("{} at {:.0e}: joint by joint over the system", ratio.scene, ratio.tolerance);
        let command = format!("supple bench trees --scene {}", ratio.scene);
        book.row(("§5", what), (Some(published), Some(ratio.ratio)), "×", (command, AsPublished));
    }
    book.curve("figure 8: time of each step, the tree of 127", || trees::chart(&rows))?;
    book.film("figure 7: the tree of 127", "tree:127", &[0.0, 0.5, 1.0, 1.5], "25,24")?;
    for (name, published) in [("car", Some(6.0)), ("walker", None)] {
        let scene = open(name)?;
        for (solver, faithful) in [(Solver::Impulse(Impulse::default()), AsPublished), (Solver::default(), Ours)] {
            let seconds = 6.0;
            let processor = Processor::start();
            let end = play(&scene, |input| input.solver = solver, seconds, |_, _, _| {})?;
            let fast = seconds / processor.seconds();
            let item = ("figure 9", format!("the {name}, contacts included: faster than real time by"));
            let command = format!("supple simulate {name} --solver {} --seconds {seconds}", solver.name());
            book.row(item, (published, Some(fast)), "×", (command, faithful));
            let gap = measure::joint_gap(&scene.model, &end).distance;
            let item = ("figure 9", format!("the {name}: widest joint at the end"));
            let command = format!("supple simulate {name} --solver {} --seconds {seconds}", solver.name());
            book.row(item, (None, Some(gap)), "m", (command, faithful));
        }
        book.film(&format!("figure 9: the {name}"), name, &[0.0, 1.5, 3.0, 4.5, 6.0], "30,16")?;
    }
    Ok(())
}

fn print(document: &Document, terminal: &Terminal) -> Result<(), Error> {
    use std::io::Write;
    let mut table = Table::new([
        ("paper", Align::Left),
        ("item", Align::Left),
        ("published", Align::Right),
        ("measured", Align::Right),
        ("unit", Align::Left),
        ("ratio", Align::Right),
        ("what", Align::Left),
    ]);
    let or_dash = |x: Option<f64>| x.map_or("–".into(), figure);
    for row in &document.rows {
        table.row([
            row.paper.name().into(),
            row.item.clone(),
            or_dash(row.published),
            or_dash(row.measured),
            row.unit.into(),
            or_dash(row.ratio),
            match row.faithful {
                Ours => format!("{} (ours)", row.what),
                AsPublished | Both => row.what.clone(),
            },
        ]);
    }
    output::print(|out| {
        writeln!(out, "{}  {}", terminal.bold("papers"), terminal.faint("ratio: measured over published"))?;
        table.write(out, terminal)?;
        writeln!(out)?;
        writeln!(out, "  {}", terminal.faint(&document.machine.words()))
    })
}

#[cfg(test)]
mod tests {
    /// Tables and figures of the papers, by their numbers.
    #[test]
    fn no_table_and_no_figure_is_missing() {
        let text = include_str!("papers.rs");
        let parts = |name: &str| {
            let start = text.find(&format!("\nfn {name}(book")).unwrap();
            let end = start + text[start..].find("\n}\n").unwrap();
            let motions = super::KIM.map(|take| format!("\"{}\"", take.figure)).join(" ");
            text[start..end].to_owned() + if name == "kim" { &motions } else { "" }
        };
        for (name, figures, tables) in
            [("hernandez", 5, 0), ("galoppo", 6, 1), ("faure", 6, 1), ("kim", 9, 6), ("bender", 9, 3)]
        {
            let of = parts(name);
            let has = |item: String| of.contains(&format!("\"{item}\"")) || of.contains(&format!("\"{item},"));
            (1..=figures).for_each(|k| assert!(has(format!("figure {k}")), "{name}, figure {k}"));
            (1..=tables).for_each(|k| assert!(has(format!("table {k}")), "{name}, table {k}"));
        }
    }
}

//! Every documented option of the command line changes a result or is refused: walked over the help of each command,
//! so that no new option is forgotten. Those of `bench` choose what is measured: they refuse what makes no sense.

mod common;

use common::{command, fresh_file, stdout, supple};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;

const COMMANDS: [&str; 8] = ["simulate", "render", "inspect", "assemble", "compare", "scenes", "rig", "view"];

/// The long options that the help of a command lists.
fn documented(of: &[&str]) -> Vec<String> {
    let help = stdout(&supple(&[of, &["--help"]].concat()));
    let starts = help.lines().map(str::trim_start).filter(|line| line.starts_with('-'));
    let mut options: Vec<String> = starts
        .filter_map(|line| line.split_whitespace().find_map(|word| word.strip_prefix("--")))
        .map(|word| word.trim_end_matches(',').to_owned())
        .filter(|word| word != "help")
        .collect();
    options.dedup();
    options
}

/// The files that tests of options read; `None`, told aloud, where the assets are not there.
struct Files {
    humanoid: PathBuf,
    robot: PathBuf,
    figure: PathBuf,
    walk: PathBuf,
    /// A scene file whose character lies in another folder.
    elsewhere: PathBuf,
    /// The figure, pushed.
    pushed: PathBuf,
}

impl Files {
    fn find() -> Option<Files> {
        let default = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/assets");
        let folder = std::env::var_os("SUPPLE_ASSETS").map_or(default, PathBuf::from);
        if !folder.is_dir() {
            assert!(std::env::var_os("SUPPLE_REQUIRE_ASSETS").is_none(), "no assets: set SUPPLE_ASSETS");
            eprintln!("no assets: the options that read files are NOT walked (set SUPPLE_ASSETS)");
            return None;
        }
        let folder = folder.canonicalize().unwrap();
        let figure = folder.join("gltf/mannequiny.glb");
        let elsewhere = fresh_file("elsewhere.toml");
        std::fs::write(&elsewhere, format!("[character]\nfile = {:?}\n", figure.display().to_string())).unwrap();
        let (pushed, copy) = (fresh_file("pushed.toml"), fresh_file("figure.glb"));
        std::fs::copy(&figure, &copy).unwrap();
        let push = "[[pushes]]\nbone = \"spine_02\"\nfrom = 0.0\nto = 0.5\nforce = [300.0, 0.0, 300.0]\n";
        let file = copy.file_name().unwrap().to_string_lossy().into_owned();
        std::fs::write(&pushed, format!("[character]\nfile = {file:?}\n{push}")).unwrap();
        Some(Files {
            humanoid: folder.join("mjcf/humanoid.xml"),
            robot: folder.join("mjcf/ant.xml"),
            walk: folder.join("bvh/cmu_02_01.bvh"),
            figure,
            elsewhere,
            pushed,
        })
    }
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

/// Words of a call with an option, and of the same call with another value or without it.
fn case(of: &str, option: &str, files: &Files) -> Option<[Vec<String>; 2]> {
    let humanoid = text(&files.humanoid);
    let (figure, walk, elsewhere) = (text(&files.figure), text(&files.walk), text(&files.elsewhere));
    let assets = text(files.figure.parent().unwrap());
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let pair = |with: &str, other: &str| Some([words(with), words(other)]);
    let added = |line: &str, more: &str| pair(&format!("{line} {more}"), line);
    let output =
        |line: &str, ending: &str| added(line, &format!("-o {}", text(&fresh_file(&format!("{of}.{ending}")))));
    let png = text(&fresh_file("option.png"));
    let gif = text(&fresh_file("option.gif"));
    let picture = format!("render chain:3 --size 80x60 -o {png}");
    let film = format!("render chain:3 --size 40x30 -o {gif}");
    match (of, option) {
        (_, "mass" | "scale" | "height") => {
            // A push shows a mass, where springs that are made for it do not.
            let pushed = text(&files.pushed);
            let line = match of {
                "render" => format!("render {pushed} --at 0.5 --size 80x60 -o {png}"),
                "simulate" => format!("simulate {figure} --seconds 0.1 --json"),
                "inspect" => format!("inspect {figure}"),
                _ => format!("rig {figure}"),
            };
            added(&line, &format!("--{option} 2.5"))
        }
        ("simulate", "fps" | "from" | "to" | "loop" | "root-motion") => {
            let value = if option == "root-motion" { "in-place" } else { "0.1" };
            let value = if option == "fps" { "24" } else { value };
            let glb = text(&fresh_file("option.glb"));
            added(&format!("simulate {figure} --track {walk} --seconds 0.3 -o {glb}"), &format!("--{option} {value}"))
        }
        (_, "allow-dir") => added(
            &format!("{} {elsewhere}", if of == "simulate" { "simulate --seconds 0.1" } else { of }),
            &format!("--allow-dir {assets}"),
        )
        .map(|[mut with, mut other]| {
            let more: &[&str] = match of {
                "render" => &["-o", png.as_str()],
                "compare" => &["--seconds", "0.05", "--only", "tree default"],
                _ => &[],
            };
            [&mut with, &mut other].into_iter().for_each(|line| line.extend(more.iter().map(|w| (*w).to_owned())));
            [with, other]
        }),
        ("simulate", "state") => added(&format!("simulate {figure} --seconds 0.3 --json"), "--state limp@0.1,blend=0"),
        ("simulate", "hits") => {
            let follow = format!("simulate {figure} --seconds 0.1 --json");
            added(&follow, "--hits -1") // refused
        }
        ("render", "state") => {
            added(&format!("render {figure} --at 0.4 --size 80x60 -o {png}"), "--state limp@0,blend=0")
        }
        ("render", "hits") => added(&format!("render {figure} --size 80x60 -o {png}"), "--hits none"), // refused
        ("simulate", "quiet") => added(&format!("simulate {figure} --seconds 0.1"), "--quiet"),
        ("simulate", "track") => added(&format!("simulate {figure} --seconds 0.2 --json"), &format!("--track {walk}")),
        ("simulate", "map") => {
            added(&format!("simulate {figure} --seconds 0.2 --json --track {walk}"), "--map nothing=Hips")
        }
        ("simulate", "keyframe") => added(&format!("simulate {humanoid} --seconds 0.1 --json"), "--keyframe squat"),
        ("simulate", "floating") => added(&format!("simulate {} --seconds 0.1", text(&files.robot)), "--floating"),
        ("simulate", "output") => output("simulate chain:3 --seconds 0.1", "csv"),
        ("simulate", "seconds") => {
            pair("simulate chain:3 --seconds 0.2 --json", "simulate chain:3 --seconds 0.1 --json")
        }
        ("simulate", "dt") => added("simulate chain:3 --seconds 0.2 --json", "--dt 1/120"),
        ("simulate", "solver") => added("simulate chain:3 --seconds 0.2 --json", "--solver impulse"),
        ("simulate" | "render", "set") => {
            let line = if of == "simulate" { "simulate chain:3 --seconds 0.2 --json" } else { picture.as_str() };
            added(line, "--set gravity=2")
        }
        ("simulate", "budget") => added("simulate lattice --solver assembly --seconds 0.1 --json", "--budget 1"),
        ("simulate", "json") => added("simulate chain:3 --seconds 0.1", "--json"),
        ("render", "quiet") => added(&picture, "--quiet"),
        ("render", "output") => output("render chain:3", "png"),
        ("render", "size") => pair(&picture, &picture.replace("80x60", "90x60")),
        ("render", "at") => added(&picture, "--at 0.4"),
        ("render", "seconds") => pair(&format!("{film} --seconds 0.2"), &format!("{film} --seconds 0.4")),
        ("render", "from") => added(&format!("{film} --seconds 0.4"), "--from 0.2"),
        ("render", "to") => added(&film, "--to 0.2"),
        ("render", "fps") => added(&format!("{film} --seconds 0.4"), "--fps 10"),
        ("render", "strip") => added(&picture, "--strip 3"),
        ("render", "camera") => added(&picture, "--camera 60,10,1"),
        ("render", "background") => added(&picture, "--background dark"),
        ("render", "layers") => added(&picture, "--layers bones"),
        ("render", "dt") => added(&format!("{picture} --at 0.5"), "--dt 1/30"),
        ("render", "solver") => added(&format!("{picture} --at 0.8"), "--solver impulse"),
        ("render", "json") => added(&picture, "--json"),
        ("inspect", "doctor") => added(&format!("inspect {figure}"), "--doctor"),
        ("inspect", "fix") => {
            added(&format!("inspect {figure} --doctor"), &format!("--fix -o {}", text(&fresh_file("fixed.toml"))))
        }
        ("inspect", "output") => output(&format!("inspect {figure} --doctor --fix"), "toml"),
        ("inspect", "all") => added("inspect chain:100", "--all"),
        ("inspect", "json") => added("inspect hand", "--json"),
        ("inspect", "quiet") => added(&format!("inspect {figure}"), "--quiet"),
        ("assemble", "output") => output("assemble lattice", "json"),
        ("assemble", "set") => added("assemble lattice --json", "--set assembly.outer=1"),
        ("assemble", "json") => added("assemble lattice", "--json"),
        ("assemble", "quiet") => added("assemble lattice", "--quiet"),
        ("compare", "seconds") => {
            pair("compare pendulum --seconds 0.1 --json", "compare pendulum --seconds 0.2 --json")
        }
        ("compare", "dt") => added("compare pendulum --seconds 0.1 --json", "--dt 1/30"),
        ("compare", "only") => {
            added("compare pendulum --seconds 0.1", "--only tree_default").map(|[mut with, other]| {
                with.iter_mut().for_each(|word| *word = word.replace("tree_default", "tree default"));
                [with, other]
            })
        }
        ("compare", "json") => added("compare pendulum --seconds 0.1", "--json"),
        ("compare", "output") => output("compare pendulum --seconds 0.1", "json"),
        ("compare", "quiet") => added("compare pendulum --seconds 0.1", "--quiet"),
        ("scenes", "json") => added("scenes", "--json"),
        ("scenes", "quiet") => added("scenes", "--quiet"),
        ("rig", "limits-from") => added(&format!("rig {figure}"), "--limits-from 0"),
        ("rig", "output") => output(&format!("rig {figure}"), "glb"),
        ("rig", "schema") => pair("rig --schema", &format!("rig {figure}")),
        ("rig", "quiet") => added(&format!("rig {figure}"), "--quiet"),
        _ => None,
    }
}

/// What came of a call: status, what it printed and said, what it wrote. Times are left out: they differ from run to run.
fn outcome(words: &[String]) -> (Option<i32>, String, String, Option<Vec<u8>>) {
    let file = words.iter().position(|w| w == "-o").map(|k| PathBuf::from(&words[k + 1]));
    file.iter().for_each(|file| _ = std::fs::remove_file(file));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let output = supple(&words);
    let plain = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let timed =
            |line: &&str| !["second", " µs", " ms", "real time", "written", "took"].iter().any(|w| line.contains(w));
        text.lines().filter(timed).collect::<Vec<_>>().join("\n")
    };
    let written = file.and_then(|file| std::fs::read(file).ok());
    (output.status.code(), plain(&output.stdout), plain(&output.stderr), written)
}

/// What the studio says when it starts, until it tells its address; it is ended then. Nothing, where it refuses to start.
fn start(more: &[&str]) -> String {
    open("pendulum", more)
}

fn open(scene: &str, more: &[&str]) -> String {
    let mut child = command(&[&["view", scene, "--no-open"], more].concat())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut told = String::new();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    while let Some(Ok(line)) = lines.next() {
        told += &line;
        if line.contains("http://") {
            break;
        }
    }
    let _ = child.kill();
    let _ = child.wait();
    told.split("key=").next().unwrap_or_default().to_owned()
}

#[test]
fn every_documented_option_changes_a_result_or_is_refused() {
    let Some(files) = Files::find() else { return };
    let (mut unknown, mut idle, mut failed, mut walked) = (Vec::new(), Vec::new(), Vec::new(), 0);
    for of in COMMANDS {
        for option in documented(&[of]) {
            let name = format!("{of} --{option}");
            walked += 1;
            if of == "view" {
                continue; // below
            }
            let Some([with, other]) = case(of, &option, &files) else {
                unknown.push(name);
                continue;
            };
            let (with, other) = (outcome(&with), outcome(&other));
            if with.0 != Some(0) && other.0 != Some(0) {
                failed.push(format!("{name}: {} {}", with.2, other.2));
            }
            // Nothing is told on standard error when there is nothing to tell, or it is no terminal.
            let quiet = option == "quiet";
            if with == other && !quiet {
                idle.push(name);
            }
        }
    }
    assert!(unknown.is_empty() && idle.is_empty(), "without a case: {unknown:?}; without effect: {idle:?}");
    assert!(failed.is_empty(), "calls that fail either way: {}", failed.join("\n"));
    assert!(walked > 50, "{walked}");
}

#[test]
fn options_of_the_studio_act() {
    let known = ["allow-dir", "mass", "scale", "height", "quiet", "listen", "port", "no-open", "journal", "no-journal"];
    let documented = documented(&["view"]);
    let unknown: Vec<&String> = documented.iter().filter(|option| !known.contains(&option.as_str())).collect();
    assert!(unknown.is_empty(), "without a case: {unknown:?}");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("options-journal");
    let _ = std::fs::remove_dir_all(&folder);
    let journal = folder.display().to_string();
    let plain = start(&["--no-journal", "--port", "47211"]);
    assert!(plain.contains("127.0.0.1:47211"), "{plain}");
    assert!(start(&["--no-journal", "--port", "47311"]).contains(":47311"));
    // Another address of this machine.
    #[cfg(target_os = "linux")]
    assert!(start(&["--no-journal", "--listen", "127.0.0.2", "--port", "47411"]).contains("127.0.0.2:47411"));
    assert!(!folder.exists());
    start(&["--journal", &journal, "--port", "47511"]);
    assert!(folder.is_dir(), "the journal is in its folder");
    // What shapes a character does nothing to a built-in scene, and a file beside none opens where its folder is allowed.
    for option in ["--mass", "--scale", "--height"] {
        assert_eq!(start(&["--no-journal", "--port", "47611", option, "2"]), "", "{option}");
    }
    if let Some(files) = Files::find() {
        let (elsewhere, assets) = (text(&files.elsewhere), text(files.figure.parent().unwrap()));
        assert_eq!(open(&elsewhere, &["--no-journal", "--port", "47711"]), "");
        assert!(open(&elsewhere, &["--no-journal", "--port", "47711", "--allow-dir", &assets]).contains(":47711"));
    }
    // Both at once would contradict each other.
    assert_eq!(supple(&["view", "--journal", &journal, "--no-journal"]).status.code(), Some(2));
}

#[test]
fn options_of_benches_refuse_what_makes_no_sense() {
    let help = stdout(&supple(&["bench", "help"]));
    let listed = help.lines().skip_while(|line| !line.starts_with("Commands:")).skip(1);
    let names =
        listed.take_while(|line| !line.is_empty()).filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names: Vec<&str> = names.filter_map(|line| line.split_whitespace().next()).filter(|n| *n != "help").collect();
    assert!(names.len() > 15, "{help}");
    let mut walked = 0;
    for bench in names {
        for option in documented(&["bench", bench]) {
            if ["quiet", "json", "quick"].contains(&option.as_str()) {
                continue; // they take no value
            }
            for value in ["nosuch", "nan", "-1", "1e308"] {
                // As much time as there is; of flesh `--steps` ends it.
                if value == "1e308"
                    && ["soak machine-seconds", "flesh seconds"].contains(&&*format!("{bench} {option}"))
                {
                    continue;
                }
                let ended = supple(&["bench", bench, &format!("--{option}={value}")]);
                let said = String::from_utf8_lossy(&ended.stderr);
                assert_eq!(ended.status.code(), Some(2), "bench {bench} --{option}={value}: {said}");
                walked += 1;
            }
        }
    }
    assert!(walked > 60, "{walked}");
}

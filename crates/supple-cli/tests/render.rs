//! `supple render`: the files it writes, opened again, and what it refuses.

mod common;

use common::{fresh_file, json, refused, stderr, supple};
use serde_json::Value;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use supple::timeline::file;
use supple::{Scene, Timeline, Work, step};

/// A picture read back.
struct Picture {
    width: usize,
    height: usize,
    pixels: Vec<[u8; 3]>,
}

impl Picture {
    fn read(path: &Path) -> Picture {
        let mut reader = png::Decoder::new(BufReader::new(File::open(path).unwrap())).read_info().unwrap();
        let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut bytes).unwrap();
        assert_eq!((info.color_type, info.bit_depth), (png::ColorType::Rgb, png::BitDepth::Eight));
        let pixels = bytes.as_chunks().0.to_vec();
        Picture { width: info.width as usize, height: info.height as usize, pixels }
    }

    /// Whether a pixel is more colourful than ground, shadow and sky are.
    fn is_body(pixel: &[u8; 3]) -> bool {
        pixel.iter().max().unwrap() - pixel.iter().min().unwrap() > 30
    }

    fn share_of_body(&self) -> f64 {
        self.pixels.iter().filter(|p| Picture::is_body(p)).count() as f64 / self.pixels.len() as f64
    }

    fn column(&self, x: usize) -> impl Iterator<Item = &[u8; 3]> {
        self.pixels.iter().skip(x).step_by(self.width)
    }
}

/// Draws into a fresh file and returns it with what was told.
fn render(name: &str, words: &[&str]) -> (PathBuf, Value) {
    let path = fresh_file(name);
    let call = [&["render"], words, &["--json", "-o", path.to_str().unwrap()]].concat();
    let told = json(&call);
    (path, told)
}

#[test]
fn a_picture_shows_the_hand() {
    let (path, told) = render("hand.png", &["hand", "--size", "320x180"]);
    let picture = Picture::read(&path);
    assert_eq!((picture.width, picture.height), (320, 180));
    // Framed to 86 % of the height or width with its shadow below, and more air than bones in its box.
    let share = picture.share_of_body();
    assert!((0.08..0.5).contains(&share), "{share}");
    // The edge of the picture is free, and bodies reach near to it on some side.
    let rows = |y: usize| picture.pixels[y * 320..][..320].iter().any(Picture::is_body);
    let columns = |x: usize| picture.column(x).any(Picture::is_body);
    assert!(!rows(0) && !rows(179) && !columns(0) && !columns(319));
    assert!((0..40).any(columns) || (0..25).any(rows));
    assert_eq!((&told["width"], &told["height"], &told["frames"]), (&320.into(), &180.into(), &1.into()));
    assert_eq!((&told["kind"], &told["scene"], &told["to"]), (&"picture".into(), &"hand".into(), &1.0.into()));
    assert_eq!(told["file"], path.to_str().unwrap());
}

#[test]
fn every_scene_can_be_drawn() {
    for scene in ["pendulum", "top", "chain:30", "strand", "plant", "tree:15", "star:15", "robot", "whip"] {
        let (path, _) = render("scene.png", &[scene, "--size", "160x120", "--at", "0.1"]);
        let picture = Picture::read(&path);
        assert!((0.0005..0.6).contains(&picture.share_of_body()), "{scene}: {}", picture.share_of_body());
    }
}

#[test]
fn the_same_call_gives_the_same_bytes() {
    let bytes = |name: &str, words: &[&str]| std::fs::read(render(name, words).0).unwrap();
    let still = ["robot", "--size", "200x200"];
    assert_eq!(bytes("same_1.png", &still), bytes("same_2.png", &still));
    let moving = ["robot", "--size", "80x80", "--seconds", "0.2"];
    assert_eq!(bytes("same_1.gif", &moving), bytes("same_2.gif", &moving));
    let later = ["robot", "--size", "200x200", "--at", "2"];
    assert_ne!(bytes("same_1.png", &still), bytes("same_2.png", &later));
}

#[test]
fn options_of_a_run_change_the_picture() {
    let picture = |words: &[&str]| Picture::read(&render("options.png", words).0).pixels;
    let call = ["chain:5", "--size", "120x120"];
    let plain = picture(&call);
    for more in [
        &["--set", "gravity=0"][..],
        &["--camera", "-60,30,1"],
        &["--camera", "29,18,0.5"],
        &["--background", "dark"],
        &["--layers", "bones,joints"],
        &["--layers", "shapes,joints"],
    ] {
        assert!(picture(&[&call[..], more].concat()) != plain, "{more:?}");
    }
    // Zoom halves what the chain covers in each direction.
    let share = |zoom: &str| {
        let words = ["pendulum", "--size", "300x300", "--camera", zoom];
        Picture::read(&render("zoom.png", &words).0).share_of_body()
    };
    let ratio = share("29,18,1") / share("29,18,0.5");
    assert!((3.6..4.4).contains(&ratio), "{ratio}");
}

/// The frames of an animation as they appear, with their delays in hundredths of a second.
fn frames(path: &Path) -> (usize, usize, Vec<(u16, Vec<u8>)>) {
    let mut options = gif::DecodeOptions::new();
    options.set_color_output(gif::ColorOutput::RGBA);
    let mut decoder = options.read_info(File::open(path).unwrap()).unwrap();
    let (width, height) = (usize::from(decoder.width()), usize::from(decoder.height()));
    let mut screen = vec![0; 4 * width * height];
    let mut shown = Vec::new();
    while let Some(frame) = decoder.read_next_frame().unwrap() {
        for (row, line) in frame.buffer.chunks_exact(4 * usize::from(frame.width)).enumerate() {
            for (column, pixel) in line.as_chunks::<4>().0.iter().enumerate().filter(|(_, p)| p[3] > 0) {
                let at = (usize::from(frame.top) + row) * width + usize::from(frame.left) + column;
                screen[4 * at..][..4].copy_from_slice(pixel);
            }
        }
        shown.push((frame.delay, screen.clone()));
    }
    (width, height, shown)
}

#[test]
fn an_animation_moves() {
    let (path, told) = render("chain.gif", &["chain:8", "--size", "120x90", "--seconds", "0.5", "--fps", "30"]);
    let (width, height, frames) = frames(&path);
    assert_eq!((width, height, frames.len()), (120, 90, 15));
    assert_eq!((&told["frames"], &told["seconds"], &told["kind"]), (&15.into(), &0.5.into(), &"animation".into()));
    // 30 a second are not whole hundredths: the delays make up for one another.
    let delays: Vec<u16> = frames.iter().map(|(delay, _)| *delay).collect();
    assert!(delays.iter().all(|d| (3..=4).contains(d)) && delays.iter().sum::<u16>() == 50, "{delays:?}");
    for (k, pair) in frames.windows(2).enumerate() {
        assert!(pair[0].1 != pair[1].1, "frames {k} and {} are the same", k + 1);
    }
    assert!(frames[0].1.as_chunks::<4>().0.iter().all(|p| p[3] == 255), "the first frame fills the screen");
}

#[test]
fn an_animation_has_the_colours_of_its_pictures() {
    // A robot that stands still for a moment: frame and picture see the same.
    let words = ["robot", "--size", "160x160"];
    let (still, _) = render("colours.png", &[&words[..], &["--at", "0"]].concat());
    let (moving, _) = render("colours.gif", &[&words[..], &["--seconds", "0.04"]].concat());
    let (_, _, frames) = frames(&moving);
    let picture = Picture::read(&still);
    let differences = picture.pixels.iter().zip(frames[0].1.as_chunks::<4>().0);
    let mean = differences.map(|(a, b)| (0..3).map(|k| f64::from(a[k].abs_diff(b[k]))).sum::<f64>() / 3.0).sum::<f64>()
        / picture.pixels.len() as f64;
    // Dithering alone moves a channel by one or two.
    assert!(mean < 3.0, "{mean}");
}

#[test]
fn a_strip_has_its_moments_side_by_side() {
    let (path, told) = render("strip.png", &["hand", "--strip", "5", "--size", "603x100", "--from", "1", "--to", "3"]);
    let picture = Picture::read(&path);
    assert_eq!((picture.width, picture.height), (603, 100));
    assert_eq!((&told["frames"], &told["from"], &told["to"]), (&5.into(), &1.0.into(), &3.0.into()));
    assert_eq!(told["seconds"], 2.0);
    // White columns part them.
    let white: Vec<usize> = (0..603).filter(|&x| picture.column(x).all(|p| *p == [255; 3])).collect();
    let gaps = white.chunk_by(|a, b| a + 1 == *b).collect::<Vec<_>>();
    assert!(gaps.len() == 4 && gaps.iter().all(|gap| gap.len() == 4), "{white:?}");
    let mut starts = vec![0];
    starts.extend(gaps.iter().map(|gap| gap[3] + 1));
    let panels: Vec<Vec<[u8; 3]>> =
        starts.iter().map(|&x| (x..x + 110).flat_map(|x| picture.column(x).copied()).collect()).collect();
    for (k, panel) in panels.iter().enumerate() {
        let body = panel.iter().filter(|p| Picture::is_body(p)).count();
        assert!(body > 300, "moment {k} shows {body} pixels of the hand");
        assert!(panels[..k].iter().all(|other| other != panel), "moment {k} is there twice");
    }
}

#[test]
fn a_take_is_shown_as_recorded() {
    // Recorded with half the gravity and long steps, for half a second.
    let scene = Scene::parse("chain:6").unwrap();
    let (mut state, mut input, mut work) = (scene.state.clone(), scene.input.clone(), Work::new(&scene.model));
    input.gravity *= 0.5;
    input.dt = 1.0 / 40.0;
    let mut timeline = Timeline::new("chain:6", &scene.model, &state, &input);
    for _ in 0..20 {
        scene.direct(state.time, &mut input);
        step(&scene.model, &input, &mut state, &mut work).unwrap();
        timeline.record(0, &input, &state);
    }
    let take = fresh_file("chain.take");
    std::fs::write(&take, file::write(&timeline, 0, "test")).unwrap();
    let take = take.to_str().unwrap();

    let size = ["--size", "150x150", "--at", "0.5"];
    let recorded = Picture::read(&render("take.png", &[&[take], &size[..]].concat()).0);
    let same = ["chain:6", "--set", "gravity=4.905", "--dt", "1/40"];
    let again = Picture::read(&render("again.png", &[&same[..], &size].concat()).0);
    // Poses are stored to a 20,000th of the character's size, a hundredth of these pixels: what is on an edge may change its shade.
    let differ = |other: &Picture| {
        let far = |(a, b): (&[u8; 3], &[u8; 3])| (0..3).any(|k| a[k].abs_diff(b[k]) > 8);
        recorded.pixels.iter().zip(&other.pixels).filter(|pair| far(*pair)).count()
    };
    assert!(differ(&again) < 20, "{} of {} pixels differ", differ(&again), again.pixels.len());
    let other = Picture::read(&render("other.png", &[&["chain:6"], &size[..]].concat()).0);
    assert!(differ(&other) > 300, "{} pixels differ", differ(&other));

    // Without times, all of it.
    let (_, told) = render("take.gif", &[take, "--size", "40x40"]);
    assert_eq!((told["frames"].as_u64(), told["seconds"].as_f64()), (Some(13), Some(0.52)));
    let path = fresh_file("late.png");
    let said = refused(&["render", take, "-o", path.to_str().unwrap(), "--at", "0.6"]);
    assert!(said.contains("cli/setting") && said.contains("0.5 s long"), "{said}");
    let said = refused(&["render", take, "-o", path.to_str().unwrap(), "--dt", "1/60"]);
    assert!(said.contains("cli/setting") && said.contains("leave out --dt"), "{said}");
}

#[test]
fn what_cannot_be_drawn_is_refused() {
    let png = fresh_file("refused.png");
    let gif = fresh_file("refused.gif");
    let (png, gif) = (png.to_str().unwrap(), gif.to_str().unwrap());
    let cases: [(&str, &[&str], &str, &str); 24] = [
        ("hand.jpg", &[], "cli/output", ".png or .gif"),
        ("hand", &[], "cli/output", ".png or .gif"),
        ("no/such/folder/hand.png", &[], "cli/output", "folder"),
        (png, &["--size", "0x100"], "cli/setting", "at least one pixel"),
        (png, &["--size", "100"], "cli/setting", "1280x720"),
        (png, &["--size", "-5x100"], "cli/setting", "1280x720"),
        (png, &["--size", "5000x5000"], "cli/setting", "16,000,000"),
        (png, &["--size", "99999999999999999999x2"], "cli/setting", "1280x720"),
        (png, &["--size", "9999999999x9999999999"], "cli/setting", "16,000,000"),
        (png, &["--at", "-1"], "cli/setting", "0 or more"),
        (png, &["--at", "inf"], "cli/setting", "finite"),
        (png, &["--at", "1e12"], "cli/setting", "the most"),
        (png, &["--from", "1"], "cli/setting", "--at"),
        (png, &["--fps", "10"], "cli/setting", ".gif"),
        (png, &["--strip", "6", "--at", "1"], "cli/setting", "--from"),
        (png, &["--strip", "20", "--size", "100x100"], "cli/setting", "240"),
        (png, &["--strip", "1"], "cli/setting", "2..=24"),
        (png, &["--strip", "4", "--from", "2", "--to", "1"], "cli/setting", "later"),
        (gif, &["--strip", "4"], "cli/setting", ".png"),
        (gif, &["--at", "1"], "cli/setting", "--from"),
        (gif, &["--seconds", "1e4"], "cli/setting", "3,000"),
        (gif, &["--fps", "0"], "cli/setting", "1..=50"),
        (png, &["--camera", "a,b"], "cli/setting", "yaw,pitch,zoom"),
        (png, &["--layers", "skin"], "cli/setting", "bones"),
    ];
    for (file, words, code, hint) in cases {
        let said = refused(&[&["render", "pendulum", "-o", file], words].concat());
        assert!(said.contains(code) && said.contains(hint), "{file} {words:?}: {said}");
    }
    assert!(refused(&["render", "pendulum"]).contains("cli/usage"));
    assert!(refused(&["render", "octopus", "-o", png]).contains("scene/unknown"));
    assert!(refused(&["render", "chain:20001", "-o", png]).contains("up to 20,000"));
    assert!(!Path::new(png).exists() && !Path::new(gif).exists(), "nothing is left behind");
}

#[test]
fn the_smallest_pictures_are_drawn_too() {
    for size in ["1x1", "1x300", "300x1", "33x31"] {
        let (path, _) = render("small.png", &["hand", "--size", size]);
        let picture = Picture::read(&path);
        assert_eq!(format!("{}x{}", picture.width, picture.height), size);
    }
    let path = fresh_file("quiet.png");
    let output = supple(&["-q", "render", "pendulum", "--size", "20x20", "-o", path.to_str().unwrap()]);
    assert!(output.status.success() && output.stderr.is_empty(), "{}", stderr(&output));
}

/// A character of a file is drawn with its textures, JPEG and PNG: the logo's blue and green on the one, the green of the hood and the skin of the face on the other.
#[test]
fn characters_of_files_wear_their_textures() {
    let Some(assets) = std::env::var_os("SUPPLE_ASSETS").map(PathBuf::from) else {
        assert!(std::env::var_os("SUPPLE_REQUIRE_ASSETS").is_none(), "SUPPLE_ASSETS names no folder");
        eprintln!("SUPPLE_ASSETS is not set: SKIPPED");
        return;
    };
    // Shares of the pixels that are clearly green, blue and of skin.
    let shares = |name: &str, file: &str, layers: &str| {
        let scene = assets.join(file).to_string_lossy().into_owned();
        let (path, _) = render(name, &[&scene, "--size", "240x240", "--at", "0", "--layers", layers]);
        let picture = Picture::read(&path);
        let share = |is: fn(i32, i32, i32) -> bool| {
            let found = picture.pixels.iter().filter(|p| is(p[0].into(), p[1].into(), p[2].into()));
            found.count() as f64 / picture.pixels.len() as f64
        };
        [
            share(|r, g, b| g > r + 25 && g > b + 25),
            share(|r, _, b| b > r + 50),
            share(|r, g, b| r > g + 25 && g > b + 10),
        ]
    };
    let [green, blue, _] = shares("man.png", "gltf/CesiumMan.glb", "mesh");
    assert!(green > 0.004 && blue > 0.004, "{green} {blue}");
    let [hood, _, skin] = shares("rogue.png", "characters/rogue-hooded.glb", "mesh");
    assert!(hood > 0.05 && skin > 0.02, "{hood} {skin}");
    // Drawn by its shapes it is another picture.
    assert_ne!(shares("shapes.png", "gltf/CesiumMan.glb", "shapes"), shares("man.png", "gltf/CesiumMan.glb", "mesh"));
}

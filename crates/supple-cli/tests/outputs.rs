//! `-o` writes a file whole or not at all: after a kill, a failed run or a full disk there is the old file or the whole new one.
//!
//! Two hundred kills at random moments for every format: `cargo test --release -p supple-cli --test outputs -- --ignored`.
#![cfg(unix)]

#[path = "../../supple-assets/tests/common/damage.rs"]
#[allow(dead_code)]
mod damage;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const OLD: &str = "what was there before\n";

/// A call that writes a file of each kind: its ending, the call, and whether bytes are those of a whole file.
type Case = (&'static str, &'static [&'static str], fn(&[u8]) -> bool);

const CASES: [Case; 12] = [
    ("csv", &["simulate", "hand", "--seconds", "0.5"], |b| ends(b, "\n") && rows_are_whole(b)),
    ("json", &["simulate", "hand", "--seconds", "0.5"], is_json),
    ("glb", &["simulate", "hand", "--seconds", "0.5"], is_glb),
    ("bvh", &["simulate", "hand", "--seconds", "0.5"], |b| frames_are_told(b)),
    ("png", &["render", "hand", "--size", "320x180"], |b| b.ends_with(b"IEND\xaeB`\x82")),
    ("gif", &["render", "chain:10", "--size", "160x90", "--seconds", "0.3"], |b| {
        b.starts_with(b"GIF89a") && b.ends_with(b";")
    }),
    ("svg", &["bench", "chain", "--links", "10,100", "--seconds", "0.05"], |b| {
        ends(b, "</svg>\n") || ends(b, "</svg>")
    }),
    ("html", &["compare", "chain:5", "--seconds", "0.1"], |b| ends(b, "</html>\n") || ends(b, "</html>")),
    ("xml", &["inspect", "hand"], |b| ends(b, "</mujoco>\n")),
    ("usda", &["simulate", "CHARACTER", "--seconds", "0.5"], |b| b.starts_with(b"#usda") && braces_are_closed(b)),
    ("vrma", &["simulate", "AVATAR", "--seconds", "0.5"], is_glb),
    ("toml", &["rig", "CHARACTER"], |b| text(b).parse::<toml::Table>().is_ok_and(|t| t.contains_key("character"))),
];

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap_or_default()
}

fn ends(bytes: &[u8], with: &str) -> bool {
    bytes.ends_with(with.as_bytes())
}

fn is_json(bytes: &[u8]) -> bool {
    serde_json::from_slice::<serde_json::Value>(bytes).is_ok()
}

fn is_glb(bytes: &[u8]) -> bool {
    bytes.starts_with(b"glTF") && bytes[8..12] == (bytes.len() as u32).to_le_bytes()
}

/// 31 frames (0.5 s and the start) of as many rows.
fn rows_are_whole(bytes: &[u8]) -> bool {
    let rows = text(bytes).lines().count() - 1;
    rows > 0 && rows.is_multiple_of(31)
}

fn braces_are_closed(bytes: &[u8]) -> bool {
    let count = |brace: u8| bytes.iter().filter(|byte| **byte == brace).count();
    ends(bytes, "}\n") && count(b'{') == count(b'}') && count(b'[') == count(b']')
}

fn frames_are_told(bytes: &[u8]) -> bool {
    let mut lines = text(bytes).lines().skip_while(|line| !line.starts_with("Frames:"));
    let told = lines.next().and_then(|line| line.split_whitespace().nth(1)?.parse::<usize>().ok());
    told == Some(lines.skip(1).count())
}

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("supple-outputs-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    /// The temporary files in it.
    fn parts(&self) -> Vec<PathBuf> {
        let names = std::fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().path());
        names.filter(|path| path.extension().is_some_and(|e| e == "part")).collect()
    }

    /// The call of a case, writing into a file that is there already.
    fn call(&self, (ending, call, _): &Case, shell: &str) -> (PathBuf, Command) {
        let output = self.0.join(format!("out.{ending}"));
        std::fs::write(&output, OLD).unwrap();
        let mut command = Command::new("bash");
        command.args(["-c", &format!("{shell} exec \"$0\" \"$@\""), env!("CARGO_BIN_EXE_supple"), "--quiet"]);
        for word in *call {
            match *word {
                "CHARACTER" => command.arg(self.0.join("hand.glb")),
                "AVATAR" => command.arg(self.0.join("strip.vrm")),
                word => command.arg(word),
            };
        }
        command.arg("-o").arg(&output).stdout(Stdio::null()).stderr(Stdio::null());
        (output, command)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The hand as a character, and an avatar of two bones.
fn with_character(folder: &Folder) {
    let human = r#","extensions":{"VRMC_vrm":{"humanoid":{"humanBones":{"hips":{"node":1},"spine":{"node":2}}}}}}"#;
    let strip = String::from_utf8(damage::small()).unwrap();
    std::fs::write(folder.0.join("strip.vrm"), strip[..strip.len() - 1].to_owned() + human).unwrap();
    let hand = folder.0.join("hand.glb");
    let call = ["--quiet", "simulate", "hand", "--seconds", "0.2", "-o"];
    let status = Command::new(env!("CARGO_BIN_EXE_supple")).args(call).arg(&hand).stdout(Stdio::null()).status();
    assert!(status.unwrap().success());
}

fn old_or_whole(path: &Path, whole: fn(&[u8]) -> bool) -> bool {
    let bytes = std::fs::read(path).unwrap();
    if bytes == OLD.as_bytes() {
        return false;
    }
    assert!(whole(&bytes), "{}: {} bytes that are neither the old file nor a whole one", path.display(), bytes.len());
    true
}

#[test]
fn every_format_is_exchanged_in_one_piece() {
    let folder = Folder::new("whole");
    with_character(&folder);
    for case in &CASES {
        let (path, mut call) = folder.call(case, "");
        assert!(call.status().unwrap().success(), "{}", case.0);
        assert!(old_or_whole(&path, case.2), "{}: it was not written", case.0);
        assert_eq!(folder.parts(), Vec::<PathBuf>::new(), "{}", case.0);
    }
}

#[test]
fn a_full_disk_leaves_the_old_file() {
    let folder = Folder::new("full");
    with_character(&folder);
    for case in &CASES {
        // No file may become longer than nothing: the first write fails, as on a full disk.
        let (path, mut call) = folder.call(case, "trap '' XFSZ; ulimit -f 0;");
        assert_eq!(call.status().unwrap().code(), Some(2), "{}", case.0);
        assert!(!old_or_whole(&path, case.2), "{}", case.0);
        assert_eq!(folder.parts(), Vec::<PathBuf>::new(), "{}: a temporary file was left", case.0);
        // The same, and the system kills the program at that write.
        let (path, mut call) = folder.call(case, "ulimit -c 0; ulimit -f 0;");
        assert_eq!(call.status().unwrap().code(), None, "{}", case.0);
        assert!(!old_or_whole(&path, case.2), "{}", case.0);
        folder.parts().iter().for_each(|part| std::fs::remove_file(part).unwrap());
    }
}

#[test]
fn links_stay_and_rights_are_kept() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let folder = Folder::new("links");
    let (path, mut call) = folder.call(&CASES[1], "");
    let target = folder.0.join("target.json");
    std::fs::rename(&path, &target).unwrap();
    std::fs::set_permissions(&target, std::fs::Permissions::from_mode(0o640)).unwrap();
    symlink("target.json", &path).unwrap();
    assert!(call.status().unwrap().success());
    assert!(path.symlink_metadata().unwrap().is_symlink());
    assert!(old_or_whole(&target, is_json));
    assert_eq!(target.metadata().unwrap().permissions().mode() & 0o777, 0o640);
}

/// By whatever names: the second would take the place of the first.
#[test]
fn one_file_by_two_names_is_refused() {
    let folder = Folder::new("names");
    let place = |name: &str| folder.0.join(name);
    std::fs::create_dir(place("in")).unwrap();
    std::os::unix::fs::symlink("a.json", place("link.csv")).unwrap();
    for (one, other) in [("a.csv", "a.csv"), ("a.csv", "./a.csv"), ("a.csv", "in/../a.csv"), ("a.json", "link.csv")] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_supple"));
        command.args(["simulate", "pendulum", "--seconds", "0.1", "-o"]).arg(place(one)).arg("-o").arg(place(other));
        let ended = command.output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.code() == Some(2) && said.contains("twice"), "{one}, {other}: {said}");
        assert!(!place(one).exists());
    }
}

#[test]
fn a_pipe_gets_what_is_written() {
    let folder = Folder::new("pipe");
    let (path, mut call) = folder.call(&CASES[0], "");
    std::fs::remove_file(&path).unwrap();
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    let mut child = call.spawn().unwrap();
    let bytes = std::fs::read(&path).unwrap();
    assert!(child.wait().unwrap().success());
    assert!(rows_are_whole(&bytes));
}

/// As anyone can put one into a folder that all may write.
#[test]
fn a_pipe_called_like_a_temporary_file_is_not_waited_for() {
    let folder = Folder::new("pipe-beside");
    let pipe = folder.0.join(".supple-1-0.part");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let (path, mut call) = folder.call(&CASES[1], "");
    let (mut child, end) = (call.spawn().unwrap(), Instant::now() + Duration::from_secs(60));
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > end {
            child.kill().unwrap();
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(child.wait().unwrap().success());
    assert!(old_or_whole(&path, is_json) && pipe.exists());
}

/// Kills the program at random moments; returns how often the old file and how often the new one was found.
fn kill(case: &Case, times: u32, folder: &Folder) -> [u32; 2] {
    let (path, mut call) = folder.call(case, "");
    let start = Instant::now();
    assert!(call.status().unwrap().success());
    let lasts = start.elapsed();
    let mut found = [0; 2];
    let mut random = 0x9E37_79B9u64;
    for turn in 0..times {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (path, mut call) = folder.call(case, "");
        let mut child = call.spawn().unwrap();
        std::thread::sleep(Duration::from_secs_f64(
            lasts.as_secs_f64() * 1.1 * (random >> 33) as f64 / (1u64 << 31) as f64,
        ));
        // Every other time as Ctrl-C does.
        if turn % 2 == 1 {
            let _ = Command::new("kill").args(["-INT", &child.id().to_string()]).stderr(Stdio::null()).status();
        } else {
            let _ = child.kill();
        }
        child.wait().unwrap();
        found[usize::from(old_or_whole(&path, case.2))] += 1;
        folder.parts().iter().for_each(|part| std::fs::remove_file(part).unwrap());
    }
    assert!(path.exists());
    found
}

#[test]
fn kills_leave_the_old_file_or_the_whole_new_one() {
    let folder = Folder::new("kills");
    with_character(&folder);
    for case in &CASES {
        kill(case, 2, &folder);
    }
}

#[test]
#[ignore = "a command of its own: two hundred kills for each format"]
fn two_hundred_kills_for_every_format() {
    let folder = Folder::new("many-kills");
    with_character(&folder);
    for case in &CASES {
        let [old, new] = kill(case, 200, &folder);
        println!(".{}: 200 kills, {old} times the old file, {new} times the whole new one", case.0);
    }
}

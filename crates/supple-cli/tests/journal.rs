//! The studio is killed in the middle of a take: at most two seconds are lost, and what is left is the run itself, bit for bit.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use supple::timeline::file::{self, TakeFile};
use supple::{Scene, Work};
use tungstenite::stream::MaybeTlsStream;
use tungstenite::{Message, WebSocket};

const SUPPLE: &str = env!("CARGO_BIN_EXE_supple");

/// A studio in a process of its own. It is killed when the test ends.
struct Studio {
    process: Child,
    /// `127.0.0.1:port`, and the key that lets in.
    address: String,
    key: String,
    socket: WebSocket<MaybeTlsStream<TcpStream>>,
}

impl Drop for Studio {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Studio {
    fn start(scene: &str, journal: &Path) -> Studio {
        Studio::start_in(&std::env::temp_dir(), scene, journal)
    }

    /// Starts it in a folder, which is also its home.
    fn start_in(home: &Path, scene: &str, journal: &Path) -> Studio {
        let mut process = Command::new(SUPPLE)
            .args(["view", scene, "--no-open", "--port", "0", "--journal"])
            .arg(journal)
            .current_dir(home)
            .env("HOME", home)
            .env("TMPDIR", home)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let (address, key) = line.trim().trim_start_matches("http://").split_once("/?key=").unwrap();
        let (address, key) = (address.to_owned(), key.to_owned());
        let (socket, _) = tungstenite::connect(format!("ws://{address}/socket?key={key}")).unwrap();
        if let MaybeTlsStream::Plain(stream) = socket.get_ref() {
            stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        }
        Studio { process, address, key, socket }
    }

    fn say(&mut self, message: Value) {
        self.socket.send(Message::text(message.to_string())).unwrap();
    }

    /// Reads frames until one has this step or a later one; returns its step.
    fn reach(&mut self, step: u32) -> u32 {
        loop {
            if let Message::Binary(frame) = self.socket.read().unwrap() {
                let now = u32::from_le_bytes(frame[16..20].try_into().unwrap());
                if now >= step {
                    return now;
                }
            }
        }
    }

    /// The first status for which this holds.
    fn status_where(&mut self, holds: impl Fn(&Value) -> bool) -> Value {
        loop {
            if let Message::Text(text) = self.socket.read().unwrap() {
                let value: Value = serde_json::from_str(&text).unwrap();
                if value["type"] == "status" && holds(&value) {
                    return value;
                }
            }
        }
    }

    /// Asks by HTTP; returns head and body.
    fn ask(&self, request: &str, body: &str) -> (String, Vec<u8>) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let (address, key, length) = (&self.address, &self.key, body.len());
        write!(
            stream,
            "{request} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {key}\r\nConnection: close\r\n\
             Content-Length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let end = answer.windows(4).position(|w| w == b"\r\n\r\n").unwrap();
        let body = answer.split_off(end + 4);
        (String::from_utf8(answer).unwrap(), body)
    }

    /// The takes as a file; it is said that they are held.
    fn save(&self) -> Vec<u8> {
        let (head, bytes) = self.ask("GET /take", "");
        let id: u64 = head.lines().find_map(|line| line.strip_prefix("x-take-id: ")).unwrap().parse().unwrap();
        let hash = bytes.iter().fold(0x811c_9dc5u32, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193));
        let word = json!({"id": id, "bytes": bytes.len(), "hash": format!("{hash:08x}")});
        let (head, _) = self.ask("POST /saved", &word.to_string());
        assert!(head.starts_with("HTTP/1.1 204"), "{head}");
        bytes
    }

    /// Asks it to end as Ctrl-C does; returns its exit status and what it said on standard error.
    #[cfg(unix)]
    fn interrupt(mut self) -> (i32, String) {
        let asked = Command::new("kill").args(["-INT", &self.process.id().to_string()]).status().unwrap();
        assert!(asked.success());
        let status = self.process.wait().unwrap();
        let mut said = String::new();
        self.process.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        (status.code().unwrap(), said)
    }
}

/// A folder of this test's own, empty.
fn folder(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("supple-cli-test-{}-{name}", std::process::id()));
    let _ = std::fs::remove_dir_all(&path);
    path
}

fn journals(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.extension().is_some_and(|ending| ending == "journal")).collect()
}

/// Every step of the take that was looked at, done again from the start of the scene, has the recorded hash.
fn assert_done_again(file: &TakeFile) {
    let (timeline, take) = (&file.timeline, file.current);
    let scene = Scene::parse(timeline.scene()).unwrap();
    let mut work = Work::new(&scene.model);
    let mut moment = timeline.seek(&scene.model, take, 0, &mut work).unwrap();
    while moment.step < timeline.takes()[take].end() {
        assert!(timeline.advance(&scene.model, take, &mut moment, &mut work).unwrap().identical, "at {}", moment.step);
    }
}

#[test]
fn a_killed_studio_loses_at_most_two_seconds() {
    let folder = folder("killed");
    let mut studio = Studio::start("robot", &folder);
    studio.say(json!({"type": "drag", "body": 4, "point": [0, 0, 0], "target": [0.4, 1.8, 0.5]}));
    studio.reach(60);
    studio.say(json!({"type": "seek", "take": 0, "step": 30}));
    studio.say(json!({"type": "drag", "body": 4, "point": [0, 0, 0], "target": [-0.4, 1.2, 0.7]}));
    studio.say(json!({"type": "play"}));
    studio.status_where(|status| status["take"] == 1 && status["playing"] == true);
    let last = studio.reach(250);
    studio.process.kill().unwrap(); // no time for last words
    studio.process.wait().unwrap();
    let left = journals(&folder);
    assert_eq!(left.len(), 1);
    let recovered = file::recover(&std::fs::read(&left[0]).unwrap()).unwrap().file;
    let (takes, current) = (recovered.timeline.takes(), recovered.current);
    assert_eq!((takes.len(), current, takes[1].first()), (2, 1, 30));
    let kept = takes[1].end();
    assert!(kept + 120 >= u64::from(last), "{last} steps were done, {kept} are left");
    assert_done_again(&recovered);

    // The next studio says so, and opens it when asked.
    let mut studio = Studio::start("hand", &folder);
    let offered = studio.status_where(|_| true)["journals"].clone();
    assert_eq!(
        (&offered[0]["scene"], &offered[0]["takes"], &offered[0]["steps"]),
        (&"robot".into(), &2.into(), &kept.into())
    );
    studio.say(json!({"type": "recover", "journal": offered[0]["journal"]}));
    studio.status_where(|status| status["take"] == 1);
    let path = folder.join("recovered.take");
    std::fs::write(&path, studio.save()).unwrap();
    let again = file::read(&std::fs::read(&path).unwrap()).unwrap();
    for step in 1..=kept {
        assert_eq!(again.timeline.hash(1, step), recovered.timeline.hash(1, step), "step {step}");
    }
    let replay = Command::new(SUPPLE).args(["simulate", "--json"]).arg(&path).output().unwrap();
    let report: Value = serde_json::from_slice(&replay.stdout).unwrap();
    assert_eq!(
        (&report["identical"], &report["same_build"], &report["same_model"]),
        (&true.into(), &true.into(), &true.into())
    );
    assert_eq!(report["state_hash"], report["recorded_hash"]);
    let hash = recovered.timeline.hash(1, kept).unwrap();
    assert_eq!(report["state_hash"], format!("{hash:016x}"));

    #[cfg(unix)]
    {
        // Saved, and nothing done since: nothing is left behind.
        let (status, said) = studio.interrupt();
        assert_eq!(status, 0, "{said}");
        assert!(
            said.contains("A session that did not finish can be recovered from the page: robot, 2 takes"),
            "{said}"
        );
        assert!(!said.contains("kept"), "{said}");
        assert_eq!(journals(&folder), Vec::<PathBuf>::new());
        // Something done by hand and not saved: it is kept, and said to be.
        let mut studio = Studio::start("hand", &folder);
        studio.say(json!({"type": "rename", "take": 0, "name": "mine"}));
        studio.status_where(|status| status["takes"][0]["name"] == "mine");
        let (status, said) = studio.interrupt();
        assert_eq!(status, 0, "{said}");
        assert!(said.contains("the next `supple view` offers them again"), "{said}");
        let left = journals(&folder);
        assert_eq!(left.len(), 1);
        let kept = file::recover(&std::fs::read(&left[0]).unwrap()).unwrap().file;
        assert_eq!(kept.timeline.takes()[0].name, "mine");
    }
    let _ = std::fs::remove_dir_all(&folder);
}

/// A studio whose take was given a name, of which a journal is on disk.
#[cfg(unix)]
fn worked_on(home: &Path, journal: &Path) -> Studio {
    let mut studio = Studio::start_in(home, "robot", journal);
    studio.say(json!({"type": "pause"}));
    studio.say(json!({"type": "rename", "take": 0, "name": "mine"}));
    studio.status_where(|status| status["takes"][0]["name"] == "mine");
    let is_there = || journals(journal).iter().any(|path| std::fs::read(path).is_ok_and(|bytes| !bytes.is_empty()));
    while !is_there() {
        std::thread::sleep(Duration::from_millis(20));
    }
    studio
}

/// The arguments of a browser are seen by every user of the machine for as long as it runs: the key is not among them.
#[cfg(target_os = "linux")]
#[test]
fn a_browser_is_started_without_the_key() {
    use std::os::unix::fs::PermissionsExt;
    let home = folder("browser");
    std::fs::create_dir_all(&home).unwrap();
    let (opener, told) = (home.join("xdg-open"), home.join("told"));
    std::fs::write(&opener, format!("#!/bin/sh\necho \"$1\" > {0}.new\nmv {0}.new {0}\n", told.display())).unwrap();
    std::fs::set_permissions(&opener, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", home.display(), std::env::var("PATH").unwrap());
    let mut process = Command::new(SUPPLE)
        .args(["view", "pendulum", "--port", "0", "--no-journal"])
        .env("PATH", path)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut printed = String::new();
    BufReader::new(process.stdout.as_mut().unwrap()).read_line(&mut printed).unwrap();
    let (address, key) = printed.trim().strip_prefix("http://").unwrap().split_once("/?key=").unwrap();
    while !told.exists() {
        assert!(process.try_wait().unwrap().is_none(), "it runs");
        std::thread::sleep(Duration::from_millis(20));
    }
    let told = std::fs::read_to_string(&told).unwrap();
    let code = told.trim().strip_prefix(&format!("http://{address}/?key=")).unwrap().to_owned();
    assert_ne!(code, key);
    let ask = |path: &str, more: &str| {
        let mut stream = TcpStream::connect(address).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{more}\r\n").unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        String::from_utf8_lossy(&answer).split_once("\r\n\r\n").unwrap().0.to_owned()
    };
    assert!(ask(&format!("/take?key={code}"), "").starts_with("HTTP/1.1 403"));
    // A page of another site that has read it uses it up for nobody.
    assert!(ask(&format!("/?key={code}"), "Sec-Fetch-Site: cross-site\r\n").starts_with("HTTP/1.1 403"));
    let first = ask(&format!("/?key={code}"), "");
    assert!(first.starts_with("HTTP/1.1 303") && first.contains(&format!("={key}; ")), "{first}");
    let second = ask(&format!("/?key={code}"), "");
    assert!(!second.contains("set-cookie") && !second.contains(key), "{second}");
    process.kill().unwrap();
    process.wait().unwrap();
    let _ = std::fs::remove_dir_all(&home);
}

#[cfg(unix)]
#[test]
fn takes_that_were_sent_and_not_acknowledged_are_kept() {
    let home = folder("sent");
    std::fs::create_dir_all(&home).unwrap();
    let journal = home.join("journal");
    let studio = worked_on(&home, &journal);
    let (head, bytes) = studio.ask("GET /take", "");
    assert!(head.starts_with("HTTP/1.1 200") && file::read(&bytes).is_ok(), "{head}");
    let (status, said) = studio.interrupt();
    assert!(status == 0 && said.contains("the next `supple view` offers them again"), "{status}: {said}");
    assert_eq!(journals(&journal).len(), 1);
    let _ = std::fs::remove_dir_all(&home);
}

#[cfg(unix)]
#[test]
fn takes_that_the_journal_does_not_take_are_written_elsewhere_and_the_end_says_so() {
    let home = folder("elsewhere");
    std::fs::create_dir_all(&home).unwrap();
    let journal = home.join("journal");
    let mut studio = worked_on(&home, &journal);
    // The folder is gone, and a file is in its place: no journal can be written any more.
    while std::fs::write(&journal, b"").is_err() {
        let _ = std::fs::remove_dir_all(&journal); // the studio may put it there again in between
    }
    studio.say(json!({"type": "step", "count": 50}));
    studio.status_where(|status| status["journal_trouble"].is_string() && status["unsaved"] == true);
    let (status, said) = studio.interrupt();
    assert_eq!(status, 1, "{said}");
    assert!(said.contains("The journal cannot be written") && said.contains("studio/journal"), "{said}");
    let rescued: Vec<_> = std::fs::read_dir(&home).unwrap().map(|entry| entry.unwrap().path()).collect();
    let rescued: Vec<_> =
        rescued.iter().filter(|path| path.extension().is_some_and(|ending| ending == "take")).collect();
    assert_eq!(rescued.len(), 1, "{said}");
    assert!(said.contains(&*rescued[0].file_name().unwrap().to_string_lossy()), "{said}");
    let takes = file::read(&std::fs::read(rescued[0]).unwrap()).unwrap();
    assert_eq!(takes.timeline.takes()[0].name, "mine");
    assert!(takes.timeline.takes()[0].end() >= 50);
    let _ = std::fs::remove_dir_all(&home);
}

/// Where nothing at all can be written any more, the end says that takes are lost, and its status too.
#[cfg(unix)]
#[test]
fn takes_that_nothing_takes_are_said_to_be_lost() {
    let home = folder("nowhere");
    std::fs::create_dir_all(&home).unwrap();
    let journal = home.join("journal");
    let mut studio = worked_on(&home, &journal);
    while std::fs::write(&home, b"").is_err() {
        let _ = std::fs::remove_dir_all(&home); // the studio may put it there again in between
    }
    studio.say(json!({"type": "step", "count": 50}));
    studio.status_where(|status| status["journal_trouble"].is_string());
    let (status, said) = studio.interrupt();
    assert_eq!(status, 1, "{said}");
    assert!(said.contains("not saved are lost") && said.contains("studio/journal"), "{said}");
    assert!(!said.contains("offers them again"), "{said}");
    let _ = std::fs::remove_file(&home);
}

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
    address: String,
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
        let mut process = Command::new(SUPPLE)
            .args(["view", scene, "--no-open", "--port", "0", "--journal"])
            .arg(journal)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().trim_start_matches("http://").trim_end_matches('/').to_owned();
        let (socket, _) = tungstenite::connect(format!("ws://{address}/socket")).unwrap();
        if let MaybeTlsStream::Plain(stream) = socket.get_ref() {
            stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        }
        Studio { process, address, socket }
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

    /// The takes as a file.
    fn save(&self) -> Vec<u8> {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        write!(stream, "GET /take HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.address).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let end = answer.windows(4).position(|w| w == b"\r\n\r\n").unwrap();
        answer.split_off(end + 4)
    }

    /// Asks it to end as Ctrl-C does; returns what it said on standard error.
    #[cfg(unix)]
    fn interrupt(mut self) -> String {
        let asked = Command::new("kill").args(["-INT", &self.process.id().to_string()]).status().unwrap();
        assert!(asked.success());
        assert!(self.process.wait().unwrap().success());
        let mut said = String::new();
        self.process.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        said
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
        let said = studio.interrupt();
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
        let said = studio.interrupt();
        assert!(said.contains("the next `supple view` offers them again"), "{said}");
        let left = journals(&folder);
        assert_eq!(left.len(), 1);
        let kept = file::recover(&std::fs::read(&left[0]).unwrap()).unwrap().file;
        assert_eq!(kept.timeline.takes()[0].name, "mine");
    }
    let _ = std::fs::remove_dir_all(&folder);
}

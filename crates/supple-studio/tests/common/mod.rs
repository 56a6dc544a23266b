//! A client of the studio, shared by the tests.
#![allow(dead_code)] // each test uses its part

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use supple::timeline::file::{self, TakeFile};
use supple_studio::{Opening, Settings, Studio};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

/// How long anything may take on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Where a studio listens: `127.0.0.1:port`.
pub(crate) fn host(address: &str) -> &str {
    address.split_once('/').unwrap().0
}

/// The key that lets in.
pub(crate) fn key(address: &str) -> &str {
    address.split_once("key=").unwrap().1
}

/// The address of a studio as these tests write it: `127.0.0.1:port/?key=…`.
pub(crate) fn address_of(studio: &Studio) -> String {
    studio.address().unwrap().trim_start_matches("http://").to_owned()
}

/// A studio at a free port, without a journal unless a folder for it is given.
pub(crate) fn settings(build: &str, journal: Option<&Path>) -> Settings {
    Settings { port: Some(0), build: build.into(), journal: journal.map(Path::to_owned), ..Settings::default() }
}

/// Starts a studio without a journal; returns its address.
pub(crate) fn start(scene: &str) -> String {
    run(Opening::scene(scene).unwrap(), "test", None).0
}

/// Starts a studio; returns its address and the task that ends it when it is aborted.
pub(crate) fn run(opening: Opening, build: &str, journal: Option<&Path>) -> (String, tokio::task::JoinHandle<()>) {
    run_with(opening, settings(build, journal))
}

pub(crate) fn run_with(opening: Opening, settings: Settings) -> (String, tokio::task::JoinHandle<()>) {
    let studio = Studio::bind(opening, settings).unwrap();
    let address = address_of(&studio);
    (address, tokio::spawn(async { studio.run().await.unwrap() }))
}

/// Asks by HTTP, with the key; returns status and body.
pub(crate) async fn ask(address: &str, method: &str, path: &str, body: &[u8]) -> (u16, Vec<u8>) {
    let (status, _, body) =
        ask_with(address, method, path, &format!("Authorization: Bearer {}\r\n", key(address)), body).await;
    (status, body)
}

/// Asks by HTTP with these lines in its head; returns status, head and body.
pub(crate) async fn ask_with(
    address: &str,
    method: &str,
    path: &str,
    lines: &str,
    body: &[u8],
) -> (u16, String, Vec<u8>) {
    let (host, length) = (host(address), body.len());
    let mut stream = TcpStream::connect(host).await.unwrap();
    let host = if lines.contains("Host:") { String::new() } else { format!("Host: {host}\r\n") };
    let head =
        format!("{method} {path} HTTP/1.1\r\n{host}{lines}Connection: close\r\nContent-Length: {length}\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let _ = stream.write_all(body).await; // who is refused may not read it
    answer(stream).await
}

/// The answer that comes on a connection, which is then closed.
pub(crate) async fn answer(mut stream: TcpStream) -> (u16, String, Vec<u8>) {
    let mut answer = Vec::new();
    let _ = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await.expect("an answer comes in time");
    let Some(end) = answer.windows(4).position(|w| w == b"\r\n\r\n") else {
        return (0, String::from_utf8_lossy(&answer).into_owned(), Vec::new());
    };
    let head = String::from_utf8_lossy(&answer[..end]).into_owned();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, head, answer[end + 4..].to_vec())
}

/// What a page says that holds these takes, as told by the head of the answer.
pub(crate) fn word(head: &str, bytes: &[u8]) -> Value {
    let id = head.lines().find_map(|line| line.strip_prefix("x-take-id: ")).unwrap().parse::<u64>().unwrap();
    let hash = bytes.iter().fold(0x811c_9dc5u32, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193));
    json!({"id": id, "bytes": bytes.len(), "hash": format!("{hash:08x}")})
}

/// Takes and the word that they are held, which was not said yet.
pub(crate) async fn delivered(address: &str) -> (Vec<u8>, Value) {
    let bearer = format!("Authorization: Bearer {}\r\n", key(address));
    let (status, head, bytes) = ask_with(address, "GET", "/take", &bearer, b"").await;
    assert_eq!(status, 200);
    let word = word(&head, &bytes);
    (bytes, word)
}

/// Saves the takes as the page does, to the last word; returns the file.
pub(crate) async fn save(address: &str) -> Vec<u8> {
    let (bytes, word) = delivered(address).await;
    let (status, said) = ask(address, "POST", "/saved", word.to_string().as_bytes()).await;
    assert_eq!(status, 204, "{}", String::from_utf8_lossy(&said));
    bytes
}

pub(crate) struct Client(pub(crate) WebSocketStream<MaybeTlsStream<TcpStream>>);

impl Client {
    pub(crate) async fn connect(address: &str) -> Client {
        Client(connect_async(format!("ws://{}/socket?key={}", host(address), key(address))).await.unwrap().0)
    }

    pub(crate) async fn say(&mut self, message: Value) {
        self.0.send(Message::text(message.to_string())).await.unwrap();
    }

    pub(crate) async fn next(&mut self) -> Message {
        tokio::time::timeout(PATIENCE, self.0.next()).await.expect("a message comes in time").unwrap().unwrap()
    }

    /// The next text message of this type.
    pub(crate) async fn told(&mut self, kind: &str) -> Value {
        loop {
            if let Message::Text(text) = self.next().await {
                let value: Value = serde_json::from_str(&text).unwrap();
                if value["type"] == kind {
                    return value;
                }
            }
        }
    }

    pub(crate) async fn frame(&mut self) -> Frame {
        loop {
            if let Message::Binary(bytes) = self.next().await {
                return Frame(bytes.to_vec());
            }
        }
    }

    /// A frame of this moment: one is asked for, as the last may have gone by.
    pub(crate) async fn frame_now(&mut self) -> Frame {
        self.say(json!({"type": "pause"})).await;
        self.frame().await
    }

    /// The first frame for which this holds.
    pub(crate) async fn frame_where(&mut self, holds: impl Fn(&Frame) -> bool) -> Frame {
        let start = Instant::now();
        loop {
            let frame = self.frame().await;
            if holds(&frame) {
                return frame;
            }
            assert!(start.elapsed() < PATIENCE, "no such frame came");
        }
    }

    /// The first status for which this holds.
    pub(crate) async fn status_where(&mut self, holds: impl Fn(&Value) -> bool) -> Value {
        let mut last = Value::Null;
        let found = async {
            loop {
                last = self.told("status").await;
                if holds(&last) {
                    return;
                }
            }
        };
        // A status that never comes is a failure with words, not a test without an end.
        let waited = tokio::time::timeout(std::time::Duration::from_secs(300), found).await;
        assert!(waited.is_ok(), "no such status within five minutes; the last was {last}");
        last
    }
}

/// A frame by the layout of docs/protocol.md.
pub(crate) struct Frame(pub(crate) Vec<u8>);

impl Frame {
    pub(crate) fn u32(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.0[at..at + 4].try_into().unwrap())
    }
    pub(crate) fn f32(&self, at: usize) -> f32 {
        f32::from_le_bytes(self.0[at..at + 4].try_into().unwrap())
    }
    /// Where it ends but for what is told of directing, without goals, and of moved obstacles, without any.
    pub(crate) fn end(&self) -> usize {
        self.0.len().saturating_sub(64)
    }
    pub(crate) fn step(&self) -> u32 {
        self.u32(16)
    }
    pub(crate) fn playing(&self) -> bool {
        self.0[2] & 1 == 1
    }
    pub(crate) fn bodies(&self) -> usize {
        self.u32(28) as usize
    }
    pub(crate) fn drags(&self) -> usize {
        self.u32(40) as usize
    }
    pub(crate) fn head(&self) -> usize {
        self.u32(92) as usize
    }
    pub(crate) fn position(&self, body: usize) -> [f32; 3] {
        [0, 4, 8].map(|k| self.f32(self.head() + 28 * body + k))
    }
    /// Gap, force, angles and torques of a joint.
    pub(crate) fn joint(&self, joint: usize) -> [f32; 8] {
        std::array::from_fn(|k| self.f32(self.head() + 28 * self.bodies() + 32 * joint + 4 * k))
    }
    /// Everything that moves, without the figures.
    pub(crate) fn poses(&self) -> &[u8] {
        &self.0[self.head()..self.head() + 28 * self.bodies()]
    }
}

/// A folder of this test's own, empty.
pub(crate) fn folder(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("supple-test-{}-{name}", std::process::id()));
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    path
}

pub(crate) fn journals(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.extension().is_some_and(|e| e == "journal") && !path.ends_with("my.journal")).collect()
}

pub(crate) async fn saved(address: &str) -> TakeFile {
    file::read(&save(address).await).unwrap()
}

/// Connects, pauses and does steps; returns the step that it stands at, too.
pub(crate) async fn paused(address: &str, steps: u32) -> (Client, u32) {
    let mut client = Client::connect(address).await;
    client.say(json!({"type": "pause"})).await;
    let mut step = client.frame_where(|frame| !frame.playing()).await.step();
    if steps > 0 {
        client.say(json!({"type": "step", "count": steps})).await;
        step = client.frame_where(|frame| frame.step() == step + steps).await.step();
    }
    (client, step)
}

/// Waits until there are so many journals.
pub(crate) async fn journals_become(folder: &Path, count: usize) {
    let start = Instant::now();
    while journals(folder).len() != count {
        assert!(start.elapsed() < PATIENCE, "{:?}", journals(folder));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Starts studios until one finds a session that did not finish: the one that left it may take a moment to end.
pub(crate) async fn find_unfinished(folder: &Path) -> Studio {
    let start = Instant::now();
    loop {
        let studio = Studio::bind(Opening::scene("pendulum").unwrap(), settings("test", Some(folder))).unwrap();
        if !studio.unfinished().is_empty() {
            return studio;
        }
        assert!(start.elapsed() < PATIENCE, "the studio before did not end");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

pub(crate) async fn seek(client: &mut Client, take: u32, step: u32) -> Frame {
    client.say(json!({"type": "seek", "take": take, "step": step})).await;
    client.frame_where(|frame| frame.step() == step && frame.u32(24) == take).await
}

/// Waits until a journal can be read and holds this.
pub(crate) async fn journal_where(folder: &Path, holds: impl Fn(&TakeFile) -> bool) -> TakeFile {
    let start = Instant::now();
    loop {
        for path in journals(folder) {
            if let Ok(recovered) = file::recover(&std::fs::read(path).unwrap_or_default())
                && holds(&recovered.file)
            {
                return recovered.file;
            }
        }
        assert!(start.elapsed() < PATIENCE, "no such journal came");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

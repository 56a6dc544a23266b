//! The server: the page, its WebSocket, and takes as files. It listens on this machine only.

use crate::journal::{Folder, Orphan, Unfinished};
use crate::protocol::{ComparisonTold, CurveTold, DifferenceTold, Request, json, refusal};
use crate::simulation::{self, Closed, Command, Copied, Opening, Published, Purpose};
use axum::Router;
use axum::body::Bytes;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::extract::{DefaultBodyLimit, Path, RawQuery, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use supple::timeline::compare::{self as comparing, Difference, JointDifference};
use supple::timeline::file as takes;
use supple::{TakeError, Work};
use supple_assets::{BakeSettings, Files, Recording, bake_scene};
use tokio::sync::{mpsc, oneshot};

/// The page, as built by `build.rs`: names, sorted, and bytes.
static PAGE: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/page.rs"));

/// The port that is tried first.
const PORT: u16 = 7411;
/// How many ports after it are tried.
const PORTS: u16 = 20;
/// The longest text message \[bytes\]: target poses of a character of some hundred trackers.
const MAX_MESSAGE: usize = 1 << 18;
/// The largest take that may be opened \[bytes\].
const MAX_TAKE: usize = 1 << 30;
/// A client that takes nothing for so long is let go.
const PATIENCE: Duration = Duration::from_secs(20);

/// A comparison of two takes has this many columns at most: more than a plot shows.
const MAX_COLUMNS: usize = 400;
/// And names this many joints.
const MAX_CURVES: usize = 5;

/// What a studio is asked to be.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The port that is tried first; `None`: 7411.
    pub port: Option<u16>,
    /// Names this program in takes: a take of another build is shown as stored. It should differ when anything differs that is
    /// computed.
    pub build: String,
    /// The folder of journals; `None`: no journal is kept and none is offered.
    pub journal: Option<PathBuf>,
    /// Which files takes that are sent may name, besides the one that the studio opens with and copies of those that were sent.
    pub files: Files,
}

/// A studio that listens.
#[derive(Debug)]
pub struct Studio {
    listener: TcpListener,
    opening: Opening,
    build: String,
    files: Files,
    journal: Option<Folder>,
    orphans: Vec<Orphan>,
    journal_trouble: Option<String>,
}

/// Why a studio cannot open.
#[derive(Debug, thiserror::Error)]
pub enum StudioError {
    /// No port could be had.
    #[error("ports {first} to {last} of 127.0.0.1 cannot be used ({error}): give another with --port [studio/port]")]
    Port {
        /// The first tried.
        first: u16,
        /// The last tried.
        last: u16,
        /// What the system said of the last.
        error: io::Error,
    },
    /// The server could not be started.
    #[error("the server cannot be started: {0} [studio/server]")]
    Server(#[from] io::Error),
    /// The takes cannot be shown.
    #[error(transparent)]
    Take(#[from] supple::TakeError),
}

impl StudioError {
    /// Stable code, listed in `docs/errors.md`.
    pub fn code(&self) -> &'static str {
        match self {
            StudioError::Port { .. } => "studio/port",
            StudioError::Server(_) => "studio/server",
            StudioError::Take(error) => error.code(),
        }
    }
}

impl Studio {
    /// Listens on 127.0.0.1, at the port asked for or the next one that is free, and looks for journals of sessions that did not finish.
    pub fn bind(opening: Opening, settings: Settings) -> Result<Studio, StudioError> {
        let listener = listen(settings.port)?;
        let files = opening.file().map_or(settings.files.clone(), |file| settings.files.with(file));
        let mut studio = Studio {
            listener,
            opening,
            build: settings.build,
            files,
            journal: None,
            orphans: Vec::new(),
            journal_trouble: None,
        };
        if let Some(path) = settings.journal {
            let found = Folder::open(&path).and_then(|folder| Ok((folder.orphans()?, folder)));
            match found {
                Ok((orphans, folder)) => (studio.orphans, studio.journal) = (orphans, Some(folder)),
                Err(error) => studio.journal_trouble = Some(format!("{}: {error}", path.display())),
            }
        }
        Ok(studio)
    }

    /// Sessions that did not finish, the newest first. The page offers them.
    pub fn unfinished(&self) -> Vec<Unfinished> {
        self.orphans.iter().map(|orphan| orphan.summary.clone()).collect()
    }

    /// Why no journal can be kept although one was asked for.
    pub fn journal_trouble(&self) -> Option<&str> {
        self.journal_trouble.as_deref()
    }

    /// Where the page is: `http://127.0.0.1:7411/`.
    pub fn address(&self) -> Result<String, StudioError> {
        Ok(format!("http://{}/", self.listener.local_addr()?))
    }

    /// Serves until the process is told to stop (Ctrl-C, or as a service is stopped).
    pub fn serve(self) -> Result<Closed, StudioError> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let result = runtime.block_on(async {
            let (app, listener, commands) = self.start()?;
            tokio::select! {
                result = axum::serve(listener, app) => result?,
                () = told_to_stop() => {}
            }
            let (reply, answer) = oneshot::channel();
            let _ = commands.send(Command::Close(reply)).await;
            Ok(answer.await.unwrap_or(Closed::Clean))
        });
        runtime.shutdown_timeout(Duration::from_millis(200));
        result
    }

    /// Serves within a runtime, until the future is dropped.
    pub async fn run(self) -> Result<(), StudioError> {
        let (app, listener, _) = self.start()?;
        Ok(axum::serve(listener, app).await?)
    }

    /// Starts the simulation and makes the server around it.
    fn start(self) -> Result<(Router, tokio::net::TcpListener, mpsc::Sender<Command>), StudioError> {
        self.listener.set_nonblocking(true)?;
        let listener = tokio::net::TcpListener::from_std(self.listener)?;
        let folder = self.journal.clone();
        let needs = simulation::Desk { build: self.build, folder: self.journal, orphans: self.orphans };
        let (commands, published) = simulation::start(self.opening, needs, tokio::runtime::Handle::current())?;
        let clients = AtomicU64::new(0);
        let desk = Arc::new(Desk { commands: commands.clone(), published, clients, folder, files: self.files });
        let app = Router::new()
            .route("/", get(|| async { file("index.html") }))
            .route("/guide", get(|| async { Redirect::to("docs/guide/studio.html") }))
            .route("/socket", get(socket))
            .route("/take", get(save).merge(post(load).layer(DefaultBodyLimit::max(MAX_TAKE))))
            .route("/baked.glb", get(baked))
            .route("/rig.toml", get(rig))
            .route("/compare/{take}/{other}", get(compare))
            .route("/{*path}", get(|Path(path): Path<String>| async move { file(&path) }))
            .layer(middleware::from_fn(guard))
            .with_state(desk);
        Ok((app, listener, commands))
    }
}

/// A port on 127.0.0.1.
fn listen(port: Option<u16>) -> Result<TcpListener, StudioError> {
    let first = port.unwrap_or(PORT);
    let last = if first == 0 { 0 } else { first.saturating_add(PORTS) };
    let mut error = None;
    for port in first..=last {
        match TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
            Ok(listener) => return Ok(listener),
            Err(e) => error = Some(e),
        }
    }
    Err(StudioError::Port { first, last, error: error.expect("at least one port was tried") })
}

/// Ends when the process is asked to: Ctrl-C; elsewhere than on Windows also the signals of a service that is stopped and of a closed terminal.
async fn told_to_stop() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let (Ok(mut terminate), Ok(mut hang_up)) = (signal(SignalKind::terminate()), signal(SignalKind::hangup()))
        else {
            let _ = tokio::signal::ctrl_c().await;
            return;
        };
        tokio::select! {
            _ = tokio::signal::ctrl_c() => {}
            _ = terminate.recv() => {}
            _ = hang_up.recv() => {}
        }
    }
    #[cfg(not(unix))]
    let _ = tokio::signal::ctrl_c().await;
}

/// What every connection needs.
struct Desk {
    commands: mpsc::Sender<Command>,
    published: Published,
    clients: AtomicU64,
    /// Where copies of files are kept that takes need again.
    folder: Option<Folder>,
    /// What takes that are sent may open.
    files: Files,
}

/// A file of the page.
fn file(path: &str) -> Response {
    let Ok(at) = PAGE.binary_search_by_key(&path, |(name, _)| name) else {
        return (StatusCode::NOT_FOUND, "there is no such page").into_response();
    };
    let kind = match path.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("jpg") => "image/jpeg",
        _ => "application/octet-stream",
    };
    let keep = if path.starts_with("assets/") { "public, max-age=31536000, immutable" } else { "no-cache" };
    ([(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, keep)], PAGE[at].1).into_response()
}

/// Refuses requests that come from elsewhere than a page of this server: a foreign `Origin`, or a `Host` that is not this machine (a
/// name of another site made to point here). Programs send no `Origin` and are let in.
async fn guard(request: axum::extract::Request, next: Next) -> Response {
    if let Err(reason) = admitted(request.headers()) {
        return (StatusCode::FORBIDDEN, reason).into_response();
    }
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    let policy =
        "default-src 'self'; img-src 'self' data: blob:; style-src 'self' 'unsafe-inline'; frame-ancestors 'none'";
    headers.insert(header::CONTENT_SECURITY_POLICY, header::HeaderValue::from_static(policy));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, header::HeaderValue::from_static("nosniff"));
    response
}

fn admitted(headers: &HeaderMap) -> Result<(), &'static str> {
    let host = headers.get(header::HOST).and_then(|h| h.to_str().ok()).ok_or("the request names no host")?;
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    if !["127.0.0.1", "localhost"].contains(&name) {
        return Err("this server answers to 127.0.0.1 and localhost only");
    }
    match headers.get(header::ORIGIN).map(|o| o.to_str()) {
        None => Ok(()),
        Some(Ok(origin)) if origin.strip_prefix("http://") == Some(host) => Ok(()),
        Some(_) => Err("pages of other sites may not reach the studio"),
    }
}

/// A copy of the takes; files and comparisons are made from it while the simulation goes on.
async fn copy(desk: &Desk, purpose: Purpose) -> Option<Copied> {
    let (reply, answer) = oneshot::channel();
    desk.commands.send(Command::Copy(purpose, reply)).await.ok()?;
    answer.await.ok()
}

async fn save(State(desk): State<Arc<Desk>>) -> Response {
    let Some(Copied { scene, timeline, take, build, .. }) = copy(&desk, Purpose::Save).await else { return stopped() };
    let name = scene.name.replace(|c: char| !(c.is_alphanumeric() || c == '_'), "-");
    let made = tokio::task::spawn_blocking(move || takes::write(&timeline, take, &build)).await;
    let Ok(bytes) = made else { return stopped() };
    let headers = [
        (header::CONTENT_TYPE, "application/octet-stream".to_owned()),
        (header::CONTENT_DISPOSITION, format!("attachment; filename=\"{name}.take\"")),
    ];
    (headers, bytes).into_response()
}

async fn load(State(desk): State<Arc<Desk>>, headers: HeaderMap, body: Bytes) -> Response {
    let name = headers.get("x-file-name").and_then(|name| name.to_str().ok()).unwrap_or("character.glb").to_owned();
    let (folder, files) = (desk.folder.clone(), desk.files.clone());
    let opened = tokio::task::spawn_blocking(move || Opening::bytes(&name, &body, folder.as_ref(), &files)).await;
    let Ok(opened) = opened else { return stopped() };
    let opening = match opened {
        Ok(opening) => Box::new(opening),
        Err((code, text)) => return (StatusCode::BAD_REQUEST, refusal(&code, text)).into_response(),
    };
    let (reply, answer) = oneshot::channel();
    if desk.commands.send(Command::Load(opening, reply)).await.is_err() {
        return stopped();
    }
    match answer.await {
        Ok(Ok(())) => StatusCode::NO_CONTENT.into_response(),
        Ok(Err((code, text))) => (StatusCode::BAD_REQUEST, refusal(&code, text)).into_response(),
        Err(_) => stopped(),
    }
}

/// The present take as an animation: on the nodes of the character's file, or of one made for the scene.
async fn baked(State(desk): State<Arc<Desk>>) -> Response {
    let Some(copied) = copy(&desk, Purpose::Look).await else { return stopped() };
    let headers = [
        (header::CONTENT_TYPE, "model/gltf-binary"),
        (header::CONTENT_DISPOSITION, "attachment; filename=\"directed.glb\""),
    ];
    match tokio::task::spawn_blocking(move || bake(&copied)).await {
        Ok(Ok(bytes)) => (headers, bytes).into_response(),
        Ok(Err(error)) => (StatusCode::BAD_REQUEST, refusal("studio/take", error.to_string())).into_response(),
        Err(_) => stopped(),
    }
}

/// Does the take again, and writes what it was.
fn bake(copied: &Copied) -> Result<Vec<u8>, TakeError> {
    let Copied { scene, timeline, take, character, .. } = copied;
    let (model, settings) = (&scene.model, BakeSettings::default());
    let mut work = Work::new(model);
    let mut recording = Recording::default();
    let mut moment = timeline.seek(model, *take, 0, &mut work)?;
    recording.add(model, &moment.input, &moment.state, None);
    while moment.step < timeline.takes()[*take].end() {
        let outcome = timeline.advance(model, *take, &mut moment, &mut work)?;
        recording.add(model, &moment.input, &moment.state, Some(&outcome.report));
    }
    let name = &timeline.takes()[*take].name;
    Ok(match character {
        Some(character) => character.bake(model, &recording, name, &settings).bytes,
        None => bake_scene(model, &recording, name, &settings).bytes,
    })
}

/// The rig of the character as a scene file.
async fn rig(State(desk): State<Arc<Desk>>) -> Response {
    let (reply, answer) = oneshot::channel();
    if desk.commands.send(Command::Rig(reply)).await.is_err() {
        return stopped();
    }
    let headers = [
        (header::CONTENT_TYPE, "application/toml"),
        (header::CONTENT_DISPOSITION, "attachment; filename=\"scene.toml\""),
    ];
    match answer.await {
        Ok(Some(text)) => (headers, text).into_response(),
        Ok(None) => {
            let text = "the scene is no character of a file".to_owned();
            (StatusCode::NOT_FOUND, refusal("studio/scene", text)).into_response()
        }
        Err(_) => stopped(),
    }
}

async fn compare(State(desk): State<Arc<Desk>>, Path(takes): Path<(usize, usize)>) -> Response {
    let Some(copied) = copy(&desk, Purpose::Look).await else { return stopped() };
    match tokio::task::spawn_blocking(move || told_comparison(&copied, takes.into())).await {
        Ok(Ok(text)) => ([(header::CONTENT_TYPE, "application/json")], text).into_response(),
        Ok(Err(error)) => (StatusCode::BAD_REQUEST, refusal("studio/take", error.to_string())).into_response(),
        Err(_) => stopped(),
    }
}

/// Two takes compared, as JSON: the joints that differ most, over time.
fn told_comparison(copied: &Copied, takes: [usize; 2]) -> Result<String, TakeError> {
    let model = &copied.scene.model;
    let compared = comparing::compare(&copied.timeline, model, takes, MAX_COLUMNS)?;
    let largest = |measure: fn(&Difference) -> f64| {
        let mut joints: Vec<_> = compared.joints.iter().collect();
        joints.sort_by(|a, b| measure(&b.largest).total_cmp(&measure(&a.largest))); // equal ones stay in their order
        let curve = |line: &JointDifference| CurveTold {
            joint: line.joint.0,
            name: &model.joint(line.joint).name,
            largest: measure(&line.largest),
            values: line.columns.iter().map(measure).collect(),
        };
        joints.into_iter().take(MAX_CURVES).map(curve).collect()
    };
    Ok(json(&ComparisonTold {
        takes,
        first: compared.first,
        last: compared.last,
        steps_per_column: compared.steps_per_column,
        times: compared.times.clone(),
        resolution: DifferenceTold { angle: compared.resolution.angle, shift: compared.resolution.shift },
        angles: largest(|difference| difference.angle),
        shifts: largest(|difference| difference.shift),
    }))
}

fn stopped() -> Response {
    (StatusCode::SERVICE_UNAVAILABLE, "the simulation has stopped: start supple again").into_response()
}

async fn socket(State(desk): State<Arc<Desk>>, RawQuery(query): RawQuery, upgrade: WebSocketUpgrade) -> Response {
    // Who still has to draw its first picture comes with its first message.
    let later = query.as_deref() == Some("later");
    // The write buffer is small on purpose: what a slow client has not taken is not kept for it.
    upgrade.max_message_size(MAX_MESSAGE).write_buffer_size(0).on_upgrade(move |socket| async move {
        let client = desk.clients.fetch_add(1, Ordering::Relaxed);
        if !later {
            let _ = desk.commands.send(Command::Come).await;
        }
        let _ = converse(socket, client, &desk).await;
        let _ = desk.commands.send(Command::Gone { client }).await;
    })
}

/// Talks with one client until it goes. Hearing and telling do not wait for one another: who reads slowly is still heard.
async fn converse(socket: WebSocket, client: u64, desk: &Desk) -> Result<(), Over> {
    let (out, incoming) = socket.split();
    let (reply, replies) = mpsc::channel(32);
    tokio::select! {
        over = hear(incoming, client, desk, reply) => over,
        over = tell(out, desk.published.clone(), replies) => over,
    }
}

/// Sends answers, and of scene, status and frame the latest, each when the message before has been taken.
async fn tell(
    mut out: SplitSink<WebSocket, Message>,
    mut published: Published,
    mut replies: mpsc::Receiver<String>,
) -> Result<(), Over> {
    let Published { scene, status, frame } = &mut published;
    scene.mark_changed();
    status.mark_changed();
    frame.mark_changed();
    loop {
        let message = tokio::select! {
            biased; // a scene before the status and frames that belong to it
            Some(text) = replies.recv() => Message::Text(text.into()),
            changed = scene.changed() => { changed?; Message::Text(scene.borrow_and_update().clone()) }
            changed = status.changed() => { changed?; Message::Text(status.borrow_and_update().clone()) }
            changed = frame.changed() => { changed?; Message::Binary(frame.borrow_and_update().clone()) }
        };
        tokio::time::timeout(PATIENCE, out.send(message)).await.map_err(|_| Over)??;
    }
}

/// Passes requests on, and answers those that make no sense. A full channel makes this client wait, and nobody else.
async fn hear(
    mut incoming: SplitStream<WebSocket>,
    client: u64,
    desk: &Desk,
    reply: mpsc::Sender<String>,
) -> Result<(), Over> {
    while let Some(message) = incoming.next().await {
        let refused = match message? {
            Message::Text(text) => match serde_json::from_str::<Request>(&text) {
                Ok(request) => {
                    let command = Command::Ask { client, request, reply: reply.clone() };
                    desk.commands.send(command).await.map_err(|_| Over)?;
                    continue;
                }
                Err(error) => refusal("studio/message", format!("the message is not understood: {error}")),
            },
            Message::Binary(_) => refusal("studio/message", "messages are JSON text"),
            Message::Close(_) => return Ok(()),
            Message::Ping(_) | Message::Pong(_) => continue,
        };
        reply.send(refused).await.map_err(|_| Over)?;
    }
    Ok(())
}

/// The conversation is over: the client went, or the simulation stopped.
struct Over;

impl From<axum::Error> for Over {
    fn from(_: axum::Error) -> Over {
        Over
    }
}

impl From<tokio::sync::watch::error::RecvError> for Over {
    fn from(_: tokio::sync::watch::error::RecvError) -> Over {
        Over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pages_of_this_server_are_admitted() {
        let ask = |host: &str, origin: Option<&str>| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, host.parse().unwrap());
            if let Some(origin) = origin {
                headers.insert(header::ORIGIN, origin.parse().unwrap());
            }
            admitted(&headers).is_ok()
        };
        assert!(ask("127.0.0.1:7411", Some("http://127.0.0.1:7411")));
        assert!(ask("localhost:7411", Some("http://localhost:7411")));
        assert!(ask("127.0.0.1:7411", None));
        assert!(!ask("127.0.0.1:7411", Some("http://127.0.0.1:8000")));
        assert!(!ask("127.0.0.1:7411", Some("https://example.org")));
        assert!(!ask("127.0.0.1:7411", Some("null")));
        assert!(!ask("example.org:7411", Some("http://example.org:7411")));
        assert!(!ask("example.org", None));
    }
}

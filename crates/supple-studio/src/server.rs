//! The server: the page, its WebSocket, and takes as files. It listens on this machine only, unless it is told otherwise; who is let in is
//! decided by `door.rs`, what a client may take by `connections.rs`.

mod cast;
mod variants;

use crate::connections::{self, BodyFault, Limits, held_body, read_body};
use crate::disk::Disk;
use crate::door::Door;
use crate::journal::{Folder, Orphan, Unfinished};
use crate::protocol::{
    ComparisonTold, CurveTold, DifferenceTold, RecentTold, Request, SavedTold, StartTold, json, refusal,
};
use crate::recent::recent_files;
use crate::simulation::{self, Closed, Command, Copied, Opening, Published, Teller};
use axum::Router;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::extract::{FromRequestParts, Path, RawQuery, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{MethodRouter, get, post};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, Ipv4Addr, TcpListener, UdpSocket};
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use supple::timeline::compare::{self as comparing, Difference, JointDifference};
use supple::timeline::{Playback, file as takes};
use supple::{TakeError, Work};
use supple_assets::{BakeSettings, Files, Recording, RigOptions, RootMotion, bake_scene, export_bvh, plain};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

/// The page, as built by `build.rs`: names, sorted, and bytes.
static PAGE: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/page.rs"));

/// The port that is tried first.
const PORT: u16 = 7411;
/// How many ports after it are tried.
const PORTS: u16 = 20;
/// The longest text message \[bytes\]: target poses of a character of some hundred trackers.
const MAX_MESSAGE: usize = 1 << 18;
/// The longest word that takes are saved \[bytes\].
const MAX_WORD: usize = 1 << 10;
/// The largest motion that is made of a recorded one in other frames \[bytes\].
const MOST_CUT: f64 = (1u64 << 30) as f64;
/// Copies of takes that were sent and may still be said to be held.
const MAX_DELIVERED: usize = 16;

/// The longest answer with stored poses \[bytes\].
const MAX_LOOK: u64 = 1 << 26;
/// A comparison of two takes has this many columns at most: more than a plot shows.
const MAX_COLUMNS: usize = 400;
/// And names this many joints.
const MAX_CURVES: usize = 5;

/// What a studio is asked to be.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The address of this machine to listen on; `None`: 127.0.0.1, which this machine alone reaches.
    pub listen: Option<IpAddr>,
    /// The port that is tried first; `None`: 7411.
    pub port: Option<u16>,
    /// Names this program in takes: a take of another build is shown as stored. It should differ when anything differs that is
    /// computed.
    pub build: String,
    /// The folder of journals; `None`: no journal is kept and none is offered.
    pub journal: Option<PathBuf>,
    /// Folders for takes that are not saved at the end and that the journal does not take, the best first.
    pub rescue: Vec<PathBuf>,
    /// Which files takes that are sent may name, besides the one that the studio opens with and copies of those that were sent.
    pub files: Files,
    /// What clients may take.
    pub limits: Limits,
    /// Whether the page begins with the gallery of scenes.
    pub gallery: bool,
}

/// A studio that listens.
#[derive(Debug)]
pub struct Studio {
    listener: TcpListener,
    door: Door,
    opening: Opening,
    build: String,
    journal: Option<Folder>,
    orphans: Vec<Orphan>,
    journal_trouble: Option<String>,
    rescue: Vec<PathBuf>,
    files: Files,
    limits: Limits,
    gallery: bool,
    recent: Vec<PathBuf>,
}

/// Why a studio cannot open.
#[derive(Debug, thiserror::Error)]
pub enum StudioError {
    /// No port could be had.
    #[error("ports {first} to {last} of {ip} cannot be used ({error}): give another with --port [studio/port]")]
    Port {
        /// The address.
        ip: IpAddr,
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
    /// Listens at the port asked for or the next one that is free, and looks for journals of sessions that did not finish.
    pub fn bind(opening: Opening, settings: Settings) -> Result<Studio, StudioError> {
        let listener = listen(settings.listen.unwrap_or(Ipv4Addr::LOCALHOST.into()), settings.port)?;
        let recent = settings.journal.as_deref().map(recent_files).unwrap_or_default();
        let folder = settings.journal.map(|path| Folder::new(&path, Disk::default()));
        let (orphans, journal_trouble) = match folder.as_ref().map(Folder::orphans) {
            None => (Vec::new(), None),
            Some(Ok(orphans)) => (orphans, None),
            Some(Err(error)) => (Vec::new(), Some(error.to_string())),
        };
        let files = opening.file().map_or(settings.files.clone(), |file| settings.files.with(file));
        Ok(Studio {
            door: Door::new(listener.local_addr()?)?,
            listener,
            opening,
            build: settings.build,
            journal: folder,
            orphans,
            journal_trouble,
            rescue: settings.rescue,
            files,
            limits: settings.limits,
            gallery: settings.gallery,
            recent,
        })
    }

    /// Sessions that did not finish, the newest first. The page offers them.
    pub fn unfinished(&self) -> Vec<Unfinished> {
        self.orphans.iter().map(|orphan| orphan.summary.clone()).collect()
    }

    /// Why the journal that was asked for cannot be kept so far. It is tried again.
    pub fn journal_trouble(&self) -> Option<&str> {
        self.journal_trouble.as_deref()
    }

    /// Where the page is, with the key that lets in: `http://127.0.0.1:7411/?key=…`. Where the studio listens on all addresses of this machine, this
    /// is the one that only the machine itself reaches.
    pub fn address(&self) -> Result<String, StudioError> {
        let ip = self.listener.local_addr()?.ip();
        Ok(self.door.address(if ip.is_unspecified() { Ipv4Addr::LOCALHOST.into() } else { ip }))
    }

    /// The same for one browser that is started with it: the page opens by it once. Arguments of programs are seen by every user of the machine.
    pub fn address_for_one(&self) -> Result<String, StudioError> {
        let ip = self.listener.local_addr()?.ip();
        Ok(self.door.address_for_one(if ip.is_unspecified() { Ipv4Addr::LOCALHOST.into() } else { ip }))
    }

    /// Where others on the network find the page, with the key; `None`: this machine alone reaches it, or has no address.
    pub fn network_address(&self) -> Result<Option<String>, StudioError> {
        let ip = self.listener.local_addr()?.ip();
        let outward = if ip.is_unspecified() { outward_address() } else { Some(ip).filter(|ip| !ip.is_loopback()) };
        Ok(outward.map(|ip| self.door.address(ip)))
    }

    /// Serves until the process is told to stop (Ctrl-C, or as a service is stopped). `teller` hears what everyone should know, as pages do.
    pub fn serve(self, teller: impl Fn(&str) + Send + 'static) -> Result<Closed, StudioError> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let limits = self.limits;
        let result = runtime.block_on(async {
            let (app, listener, commands) = self.start(Box::new(teller))?;
            tokio::select! {
                () = connections::serve(listener, app, limits) => {}
                () = told_to_stop() => {}
            }
            let (reply, answer) = oneshot::channel();
            let _ = commands.send(Command::Close(reply)).await;
            let ended = |_| io::Error::other("the simulation ended before its takes were looked after");
            Ok(answer.await.map_err(ended)?)
        });
        runtime.shutdown_timeout(Duration::from_millis(200));
        result
    }

    /// Serves within a runtime, until the future is dropped.
    pub async fn run(self) -> Result<(), StudioError> {
        let limits = self.limits;
        let (app, listener, _commands) = self.start(Box::new(|_| ()))?;
        connections::serve(listener, app, limits).await;
        Ok(())
    }

    /// Starts the simulation and makes the server around it.
    fn start(self, teller: Teller) -> Result<(Router, tokio::net::TcpListener, mpsc::Sender<Command>), StudioError> {
        self.listener.set_nonblocking(true)?;
        let listener = tokio::net::TcpListener::from_std(self.listener)?;
        let needs = simulation::Desk {
            folder: self.journal.clone(),
            orphans: self.orphans,
            recent: self.recent.clone(),
            // What was asked of the rig of the first file is not asked of others.
            files: self.files.with_rig(RigOptions::default()),
            rescue: self.rescue,
            teller,
            ..simulation::Desk::new(self.build)
        };
        let (commands, published) = simulation::start(self.opening, needs, tokio::runtime::Handle::current())?;
        let desk = Arc::new(Desk {
            commands: commands.clone(),
            published,
            clients: AtomicU64::new(0),
            folder: self.journal,
            files: self.files,
            gallery: self.gallery,
            recent: self.recent,
            delivered: Mutex::default(),
            limits: self.limits,
            sockets: Arc::new(Semaphore::new(self.limits.sockets)),
            turns: Turns::default(),
        });
        let page = Router::new()
            .route("/", get(|| async { file("index.html") }))
            .route("/guide", get(|| async { Redirect::to("docs/guide/studio.html") }))
            .route("/{*path}", get(|Path(path): Path<String>| async move { file(&path) }));
        let routes = data_routes().into_iter().fold(page, |app, (path, route)| app.route(path, route));
        let door = Arc::new(self.door);
        let app = routes.layer(middleware::from_fn_with_state(door, pass)).with_state(desk);
        Ok((app, listener, commands))
    }
}

/// All that is told or taken in, besides the files of the page.
fn data_routes() -> [(&'static str, MethodRouter<Arc<Desk>>); 15] {
    [
        ("/socket", get(socket)),
        ("/take", get(take).post(load)),
        ("/motion", post(motion)),
        ("/guest", post(cast::guest)),
        ("/variant/{take}", get(variants::variant)),
        ("/saved", post(saved)),
        ("/start", get(start_page)),
        ("/look/{take}", get(look)),
        ("/baked.glb", get(|desk, asked| baked(Format::Glb, desk, asked))),
        ("/baked.bvh", get(|desk, asked| baked(Format::Bvh, desk, asked))),
        ("/baked.usda", get(|desk, asked| baked(Format::Usda, desk, asked))),
        ("/baked.vrma", get(|desk, asked| baked(Format::Vrma, desk, asked))),
        ("/rig.toml", get(rig)),
        ("/file/{key}/{*name}", get(character_file)),
        ("/compare/{take}/{other}", get(compare)),
    ]
}

/// A port of an address.
fn listen(ip: IpAddr, port: Option<u16>) -> Result<TcpListener, StudioError> {
    let first = port.unwrap_or(PORT);
    let last = if first == 0 { 0 } else { first.saturating_add(PORTS) };
    let mut error = None;
    for port in first..=last {
        match TcpListener::bind((ip, port)) {
            Ok(listener) => return Ok(listener),
            Err(e) => error = Some(e),
        }
    }
    Err(StudioError::Port { ip, first, last, error: error.expect("at least one port was tried") })
}

/// The address by which this machine talks with others. Nothing is sent: a datagram socket only looks up its way.
fn outward_address() -> Option<IpAddr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9)).ok()?;
    socket.local_addr().ok().map(|address| address.ip()).filter(|ip| !ip.is_loopback() && !ip.is_unspecified())
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
    /// Whether the page begins with the gallery.
    gallery: bool,
    /// Files that were opened before.
    recent: Vec<PathBuf>,
    /// Copies of the takes that were sent, the latest last.
    delivered: Mutex<VecDeque<Delivered>>,
    limits: Limits,
    /// One for each WebSocket that may still come.
    sockets: Arc<Semaphore>,
    turns: Turns,
}

/// What is done for one client at a time, because each may hold as much as a session does. Files of characters are smaller, and a page asks
/// for several at once.
struct Turns {
    load: Arc<Semaphore>,
    take: Arc<Semaphore>,
    bake: Arc<Semaphore>,
    compare: Arc<Semaphore>,
    file: Arc<Semaphore>,
}

impl Default for Turns {
    fn default() -> Turns {
        let one = || Arc::new(Semaphore::new(1));
        Turns { load: one(), take: one(), bake: one(), compare: one(), file: Arc::new(Semaphore::new(4)) }
    }
}

/// A copy of the takes that was sent.
#[derive(Clone, Copy, Debug)]
struct Delivered {
    id: u64,
    /// Which takes they were.
    generation: u32,
    revision: u64,
    /// Length and FNV-1a hash of the file.
    bytes: usize,
    hash: u32,
}

/// The bytes of a file of the page.
fn of_page(path: &str) -> Option<&'static [u8]> {
    PAGE.binary_search_by_key(&path, |(name, _)| name).ok().map(|at| PAGE[at].1)
}

/// A file of the page.
fn file(path: &str) -> Response {
    let Some(bytes) = of_page(path) else {
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
    ([(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, keep)], bytes).into_response()
}

/// Whether there is a file of the page by this path; such files tell nothing of what is simulated.
fn is_of_page(path: &str) -> bool {
    matches!(path, "/" | "/guide") || path.strip_prefix('/').is_some_and(|path| of_page(path).is_some())
}

/// Every request passes here. What is not a file of the page needs the key, whatever it is; the address with the key is exchanged for a cookie, and no route
/// sees it there.
async fn pass(State(door): State<Arc<Door>>, mut request: axum::extract::Request, next: Next) -> Response {
    let (uri, open) = (request.uri(), is_of_page(request.uri().path()));
    // What is refused uses no code up.
    let exchanged = door.admit(uri, request.headers(), open).map(|()| door.exchange(uri));
    let mut response = match exchanged {
        Err(refused) => refused.into_response(),
        Ok(Some((cookie, place))) if uri.path() == "/" => {
            ([(header::SET_COOKIE, cookie)], Redirect::to(&place)).into_response()
        }
        Ok(exchanged) => {
            if let Some(place) = exchanged.and_then(|(_, place)| place.parse().ok()) {
                *request.uri_mut() = place;
            }
            next.run(request).await
        }
    };
    let headers = response.headers_mut();
    // Textures inside a file become blobs; its compressed meshes and textures are unpacked by workers made of blobs, in WebAssembly.
    let policy = "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self' blob:; \
                  connect-src 'self' blob: data:; img-src 'self' data: blob:; style-src 'self' 'unsafe-inline'; \
                  frame-ancestors 'none'";
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    headers.insert("cross-origin-resource-policy", HeaderValue::from_static("same-origin"));
    if !open {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    response
}

/// Why something is not done, as JSON.
fn refuse(status: StatusCode, code: &str, text: impl Into<String>) -> Response {
    (status, refusal(code, text)).into_response()
}

/// A copy of the takes; files and comparisons are made from it while the simulation goes on.
async fn copy(desk: &Desk) -> Option<Copied> {
    let (reply, answer) = oneshot::channel();
    desk.commands.send(Command::Copy(reply)).await.ok()?;
    answer.await.ok()
}

/// Waits for its turn.
async fn turn(turns: &Arc<Semaphore>) -> OwnedSemaphorePermit {
    turns.clone().acquire_owned().await.expect("turns are never closed")
}

/// A file to be kept; the permit is held until it is sent.
fn attachment(kind: &str, name: &str, bytes: Vec<u8>, permit: OwnedSemaphorePermit) -> Response {
    let headers = [
        (header::CONTENT_TYPE, kind.to_owned()),
        (header::CONTENT_LENGTH, bytes.len().to_string()),
        (header::CONTENT_DISPOSITION, format!("attachment; filename=\"{name}\"")),
    ];
    (headers, held_body(bytes, permit)).into_response()
}

/// All takes as a file. They count as saved when the page says that it holds them: see [`saved`].
async fn take(State(desk): State<Arc<Desk>>) -> Response {
    let permit = turn(&desk.turns.take).await;
    let Some(copied) = copy(&desk).await else { return stopped() };
    let Copied { scene, timeline, take, build, generation, revision, .. } = copied;
    let name = scene.name.replace(|c: char| !(c.is_alphanumeric() || c == '_'), "-");
    let make = move || {
        let bytes = takes::write(&timeline, take, &build);
        (fnv(&bytes), bytes)
    };
    let Ok((hash, bytes)) = tokio::task::spawn_blocking(make).await else { return stopped() };
    let id = {
        let mut delivered = desk.delivered.lock().unwrap_or_else(PoisonError::into_inner);
        let id = delivered.back().map_or(1, |last| last.id + 1);
        delivered.push_back(Delivered { id, generation, revision, bytes: bytes.len(), hash });
        if delivered.len() > MAX_DELIVERED {
            delivered.pop_front();
        }
        id
    };
    let mut response = attachment("application/octet-stream", &format!("{name}.take"), bytes, permit);
    response.headers_mut().insert("x-take-id", id.into());
    response
}

/// FNV-1a of 32 bits, which a page computes as quickly.
fn fnv(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

/// A page says that it holds takes that were sent, all of their bytes. What was recorded since is not covered.
async fn saved(State(desk): State<Arc<Desk>>, request: axum::extract::Request) -> Response {
    let body = match read_body(request, MAX_WORD, desk.limits).await {
        Ok(body) => body,
        Err(fault) => return not_read(fault, MAX_WORD),
    };
    let SavedTold { id, bytes, hash } = match serde_json::from_slice(&body) {
        Ok(told) => told,
        Err(error) => return refuse(StatusCode::BAD_REQUEST, "studio/message", format!("not understood: {error}")),
    };
    let of_id = |delivered: &VecDeque<Delivered>| delivered.iter().find(|sent| sent.id == id).copied();
    let sent = of_id(&desk.delivered.lock().unwrap_or_else(PoisonError::into_inner));
    let Some(sent) = sent.filter(|sent| sent.bytes == bytes && format!("{:08x}", sent.hash) == hash) else {
        let text = "these are not the takes that were sent: save them again";
        return refuse(StatusCode::CONFLICT, "studio/saved", text);
    };
    let (reply, answer) = oneshot::channel();
    let command = Command::Saved { generation: sent.generation, revision: sent.revision, reply };
    let _ = desk.commands.send(command).await;
    match answer.await {
        Ok(true) => StatusCode::NO_CONTENT.into_response(),
        Ok(false) => {
            let text = "another scene is open by now: the takes that were sent stay in the journal as well";
            refuse(StatusCode::CONFLICT, "studio/saved", text)
        }
        Err(_) => stopped(),
    }
}

/// A body that was not read, and why.
fn not_read(fault: BodyFault, most: usize) -> Response {
    let text = match fault {
        BodyFault::TooLarge => format!("it has more than the {most} bytes that are taken"),
        BodyFault::TooSlow => "it came too slowly: try again".to_owned(),
        BodyFault::Broken => "the connection broke before its end".to_owned(),
    };
    refuse(fault.status(), "studio/upload", text)
}

async fn load(State(desk): State<Arc<Desk>>, request: axum::extract::Request) -> Response {
    // One at a time, from the first byte until it is open: together they hold no more than one may.
    let Ok(_turn) = desk.turns.load.clone().try_acquire_owned() else {
        let text = "another file is being opened: try again when that is done";
        return refuse(StatusCode::SERVICE_UNAVAILABLE, "studio/busy", text);
    };
    let name = request.headers().get("x-file-name").and_then(|name| name.to_str().ok());
    let name = name.unwrap_or("character.glb").to_owned();
    let body = match read_body(request, desk.limits.upload, desk.limits).await {
        Ok(body) => body,
        Err(fault) => return not_read(fault, desk.limits.upload),
    };
    let (folder, files) = (desk.folder.clone(), desk.files.clone());
    let opened = tokio::task::spawn_blocking(move || Opening::bytes(&name, &body, folder.as_ref(), &files)).await;
    let Ok(opened) = opened else { return stopped() };
    let opening = match opened {
        Ok(opening) => Box::new(opening),
        Err((code, text)) => return refuse(StatusCode::BAD_REQUEST, &code, text),
    };
    let (reply, answer) = oneshot::channel();
    if desk.commands.send(Command::Load(opening, reply)).await.is_err() {
        return stopped();
    }
    done(answer).await
}

/// The motion of a file as a clip of the present character.
async fn motion(State(desk): State<Arc<Desk>>, request: axum::extract::Request) -> Response {
    let Ok(_turn) = desk.turns.load.clone().try_acquire_owned() else {
        let text = "another file is being opened: try again when that is done";
        return refuse(StatusCode::SERVICE_UNAVAILABLE, "studio/busy", text);
    };
    let told = ["x-file-name", "x-clip"]
        .map(|name| request.headers().get(name).and_then(|name| name.to_str().ok()).map(str::to_owned));
    let [name, clip] = told;
    let name = name.unwrap_or_else(|| "motion.bvh".into());
    let body = match read_body(request, desk.limits.upload, desk.limits).await {
        Ok(body) => body,
        Err(fault) => return not_read(fault, desk.limits.upload),
    };
    let Some(copied) = copy(&desk).await else { return stopped() };
    let (folder, generation) = (desk.folder.clone(), copied.generation);
    let take = move || simulation::read_motion(&copied, &name, clip.as_deref(), &body, folder.as_ref());
    let Ok(taken) = tokio::task::spawn_blocking(take).await else { return stopped() };
    let (motion, clip) = match taken {
        Ok(taken) => taken,
        Err((code, text)) => return refuse(StatusCode::BAD_REQUEST, &code, text),
    };
    let (reply, answer) = oneshot::channel();
    if desk.commands.send(Command::Motion { generation, motion, clip, reply }).await.is_err() {
        return stopped();
    }
    done(answer).await
}

/// What the simulation made of a file that was sent to it.
async fn done(answer: oneshot::Receiver<Result<(), (String, String)>>) -> Response {
    match answer.await {
        Ok(Ok(())) => StatusCode::NO_CONTENT.into_response(),
        Ok(Err((code, text))) => refuse(StatusCode::BAD_REQUEST, &code, text),
        Err(_) => stopped(),
    }
}

/// What stands after the `?` of an address: numbers, `true` and words by their names.
fn asked<T: serde::de::DeserializeOwned>(words: Option<&str>) -> Result<T, String> {
    let pairs = words.unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
    let value = |text: &str| serde_json::from_str(text).unwrap_or_else(|_| serde_json::Value::from(text));
    let pair = |pair: &str| pair.split_once('=').map_or((pair.into(), true.into()), |(k, v)| (k.into(), value(v)));
    serde_json::from_value(serde_json::Value::Object(pairs.map(pair).collect()))
        .map_err(|e| format!("not understood: {e}"))
}

/// What a baked motion may be.
#[derive(Clone, Copy, Debug)]
enum Format {
    Glb,
    Bvh,
    Usda,
    Vrma,
}

/// How a motion is baked: the part of it \[s\], frames a second, whether it is closed to a loop and over how long, where its travel goes, whether all takes come.
#[derive(Clone, Debug, Default, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
struct BakeAsked {
    from: Option<f64>,
    to: Option<f64>,
    fps: Option<f64>,
    #[serde(rename = "loop")]
    seam: Option<f64>,
    root: Option<RootTold>,
    all: bool,
    /// Whose motion: 0 is the scene's own character, guests come after it.
    figure: usize,
}

/// Where travel along the ground goes.
#[derive(Clone, Copy, Debug, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
enum RootTold {
    Hips,
    Root,
    InPlace,
}

impl BakeAsked {
    /// What is wrong with it, if anything.
    fn check(&self) -> Result<(), String> {
        let within = |name: &str, value: Option<f64>, low: f64, high: f64| match value {
            Some(x) if !(low..=high).contains(&x) => {
                Err(format!("{name} is {}: give {} to {}", plain(x), plain(low), plain(high)))
            }
            _ => Ok(()),
        };
        within("from", self.from, 0.0, 1e6)?;
        within("to", self.to, 0.0, 1e6)?;
        within("fps", self.fps, 1.0, 1000.0)?;
        within("loop", self.seam, 0.001, 1e3)?;
        match (self.from, self.to) {
            (Some(from), Some(to)) if from >= to => {
                Err(format!("from {} s is not before to {} s", plain(from), plain(to)))
            }
            _ => Ok(()),
        }
    }

    /// The part of a motion that is asked for.
    fn cut(&self, recording: Recording) -> Result<Recording, String> {
        let end = recording.seconds();
        let (from, to) = (self.from.unwrap_or(0.0), self.to.unwrap_or(end));
        if let Some(late) = [from, to].into_iter().find(|time| *time > end + 1e-6) {
            return Err(format!("the motion ends at {end:.3} s, before {} s", plain(late)));
        }
        if from >= to {
            return Err(format!("the motion ends at {end:.3} s, where it is to begin"));
        }
        if let Some(seam) = self.seam.filter(|seam| *seam > to - from) {
            return Err(format!("a loop of {} s is longer than the motion, {:.3} s", plain(seam), to - from));
        }
        let frames = self.fps.map_or(0.0, |fps| (to - from) * fps);
        if frames * recording.bytes_of_frame() as f64 > MOST_CUT {
            return Err(format!(
                "{frames:.0} frames of this motion are too many to be baked here: ask for fewer a second"
            ));
        }
        let whole = self.fps.is_none() && self.from.is_none() && self.to.is_none();
        Ok(if whole { recording } else { recording.cut(from, to, self.fps) })
    }
}

/// The present take, or all, as a motion for other programs.
async fn baked(format: Format, State(desk): State<Arc<Desk>>, RawQuery(words): RawQuery) -> Response {
    let asked = match asked::<BakeAsked>(words.as_deref()).and_then(|asked| asked.check().map(|()| asked)) {
        Ok(asked) => asked,
        Err(what) => return refuse(StatusCode::BAD_REQUEST, "studio/value", what),
    };
    let Ok(permit) = desk.turns.bake.clone().try_acquire_owned() else {
        let text = "a take is being baked already: try again when that is done";
        return refuse(StatusCode::SERVICE_UNAVAILABLE, "studio/busy", text);
    };
    let Some(copied) = copy(&desk).await else { return stopped() };
    let (steps, most) = (copied.timeline.takes()[copied.take].end(), desk.limits.bake);
    if recorded_bytes(&copied, &meant(&copied, asked.all)).is_none_or(|bytes| bytes > most) {
        let text = format!(
            "the take of {steps} steps is too long to be baked here: save it, and use `supple simulate FILE.take -o FILE.glb`"
        );
        return refuse(StatusCode::PAYLOAD_TOO_LARGE, "studio/size", text);
    }
    let (kind, ending) = match format {
        Format::Glb => ("model/gltf-binary", "glb"),
        Format::Bvh => ("text/plain", "bvh"),
        Format::Usda => ("text/plain", "usda"),
        Format::Vrma => ("model/gltf-binary", "vrma"),
    };
    let name = format!("{}.{ending}", download_name(&copied, asked.all));
    // Who goes away ends the bake; the turn is free when it has ended.
    let wanted = Wanted(Arc::new(AtomicBool::new(true)));
    let still = wanted.0.clone();
    let made = tokio::task::spawn_blocking(move || (bake(&copied, format, &asked, &still), permit)).await;
    match made {
        Ok((Ok(bytes), permit)) => attachment(kind, &name, bytes, permit),
        Ok((Err(error), _)) => refuse(StatusCode::BAD_REQUEST, "studio/take", error),
        Err(_) => stopped(),
    }
}

/// The takes that are meant: the present one, or all that are there.
fn meant(copied: &Copied, all: bool) -> Vec<usize> {
    let takes = copied.timeline.takes();
    if all { (0..takes.len()).filter(|k| !takes[*k].is_removed()).collect() } else { vec![copied.take] }
}

/// What a download is called: the file or scene, and the take.
fn download_name(copied: &Copied, all: bool) -> String {
    let plain = |text: &str| text.replace(|c: char| !(c.is_alphanumeric() || c == '_'), "-");
    let scene = copied.scene.name.rsplit(['/', '\\']).next().unwrap_or_default();
    let take = if all { "all takes" } else { &copied.timeline.takes()[copied.take].name };
    plain(&format!("{} {take}", scene.replace(".glb", "").replace(".gltf", "").replace(".vrm", "").replace(".fbx", "")))
}

/// True for as long as somebody waits for an answer.
struct Wanted(Arc<AtomicBool>);

impl Drop for Wanted {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

/// What the recordings of takes would hold.
fn recorded_bytes(Copied { scene, timeline, .. }: &Copied, takes: &[usize]) -> Option<usize> {
    let model = &scene.model;
    let surface = model.flesh().map_or(0, |flesh| flesh.surface.vertices.len());
    let surface = surface + model.skin().map_or(0, |skin| skin.nodes());
    let frame = 64 * model.bodies().len() + 24 * surface + 64;
    let steps: u64 = takes.iter().map(|take| timeline.takes()[*take].end() + 1).sum();
    usize::try_from(steps).ok()?.checked_mul(frame)
}

/// Does a take again while somebody wants it.
fn record(Copied { scene, timeline, .. }: &Copied, take: usize, wanted: &AtomicBool) -> Result<Recording, TakeError> {
    let model = &scene.model;
    let mut work = Work::new(model);
    let mut recording = Recording::default();
    let mut moment = timeline.seek(model, take, 0, &mut work)?;
    recording.add(model, &moment.input, &moment.state, None);
    while moment.step < timeline.takes()[take].end() && wanted.load(Ordering::Relaxed) {
        let outcome = timeline.advance(model, take, &mut moment, &mut work)?;
        recording.add(model, &moment.input, &moment.state, Some(&outcome.report));
    }
    Ok(recording)
}

/// Does the takes again while somebody wants them, and writes what they were; or what is wrong.
fn bake(copied: &Copied, format: Format, asked: &BakeAsked, wanted: &AtomicBool) -> Result<Vec<u8>, String> {
    let Copied { scene, timeline, guests, .. } = copied;
    let guest = asked.figure.checked_sub(1).map(|k| scene.guests().get(k).zip(guests.get(k)));
    let (model, character) = match &guest {
        None => (&scene.model, copied.character.as_ref()),
        Some(Some((_, player))) => (&player.imported.scene.bare().model, Some(&player.character)),
        Some(None) => return Err(format!("there is no character {} in the scene", asked.figure)),
    };
    let root = match asked.root {
        None | Some(RootTold::Hips) => RootMotion::Hips,
        Some(RootTold::Root) => RootMotion::Root,
        Some(RootTold::InPlace) => RootMotion::InPlace,
    };
    let settings = BakeSettings { root, seam: asked.seam, ..BakeSettings::default() };
    if character.is_none() && (asked.seam.is_some() || root != RootMotion::Hips) {
        return Err("loops and travel are for characters, and the scene is none".into());
    }
    if matches!(format, Format::Bvh | Format::Usda) && (asked.seam.is_some() || root != RootMotion::Hips) {
        return Err("loops and travel are written into .glb and .vrma alone".into());
    }
    if model.skin().is_some() && asked.seam.is_some() {
        return Err("a loop does not close soft skin: leave it out".into());
    }
    if asked.all && !matches!((format, character), (Format::Glb, Some(_))) {
        return Err("all takes together are for a character as .glb".into());
    }
    let mut clips = Vec::new();
    for take in meant(copied, asked.all) {
        let recording = record(copied, take, wanted).map_err(|e| e.to_string())?;
        if !wanted.load(Ordering::Relaxed) {
            return Ok(Vec::new()); // nobody reads it
        }
        // A guest's motion is told where its own file would be.
        let recording = match &guest {
            Some(Some((seat, _))) => recording.of(seat.bodies.clone(), seat.place.inverse()),
            _ => recording,
        };
        clips.push((timeline.takes()[take].name.clone(), asked.cut(recording)?));
    }
    let (name, recording) = &clips[0];
    let avatar = |what: &str| character.ok_or_else(|| format!("{what} is written of characters alone"));
    Ok(match (format, character) {
        (Format::Glb, Some(character)) => {
            let clips: Vec<(&str, &Recording)> = clips.iter().map(|(name, clip)| (&**name, clip)).collect();
            character.bake_clips(model, &clips, &settings).bytes
        }
        (Format::Glb, None) => bake_scene(model, recording, name, &settings).bytes,
        (Format::Bvh, _) => export_bvh(model, recording).0.write().into_bytes(),
        (Format::Usda, _) => avatar("USD")?.usda(model, recording, name).map_err(|e| e.to_string())?.text.into_bytes(),
        (Format::Vrma, _) => {
            avatar("a .vrma")?.vrma(model, recording, name, &settings).map_err(|e| e.to_string())?.bytes
        }
    })
}

/// What the start page shows.
async fn start_page(State(desk): State<Arc<Desk>>) -> Response {
    let line = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        RecentTold { name, folder: path.parent().unwrap_or(path).to_string_lossy().into_owned() }
    };
    json(&StartTold { gallery: desk.gallery, recent: desk.recent.iter().map(line).collect() }).into_response()
}

/// Every how many steps poses are looked at.
#[derive(Clone, Copy, Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct LookAsked {
    every: NonZeroU32,
}

/// The stored poses of a take, for curves, trails and ghosts: first step, steps apart, how many, bodies; then seven numbers a body.
async fn look(State(desk): State<Arc<Desk>>, Path(take): Path<usize>, RawQuery(words): RawQuery) -> Response {
    let every = match asked::<LookAsked>(words.as_deref()) {
        Ok(asked) => u64::from(asked.every.get()),
        Err(what) => return refuse(StatusCode::BAD_REQUEST, "studio/value", what),
    };
    let permit = turn(&desk.turns.compare).await;
    let Some(copied) = copy(&desk).await else { return stopped() };
    // It was removed between the frame that told of it and this, or another scene was opened.
    let Some(told) = copied.timeline.takes().get(take).filter(|take| !take.is_removed()) else {
        return StatusCode::NO_CONTENT.into_response();
    };
    let (end, bodies) = (told.end(), copied.scene.model.bodies().len());
    let rows = end / every + 1;
    let bytes = rows.saturating_mul(28 * bodies as u64);
    if bytes > MAX_LOOK {
        let text = "so many poses are not sent at once: ask for every tenth step";
        return refuse(StatusCode::PAYLOAD_TOO_LARGE, "studio/size", text);
    }
    let read = move || {
        let mut out = Vec::with_capacity(16 + bytes as usize);
        for number in [0, every as u32, rows as u32, bodies as u32] {
            out.extend(number.to_le_bytes());
        }
        let mut playback = Playback::default();
        for row in 0..rows {
            copied.timeline.look(take, row * every, &mut playback)?;
            for body in 0..bodies {
                let pose = playback.pose(body);
                let numbers = pose.translation.to_array().into_iter().chain(pose.rotation.to_array());
                out.extend(numbers.flat_map(|x| (x as f32).to_le_bytes()));
            }
        }
        Ok::<_, TakeError>(out)
    };
    match tokio::task::spawn_blocking(read).await {
        Ok(Ok(bytes)) => {
            let headers = [
                (header::CONTENT_TYPE, "application/octet-stream".to_owned()),
                (header::CONTENT_LENGTH, bytes.len().to_string()),
            ];
            (headers, held_body(bytes, permit)).into_response()
        }
        Ok(Err(error)) => refuse(StatusCode::BAD_REQUEST, "studio/take", error.to_string()),
        Err(_) => stopped(),
    }
}

/// The file of a character that this session has opened, or what that file names beside itself; nothing else of the disk.
async fn character_file(State(desk): State<Arc<Desk>>, Path((key, name)): Path<(String, String)>) -> Response {
    let (reply, answer) = oneshot::channel();
    let fingerprint = u64::from_str_radix(&key, 16).unwrap_or(0);
    if desk.commands.send(Command::Character(fingerprint, reply)).await.is_err() {
        return stopped();
    }
    let Ok(character) = answer.await else { return stopped() };
    let permit = turn(&desk.turns.file).await;
    let read = move || {
        let character = character?;
        let own = character.source().file_name().is_some_and(|own| *own == *name);
        if own { Some(character.drawn()) } else { character.beside(&name) }
    };
    match tokio::task::spawn_blocking(read).await {
        Ok(Some(bytes)) => {
            let kind = (header::CONTENT_TYPE, "application/octet-stream".to_owned());
            let headers = [kind, (header::CONTENT_LENGTH, bytes.len().to_string())];
            (headers, held_body(bytes, permit)).into_response()
        }
        Ok(None) => (StatusCode::NOT_FOUND, "this session has opened no such file").into_response(),
        Err(_) => stopped(),
    }
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
        Ok(None) => refuse(StatusCode::NOT_FOUND, "studio/scene", "the scene is no character of a file"),
        Err(_) => stopped(),
    }
}

async fn compare(State(desk): State<Arc<Desk>>, Path(takes): Path<(usize, usize)>) -> Response {
    let permit = turn(&desk.turns.compare).await;
    let Some(copied) = copy(&desk).await else { return stopped() };
    match tokio::task::spawn_blocking(move || (told_comparison(&copied, takes.into()), permit)).await {
        Ok((Ok(text), _)) => ([(header::CONTENT_TYPE, "application/json")], text).into_response(),
        Ok((Err(error), _)) => refuse(StatusCode::BAD_REQUEST, "studio/take", error.to_string()),
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

async fn socket(State(desk): State<Arc<Desk>>, request: axum::extract::Request) -> Response {
    // Who still has to draw its first picture comes with its first message.
    let later = request.uri().query().is_some_and(|query| query.split('&').any(|part| part == "later"));
    let upgrade = match WebSocketUpgrade::from_request_parts(&mut request.into_parts().0, &()).await {
        Ok(upgrade) => upgrade,
        Err(rejection) => return rejection.into_response(),
    };
    let Ok(permit) = desk.sockets.clone().try_acquire_owned() else {
        let text = "there are too many pages and programs in this studio: close some";
        return refuse(StatusCode::SERVICE_UNAVAILABLE, "studio/busy", text);
    };
    // The write buffer is small on purpose: what a slow client has not taken is not kept for it.
    upgrade.max_message_size(MAX_MESSAGE).max_frame_size(MAX_MESSAGE).write_buffer_size(0).on_upgrade(
        move |socket| async move {
            let client = desk.clients.fetch_add(1, Ordering::Relaxed);
            if !later {
                let _ = desk.commands.send(Command::Come).await;
            }
            let _ = converse(socket, client, &desk).await;
            let _ = desk.commands.send(Command::Gone { client }).await;
            drop(permit);
        },
    )
}

/// Talks with one client until it goes. Hearing and telling do not wait for one another: who reads slowly is still heard.
async fn converse(socket: WebSocket, client: u64, desk: &Desk) -> Result<(), Over> {
    let (out, incoming) = socket.split();
    let (reply, replies) = mpsc::channel(32);
    tokio::select! {
        over = hear(incoming, client, desk, reply) => over,
        over = tell(out, desk.published.clone(), replies, desk.limits) => over,
    }
}

/// Sends answers, and of scene, status and frame the latest, each when the message before has been taken.
async fn tell(
    mut out: SplitSink<WebSocket, Message>,
    mut published: Published,
    mut replies: mpsc::Receiver<String>,
    limits: Limits,
) -> Result<(), Over> {
    let mut asked = tokio::time::interval(limits.silence / 3);
    asked.reset();
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
            _ = asked.tick() => Message::Ping(Default::default()), // whoever is there answers
            changed = frame.changed() => { changed?; Message::Binary(frame.borrow_and_update().clone()) }
        };
        tokio::time::timeout(limits.patience, out.send(message)).await.map_err(|_| Over)??;
    }
}

/// Passes requests on, and answers those that make no sense. A full channel makes this client wait, and nobody else.
async fn hear(
    mut incoming: SplitStream<WebSocket>,
    client: u64,
    desk: &Desk,
    reply: mpsc::Sender<String>,
) -> Result<(), Over> {
    while let Some(message) = tokio::time::timeout(desk.limits.silence, incoming.next()).await.map_err(|_| Over)? {
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
mod tests;

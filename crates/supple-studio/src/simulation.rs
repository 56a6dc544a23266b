//! The simulation: one thread that owns scene, state, input and takes, paced to real time.
//!
//! When the machine is too slow, simulated time runs slower than real time; steps are never left out and never pile up.

mod directing;
mod doctor;
mod poking;
mod posing;
mod shares;
mod takes;
#[cfg(test)]
mod tests;
mod things;
mod tones;

use crate::control::LevelTold;
use crate::describe::{Dress, describe};
use crate::disk::Disk;
use crate::edits::{Begun, Edit, History, What};
use crate::frame::{self, Puller, Shown};
use crate::journal::{self, Folder, Journal, Orphan, Takes};
use crate::protocol::{
    self, Change, ContactsTold, JointChange, Notice, Request, Settings, Status, TargetPose, json, refusal,
};
use axum::body::Bytes;
use axum::extract::ws::Utf8Bytes;
use poking::Poke;
use shares::{Shares, Wish};
use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};
use supple::contact::Penalty;
use supple::glam::{DQuat, DVec3};
use supple::model::MOST_LENGTH;
use supple::skin::Grab;
use supple::solver::Impulses;
use supple::solver::assembly::Budget;
use supple::timeline::Playback;
use supple::timeline::file::{self, TakeFile};
use supple::tone::Play;
use supple::{
    BodyId, Drag, Fork, Grade, Input, JointInput, Model, Moment, Pose, Quality, Reduced, Report, Run, Scene, Solver,
    StepError, TakeError, Target, Timeline, Tones, Twist, Watch, Work, measure, step,
};
use supple_assets::doctor::Diagnosis;
use supple_assets::{
    Cast, ChangedBone, Character, Digest, FileError, Files, Imported, InputFile, MOST_MOTIONS, Made, Note, Player,
    Recipe, RigOptions, SENT, Source, TakesFrom, ThingTold, furnished,
};
use takes::{Moved, takes_told, why_stored};
use tokio::sync::{mpsc, oneshot, watch};
pub(crate) use tones::Event;

/// The largest scene that the page is asked to draw.
pub const MAX_BODIES: usize = 20_000;
/// Takes of one session stop growing here \[bytes\].
const MAX_TAKE_BYTES: usize = 1 << 30;
/// Up to this many bodies the energy is measured at every step.
const ENERGY_AT_EVERY_STEP: usize = 500;
/// Pulls of all clients together.
const MAX_DRAGS: usize = 64;
/// Frames are this far apart at least: more than a screen shows is not made.
const FRAME_INTERVAL: Duration = Duration::from_micros(8_000);
/// How far simulated time may lag before it gives up catching up.
const MAX_LAG: Duration = Duration::from_millis(50);
/// Commands that are heard between two steps, so that a flood of them does not stop the run.
const COMMANDS_A_STEP: usize = 256;
/// The journal is written this often: what happened since is lost in a crash.
const JOURNAL_INTERVAL: Duration = Duration::from_millis(500);
/// Over this time the pace is measured.
const PACE_WINDOW: Duration = Duration::from_millis(500);

/// What a studio begins with.
#[derive(Debug)]
pub struct Opening {
    scene: Scene,
    /// What is drawn around the bodies of a file's scene, and the character whose bones may be changed.
    dress: Dress,
    /// How the scene is made again.
    recipe: Recipe,
    /// Its takes, at the end of the one that was being looked at; `None`: the scene begins.
    takes: Option<TakeFile>,
    /// What was put into the scene.
    things: Vec<ThingTold>,
}

impl Opening {
    /// A built-in scene at its start.
    pub fn of_scene(scene: Scene) -> Opening {
        let recipe = Recipe::new(&scene.name);
        Opening { scene, dress: Dress::default(), recipe, takes: None, things: Vec::new() }
    }

    /// A built-in scene with what was put into it.
    pub fn of_furnished((scene, things, cast): (Scene, Vec<ThingTold>, Cast)) -> Opening {
        let opening = Opening::of_scene(scene);
        Opening { dress: Dress { cast, ..opening.dress }, things, ..opening }
    }

    /// The scene of a file at its start.
    pub fn of_file(made: Made) -> Opening {
        let Made { recipe, imported: Imported { scene, meshes, notes, clips, things, cast, .. }, character } = made;
        let fingerprint = character.as_ref().map(Character::fingerprint);
        let dress = Dress { meshes, notes, clips, character, fingerprint, cast };
        Opening { scene, dress, recipe, takes: None, things }
    }

    /// Takes of the scene.
    #[must_use]
    pub fn with_takes(self, takes: TakeFile) -> Opening {
        // A built-in scene has of its takes what was put into it; a file has that already.
        let told = Recipe::parse(takes.timeline.scene()).ok().filter(|_| self.recipe.file().is_none());
        Opening { takes: Some(takes), recipe: told.unwrap_or(self.recipe), ..self }
    }

    /// The file that it came from.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.recipe.file()
    }

    /// The model that is opened.
    pub fn model(&self) -> &Model {
        &self.scene.model
    }

    /// Opens a built-in scene by its name.
    pub fn scene(name: &str) -> Result<Opening, (String, String)> {
        // The size stands first after the colon: what is too large is not built first.
        let size = name.split_once(':').and_then(|(_, rest)| rest.split(',').next()?.trim().parse().ok());
        Opening::check_size(size.unwrap_or(0))?;
        let scene = Scene::parse(name).map_err(|e| (e.code().to_owned(), e.to_string()))?;
        Opening::of_scene(scene).checked()
    }

    /// Opens the bytes of a file that was sent: a character (.glb, .vrm, .fbx, or .gltf with its data inside) or takes. `name` is that of the file. Takes
    /// of a character need its file again: a copy is kept in `folder`.
    pub(crate) fn bytes(
        name: &str,
        bytes: &[u8],
        folder: Option<&Folder>,
        files: &Files,
    ) -> Result<Opening, (String, String)> {
        let is_fbx = name.to_lowercase().ends_with(".fbx");
        if !is_fbx && !bytes.starts_with(b"glTF") && !bytes.trim_ascii_start().starts_with(b"{") {
            let files = folder.map_or(files.clone(), |folder| files.with(&folder.kept_files()));
            return Opening::of(read_takes(bytes)?, &files, TakesFrom::Sent);
        }
        let character = Character::from_bytes(Path::new(name), bytes.to_vec()).map_err(told)?;
        let mut imported = character.imported(name).map_err(told)?;
        let recipe = match folder.map(|folder| folder.keep_file(name, bytes)) {
            Some(Ok(path)) => Recipe { digest: Some(Digest::of(bytes)), ..Recipe::of_file(&path.to_string_lossy()) },
            Some(Err(error)) => {
                let text = format!("no copy of it could be kept ({error}): its takes need the file beside them");
                imported.notes.push(Note { code: "import/copy", part: name.to_owned(), text });
                Recipe::new(name)
            }
            None => Recipe::new(name),
        };
        Opening::of_file(Made { recipe, imported, character: Some(character) }).checked()
    }

    /// Opens a file on this machine that the user has named.
    fn path(path: &Path, files: &Files) -> Result<Opening, (String, String)> {
        if path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("take")) {
            let beside = TakesFrom::Folder(path.parent().unwrap_or(Path::new("")));
            return Opening::of(read_takes(files.open(path).map_err(told)?.bytes())?, files, beside);
        }
        let made = Recipe::of_file(&path.to_string_lossy()).make(files).map_err(told)?;
        Opening::of_file(made).checked()
    }

    /// Opens the bytes of a `.take` file. A file that they name is not opened.
    pub fn takes(bytes: &[u8]) -> Result<Opening, (String, String)> {
        Opening::of(read_takes(bytes)?, &Files::default(), TakesFrom::Sent)
    }

    /// Opens takes with the scene or the file that they name.
    pub(crate) fn of(takes: TakeFile, files: &Files, from: TakesFrom<'_>) -> Result<Opening, (String, String)> {
        let recipe = Recipe::parse(takes.timeline.scene()).map_err(told)?;
        if recipe.file().is_none() {
            let scene = Opening::scene(&recipe.source)?.scene;
            let furnished = recipe.furnish_for(&scene, files, from).map_err(told)?;
            return Opening::of_furnished(furnished).with_takes(takes).checked();
        }
        let made = recipe.make_for(files, &takes.timeline, from).map_err(told)?;
        Opening::of_file(made).with_takes(takes).checked()
    }

    fn checked(self) -> Result<Opening, (String, String)> {
        Opening::check_size(self.scene.model.bodies().len())?;
        Ok(self)
    }

    fn check_size(bodies: usize) -> Result<(), (String, String)> {
        if bodies <= MAX_BODIES {
            return Ok(());
        }
        let what = format!("the scene has {bodies} bodies, the studio shows up to {MAX_BODIES}: ask for fewer");
        Err(("studio/size".into(), what))
    }
}

fn read_takes(bytes: &[u8]) -> Result<TakeFile, (String, String)> {
    file::read(bytes).map_err(|e| (e.code().to_owned(), e.to_string()))
}

/// What is wrong with a file, as code and text.
fn told(error: FileError) -> (String, String) {
    (error.code.to_owned(), error.to_string())
}

/// The motion of a file that was sent, on the character of a stage: what names it, a copy being kept in `folder`, and the clip that it became.
pub(crate) fn read_motion(
    copied: &Copied,
    name: &str,
    clip: Option<&str>,
    bytes: &[u8],
    folder: Option<&Folder>,
) -> Result<(String, Arc<supple::Motion>), (String, String)> {
    let Some(character) = &copied.character else {
        let text = "the scene is no character of a file: open one, then drop a motion for it";
        return Err(("studio/value".into(), text.into()));
    };
    let sent = InputFile::received(Path::new(name), bytes.to_vec()).map_err(told)?;
    let source = Source::read(sent, clip).map_err(told)?;
    let mut imported = character.imported(name).map_err(told)?;
    imported.clips.clone_from(&copied.clips);
    character.add_motion(&mut imported, &source).map_err(told)?;
    let Some(taken) = imported.clips.last().cloned() else {
        return Err(("file/clip".into(), format!("{name} has no motion: give another file")));
    };
    let file = keep(name, bytes, folder)?;
    Ok((clip.map_or(file.clone(), |clip| format!("{file}#{clip}")), taken))
}

/// The character of a file that was sent, and what names it, a copy being kept in `folder`.
pub(crate) fn read_guest(
    name: &str,
    bytes: &[u8],
    folder: Option<&Folder>,
) -> Result<(String, Character), (String, String)> {
    let character = Character::from_bytes(Path::new(name), bytes.to_vec()).map_err(told)?;
    Ok((keep(name, bytes, folder)?, character))
}

/// Keeps a copy of a file that was sent, which takes of it will need, and returns what names it.
fn keep(name: &str, bytes: &[u8], folder: Option<&Folder>) -> Result<String, (String, String)> {
    let Some(folder) = folder else {
        // What is not kept has no path: a name that a client chose is never opened here.
        return Ok(format!("{SENT}{}", Path::new(name).file_name().unwrap_or_default().to_string_lossy()));
    };
    let kept = folder.keep_file(name, bytes).map_err(|error| {
        let what = format!("no copy of {name} can be kept, without which its takes could not be opened again: {error}");
        (
            "studio/copy".to_owned(),
            format!("{what}; make room in the folder of the journal, or start with --no-journal"),
        )
    })?;
    Ok(kept.to_string_lossy().into_owned())
}

/// What reaches the simulation.
pub(crate) enum Command {
    /// A client asks for something; refusals go back to it alone.
    Ask { client: u64, request: Request, reply: mpsc::Sender<String> },
    /// A client has come: who looks sees the scene from its start.
    Come,
    /// A client is gone: its pulls end.
    Gone { client: u64 },
    /// A copy of the takes.
    Copy(oneshot::Sender<Copied>),
    /// A page holds the takes of a stage as they were at a revision. The answer: whether they are those of the present stage.
    Saved { generation: u32, revision: u64, reply: oneshot::Sender<bool> },
    /// The character of the scene, or of one that was open before it, by its fingerprint; `None`: there is none.
    Character(u64, oneshot::Sender<Option<Character>>),
    /// The rig of the character as a scene file; `None`: the scene is no character.
    Rig(oneshot::Sender<Option<String>>),
    /// A file replaces scene and takes.
    Load(Box<Opening>, oneshot::Sender<Result<(), (String, String)>>),
    /// The character of a stage has taken on a motion from elsewhere, as a clip; `motion` names its file.
    Motion {
        generation: u32,
        motion: String,
        clip: Arc<supple::Motion>,
        reply: oneshot::Sender<Result<(), (String, String)>>,
    },
    /// Another character, or a thing of a file, comes into the scene; `file` names it.
    Guest {
        file: String,
        character: Box<Character>,
        as_prop: bool,
        reply: oneshot::Sender<Result<(), (String, String)>>,
    },
    /// The doctor has looked at the model of a stage.
    Examined { generation: u32, diagnosis: Box<Diagnosis> },
    /// The studio ends. Tells whether a journal is left behind.
    Close(oneshot::Sender<Closed>),
    /// A mistake of our own.
    #[cfg(test)]
    Stumble,
    /// Whether all that was done is in the journal.
    #[cfg(test)]
    AskSettled(oneshot::Sender<bool>),
}

/// A copy of the takes; it shares what does not change any more.
pub(crate) struct Copied {
    pub(crate) scene: Arc<Scene>,
    pub(crate) timeline: Timeline,
    pub(crate) take: usize,
    pub(crate) build: String,
    /// Which takes these are, to be named when they are saved.
    pub(crate) generation: u32,
    pub(crate) revision: u64,
    /// The character whose nodes the motion belongs to.
    pub(crate) character: Option<Character>,
    /// The clips that it may follow.
    pub(crate) clips: Vec<Arc<supple::Motion>>,
    /// By guest: its character.
    pub(crate) guests: Vec<Arc<Player>>,
}

/// What became of takes that were not saved when a studio ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Closed {
    /// How many journals keep such takes: the next studio offers them.
    pub kept: usize,
    /// Files that such takes were written to, because the journal could not be.
    pub elsewhere: Vec<PathBuf>,
    /// How many scenes lost such takes: nothing could be written anywhere, or no journal was wanted.
    pub lost: usize,
    /// What the disk said.
    pub trouble: Option<String>,
}

/// What a studio needs besides what it opens.
pub(crate) struct Desk {
    /// Names this program in takes.
    pub(crate) build: String,
    /// Where the journal goes; `None`: there is none.
    pub(crate) folder: Option<Folder>,
    pub(crate) orphans: Vec<Orphan>,
    /// Files that were opened before, for who asks for one.
    pub(crate) recent: Vec<PathBuf>,
    /// The door for them, and for files that journals name.
    pub(crate) files: Files,
    /// Folders for takes that the journal does not take.
    pub(crate) rescue: Vec<PathBuf>,
    pub(crate) disk: Disk,
    /// How soon and how often the disk is tried again.
    pub(crate) retry: (Duration, u32),
    /// The journal is written this often.
    pub(crate) journal_interval: Duration,
    /// Told besides the page: the terminal.
    pub(crate) teller: Teller,
}

/// Whom the studio tells what everyone should know, besides its pages.
pub(crate) type Teller = Box<dyn Fn(&str) + Send>;

impl Desk {
    /// A studio that keeps no journal and tells its pages alone.
    pub(crate) fn new(build: String) -> Desk {
        Desk {
            build,
            folder: None,
            orphans: Vec::new(),
            recent: Vec::new(),
            files: Files::default(),
            rescue: Vec::new(),
            disk: Disk::default(),
            retry: journal::RETRY,
            journal_interval: JOURNAL_INTERVAL,
            teller: Box::new(|_| ()),
        }
    }
}

/// The latest of everything, for every client.
#[derive(Clone)]
pub(crate) struct Published {
    pub(crate) scene: watch::Receiver<Utf8Bytes>,
    pub(crate) status: watch::Receiver<Utf8Bytes>,
    pub(crate) frame: watch::Receiver<Bytes>,
}

/// Starts the thread. It ends when every sender of commands is gone.
pub(crate) fn start(
    opening: Opening,
    desk: Desk,
    runtime: tokio::runtime::Handle,
) -> Result<(mpsc::Sender<Command>, Published), TakeError> {
    let (commands, inbox) = mpsc::channel(256);
    let (scene_out, scene) = watch::channel(Utf8Bytes::default());
    let (status_out, status) = watch::channel(Utf8Bytes::default());
    let (frame_out, frame) = watch::channel(Bytes::new());
    let stage = Stage::open(opening, &desk.build, 0)?;
    let mut simulation = Simulation {
        playing: stage.stored.is_none(),
        stage,
        generations: 0,
        earlier: Vec::new(),
        later: Vec::new(),
        build: desk.build,
        journal: desk.folder.map(|folder| Journal::start(folder, desk.retry)),
        journal_interval: desk.journal_interval,
        trouble: None,
        rescue: desk.rescue,
        disk: desk.disk,
        teller: desk.teller,
        orphans: (0..).zip(desk.orphans).collect(),
        recent: desk.recent,
        files: desk.files,
        unwritten: true,
        watched: false,
        speed: 1.0,
        notice: None,
        commands: commands.downgrade(),
        scene_out,
        status_out,
        frame_out,
    };
    simulation.examine();
    simulation.publish_all();
    simulation.tell_if_stored();
    simulation.greet();
    std::thread::Builder::new()
        .name("simulation".into())
        .spawn(move || simulation.live(inbox, &runtime))
        .expect("a thread can be started");
    Ok((commands, Published { scene, status, frame }))
}

struct Simulation {
    stage: Stage,
    /// The last number given to a stage.
    generations: u32,
    /// What was open before the present scene, the latest last, and after it when that was undone.
    earlier: Vec<Stage>,
    later: Vec<Stage>,
    /// Names this program in takes.
    build: String,
    journal: Option<Journal>,
    journal_interval: Duration,
    /// Why the journal cannot be written, as told.
    trouble: Option<String>,
    /// Folders for takes that the journal does not take.
    rescue: Vec<PathBuf>,
    disk: Disk,
    teller: Teller,
    /// Files that were opened before, and the door for them and for files that journals name.
    recent: Vec<PathBuf>,
    files: Files,
    /// Journals of sessions that did not finish, by the number under which they are offered.
    orphans: BTreeMap<u32, Orphan>,
    /// Something happened that the journal does not hold yet.
    unwritten: bool,
    playing: bool,
    /// Somebody has come to look: until then nothing moves.
    watched: bool,
    /// Simulated per real time, as wished.
    speed: f64,
    notice: Option<Notice>,
    /// How the doctor answers.
    commands: mpsc::WeakSender<Command>,
    scene_out: watch::Sender<Utf8Bytes>,
    status_out: watch::Sender<Utf8Bytes>,
    frame_out: watch::Sender<Bytes>,
}

/// A scene with its takes and all that is changed by hand. Opening another scene makes another one.
struct Stage {
    generation: u32,
    scene: Arc<Scene>,
    /// What was put into the scene.
    things: Vec<ThingTold>,
    dress: Dress,
    /// How the scene is made again; takes keep it.
    recipe: Recipe,
    /// What the doctor says of the model, once it has looked.
    diagnosis: Option<Diagnosis>,
    work: Work,
    timeline: Timeline,
    take: usize,
    now: Moment,
    /// Whether `now` is a computed state; otherwise it shows stored poses and must be computed before it is gone on from.
    computed: bool,
    /// Recorded steps are shown as stored, for this reason; `None`: they are computed again.
    stored: Option<String>,
    playback: Playback,
    /// The take shown beside the present one, and what it shows.
    compare: Option<usize>,
    other: Playback,
    history: History,
    /// The settings of the next live step; its lists of targets, drags and wrenches are empty.
    settings: Input,
    /// Whether the scene's script acts; when it does not, trackers hold `held`.
    script: bool,
    /// Whether trackers pull at all; when not, the character is released.
    hold: bool,
    held: Vec<Option<Target>>,
    /// How the bodies hold themselves, and how many marks of the take's history have acted on that.
    tones: Tones,
    heard: usize,
    /// The part of the character that is carried, as last told.
    carried_told: f64,
    /// Targets that clients stream in, by tracker.
    tracked: BTreeMap<usize, Target>,
    /// What a person steers the scene by; `None`: its script does.
    steering: Option<Vec<f64>>,
    /// Pinned bodies.
    pins: BTreeMap<u32, Pin>,
    /// Pulls by client and pointer.
    drags: BTreeMap<(u64, u32), Drag>,
    /// Balls that poke the skin and vertices of it that are pulled, by client and pointer.
    pokes: BTreeMap<(u64, u32), Poke>,
    grabs: BTreeMap<(u64, u32), Grab>,
    /// Orientations that pulls hold while posing.
    turns: BTreeMap<(u64, u32), DQuat>,
    /// Level of pulls while the character is directed.
    drag_level: LevelTold,
    /// Whether keyframes were made or removed by hand: then they stay when one goes to another step.
    keyed: bool,
    /// Whether the target pose was taken by hand: then it stays, too.
    aimed: bool,
    /// How much keyframes and target pose counted in the last step, and by take and step what was asked for where that was not reached yet.
    shares: Shares,
    wishes: BTreeMap<(usize, u64), Wish>,
    /// What moves the scene when directing ends, and what when it begins.
    undirected_by: Solver,
    directed_by: Solver,
    /// What moves the scene when posing ends.
    moved_by: Solver,
    /// What the corrections of a step may take.
    budget: Option<Budget>,
    /// What undoing the stage as a whole would undo, unless it is the opening of its scene.
    begun_by: Option<String>,
    /// The number of its sheet in the journal.
    sheet: u32,
    /// What was done by hand.
    by_hand: ByHand,
    /// Counts what changes the takes: what is done by hand, and each step that is recorded.
    revision: u64,
    /// The revision that a page said it holds.
    saved: u64,
    /// Whether its sheet was kept when another stage took its place.
    put_aside: bool,
    /// What is to be said when the scene is first shown.
    greeting: Option<String>,
    report: Report,
    /// What was simulated live since solver, step or place were last changed, and what of it has been told.
    run: Run,
    told: BTreeSet<&'static str>,
    step_micros: f64,
    pace: f64,
    behind: bool,
    failed: bool,
    /// The body at which the last step failed.
    culprit: Option<BodyId>,
}

/// Whether a place may be named: beyond, no file can hold what goes there.
fn is_near(place: DVec3) -> bool {
    place.length() < MOST_LENGTH // not what is no number
}

/// Where a body is held, in which orientation if in one, and whose wish comes first while the character is directed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Pin {
    at: DVec3,
    turn: Option<DQuat>,
    level: LevelTold,
}

/// What was done by hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ByHand {
    Nothing,
    /// The bones of the character; a stage that goes on with them has them too.
    Rig,
    /// Something in the takes.
    Takes,
}

/// Why a request was refused: code and text.
type Refused = (&'static str, String);

impl Simulation {
    /// Runs until the studio ends. A mistake of our own pauses the run and is told; nothing that was recorded is lost by it.
    fn live(mut self, mut inbox: mpsc::Receiver<Command>, runtime: &tokio::runtime::Handle) {
        while let Err(panic) = catch_unwind(AssertUnwindSafe(|| self.run(&mut inbox, runtime))) {
            // What it was about is told, if that can be done; the state is that of the last recorded step.
            let _ = catch_unwind(AssertUnwindSafe(|| self.stumble(&*panic)));
        }
    }

    /// After a mistake of our own: back to the last recorded step, paused, with scratch that knows nothing of the mistake.
    fn stumble(&mut self, panic: &(dyn Any + Send)) {
        (self.playing, self.unwritten) = (false, false); // until something else is asked for
        let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
        let text = format!(
            "A fault in supple itself: {}. The run is paused; what was recorded is there. Save it, and please report what led to this.",
            text.unwrap_or("no details")
        );
        self.tell("error", text);
        let stage = &mut self.stage;
        stage.work = watched(&stage.scene.model);
        let end = stage.timeline.takes()[stage.take].end();
        if let Err(error) = stage.go_to(stage.take, end) {
            self.tell("error", error.to_string());
        }
        self.publish_frame();
        self.unwritten = true;
    }

    fn run(&mut self, inbox: &mut mpsc::Receiver<Command>, runtime: &tokio::runtime::Handle) {
        let mut due = Instant::now(); // when the next step should be done
        let mut write_due = Instant::now(); // when the journal should be written
        let mut shown = Instant::now();
        let mut pace = Pace::new(self.stage.now.state.time);
        loop {
            // Waits for a command until the next step is due or the journal has something to do or to tell; a paused run may wait for
            // nothing else.
            let next_write = (self.unwritten || !self.is_journal_settled()).then_some(write_due);
            let next_step = self.is_running().then_some(due);
            let first = match next_step.into_iter().chain(next_write).min() {
                Some(next) => {
                    let wait = next.saturating_duration_since(Instant::now());
                    match runtime.block_on(async { tokio::time::timeout(wait, inbox.recv()).await }) {
                        Ok(Some(command)) => Some(command),
                        Ok(None) => break,
                        Err(_) => None,
                    }
                }
                None => {
                    let Some(command) = inbox.blocking_recv() else { break };
                    Some(command)
                }
            };
            let rest = std::iter::from_fn(|| inbox.try_recv().ok());
            let was_running = self.is_running();
            let mut heard = false;
            for command in first.into_iter().chain(rest.take(COMMANDS_A_STEP)) {
                if let Command::Close(reply) = command {
                    let _ = reply.send(self.close());
                    return;
                }
                #[cfg(test)]
                if let Command::AskSettled(reply) = command {
                    let _ = reply.send(!self.unwritten && self.is_journal_settled());
                    continue;
                }
                self.obey(command);
                heard = true;
                self.unwritten = true;
            }
            if self.is_running() && !was_running {
                due = Instant::now();
                pace = Pace::new(self.stage.now.state.time);
            }
            if heard && !self.playing {
                self.publish_frame(); // a paused picture follows at once; a running one with its next step
            }
            if Instant::now() >= write_due && (self.unwritten || !self.is_journal_settled()) {
                self.write_journal();
                write_due = Instant::now() + self.journal_interval;
            }
            if self.is_running() && Instant::now() >= due {
                self.advance();
                self.unwritten = true;
                let now = Instant::now();
                due += Duration::from_secs_f64(self.stage.now.input.dt / self.speed);
                self.stage.behind = now > due + MAX_LAG;
                if self.stage.behind {
                    due = now;
                }
                pace.update(&mut self.stage, now);
                if now - shown >= FRAME_INTERVAL || !self.playing {
                    shown = now;
                    self.publish_frame();
                }
            }
        }
        self.close();
    }

    fn is_running(&self) -> bool {
        self.playing && self.watched
    }

    /// Does a step; one that fails pauses the run and tells why.
    fn advance(&mut self) {
        let was_saved = self.stage.unsaved() == ByHand::Nothing;
        match self.stage.advance() {
            Ok(Advanced::Usual) if was_saved && self.stage.unsaved() != ByHand::Nothing => self.publish_status(),
            Ok(Advanced::Usual) => {}
            Ok(Advanced::Differs) => self.tell_if_stored(),
            Ok(Advanced::Resumed | Advanced::Redirected) => self.publish_status(),
            Err(reason) => {
                self.playing = false;
                self.tell("error", format!("{reason}. The run is paused where it was."));
            }
        }
        let look = self.stage.now.step.is_multiple_of(64); // adding up the snapshots takes a while
        if self.stage.now.step.is_multiple_of(8) {
            let carried = self.stage.tones_told().carried;
            if (carried - self.stage.carried_told).abs() > 0.01 {
                self.publish_status();
            }
        }
        if look {
            self.tell_quality();
        }
        if self.playing && look && self.stage.timeline.bytes() > MAX_TAKE_BYTES {
            self.playing = false;
            self.tell(
                "error",
                "the takes of this session fill a gigabyte: save them, then open the scene again".into(),
            );
        }
    }

    /// Says once what speaks against trusting the run, and what the chosen solver does without. What is only less exact than usual for a while stands in the status.
    fn tell_quality(&mut self) {
        let reasons = self.stage.quality().reasons.into_iter();
        let new: Vec<_> = reasons.filter(|reason| self.stage.told.insert(reason.about)).collect();
        match new.iter().find(|reason| reason.grade == Grade::Failed || reason.of_solver) {
            Some(reason) if reason.grade == Grade::Failed => {
                self.tell("warning", format!("Do not trust what you see: {}.", reason.text));
            }
            Some(reason) => self.tell("warning", format!("What you see is not quite exact: {}.", reason.text)),
            None if !new.is_empty() => self.publish_status(),
            None => {}
        }
    }

    /// Says what a scene that was just opened has to say.
    fn greet(&mut self) {
        if let Some(text) = self.stage.greeting.take() {
            self.tell("info", text);
        }
    }

    fn tell(&mut self, level: &'static str, text: String) {
        let number = self.notice.as_ref().map_or(1, |notice| notice.number + 1);
        self.notice = Some(Notice { number, level, text });
        self.publish_status();
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Ask { client, request, reply } => {
                self.watched = true;
                let by_hand = request.is_by_hand();
                let was_saved = self.stage.unsaved() == ByHand::Nothing;
                let answer = self.answer(client, request);
                if by_hand && answer.is_ok() {
                    self.stage.touch(ByHand::Takes);
                }
                match answer {
                    Ok(Told::Nothing) if !(by_hand && was_saved) => {}
                    Ok(_) => self.publish_status(),
                    Err((code, message)) => {
                        let _ = reply.try_send(refusal(code, message)); // a client that does not read misses it
                    }
                }
            }
            Command::Come => self.watched = true,
            Command::Gone { client } => self.stage.let_go(|(owner, _)| owner == client),
            Command::Copy(reply) => {
                let Stage { scene, timeline, take, dress, generation, revision, .. } = &self.stage;
                let _ = reply.send(Copied {
                    scene: scene.clone(),
                    timeline: timeline.clone(),
                    take: *take,
                    build: self.build.clone(),
                    generation: *generation,
                    revision: *revision,
                    character: dress.character.clone(),
                    clips: dress.clips.clone(),
                    guests: self.stage.players(),
                });
            }
            Command::Saved { generation, revision, reply } => {
                let stage = &mut self.stage;
                let present = stage.generation == generation;
                if present {
                    stage.saved = stage.saved.max(revision);
                    self.publish_status();
                }
                let _ = reply.send(present);
            }
            Command::Character(fingerprint, reply) => {
                let meant = |stage: &Stage| {
                    let guests = stage.dress.cast.players().map(|player| &player.character);
                    let mut all = stage.dress.character.iter().chain(guests);
                    all.find(|character| character.fingerprint() == fingerprint).cloned()
                };
                let mut stages = std::iter::once(&self.stage).chain(&self.earlier).chain(&self.later);
                let _ = reply.send(stages.find_map(meant));
            }
            Command::Rig(reply) => {
                let character = self.stage.dress.character.as_ref();
                let name = |c: &Character| c.source().file_name().map(|n| n.to_string_lossy().into_owned());
                let clip = self.stage.tones.clip().map(|play| play.motion.name().to_owned());
                let track = clip.map(|clip| self.stage.recipe.track(&clip));
                let _ = reply.send(character.map(|c| c.scene_file(&name(c).unwrap_or_default(), track.as_deref())));
            }
            Command::Examined { generation, diagnosis } => {
                if generation == self.stage.generation {
                    self.stage.diagnosis = Some(*diagnosis);
                    self.publish_status();
                }
            }
            Command::Load(opening, reply) => {
                let _ = reply.send(self.open(*opening));
            }
            Command::Guest { file, character, as_prop, reply } => {
                let _ = reply.send(self.welcome(&file, *character, as_prop));
            }
            Command::Motion { generation, motion, clip, reply } => {
                let _ = reply.send(self.take_motion(generation, motion, clip));
            }
            Command::Close(_) => unreachable!("heard before"),
            #[cfg(test)]
            Command::Stumble => panic!("as the test asks"),
            #[cfg(test)]
            Command::AskSettled(_) => unreachable!("heard before"),
        }
    }

    fn open(&mut self, opening: Opening) -> Result<(), (String, String)> {
        let recorded = opening.takes.is_some();
        let stage = Stage::open(opening, &self.build, self.generations + 1)
            .map_err(|e| (e.code().to_owned(), e.to_string()))?;
        self.generations += 1;
        self.playing = !recorded;
        self.put_aside(stage);
        self.examine();
        self.publish_all();
        self.tell_if_stored();
        self.greet();
        Ok(())
    }

    /// Bones are changed: the model is made anew, in the present pose and with the present settings.
    fn change_bones(&mut self, changes: Vec<ChangedBone>) -> Result<(), Refused> {
        let stage = &self.stage;
        let Some(mut character) = stage.dress.character.clone() else {
            return Err(("studio/value", "the scene is no character of a file: it has no bones to change".into()));
        };
        for ChangedBone { bone, change } in &changes {
            character.change(bone, change).map_err(|what| ("studio/value", format!("{bone}: {what}")))?;
        }
        let name = stage.scene.name.trim_end_matches(" (mended)").to_owned();
        let told = |e: FileError| ("studio/value", e.to_string());
        let mut file = character.imported(&name).map_err(told)?;
        self.take_motions_on(&character, &mut file);
        if let Some((_, clip)) = name.rsplit_once('#')
            && let Some(scene) = file.clip(clip).cloned().ok().and_then(|clip| file.following(&clip))
        {
            file.scene = scene;
            file.scene.name = name;
        }
        // The clip goes on where it was.
        let going = stage.tones.clip().map(|play| {
            let Play { motion, from, speed, again, .. } = play.going_on(stage.now.state.time, play.speed, play.again);
            Event::Clip { clip: motion.name().to_owned(), from, speed, again, fade: 0.0, figure: 0 }
        });
        self.furnish(&mut file, &character)?;
        file.scene.state.bodies.clone_from(&stage.now.state.bodies);
        file.scene.state.recount_turns(&file.scene.model);
        let Input { targets, wrenches, joints, .. } = std::mem::take(&mut file.scene.input);
        file.scene.input = Input { targets, wrenches, joints, ..stage.settings.clone() };
        let (hold, script, pins) = (stage.hold, stage.script, stage.pins.clone());
        let mut recipe = stage.recipe.clone();
        let label = format!("change of {}", changes[0].bone);
        recipe.changes.bones.extend(changes);
        recipe.changes.mended = 0; // remedies are those of a model that is no more
        let playing = self.playing;
        let opening = Opening::of_file(Made { recipe, imported: file, character: Some(character) });
        self.open(opening).map_err(|(_, text)| ("studio/value", text))?;
        self.playing = playing;
        self.stage.touch(ByHand::Rig);
        (self.stage.hold, self.stage.script, self.stage.pins) = (hold, script, pins);
        if let Some(event) = going {
            self.stage.mark(&[event], None, "clip".into())?;
            self.stage.history = History::default(); // one edit, undone as one
        }
        self.stage.begun_by = Some(label);
        Ok(())
    }

    /// Adds the clips that the character took on from elsewhere: anew from their files, for what changed; where a file is gone, as they were.
    fn take_motions_on(&self, character: &Character, file: &mut Imported) {
        for motion in &self.stage.recipe.changes.motions {
            let again = self.files.motion(motion).and_then(|source| character.add_motion(file, &source));
            if again.is_err() {
                let missing = |clip: &&Arc<supple::Motion>| file.clip(clip.name()).is_err();
                let before = self.stage.dress.clips.iter().find(missing).cloned();
                file.clips.extend(before);
            }
        }
    }

    /// The rig of the character is made anew from its file, and stands at its start. Changes of bones are kept.
    fn change_rig(&mut self, options: &RigOptions) -> Result<(), Refused> {
        let stage = &self.stage;
        let Some(character) = &stage.dress.character else {
            return Err(("studio/value", "the scene is no character of a file: it has no rig".into()));
        };
        if stage.recipe.file().is_some_and(|path| path.extension().is_some_and(|e| e.eq_ignore_ascii_case("toml"))) {
            return Err(("studio/value", "a scene file tells mass, scale and height itself: change them there".into()));
        }
        let told = |e: FileError| ("studio/value", e.to_string());
        let mut character = character.with_options(options).map_err(told)?;
        for ChangedBone { bone, change } in &stage.recipe.changes.bones {
            character.change(bone, change).map_err(|what| ("studio/value", format!("{bone}: {what}")))?;
        }
        let name = stage.scene.name.trim_end_matches(" (mended)").to_owned();
        let mut file = character.imported(&name).map_err(told)?;
        self.take_motions_on(&character, &mut file);
        if let Some((_, clip)) = name.rsplit_once('#')
            && let Some(scene) = file.clip(clip).cloned().ok().and_then(|clip| file.following(&clip))
        {
            file.scene = scene;
            file.scene.name = name;
        }
        self.furnish(&mut file, &character)?;
        let mut recipe = stage.recipe.clone();
        recipe.changes.rig = *options;
        recipe.changes.mended = 0; // remedies are those of a model that is no more
        let playing = self.playing;
        self.open(Opening::of_file(Made { recipe, imported: file, character: Some(character) }))
            .map_err(|(_, text)| ("studio/value", text))?;
        self.playing = playing;
        self.stage.touch(ByHand::Rig);
        self.stage.begun_by = Some("change of mass or size".into());
        Ok(())
    }

    fn answer(&mut self, client: u64, request: Request) -> Result<Told, Refused> {
        let bad = |what: String| Err(("studio/value", what));
        match request {
            Request::Play => self.playing = true,
            Request::Pause => self.playing = false,
            Request::Step { count } => {
                if !(1..=1000).contains(&count) {
                    return bad(format!("count is {count}: give 1 to 1000"));
                }
                self.playing = false;
                for _ in 0..count {
                    self.advance();
                    if self.stage.failed {
                        break;
                    }
                }
            }
            Request::Speed { factor } => {
                if !(0.01..=10.0).contains(&factor) {
                    return bad(format!("factor is {}: give 0.01 to 10", supple_assets::plain(factor)));
                }
                self.speed = factor;
            }
            Request::Open { scene } => {
                let opening = Opening::scene(&scene).map_err(|(_, text)| ("studio/scene", text))?;
                self.open(opening).map_err(|(_, text)| ("studio/scene", text))?;
            }
            Request::Recent { file } => {
                let Some(path) = self.recent.get(file).cloned() else {
                    return bad(format!("there is no file {file} in the list of those that were opened before"));
                };
                let opening = Opening::path(&path, &self.files).map_err(|(_, text)| ("studio/scene", text))?;
                self.open(opening).map_err(|(_, text)| ("studio/scene", text))?;
            }
            Request::Bone { bone, change, twin } => {
                let own = ChangedBone { bone, change: *change };
                self.change_bones(std::iter::once(own).chain(twin.map(|twin| *twin)).collect())?;
            }
            Request::Rig { options } => self.change_rig(&options)?,
            Request::Aside { sheet, take } => self.go_aside(sheet, take)?,
            Request::Seek { take, step } => {
                self.playing = false;
                self.stage.seek(take, step)?;
            }
            Request::Rename { take, name } => self.stage.rename(take, name.trim())?,
            Request::Delete { take } => {
                if self.stage.delete(take)? == Moved::Elsewhere {
                    self.playing = false;
                }
            }
            Request::Compare { take } => self.stage.set_compare(take)?,
            Request::Mend => self.mend()?,
            Request::Key { time } => self.stage.add_key(time)?,
            Request::Unkey { key } => self.stage.remove_key(key)?,
            Request::TargetPose => self.stage.take_target_pose()?,
            Request::Undo => self.undo()?,
            Request::Redo => self.redo()?,
            Request::Recover { journal } => self.recover(journal)?,
            Request::Discard { journal } => self.discard(journal)?,
            Request::Set(change) => self.stage.set(change.whole(|| self.stage.control_told()))?,
            Request::Drag { pointer, body, point, target, rotation, strength } => {
                let owner = (client, pointer);
                return self.stage.drag(owner, body, point.into(), target.into(), rotation, strength);
            }
            Request::Poke { pointer, centre, radius } => {
                return self.stage.poke((client, pointer), centre.into(), radius);
            }
            Request::Grab { pointer, vertex, target, strength } => {
                return self.stage.grab((client, pointer), vertex, target.into(), strength);
            }
            Request::Release { pointer } => {
                self.stage.let_go(|owner| owner == (client, pointer));
                return Ok(Told::Nothing);
            }
            Request::Pin { body, on, level, turn, at } => self.stage.pin(body, on, level, turn, at.map(DVec3::from))?,
            Request::Steer { values } => return self.stage.steer(values),
            Request::State { bodies, state, strength, blend, at } => {
                self.stage.change_tone(bodies, &state, (strength, blend), at)?;
            }
            Request::Clip { clip: None, fade: None, speed, again, at: None, figure } => {
                self.stage.pace_clip(figure, speed, again)?;
            }
            Request::Clip { clip: Some(name), fade: None, speed: None, again: None, at: None, figure: 0 } => {
                self.cut_to_clip(&name)?;
            }
            Request::Clip { clip: Some(name), fade: Some(fade), speed: None, again: None, at, figure } => {
                self.stage.play_clip(figure, &name, fade, at)?;
            }
            Request::Clip { .. } => {
                return bad("give a clip, with a fade to go over to it; or a speed and whether it goes round".into());
            }
            Request::Things { things } => self.put_things(things)?,
            Request::Hold { thing, body } => self.hold_thing(&thing, body)?,
            Request::Variant { take, from, to, variation } => {
                self.playing = false;
                self.stage.take_variant(take, (from, to), &variation)?;
            }
            Request::Throw { thing, from, velocity } => self.stage.throw(&thing, from.into(), velocity.into())?,
            Request::Hits { hits, at } => {
                let event = hits.map_or(Event::NoHits, |[impulse, recovery]| Event::Hits { impulse, recovery });
                self.stage.mark(&[event], at, "answer to blows".into())?;
            }
            Request::Mark { name, at } => {
                let name = name.trim().to_owned();
                self.stage.mark(&[Event::Marker { name }], at, "mark".into())?;
            }
            Request::Unmark { mark } => self.stage.unmark(mark)?,
            Request::Targets { poses } => {
                self.stage.track(poses)?;
                return Ok(Told::Nothing);
            }
        }
        Ok(Told::Status)
    }

    fn publish_all(&mut self) {
        self.scene_out.send_replace(
            describe(&self.stage.scene, &self.stage.dress, &self.stage.things, self.stage.generation).into(),
        );
        self.publish_status();
        self.publish_frame();
    }

    fn publish_status(&mut self) {
        self.stage.carried_told = self.stage.tones_told().carried;
        let stage = &self.stage;
        let (undo, redo) = self.labels();
        let quality = stage.quality();
        let status = json(&Status {
            kind: "status",
            generation: stage.generation,
            playing: self.playing,
            speed: self.speed,
            settings: stage.settings_told(),
            pins: stage.pins.keys().copied().collect(),
            pin_levels: stage.pins.values().map(|pin| pin.level).collect(),
            pin_places: stage.pins.values().map(|pin| pin.at.to_array()).collect(),
            pin_turns: stage.pins.values().map(|pin| pin.turn.is_some()).collect(),
            take: stage.take,
            takes: takes_told(stage),
            aside: self.aside_told(),
            compare: stage.compare,
            stored: stage.stored.as_deref(),
            undo,
            redo,
            unsaved: stage.unsaved() != ByHand::Nothing,
            journal_trouble: self.trouble.as_deref(),
            journals: self.journals_told(),
            doctor: self.doctor_told(),
            bytes: stage.timeline.bytes(),
            tones: stage.tones_told(),
            marks: stage.marks_told(),
            quality: quality.grade.word(),
            reasons: quality.words(),
            notice: self.notice.as_ref(),
        });
        self.status_out.send_replace(status.into());
    }

    fn publish_frame(&mut self) {
        if !self.playing {
            self.stage.compose(); // what the hands do shows before the next step
        }
        let other = self.stage.look_beside();
        let stage = &self.stage;
        let flag = |on: bool, bit: u16| if on { bit } else { 0 };
        let flags = flag(self.playing, frame::PLAYING)
            | flag(stage.is_replaying(), frame::REPLAYING)
            | flag(stage.behind && self.playing, frame::BEHIND)
            | flag(stage.failed, frame::FAILED)
            | flag(!stage.computed, frame::STORED);
        let bytes = frame::encode(&Shown {
            flags,
            generation: stage.generation,
            step: stage.now.step,
            end: stage.timeline.takes()[stage.take].end(),
            take: stage.take,
            pace: if self.playing { stage.pace } else { 0.0 },
            step_micros: stage.step_micros,
            report: &stage.report,
            culprit: stage.culprit,
            work: &stage.work,
            model: &stage.scene.model,
            state: &stage.now.state,
            input: &stage.now.input,
            pullers: &stage.pullers(),
            other: other.then_some(&stage.other),
        });
        self.frame_out.send_replace(bytes.into());
    }
}

/// Times and joint loads, for the instruments.
const INSTRUMENTS: Watch = Watch { clock: Some(nanoseconds), impulses: Impulses::Keep };

fn nanoseconds() -> u64 {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    START.elapsed().as_nanos() as u64
}

/// Scratch with the instruments on.
fn watched(model: &Model) -> Work {
    let mut work = Work::new(model);
    work.watch(INSTRUMENTS);
    work
}

/// What a request changed for everyone.
enum Told {
    Nothing,
    Status,
}

/// What came of a step.
enum Advanced {
    /// A step was done, live or again.
    Usual,
    /// A recorded step came out with other bits: from here on it is shown as stored.
    Differs,
    /// The end of the recording was reached: from here it goes on live.
    Resumed,
    /// The scene directs the character otherwise than before.
    Redirected,
}

/// Measures simulated per real time.
struct Pace {
    since: Instant,
    time: f64,
}

impl Pace {
    fn new(time: f64) -> Pace {
        Pace { since: Instant::now(), time }
    }

    fn update(&mut self, stage: &mut Stage, now: Instant) {
        let real = now - self.since;
        if real >= PACE_WINDOW {
            stage.pace = (stage.now.state.time - self.time) / real.as_secs_f64();
            (self.since, self.time) = (now, stage.now.state.time);
        }
    }
}

impl Stage {
    fn open(opening: Opening, build: &str, generation: u32) -> Result<Stage, TakeError> {
        let Opening { mut scene, dress, recipe, takes, things } = opening;
        let mut greeting = None;
        let (timeline, take, stored) = match takes {
            None => {
                let (state, said) = posing::start(&scene);
                greeting = said;
                let mut timeline = Timeline::new(recipe.to_string(), &scene.model, &state, &scene.input);
                timeline.set_marks(0, tones::scene_marks(&scene));
                (timeline, 0, None)
            }
            Some(file) => {
                scene.name = recipe.shown().to_owned();
                let stored = why_stored(&scene, &recipe, &file, build);
                (file.timeline, file.current, stored)
            }
        };
        timeline.check_bodies(&scene.model)?;
        let mut stage = Stage {
            generation,
            work: watched(&scene.model),
            now: Moment::new(scene.state.clone(), scene.input.clone()),
            computed: false,
            stored,
            playback: Playback::default(),
            compare: None,
            other: Playback::default(),
            history: History::default(),
            timeline,
            take,
            settings: Input::default(),
            script: true,
            hold: true,
            held: Vec::new(),
            tones: scene.tones(),
            heard: 0,
            carried_told: 1.0,
            tracked: BTreeMap::new(),
            steering: None,
            pins: BTreeMap::new(),
            drags: BTreeMap::new(),
            pokes: BTreeMap::new(),
            grabs: BTreeMap::new(),
            turns: BTreeMap::new(),
            drag_level: LevelTold::Secondary,
            keyed: false,
            aimed: false,
            shares: Shares::default(),
            wishes: BTreeMap::new(),
            undirected_by: posing::moving_solver(&scene),
            directed_by: Solver::Reduced(Reduced::default()),
            moved_by: posing::moving_solver(&scene),
            budget: None,
            begun_by: None,
            sheet: generation,
            by_hand: ByHand::Nothing,
            revision: 0,
            saved: 0,
            put_aside: false,
            greeting,
            report: Report::default(),
            run: Run::new(&scene.model, &scene.input, &scene.state),
            told: BTreeSet::new(),
            step_micros: 0.0,
            pace: 0.0,
            behind: false,
            failed: false,
            culprit: None,
            scene: Arc::new(scene),
            things,
            dress,
            recipe,
            diagnosis: None,
        };
        stage.go_to(take, stage.timeline.takes()[take].end())?;
        Ok(stage)
    }

    /// Takes settings and pins from the present input, as recorded.
    fn adopt(&mut self) {
        self.settings = self.settings_of(&self.now.input);
        self.adopt_shares();
        if !self.is_posing() {
            self.moved_by = self.settings.solver;
        }
        self.hold();
        let pullers = self.pullers();
        let pinned = self.now.input.drags.iter().zip(pullers).filter(|(_, puller)| *puller == Puller::Pin);
        // Where a pin still leads is noted beside its grip, and is what counts.
        let gripped: Vec<_> = self.gripped_pins().collect();
        let turn_of = |body| gripped.iter().find(|(other, ..)| *other == body).and_then(|(_, _, turn)| *turn);
        let noted = pinned.map(|(drag, _)| (drag.body.0, drag.target, turn_of(drag.body.0)));
        let pins = gripped.iter().copied().chain(noted);
        let of_level = |pins: &BTreeMap<u32, Pin>, body| pins.get(&body).map_or(LevelTold::Primary, |pin| pin.level);
        let held = pins.map(|(body, at, turn)| (body, Pin { at, turn, level: of_level(&self.pins, body) }));
        self.pins = held.chain(self.directed_pins()).collect();
    }

    /// Trackers hold where they are now when the script is off.
    fn hold(&mut self) {
        let still = |target: &Target| Target { velocity: Twist::ZERO, ..*target };
        self.held = self.now.input.targets.iter().map(|target| target.as_ref().map(still)).collect();
    }

    fn is_replaying(&self) -> bool {
        self.now.step < self.timeline.takes()[self.take].end()
    }

    fn advance(&mut self) -> Result<Advanced, String> {
        self.failed = true; // until it is done
        self.culprit = None;
        let told = if self.is_replaying() { self.replay()? } else { self.do_live()? };
        self.failed = false;
        Ok(told)
    }

    /// Does the next step live and records it.
    fn do_live(&mut self) -> Result<Advanced, String> {
        self.compute().map_err(|error| error.to_string())?;
        let told = |stage: &Stage| (stage.settings.control.mode, stage.settings.control.style);
        let before = told(self);
        let method = (self.now.input.solver, self.now.input.dt);
        self.compose();
        let advanced = if told(self) == before { Advanced::Usual } else { Advanced::Redirected };
        let clock = Instant::now();
        let done = step(&self.scene.model, &self.now.input, &mut self.now.state, &mut self.work);
        self.step_micros = 1e6 * clock.elapsed().as_secs_f64();
        self.report = match done {
            Ok(report) => report,
            Err(error) => return Err(self.explain(&error)),
        };
        if let Some(part) = self.now.state.strayed() {
            // It is not recorded, for no reader would take it: what was before it stays.
            self.now = self
                .timeline
                .seek(&self.scene.model, self.take, self.now.step, &mut self.work)
                .map_err(|e| e.to_string())?;
            self.culprit = part.body();
            let name = part.name(&self.scene.model);
            return Err(format!(
                "step {} failed: it leads {name} more than {MOST_LENGTH} m away; use a smaller dt or another solver",
                self.now.step + 1
            ));
        }
        if let Some(budget) = &mut self.budget {
            budget.learn(&self.report, self.step_micros);
        }
        self.judge(method);
        self.now.step += 1;
        self.note_shares();
        self.move_pokes();
        self.timeline.record(self.take, &self.now.input, &self.now.state);
        self.revision += 1;
        Ok(advanced)
    }

    /// Something was done by hand.
    fn touch(&mut self, what: ByHand) {
        self.by_hand = self.by_hand.max(what);
        self.revision += 1;
    }

    /// What was done by hand, and is not saved with all that was recorded since.
    fn unsaved(&self) -> ByHand {
        if self.revision > self.saved { self.by_hand } else { ByHand::Nothing }
    }

    /// Adds the step that was just done to the run; another solver or length of step than in the one before begins another.
    fn judge(&mut self, before: (Solver, f64)) {
        let (model, Moment { state, input, .. }) = (&self.scene.model, &self.now);
        if before != (input.solver, input.dt) {
            self.run = Run::new(model, input, state);
        }
        let small = model.bodies().len() <= ENERGY_AT_EVERY_STEP;
        let energy = small.then(|| measure::energy(model, input, state).total());
        self.run.add(model, input, state, &self.report, energy);
    }

    /// How far what was simulated is to be trusted.
    fn quality(&self) -> Quality {
        self.run.quality(&self.scene.model, &self.now.input, &self.now.state)
    }

    /// What to tell of a step that failed; the body it names is marked.
    fn explain(&mut self, error: &StepError) -> String {
        let model = &self.scene.model;
        self.culprit = match error {
            StepError::NotFinite { body, .. } | StepError::Turned { body } => model.find_body(body),
            StepError::Factor { joint } | StepError::Diverged { joint } => {
                model.find_joint(joint).map(|joint| model.joint(joint).child)
            }
            _ => None,
        };
        format!("step {} failed: {error}", self.now.step + 1)
    }

    /// The input of the next live step: settings, then the script or what it left, then clients' targets, pins and pulls. While
    /// the present step is a recorded one, its input stays.
    fn compose(&mut self) {
        if self.is_replaying() {
            return;
        }
        let pin = self.pin_spring();
        let input = &mut self.now.input;
        input.clone_from(&self.settings);
        let mut scripted = false;
        if self.script {
            self.scene.direct(self.now.state.time, input);
            scripted = self.heed_script();
        } else {
            input.targets.clone_from(&self.held);
        }
        if !scripted {
            self.go_over();
        }
        self.heed_marks();
        let Stage { tones, now, settings, scene, .. } = self;
        let asked = self.heard > 0 || self.script;
        if asked {
            tones.direct(&scene.model, &now.state, &settings.joints, &mut now.input);
        }
        let input = &mut self.now.input;
        if let Some(values) = &self.steering {
            self.scene.steer(values, input);
        }
        if !self.hold {
            // What carries ends with what holds: nothing is left that would float.
            input.targets.fill(None);
            input.strengths.clear();
            if self.tones.is_active() {
                input.wrenches.clear();
                input.joints.clone_from(&self.settings.joints);
            }
        }
        for (&tracker, &target) in &self.tracked {
            if input.targets.len() <= tracker {
                input.targets.resize(tracker + 1, None);
            }
            input.targets[tracker] = Some(target);
        }
        self.add_hands(pin);
        self.touch_skin();
    }

    fn set(&mut self, change: Change) -> Result<(), Refused> {
        let bad = |what: &str| Err(("studio/value", what.to_owned()));
        let Change { solver, dt, substeps, gravity, stiffness_scale, damping_scale, budget, joints, control, .. } =
            &change;
        let Change { contact_stiffness, contact_slip, .. } = &change;
        let scale = |x: f64| (0.0..=1e6).contains(&x);
        if let Some(name) = solver {
            let Some(solver) = self.settings.solver.choose(name) else {
                return bad("there is no solver of that name: the scene message lists them");
            };
            solver.takes(&self.scene.model, &self.now.input).map_err(|error| ("studio/value", error.to_string()))?;
        }
        if dt.is_some_and(|dt| !(1e-5..=0.1).contains(&dt)) {
            return bad("dt must lie between 0.00001 and 0.1 s");
        }
        if substeps.is_some_and(|n| !(1..=100).contains(&n)) {
            return bad("substeps must lie between 1 and 100");
        }
        if gravity.is_some_and(|g| !g.iter().all(|x| x.abs() <= 1000.0)) {
            return bad("each part of gravity must lie between -1000 and 1000 m/s²");
        }
        if [stiffness_scale, damping_scale].into_iter().flatten().any(|x| !scale(*x)) {
            return bad("a scale must lie between 0 and 1,000,000");
        }
        if budget.is_some_and(|us| !(us == 0.0 || (1.0..=1e9).contains(&us))) {
            return bad("a budget must lie between 1 and 1,000,000,000 µs, or be 0 for none");
        }
        let known = self.scene.model.joints().len();
        if joints.iter().any(|j| j.joint as usize >= known || !scale(j.stiffness_scale) || !scale(j.damping_scale)) {
            return bad("a joint does not exist, or a scale does not lie between 0 and 1,000,000");
        }
        if let Some(told) = control {
            self.check_control(told)?;
        }
        let within = |x: &Option<f64>, low: f64, high: f64| x.is_none_or(|x| (low..=high).contains(&x));
        if !(within(contact_stiffness, 1.0, 1e8) && within(contact_slip, 1e-6, 1.0)) {
            return bad(
                "stiffness at contacts must lie between 1 and 100,000,000 N/m, slip between 0.000001 and 1 m/s",
            );
        }
        if contact_stiffness.or(*contact_slip).is_some() && springs(self.solver_after(&change)).is_none() {
            return bad("contacts are no springs in this solver: choose solver reduced");
        }
        let before = self.settings_before(&change);
        let keying = self.is_keying(&before, &change);
        if before != change || self.has_other_keys(&change) {
            let begun = if keying { None } else { self.fork()? };
            if keying {
                self.keep_made(&before, &change);
            }
            self.apply(&change);
            if begun.is_some() || self.is_new_take() {
                self.name_by_style();
            }
            let label = self.label_of(&change);
            self.add_edit(Edit { label, take: self.take, begun, what: What::Set { before, after: change } });
        }
        Ok(())
    }

    fn drag(
        &mut self,
        owner: (u64, u32),
        body: u32,
        point: DVec3,
        target: DVec3,
        rotation: Option<[f64; 4]>,
        strength: f64,
    ) -> Result<Told, Refused> {
        self.check_body(body)?;
        if !(is_near(point) && is_near(target) && (0.0..=100.0).contains(&strength)) {
            return Err((
                "studio/value",
                "a drag needs a point and a target in metres and a strength up to 100".into(),
            ));
        }
        let turn = match rotation.map(posing::rotation) {
            Some(None) => {
                return Err(("studio/value", "the rotation of a drag is not a unit quaternion x, y, z, w".into()));
            }
            turn => turn.flatten(),
        };
        let told = self.take_in_hand(!self.drags.contains_key(&owner))?;
        match turn {
            Some(turn) => self.turns.insert(owner, turn),
            None => self.turns.remove(&owner),
        };
        self.turns.retain(|held, _| *held == owner || self.drags.contains_key(held));
        let stiffness = strength * self.pull_stiffness();
        let mass = self.scene.model.bodies()[body as usize].mass;
        let damping = 2.0 * (stiffness * mass).sqrt(); // critical for the body alone
        self.drags.insert(
            owner,
            Drag { body: BodyId(body), point, target, target_velocity: DVec3::ZERO, stiffness, damping },
        );
        Ok(told)
    }

    /// A person takes hold of something, or moves what is held: at a recorded step another take begins.
    fn take_in_hand(&mut self, new: bool) -> Result<Told, Refused> {
        if new && self.drags.len() + self.pokes.len() + self.grabs.len() >= MAX_DRAGS {
            return Err(("studio/value", format!("there are {MAX_DRAGS} pulls already")));
        }
        let Some(begun) = self.fork()? else { return Ok(Told::Nothing) };
        self.name_by_style();
        let label = format!("the new {}", self.timeline.takes()[self.take].name);
        self.add_edit(Edit { label, take: self.take, begun: Some(begun), what: What::Pull });
        Ok(Told::Status)
    }

    /// Ends the pulls, balls and grabs of these owners.
    fn let_go(&mut self, of: impl Fn((u64, u32)) -> bool) {
        self.drags.retain(|&owner, _| !of(owner));
        self.pokes.retain(|&owner, _| !of(owner));
        self.grabs.retain(|&owner, _| !of(owner));
    }

    /// Holds a body where it is or is to be, at a level, or lets it go. One that is held already stays as it is but for what is told.
    fn pin(
        &mut self,
        body: u32,
        on: bool,
        level: Option<LevelTold>,
        turn: Option<bool>,
        at: Option<DVec3>,
    ) -> Result<(), Refused> {
        self.check_body(body)?;
        if at.is_some_and(|at| !is_near(at)) {
            return Err(("studio/value", format!("give a place within {MOST_LENGTH} m")));
        }
        let (now, before) = (&self.now.state.bodies[body as usize], self.pins.get(&body).copied());
        let place = at.or(before.map(|pin| pin.at)).unwrap_or(now.position);
        let level = level.or(before.map(|pin| pin.level)).unwrap_or(LevelTold::Primary);
        let held = before.and_then(|pin| pin.turn);
        let turn = match turn {
            Some(true) => held.or(Some(now.orientation)),
            Some(false) => None,
            None => held,
        };
        let after = on.then_some(Pin { at: place, turn, level });
        if before == after {
            return Ok(());
        }
        let begun = self.fork()?;
        self.hold_body(body, after);
        let what = match (before, after) {
            (Some(a), Some(b)) if a.at != b.at => "move pin",
            (Some(a), Some(b)) if a.turn != b.turn => "turn of pin",
            (Some(_), Some(_)) => "level of pin",
            (_, None) => "unpin",
            _ => "pin",
        };
        let label = format!("{what} {}", self.scene.model.bodies()[body as usize].name);
        self.add_edit(Edit { label, take: self.take, begun, what: What::Pin { body, before, after } });
        Ok(())
    }

    fn track(&mut self, poses: BTreeMap<String, Option<TargetPose>>) -> Result<(), Refused> {
        let mut changes = Vec::with_capacity(poses.len());
        for (name, pose) in poses {
            let Some(tracker) = self.scene.model.find_tracker(&name) else {
                return Err(("studio/tracker", format!("the scene has no tracker \"{name}\"")));
            };
            let target = pose.map(target).transpose().map_err(|what| ("studio/tracker", format!("{name}: {what}")))?;
            changes.push((tracker.index(), target));
        }
        for (tracker, target) in changes {
            match target {
                Some(target) => self.tracked.insert(tracker, target),
                None => self.tracked.remove(&tracker),
            };
        }
        Ok(())
    }

    fn steer(&mut self, values: Option<Vec<f64>>) -> Result<Told, Refused> {
        let controls = self.scene.controls();
        if let Some(values) = &values {
            if controls.is_empty() {
                return Err(("studio/value", "the scene has nothing to steer".into()));
            }
            if values.len() != controls.len() || !values.iter().all(|x| (-1.0..=1.0).contains(x)) {
                let names = controls.join(", ");
                return Err(("studio/value", format!("give a number from -1 to 1 for each of {names}")));
            }
        }
        if values == self.steering {
            return Ok(Told::Nothing);
        }
        let begun = self.fork()?;
        let forked = begun.is_some();
        if forked {
            let label = format!("the new {}", self.timeline.takes()[self.take].name);
            self.add_edit(Edit { label, take: self.take, begun, what: What::Pull });
        }
        self.steering = values;
        Ok(if forked { Told::Status } else { Told::Nothing })
    }

    fn check_body(&self, body: u32) -> Result<(), Refused> {
        let bodies = self.scene.model.bodies().len();
        if (body as usize) < bodies {
            Ok(())
        } else {
            Err(("studio/value", format!("there is no body {body}: the scene has {bodies}")))
        }
    }

    /// Stiffness of a pull \[N/m\]: one that would carry the whole character at 5 cm of stretch, and no weaker than what holds
    /// it to tracked poses.
    fn pull_stiffness(&self) -> f64 {
        let weight = self.scene.model.mass() * 9.81;
        self.scene.model.trackers().iter().map(|tracker| tracker.stiffness).fold(weight / 0.05, f64::max)
    }

    /// The spring of a pin, a hundred times a pull.
    fn pin_spring(&self) -> Drag {
        let stiffness = 100.0 * self.pull_stiffness();
        let damping = 2.0 * (stiffness * self.scene.model.mass()).sqrt();
        Drag {
            body: BodyId(0),
            point: DVec3::ZERO,
            target: DVec3::ZERO,
            target_velocity: DVec3::ZERO,
            stiffness,
            damping,
        }
    }

    /// Who pulls at each drag of the present input. A recording does not tell; the springs do.
    fn pullers(&self) -> Vec<Puller> {
        let (pin, scripted) = (self.pin_spring(), &self.scene.input.drags);
        let puller = |(k, drag): (usize, &Drag)| match scripted.get(k) {
            Some(script) if script.body == drag.body && script.stiffness == drag.stiffness => Puller::Scene,
            _ if drag.stiffness == pin.stiffness && drag.damping == pin.damping => Puller::Pin,
            _ if posing::is_note_of_pin(drag) => Puller::Pin,
            _ => Puller::Person,
        };
        self.now.input.drags.iter().enumerate().map(puller).collect()
    }

    fn settings_told(&self) -> Settings {
        let s = &self.settings;
        let neutral = JointInput::default();
        let scaled = |(k, j): (usize, &JointInput)| {
            let differs = j.stiffness_scale != neutral.stiffness_scale || j.damping_scale != neutral.damping_scale;
            differs.then_some((k, j.stiffness_scale, j.damping_scale))
        };
        protocol::Settings {
            solver: s.solver.choice(),
            dt: s.dt,
            substeps: s.substeps,
            gravity: s.gravity.to_array(),
            stiffness_scale: s.stiffness_scale,
            damping_scale: s.damping_scale,
            torques: s.torques,
            contacts: ContactsTold::of(s.contacts),
            contact_stiffness: springs(s.solver).map(|law| law.stiffness),
            contact_slip: springs(s.solver).map(|law| law.slip),
            script: self.script,
            hold: self.hold,
            pose: self.is_posing(),
            budget: self.budget_micros(),
            control: self.control_told(),
            joints: s.joints.iter().enumerate().filter_map(scaled).collect(),
        }
    }
}

/// The law of contacts that are springs, where a person may set it.
fn springs(solver: Solver) -> Option<Penalty> {
    match solver {
        Solver::Reduced(Reduced { contacts, .. }) => Some(contacts),
        _ => None,
    }
}

/// A target as the engine takes it.
fn target(pose: TargetPose) -> Result<Target, &'static str> {
    let rotation = DQuat::from_array(pose.rotation);
    let target = Target {
        pose: Pose::new(rotation, pose.position.into()),
        velocity: Twist::new(pose.linear.into(), pose.angular.into()),
    };
    if !(target.pose.is_finite() && target.velocity.is_finite()) {
        return Err("a number is not finite");
    }
    if !is_near(target.pose.translation) {
        return Err("its place is 1000 km away or more");
    }
    if (rotation.length() - 1.0).abs() > 1e-3 {
        return Err("the rotation is not a unit quaternion x, y, z, w");
    }
    Ok(target)
}

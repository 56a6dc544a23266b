//! What only the inside can do: a mistake of our own, and a disk that fails.

use super::*;
use crate::disk::faults::Lasting;
use crate::journal::Folder;
use serde_json::Value;
use std::sync::Mutex;

#[test]
fn a_mistake_of_our_own_is_told_and_loses_nothing() {
    let path = std::env::temp_dir().join(format!("supple-test-{}-stumble", std::process::id()));
    let _ = std::fs::remove_dir_all(&path);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let folder = Folder::new(&path, Disk::default());
    let desk = Desk { folder: Some(folder.clone()), ..Desk::new("test".into()) };
    let (commands, mut published) =
        start(Opening::scene("hand").unwrap(), desk, runtime.handle().clone()).expect("it starts");
    let (reply, _replies) = mpsc::channel(8);
    let ask = |request| Command::Ask { client: 0, request, reply: reply.clone() };
    let send = |command| assert!(commands.blocking_send(command).is_ok(), "the simulation lives");
    let take = || {
        let (reply, answer) = oneshot::channel();
        send(Command::Copy(reply));
        answer.blocking_recv().unwrap().timeline
    };
    send(ask(Request::Pause));
    send(ask(Request::Step { count: 40 }));
    send(ask(Request::Rename { take: 0, name: "mine".into() }));
    let before = take();
    send(Command::Stumble);
    let told = runtime.block_on(async {
        loop {
            published.status.changed().await.unwrap();
            let status = published.status.borrow_and_update().clone();
            if status.contains("as the test asks") {
                return status;
            }
        }
    });
    let status: serde_json::Value = serde_json::from_str(&told).unwrap();
    assert_eq!((&status["notice"]["level"], &status["playing"]), (&"error".into(), &false.into()), "{status}");
    assert!(status["notice"]["text"].as_str().unwrap().starts_with("A fault in supple itself: as the test asks."));

    // Nothing is lost, and one can go on from there.
    let end = before.takes()[0].end();
    assert_eq!(take().hash(0, end), before.hash(0, end));
    send(ask(Request::Step { count: 5 }));
    let after = take();
    assert_eq!((after.takes()[0].end(), after.takes()[0].name.as_str()), (end + 5, "mine"));
    let (reply, answer) = oneshot::channel();
    send(Command::Close(reply));
    assert_eq!(answer.blocking_recv().unwrap(), Closed { kept: 1, ..Closed::default() });
    let mut orphans = folder.orphans().unwrap();
    assert_eq!(orphans.len(), 1);
    assert_eq!(orphans[0].read().unwrap().timeline.takes()[0].end(), end + 5);
    let _ = std::fs::remove_dir_all(&path);
}

/// A studio without its server, whose disk may fail.
struct Session {
    runtime: tokio::runtime::Runtime,
    commands: mpsc::Sender<Command>,
    published: Published,
    reply: mpsc::Sender<String>,
    journal: PathBuf,
    /// What the terminal was told.
    told: Arc<Mutex<Vec<String>>>,
}

/// Takes of a scene and how they must be found again.
#[derive(Clone, Debug, PartialEq)]
struct Worked {
    scene: String,
    name: String,
    end: u64,
}

impl Worked {
    fn of(timeline: &Timeline) -> Worked {
        let take = &timeline.takes()[0];
        Worked { scene: timeline.scene().to_owned(), name: take.name.clone(), end: take.end() }
    }
}

impl Session {
    fn start(folder: &Path, disk: &Disk) -> Session {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let told = Arc::<Mutex<Vec<String>>>::default();
        let heard = told.clone();
        let journal = folder.join("journal");
        let desk = Desk {
            folder: Some(Folder::new(&journal, disk.clone())),
            rescue: vec![folder.join("elsewhere")],
            disk: disk.clone(),
            retry: (Duration::from_millis(1), 2),
            journal_interval: Duration::from_millis(1),
            teller: Box::new(move |text| heard.lock().unwrap().push(text.to_owned())),
            ..Desk::new("test".into())
        };
        std::fs::create_dir_all(folder.join("elsewhere")).unwrap();
        let (commands, published) =
            start(Opening::scene("pendulum").unwrap(), desk, runtime.handle().clone()).expect("it starts");
        let (reply, _) = mpsc::channel(8);
        Session { runtime, commands, published, reply, journal, told }
    }

    fn send(&self, command: Command) {
        assert!(self.commands.blocking_send(command).is_ok(), "the simulation lives");
    }

    fn ask(&self, request: Request) {
        self.send(Command::Ask { client: 0, request, reply: self.reply.clone() });
    }

    /// Opens a scene and works on it.
    fn work_on(&self, scene: &str, name: &str) {
        self.ask(Request::Open { scene: scene.into() });
        self.ask(Request::Pause);
        self.do_steps(5);
        self.ask(Request::Rename { take: 0, name: name.into() });
    }

    fn do_steps(&self, count: u32) {
        self.ask(Request::Step { count });
    }

    /// A copy of the takes, as a page is sent it.
    fn copy(&self) -> Copied {
        let (reply, answer) = oneshot::channel();
        self.send(Command::Copy(reply));
        answer.blocking_recv().unwrap()
    }

    fn status(&self) -> Value {
        serde_json::from_str(&self.published.status.borrow()).unwrap()
    }

    /// Waits until the present work is on disk, or the page says that the journal cannot be written. Returns it, and whether it is on disk.
    fn settle(&self, recovers: bool) -> (Worked, bool) {
        let (start, work) = (Instant::now(), Worked::of(&self.copy().timeline));
        loop {
            let (reply, settled) = oneshot::channel();
            self.send(Command::AskSettled(reply));
            if settled.blocking_recv().unwrap() {
                let found = found(&self.journal);
                assert!(found.contains(&work), "the journal says that it holds {work:?}, and has {found:?}");
                return (work, true);
            }
            let status = self.status();
            if !recovers && status["journal_trouble"] != Value::Null {
                assert!(self.told.lock().unwrap().iter().any(|text| text.contains("keeps trying")), "the terminal too");
                return (work, false);
            }
            assert!(start.elapsed() < Duration::from_secs(30), "neither on disk nor told: {work:?}, {status}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// A page holds the takes as they are now.
    fn save(&self) {
        let Copied { generation, revision, .. } = self.copy();
        let (reply, answer) = oneshot::channel();
        self.send(Command::Saved { generation, revision, reply });
        assert!(answer.blocking_recv().unwrap());
    }

    fn close(self) -> Closed {
        let (reply, answer) = oneshot::channel();
        self.send(Command::Close(reply));
        let closed = answer.blocking_recv().unwrap();
        self.runtime.shutdown_timeout(Duration::from_secs(1));
        closed
    }
}

/// The first takes of all journals and files in a folder.
fn found(folder: &Path) -> Vec<Worked> {
    let paths = std::fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path());
    let files = paths.filter_map(|path| file::recover(&std::fs::read(path).ok()?).ok());
    files.map(|recovered| Worked::of(&recovered.file.timeline)).collect()
}

/// Which disk fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Where {
    Journal,
    Everywhere,
}

/// A session of three scenes: two are worked on and not saved, the third is. The operation `n` of the disk fails. Returns whether there was one.
fn record_and_save(n: u64, error: i32, lasting: Lasting, mended: bool, place: Where) -> bool {
    let case = format!("operation {n}, error {error}, {lasting:?}, mended: {mended}, {place:?}");
    let name = format!("supple-test-{}-fault-{n}-{error}-{lasting:?}-{mended}-{place:?}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    let _ = std::fs::remove_dir_all(&folder);
    let below = if place == Where::Journal { folder.join("journal") } else { folder.clone() };
    let disk = Disk::failing(&below, n, lasting, error);
    let recovers = lasting == Lasting::Once;
    let session = Session::start(&folder, &disk);
    let mut held = Vec::new();
    let mut note = |session: &Session| {
        let (work, is_held) = session.settle(recovers);
        held.extend(is_held.then(|| work.clone()));
        work
    };
    session.work_on("pendulum", "pulled");
    note(&session);
    session.do_steps(5);
    let pulled = note(&session);
    session.work_on("chain:3", "directed");
    note(&session);
    session.save();
    session.do_steps(3); // what was saved does not cover these
    let directed = note(&session);
    session.work_on("chain:2", "saved");
    let saved = note(&session);
    // What was once on disk is there still, or a later state of it.
    let now = found(&session.journal);
    for work in held {
        let kept = now.iter().any(|found| found.scene == work.scene && found.end >= work.end);
        assert!(kept, "{case}: {work:?} was on disk; now {now:?}");
    }
    session.save();
    if mended {
        disk.mend();
    }
    let closed = session.close();
    let (journals, files) = (found(&folder.join("journal")), found(&folder.join("elsewhere")));
    // Nothing that was not saved is lost, unless nothing at all could be written, and that is told.
    let unsaved = [pulled, directed];
    let is_there = |work: &&Worked| journals.contains(work) || files.contains(work);
    // (What was written and could not be flushed may be there after all.)
    assert!(closed.lost >= 2 - unsaved.iter().filter(is_there).count(), "{case}: {closed:?}, {journals:?}, {files:?}");
    if lasting == Lasting::Once || mended || place == Where::Journal {
        assert_eq!(closed.lost, 0, "{case}: {closed:?}");
    }
    // What is told is so.
    assert_eq!(closed.elsewhere.len(), files.len(), "{case}: {closed:?}");
    for path in &closed.elsewhere {
        assert!(file::read(&std::fs::read(path).unwrap()).is_ok(), "{case}: whole files are there");
    }
    // Anything but two journals, of what was not saved, has a reason, which is told.
    let usual = closed == Closed { kept: 2, ..Closed::default() };
    assert!(closed.trouble.is_some() || usual && journals.len() == 2, "{case}: {closed:?}, {journals:?}");
    assert!(closed.trouble.is_some() || !journals.contains(&saved), "{case}: {closed:?}, {journals:?}");
    assert!(closed.kept <= journals.len(), "{case}: {closed:?}, {journals:?}");
    let asked = disk.asked();
    let _ = std::fs::remove_dir_all(&folder);
    asked > n
}

#[test]
fn whatever_operation_of_the_disk_fails_nothing_is_lost_without_a_word() {
    const ENOSPC: i32 = 28;
    const EIO: i32 = 5;
    const EACCES: i32 = 13;
    let cases = [
        (Lasting::Once, false, Where::Everywhere),
        (Lasting::On, false, Where::Journal),
        (Lasting::On, true, Where::Everywhere),
        (Lasting::On, false, Where::Everywhere),
    ];
    let mut operations = 0;
    for (lasting, mended, place) in cases {
        for error in [ENOSPC, EIO, EACCES] {
            let mut n = 0;
            while record_and_save(n, error, lasting, mended, place) {
                n += 1;
            }
            operations += n;
        }
    }
    assert!(operations > 200, "{operations} operations failed in turn");
}

/// A stage at the end of some steps.
fn stage(scene: &str, steps: usize) -> Stage {
    let mut stage = Stage::open(Opening::scene(scene).unwrap(), "test", 0).unwrap();
    for _ in 0..steps {
        assert!(stage.advance().is_ok());
    }
    stage
}

#[test]
fn going_beyond_the_end_is_refused_and_moves_nothing() {
    let mut stage = stage("chain:3", 20);
    stage.seek(0, 5).unwrap();
    let hash = stage.now.state.hash();
    for step in [21, 22, u64::MAX] {
        let (code, text) = stage.seek(0, step).unwrap_err();
        assert!(code == "studio/take" && text.contains("its last is 20"), "{code}: {text}");
        assert_eq!((stage.now.step, stage.now.state.hash()), (5, hash), "step {step}");
    }
    let (_, text) = stage.seek(7, 0).unwrap_err();
    assert!(text.contains("no such take"), "{text}");
}

#[test]
fn keyframes_far_away_in_time_are_refused() {
    let mut stage = stage("chain:3", 2);
    for time in [1e308, -1e308, -1.0, f64::INFINITY, f64::NAN, 86_401.0] {
        let (code, text) = stage.add_key(Some(time)).unwrap_err();
        assert!(code == "studio/value" && text.contains("from 0 to 86400 s"), "{time}: {text}");
    }
    assert!(stage.add_key(Some(1.0)).is_ok());
}

#[test]
fn what_speaks_against_a_run_is_told() {
    let mut loose = stage("chain:10", 5);
    assert_eq!(loose.quality().grade, supple::Grade::Good);
    loose.settings.solver = Solver::Reduced(Reduced::default());
    for _ in 0..100 {
        assert!(loose.advance().is_ok());
    }
    let quality = loose.quality();
    assert!(quality.reasons.iter().any(|reason| reason.about == "damping"), "{quality:?}");
}

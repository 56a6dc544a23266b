//! What only the inside can do: a mistake of our own.

use super::*;
use crate::journal::Folder;

#[test]
fn a_mistake_of_our_own_is_told_and_loses_nothing() {
    let path = std::env::temp_dir().join(format!("supple-test-{}-stumble", std::process::id()));
    let _ = std::fs::remove_dir_all(&path);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let folder = Folder::open(&path).unwrap();
    let desk = Desk { build: "test".into(), folder: Some(folder.clone()), orphans: Vec::new() };
    let (commands, mut published) =
        start(Opening::scene("hand").unwrap(), desk, runtime.handle().clone()).expect("it starts");
    let (reply, _replies) = mpsc::channel(8);
    let ask = |request| Command::Ask { client: 0, request, reply: reply.clone() };
    let send = |command| assert!(commands.blocking_send(command).is_ok(), "the simulation lives");
    let take = || {
        let (reply, answer) = oneshot::channel();
        send(Command::Copy(Purpose::Look, reply));
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
    assert_eq!(answer.blocking_recv().unwrap(), Closed::Kept);
    let mut orphans = folder.orphans().unwrap();
    assert_eq!(orphans.len(), 1);
    assert_eq!(orphans[0].read().unwrap().timeline.takes()[0].end(), end + 5);
    let _ = std::fs::remove_dir_all(&path);
}

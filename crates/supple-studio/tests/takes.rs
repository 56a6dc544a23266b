//! Takes through the server: what is resumed is the uninterrupted run bit for bit; takes are removed, compared, undone, kept in a journal.

mod common;

use common::{
    Client, address_of, ask, delivered, find_unfinished, folder, journal_where, journals, journals_become, paused, run,
    save, saved, seek, settings, start,
};
use serde_json::{Value, json};
use supple::timeline::file::{self, TakeFile};
use supple::timeline::{Fork, Playback};
use supple::{Scene, Work};
use supple_studio::{Opening, Studio};

/// Every step of every take of a file, done again from the start of the scene, has the recorded hash.
fn assert_done_again(file: &TakeFile) {
    let scene = Scene::parse(file.timeline.scene()).unwrap();
    assert!(file.timeline.is_of(&scene.model));
    let mut work = Work::new(&scene.model);
    for (k, take) in file.timeline.takes().iter().enumerate() {
        let mut moment = file.timeline.seek(&scene.model, k, 0, &mut work).unwrap();
        while moment.step < take.end() {
            let outcome = file.timeline.advance(&scene.model, k, &mut moment, &mut work).unwrap();
            assert!(outcome.identical, "take {k} at {}", moment.step);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_is_the_run_that_would_have_been() {
    let address = start("robot");
    let (mut client, _) = paused(&address, 150).await;
    // Back to 75, in the middle of a stretch, and away from there with a pull and another gravity.
    seek(&mut client, 0, 75).await;
    client.say(json!({"type": "drag", "body": 4, "point": [0, 0, 0], "target": [0.5, 1.5, 0.5]})).await;
    client.say(json!({"type": "set", "gravity": [0, -3, 0]})).await;
    client.say(json!({"type": "step", "count": 50})).await;
    client.say(json!({"type": "release"})).await;
    client.say(json!({"type": "step", "count": 50})).await;
    client.frame_where(|frame| frame.step() == 175).await;
    let file = saved(&address).await;
    assert_eq!(file.timeline.takes().len(), 2);
    assert_eq!(file.timeline.takes()[1].fork, Some(Fork { take: 0, step: 75 }));
    assert_done_again(&file); // the fork too, uninterrupted from the first step

    // Stopped, scrubbed and replayed in between, the take goes on as if nothing had been: bit for bit that of a run without.
    let uninterrupted = start("robot");
    let (mut other, behind) = paused(&uninterrupted, 0).await;
    other.say(json!({"type": "step", "count": 300 - behind})).await;
    other.frame_where(|frame| frame.step() == 300).await;
    seek(&mut client, 0, 20).await;
    seek(&mut client, 0, 130).await;
    let end = file.timeline.takes()[0].end() as u32;
    client.say(json!({"type": "step", "count": 300 - 130})).await; // replays to the end, then goes on live
    client.frame_where(|frame| frame.step() == 300 && frame.u32(24) == 0).await;
    let (one, two) = (saved(&address).await.timeline, saved(&uninterrupted).await.timeline);
    assert!(end < 300);
    for step in 1..=300 {
        assert_eq!(one.takes()[0].hash(step), two.takes()[0].hash(step), "step {step}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn edits_are_undone_and_done_again() {
    let address = start("robot");
    let (mut client, _) = paused(&address, 100).await;
    let labelled = |undo: Value, redo: Value| move |status: &Value| status["undo"] == undo && status["redo"] == redo;

    // A slider that is moved is one edit.
    for g in [-9.0, -8.0, -7.0] {
        client.say(json!({"type": "set", "gravity": [0, g, 0]})).await;
    }
    client.say(json!({"type": "pin", "body": 4, "on": true})).await;
    client.say(json!({"type": "rename", "take": 0, "name": "first try"})).await;
    client.status_where(labelled("rename take 1".into(), Value::Null)).await;
    client.say(json!({"type": "undo"})).await;
    let status = client.status_where(|status| status["redo"] == "rename take 1").await;
    assert_eq!((&status["takes"][0]["name"], status["pins"].as_array().unwrap().len()), (&"take 1".into(), 1));
    assert!(status["undo"].as_str().unwrap().starts_with("pin "), "{}", status["undo"]);
    client.say(json!({"type": "undo"})).await;
    let status = client.status_where(|status| status["undo"] == "gravity").await;
    assert_eq!((&status["pins"], &status["settings"]["gravity"][1]), (&json!([]), &(-7.0).into()));
    client.say(json!({"type": "undo"})).await;
    let status = client.status_where(|status| status["undo"] == Value::Null).await;
    assert_eq!(status["settings"]["gravity"][1], -9.81);
    for _ in 0..3 {
        client.say(json!({"type": "redo"})).await;
    }
    let status = client.status_where(labelled("rename take 1".into(), Value::Null)).await;
    assert_eq!((&status["takes"][0]["name"], &status["settings"]["gravity"][1]), (&"first try".into(), &(-7.0).into()));
    assert_eq!(status["pins"], json!([4]));

    // A setting in the past begins a take; undoing goes back to where one was, and the take is gone; again, and it is there.
    seek(&mut client, 0, 40).await;
    client.say(json!({"type": "set", "torques": false})).await;
    client.say(json!({"type": "step", "count": 20})).await;
    let limp = client.frame_where(|frame| frame.step() == 60 && frame.u32(24) == 1).await;
    client.say(json!({"type": "undo"})).await;
    let status = client.status_where(|status| status["redo"] == "joint torques").await;
    assert_eq!(
        (&status["take"], &status["takes"][1], &status["settings"]["torques"]),
        (&0.into(), &Value::Null, &true.into())
    );
    assert_eq!(client.frame().await.step(), 40);
    client.say(json!({"type": "redo"})).await;
    let again = client.frame_where(|frame| frame.u32(24) == 1).await;
    assert_eq!((again.step(), again.poses()), (60, limp.poses()));

    // A fork of the fork; removing the fork removes both, undoing brings both back.
    seek(&mut client, 1, 50).await;
    client.say(json!({"type": "drag", "body": 4, "point": [0, 0, 0], "target": [0, 2, 0]})).await;
    client.status_where(|status| status["undo"] == "the new take 3").await;
    client.say(json!({"type": "step", "count": 5})).await;
    client.frame_where(|frame| frame.step() == 55 && frame.u32(24) == 2).await;
    client.say(json!({"type": "delete", "take": 1})).await;
    let status = client.status_where(|status| status["take"] == 0).await;
    assert_eq!((&status["takes"][1], &status["takes"][2]), (&Value::Null, &Value::Null));
    assert_eq!(status["undo"], "delete take 2 and 1 from it");
    assert_eq!(saved(&address).await.timeline.takes().len(), 1);
    client.say(json!({"type": "seek", "take": 2, "step": 55})).await;
    assert_eq!(client.told("error").await["code"], "studio/take");
    client.say(json!({"type": "undo"})).await;
    let status = client.status_where(|status| status["take"] == 2).await;
    assert_eq!((&status["takes"][1]["end"], &status["takes"][2]["end"]), (&60.into(), &55.into()));
    assert_eq!(client.frame_where(|frame| frame.u32(24) == 2).await.step(), 55);
    client.say(json!({"type": "delete", "take": 0})).await;
    assert!(client.told("error").await["message"].as_str().unwrap().contains("take/first"));
    assert_done_again(&saved(&address).await);

    // Another scene is an edit too: all takes come back.
    client.say(json!({"type": "open", "scene": "pendulum"})).await;
    client.status_where(|status| status["undo"] == "open pendulum").await;
    client.say(json!({"type": "undo"})).await;
    let status = client.status_where(|status| status["redo"] == "open pendulum").await;
    assert_eq!(status["takes"].as_array().unwrap().len(), 3);
    assert_eq!(status["undo"], "the new take 3");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_take_is_compared_with_another() {
    let address = start("robot");
    let (mut client, _) = paused(&address, 120).await;
    seek(&mut client, 0, 60).await;
    client.say(json!({"type": "set", "gravity": [0, 9.81, 0]})).await;
    client.say(json!({"type": "step", "count": 40})).await;
    client.frame_where(|frame| frame.step() == 100 && frame.u32(24) == 1).await;
    client.say(json!({"type": "compare", "take": 0})).await;
    // Before the contacts and the nodes of flesh, of which there are none, stand the poses of the other take at the same step, after their number.
    let frame = client.frame_where(|frame| frame.end() > 12 && frame.u32(frame.end() - 12) != 0).await;
    let bodies = frame.bodies();
    let others = frame.end() - 8 - 28 * bodies;
    assert_eq!(frame.u32(others - 4) as usize, bodies);
    let file = saved(&address).await;
    let mut playback = Playback::default();
    file.timeline.look(0, 100, &mut playback).unwrap();
    for body in 0..bodies {
        let pose = playback.pose(body);
        for (k, x) in pose.translation.to_array().into_iter().chain(pose.rotation.to_array()).enumerate() {
            assert_eq!(frame.f32(others + 28 * body + 4 * k), x as f32);
        }
    }
    let (status, text) = ask(&address, "GET", "/compare/1/0", b"").await;
    assert_eq!(status, 200);
    let compared: Value = serde_json::from_slice(&text).unwrap();
    assert_eq!((&compared["first"], &compared["last"]), (&60.into(), &100.into()));
    assert_eq!(compared["times"].as_array().unwrap().len(), 41);
    let angles = compared["angles"].as_array().unwrap();
    assert_eq!(angles.len(), 5);
    assert!(angles[0]["name"].as_str().unwrap().ends_with("elbow"), "{}", angles[0]["name"]);
    assert!(angles[0]["largest"].as_f64().unwrap() > 0.05);
    assert!(angles.is_sorted_by(|a, b| a["largest"].as_f64() >= b["largest"].as_f64()));
    assert!(angles[0]["values"][0].as_f64().unwrap() < 1e-15, "they part there");
    assert_eq!(ask(&address, "GET", "/compare/1/7", b"").await.0, 400);
    assert_eq!(ask(&address, "GET", "/compare/1/x", b"").await.0, 400);
    client.say(json!({"type": "compare", "take": null})).await;
    client.frame_where(|frame| frame.u32(frame.end() - 12) == 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_take_of_another_build_is_shown_as_stored() {
    let address = start("robot");
    let (client, _) = paused(&address, 130).await;
    drop(client);
    let (_, bytes) = ask(&address, "GET", "/take", b"").await;
    let recorded = file::read(&bytes).unwrap();
    let end = recorded.timeline.takes()[0].end() as u32;

    let (address, _task) = run(Opening::takes(&bytes).unwrap(), "another build", None);
    let mut client = Client::connect(&address).await;
    let status = client.told("status").await;
    assert!(status["stored"].as_str().unwrap().contains("another build (test)"), "{status}");
    assert_eq!(status["notice"]["level"], "warning");
    assert_eq!(status["playing"], false);
    const STORED: u8 = 16;
    let frame = seek(&mut client, 0, 77).await;
    assert_ne!(frame.0[2] & STORED, 0);
    let mut playback = Playback::default();
    recorded.timeline.look(0, 77, &mut playback).unwrap();
    for body in 0..frame.bodies() {
        assert_eq!(frame.position(body), playback.pose(body).translation.to_array().map(|x| x as f32));
    }
    // Playing shows the stored steps; what is then gone on from is computed from the snapshot.
    client.say(json!({"type": "step", "count": end - 77})).await;
    client.frame_where(|frame| frame.step() == end).await;
    client.say(json!({"type": "step", "count": 5})).await;
    let live = client.frame_where(|frame| frame.step() == end + 5).await;
    assert_eq!(live.0[2] & STORED, 0);
    assert_done_again(&saved(&address).await);

    // A model that does not fit is shown, and refuses to go on: the same bodies with other arms.
    let other = file::read(&bytes).unwrap();
    let mut forged = Scene::parse("robot").unwrap();
    let mut builder = supple::ModelBuilder::new();
    for body in forged.model.bodies() {
        builder.body(supple::BodySpec::new(&body.name).shape(supple::Shape::sphere(0.1), 1000.0));
    }
    for joint in forged.model.joints() {
        let parent = joint.parent.map_or(supple::BodyRef::World, supple::BodyRef::Id);
        let spec = supple::JointSpec::new(&joint.name, joint.mask, joint.child, parent);
        let arm = supple::Pose::at(supple::glam::DVec3::X * 0.7);
        builder.joint(spec.frames(arm, arm.inverse()));
    }
    forged.model = builder.build().unwrap();
    forged.state = forged.model.start();
    let (address, _task) = run(Opening::of_scene(forged).with_takes(other), "test", None);
    let mut client = Client::connect(&address).await;
    assert!(client.told("status").await["stored"].as_str().unwrap().contains("model"));
    seek(&mut client, 0, 77).await;
    client.say(json!({"type": "set", "gravity": [0, 0, 0]})).await;
    let error = client.told("error").await;
    assert!(error["message"].as_str().unwrap().contains("m apart"), "{error}");
    seek(&mut client, 0, end).await;
    client.say(json!({"type": "play"})).await;
    let status = client.status_where(|status| status["notice"]["level"] == "error").await;
    assert!(status["notice"]["text"].as_str().unwrap().contains("not resumed"), "{status}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_journal_follows_and_a_clean_end_leaves_none() {
    let folder = folder("clean");
    let (address, task) = run(Opening::scene("robot").unwrap(), "test", Some(&folder));
    let mut client = Client::connect(&address).await;
    client.frame_where(|frame| frame.step() > 30).await;
    journal_where(&folder, |file| file.timeline.takes()[0].end() > 30).await;
    // Another studio in the same folder takes nobody's journal for its own.
    let second = Studio::bind(Opening::scene("hand").unwrap(), settings("test", Some(&folder))).unwrap();
    assert!(second.unfinished().is_empty());
    drop(second);
    // Another scene replaces what it holds.
    client.say(json!({"type": "open", "scene": "pendulum"})).await;
    journal_where(&folder, |file| file.timeline.scene() == "pendulum").await;
    journals_become(&folder, 1).await;
    // The pendulum was only looked at: nothing of it is kept.
    drop(client);
    task.abort();
    journals_become(&folder, 0).await;
    let _ = std::fs::remove_dir_all(&folder);
}

#[tokio::test(flavor = "multi_thread")]
async fn work_that_makes_room_for_another_scene_is_kept() {
    let folder = folder("aside");
    let (address, task) = run(Opening::scene("robot").unwrap(), "test", Some(&folder));
    let (mut client, step) = paused(&address, 10).await;
    // Also while paused an edit reaches the journal.
    client.say(json!({"type": "rename", "take": 0, "name": "kept"})).await;
    journal_where(&folder, |file| file.timeline.takes()[0].name == "kept").await;
    // What is done last, and at once followed by another scene, is in the journal that stays beside that of the other scene.
    client.say(json!({"type": "rename", "take": 0, "name": "kept to the last"})).await;
    client.say(json!({"type": "open", "scene": "pendulum"})).await;
    journal_where(&folder, |file| file.timeline.scene() == "pendulum").await;
    journals_become(&folder, 2).await;
    let last = |file: &TakeFile| file.timeline.takes()[0].name == "kept to the last";
    journal_where(&folder, last).await;
    // It comes back by undoing, with one journal; and makes room again.
    client.say(json!({"type": "undo"})).await;
    journals_become(&folder, 1).await;
    journal_where(&folder, last).await;
    client.say(json!({"type": "redo"})).await;
    journals_become(&folder, 2).await;
    client.say(json!({"type": "open", "scene": "hand"})).await;
    journal_where(&folder, |file| file.timeline.scene() == "hand").await;
    journals_become(&folder, 2).await;
    // Of all scenes the one that was worked on is offered.
    drop(client);
    task.abort();
    let studio = find_unfinished(&folder).await;
    let offered: Vec<_> = studio.unfinished().iter().map(|line| (line.scene.clone(), line.steps)).collect();
    assert_eq!(offered, [("robot".to_owned(), u64::from(step))]);
    let _ = std::fs::remove_dir_all(&folder);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_recovered_outlives_an_end_at_once() {
    let folder = folder("at-once");
    let (address, task) = run(Opening::scene("robot").unwrap(), "test", Some(&folder));
    let (mut client, _) = paused(&address, 20).await;
    client.say(json!({"type": "rename", "take": 0, "name": "mine"})).await;
    client.status_where(|status| status["takes"][0]["name"] == "mine").await;
    drop(client);
    task.abort();
    // Recovered and ended before a journal of its own was due; recovered, left for another scene and ended.
    for other in [None, Some("hand")] {
        let studio = find_unfinished(&folder).await;
        assert_eq!(studio.unfinished().len(), 1);
        let address = address_of(&studio);
        let task = tokio::spawn(async { studio.run().await.unwrap() });
        let mut client = Client::connect(&address).await;
        let offered = client.told("status").await["journals"].clone();
        client.say(json!({"type": "recover", "journal": offered[0]["journal"]})).await;
        client.status_where(|status| status["takes"][0]["name"] == "mine").await;
        if let Some(scene) = other {
            client.say(json!({"type": "open", "scene": scene})).await;
            client.status_where(|status| status["undo"] == format!("open {scene}")).await;
        }
        drop(client);
        task.abort();
    }
    let studio = find_unfinished(&folder).await;
    assert_eq!(studio.unfinished().iter().map(|line| line.scene.as_str()).collect::<Vec<_>>(), ["robot"]);
    let _ = std::fs::remove_dir_all(&folder);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unfinished_session_is_offered_recovered_or_discarded() {
    let folder = folder("offered");
    // A session that ends with something made by hand keeps its journal.
    let (address, task) = run(Opening::scene("robot").unwrap(), "test", Some(&folder));
    let (mut client, _) = paused(&address, 100).await;
    seek(&mut client, 0, 50).await;
    client.say(json!({"type": "drag", "body": 4, "point": [0, 0, 0], "target": [0.3, 1.8, 0.4]})).await;
    client.say(json!({"type": "step", "count": 30})).await;
    client.frame_where(|frame| frame.step() == 80 && frame.u32(24) == 1).await;
    let before = saved(&address).await; // saved, and then changed again
    client.say(json!({"type": "rename", "take": 1, "name": "by hand"})).await;
    client.status_where(|status| status["takes"][1]["name"] == "by hand").await;
    drop(client);
    task.abort();
    // What is not ours is left alone; a journal without a whole record goes.
    std::fs::write(folder.join("my.journal"), b"Dear diary").unwrap();
    std::fs::write(folder.join("7-0.journal"), b"").unwrap();
    let studio = find_unfinished(&folder).await;
    let session = &studio.unfinished()[0];
    assert_eq!((session.scene.as_str(), session.takes, session.steps), ("robot", 2, 80));
    let address = address_of(&studio);
    let task = tokio::spawn(async { studio.run().await.unwrap() });
    let mut client = Client::connect(&address).await;
    let offered = client.told("status").await["journals"].clone();
    assert_eq!((offered.as_array().unwrap().len(), &offered[0]["scene"]), (1, &"robot".into()));
    client.say(json!({"type": "recover", "journal": offered[0]["journal"]})).await;
    let recovered = |status: &Value| status["takes"].as_array().unwrap().len() == 2 && status["journals"] == json!([]);
    let status = client.status_where(recovered).await;
    assert_eq!((&status["take"], &status["takes"][1]["name"]), (&1.into(), &"by hand".into()));
    assert_eq!(status["stored"], Value::Null, "the same build computes it again");
    let after = saved(&address).await;
    for take in 0..2 {
        for step in 1..=before.timeline.takes()[take].end() {
            assert_eq!(after.timeline.hash(take, step), before.timeline.hash(take, step));
        }
    }
    assert_done_again(&after);
    // The old journal is gone when ours holds what was in it.
    client.say(json!({"type": "rename", "take": 1, "name": "recovered"})).await;
    journal_where(&folder, |file| file.timeline.takes().len() == 2 && file.timeline.takes()[1].name == "recovered")
        .await;
    journals_become(&folder, 1).await;
    drop(client);
    task.abort();

    // And once more, to be discarded.
    let studio = find_unfinished(&folder).await;
    let address = address_of(&studio);
    tokio::spawn(async { studio.run().await.unwrap() });
    let mut client = Client::connect(&address).await;
    let offered = client.told("status").await["journals"].clone();
    client.say(json!({"type": "discard", "journal": offered[0]["journal"]})).await;
    client.status_where(|status| status["journals"] == json!([])).await;
    journal_where(&folder, |file| file.timeline.scene() == "pendulum").await;
    journals_become(&folder, 1).await;
    assert!(folder.join("my.journal").exists());
    let _ = std::fs::remove_dir_all(&folder);
}

/// A studio with a take made by hand, of which a journal is on disk.
async fn made_by_hand(folder: &std::path::Path) -> (String, tokio::task::JoinHandle<()>, Client) {
    let (address, task) = run(Opening::scene("robot").unwrap(), "test", Some(folder));
    let (mut client, _) = paused(&address, 20).await;
    client.say(json!({"type": "rename", "take": 0, "name": "mine"})).await;
    client.status_where(|status| status["takes"][0]["name"] == "mine" && status["unsaved"] == true).await;
    journal_where(folder, |file| file.timeline.takes()[0].name == "mine").await;
    (address, task, client)
}

#[tokio::test(flavor = "multi_thread")]
async fn takes_are_saved_when_a_page_says_that_it_holds_them() {
    let folder = folder("word");
    let (address, task, mut client) = made_by_hand(&folder).await;
    // That they were sent saves nothing, and neither does a wrong word.
    let (bytes, word) = delivered(&address).await;
    assert_eq!(file::read(&bytes).unwrap().timeline.takes()[0].name, "mine");
    for (key, wrong) in [("id", json!(99)), ("bytes", json!(bytes.len() - 1)), ("hash", json!("00000000"))] {
        let mut other = word.clone();
        other[key] = wrong;
        let (status, said) = ask(&address, "POST", "/saved", other.to_string().as_bytes()).await;
        assert!(status == 409 && String::from_utf8_lossy(&said).contains("studio/saved"), "{key}: {status}");
    }
    assert_eq!(ask(&address, "POST", "/saved", b"yes").await.0, 400);
    assert_eq!(ask(&address, "POST", "/saved", &[b' '; 2000]).await.0, 413);
    client.say(json!({"type": "pause"})).await;
    assert_eq!(client.told("status").await["unsaved"], true);
    // The right one does.
    let (status, _) = ask(&address, "POST", "/saved", word.to_string().as_bytes()).await;
    assert_eq!(status, 204);
    client.status_where(|status| status["unsaved"] == false).await;
    drop(client);
    task.abort();
    journals_become(&folder, 0).await;
    let _ = std::fs::remove_dir_all(&folder);
}

#[tokio::test(flavor = "multi_thread")]
async fn takes_that_were_only_sent_outlive_the_end() {
    let folder = folder("sent");
    let (address, task, client) = made_by_hand(&folder).await;
    delivered(&address).await;
    drop(client);
    task.abort();
    assert_eq!(find_unfinished(&folder).await.unfinished()[0].scene, "robot");
    let _ = std::fs::remove_dir_all(&folder);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_word_does_not_cover_what_was_recorded_since() {
    let folder = folder("old-word");
    let (address, task, mut client) = made_by_hand(&folder).await;
    let (_, word) = delivered(&address).await;
    client.say(json!({"type": "step", "count": 10})).await;
    let end = client.frame_where(|frame| frame.step() >= 30).await.step();
    assert_eq!(ask(&address, "POST", "/saved", word.to_string().as_bytes()).await.0, 204);
    assert_eq!(client.status_where(|_| true).await["unsaved"], true, "ten steps more than were sent");
    // Saved to the last step, and then a step more: that is told at once.
    save(&address).await;
    client.status_where(|status| status["unsaved"] == false).await;
    client.say(json!({"type": "step"})).await;
    client.status_where(|status| status["unsaved"] == true).await;
    // Another scene is open: the word comes too late, and the journal stays.
    let (_, word) = delivered(&address).await;
    client.say(json!({"type": "open", "scene": "pendulum"})).await;
    client.status_where(|status| status["undo"] == "open pendulum").await;
    assert_eq!(ask(&address, "POST", "/saved", word.to_string().as_bytes()).await.0, 409);
    drop(client);
    task.abort();
    let studio = find_unfinished(&folder).await;
    assert_eq!((studio.unfinished()[0].scene.as_str(), studio.unfinished()[0].steps), ("robot", u64::from(end) + 1));
    let _ = std::fs::remove_dir_all(&folder);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_journal_whose_folder_is_removed_is_written_again() {
    let folder = folder("removed");
    let (_, task, mut client) = made_by_hand(&folder).await;
    while folder.exists() {
        let _ = std::fs::remove_dir_all(&folder); // the studio may be writing into it
    }
    client.say(json!({"type": "step", "count": 10})).await;
    // All of it, not only what is new.
    journal_where(&folder, |file| file.timeline.takes()[0].end() >= 30).await;
    // While a file is in its place nothing can be written: that is told; with the folder back all is there.
    // The studio may put the folder there again in between.
    while std::fs::write(&folder, b"").is_err() {
        let _ = std::fs::remove_dir_all(&folder);
    }
    client.say(json!({"type": "step", "count": 10})).await;
    let status = client.status_where(|status| status["journal_trouble"] != Value::Null).await;
    let text = status["notice"]["text"].as_str().unwrap();
    assert!(status["notice"]["level"] == "error" && text.contains("keeps trying"), "{text}");
    std::fs::remove_file(&folder).unwrap();
    journal_where(&folder, |file| file.timeline.takes()[0].end() >= 40).await;
    let status = client.status_where(|status| status["journal_trouble"] == Value::Null).await;
    assert!(status["notice"]["text"].as_str().unwrap().contains("written again"), "{status}");
    assert_eq!(journals(&folder).len(), 1);
    drop(client);
    task.abort();
    assert_eq!(find_unfinished(&folder).await.unfinished().len(), 1);
    let _ = std::fs::remove_dir_all(&folder);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pin_that_leads_is_found_again_with_the_place_it_leads_to() {
    let address = start("robot");
    let (mut client, _) = paused(&address, 0).await;
    seek(&mut client, 0, 0).await;
    let scene = Scene::parse("robot").unwrap();
    let hand = scene.model.find_body("left_hand").unwrap();
    client.say(json!({"type": "pin", "body": hand.0, "on": true, "turn": true})).await;
    client.say(json!({"type": "step", "count": 2})).await;
    let start = client.frame_where(|frame| frame.step() == 2).await.step();
    // Farther than it is led in the steps that follow.
    let place = (scene.state.bodies[hand.index()].position + supple::glam::DVec3::new(0.2, 0.3, 0.2)).to_array();
    client.say(json!({"type": "pin", "body": hand.0, "on": true, "at": place})).await;
    client.say(json!({"type": "step", "count": 6})).await;
    client.frame_where(|frame| frame.step() == start + 6).await;
    let of = |take: u32, step: u32| {
        let address = address.clone();
        async move {
            let mut client = Client::connect(&address).await;
            seek(&mut client, take, step).await;
            let status = Client::connect(&address).await.told("status").await;
            (status["pins"].clone(), status["pin_places"][0].clone(), status["pin_turns"].clone())
        }
    };
    let take = saved(&address).await.current as u32;
    let led = of(take, start + 3).await;
    assert_eq!(led, (json!([hand.0]), json!(place), json!([true])));
    assert_ne!(of(take, start).await.1, json!(place), "before it was moved it is where it was");
    // What goes on from there is the same to the last bit.
    let other = of(take, start + 6).await;
    assert_eq!(other.1, json!(place));
    let file = saved(&address).await;
    assert_done_again(&file);
}

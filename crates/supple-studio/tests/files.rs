//! Takes and journals of what files gave: they name the file and what was changed by hand, and open again with it.

mod common;

use common::{Client, address_of, ask, find_unfinished, folder, journals, paused, run, saved, settings};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use supple::timeline::file::{self, TakeFile};
use supple::{Scene, Work};
use supple_assets::{BakeSettings, Files, Made, Recipe, Recording, TakesFrom, bake_scene};
use supple_studio::{Opening, Settings};

/// A leg that hangs, its thigh of this mass.
fn leg(mass: f64, toes: usize) -> String {
    let toe = r#"<body pos="0.1 0 0"><joint axis="0 1 0"/><geom type="sphere" size="0.02"/></body>"#.repeat(toes);
    format!(
        r#"<mujoco><worldbody><body name="thigh" pos="0 0 1"><joint axis="0 1 0"/>
        <geom type="capsule" fromto="0 0 0 0.4 0 0" size="0.05" mass="{mass}"/><body name="shin" pos="0.4 0 0"><joint axis="0 1 0"/>
        <geom type="capsule" fromto="0 0 0 0.4 0 0" size="0.04" mass="1"/>{toe}</body></body></worldbody></mujoco>"#
    )
}

/// A character as a .glb: the moving hand.
fn hand() -> Vec<u8> {
    let scene = Scene::parse("hand").unwrap();
    let (mut state, mut work, mut recording) = (scene.state.clone(), Work::new(&scene.model), Recording::default());
    let mut input = scene.input.clone();
    for _ in 0..30 {
        scene.direct(state.time, &mut input);
        supple::step(&scene.model, &input, &mut state, &mut work).unwrap();
        recording.add(&scene.model, &input, &state, None);
    }
    bake_scene(&scene.model, &recording, "hand", &BakeSettings::default()).bytes
}

fn made(path: &Path) -> Made {
    Recipe::of_file(path.to_str().unwrap()).make(&Files::default()).unwrap()
}

/// Every step of the takes, done again with what they name, has the recorded hash.
fn assert_done_again(file: &TakeFile) {
    let recipe = Recipe::parse(file.timeline.scene()).unwrap();
    let made = recipe.make_for(&Files::default(), &file.timeline, TakesFrom::Journal).unwrap();
    let model = &made.imported.scene.model;
    assert!(file.timeline.is_of(model));
    let mut work = Work::new(model);
    for (k, take) in file.timeline.takes().iter().enumerate() {
        let mut moment = file.timeline.seek(model, k, 0, &mut work).unwrap();
        while moment.step < take.end() {
            assert!(file.timeline.advance(model, k, &mut moment, &mut work).unwrap().identical, "at {}", moment.step);
        }
    }
}

/// Opens takes in a studio that shows something else.
async fn reopened(bytes: &[u8], files: Files) -> (u16, String, Value) {
    let (address, _task) =
        common::run_with(Opening::scene("pendulum").unwrap(), Settings { files, ..settings("test", None) });
    let mut client = Client::connect(&address).await;
    let before = client.told("status").await["generation"].clone();
    let (status, answer) = ask(&address, "POST", "/take", bytes).await;
    let told = match status {
        204 => client.status_where(|status| status["generation"] != before).await,
        _ => Value::Null,
    };
    (status, String::from_utf8_lossy(&answer).into_owned(), told)
}

/// A take of a file, with something done by hand in it; where the studio's journal goes.
async fn recorded(opening: Opening, journal: Option<&Path>) -> (Vec<u8>, TakeFile) {
    let (address, task) = run(opening, "test", journal);
    let (mut client, step) = paused(&address, 30).await;
    client.say(json!({"type": "drag", "body": 1, "point": [0, 0, 0], "target": [0.3, 0.5, 0.2]})).await;
    client.say(json!({"type": "step", "count": 10})).await;
    client.frame_where(|frame| frame.step() == step + 10).await;
    let (_, bytes) = ask(&address, "GET", "/take", b"").await;
    client.say(json!({"type": "rename", "take": 0, "name": "by hand"})).await; // not saved any more
    client.status_where(|status| status["takes"][0]["name"] == "by hand").await;
    drop(client);
    task.abort();
    let file = file::read(&bytes).unwrap();
    (bytes, file)
}

#[tokio::test(flavor = "multi_thread")]
async fn takes_of_a_file_open_again() {
    let folder = folder("files");
    let path = folder.join("leg.xml");
    std::fs::write(&path, leg(4.0, 0)).unwrap();
    let (bytes, file) = recorded(Opening::of_file(made(&path)), None).await;
    assert_eq!(file.timeline.scene().lines().next(), path.to_str());
    let allowed = || Files::allowing(std::slice::from_ref(&folder)).unwrap();
    // Takes that were sent open no file of this machine, unless its folder is allowed.
    let (status, said, _) = reopened(&bytes, Files::default()).await;
    assert!(status == 400 && said.contains("file/outside") && said.contains("--allow-dir"), "{status} {said}");
    assert_done_again(&file);
    let (status, said, told) = reopened(&bytes, allowed()).await;
    assert_eq!((status, &told["stored"]), (204, &Value::Null), "{said}");
    assert_eq!(told["takes"][0]["end"], file.timeline.takes()[0].end());

    // Another mass: it is shown as it was stored, and the file is named.
    std::fs::write(&path, leg(5.0, 0)).unwrap();
    let (status, said, told) = reopened(&bytes, allowed()).await;
    let stored = told["stored"].as_str().unwrap_or_default();
    assert_eq!(status, 204, "{said}");
    assert!(stored.contains("leg.xml has changed since it was recorded: put the file back"), "{stored}");
    // Another body: it cannot be shown.
    std::fs::write(&path, leg(4.0, 1)).unwrap();
    let (status, said, _) = reopened(&bytes, allowed()).await;
    assert!(status == 400 && said.contains("leg.xml") && said.contains("take/model"), "{status} {said}");
    assert!(
        said.contains("it had 2 bodies when the takes were made, and has 3 now; put the file back as it was"),
        "{said}"
    );
    // Gone: told with the remedy; beside the take it is found.
    std::fs::create_dir(folder.join("elsewhere")).unwrap();
    std::fs::rename(&path, folder.join("elsewhere/leg.xml")).unwrap();
    std::fs::write(folder.join("elsewhere/leg.xml"), leg(4.0, 0)).unwrap();
    let (status, said, _) = reopened(&bytes, allowed()).await;
    assert!(status == 400 && said.contains("take/file") && said.contains(path.to_str().unwrap()), "{status} {said}");
    assert!(said.contains("put it back"), "{said}");
    let recipe = || Recipe::parse(file.timeline.scene()).unwrap();
    let beside = folder.join("elsewhere");
    let made = recipe().make_for(&Files::default(), &file.timeline, TakesFrom::Folder(&beside)).unwrap();
    assert!(file.timeline.is_of(&made.imported.scene.model));
    let error = recipe().make_for(&Files::default(), &file.timeline, TakesFrom::Folder(&folder)).unwrap_err();
    assert!(error.remedy.contains("put leg.xml beside the take"), "{error}");
    let _ = std::fs::remove_dir_all(&folder);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_journal_of_a_file_is_recovered() {
    let (folder, models) = (folder("files-journal"), folder("files-models"));
    let path = models.join("leg.xml");
    std::fs::write(&path, leg(4.0, 0)).unwrap();
    let (_, file) = recorded(Opening::of_file(made(&path)), Some(&folder)).await;
    // While the file is away the session is offered, and refused with words; nothing of it is lost.
    std::fs::rename(&path, models.join("away.xml")).unwrap();
    let studio = find_unfinished(&folder).await;
    assert_eq!(studio.unfinished()[0].scene, "leg.xml");
    let address = address_of(&studio);
    let task = tokio::spawn(async { studio.run().await.unwrap() });
    let mut client = Client::connect(&address).await;
    let offered = client.told("status").await["journals"][0]["journal"].clone();
    client.say(json!({"type": "recover", "journal": offered})).await;
    let error = client.told("error").await;
    assert_eq!(error["code"], "studio/journal");
    let said = error["message"].as_str().unwrap();
    assert!(said.contains(path.to_str().unwrap()) && said.contains("put it back"), "{said}");
    // With the file back it goes on where it was.
    std::fs::rename(models.join("away.xml"), &path).unwrap();
    client.say(json!({"type": "recover", "journal": offered})).await;
    let status = client.status_where(|status| status["takes"][0]["name"] == "by hand").await;
    assert_eq!(status["stored"], Value::Null);
    let again = saved(&address).await;
    assert_eq!(again.timeline.takes()[0].end(), file.timeline.takes()[0].end());
    assert_done_again(&again);
    drop(client);
    task.abort();
    let _ = (std::fs::remove_dir_all(&folder), std::fs::remove_dir_all(&models));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_character_with_changed_bones_is_recovered() {
    let folder = folder("files-dropped");
    let (address, task) = run(Opening::scene("pendulum").unwrap(), "test", Some(&folder));
    let mut client = Client::connect(&address).await;
    let (status, said) = ask(&address, "POST", "/take", &hand()).await;
    assert_eq!(status, 204, "{}", String::from_utf8_lossy(&said));
    let scene = client.told("scene").await;
    let scene = if scene["bones"] == json!([]) { client.told("scene").await } else { scene };
    let bone = scene["bones"][1]["name"].as_str().unwrap().to_owned();
    client.say(json!({"type": "pause"})).await;
    client.say(json!({"type": "bone", "bone": bone, "change": {"mass": 0.123}})).await;
    let scene = client.told("scene").await;
    assert_eq!(scene["bodies"][1]["mass"], 0.123);
    client.say(json!({"type": "bone", "bone": bone, "change": {"mass": 0.0777}})).await;
    assert_eq!(client.told("scene").await["bodies"][1]["mass"], 0.0777);
    client.say(json!({"type": "step", "count": 20})).await;
    client.frame_where(|frame| frame.step() == 20).await;
    drop(client);
    task.abort();
    // One journal, of the last rig: that before was only on the way to it.
    let studio = find_unfinished(&folder).await;
    assert_eq!(studio.unfinished().iter().map(|line| line.scene.as_str()).collect::<Vec<_>>(), ["character.glb"]);
    let address = address_of(&studio);
    let task = tokio::spawn(async { studio.run().await.unwrap() });
    let mut client = Client::connect(&address).await;
    let offered = client.told("status").await["journals"][0]["journal"].clone();
    client.say(json!({"type": "recover", "journal": offered})).await;
    let status = client.status_where(|status| status["takes"][0]["end"] == 20).await;
    assert_eq!(status["stored"], Value::Null, "the changed rig is made again to the last bit");
    // It is still the character: its bones can be changed.
    client.say(json!({"type": "bone", "bone": bone, "change": {"mass": 0.2}})).await;
    client.status_where(|status| status["undo"] == format!("change of {bone}")).await;
    assert_done_again(&saved(&address).await);
    drop(client);
    task.abort();
    let _ = std::fs::remove_dir_all(&folder);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mended_model_opens_again() {
    let folder = folder("files-mended");
    let path: PathBuf = folder.join("two.xml");
    let boxes = r#"<mujoco><worldbody>
        <body name="one" pos="0 0 1"><freejoint/><geom type="box" size="0.2 0.2 0.2"/></body>
        <body name="two" pos="0.2 0 1"><freejoint/><geom type="box" size="0.2 0.2 0.2"/></body></worldbody></mujoco>"#;
    std::fs::write(&path, boxes).unwrap();
    let (address, _task) = run(Opening::of_file(made(&path)), "test", None);
    let mut client = Client::connect(&address).await;
    let told = client.status_where(|status| !status["doctor"].is_null()).await;
    client.say(json!({"type": "mend"})).await;
    client.status_where(|status| status["generation"] != told["generation"]).await;
    client.frame_where(|frame| frame.step() > 10).await;
    let file = saved(&address).await;
    assert!(
        file.timeline.scene().contains("two.xml\n{\"bones\":[],\"mended\":1,\"digest\":"),
        "{}",
        file.timeline.scene()
    );
    assert_done_again(&file);
    assert_eq!(journals(&folder), Vec::<PathBuf>::new());
    let _ = std::fs::remove_dir_all(&folder);
}

/// The hand as a .gltf with a buffer and an image beside it, in a folder with a file that it does not name.
fn hand_in_parts(folder: &Path) -> PathBuf {
    let glb = hand();
    let length = u32::from_le_bytes(glb[12..16].try_into().unwrap()) as usize;
    let mut root: Value = serde_json::from_slice(&glb[20..20 + length]).unwrap();
    root["buffers"][0]["uri"] = json!("hand.bin");
    root["images"] = json!([{ "uri": "a%20skin.png" }]);
    std::fs::write(folder.join("hand.bin"), &glb[28 + length..]).unwrap();
    std::fs::write(folder.join("a skin.png"), b"picture").unwrap();
    std::fs::write(folder.join("private.txt"), b"of nobody's business").unwrap();
    let path = folder.join("hand.gltf");
    std::fs::write(&path, root.to_string()).unwrap();
    path
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_is_given_the_opened_file_and_what_it_names_and_nothing_else() {
    let folder = folder("own-file");
    let path = hand_in_parts(&folder);
    let (address, _task) = run(Opening::of_file(made(&path)), "test", None);
    let mut client = Client::connect(&address).await;
    let scene = client.told("scene").await;
    let key = scene["file"]["key"].as_str().unwrap().to_owned();
    assert_eq!(scene["file"]["name"], "hand.gltf");
    assert_eq!(scene["meshes"], json!([]), "the page draws the file");
    let carried = scene["file"]["carried_by"].as_array().unwrap();
    assert_eq!(carried.iter().filter(|body| body.is_number()).count(), scene["bodies"].as_array().unwrap().len());

    let get = async |name: &str| ask(&address, "GET", &format!("/file/{key}/{name}"), b"").await;
    assert_eq!(get("hand.gltf").await, (200, std::fs::read(&path).unwrap()));
    assert_eq!(get("hand.bin").await, (200, std::fs::read(folder.join("hand.bin")).unwrap()));
    assert_eq!(get("a%20skin.png").await, (200, b"picture".to_vec()));
    for name in ["private.txt", "../own-file/private.txt", "%2e%2e/private.txt", "/etc/hostname", "%2Fetc%2Fhostname"] {
        assert_eq!(get(name).await.0, 404, "{name}");
    }
    let (status, _) = ask(&address, "GET", "/file/0123456789abcdef/hand.gltf", b"").await;
    assert_eq!(status, 404, "of a file that was never opened");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edited_rig_goes_on_with_its_clip_and_its_takes_stay_in_the_list() {
    let folder = folder("files-edited");
    let path = folder.join("hand.glb");
    std::fs::write(&path, hand()).unwrap();
    let opening = Opening::of_file(made(Path::new(&format!("{}#hand", path.display()))));
    let (address, task) = run(opening, "test", None);
    let (mut client, step) = paused(&address, 12).await;
    let bone = "palm";
    client.say(json!({"type": "bone", "bone": bone, "change": {"mass": 0.2}})).await;
    let status = client.status_where(|status| status["aside"][0]["mark"] == format!("before change of {bone}")).await;
    assert_eq!(status["aside"][0]["takes"][0]["end"], step);
    // The clip is where it was.
    let clip = &status["tones"]["clip"];
    let dt = status["settings"]["dt"].as_f64().unwrap();
    let (from, begun) = (clip["from"].as_f64().unwrap(), clip["begun"].as_f64().unwrap());
    assert!((from - f64::from(step) * dt).abs() < 1e-9 && begun == 0.0, "{clip}");
    client.say(json!({"type": "step", "count": 5})).await;
    client.frame_where(|frame| frame.step() == 5).await;
    assert_done_again(&saved(&address).await);
    let (_, rig) = ask(&address, "GET", "/rig.toml", b"").await;
    let rig = String::from_utf8(rig).unwrap();
    assert!(rig.contains("track = \"hand\""), "{rig}");
    // Back to the take of the rig as it was, and on again.
    client.say(json!({"type": "aside", "sheet": status["aside"][0]["sheet"], "take": 0})).await;
    let status = client.status_where(|status| status["aside"][0]["mark"] == format!("after change of {bone}")).await;
    assert_eq!((&status["aside"][0]["takes"][0]["end"], &status["takes"][0]["end"]), (&json!(5), &json!(step)));
    client.say(json!({"type": "aside", "sheet": status["aside"][0]["sheet"], "take": 0})).await;
    client.status_where(|status| status["aside"][0]["mark"] == format!("before change of {bone}")).await;
    client.say(json!({"type": "aside", "sheet": 99, "take": 0})).await;
    assert_eq!(client.told("error").await["code"], "studio/take");
    drop(client);
    task.abort();
    let _ = std::fs::remove_dir_all(&folder);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_motion_that_is_sent_becomes_a_clip_of_the_character() {
    let Some(assets) = std::env::var_os("SUPPLE_ASSETS").map(PathBuf::from) else {
        eprintln!("SUPPLE_ASSETS is not set: SKIPPED");
        return;
    };
    let folder = folder("files-motion");
    let (address, task) = run(Opening::of_file(made(&assets.join("gltf/RiggedFigure.glb"))), "test", Some(&folder));
    let mut client = Client::connect(&address).await;
    client.told("scene").await;
    let walk = std::fs::read(assets.join("bvh/cmu_02_01.bvh")).unwrap();
    let send = async |lines: &str, bytes: &[u8]| {
        let lines = format!("Authorization: Bearer {}\r\n{lines}", common::key(&address));
        common::ask_with(&address, "POST", "/motion", &lines, bytes).await
    };
    let (status, _, said) = send("x-file-name: walk.bvh\r\n", &walk).await;
    assert_eq!(status, 204, "{}", String::from_utf8_lossy(&said));
    let scene = client.told("scene").await;
    let names: Vec<&str> = scene["clips"].as_array().unwrap().iter().filter_map(|clip| clip["name"].as_str()).collect();
    assert!(names.contains(&"walk"), "{names:?}");
    let status = client.status_where(|status| status["tones"]["clip"]["name"] == "walk").await;
    assert!(status["tones"]["bodies"].as_array().unwrap().iter().all(|tone| tone == "follow"));
    client.frame_where(|frame| frame.step() >= 20).await;
    client.say(json!({"type": "pause"})).await;
    client.status_where(|status| !status["playing"].as_bool().unwrap()).await;
    // Its takes name the motion, and are made again with it.
    let file = saved(&address).await;
    assert!(Recipe::parse(file.timeline.scene()).unwrap().changes.motions[0].ends_with("walk.bvh"));
    assert_done_again(&file);
    // For somebody else the motion lies beside the takes, wherever it was before, and if it was never kept.
    let beside = common::folder("files-motion-beside");
    std::fs::create_dir_all(&beside).unwrap();
    let again = |motion: &str| {
        let mut recipe = Recipe::parse(file.timeline.scene()).unwrap();
        recipe.changes.motions = vec![motion.to_owned()];
        recipe.make_for(&Files::default(), &file.timeline, TakesFrom::Folder(&beside))
    };
    for motion in ["/elsewhere/walk.bvh", "sent:walk.bvh"] {
        let _ = std::fs::remove_file(beside.join("walk.bvh"));
        let refused = again(motion).unwrap_err();
        assert!(refused.code == "take/file" && refused.remedy.contains("walk.bvh"), "{motion}: {refused}");
        std::fs::write(beside.join("walk.bvh"), &walk).unwrap();
        let made = again(motion).unwrap();
        assert!(file.timeline.is_of(&made.imported.scene.model) && made.imported.clip("walk").is_ok(), "{motion}");
    }
    let _ = std::fs::remove_dir_all(&beside);
    // One with several clips asks which; one that is no motion is refused.
    let many = std::fs::read(assets.join("gltf/mannequiny.glb")).unwrap();
    let (status, _, said) = send("x-file-name: many.glb\r\n", &many).await;
    assert!(status == 400 && String::from_utf8_lossy(&said).contains("file/clip"), "{status}");
    let (status, _, said) = send("x-file-name: many.glb\r\nx-clip: run\r\n", &many).await;
    assert_eq!(status, 204, "{}", String::from_utf8_lossy(&said));
    let (status, _, _) = send("x-file-name: a.bvh\r\n", b"HIERARCHY").await;
    assert_eq!(status, 400);
    drop(client);
    task.abort();
    let _ = std::fs::remove_dir_all(&folder);
}

/// A copy that cannot be kept is told: takes of what was dropped then need the file beside them.
#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_file_that_cannot_be_kept_says_so() {
    let folder = folder("files-unkept");
    let (address, task) = run(Opening::scene("pendulum").unwrap(), "test", Some(&folder));
    let mut client = Client::connect(&address).await;
    client.told("scene").await;
    std::fs::write(folder.join("files"), b"").unwrap(); // where the folder of copies would be
    assert_eq!(ask(&address, "POST", "/take", &hand()).await.0, 204);
    let notes = client.told("scene").await["notes"].clone();
    let told = |note: &Value| note["code"] == "import/copy" && note["text"].as_str().unwrap().contains("beside them");
    assert!(notes.as_array().unwrap().iter().any(told), "{notes}");
    drop(client);
    task.abort();
    let _ = std::fs::remove_dir_all(&folder);
}

/// A file that was opened before is opened as the command line would: what it names may lie where the user allows.
#[tokio::test(flavor = "multi_thread")]
async fn a_recent_file_may_name_what_lies_in_an_allowed_folder() {
    let folder = common::folder("recent");
    let (home, other) = (folder.join("home"), folder.join("other"));
    [&home, &other].iter().for_each(|folder| std::fs::create_dir_all(folder).unwrap());
    std::fs::write(other.join("strip.gltf"), include_bytes!("../../../fuzz/strip.gltf")).unwrap();
    let scene = home.join("scene.toml");
    std::fs::write(&scene, "[character]\nfile = \"../other/strip.gltf\"\n").unwrap();
    // Takes of it that were opened before are another.
    let allowed = Files::allowing(std::slice::from_ref(&other)).unwrap();
    let made = Recipe::of_file(scene.to_str().unwrap()).make(&allowed).unwrap();
    let (bytes, _) = recorded(Opening::of_file(made), None).await;
    let take = home.join("scene.take");
    std::fs::write(&take, bytes).unwrap();
    let journal = folder.join("journal");
    [&take, &scene].iter().for_each(|file| supple_studio::remember_file(&journal, file));
    for (files, opens) in [(Files::default(), false), (allowed, true)] {
        let opening = Opening::scene("pendulum").unwrap();
        let (address, _task) = common::run_with(opening, Settings { files, ..settings("test", Some(&journal)) });
        let (_, list) = ask(&address, "GET", "/start", b"").await;
        let list: Value = serde_json::from_slice(&list).unwrap();
        assert_eq!(
            (&list["recent"][0]["name"], &list["recent"][1]["name"]),
            (&"scene.toml".into(), &"scene.take".into())
        );
        for (k, steps) in [(0, 0), (1, 40)] {
            let mut client = Client::connect(&address).await;
            let before = client.told("status").await["generation"].clone();
            client.say(json!({"type": "recent", "file": k})).await;
            if opens {
                let status = client.status_where(|status| status["generation"] != before).await;
                assert!(status["takes"][0]["end"].as_u64().unwrap() >= steps, "{status}");
            } else {
                let error = client.told("error").await;
                assert!(error["message"].as_str().unwrap().contains("outside"), "{error}");
            }
        }
    }
    let _ = std::fs::remove_dir_all(folder); // the studio may still write its journal
}

/// What no reader would take is not recorded: the run stops before it, and what was recorded opens.
#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_leaves_the_world_is_told_and_not_recorded() {
    let (address, _task) = run(Opening::scene("stack:1").unwrap(), "test", None);
    let (mut client, _) = paused(&address, 1).await;
    client.say(json!({"type": "set", "dt": 0.1, "gravity": [0, 1000, 0]})).await;
    client.say(json!({"type": "step", "count": 600})).await;
    let status = client.status_where(|status| status["notice"]["level"] == "error").await;
    let message = status["notice"]["text"].as_str().unwrap().to_owned();
    assert!(message.contains("m away") && message.contains("box"), "{message}");
    let file = saved(&address).await; // which reads it
    let end = file.timeline.takes()[0].end();
    assert!((300..600).contains(&end), "{end}");
    // It does not go on from there by another try either.
    client.say(json!({"type": "step", "count": 1})).await;
    let id = &status["notice"]["number"];
    let again = client.status_where(|status| status["notice"]["number"] != *id).await;
    assert_eq!(again["notice"]["text"], message);
    assert_eq!(saved(&address).await.timeline.takes()[0].end(), end);
}

/// Its takes could not be opened again: what cannot be kept is not taken.
#[tokio::test(flavor = "multi_thread")]
async fn a_motion_or_guest_that_cannot_be_kept_is_refused() {
    let Some(assets) = std::env::var_os("SUPPLE_ASSETS").map(PathBuf::from) else {
        eprintln!("SUPPLE_ASSETS is not set: SKIPPED");
        return;
    };
    let journal = folder("not-kept");
    std::fs::create_dir_all(&journal).unwrap();
    std::fs::write(journal.join("files"), b"no folder").unwrap();
    let (address, task) = run(Opening::of_file(made(&assets.join("gltf/RiggedFigure.glb"))), "test", Some(&journal));
    let walk = std::fs::read(assets.join("bvh/cmu_02_01.bvh")).unwrap();
    let (hand, key) = (hand(), common::key(&address));
    let sent = [("/guest", "hand.glb", hand.as_slice()), ("/motion", "walk.bvh", walk.as_slice())];
    let lines = |name: &str| format!("Authorization: Bearer {key}\r\nX-File-Name: {name}\r\n");
    for (path, name, bytes) in sent {
        let (status, _, said) = common::ask_with(&address, "POST", path, &lines(name), bytes).await;
        let said = String::from_utf8_lossy(&said).into_owned();
        assert!(status == 400 && said.contains("studio/copy") && said.contains("--no-journal"), "{path}: {said}");
    }
    std::fs::remove_file(journal.join("files")).unwrap();
    for (path, name, bytes) in sent {
        assert_eq!(common::ask_with(&address, "POST", path, &lines(name), bytes).await.0, 204, "{path}");
    }
    task.abort();
    let _ = std::fs::remove_dir_all(&journal);
}

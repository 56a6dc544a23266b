//! The hostile table, sent to the studio: every file is refused with its code, none opens a file of this machine, and the studio goes on.

mod common;
#[path = "../../supple-assets/tests/common/damage.rs"]
#[allow(dead_code)]
mod damage;
#[path = "../../supple-assets/tests/common/hostile.rs"]
#[allow(dead_code)]
mod hostile;

use common::{Client, ask, ask_with, key, start};
use serde_json::json;
use supple_assets::motion::MOTION_ENDINGS;

/// Sends a file under its name.
async fn send(address: &str, path: &str, name: &str, bytes: &[u8]) -> (u16, String) {
    let head = format!("Authorization: Bearer {}\r\nX-File-Name: {name}\r\n", key(address));
    let (status, _, said) = ask_with(address, "POST", path, &head, bytes).await;
    (status, String::from_utf8_lossy(&said).into_owned())
}

fn ending(name: &str) -> &str {
    name.rsplit_once('.').unwrap().1
}

/// Sends every case of the hostile table: each is refused with the code that is expected of it, and the studio shows what it showed.
async fn refuses_the_table(address: &str, path: &str, expected: impl Fn(&hostile::Hostile) -> &'static str) {
    let mut client = Client::connect(address).await;
    let before = client.status_where(|status| status["settings"].is_object()).await["generation"].clone();
    let mut wrong = Vec::new();
    for case in hostile::table(std::str::from_utf8(&damage::small()).unwrap()) {
        let code = expected(&case);
        let (status, said) = send(address, path, case.name, &case.bytes).await;
        if status != 400 || !said.contains(code) {
            wrong.push(format!("{}: {status}, wanted {code}: {said}", case.name));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    client.say(json!({"type": "pause"})).await;
    let status = client.status_where(|status| status["playing"] == false).await;
    assert_eq!(status["generation"], before, "it shows what it showed");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_hostile_table_is_refused() {
    let address = start("pendulum");
    refuses_the_table(&address, "/take", |case| {
        // The studio takes characters and takes: FBX told by their names, the others by their first bytes; all else is no take.
        let is_character = case.bytes.starts_with(b"glTF") || case.bytes.starts_with(b"{");
        match ending(case.name) {
            "fbx" | "take" => case.sent,
            "vrma" if is_character => "file/", // a motion is no character, which may come up before what is wrong with it
            _ if is_character => case.sent,
            _ => "take/format",
        }
    })
    .await;
}

/// The same, sent as motions for a character.
#[tokio::test(flavor = "multi_thread")]
async fn the_hostile_table_is_refused_as_motion() {
    let address = start("pendulum");
    assert_eq!(send(&address, "/take", "strip.gltf", &damage::small()).await.0, 204);
    refuses_the_table(&address, "/motion", |case| match ending(case.name) {
        "vrma" => case.sent,
        // It may lack a clip, or joints that the character has, before something else is found.
        other if MOTION_ENDINGS.contains(&other) => "file/",
        _ => "file/ending",
    })
    .await;
}

/// An uploaded file found its way into what the studio bakes: whatever it names, from wherever the studio was started.
#[tokio::test(flavor = "multi_thread")]
async fn what_an_uploaded_file_names_is_not_opened() {
    let address = start("pendulum");
    for uri in ["Cargo.toml", "./Cargo.toml", "src/lib.rs", "/proc/self/environ", "%43argo.toml"] {
        let gltf = format!(r#"{{"asset":{{"version":"2.0"}},"buffers":[{{"uri":"{uri}","byteLength":4}}]}}"#);
        let (status, said) = ask(&address, "POST", "/take", gltf.as_bytes()).await;
        let said = String::from_utf8_lossy(&said).into_owned();
        assert!(status == 400 && said.contains("file/outside"), "{uri}: {status} {said}");
    }
}

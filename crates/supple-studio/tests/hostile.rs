//! The hostile table, sent to the studio: every file is refused with its code, none opens a file of this machine, and the studio goes on.

mod common;
#[path = "../../supple-assets/tests/common/damage.rs"]
#[allow(dead_code)]
mod damage;
#[path = "../../supple-assets/tests/common/hostile.rs"]
#[allow(dead_code)]
mod hostile;

use common::{Client, ask, start};
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn the_hostile_table_is_refused() {
    let address = start("pendulum");
    let mut client = Client::connect(&address).await;
    let before = client.told("status").await["generation"].clone();
    let mut wrong = Vec::new();
    for case in hostile::table(std::str::from_utf8(&damage::small()).unwrap()) {
        // The studio takes characters and takes, told by their first bytes; all else is no take.
        let is_character = case.bytes.starts_with(b"glTF") || case.bytes.starts_with(b"{");
        let code = if is_character || case.name.ends_with(".take") { case.sent } else { "take/format" };
        let (status, said) = ask(&address, "POST", "/take", &case.bytes).await;
        let said = String::from_utf8_lossy(&said).into_owned();
        if status != 400 || !said.contains(code) {
            wrong.push(format!("{}: {status}, wanted {code}: {said}", case.name));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    client.say(json!({"type": "pause"})).await;
    let status = client.status_where(|status| status["playing"] == false).await;
    assert_eq!(status["generation"], before, "it shows what it showed");
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

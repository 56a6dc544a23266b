//! The doctor of rigs in the studio: it looks at what a file gives, and its remedies are applied on request.

mod common;

use common::{Client, run};
use serde_json::json;
use std::path::Path;
use supple_assets::mjcf;
use supple_assets::robot::{Base, build};
use supple_assets::{Made, Recipe};
use supple_studio::Opening;

/// Two boxes that overlap, one inside the other by half.
const OVERLAPPING: &str = r#"<mujoco><worldbody>
  <body name="one" pos="0 0 1"><freejoint/><geom type="box" size="0.2 0.2 0.2"/></body>
  <body name="two" pos="0.2 0 1"><freejoint/><geom type="box" size="0.2 0.2 0.2"/></body>
</worldbody></mujoco>"#;

#[tokio::test(flavor = "multi_thread")]
async fn faults_of_a_file_are_told_and_mended() {
    let path = Path::new("boxes.xml");
    let robot = mjcf::parse(path, OVERLAPPING).unwrap();
    let imported = build(path, &robot, Base::Fixed).unwrap().imported(path, &robot);
    let (address, _) =
        run(Opening::of_file(Made { recipe: Recipe::new("broken.xml"), imported, character: None }), "test", None);
    let mut client = Client::connect(&address).await;
    let told = client.status_where(|status| !status["doctor"].is_null()).await;
    assert_eq!(told["doctor"]["findings"][0]["code"], "doctor/overlap", "{}", told["doctor"]);
    client.say(json!({"type": "mend"})).await;
    let faulty = told["generation"].clone();
    let told = client.status_where(|status| status["generation"] != faulty && !status["doctor"].is_null()).await;
    assert_eq!(told["doctor"]["findings"], json!([]), "{}", told["doctor"]);
    assert_eq!(told["doctor"]["seconds"], 2.0);
    // Nothing is left to mend, and that is said.
    client.say(json!({"type": "mend"})).await;
    let refused = client.told("error").await;
    assert_eq!(refused["code"], "studio/value");
    // Undo brings the file's own model back.
    client.say(json!({"type": "undo"})).await;
    let told = client.status_where(|status| !status["redo"].is_null()).await;
    assert_eq!(told["doctor"]["findings"][0]["code"], "doctor/overlap", "{}", told["doctor"]);
}

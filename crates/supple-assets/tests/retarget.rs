//! Motion from elsewhere on characters: feet stand where the source's do, on their own soles, and do not slide. The bounds of what stands were set on other clips than these.

mod common;

use common::assets;
use supple_assets::{Character, Files};

#[test]
fn feet_of_recordings_stand_on_the_soles_of_characters() {
    let Some(assets) = assets() else { return };
    let clip = assets.join("bvh/cmu_49_05.bvh");
    let source = Files::default().motion(&clip.to_string_lossy()).unwrap();
    for name in ["gltf/mannequiny.glb", "gltf/CesiumMan.glb", "characters/rogue-hooded.glb"] {
        let character = Character::open(&assets.join(name)).unwrap();
        let imported = character.imported(name).unwrap();
        let on = character.take_on(&imported, &source, &[]).unwrap();
        let taken = character.measure_taken(&imported, &on);
        println!("{name}: {taken:?}");
        // Running: both feet together are on the ground for less than the time it takes.
        assert!(taken.planted > 0.3 && taken.planted < taken.seconds, "{name}: {taken:?}");
        assert!(taken.slide_mean <= 0.02 && taken.foot_height <= 0.01, "{name}: {taken:?}");
        assert!(taken.angle_error < 20.0, "{name}: {taken:?}");
    }
}

//! All targets in one program, which is built sooner than eight: the variable SUPPLE_FUZZ names the one that runs.
#![no_main]
#[path = "../exercise.rs"]
mod exercise;

use std::sync::OnceLock;

static TARGET: OnceLock<fn(&[u8])> = OnceLock::new();

libfuzzer_sys::fuzz_target!(
    init: {
        let name = std::env::var("SUPPLE_FUZZ").expect("SUPPLE_FUZZ names a target");
        let (_, target) = exercise::TARGETS.iter().find(|(known, _)| *known == name).expect("there is such a target");
        TARGET.get_or_init(|| *target);
    },
    |bytes: &[u8]| TARGET.get().expect("set above")(bytes)
);

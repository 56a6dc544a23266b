#![no_main]
#[path = "../exercise.rs"]
mod exercise;
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| exercise::fbx(bytes));

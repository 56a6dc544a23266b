//! The binary `supple`.
fn main() {}

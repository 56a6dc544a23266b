//! The studio: a server on this machine and its browser page, where a character moves and can be pulled.
//!
//! One thread owns the simulation and is paced to real time (`simulation.rs`). Commands reach it through a bounded channel; what it
//! publishes is always only the latest: a tab that reads slowly misses frames and holds up nobody (`server.rs`).
//! The messages are told in `docs/protocol.md`. There is no physics here.

mod describe;
mod frame;
mod protocol;
mod server;
mod simulation;

pub use server::{Studio, StudioError};
pub use simulation::{MAX_BODIES, Opening};

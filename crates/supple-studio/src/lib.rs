//! The studio: a server on this machine and its browser page, where a character moves and can be pulled.
//!
//! One thread owns the simulation and is paced to real time (`simulation.rs`). Commands reach it through a bounded channel; what it
//! publishes is always only the latest: a tab that reads slowly misses frames and holds up nobody (`server.rs`).
//! The messages are told in `docs/protocol.md`. There is no physics here.

mod connections;
mod control;
mod describe;
mod disk;
mod door;
mod edits;
mod frame;
mod journal;
mod protocol;
mod recent;
mod server;
mod simulation;
mod variants;

pub use connections::Limits;
pub use journal::{Unfinished, default_folder as default_journal_folder};
pub use recent::{recent_files, remember_file};
pub use server::{Settings, Studio, StudioError};
pub use simulation::{Closed, MAX_BODIES, Opening};

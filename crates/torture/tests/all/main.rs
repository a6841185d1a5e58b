//! Integration tests of the crate, in one program. `planted` is apart.

// Clippy does not treat helper functions of tests as tests.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

mod cache;
#[path = "../common/mod.rs"]
mod common;
mod faults;
mod fs;
mod fscuts;
mod fsdamage;
mod fsmachine;
mod fsrepair;
mod fssemantics;
mod images;
mod levelers;
mod ntl;
#[path = "../workload/mod.rs"]
mod workload;

//! Integration tests of the crate, in one program.

// Clippy does not treat helper functions of tests as tests.
#![allow(clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

mod cache;
mod common;
mod composers;
mod faults;
mod flashcache;
mod fs;
mod fscuts;
mod fsdamage;
mod fsmachine;
mod fsnameless;
mod fsrepair;
mod fssemantics;
mod ftl;
mod images;
mod levelers;
mod mirror;
mod nameless;
mod ntl;
mod objects;
mod planted;
mod random_trees;
mod ssc;
mod trees;
mod workload;
mod zns;

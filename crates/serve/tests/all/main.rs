//! Integration tests of the crate, in one program. `foreign` is apart.

// Clippy does not treat helper functions of tests as tests.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr)]

mod cache;
#[path = "../common/mod.rs"]
mod common;
mod control;
mod delay;
mod fuse;
mod hints;
mod limits;
mod metrics;
mod overlap;
mod pace;
mod record_layer;
mod server;
mod slow;
mod volume_queries;
mod zones;

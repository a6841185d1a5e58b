//! Tests that start many processes.
//!
//! This program is apart from the other tests, which expect that locks and block devices are free
//! as soon as they are closed: a process that is being started holds copies of all descriptors
//! until it executes its program.

// Helpers of tests are tests, which clippy does not know.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, clippy::print_stdout)]

mod access;
#[path = "../common/mod.rs"]
mod common;
mod kill;

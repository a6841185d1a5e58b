//! Tests with programs of other projects: clients of NBD, programs that use a mounted file system,
//! and file systems whose metadata is detected.
//!
//! This program is apart, because it starts many processes, and a process that is being started
//! holds copies of all descriptors: sockets and locks of other tests would be released late. The
//! tests of mounts also change the umask of the process for a moment.

// Clippy does not treat helper functions of tests as tests.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr)]

mod clients;
#[path = "../common/mod.rs"]
mod common;
mod detect;
mod mount;
mod pool;

use std::sync::Mutex;

/// Lock of the tests that change the umask of the process.
static UMASK: Mutex<()> = Mutex::new(());

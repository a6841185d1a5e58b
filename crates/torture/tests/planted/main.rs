//! Bugs planted on purpose: the tests of layers, media, wear leveling and the file system find each
//! of them, and find nothing without them.
//!
//! This program is apart, because a planted bug affects its whole process. For the same reason, its
//! tests run one after the other.

// Clippy does not treat helper functions of tests as tests.
#![allow(clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;
mod fs;
mod fsdoors;
mod fsmachine;
mod layers;
mod wear;
#[path = "../workload/mod.rs"]
mod workload;

use frit_core::planted;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Lock of all tests of this program.
static ALONE: Mutex<()> = Mutex::new(());

/// Exclusive use of the process by a test. Dropping it removes a bug that a failed test has left.
struct Exclusive {
    _guard: MutexGuard<'static, ()>,
}

impl Drop for Exclusive {
    fn drop(&mut self) {
        planted::set(None);
    }
}

/// Waits until no other test runs.
fn alone() -> Exclusive {
    Exclusive { _guard: ALONE.lock().unwrap_or_else(PoisonError::into_inner) }
}

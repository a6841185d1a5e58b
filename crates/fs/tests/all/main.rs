//! Integration tests of the crate, in one program. `schedules.rs` is apart.

// Clippy does not recognize helper functions as tests.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr)]

mod damage;
mod direct;
mod example;
mod fences;
mod format;
mod full;
mod leftover;
mod maps;
mod nameless;
mod overlay;
mod pool;
mod scan;
mod semantics;
mod smoke;
mod sums;
mod threads;

use frit_fs::{AnyMedium, Mapped, Medium};
use std::sync::Arc;

fn erased(medium: impl Medium + 'static) -> AnyMedium {
    Arc::new(medium)
}

/// Memory of some bytes.
fn memory(bytes: u64) -> AnyMedium {
    erased(Mapped::anonymous(bytes).unwrap())
}

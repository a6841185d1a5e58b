//! Tests of the library's promises in `docs/reference/semantics.md`, each named by its number.
//! Power loss between words is tested in `frit-torture`, and access through a kernel in
//! `frit-serve`. `page.rs` verifies that every promise has a test.

/// Asserts that a call fails with a kind of error.
macro_rules! refused {
    ($call:expr, $kind:ident) => {
        match $call {
            Err(frit_fs::Error::$kind { .. }) => {}
            other => panic!("{} in place of {}: {other:?}", stringify!($call), stringify!($kind)),
        }
    };
}

mod allocation;
mod attributes;
mod commands;
mod common;
mod contents;
mod cuts;
mod directories;
mod limits;
mod looked_up;
mod names;
mod page;
mod renames;
mod starts;
mod threads;
mod watched;
mod xattrs;

use crate::{AnyMedium, erased, memory};
use common::*;
use frit_fs::{Clock, FormatOptions, Fs, FsOptions, Mapped};

/// First time of counted clocks, in nanoseconds.
const EPOCH: i64 = 1_000_000_000_000;

fn fresh(bytes: u64) -> Fs<AnyMedium> {
    on(memory(bytes))
}

/// Formats a file system with a root directory that every user can write to.
fn on(medium: impl Medium + 'static) -> Fs<AnyMedium> {
    let format =
        FormatOptions { root: (0, 0, 0o777), clock: Clock::counted(EPOCH), ..FormatOptions::default() };
    Fs::format(erased(medium), format).unwrap()
}

/// Opens a file system again, with a later time.
fn again(medium: impl Medium + 'static) -> Fs<AnyMedium> {
    Fs::open(erased(medium), FsOptions { clock: Clock::counted(2 * EPOCH), ..FsOptions::default() }).unwrap()
}

/// Waits for the clock to advance. Counted clocks advance at each reading.
fn tick() {}

/// Returns `true` if a test that applies only to contents in an image has to be skipped.
fn image_only(_why: &str) -> bool {
    false
}

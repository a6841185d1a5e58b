//! What `docs/semantics.md` promises of the library, each promise by a test with its number. Power cuts between words
//! are in `frit-torture`, what goes through a kernel in `frit-serve`; `page.rs` looks whether none is left out.

// Helpers of tests are tests, which clippy does not know.
#![allow(clippy::unwrap_used, clippy::panic)]

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
mod common;
mod contents;
mod cuts;
mod directories;
mod limits;
mod names;
mod page;
mod renames;
mod starts;
mod threads;
mod watched;
mod xattrs;

use common::*;
use frit_fs::{Clock, Format, Fs, Mapped, Open};

/// The first time of counted clocks, in nanoseconds.
const EPOCH: i64 = 1_000_000_000_000;

fn fresh(bytes: u64) -> Fs<Mapped> {
    on(Mapped::anonymous(bytes).unwrap())
}

/// A new file system whose root directory is for everybody.
fn on<M: Medium>(medium: M) -> Fs<M> {
    let format = Format { root: (0, 0, 0o777), clock: Clock::counted(EPOCH), ..Format::default() };
    Fs::format(medium, format).unwrap()
}

/// Opens it again, a while later.
fn again<M: Medium>(medium: M) -> Fs<M> {
    Fs::open(medium, Open { clock: Clock::counted(2 * EPOCH), ..Open::default() }).unwrap()
}

/// Lets the clock go on: counted ones do so at each look.
fn tick() {}

/// Whether a test is of contents in an image alone, and why.
fn image_only(_why: &str) -> bool {
    false
}

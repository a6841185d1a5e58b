//! The promises of `docs/semantics.md` once more, with contents in a pool: the tests are those of `semantics`. Those
//! that are about an image alone say so, with a reason, and pass. Limits are those of the image, and tested there.

// Helpers of tests are tests, which clippy does not know.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr)]

/// Asserts that a call fails with a kind of error.
macro_rules! refused {
    ($call:expr, $kind:ident) => {
        match $call {
            Err(frit_fs::Error::$kind { .. }) => {}
            other => panic!("{} in place of {}: {other:?}", stringify!($call), stringify!($kind)),
        }
    };
}

#[path = "../semantics/allocation.rs"]
mod allocation;
#[path = "../semantics/attributes.rs"]
mod attributes;
mod bodies;
#[path = "../semantics/common.rs"]
mod common;
#[path = "../semantics/contents.rs"]
mod contents;
#[path = "../semantics/cuts.rs"]
mod cuts;
#[path = "../semantics/directories.rs"]
mod directories;
#[path = "../semantics/names.rs"]
mod names;
#[path = "../semantics/renames.rs"]
mod renames;
#[path = "../semantics/starts.rs"]
mod starts;
#[path = "../semantics/threads.rs"]
mod threads;
#[path = "../semantics/watched.rs"]
mod watched;
#[path = "../semantics/xattrs.rs"]
mod xattrs;

use common::*;
use frit_fs::{Bodies, Clock, Format, Fs, Mapped, Open, Pool};
use std::cell::RefCell;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// A pool, and the directory that it is in.
type Kept = (tempfile::TempDir, Arc<Pool>);

thread_local! {
    /// Pools of a test in directories of their own, by their identity; gone with its thread.
    static POOLS: RefCell<HashMap<u128, Kept>> = RefCell::default();
}

fn fresh(bytes: u64) -> Fs<Mapped> {
    on(Mapped::anonymous(bytes).unwrap())
}

/// A new file system whose root directory is for everybody. Times of contents are the machine's, so all are.
fn on<M: Medium>(medium: M) -> Fs<M> {
    let memory = Path::new("/dev/shm");
    let dir = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap();
    let pool = Arc::new(Pool::make(dir.path(), None).unwrap());
    POOLS.with_borrow_mut(|pools| pools.insert(pool.uuid(), (dir, Arc::clone(&pool))));
    let format = Format { root: (0, 0, 0o777), clock: Clock::Wall, bodies: Some(pool), ..Format::default() };
    Fs::format(medium, format).unwrap()
}

/// The pool of a medium, if it has one: the superblock has its identity at byte 16.
fn known<M: Medium>(medium: &M) -> Option<Arc<Pool>> {
    let mut uuid = [0; 16];
    medium.read(16, &mut uuid);
    POOLS.with_borrow(|pools| pools.get(&u128::from_le_bytes(uuid)).map(|(_, pool)| Arc::clone(pool)))
}

fn pool_of<M: Medium>(medium: &M) -> Arc<Pool> {
    known(medium).unwrap()
}

/// Opens it again, a while later.
fn again<M: Medium>(medium: M) -> Fs<M> {
    let bodies = known(&medium).map(|pool| pool as Arc<dyn Bodies>);
    Fs::open(medium, Open { bodies, ..Open::default() }).unwrap()
}

/// Lets the clock of the kernel go on.
fn tick() {
    std::thread::sleep(Duration::from_millis(12));
}

/// Whether a test is of contents in an image alone, and why.
fn image_only(why: &str) -> bool {
    eprintln!("not of a pool: {why}");
    true
}

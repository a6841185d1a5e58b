//! The promises of `docs/reference/semantics.md` with contents in a pool, verified by the tests of
//! `semantics`. Tests that apply only to contents in an image print a reason and pass. Limits are
//! those of the image and are tested there.

// The files of `semantics` are modules of both.
#![allow(clippy::duplicate_mod)]

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
#[path = "../semantics/common.rs"]
mod common;
mod content_store;
#[path = "../semantics/contents.rs"]
mod contents;
#[path = "../semantics/cuts.rs"]
mod cuts;
#[path = "../semantics/directories.rs"]
mod directories;
#[path = "../semantics/looked_up.rs"]
mod looked_up;
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

use crate::{AnyMedium, erased, memory};
use common::*;
use frit_fs::{Clock, ContentStore, FormatOptions, Fs, FsOptions, Mapped, Pool};
use std::cell::RefCell;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// A pool with its directory.
type PoolInDir = (tempfile::TempDir, Arc<Pool>);

thread_local! {
    /// Pools of a test by their UUID. They are removed when the thread of the test ends.
    static POOLS: RefCell<HashMap<u128, PoolInDir>> = RefCell::default();
}

fn fresh(bytes: u64) -> Fs<AnyMedium> {
    on(memory(bytes))
}

/// Formats a file system with a root directory that every user can write to. The wall clock is
/// used, because the times of contents are those of the system.
fn on(medium: impl Medium + 'static) -> Fs<AnyMedium> {
    let memory = Path::new("/dev/shm");
    let dir = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap();
    let pool = Arc::new(Pool::make(dir.path(), None).unwrap());
    POOLS.with_borrow_mut(|pools| pools.insert(pool.uuid(), (dir, Arc::clone(&pool))));
    let format = FormatOptions {
        root: (0, 0, 0o777),
        clock: Clock::Wall,
        content_store: Some(pool),
        ..FormatOptions::default()
    };
    Fs::format(erased(medium), format).unwrap()
}

/// Returns the pool of a medium, if it has one: the superblock has its UUID at byte 16.
fn known(medium: &dyn Medium) -> Option<Arc<Pool>> {
    let mut uuid = [0; 16];
    medium.read(16, &mut uuid);
    POOLS.with_borrow(|pools| pools.get(&u128::from_le_bytes(uuid)).map(|(_, pool)| Arc::clone(pool)))
}

fn pool_of(medium: &dyn Medium) -> Arc<Pool> {
    known(medium).unwrap()
}

/// Opens a file system again.
fn again(medium: impl Medium + 'static) -> Fs<AnyMedium> {
    let content_store = known(&medium).map(|pool| pool as Arc<dyn ContentStore>);
    Fs::open(erased(medium), FsOptions { content_store, ..FsOptions::default() }).unwrap()
}

/// Waits until the kernel's coarse clock has advanced.
fn tick() {
    std::thread::sleep(Duration::from_millis(12));
}

/// Prints the reason why a test applies only to contents in an image, and returns `true`.
fn image_only(why: &str) -> bool {
    eprintln!("skipped for a pool: {why}");
    true
}

//! The tests of `mount` once more, with contents in a pool that the kernel reads and writes itself. Skipped where nothing
//! can be mounted; where the kernel cannot do that, or this process has no right to it, requests do, which is said.

// Helpers of tests are tests, which clippy does not know.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr)]

mod bodies;
#[path = "../mount/common.rs"]
mod common;
#[path = "../mount/contents.rs"]
mod contents;
#[path = "../mount/names.rs"]
mod names;
#[path = "../mount/promises.rs"]
mod promises;
#[path = "../mount/rights.rs"]
mod rights;
#[path = "../mount/sessions.rs"]
mod sessions;

use common::*;
use frit_fs::Pool;
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Contents are in a pool.
const POOL: bool = true;

thread_local! {
    /// Where the pools of a test are; gone with its thread.
    static DIRECTORIES: RefCell<Vec<tempfile::TempDir>> = const { RefCell::new(Vec::new()) };
}

fn memory() -> Memory {
    // That of a child which is killed goes with the directory of its parent.
    let child = std::env::var_os(sessions::CHILD).map(PathBuf::from);
    let shared = child.as_ref().and_then(|at| at.parent()).unwrap_or(Path::new("/dev/shm"));
    let dir = if shared.is_dir() { tempfile::tempdir_in(shared) } else { tempfile::tempdir() }.unwrap();
    let pool = Arc::new(Pool::make(dir.path(), None).unwrap());
    DIRECTORIES.with_borrow_mut(|all| all.push(dir));
    let format = Format { inodes: Some(INODES), bodies: Some(pool), ..Format::default() };
    Fs::format(Mapped::anonymous(BYTES).unwrap(), format).unwrap()
}

/// Whether a test is of contents in an image alone, and why.
fn image_only(why: &str) -> bool {
    eprintln!("not of a pool: {why}");
    true
}

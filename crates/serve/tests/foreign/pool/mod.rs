//! The tests of `mount`, repeated with contents in a pool that the kernel reads and writes itself.
//! Skipped if mounting is not possible. If the kernel has no passthrough, or this process lacks the
//! permission, contents are transferred by requests, and a message says so.

// The files of `mount` are modules of both.
#![allow(clippy::duplicate_mod)]

#[path = "../mount/commands.rs"]
mod commands;
#[path = "../mount/common.rs"]
mod common;
mod content_store;
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

/// `true`: contents are in a pool.
const POOL: bool = true;

thread_local! {
    /// Directories of the pools of a test. They are removed when its thread ends.
    static DIRECTORIES: RefCell<Vec<tempfile::TempDir>> = const { RefCell::new(Vec::new()) };
}

fn memory() -> Memory {
    // The pool of a child process that is killed is created in the directory of its parent, and
    // removed with it.
    let child = std::env::var_os(sessions::CHILD).map(PathBuf::from);
    let shared = child.as_ref().and_then(|at| at.parent()).unwrap_or(Path::new("/dev/shm"));
    let dir = if shared.is_dir() { tempfile::tempdir_in(shared) } else { tempfile::tempdir() }.unwrap();
    let pool = Arc::new(Pool::make(dir.path(), None).unwrap());
    DIRECTORIES.with_borrow_mut(|all| all.push(dir));
    let format =
        FormatOptions { inodes: Some(INODES), content_store: Some(pool), ..FormatOptions::default() };
    Fs::format(Mapped::anonymous(BYTES).unwrap(), format).unwrap()
}

/// Prints why a test applies only to contents in an image, and returns `true`, so that it is
/// skipped.
fn image_only(why: &str) -> bool {
    eprintln!("not of a pool: {why}");
    true
}

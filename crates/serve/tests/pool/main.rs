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
use std::path::Path;
use std::sync::{Arc, Mutex};

/// Contents are in a pool.
const POOL: bool = true;

/// Where the pools of these tests are, for as long as the process lives.
static DIRECTORIES: Mutex<Vec<tempfile::TempDir>> = Mutex::new(Vec::new());

fn memory() -> Memory {
    let shared = Path::new("/dev/shm");
    let dir = if shared.is_dir() { tempfile::tempdir_in(shared) } else { tempfile::tempdir() }.unwrap();
    let pool = Arc::new(Pool::make(dir.path(), None).unwrap());
    DIRECTORIES.lock().unwrap().push(dir);
    let format = Format { inodes: Some(INODES), bodies: Some(pool), ..Format::default() };
    Fs::format(Mapped::anonymous(BYTES).unwrap(), format).unwrap()
}

/// Whether a test is of contents in an image alone, and why.
fn image_only(why: &str) -> bool {
    eprintln!("not of a pool: {why}");
    true
}

//! The promises of `docs/reference/semantics.md` with contents on a nameless-write device, verified by the
//! tests of `semantics`. Tests that apply only to contents in an image print a reason and pass.

// The files of `semantics` are modules of several.
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

// Some helpers serve tests that this module leaves out.
#[allow(dead_code)]
#[path = "../semantics/common.rs"]
mod common;
#[path = "../semantics/contents.rs"]
mod contents;
#[path = "../semantics/directories.rs"]
mod directories;
#[path = "../semantics/names.rs"]
mod names;
#[path = "../semantics/renames.rs"]
mod renames;
#[path = "../semantics/threads.rs"]
mod threads;
#[path = "../semantics/xattrs.rs"]
mod xattrs;

use super::device::FakeDevice;
use crate::memory;
use common::*;
use frit_fs::{Clock, FormatOptions, Fs, FsOptions, PlacedContents, VirtualBlocks};
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

thread_local! {
    /// Devices of a test by the address of their medium.
    static DEVICES: RefCell<HashMap<*const VirtualBlocks, FakeDevice>> = RefCell::default();
}

/// Formats a file system with a root directory that every user can write to. The device has as much space
/// for contents as the medium for metadata.
fn fresh(bytes: u64) -> Fs<Arc<VirtualBlocks>> {
    let device = FakeDevice::new(bytes / BLOCK, (bytes / BLOCK) as u32, bytes);
    let placed = load(&device);
    let format = FormatOptions {
        root: (0, 0, 0o777),
        clock: Clock::counted(1_000_000_000_000),
        placed: Some(Arc::clone(&placed)),
        ..FormatOptions::default()
    };
    Fs::format(placed.medium(), format).unwrap()
}

fn load(device: &FakeDevice) -> Arc<PlacedContents> {
    let placed = PlacedContents::load(Box::new(device.clone())).unwrap();
    DEVICES.with_borrow_mut(|all| all.insert(Arc::as_ptr(&placed.medium()), device.clone()));
    placed
}

/// Opens a file system again that was closed, with a later time.
#[allow(clippy::needless_pass_by_value)]
fn again(medium: Arc<VirtualBlocks>) -> Fs<Arc<VirtualBlocks>> {
    let device = DEVICES.with_borrow(|all| all[&Arc::as_ptr(&medium)].clone());
    device.crash();
    let placed = load(&device);
    let clock = Clock::counted(2_000_000_000_000);
    let options = FsOptions { clock, placed: Some(Arc::clone(&placed)), ..FsOptions::default() };
    Fs::open(placed.medium(), options).unwrap()
}

/// Waits for the clock to advance. Counted clocks advance at each reading.
fn tick() {}

/// Returns `true` if a test that applies only to contents in an image has to be skipped.
fn image_only(why: &str) -> bool {
    eprintln!("skipped: contents are not in an image ({why})");
    true
}

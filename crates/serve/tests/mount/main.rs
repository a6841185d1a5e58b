//! A file system through the kernel. Skipped where nothing can be mounted.

// Helpers of tests are tests, which clippy does not know.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr)]

mod common;
mod contents;
mod damage;
mod names;
mod promises;
mod rights;
mod sessions;

use common::*;

/// Contents are in the image.
const POOL: bool = false;

fn memory() -> Memory {
    let format = Format { inodes: Some(INODES), ..Format::default() };
    Fs::format(Mapped::anonymous(BYTES).unwrap(), format).unwrap()
}

/// Whether a test is of contents in an image alone, and why.
fn image_only(_why: &str) -> bool {
    false
}

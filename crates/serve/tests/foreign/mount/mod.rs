//! Tests of a mounted file system. Skipped if mounting is not possible.

mod attackers;
mod commands;
mod common;
mod contents;
mod damage;
mod names;
mod promises;
mod rights;
mod sessions;

use common::*;

/// `false`: contents are in the image.
const POOL: bool = false;

fn memory() -> Memory {
    let format = FormatOptions { inodes: Some(INODES), ..FormatOptions::default() };
    Fs::format(Mapped::anonymous(BYTES).unwrap(), format).unwrap()
}

/// Returns `true` if a test that applies only to contents in an image must be skipped.
fn image_only(_why: &str) -> bool {
    false
}

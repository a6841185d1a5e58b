//! Integration tests of the crate.

#![allow(clippy::unwrap_used, reason = "tests")]

mod bad_input;
mod files;
mod other_drive;
mod recovery;
mod synthetic;

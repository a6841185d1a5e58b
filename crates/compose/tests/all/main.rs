//! Integration tests of the crate, in one program.

// Clippy does not treat helper functions of tests as tests.
#![allow(clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

mod announcements;
mod device;
mod host_link;
mod mirror;

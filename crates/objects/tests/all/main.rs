//! Integration tests of the crate, in one program.

// Clippy does not treat helper functions of tests as tests.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

mod buckets;
mod common;
mod faults;
mod kill;
mod machine;
#[cfg(feature = "s3")]
mod s3;
mod writers;

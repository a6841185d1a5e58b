//! Integration tests of the crate, in one program.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod commands;
mod real;
mod robust;
mod roundtrip;
mod samples;

//! Integration tests of the crate, in one program.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod modelled;
mod quick;

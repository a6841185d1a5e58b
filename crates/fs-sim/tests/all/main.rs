//! Integration tests of the crate, in one program.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod by_hand;
mod isp;
mod order;
mod runs;
mod same_bytes;

//! Integration tests of the crate, in one program.

// Clippy does not recognize helper functions as tests.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr)]

mod binary;
mod channel;
mod control;
mod copy;
mod foreign;
mod lines;
mod page;
mod parsers;
#[cfg(feature = "programs")]
mod programs;
mod records;
mod sums;
mod support;
mod threads;
// Programs are its endless instructions.
#[cfg(feature = "programs")]
mod users;
mod values;
#[cfg(not(feature = "programs"))]
mod without_programs;
mod words;

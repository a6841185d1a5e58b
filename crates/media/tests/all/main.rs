//! Integration tests of the crate, in one program.

// These helper functions are test code, which clippy does not recognize.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod drives;

//! Integration tests of the crate, in one program.

// Helpers of tests are tests, which clippy does not know.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, clippy::print_stdout)]

mod arrays;
#[path = "../common/mod.rs"]
mod common;
mod damage;
mod disk_access;
mod example;
mod fixture;
mod fuzz;
mod grow;
mod leveled;
mod life;
mod model;
mod refusals;
mod sizing;
mod trees;
mod vanish;

//! Integration tests of the crate, in one program.

#![allow(clippy::unwrap_used, clippy::expect_used)] // helpers of tests

mod agree;
mod by_hand;
mod cache_programs;
mod cells;
mod cells_model;
mod chips;
mod common;
mod disks;
mod driver;
mod host_first;
mod objects;
mod planes;
mod schedulers;
mod solid_state;

//! Integration tests of the crate, in one program.

// The helpers are not marked as tests, so clippy's exemption for tests does not cover them.
#![allow(clippy::unwrap_used, clippy::panic)]

mod arrays;
mod builtins;
mod docs;
mod errors;
mod fuzz;
mod namespaces;
mod objects;
mod overrides;
mod records;
mod trees;

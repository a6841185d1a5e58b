//! The model of a file system against the running kernel, and operations of all kinds on the model.

#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

mod against_kernel;
mod kernel;
mod oracle;
mod real;
mod user;

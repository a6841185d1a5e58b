//! Programs of users: WebAssembly modules, which wasmtime compiles and executes in a sandbox.
//!
//! A program has no access to anything but the bytes of one file, its argument, and its own memory. It
//! has neither a clock nor random numbers. Its fuel, memory and processor time are limited.
//! `docs/reference/isp.md` documents the functions of a program and of the engine.
//!
//! wasmtime takes more time to build than the rest of the crate, so it belongs to the feature `programs`. Without it,
//! instructions with a program are read and checked as with it, and then fail.

// Also in tests with the feature, which check the message.
#[cfg(any(test, not(feature = "programs")))]
mod absent;
mod limits;
#[cfg(feature = "programs")]
mod sandbox;

#[cfg(not(feature = "programs"))]
pub(crate) use absent::{Programs, execute};
pub(crate) use limits::FUEL_MAX;
pub use limits::ProgramLimits;
#[cfg(feature = "programs")]
pub(crate) use sandbox::{Programs, execute};

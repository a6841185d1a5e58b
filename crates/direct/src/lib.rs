//! Direct access of programs to file data of a mount: the shared memory, the requests, and the library
//! that `frit exec` loads into programs. docs/design/direct.md describes the protocol.

#[cfg(not(frit_preload))]
mod client;
pub mod environment;
pub mod messages;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[cfg_attr(not(frit_preload), allow(dead_code, unreachable_pub))]
mod preload;
pub mod segment;

#[cfg(not(frit_preload))]
pub use client::{begin_instructions, image_of};

/// The library for programs, a file for `LD_PRELOAD`. Empty on systems that it does not support.
#[cfg(not(frit_preload))]
pub static LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libfrit_direct.so"));

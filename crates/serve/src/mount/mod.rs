//! A file system as a directory tree of this machine, through FUSE.
//!
//! [`Mount`] carries any [`frit_fs::Files`] to programs. `adapter` takes the kernel's requests; what needs more than
//! one call of `Files` is in a file of its own. Nothing of a file is kept here: the core keeps files, and the kernel,
//! through which all changes come, keeps what it has seen of them. docs/mount.md says what programs see.

mod adapter;
mod contents;
mod convert;
mod listing;
mod names;
mod options;
mod pages;
mod passthrough;
mod plain;
mod reply;
mod session;
mod setup;
mod stale;

pub use options::{Options, THREADS_MAX};
pub use session::Mount;
pub use stale::{Mounted, clear_stale, mounted};

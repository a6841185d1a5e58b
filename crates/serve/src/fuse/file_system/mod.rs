//! A file system as a directory tree of the host, through FUSE.
//!
//! [`Mount`] serves any [`frit_fs::FileSystem`] to programs. `adapter` receives the kernel's
//! requests; operations that need more than one call of `FileSystem` are in modules of their own.
//! Nothing of a file is cached here: the file system caches files, and the kernel, through which all
//! changes are made, caches their attributes and contents. docs/guide/mount.md describes what
//! programs observe.

mod adapter;
mod contents;
mod convert;
mod direct_access;
mod in_storage;
mod killpriv;
mod listing;
mod lookups;
mod names;
mod options;
pub(in crate::fuse) use options::SUBTYPE;
mod page_invalidation;
mod page_marks;
mod passthrough;
mod reply;
mod requester;
mod session;
mod setup;
mod stale;
mod unreported;
mod unsent_writes;

pub use frit_fuse::Rings;
pub use in_storage::{EngineContents, resolve_error};
pub use options::{IspAccess, MountOptions, THREADS_MAX};
pub use session::Mount;
pub use stale::{MountInfo, all_mounted, clear_stale, is_mounted, mounted};

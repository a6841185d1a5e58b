//! A device as one raw file, through FUSE. With `losetup` it becomes a block device of the kernel
//! on machines without NBD or ublk drivers.
//!
//! `file` implements the operations of the file without FUSE, `adapter` translates requests, and
//! [`BlockExport`] mounts and unmounts. docs/guide/fuse.md describes what programs observe, also
//! when the server is killed.

mod adapter;
mod export;
mod file;
pub mod loop_devices;
pub(crate) mod mounts;

pub use adapter::FILE_NAME;
pub use export::BlockExport;
pub(crate) use file::{mode, whence};
pub use mounts::{mounts_at, unmount, volumes_at, whole};

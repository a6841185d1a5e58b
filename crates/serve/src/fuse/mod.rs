//! A device as one raw file, through FUSE: with `losetup` it becomes a block device of the kernel on
//! machines without NBD or ublk drivers.
//!
//! What the file does is in `file`, without FUSE; `adapter` translates; [`Export`] mounts and unmounts.
//! docs/fuse.md says what programs see, also when the server is killed.

mod adapter;
mod export;
mod file;
pub mod loops;
pub(crate) mod mounts;

pub use adapter::FILE_NAME;
pub use export::Export;
pub(crate) use file::{mode, whence};
pub use mounts::{mounts_at, unmount, volumes_at, whole};

//! A FUSE file system with one file, the device as a raw image. With `losetup` it becomes a block
//! device of the kernel on machines without NBD or ublk drivers.
//!
//! `file` implements the operations of the file without FUSE, `adapter` translates requests, and
//! [`BlockExport`] mounts and unmounts. docs/guide/fuse.md describes what programs observe, also
//! when the server is killed.

mod adapter;
mod export;
mod file;

pub use adapter::FILE_NAME;
pub use export::BlockExport;

//! FUSE servers: a device as one file ([`block_export`]), and a file system as a directory tree
//! ([`file_system`]).
//!
//! Both are servers of [`frit_fuse`], and share `mounts` (checks of mountpoints, unmounting, the
//! kernel's list of mounts) and `linux` (constants of system calls).
//! [`loop_devices`] lists the block devices that the kernel makes of exported files.

pub mod block_export;
pub mod file_system;
mod killed_servers;
mod linux;
pub mod loop_devices;
mod mounts;

pub use block_export::{BlockExport, FILE_NAME};
pub use killed_servers::abort_killed;
pub use mounts::{absolute_path, mountpoints_of, mounts_at, unmount, unmount_with_timeout, volumes_at};

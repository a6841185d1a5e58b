//! File systems mounted at a directory, including those whose server no longer exists.

use super::options::SUBTYPE;
use crate::fuse::mounts::{file_systems_at, is_disconnected, is_file_system, mountpoints_of_type};
use crate::fuse::{absolute_path, unmount};
use std::io;
use std::path::{Path, PathBuf};

/// A mounted file system of this module.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MountInfo {
    /// Mountpoint, as in the kernel's list.
    pub mountpoint: PathBuf,
    /// Source: the image, unless `fsname` sets another name.
    pub source: String,
}

/// Returns the file system mounted at a directory, if it belongs to this module. Only the kernel's
/// list is read.
///
/// # Errors
/// /proc cannot be read, or the path does not exist.
pub fn mounted(directory: &Path) -> io::Result<Option<MountInfo>> {
    let mountpoint = absolute_path(directory)?;
    let top = file_systems_at(&mountpoint)?.pop();
    let ours = top.filter(|(kind, _)| kind.strip_prefix("fuse.") == Some(SUBTYPE));
    Ok(ours.map(|(_, source)| MountInfo { mountpoint, source }))
}

/// Returns the directories at which file systems of this module are mounted.
///
/// # Errors
/// /proc cannot be read.
pub fn all_mounted() -> io::Result<Vec<PathBuf>> {
    mountpoints_of_type(&format!("fuse.{SUBTYPE}"))
}

/// Returns `true` if a file system of this module with this device number is mounted. Only the kernel's
/// list is read.
///
/// # Errors
/// /proc cannot be read.
pub fn is_mounted(device: u64) -> io::Result<bool> {
    is_file_system(device)
}

/// Unmounts the file system that a killed server left at a directory. Returns `true` if there was
/// one.
///
/// # Errors
/// /proc cannot be read, or the error of the kernel.
pub fn clear_stale(directory: &Path) -> io::Result<bool> {
    let mut any = false;
    // The kernel may have the attributes of the directory, but it asks for the usage each time.
    let is_stale = || {
        let asked = std::fs::metadata(directory).and_then(|_| Ok(rustix::fs::statfs(directory)?));
        asked.is_err_and(|e| is_disconnected(&e))
    };
    while is_stale() {
        let mountpoint = absolute_path(directory)?;
        if !file_systems_at(&mountpoint)?.pop().is_some_and(|(kind, _)| kind.starts_with("fuse")) {
            break;
        }
        // Programs with open files there already get errors.
        unmount(&mountpoint, true)?;
        any = true;
    }
    Ok(any)
}

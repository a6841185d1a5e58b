//! What is mounted at a directory, also when nobody answers there any more.

use super::options::SUBTYPE;
use crate::fuse::mounts::{NOT_CONNECTED, kinds_at};
use crate::fuse::{unmount, whole};
use std::io;
use std::path::{Path, PathBuf};

/// A mounted file system of this module.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mounted {
    /// Where, as the kernel names it.
    pub mountpoint: PathBuf,
    /// The source: the image, unless `fsname` names something else.
    pub source: String,
}

/// What is mounted at a directory, if it is a file system of this module. It asks the kernel's list only.
///
/// # Errors
/// No /proc; a path that leads nowhere.
pub fn mounted(directory: &Path) -> io::Result<Option<Mounted>> {
    let mountpoint = whole(directory)?;
    let top = kinds_at(&mountpoint)?.pop();
    let ours = top.filter(|(kind, _)| kind.strip_prefix("fuse.") == Some(SUBTYPE));
    Ok(ours.map(|(_, source)| Mounted { mountpoint, source }))
}

/// Unmounts what a server left at a directory that was killed, and says whether there was anything.
///
/// # Errors
/// No /proc; what the kernel says.
pub fn clear_stale(directory: &Path) -> io::Result<bool> {
    let mut any = false;
    while std::fs::metadata(directory).is_err_and(|e| e.raw_os_error() == Some(NOT_CONNECTED)) {
        let mountpoint = whole(directory)?;
        if !kinds_at(&mountpoint)?.pop().is_some_and(|(kind, _)| kind.starts_with("fuse")) {
            break;
        }
        // Programs that still have files open there get errors anyway.
        unmount(&mountpoint, true)?;
        any = true;
    }
    Ok(any)
}

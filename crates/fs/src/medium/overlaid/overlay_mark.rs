//! Record of an overlay in its image: an extended attribute with the path of the overlay.

use super::dirs;
use frit_core::paths;
use std::ffi::OsString;
use std::fs::File;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// Extended attribute of an image that names its overlay.
pub(super) const MARK: &str = "user.frit.overlay";

/// Returns the path of the overlay that an image names.
pub(super) fn read_mark(image: &File) -> Option<PathBuf> {
    let mut path = vec![0; 4096];
    let len = rustix::fs::fgetxattr(image, MARK, &mut path).ok().filter(|len| *len > 0)?;
    path.truncate(len);
    Some(OsString::from_vec(path).into())
}

/// Records the path of the overlay in the image. If the file system has no extended attributes, the
/// overlay is found by a search.
pub(super) fn write_mark(image: &File, overlay: &Path) {
    let path = std::path::absolute(overlay).unwrap_or_else(|_| overlay.into());
    let _ = rustix::fs::fsetxattr(image, MARK, path.as_os_str().as_bytes(), rustix::fs::XattrFlags::empty());
}

/// Removes an overlay that is no longer needed, its record in the image, and its directory if
/// empty.
pub(super) fn remove(image: &File, overlay: &Path) {
    let _ = paths::remove_file(overlay);
    let _ = rustix::fs::fremovexattr(image, MARK);
    overlay.parent().map(dirs::remove_if_empty);
}

//! The file of the library for `LD_PRELOAD`.

use frit_core::files::{self, OutputFile};
use frit_core::paths::{self, Place};
use frit_direct::LIBRARY;
use miette::{IntoDiagnostic, Result, WrapErr, miette};
use std::fs;
use std::hash::{DefaultHasher, Hasher};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Writes the library to a directory of this user, if it is not there yet, and returns its path. Programs
/// of other users may read it.
///
/// # Errors
/// The directory belongs to another user, or the file cannot be written.
pub(super) fn install() -> Result<PathBuf> {
    let user = rustix::process::geteuid().as_raw();
    let dir = std::env::temp_dir().join(format!("frit-exec-{user}"));
    if dir.as_os_str().as_encoded_bytes().iter().any(|byte| b" :\t\n".contains(byte)) {
        return Err(miette!("{}: LD_PRELOAD allows no blanks and colons; set TMPDIR", dir.display()));
    }
    let failed = || format!("cannot write {}", dir.display());
    match paths::create_dir(&dir, 0o755) {
        Err(e) if e.kind() != std::io::ErrorKind::AlreadyExists => {
            return Err(e).into_diagnostic().wrap_err_with(failed);
        }
        _ => {}
    }
    let meta = fs::symlink_metadata(&dir).into_diagnostic().wrap_err_with(failed)?;
    // Programs load what the path leads to, so nobody else may exchange a directory above it.
    let is_private = meta.is_dir() && meta.uid() == user && meta.mode() & 0o022 == 0;
    if !is_private || !Place::of_dir(&dir).is_ok_and(|place| place.is_trusted()) {
        return Err(miette!(
            "{} is not a directory that only this user can write; remove it, or set TMPDIR",
            dir.display()
        ));
    }
    // Versions of frit that run at the same time each have a file.
    let mut hasher = DefaultHasher::new();
    hasher.write(LIBRARY);
    let path = dir.join(format!("{:016x}.so", hasher.finish()));
    if !is_library(&path) {
        write(&path).into_diagnostic().wrap_err_with(failed)?;
    }
    Ok(path)
}

/// Returns `true` if a file is the library.
fn is_library(path: &Path) -> bool {
    files::read(path, LIBRARY.len() as u64).is_ok_and(|bytes| bytes == LIBRARY)
}

/// Writes the file, which replaces another one when it is complete, so that no program loads a part.
fn write(path: &Path) -> std::io::Result<()> {
    let mut file = OutputFile::create(path)?;
    file.write_all(LIBRARY)?;
    file.file().set_permissions(fs::Permissions::from_mode(0o755))?;
    file.commit()
}

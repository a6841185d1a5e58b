//! The file of the library for `LD_PRELOAD`.

use frit_core::files::{self, OutputFile};
use frit_core::paths::{self, Place};
use frit_direct::LIBRARY;
use miette::{IntoDiagnostic, Result, WrapErr, miette};
use std::fs;
use std::hash::{DefaultHasher, Hasher};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Writes the library to a directory of this user, if it is not there yet, and returns its path. Programs
/// of other users may read it.
///
/// # Errors
/// There is no directory that only this user can write to, or the file cannot be written.
pub(super) fn install() -> Result<PathBuf> {
    let base = std::env::temp_dir();
    let failed = || format!("cannot write the library of frit exec below {}", base.display());
    if base.as_os_str().as_encoded_bytes().iter().any(|byte| b" :\t\n".contains(byte)) {
        return Err(miette!("{}: LD_PRELOAD allows no blanks and colons; set TMPDIR", base.display()));
    }
    let dir = directory(&base).into_diagnostic().wrap_err_with(failed)?;
    // Versions of frit that run at the same time each have a file.
    let mut hasher = DefaultHasher::new();
    hasher.write(LIBRARY);
    let path = dir.join(format!("{:016x}.so", hasher.finish()));
    if !is_library(&path) {
        write(&path).into_diagnostic().wrap_err_with(failed)?;
    }
    Ok(path)
}

/// Returns the directory of this user below a base, which is made if there is none. Anybody can take its name in
/// `/tmp` first. Then a number that nobody can guess follows it, and later runs find it by name and owner.
fn directory(base: &Path) -> io::Result<PathBuf> {
    let name = format!("frit-exec-{}", rustix::process::geteuid().as_raw());
    let (plain, numbered) = (base.join(&name), format!("{name}-"));
    // A base that cannot be listed is used all the same.
    let names = fs::read_dir(base).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.file_name()));
    let mut others: Vec<PathBuf> = names
        .filter(|name| name.as_encoded_bytes().starts_with(numbered.as_bytes()))
        .map(|name| base.join(name))
        .collect();
    others.sort();
    if let Some(own) = std::iter::once(plain.clone()).chain(others).find(|dir| is_private(dir)) {
        return Ok(own);
    }
    let made = match paths::create_dir(&plain, 0o755) {
        // Another run of this user was faster.
        Err(e) if e.kind() == ErrorKind::AlreadyExists && is_private(&plain) => return Ok(plain),
        Err(e) if e.kind() == ErrorKind::AlreadyExists => {
            let dir = base.join(format!("{numbered}{:016x}", paths::secret_number()));
            paths::create_dir(&dir, 0o755)?;
            dir
        }
        created => {
            created?;
            plain
        }
    };
    if is_private(&made) {
        return Ok(made);
    }
    let _ = paths::remove_dir(&made);
    let what = "others could exchange what is in it; set TMPDIR to a directory that only you can write to, or that \
                has the sticky bit";
    Err(io::Error::new(ErrorKind::PermissionDenied, what))
}

/// Returns `true` for a directory that this user owns and nobody else can write to. Programs load what its path
/// leads to, so nobody else may exchange a directory above it either.
fn is_private(dir: &Path) -> bool {
    let user = rustix::process::geteuid().as_raw();
    let is_own = fs::symlink_metadata(dir)
        .is_ok_and(|meta| meta.is_dir() && meta.uid() == user && meta.mode() & 0o022 == 0);
    is_own && Place::of_dir(dir).is_ok_and(|place| place.is_trusted())
}

/// Returns `true` if a file is the library.
fn is_library(path: &Path) -> bool {
    files::read(path, LIBRARY.len() as u64).is_ok_and(|bytes| bytes == LIBRARY)
}

/// Writes the file, which replaces another one when it is complete, so that no program loads a part.
fn write(path: &Path) -> io::Result<()> {
    let mut file = OutputFile::create(path)?;
    file.write_all(LIBRARY)?;
    file.file().set_permissions(fs::Permissions::from_mode(0o755))?;
    file.commit()
}

//! Opening of the command file of a mounted directory.
//!
//! Whoever may change a directory can give the name of its command file to anything, if the file system has no
//! command files, or if another one is mounted inside. So the file is found without following a link, compared
//! with its directory and the kernel's list of mounts, and opened for instructions by a request that no other
//! file system understands, all before its first byte is written.

use frit_direct::begin_instructions;
use frit_serve::fuse::file_system::is_mounted;
use miette::{IntoDiagnostic, Report, Result, miette};
use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, openat};
use rustix::io::Errno;
use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

/// Name of the command file of each directory.
const COMMAND: &str = ".isp";

/// Opens the command file of a directory, for instructions of this process.
///
/// # Errors
/// The directory has no command file of frit, or this user may give no instructions.
pub(super) fn open(directory: &Path) -> Result<File> {
    let path = directory.join(COMMAND);
    let refused = |reason: &str| miette!("{} is not a command file of frit: {reason}", path.display());
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let held = openat(CWD, directory, flags | OFlags::DIRECTORY, Mode::empty());
    let held = held.map_err(|e| not_found(directory, e))?;
    let found = openat(&held, COMMAND, flags | OFlags::NOFOLLOW, Mode::empty());
    let found = found.map_err(|e| no_command_file(directory, &held, e))?;
    let (of_directory, of_file) = (fstat(&held).into_diagnostic()?, fstat(&found).into_diagnostic()?);
    match FileType::from_raw_mode(of_file.st_mode) {
        FileType::RegularFile => {}
        FileType::Symlink => return Err(refused("it is a symbolic link")),
        _ => return Err(refused("it is not a regular file")),
    }
    if of_file.st_dev != of_directory.st_dev {
        return Err(refused("another file system is mounted there"));
    }
    if !is_mounted(of_directory.st_dev).into_diagnostic()? {
        return Err(not_ours(directory));
    }
    // The same file, whatever its name leads to by now.
    let same = format!("/proc/self/fd/{}", found.as_raw_fd());
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOCTTY;
    let opened = match openat(CWD, same, flags, Mode::empty()) {
        // The kernel knows it as that of another user, and finds it anew by its name.
        Err(Errno::STALE) => openat(&held, COMMAND, flags | OFlags::NOFOLLOW, Mode::empty()),
        opened => opened,
    };
    let opened = opened.map_err(|e| not_opened(directory, &path, e))?;
    let of_opened = fstat(&opened).into_diagnostic()?;
    if (of_opened.st_dev, of_opened.st_ino) != (of_file.st_dev, of_file.st_ino) {
        return Err(refused("another file was put there meanwhile"));
    }
    begin_instructions(&opened, false).map_err(|e| match Errno::from_io_error(&e) {
        Some(Errno::NOTTY) => refused("it takes no instructions (the file system was made with --no-isp)"),
        Some(Errno::PERM) => miette!(
            help = "give instructions in a process whose mount namespace has the mount, and whose root directory is above \
                    it",
            "no instructions can be given in {} from here: {e}",
            directory.display()
        ),
        _ => miette!("cannot begin instructions in {}: {e}", path.display()),
    })?;
    Ok(File::from(opened))
}

fn not_found(directory: &Path, error: Errno) -> Report {
    match error {
        Errno::NOTDIR => miette!("{} is not a directory", directory.display()),
        _ => miette!("cannot find the directory {}: {error}", directory.display()),
    }
}

fn not_ours(directory: &Path) -> Report {
    miette!(
        help = "mount one with frit mount; with --image IMAGE the file is in an image that is not mounted",
        "{} is not in a mounted file system of frit",
        directory.display()
    )
}

/// Returns the reason why a directory has no command file, and what to do.
fn no_command_file(directory: &Path, held: &OwnedFd, error: Errno) -> Report {
    let is_ours = || fstat(held).is_ok_and(|found| is_mounted(found.st_dev).unwrap_or(false));
    match error {
        Errno::NOENT if is_ours() => miette!(
            help =
                "frit isp enable IMAGE adds them while it is not mounted; with --image IMAGE none are needed",
            "the file system of {} has no command files: it was made with --no-isp, or by an older version",
            directory.display()
        ),
        Errno::NOENT => not_ours(directory),
        _ => miette!("cannot find the command file of {}: {error}", directory.display()),
    }
}

/// Returns the reason why a command file cannot be opened, and what to do.
fn not_opened(directory: &Path, path: &Path, error: Errno) -> Report {
    match error {
        Errno::ROFS => miette!(
            help =
                "mount it without --read-only (-o ro), or unmount it and name the image with --image IMAGE",
            "{} is in a file system that is mounted read-only, so no instruction can be written to {}",
            directory.display(),
            path.display()
        ),
        Errno::ACCESS => miette!(
            help = "the owner of the mount chooses who may compute there: frit mount --isp all, and the \
                    permissions of the directory",
            "this user may give no instructions in {}: {error}",
            directory.display()
        ),
        Errno::PERM => miette!(
            help = "the server has to find this process in its /proc, with the user that it has for files",
            "no instructions can be given in {} from here: {error}",
            directory.display()
        ),
        Errno::OPNOTSUPP => miette!(
            help = "mount it without --isp off",
            "{} is in a file system that is mounted with --isp off",
            directory.display()
        ),
        _ => miette!("cannot open {}: {error}", path.display()),
    }
}

//! Mounting and unmounting as such: directories, the kernel's list of mounts.

use super::loops::unescape;
use rustix::mount::UnmountFlags;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// What the kernel's list of mounts names as the source of a volume.
pub(super) const SOURCE: &str = "frit";
/// How often an unmount that finds the file in use is tried again.
const RETRY: Duration = Duration::from_millis(50);
/// `ENOTCONN`: what a mount says whose server is gone.
pub(crate) const NOT_CONNECTED: i32 = rustix::io::Errno::NOTCONN.raw_os_error();

/// The whole path of a directory on which something can be mounted.
pub(crate) fn usable(directory: &Path) -> io::Result<PathBuf> {
    // A mount whose server is gone has a path, and nothing more.
    let there = std::fs::metadata(directory).and_then(|_| directory.canonicalize());
    let mountpoint = there.map_err(|e| {
        let hint = if e.raw_os_error() == Some(NOT_CONNECTED) {
            "a server that mounted there was killed; `frit detach` or `fusermount3 -u` cleans up"
        } else {
            "the mountpoint has to be an existing directory"
        };
        io::Error::new(e.kind(), format!("{}: {e}; {hint}", directory.display()))
    })?;
    if !mountpoint.is_dir() {
        let what = format!("{}: is no directory, and FUSE mounts on one", mountpoint.display());
        return Err(io::Error::new(io::ErrorKind::NotADirectory, what));
    }
    if mounts_at(&mountpoint)? > 0 {
        let what = format!("{}: something is mounted there already", mountpoint.display());
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, what));
    }
    Ok(mountpoint)
}

/// Why it could not be mounted, with what to do about it.
pub(crate) fn explained(mountpoint: &Path, error: &io::Error) -> io::Error {
    let hint = match error.kind() {
        io::ErrorKind::NotFound => "; FUSE needs /dev/fuse (modprobe fuse), and fusermount3 without root",
        io::ErrorKind::PermissionDenied => "; mounting needs root, or fusermount3 from the package fuse3",
        _ => "",
    };
    io::Error::new(error.kind(), format!("cannot mount at {}: {error}{hint}", mountpoint.display()))
}

/// A path as the kernel's lists name it, without asking what is mounted there: that may not answer.
///
/// # Errors
/// The root, or a directory above it that is not there.
pub fn whole(path: &Path) -> io::Result<PathBuf> {
    let whole = std::path::absolute(path)?;
    let (Some(parent), Some(name)) = (whole.parent(), whole.file_name()) else {
        let what = format!("{}: this is no directory to mount on", path.display());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
    };
    let at = |e: io::Error| io::Error::new(e.kind(), format!("{}: {e}", parent.display()));
    Ok(parent.canonicalize().map_err(at)?.join(name))
}

/// Unmounts as soon as nobody uses it, within a time.
pub(crate) fn unmount_within(mountpoint: &Path, patience: Duration) -> io::Result<()> {
    let end = Instant::now() + patience;
    loop {
        match unmount(mountpoint, false) {
            Err(e) if e.kind() == io::ErrorKind::ResourceBusy && Instant::now() < end => {
                std::thread::sleep(RETRY);
            }
            other => return other,
        }
    }
}

/// Unmounts a directory; `lazy` also while it is in use, and when its server is gone.
///
/// # Errors
/// `ResourceBusy` when it is in use; what the kernel or fusermount3 says.
pub fn unmount(mountpoint: &Path, lazy: bool) -> io::Result<()> {
    let flags = if lazy { UnmountFlags::DETACH } else { UnmountFlags::empty() };
    match rustix::mount::unmount(mountpoint, flags | UnmountFlags::NOFOLLOW) {
        Err(rustix::io::Errno::PERM) => fusermount(mountpoint, lazy),
        other => Ok(other?),
    }
}

/// Unmounts as a user that is not root.
fn fusermount(mountpoint: &Path, lazy: bool) -> io::Result<()> {
    let mut command = Command::new("fusermount3");
    command.arg(if lazy { "-uz" } else { "-u" }).arg("--").arg(mountpoint);
    let output = command.stdin(Stdio::null()).output()?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    let busy = said.contains("busy");
    Err(io::Error::new(if busy { io::ErrorKind::ResourceBusy } else { io::ErrorKind::Other }, said))
}

/// How many file systems are mounted at a directory, one over the other.
///
/// # Errors
/// No /proc.
pub fn mounts_at(directory: &Path) -> io::Result<usize> {
    Ok(kinds_at(directory)?.len())
}

/// How many of them are volumes, served or left by a server that is gone.
///
/// # Errors
/// No /proc.
pub fn volumes_at(directory: &Path) -> io::Result<usize> {
    let ours = |k: &&(String, String)| k.0.starts_with("fuse") && k.1 == SOURCE;
    Ok(kinds_at(directory)?.iter().filter(ours).count())
}

/// Types and sources of the file systems that are mounted at a directory. It asks the kernel's list, never the
/// file systems themselves, which may not answer.
pub(crate) fn kinds_at(directory: &Path) -> io::Result<Vec<(String, String)>> {
    let list = std::fs::read_to_string("/proc/self/mountinfo")?;
    let at = |line: &&str| line.split(' ').nth(4).is_some_and(|p| unescape(p) == directory);
    let kind = |line: &str| {
        let mut rest = line.split(" - ").nth(1)?.split(' ');
        let (kind, source) = (rest.next()?, rest.next()?);
        Some((kind.to_owned(), unescape(source).to_string_lossy().into_owned()))
    };
    Ok(list.lines().filter(at).filter_map(kind).collect())
}

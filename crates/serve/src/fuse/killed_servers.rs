//! Servers that were killed and cannot end.
//!
//! A thread of a server that drops pages of a file (`FUSE_NOTIFY_INVAL_INODE`) waits for the locks of the pages, and
//! no signal ends the wait. If another program was reading a page, only the server could answer. Killed at that moment,
//! the process keeps its files open: the connection, so that the kernel aborts no request, and the lock of the image.
//! An abort of the connection ends the wait.

use super::mounts::{fuse_devices_of_source, fuse_mountpoints_of_device, top_device_at};
use rustix::io::Errno;
use rustix::mount::UnmountFlags;
use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Aborts the connections of killed servers that have a file open and cannot end. Returns `true` if there was one:
/// its process ends soon.
///
/// # Errors
/// A connection cannot be aborted. Processes that this user may not inspect are not found.
pub fn abort_killed(file: &Path) -> io::Result<bool> {
    let Ok(file) = file.canonicalize() else { return Ok(false) };
    let found: Vec<Option<u32>> = killed_threads().flat_map(|at| connections_of(&at, &file)).collect();
    let mut connections: BTreeSet<u32> = found.iter().flatten().copied().collect();
    if found.contains(&None) {
        connections.extend(fuse_devices_of_source(&file)?);
    }
    connections.iter().try_for_each(|number| abort(*number))?;
    Ok(!connections.is_empty())
}

fn entries(directory: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path())
}

/// Returns the directories (proc(5)) of threads that were killed and have not ended.
fn killed_threads() -> impl Iterator<Item = PathBuf> {
    let threads = entries(Path::new("/proc")).flat_map(|process| entries(&process.join("task")));
    threads.filter(|thread| {
        let text = |name| fs::read_to_string(thread.join(name)).unwrap_or_default();
        is_killed(&text("status"), &text("stat"))
    })
}

/// Returns `true` for the contents of files `status` and `stat` of a thread that has SIGKILL, or is exiting.
fn is_killed(status: &str, stat: &str) -> bool {
    const SIGKILL: u64 = 1 << (9 - 1);
    const PF_EXITING: u64 = 4;
    /// Position of the flags behind the name, which can contain any character.
    const FLAGS: usize = 6;
    let pending = status.lines().find_map(|line| line.strip_prefix("SigPnd:"));
    let pending = pending.and_then(|set| u64::from_str_radix(set.trim(), 16).ok());
    let flags = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(FLAGS)?.parse::<u64>().ok());
    pending.is_some_and(|set| set & SIGKILL != 0) || flags.is_some_and(|flags| flags & PF_EXITING != 0)
}

/// Returns the numbers of the FUSE connections of a thread, if it has a file open. `None`: a connection whose number
/// the kernel does not tell.
fn connections_of(thread: &Path, file: &Path) -> Vec<Option<u32>> {
    let open = open_files(thread);
    // A path can be that of another file in another mount namespace. Only this file is looked at: others may hang.
    let is_file = |fd: &Path| {
        let numbers = |at: &Path| fs::metadata(at).map(|found| (found.dev(), found.ino())).ok();
        numbers(fd).is_some_and(|found| Some(found) == numbers(file))
    };
    if !open.iter().any(|(fd, path)| path == file && is_file(fd)) {
        return Vec::new();
    }
    let fuse = open.iter().filter(|(_, path)| path == Path::new("/dev/fuse"));
    let info = fuse.filter_map(|(fd, _)| Some(thread.join("fdinfo").join(fd.file_name()?)));
    info.filter_map(|info| Some(connection(&fs::read_to_string(info).ok()?))).collect()
}

/// Returns the descriptors of a thread, and the paths of their files.
fn open_files(thread: &Path) -> Vec<(PathBuf, PathBuf)> {
    let with_path = |fd: PathBuf| fs::read_link(&fd).ok().map(|path| (fd, path));
    entries(&thread.join("fd")).filter_map(with_path).collect()
}

/// Returns the number of the connection in the information of a descriptor of `/dev/fuse`, which recent kernels have.
fn connection(info: &str) -> Option<u32> {
    info.lines().find_map(|line| line.strip_prefix("fuse_connection:"))?.trim().parse().ok()
}

/// Aborts a connection, whose number is that of the device of its mounts: by the file for it, or, if that file system
/// is not mounted, by an unmount with force.
fn abort(number: u32) -> io::Result<()> {
    let by_file = fs::write(format!("/sys/fs/fuse/connections/{number}/abort"), "1");
    let Err(error) = by_file else { return Ok(()) };
    let mounts = fuse_mountpoints_of_device(number)?;
    let flags = UnmountFlags::FORCE | UnmountFlags::NOFOLLOW;
    // It aborts the connection also if the file system stays mounted, because programs use it.
    let is_aborted = |at: &PathBuf| matches!(rustix::mount::unmount(at, flags), Ok(()) | Err(Errno::BUSY));
    // Another file system can be mounted over it.
    let device = format!("0:{number}");
    let is_top = |at: &&PathBuf| top_device_at(at).is_ok_and(|top| top.as_ref() == Some(&device));
    let has_ended = error.kind() == io::ErrorKind::NotFound && mounts.is_empty();
    if has_ended || mounts.iter().filter(is_top).any(is_aborted) {
        return Ok(());
    }
    Err(io::Error::new(error.kind(), format!("cannot abort the FUSE connection {number}: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_and_connections_are_read() {
        let stat = |flags| format!("12 (a) R (b) D 1 12 12 0 -1 {flags} 5 0");
        let status = |set| format!("Name:\ta\nSigPnd:\t{set}\nShdPnd:\t0000000000000100\n");
        assert!(is_killed(&status("0000000000000100"), &stat(4_194_624)));
        assert!(is_killed(&status("0000000000000000"), &stat(4_194_628)), "it is exiting");
        // Also if the first thread of its process has ended.
        assert!(!is_killed(&status("0000000000000002"), &stat(4_194_624)));
        assert!(!is_killed("", ""));
        assert_eq!(connection("pos:\t0\nflags:\t02\nfuse_connection:\t41\n"), Some(41));
        assert_eq!(connection("pos:\t0\n"), None);
    }

    #[test]
    fn files_of_servers_that_run_are_left_alone() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(!abort_killed(file.path()).unwrap());
        assert!(!abort_killed(Path::new("/no/such/file")).unwrap());
    }
}

//! Servers that were killed and cannot end.
//!
//! A thread of a server that drops pages of a file (`FUSE_NOTIFY_INVAL_INODE`) waits for the locks of the pages, and
//! no signal ends the wait. If another program was reading a page, only the server could answer. Killed at that moment,
//! the process keeps its files open: the connection, so that the kernel aborts no request, and the lock of the image.
//! An abort of the connection ends the wait.

use super::mounts::{fuse_devices_of_source, fuse_mountpoints_of_device};
use rustix::io::Errno;
use rustix::mount::UnmountFlags;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Aborts the connections of killed servers that have a file open and cannot end. Returns `true` if there was one:
/// its process ends soon.
///
/// # Errors
/// A connection cannot be aborted. Processes that this user may not inspect are not found.
pub fn abort_killed(file: &Path) -> io::Result<bool> {
    let Ok(file) = file.canonicalize() else { return Ok(false) };
    let found: Vec<Option<u32>> = killed_processes().flat_map(|at| connections_of(&at, &file)).collect();
    let mut connections: BTreeSet<u32> = found.iter().flatten().copied().collect();
    if found.contains(&None) {
        connections.extend(fuse_devices_of_source(&file)?);
    }
    connections.iter().try_for_each(|number| abort(*number))?;
    Ok(!connections.is_empty())
}

/// Returns the directories (proc(5)) of processes whose first thread has ended.
fn killed_processes() -> impl Iterator<Item = PathBuf> {
    let all = fs::read_dir("/proc").into_iter().flatten().flatten().map(|entry| entry.path());
    all.filter(|at| fs::read_to_string(at.join("stat")).is_ok_and(|stat| is_zombie(&stat)))
}

/// Returns `true` for the contents of a file `stat` of a process that has ended.
fn is_zombie(stat: &str) -> bool {
    // The name before can contain any character.
    stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('Z'))
}

/// Returns the numbers of the FUSE connections of the threads of a process that are left, if they have a file open.
/// `None`: a connection whose number the kernel does not tell.
fn connections_of(process: &Path, file: &Path) -> Vec<Option<u32>> {
    let threads = fs::read_dir(process.join("task")).into_iter().flatten().flatten();
    let open = threads.map(|thread| open_files(&thread.path()));
    open.filter(|files| files.iter().any(|(_, path)| path == file))
        .flat_map(|files| files.into_iter().filter(|(_, path)| path == Path::new("/dev/fuse")))
        .filter_map(|(info, _)| Some(connection(&fs::read_to_string(info).ok()?)))
        .collect()
}

/// Returns the open files of a thread: their files of information, and their paths.
fn open_files(thread: &Path) -> Vec<(PathBuf, PathBuf)> {
    let all = fs::read_dir(thread.join("fd")).into_iter().flatten().flatten();
    all.filter_map(|fd| Some((thread.join("fdinfo").join(fd.file_name()), fs::read_link(fd.path()).ok()?)))
        .collect()
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
    if mounts.iter().any(is_aborted) {
        return Ok(());
    }
    Err(io::Error::new(error.kind(), format!("cannot abort the FUSE connection {number}: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_and_connections_are_read() {
        assert!(is_zombie("12 (a) R (b) Z 1 12 12 0"));
        assert!(!is_zombie("12 (a) Z (b) S 1 12 12 0"));
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

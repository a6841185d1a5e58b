//! Holders of a lock, read from `/proc/locks`.

use std::fs::{File, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Permission bits of the group and of others.
const OTHERS: u32 = 0o077;
const OTHERS_WRITE: u32 = 0o022;

/// A process that took a lock.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Holder {
    /// Process ID; 0 if the process is in another PID namespace.
    pid: u32,
    /// Real user ID of the process; `None` if it cannot be read.
    user: Option<u32>,
}

impl std::fmt::Display for Holder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = std::fs::read_to_string(format!("/proc/{}/comm", self.pid)).unwrap_or_default();
        match name.trim() {
            "" => write!(f, "process {}", self.pid),
            name => write!(f, "process {} ({name})", self.pid),
        }
    }
}

impl Holder {
    pub(super) fn is_known(&self) -> bool {
        self.pid != 0
    }

    /// Returns `true` if the holder cannot be a program that changes the file: it belongs to
    /// another user without the right to write to the file. A process that took the lock and ended
    /// has passed its descriptor to another process, which frit never does.
    fn is_reader_of(&self, file: &Metadata) -> bool {
        if file.mode() & OTHERS == 0 || file.mode() & OTHERS_WRITE != 0 || self.pid == 0 {
            return false;
        }
        let own_user = rustix::process::geteuid().as_raw();
        match self.user {
            Some(user) => ![0, own_user, file.uid()].contains(&user),
            None => !Path::new(&format!("/proc/{}", self.pid)).exists() && shows_other_users(),
        }
    }
}

/// Returns `true` if `/proc` shows processes of other users (no `hidepid`).
fn shows_other_users() -> bool {
    std::fs::read_to_string("/proc/1/status").is_ok()
}

/// Returns the holders of locks (flock) on a file.
pub(super) fn holders(file: &Metadata) -> Vec<Holder> {
    let locks = std::fs::read_to_string("/proc/locks").unwrap_or_default();
    let known = |pid| Holder { pid, user: user_of(pid) };
    pids_in(&locks, file.dev(), file.ino()).into_iter().map(known).collect()
}

/// Returns `true` if a file is locked, and only by users who may read it and not write to it.
#[must_use]
pub fn locked_by_readers_only(file: &File) -> bool {
    let Ok(meta) = file.metadata() else { return false };
    let all = holders(&meta);
    !all.is_empty() && all.iter().all(|holder| holder.is_reader_of(&meta))
}

/// Returns the first holder that may write to a file.
pub(super) fn first_writer(file: &Metadata) -> Option<Holder> {
    holders(file).into_iter().find(|holder| !holder.is_reader_of(file))
}

/// Returns the real user of a process. The real user counts because a set-user-ID program that
/// inherits a lock does not lend it its rights.
fn user_of(pid: u32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Returns the processes that hold a lock on a file. A line is `1: FLOCK  ADVISORY  WRITE 1234
/// fd:01:5678 0 EOF`; the process ID is 0 if it belongs to another PID namespace.
fn pids_in(locks: &str, dev: u64, inode: u64) -> Vec<u32> {
    let file = format!("{:02x}:{:02x}:{inode}", rustix::fs::major(dev), rustix::fs::minor(dev));
    let line = locks.lines().map(|l| l.split_whitespace().collect::<Vec<_>>());
    // The lines of processes that wait for a lock contain an arrow.
    let holders = line.filter(|w| !w.contains(&"->") && w.get(1) == Some(&"FLOCK"));
    let of_file = holders.filter(|w| w.get(5) == Some(&file.as_str()));
    of_file.filter_map(|words| words.get(4)?.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_and_foreign_locks_are_no_holders() {
        let locks = "1: FLOCK  ADVISORY  WRITE 0 fd:01:77 0 EOF\n1: -> FLOCK  ADVISORY  WRITE 9 fd:01:78 0 EOF\n\
                     2: POSIX  ADVISORY  WRITE 8 fd:01:78 0 EOF\n3: FLOCK  ADVISORY  READ 7 fd:01:78 0 EOF\n\
                     4: FLOCK  ADVISORY  READ 6 fd:01:78 0 EOF\n";
        let dev = rustix::fs::makedev(0xfd, 1);
        assert_eq!(pids_in(locks, dev, 77), [0]);
        assert_eq!(pids_in(locks, dev, 78), [7, 6]);
        assert!(pids_in(locks, dev, 79).is_empty());
    }

    #[test]
    fn the_user_of_a_process_is_its_real_one() {
        assert_eq!(user_of(std::process::id()), Some(rustix::process::getuid().as_raw()));
        assert_eq!(user_of(u32::MAX), None);
    }
}

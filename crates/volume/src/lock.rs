//! Locks, and who holds them.

use crate::error::{Error, Result, io};
use std::fs::{File, TryLockError};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long a lock is asked for again: others hold it for a moment to look at the volume, or while a child
/// that they fork has not yet closed what it inherits.
const PATIENCE: Duration = Duration::from_millis(500);
const PAUSE: Duration = Duration::from_millis(5);

/// Locks a file until it is closed (flock); `dir` is what errors name. Others that hold it are waited for, half a
/// second.
///
/// # Errors
/// Another program holds it, or the file cannot be locked.
pub fn lock(file: &File, shared: bool, dir: &Path) -> Result<()> {
    let begin = Instant::now();
    loop {
        match if shared { file.try_lock_shared() } else { file.try_lock() } {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) if begin.elapsed() < PATIENCE => std::thread::sleep(PAUSE),
            Err(TryLockError::WouldBlock) => {
                return Err(Error::InUse { dir: dir.into(), by: holder(file) });
            }
            Err(TryLockError::Error(e)) => return Err(io(format!("cannot lock {}", dir.display()))(e)),
        }
    }
}

/// Who holds a lock on the file, for an error message.
fn holder(file: &File) -> String {
    held(file).filter(|by| !by.is_empty()).map(|by| format!(" by {by}")).unwrap_or_default()
}

/// Who holds a lock on the file, as far as `/proc/locks` tells it; empty: somebody.
pub(crate) fn held(file: &File) -> Option<String> {
    let meta = file.metadata().ok()?;
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    let pid = pid_in(&locks, meta.dev(), meta.ino())?;
    if pid == 0 {
        return Some(String::new());
    }
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    Some(match name.trim() {
        "" => format!("process {pid}"),
        name => format!("process {pid} ({name})"),
    })
}

/// A line is `1: FLOCK  ADVISORY  WRITE 1234 fd:01:5678 0 EOF`; the pid is 0 when it belongs to another
/// namespace.
fn pid_in(locks: &str, dev: u64, inode: u64) -> Option<u32> {
    let file = format!("{:02x}:{:02x}:{inode}", rustix::fs::major(dev), rustix::fs::minor(dev));
    let line = locks.lines().map(|l| l.split_whitespace().collect::<Vec<_>>());
    // Those who wait for a lock have an arrow in their line.
    let mut holders = line.filter(|w| !w.contains(&"->") && w.get(1) == Some(&"FLOCK"));
    let words = holders.find(|w| w.get(5) == Some(&file.as_str()))?;
    words.get(4)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_holder_of_a_lock_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        let first = File::create(&path).unwrap();
        lock(&first, false, dir.path()).unwrap();
        let second = File::open(&path).unwrap();
        let e = lock(&second, true, dir.path()).unwrap_err().to_string();
        assert!(e.contains("in use") && e.contains(&format!("by process {}", std::process::id())), "{e}");
        // Somebody who is about to go is waited for.
        std::thread::spawn(move || {
            std::thread::sleep(PAUSE * 4);
            drop(first);
        });
        lock(&second, true, dir.path()).unwrap();
        lock(&File::open(&path).unwrap(), true, dir.path()).unwrap();
    }

    #[test]
    fn waiting_and_foreign_locks_are_no_holders() {
        let locks = "1: FLOCK  ADVISORY  WRITE 0 fd:01:77 0 EOF\n1: -> FLOCK  ADVISORY  WRITE 9 fd:01:78 0 EOF\n\
                     2: POSIX  ADVISORY  WRITE 8 fd:01:78 0 EOF\n3: FLOCK  ADVISORY  READ 7 fd:01:78 0 EOF\n";
        let dev = rustix::fs::makedev(0xfd, 1);
        assert_eq!((pid_in(locks, dev, 77), pid_in(locks, dev, 79)), (Some(0), None));
        assert_eq!(pid_in(locks, dev, 78), Some(7));
    }
}

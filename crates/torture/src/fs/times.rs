//! Detection of the times that an operation changes, independent of the clock's resolution.

use super::compare::command_of;
use super::op::{Act, Path, shorten};
use frit_fs::{AttrChanges, COMMAND_NAME, Caller, FileSystem, Ino, InodeType, SetTime, Time};
use std::collections::BTreeMap;
use std::time::Duration;

/// Time in 1970 that inodes are set to, so that a change is visible on a clock of any resolution.
const OLD: Time = Time(777_000_000_777);

/// Longer than the interval of the coarsest kernel clock, which advances 100 times a second.
const TICK: Duration = Duration::from_millis(11);

/// Times of an inode that changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TimesChanged {
    /// Time of the last change of contents.
    pub mtime: bool,
    /// Time of the last change of the inode.
    pub ctime: bool,
}

/// Times of all inodes before an operation.
#[derive(Clone, Debug)]
pub struct TimesSnapshot(BTreeMap<Path, (Ino, Time, Time)>);

impl TimesSnapshot {
    /// Records the times of all inodes that are reachable from the root. With `age` it first sets
    /// all times to a time long ago. Otherwise it waits for the clock to advance.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn new(fs: &dyn FileSystem, age: bool) -> frit_fs::Result<TimesSnapshot> {
        if !age {
            std::thread::sleep(TICK);
        }
        let mut seen = BTreeMap::new();
        let mut left = vec![(Path::new(""), Ino::ROOT)];
        while let Some((path, ino)) = left.pop() {
            if age {
                let changes =
                    AttrChanges { mtime: Some(SetTime::To(OLD)), ctime: Some(OLD), ..AttrChanges::default() };
                fs.set_attr(&Caller::ROOT, ino, &changes)?;
            }
            let attr = fs.attr(ino)?;
            if attr.kind == InodeType::Directory {
                fs.read_dir(ino, 0, &mut |e| {
                    if e.name != b"." && e.name != b".." {
                        left.push((path.join(&shorten(e.name)), e.ino));
                    }
                    true
                })?;
                if let Some(command) = command_of(fs, ino)? {
                    left.push((path.join(&shorten(COMMAND_NAME)), command.ino));
                }
            }
            seen.insert(path, (ino, attr.mtime, attr.ctime));
        }
        Ok(TimesSnapshot(seen))
    }

    /// Returns the changes since, by the former path. Removed inodes are left out.
    #[must_use]
    pub fn changed(&self, fs: &dyn FileSystem) -> BTreeMap<Path, TimesChanged> {
        let mut changed = BTreeMap::new();
        for (path, (ino, mtime, ctime)) in &self.0 {
            if let Some(now) = fs.attr(*ino).ok().filter(|a| a.links > 0) {
                let c = TimesChanged { mtime: now.mtime != *mtime, ctime: now.ctime != *ctime };
                changed.insert(path.clone(), c);
            }
        }
        changed
    }
}

/// Returns `true` if POSIX leaves open which times the operation changes: truncate(2) to the
/// current size, and fallocate(2).
#[must_use]
pub fn times_unspecified(act: &Act) -> bool {
    matches!(act, Act::Truncate { .. } | Act::Allocate { .. })
}

//! Detection of the times that an operation changes, independent of the clock's resolution.

use super::op::{Act, Path, shorten};
use frit_fs::{Caller, Changes, Files, Ino, Kind, SetTime, Time};
use std::collections::BTreeMap;
use std::time::Duration;

/// Time in 1970 that inodes are set to, so that a change is visible on a clock of any resolution.
const OLD: Time = Time(777_000_000_777);

/// Longer than the interval of the coarsest kernel clock, which advances 100 times a second.
const TICK: Duration = Duration::from_millis(11);

/// Times of an inode that changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Changed {
    /// Time of the last change of contents.
    pub mtime: bool,
    /// Time of the last change of the inode.
    pub ctime: bool,
}

/// Times of all inodes before an operation.
#[derive(Clone, Debug)]
pub struct Watch(BTreeMap<Path, (Ino, Time, Time)>);

impl Watch {
    /// Records the times of all inodes that are reachable from the root. With `age` it first sets
    /// all times to a time long ago. Otherwise it waits for the clock to advance.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn new(fs: &dyn Files, age: bool) -> frit_fs::Result<Watch> {
        if !age {
            std::thread::sleep(TICK);
        }
        let mut seen = BTreeMap::new();
        let mut left = vec![(Path::new(""), Ino::ROOT)];
        while let Some((path, ino)) = left.pop() {
            if age {
                let changes =
                    Changes { mtime: Some(SetTime::To(OLD)), ctime: Some(OLD), ..Changes::default() };
                fs.set_attr(&Caller::ROOT, ino, &changes)?;
            }
            let attr = fs.attr(ino)?;
            if attr.kind == Kind::Directory {
                fs.read_dir(ino, 0, &mut |e| {
                    if e.name != b"." && e.name != b".." {
                        left.push((path.join(&shorten(e.name)), e.ino));
                    }
                    true
                })?;
            }
            seen.insert(path, (ino, attr.mtime, attr.ctime));
        }
        Ok(Watch(seen))
    }

    /// Returns the changes since, by the former path. Removed inodes are left out.
    #[must_use]
    pub fn changed(&self, fs: &dyn Files) -> BTreeMap<Path, Changed> {
        let mut changed = BTreeMap::new();
        for (path, (ino, mtime, ctime)) in &self.0 {
            if let Some(now) = fs.attr(*ino).ok().filter(|a| a.links > 0) {
                let c = Changed { mtime: now.mtime != *mtime, ctime: now.ctime != *ctime };
                changed.insert(path.clone(), c);
            }
        }
        changed
    }
}

/// Returns `true` if POSIX leaves open which times the operation changes: truncate(2) to the
/// current size, and fallocate(2).
#[must_use]
pub fn left_open(act: &Act) -> bool {
    matches!(act, Act::Truncate { .. } | Act::Allocate { .. })
}

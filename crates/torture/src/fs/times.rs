//! Which times an operation changes, whatever the clock says.

use super::op::{Act, Path, shorten};
use frit_fs::{Caller, Changes, Files, Ino, Kind, SetTime, Time};
use std::collections::BTreeMap;
use std::time::Duration;

/// What inodes are made as old as, in 1970, so that a change shows however coarse a clock is.
const OLD: Time = Time(777_000_000_777);

/// More than the coarsest clock of kernels goes on by, 100 times a second.
const TICK: Duration = Duration::from_millis(11);

/// Which times of an inode are not what they were.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Changed {
    /// That of contents.
    pub mtime: bool,
    /// That of the inode.
    pub ctime: bool,
}

/// Times of all inodes before an operation.
#[derive(Clone, Debug)]
pub struct Watch(BTreeMap<Path, (Ino, Time, Time)>);

impl Watch {
    /// Notes the times of all that is reached from the root. With `age` all times are set to one long ago
    /// first; without, its clock is given time to go on.
    ///
    /// # Errors
    /// What the file system says.
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

    /// What changed since, by the path before; what is gone is left out.
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

/// Whether POSIX leaves open which times the operation changes: truncate(2) to the size that is there, and
/// fallocate(2).
#[must_use]
pub fn left_open(act: &Act) -> bool {
    matches!(act, Act::Truncate { .. } | Act::Allocate { .. })
}

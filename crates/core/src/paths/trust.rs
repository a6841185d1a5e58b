//! Who can change the names in a directory.

use super::open_below;
use rustix::fs::{Stat, fstat};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

const STICKY: u32 = 0o1000;
const GROUP_WRITE: u32 = 0o020;
const OTHERS_WRITE: u32 = 0o002;
/// Magic number of FUSE in `statfs` (linux/magic.h).
const FUSE: u64 = 0x6573_5546;

/// The user for whom directories are judged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Judge {
    /// Effective user of the process.
    pub(super) user: u32,
    /// Owner of `/`: 0, except in a user namespace that does not show root. Whoever owns `/` can
    /// redirect every path.
    pub(super) admin: u32,
}

/// Protection of the names in a directory.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Trust {
    /// Others can rename and remove what is in it, or the directory itself.
    None,
    /// Others can add names, and can neither rename nor remove those of this user: the sticky bit.
    Sticky,
    /// Others cannot change its names.
    Full,
}

/// What decides about a directory.
#[derive(Clone, Copy, Debug)]
pub(super) struct DirFacts {
    pub(super) owner: u32,
    pub(super) group: u32,
    pub(super) mode: u32,
    pub(super) device: u64,
    /// `true` if an access control list names further users.
    pub(super) has_acl: bool,
    /// `true` in a file system that users can mount, and that says of its files what it likes.
    pub(super) is_fuse: bool,
}

impl DirFacts {
    /// Reads the facts of an open directory.
    pub(super) fn of(dir: impl AsFd) -> io::Result<DirFacts> {
        let dir = dir.as_fd();
        let Stat { st_uid: owner, st_gid: group, st_mode: mode, st_dev: device, .. } = fstat(dir)?;
        // The group's bits are the limit of such a list, so it matters only if they permit writing.
        let has_acl = mode & GROUP_WRITE != 0 && {
            let own = format!("/proc/self/fd/{}", dir.as_raw_fd());
            let list = rustix::fs::getxattr(own, "system.posix_acl_access", &mut [0; 1024]);
            matches!(list, Ok(_) | Err(rustix::io::Errno::RANGE))
        };
        let is_fuse = rustix::fs::fstatfs(dir).is_ok_and(|fs| fs.f_type as u64 == FUSE);
        Ok(DirFacts { owner, group, mode, device, has_acl, is_fuse })
    }
}

impl Judge {
    pub(super) fn here() -> io::Result<Judge> {
        let user = rustix::process::geteuid().as_raw();
        Ok(Judge { user, admin: rustix::fs::stat("/")?.st_uid })
    }

    /// Returns `true` if files of a user are as good as those of this user.
    pub(super) fn trusts(self, owner: u32) -> bool {
        [0, self.user, self.admin].contains(&owner)
    }

    /// Judges a directory below another one; `None` above `/`.
    pub(super) fn judge(self, above: Option<(Trust, u64)>, dir: &DirFacts) -> Trust {
        let (held, device) = above.unwrap_or((Trust::Full, dir.device));
        // Users mount such a file system on a directory of theirs.
        let is_mounted_by_others = held != Trust::Full && device != dir.device && dir.is_fuse;
        if held == Trust::None || !self.trusts(dir.owner) || is_mounted_by_others {
            return Trust::None;
        }
        let is_shared = dir.mode & OTHERS_WRITE != 0 || self.is_shared_by_group(dir);
        match (is_shared, dir.mode & STICKY != 0) {
            (false, _) => Trust::Full,
            (true, true) => Trust::Sticky,
            (true, false) => Trust::None,
        }
    }

    /// The group of a user's own directory is usually of that user alone, and the group 0 is of the
    /// administrators.
    fn is_shared_by_group(self, dir: &DirFacts) -> bool {
        let own = self.user != 0 && dir.owner == self.user;
        dir.mode & GROUP_WRITE != 0 && (dir.has_acl || !(own || dir.group == 0))
    }

    /// Judges an open directory with all directories above it. Their names do not matter.
    pub(super) fn judge_open(self, dir: impl AsFd) -> Trust {
        // A directory that cannot be examined is not trusted.
        self.judge_upwards(dir).unwrap_or(Trust::None)
    }

    fn judge_upwards(self, dir: impl AsFd) -> io::Result<Trust> {
        let mut facts = vec![DirFacts::of(&dir)?];
        let mut at: OwnedFd = open_below(&dir, ".")?;
        loop {
            let above = open_below(&at, "..")?;
            let (one, other) = (fstat(&at)?, fstat(&above)?);
            if (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino) {
                break;
            }
            facts.push(DirFacts::of(&above)?);
            at = above;
        }
        let judged = facts.iter().rev().fold(None, |above, dir| Some((self.judge(above, dir), dir.device)));
        Ok(judged.map_or(Trust::None, |(trust, _)| trust))
    }
}

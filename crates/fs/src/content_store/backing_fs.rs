//! Detection of the file system that holds a pool: whether its files are memory, and with which
//! pages.

use rustix::fs::{FsWord, StatxAttributes, StatxFlags, fstat, fstatfs, statx};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

/// The magic number of tmpfs: linux/magic.h.
const TMPFS_MAGIC: FsWord = 0x0102_1994;

/// Kind of file system that holds a pool.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BackingFs {
    /// A tmpfs.
    Tmpfs {
        /// `true` if it is mounted with `huge=always`, `huge=within_size` or `huge=advise`.
        huge: bool,
    },
    /// A file system whose files are mapped as memory.
    Dax,
    /// Any other file system: contents are in its page cache.
    Other,
}

impl BackingFs {
    /// Detects the kind from the directory of a pool. New files of a DAX file system inherit the
    /// attribute of their directory.
    pub(super) fn of(directory: &OwnedFd, path: &Path) -> Self {
        let magic = fstatfs(directory).map_or(0, |found| found.f_type);
        if magic == TMPFS_MAGIC {
            return Self::Tmpfs { huge: options(directory).is_some_and(|words| huge(&words)) };
        }
        // The image is tested, because a new pool has no content file yet.
        if is_dax(&path.with_file_name("image")) { Self::Dax } else { Self::Other }
    }

    /// Returns a performance hint for the user, or `None` if the file system is suitable.
    #[must_use]
    pub fn hint(self) -> Option<&'static str> {
        match self {
            Self::Tmpfs { huge: true } | Self::Dax => None,
            Self::Tmpfs { huge: false } => {
                Some("this tmpfs does not use huge pages; mount -o remount,huge=always enables them")
            }
            Self::Other => Some(
                "this is neither tmpfs nor a DAX file system: contents go through its page cache, and are as durable \
                 as its files are",
            ),
        }
    }
}

/// Returns `true` if a file is on DAX, so that a mapping of it is the memory itself.
fn is_dax(path: &Path) -> bool {
    let Ok(file) = std::fs::File::open(path) else { return false };
    statx(file.as_fd(), "", rustix::fs::AtFlags::EMPTY_PATH, StatxFlags::empty())
        .is_ok_and(|found| found.stx_attributes.contains(StatxAttributes::DAX))
}

/// Returns the mount options of a directory: the last field of its line in mountinfo, see proc(5).
fn options(directory: &OwnedFd) -> Option<String> {
    let device = fstat(directory).ok()?.st_dev;
    let number = format!("{}:{}", rustix::fs::major(device), rustix::fs::minor(device));
    // Paths can have any bytes.
    let mounts = std::fs::read("/proc/self/mountinfo").ok()?;
    let mounts = String::from_utf8_lossy(&mounts);
    let line = mounts.lines().find(|line| line.split(' ').nth(2) == Some(&number))?;
    line.rsplit(' ').next().map(Into::into)
}

fn huge(options: &str) -> bool {
    options.split(',').filter_map(|word| word.strip_prefix("huge=")).any(|how| how != "never")
}

#[cfg(test)]
#[cfg(not(feature = "shuttle"))]
mod tests {
    use super::*;

    #[test]
    fn huge_pages_are_seen_in_the_options() {
        assert!(huge("rw,size=80%,huge=always") && huge("rw,huge=within_size,inode64"));
        assert!(!huge("rw,inode64") && !huge("rw,huge=never"));
    }

    #[test]
    fn each_ground_without_memory_has_a_hint() {
        assert_eq!(BackingFs::Tmpfs { huge: true }.hint(), None);
        assert!(BackingFs::Tmpfs { huge: false }.hint().is_some_and(|hint| hint.contains("huge=always")));
        assert!(BackingFs::Other.hint().is_some());
    }
}

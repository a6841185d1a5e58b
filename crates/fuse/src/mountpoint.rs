//! Mounting on a directory that is held open.
//!
//! Whoever may rename a directory above the mountpoint could exchange it between a check of its path and
//! mount(2), and choose where the file system appears. So the superuser mounts on the open directory itself.
//! Others mount by fusermount3, which checks that the directory is theirs.

use fuser::{Config, MountOption, SessionACL};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, Mode, OFlags, fstat, openat};
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use rustix::process::{getegid, geteuid};
use std::ffi::CString;
use std::fmt::Write;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Device of FUSE.
const DEVICE: &str = "/dev/fuse";

/// A directory to mount on.
#[derive(Clone, Copy, Debug)]
pub struct Mountpoint<'a> {
    /// Its path, without links, for unmounting and messages.
    pub path: &'a Path,
    /// The directory.
    pub directory: BorrowedFd<'a>,
}

/// A mount, which ends when this is dropped unless it has ended already.
#[derive(Debug)]
pub(crate) struct HeldMount {
    path: PathBuf,
    device: Arc<OwnedFd>,
}

impl HeldMount {
    pub(crate) fn new(mountpoint: Mountpoint<'_>, device: &Arc<OwnedFd>) -> HeldMount {
        HeldMount { path: mountpoint.path.to_owned(), device: Arc::clone(device) }
    }
}

impl Drop for HeldMount {
    fn drop(&mut self) {
        let mut polled = [PollFd::new(&self.device, PollFlags::empty())];
        let answered = poll(&mut polled, Some(&Timespec::default()));
        if answered.is_ok() && !polled[0].revents().contains(PollFlags::ERR) {
            // An error cannot be returned from here. A mount in use stays until its last user ends.
            let _ = unmount(&self.path, UnmountFlags::NOFOLLOW);
        }
    }
}

/// Mounts on a directory, and returns the connection to the kernel. `None` if this process may not mount.
///
/// # Errors
/// There is no FUSE, or the error of the kernel.
pub(crate) fn mount_on(directory: BorrowedFd<'_>, config: &Config) -> io::Result<Option<OwnedFd>> {
    if !geteuid().is_root() {
        return Ok(None);
    }
    let device = openat(CWD, DEVICE, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    let mode = fstat(directory)?.st_mode;
    let (source, words) = words(config, device.as_fd(), mode);
    let target = format!("/proc/self/fd/{}", directory.as_raw_fd());
    match mount(source, target, "fuse", flags(&config.mount_options), words.as_c_str()) {
        Ok(()) => Ok(Some(device)),
        // The superuser of a container.
        Err(Errno::PERM) => Ok(None),
        Err(e) => Err(e.into()),
    }
}

/// Returns the source of a mount, and the options of FUSE.
fn words(config: &Config, device: BorrowedFd<'_>, mode: u32) -> (String, CString) {
    let (uid, gid) = (geteuid().as_raw(), getegid().as_raw());
    let mut words = format!("fd={},rootmode={mode:o},user_id={uid},group_id={gid}", device.as_raw_fd());
    let mut source = DEVICE.to_owned();
    for option in &config.mount_options {
        match option {
            MountOption::FSName(name) => source.clone_from(name),
            MountOption::DefaultPermissions => words += ",default_permissions",
            MountOption::Subtype(kind) => _ = write!(words, ",subtype={kind}"),
            MountOption::CUSTOM(word) => _ = write!(words, ",{word}"),
            _ => {}
        }
    }
    if config.acl != SessionACL::Owner {
        words += ",allow_other";
    }
    // A zero byte would end the words; no option has one.
    (source, CString::new(words.replace('\0', "")).unwrap_or_default())
}

fn flags(options: &[MountOption]) -> MountFlags {
    let has = |option| options.contains(&option);
    [
        (!has(MountOption::Dev), MountFlags::NODEV),
        (!has(MountOption::Suid), MountFlags::NOSUID),
        (has(MountOption::RO), MountFlags::RDONLY),
        (has(MountOption::NoExec), MountFlags::NOEXEC),
        (has(MountOption::NoAtime), MountFlags::NOATIME),
        (has(MountOption::Sync), MountFlags::SYNCHRONOUS),
        (has(MountOption::DirSync), MountFlags::DIRSYNC),
    ]
    .into_iter()
    .filter_map(|(is_set, flag)| is_set.then_some(flag))
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_become_words_and_flags() {
        let mut config = Config::default();
        config.mount_options =
            vec![MountOption::FSName("an, image".into()), MountOption::DefaultPermissions, MountOption::RO];
        config.acl = SessionACL::All;
        let device = std::fs::File::open("/dev/null").unwrap();
        let (source, said) = words(&config, device.as_fd(), 0o40_755);
        let ids = format!("user_id={},group_id={}", geteuid().as_raw(), getegid().as_raw());
        let expected =
            format!("fd={},rootmode=40755,{ids},default_permissions,allow_other", device.as_raw_fd());
        assert_eq!((&*source, said.to_str().unwrap()), ("an, image", &*expected));
        assert_eq!(flags(&config.mount_options), MountFlags::NODEV | MountFlags::NOSUID | MountFlags::RDONLY);
        assert_eq!(flags(&[MountOption::Dev, MountOption::Suid, MountOption::RW]), MountFlags::empty());
    }

    #[test]
    fn a_directory_that_is_exchanged_after_its_check_is_still_mounted_on() {
        if !geteuid().is_root() || !Path::new(DEVICE).exists() {
            eprintln!("skipped: mounting needs root and {DEVICE}");
            return;
        }
        let place = tempfile::tempdir().unwrap();
        let at = |name| place.path().canonicalize().unwrap().join(name);
        for name in ["mnt", "victim"] {
            std::fs::create_dir(at(name)).unwrap();
        }
        let held = std::fs::File::open(at("mnt")).unwrap();
        std::fs::rename(at("mnt"), at("moved")).unwrap();
        std::os::unix::fs::symlink("victim", at("mnt")).unwrap();
        let device = mount_on(held.as_fd(), &Config::default()).unwrap();
        let list = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
        let is_at = |name| list.lines().any(|line| line.contains(&format!(" {} ", at(name).display())));
        let found = (device.is_some(), is_at("moved"), is_at("victim"), is_at("mnt"));
        if let Some(device) = device {
            let device = Arc::new(device);
            let path = at("moved");
            drop(HeldMount::new(Mountpoint { path: &path, directory: held.as_fd() }, &device));
            let list = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
            assert!(!list.contains(path.to_str().unwrap()), "the drop unmounts");
        } else {
            eprintln!("skipped: this process may not mount");
            return;
        }
        assert_eq!(found, (true, true, false, false));
    }
}

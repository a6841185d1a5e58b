//! What the senders of instructions see of the file system: the part that is mounted in their mount namespace,
//! without what other mounts cover.
//!
//! The server finds names in the file system itself, where no mount covers anything. So an instruction could
//! read below a directory over which a container has mounted something else, and write below a bind mount that
//! is read-only. The kernel's list of mounts (proc(5)) tells the paths of what is covered. They are resolved to
//! inodes, through which no instruction leads.
//!
//! A path says nothing while a directory in it gets another name: the file system has renamed it, and the kernel
//! has not yet. So paths are resolved only while no directory is renamed ([`DirectoryRenames`]).

use super::directory_renames::DirectoryRenames;
use crate::fuse::mounts::{MountedPart, parts_in};
use frit_fs::{Caller, Error, FileSystem, Ino, Paths, Result};
use frit_fuse::Kernel;
use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Length of the list of mounts of another namespace that is read, in bytes: some thousand mounts. A user makes
/// namespaces and mounts of his own, and the list is read for each write.
const LIST_BYTES_MAX: u64 = 512 << 10;

/// Time that an instruction waits for directories to have their names. A later attempt can succeed.
const WAIT: Duration = Duration::from_millis(50);

/// Interval between attempts.
const RETRY: Duration = Duration::from_millis(1);

/// A part of the file system that is mounted somewhere.
#[derive(Debug)]
struct Part {
    root: Ino,
    /// Inodes on which something else is mounted.
    covered: Vec<Ino>,
}

/// All parts that are mounted in a namespace.
#[derive(Debug)]
struct View(Vec<Part>);

/// The namespace of this process, with the list of its mounts, which tells when it changes.
#[derive(Debug)]
struct Own {
    list: File,
    view: Arc<View>,
}

/// Views of a file system in the mount namespaces of its users.
#[derive(Debug)]
pub(super) struct Views {
    /// Device in lists of mounts, once it is known. `None`: no list has it.
    device: OnceLock<Option<String>>,
    own: Mutex<Option<Own>>,
    pub(super) renames: DirectoryRenames,
}

impl Views {
    /// Creates the views of a file system that is about to be mounted.
    ///
    /// # Errors
    /// The thread for renamed directories cannot be started.
    pub(super) fn start(kernel: Arc<OnceLock<Kernel>>) -> io::Result<Views> {
        let renames = DirectoryRenames::start(kernel)?;
        Ok(Views { device: OnceLock::new(), own: Mutex::default(), renames })
    }

    /// Sets the device in lists of mounts. Instructions that came earlier wait for it.
    pub(super) fn set_device(&self, device: Option<&str>) {
        let _ = self.device.set(device.map(str::to_owned));
    }

    /// Returns the inodes that other mounts cover, for a thread that gives instructions in a directory.
    ///
    /// # Errors
    /// `NotPermitted`: the thread sees the directory on no mount of its namespace. The list of mounts cannot be
    /// read, or is too long; directories are renamed (`EAGAIN`).
    pub(super) fn covered<F: FileSystem>(&self, files: &F, thread: u32, directory: Ino) -> Result<Vec<Ino>> {
        let view = match is_in_own_namespace(thread) {
            true => self.own(files)?,
            false => {
                let path = format!("/proc/{thread}/mountinfo");
                Arc::new(self.resolved(files, || read(path.as_ref(), LIST_BYTES_MAX))?.1)
            }
        };
        view.covered(files, directory)
    }

    /// Returns the view of this process, which changes with its list of mounts.
    fn own<F: FileSystem>(&self, files: &F) -> Result<Arc<View>> {
        let mut own = self.own.lock();
        if let Some(own) = own.as_ref().filter(|own| !has_changed(&own.list)) {
            return Ok(Arc::clone(&own.view));
        }
        *own = None;
        let (list, view) = self.resolved(files, || read("/proc/self/mountinfo".as_ref(), u64::MAX))?;
        Ok(Arc::clone(&own.insert(Own { list, view: Arc::new(view) }).view))
    }

    /// Reads a list of mounts, and resolves its paths while no directory is renamed.
    fn resolved<F: FileSystem>(
        &self,
        files: &F,
        read: impl Fn() -> Result<(File, String)>,
    ) -> Result<(File, View)> {
        let Some(device) = self.device.wait() else { return Err(Error::NotPermitted) };
        let end = Instant::now() + WAIT;
        let is_trivial = |part: &MountedPart| part.root == Path::new("/") && part.covered.is_empty();
        let mut paused = None;
        loop {
            let (list, text) = read()?;
            let parts = parts_in(&text, device);
            let parts = parts.filter(|parts| paused.is_some() || parts.iter().all(is_trivial));
            let view = parts.and_then(|parts| View::of(files, &parts));
            if let Some(view) = view.filter(|_| !has_changed(&list)) {
                return Ok((list, view));
            }
            match paused {
                None => paused = self.renames.pause(end),
                Some(_) => std::thread::sleep(RETRY),
            }
            if paused.is_none() || Instant::now() >= end {
                return Err(os(Path::new("/proc/self/mountinfo"), rustix::io::Errno::AGAIN.into()));
            }
        }
    }
}

impl View {
    /// Finds the inodes of paths. Returns `None` if one has none.
    fn of<F: FileSystem>(files: &F, parts: &[MountedPart]) -> Option<View> {
        let inode = |path: &PathBuf| {
            let path = path.as_os_str().as_bytes();
            files.resolve_below(&Caller::ROOT, Ino::ROOT, path, &[]).map(|attr| attr.ino).ok()
        };
        let part = |part: &MountedPart| {
            let covered = part.covered.iter().map(inode).collect::<Option<_>>()?;
            Some(Part { root: inode(&part.root)?, covered })
        };
        parts.iter().map(part).collect::<Option<_>>().map(View)
    }

    /// Returns what is covered in those parts in which a directory is seen: the mount through which it was opened
    /// is one of them.
    fn covered<F: FileSystem>(&self, files: &F, directory: Ino) -> Result<Vec<Ino>> {
        let View(parts) = self;
        let is_whole = parts.iter().any(|part| part.root == Ino::ROOT);
        if is_whole && parts.iter().all(|part| part.covered.is_empty()) {
            return Ok(Vec::new());
        }
        let mut path = vec![directory];
        while path.last().is_some_and(|ino| *ino != Ino::ROOT) {
            path.push(files.lookup(&Caller::ROOT, path[path.len() - 1], b"..")?.ino);
        }
        let shows = |part: &&Part| {
            let below = path.iter().position(|ino| *ino == part.root);
            below.is_some_and(|root| !path[..=root].iter().any(|ino| part.covered.contains(ino)))
        };
        let mut showing = parts.iter().filter(shows).peekable();
        if showing.peek().is_none() {
            return Err(Error::NotPermitted);
        }
        Ok(showing.flat_map(|part| &part.covered).copied().collect())
    }
}

/// Returns `true` if a thread is known to be in the mount namespace of this process.
fn is_in_own_namespace(thread: u32) -> bool {
    static OWN: OnceLock<Option<PathBuf>> = OnceLock::new();
    let of = |path: String| std::fs::read_link(path).ok();
    let own = OWN.get_or_init(|| of("/proc/self/ns/mnt".into()));
    own.is_some() && of(format!("/proc/{thread}/ns/mnt")) == *own
}

/// Reads a list of mounts.
fn read(path: &Path, bytes_max: u64) -> Result<(File, String)> {
    let mut list = File::open(path).map_err(|e| os(path, e))?;
    let mut text = String::new();
    let len = (&mut list).take(bytes_max).read_to_string(&mut text).map_err(|e| os(path, e))?;
    if len as u64 >= bytes_max {
        return Err(Error::NotPermitted);
    }
    Ok((list, text))
}

fn os(path: &Path, error: io::Error) -> Error {
    Error::Os { what: "cannot read the list of mounts", path: path.to_owned(), error }
}

/// Returns `true` if a list of mounts has changed since it was opened, or since the last call (proc(5)).
fn has_changed(list: &File) -> bool {
    let mut polled = [PollFd::new(list, PollFlags::PRI)];
    poll(&mut polled, Some(&Timespec::default())).is_ok_and(|changed| changed > 0)
}

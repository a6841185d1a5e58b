//! What the senders of instructions see of the file system: the part that is mounted in their mount namespace,
//! without what other mounts cover.
//!
//! The server finds names in the file system itself, where no mount covers anything. So an instruction could
//! read below a directory over which a container has mounted something else, and write below a bind mount that
//! is read-only. The kernel's list of mounts (proc(5)) tells the paths of what is covered. They are resolved to
//! inodes, through which no instruction leads.
//!
//! A path says nothing while a directory in it gets another name: the file system has renamed it, and the kernel
//! has not yet ([`DirectoryRenames`]). Then nothing leads through the renamed directories.

use super::directory_renames::{DirectoryRenames, Name};
use crate::fuse::mounts::{MountedPart, ascii, parts_in};
use frit_fs::{Caller, Error, FileSystem, Ino, Result};
use frit_fuse::Kernel;
use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// Length of the list of mounts of another namespace that is read, in bytes: tens of thousands of mounts.
const LIST_BYTES_MAX: u64 = 8 << 20;

/// Number of open files of a process among which its command file is looked for.
const FILES_MAX: usize = 65_536;

/// Attempts to read a list of mounts that does not change meanwhile.
const ATTEMPTS: u32 = 10;

/// A part of the file system that is mounted somewhere.
#[derive(Debug)]
struct Part {
    mount: u64,
    root: Ino,
    /// Inodes on which something else is mounted.
    covered: Vec<Ino>,
}

/// All parts that are mounted in a namespace.
#[derive(Debug)]
pub(super) struct View {
    parts: Vec<Part>,
    /// Mounts of the namespace, of all file systems, in ascending order.
    mounts: Vec<u64>,
    /// Directories that were renamed when the paths were resolved: what is covered may be below.
    moved: Vec<Ino>,
}

/// The namespace of this process, with the list of its mounts, which tells when it changes.
#[derive(Debug)]
struct Own {
    list: File,
    view: Arc<View>,
}

impl Own {
    /// Returns the view, unless the list has changed since, or it is in doubt.
    fn current(own: &mut Option<Own>) -> Option<Arc<View>> {
        // A change is told once.
        let is_current = |own: &mut Own| !has_changed(&own.list) && !own.view.is_in_doubt();
        *own = own.take_if(is_current);
        own.as_ref().map(|own| Arc::clone(&own.view))
    }
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

    /// Returns the inodes that other mounts cover, for a thread that has an open command file: on the mount through
    /// which it was opened. If the thread has several descriptors of the command file, each of them counts.
    ///
    /// # Errors
    /// As [`Views::of`] and [`View::covered_below`].
    pub(super) fn covered_on_mount<F: FileSystem>(
        &self,
        files: &F,
        thread: u32,
        command: Ino,
        directory: Ino,
    ) -> Result<Vec<Ino>> {
        let view = self.of(files, thread)?;
        let somewhere = view.covered_below(files, directory)?;
        match mounts_of_open(thread, command)? {
            OpenOn::Mounts(mounts) => view.covered_on(&mounts),
            // Before Linux 5.14.
            OpenOn::Unknown => Ok(somewhere),
        }
    }

    /// Returns the view of a thread in the namespace of this process, unless that has to be determined first.
    pub(super) fn known(&self, thread: u32) -> Option<Arc<View>> {
        if is_in_own_namespace(thread) { Own::current(&mut *self.own.try_lock()?) } else { None }
    }

    /// Returns the view of a thread.
    ///
    /// # Errors
    /// `NotPermitted`: no list of mounts has the file system, or that of the thread is too long. It cannot be read.
    pub(super) fn of<F: FileSystem>(&self, files: &F, thread: u32) -> Result<Arc<View>> {
        if is_in_own_namespace(thread) {
            return self.own(files);
        }
        let path = format!("/proc/{thread}/mountinfo");
        Ok(Arc::new(self.read(files, path.as_ref(), LIST_BYTES_MAX)?.1))
    }

    /// Returns the view of this process, which changes with its list of mounts.
    fn own<F: FileSystem>(&self, files: &F) -> Result<Arc<View>> {
        let mut own = self.own.lock();
        if let Some(view) = Own::current(&mut own) {
            return Ok(view);
        }
        let (list, view) = self.read(files, "/proc/self/mountinfo".as_ref(), u64::MAX)?;
        Ok(Arc::clone(&own.insert(Own { list, view: Arc::new(view) }).view))
    }

    /// Reads a list of mounts, and finds the inodes of its paths.
    fn read<F: FileSystem>(&self, files: &F, path: &Path, bytes_max: u64) -> Result<(File, View)> {
        let Some(device) = self.device.wait() else { return Err(Error::NotPermitted) };
        for _ in 0..ATTEMPTS {
            let moment = self.renames.now();
            let (list, text) = read_list(path, bytes_max)?;
            let mut resolved = Resolved { files, names: HashMap::new() };
            let view = parts_in(&text, device).and_then(|(parts, mounts)| {
                let parts = parts.iter().filter_map(|part| resolved.part(part)).collect();
                let moved = self.renames.moved_since(&moment, |name| resolved.names.contains_key(name))?;
                Some(View { parts, mounts, moved })
            });
            if let Some(view) = view.filter(|_| !has_changed(&list)) {
                return Ok((list, view));
            }
        }
        Err(os(path, rustix::io::Errno::AGAIN.into()))
    }
}

/// Names that were looked up, with their inodes.
struct Resolved<'f, F> {
    files: &'f F,
    names: HashMap<Name, Option<Ino>>,
}

impl<F: FileSystem> Resolved<'_, F> {
    /// Returns the inodes of a part. One without a root shows nothing.
    fn part(&mut self, part: &MountedPart) -> Option<Part> {
        let root = self.inode(&part.root);
        // A path that does not exist covers nothing: it was removed, which ends what is mounted there.
        let covered = part.covered.iter().filter_map(|path| self.inode(path)).collect();
        Some(Part { mount: part.id, root: root?, covered })
    }

    /// Finds the inode of a path, which has no links.
    fn inode(&mut self, path: &Path) -> Option<Ino> {
        let names = path.as_os_str().as_bytes().split(|byte| *byte == b'/').filter(|name| !name.is_empty());
        names.into_iter().try_fold(Ino::ROOT, |dir, name| {
            let found = self.names.entry((dir, name.into()));
            *found.or_insert_with(|| self.files.lookup(&Caller::ROOT, dir, name).ok().map(|attr| attr.ino))
        })
    }
}

impl View {
    /// Returns `true` if it has to be determined again.
    fn is_in_doubt(&self) -> bool {
        !self.moved.is_empty()
    }

    /// Returns the inodes that other mounts cover, for instructions in a directory. Their sender may see the directory
    /// in several mounts, of which each may cover something.
    ///
    /// # Errors
    /// `NotPermitted`: the directory is seen on no mount.
    pub(super) fn covered_below<F: FileSystem>(&self, files: &F, directory: Ino) -> Result<Vec<Ino>> {
        let is_whole = self.parts.iter().any(|part| part.root == Ino::ROOT);
        if is_whole && self.moved.is_empty() && self.parts.iter().all(|part| part.covered.is_empty()) {
            return Ok(Vec::new());
        }
        let mut path = vec![directory];
        while path.last().is_some_and(|ino| *ino != Ino::ROOT) {
            path.push(files.lookup(&Caller::ROOT, path[path.len() - 1], b"..")?.ino);
        }
        let depth = |part: &Part| path.iter().position(|ino| *ino == part.root);
        let shows = |part: &Part| {
            depth(part).is_some_and(|root| !path[..=root].iter().any(|ino| part.covered.contains(ino)))
        };
        if !self.parts.iter().any(shows) {
            return Err(Error::NotPermitted);
        }
        // Also of those that are covered as a whole: the directory may have been found before.
        Ok(self.covered_in(|part| depth(part).is_some()))
    }

    /// Returns what is covered on mounts through which a command file was opened.
    fn covered_on(&self, mounts: &[u64]) -> Result<Vec<Ino>> {
        let is_here = |mount: &u64| self.mounts.binary_search(mount).is_ok();
        let is_of_part = |mount: &u64| self.parts.iter().any(|part| part.mount == *mount);
        if !mounts.iter().all(is_here) || !mounts.iter().any(is_of_part) {
            return Err(Error::NotPermitted);
        }
        Ok(self.covered_in(|part| mounts.contains(&part.mount)))
    }

    fn covered_in(&self, counts: impl Fn(&Part) -> bool) -> Vec<Ino> {
        let parts = self.parts.iter().filter(|part| counts(part));
        parts.flat_map(|part| &part.covered).chain(&self.moved).copied().collect()
    }
}

/// Mounts of the open files of a thread that have the inode number of a command file.
enum OpenOn {
    Mounts(Vec<u64>),
    /// The kernel does not tell.
    Unknown,
}

fn mounts_of_open(thread: u32, command: Ino) -> Result<OpenOn> {
    let place = PathBuf::from(format!("/proc/{thread}/fdinfo"));
    let (mut mounts, mut has_numbers) = (Vec::new(), false);
    let files = std::fs::read_dir(&place).map_err(|_| Error::NotPermitted)?;
    for (at, file) in files.enumerate() {
        let (true, Ok(file)) = (at < FILES_MAX, file) else { return Err(Error::NotPermitted) };
        // Another thread may have closed it.
        let Ok(text) = std::fs::read_to_string(file.path()) else { continue };
        let field = |name| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok());
        let Some(inode) = field("ino:") else { continue };
        has_numbers = true;
        if inode == command.0 && !is_without_mount(thread, &file.file_name()) {
            mounts.push(field("mnt_id:").ok_or(Error::NotPermitted)?);
        }
    }
    Ok(if has_numbers { OpenOn::Mounts(mounts) } else { OpenOn::Unknown })
}

/// Returns `true` for pipes, sockets and others whose inode numbers are of their own kind.
fn is_without_mount(thread: u32, number: &OsStr) -> bool {
    let link = std::fs::read_link(Path::new(&format!("/proc/{thread}/fd")).join(number));
    let kinds = ["pipe:[", "socket:[", "anon_inode:"];
    link.is_ok_and(|link| kinds.iter().any(|kind| link.as_os_str().as_bytes().starts_with(kind.as_bytes())))
}

/// Returns `true` if a thread is known to be in the mount namespace of this process.
fn is_in_own_namespace(thread: u32) -> bool {
    static OWN: OnceLock<Option<PathBuf>> = OnceLock::new();
    let of = |path: String| std::fs::read_link(path).ok();
    let own = OWN.get_or_init(|| of("/proc/self/ns/mnt".into()));
    own.is_some() && of(format!("/proc/{thread}/ns/mnt")) == *own
}

/// Reads a list of mounts.
fn read_list(path: &Path, bytes_max: u64) -> Result<(File, String)> {
    let mut list = File::open(path).map_err(|e| os(path, e))?;
    let mut text = Vec::new();
    let len = (&mut list).take(bytes_max).read_to_end(&mut text).map_err(|e| os(path, e))?;
    if len as u64 >= bytes_max {
        return Err(Error::NotPermitted);
    }
    Ok((list, ascii(&text)))
}

fn os(path: &Path, error: io::Error) -> Error {
    Error::Os { what: "cannot read the list of mounts", path: path.to_owned(), error }
}

/// Returns `true` if a list of mounts has changed since it was opened, or since the last call (proc(5)).
fn has_changed(list: &File) -> bool {
    let mut polled = [PollFd::new(list, PollFlags::PRI)];
    poll(&mut polled, Some(&Timespec::default())).is_ok_and(|changed| changed > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    #[test]
    fn a_view_in_doubt_is_determined_again() {
        let own = |moved: &[Ino]| {
            // It never changes, as the list of mounts can while other tests run.
            let list = tempfile::tempfile().unwrap();
            let view = View { parts: Vec::new(), mounts: Vec::new(), moved: moved.into() };
            Some(Own { list, view: Arc::new(view) })
        };
        let mut settled = own(&[]);
        assert!(Own::current(&mut settled).is_some() && Own::current(&mut settled).is_some());
        let mut in_doubt = own(&[Ino(7)]);
        assert!(Own::current(&mut in_doubt).is_none() && in_doubt.is_none());
    }

    #[test]
    fn what_has_no_mount_may_have_the_number_of_a_command_file() {
        let thread = std::process::id();
        let is_without = |fd: i32| is_without_mount(thread, OsStr::new(&fd.to_string()));
        let (pipe, _writer) = io::pipe().unwrap();
        let file = tempfile::tempfile().unwrap();
        assert!(is_without(pipe.as_raw_fd()) && !is_without(file.as_raw_fd()));
    }
}

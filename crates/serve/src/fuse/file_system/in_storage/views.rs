//! What the senders of instructions see of the file system: the part that is mounted in their mount namespace,
//! without what other mounts cover.
//!
//! The server finds names in the file system itself, where no mount covers anything. So an instruction could
//! read below a directory over which a container has mounted something else, and write below a bind mount that
//! is read-only. The kernel's list of mounts (proc(5)) tells the paths of what is covered. They are resolved to
//! inodes, through which no instruction leads.
//!
//! A path says nothing while one of its names is renamed: the file system has done it, and the kernel has not yet
//! ([`Renames`]). Then the list is read again.

use super::renames::{NameNumber, Renames};
use crate::fuse::mounts::{MountedPart, ascii, parts_in};
use frit_fs::{Caller, Error, FileSystem, Ino, Result};
use frit_fuse::Kernel;
use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Length of the list of mounts of another namespace that is read, in bytes: some 8000 mounts, which the kernel prints
/// in about 20 ms.
const LIST_BYTES_MAX: u64 = 1 << 20;

/// Number of open files of a process among which its command file is looked for.
const FILES_MAX: usize = 65_536;

/// Attempts to read a list of mounts that does not change meanwhile.
const ATTEMPTS: u32 = 10;

/// Time in which the kernel has usually done a rename.
const PATIENCE: Duration = Duration::from_millis(100);

/// What the mounts that somebody sees allow to instructions.
#[derive(Clone, Default, Debug)]
pub(super) struct MountLimits {
    /// Inodes on which something else is mounted, in ascending order. Nothing leads through them.
    pub(super) covered: Vec<Ino>,
    /// Nothing can be written.
    pub(super) is_read_only: bool,
}

impl MountLimits {
    fn new(covered: impl Iterator<Item = Ino>, is_read_only: bool) -> MountLimits {
        let mut covered: Vec<_> = covered.collect();
        covered.sort_unstable();
        covered.dedup();
        MountLimits { covered, is_read_only }
    }

    /// Adds the limits of somebody else.
    pub(super) fn add(&mut self, other: &MountLimits) {
        let all = self.covered.iter().chain(&other.covered).copied();
        *self = MountLimits::new(all, self.is_read_only || other.is_read_only);
    }
}

/// A part of the file system that is mounted somewhere.
#[derive(Debug)]
struct Part {
    mount: u64,
    root: Ino,
    /// Inodes on which something else is mounted.
    covered: Vec<Ino>,
    is_read_only: bool,
}

/// All parts that are mounted in a namespace.
#[derive(Debug)]
pub(super) struct View {
    parts: Vec<Part>,
    /// Mounts of the namespace, of all file systems, in ascending order.
    mounts: Vec<u64>,
}

/// The namespace of this process, with the list of its mounts, which tells when it changes.
#[derive(Debug)]
struct Own {
    list: File,
    view: Arc<View>,
}

impl Own {
    /// Returns the view, unless the list has changed since.
    fn current(own: &mut Option<Own>) -> Option<Arc<View>> {
        // A change is told once.
        *own = own.take_if(|own| !has_changed(&own.list));
        own.as_ref().map(|own| Arc::clone(&own.view))
    }
}

/// Views of a file system in the mount namespaces of its users.
#[derive(Debug)]
pub(super) struct Views {
    /// Device in lists of mounts, once it is known. `None`: no list has it.
    device: OnceLock<Option<String>>,
    own: Mutex<Option<Own>>,
    pub(super) renames: Renames,
}

impl Views {
    /// Creates the views of a file system that is about to be mounted.
    pub(super) fn new(kernel: Arc<OnceLock<Kernel>>) -> Views {
        Views { device: OnceLock::new(), own: Mutex::default(), renames: Renames::new(kernel) }
    }

    /// Sets the device in lists of mounts. Instructions that came earlier wait for it.
    pub(super) fn set_device(&self, device: Option<&str>) {
        let _ = self.device.set(device.map(str::to_owned));
    }

    /// Returns the limits for a thread that has an open command file: those of the mount through which it was opened.
    /// If the thread has several descriptors of the command file, each of them counts.
    ///
    /// # Errors
    /// As [`Views::of`] and [`View::limits_below`].
    pub(super) fn limits_on_mount<F: FileSystem>(
        &self,
        files: &F,
        thread: u32,
        command: Ino,
        directory: Ino,
    ) -> Result<MountLimits> {
        let view = self.of(files, thread)?;
        let somewhere = view.limits_below(files, directory)?;
        match mounts_of_open(thread, command)? {
            OpenOn::Mounts(mounts) => view.limits_on(&mounts),
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
            let finding = self.renames.find();
            let (list, text) = read_list(path, bytes_max)?;
            let mut resolved = Resolved { files, names: HashMap::new() };
            let Some((parts, mounts)) = parts_in(&text, device) else { continue };
            let parts = parts.iter().filter_map(|part| resolved.part(part)).collect();
            let names = resolved.names.keys().map(|(parent, name)| self.renames.number((*parent, name)));
            let names: HashSet<NameNumber> = names.collect();
            if finding.is_undisturbed(|name| names.contains(&name), PATIENCE) && !has_changed(&list) {
                return Ok((list, View { parts, mounts }));
            }
        }
        Err(os(path, rustix::io::Errno::AGAIN.into()))
    }
}

/// Names that were looked up, with their inodes.
struct Resolved<'f, F> {
    files: &'f F,
    names: HashMap<(Ino, Vec<u8>), Option<Ino>>,
}

impl<F: FileSystem> Resolved<'_, F> {
    /// Returns the inodes of a part. One without a root shows nothing.
    fn part(&mut self, part: &MountedPart) -> Option<Part> {
        let root = self.inode(&part.root);
        // A path that does not exist covers nothing: it was removed, which ends what is mounted there.
        let covered = part.covered.iter().filter_map(|path| self.inode(path)).collect();
        Some(Part { mount: part.id, root: root?, covered, is_read_only: part.is_read_only })
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
    /// Returns the limits for instructions in a directory. Their sender may see the directory in several mounts, of
    /// which each may cover something. Nothing can be written if all of them are read-only.
    ///
    /// # Errors
    /// `NotPermitted`: the directory is seen on no mount.
    pub(super) fn limits_below<F: FileSystem>(&self, files: &F, directory: Ino) -> Result<MountLimits> {
        let is_whole = self.parts.iter().any(|part| part.root == Ino::ROOT);
        let is_free = |part: &Part| part.covered.is_empty() && !part.is_read_only;
        if is_whole && self.parts.iter().all(is_free) {
            return Ok(MountLimits::default());
        }
        let mut path = vec![directory];
        while path.last().is_some_and(|ino| *ino != Ino::ROOT) {
            path.push(files.lookup(&Caller::ROOT, path[path.len() - 1], b"..")?.ino);
        }
        let depth = |part: &Part| path.iter().position(|ino| *ino == part.root);
        let shows = |part: &&Part| {
            depth(part).is_some_and(|root| !path[..=root].iter().any(|ino| part.covered.contains(ino)))
        };
        let mut shown = self.parts.iter().filter(shows).peekable();
        if shown.peek().is_none() {
            return Err(Error::NotPermitted);
        }
        let is_read_only = shown.all(|part| part.is_read_only);
        // Also of those that are covered as a whole: the directory may have been found before.
        Ok(MountLimits::new(self.covered_in(|part| depth(part).is_some()), is_read_only))
    }

    /// Returns the limits on mounts through which a command file was opened.
    fn limits_on(&self, mounts: &[u64]) -> Result<MountLimits> {
        let is_here = |mount: &u64| self.mounts.binary_search(mount).is_ok();
        let mut parts = self.parts.iter().filter(|part| mounts.contains(&part.mount)).peekable();
        if !mounts.iter().all(is_here) || parts.peek().is_none() {
            return Err(Error::NotPermitted);
        }
        let is_read_only = parts.any(|part| part.is_read_only);
        Ok(MountLimits::new(self.covered_in(|part| mounts.contains(&part.mount)), is_read_only))
    }

    fn covered_in(&self, counts: impl Fn(&Part) -> bool) -> impl Iterator<Item = Ino> {
        self.parts.iter().filter(move |part| counts(part)).flat_map(|part| &part.covered).copied()
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
    fn what_has_no_mount_may_have_the_number_of_a_command_file() {
        let thread = std::process::id();
        let is_without = |fd: i32| is_without_mount(thread, OsStr::new(&fd.to_string()));
        let (pipe, _writer) = io::pipe().unwrap();
        let file = tempfile::tempfile().unwrap();
        assert!(is_without(pipe.as_raw_fd()) && !is_without(file.as_raw_fd()));
    }
}

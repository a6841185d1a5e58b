//! Mountpoints: checks, unmounting, and the kernel's list of mounts.

use super::file_system::SUBTYPE;
use super::loop_devices::unescape;
use frit_core::paths::Place;
use frit_fuse::{ConnectionError, Mountpoint};
use rustix::mount::UnmountFlags;
use std::collections::HashMap;
use std::fmt::Write;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Source of a volume in the kernel's list of mounts.
pub(super) const SOURCE: &str = "frit";
/// Device of FUSE.
const FUSE: &str = "/dev/fuse";
/// Interval between attempts to unmount a file that is in use.
const RETRY: Duration = Duration::from_millis(50);
/// Returns `true` for an error of a mount whose server no longer exists. With
/// io_uring, the kernel returns `ECONNABORTED`, and `ECANCELED` while it takes the rings down.
pub(super) fn is_disconnected(error: &io::Error) -> bool {
    use rustix::io::Errno;

    let numbers = [Errno::NOTCONN, Errno::CONNABORTED, Errno::CANCELED];
    numbers.iter().any(|number| error.raw_os_error() == Some(number.raw_os_error()))
}

/// A directory that can be mounted on, which stays open.
#[derive(Debug)]
pub(super) struct CheckedMountpoint {
    /// Path without links.
    pub(super) path: PathBuf,
    directory: Place,
}

impl CheckedMountpoint {
    /// Returns the directory for the connection.
    pub(super) fn as_mountpoint(&self) -> Mountpoint<'_> {
        Mountpoint { path: &self.path, directory: self.directory.dir() }
    }
}

/// Opens a directory that can be mounted on.
pub(super) fn check_mountpoint(directory: &Path) -> io::Result<CheckedMountpoint> {
    // A mount whose server no longer exists has a path, but every access to it fails.
    let found = std::fs::metadata(directory);
    let opened = found.and_then(|found| match found.is_dir() {
        true => Place::of_dir(directory),
        false => Err(io::ErrorKind::NotADirectory.into()),
    });
    let held = opened.map_err(|e| {
        let hint = match e.kind() {
            _ if is_disconnected(&e) => {
                "a server that mounted there was killed; `frit detach` or `fusermount3 -u` cleans up"
            }
            io::ErrorKind::NotADirectory => "FUSE mounts on directories only",
            _ => "the mountpoint has to be an existing directory",
        };
        io::Error::new(e.kind(), format!("{}: {e}; {hint}", directory.display()))
    })?;
    let path = held.path();
    if mounts_at(&path)? > 0 {
        let what = format!("{}: something is mounted there already", path.display());
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, what));
    }
    Ok(CheckedMountpoint { path, directory: held })
}

/// Returns an error of mounting, extended by advice.
pub(super) fn mount_error(mountpoint: &Path, error: ConnectionError) -> io::Error {
    match error {
        ConnectionError::Mount(e) => with_hint(mountpoint, &e),
        ConnectionError::Rings(why) => {
            let what = format!(
                "cannot mount at {}: no requests through io_uring: {why}; --io-uring=auto uses it only if it can",
                mountpoint.display()
            );
            io::Error::new(io::ErrorKind::Unsupported, what)
        }
    }
}

fn with_hint(mountpoint: &Path, error: &io::Error) -> io::Error {
    use rustix::fs::{Access, Mode, OFlags, access, open};
    use rustix::io::Errno;

    let is_readable = access(mountpoint, Access::READ_OK).is_ok();
    let why = match open(FUSE, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()) {
        Err(Errno::NOENT) => format!("there is no {FUSE}: modprobe fuse makes it"),
        Err(e) => format!("{FUSE} cannot be opened: {e}"),
        Ok(_) if error.kind() == io::ErrorKind::NotFound => {
            "fusermount3, which mounts for users other than root, is not there: install fuse3".into()
        }
        Ok(_) if error.kind() == io::ErrorKind::PermissionDenied && !is_readable => {
            "this user may not read the directory".into()
        }
        // What fusermount3 has printed is text of several lines.
        Ok(_) => error.to_string().trim_end().to_owned(),
    };
    io::Error::new(error.kind(), format!("cannot mount at {}: {why}", mountpoint.display()))
}

/// Returns a path as in the kernel's lists, without access to the file system mounted there, which
/// may hang.
///
/// # Errors
/// The path is the root, or its parent directory does not exist.
pub fn absolute_path(path: &Path) -> io::Result<PathBuf> {
    let whole = std::path::absolute(path)?;
    let (Some(parent), Some(_)) = (whole.parent(), whole.file_name()) else {
        let what = format!("{}: not a directory to mount on", path.display());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
    };
    let at = |e: io::Error| io::Error::new(e.kind(), format!("{}: {e}", parent.display()));
    Ok(Place::of(&whole).map_err(at)?.path())
}

/// Unmounts as soon as the mount is not in use.
///
/// # Errors
/// `ResourceBusy` if it is in use after `timeout`, or the error of the kernel or fusermount3.
pub fn unmount_with_timeout(mountpoint: &Path, timeout: Duration) -> io::Result<()> {
    let end = Instant::now() + timeout;
    loop {
        match unmount(mountpoint, false) {
            Err(e) if e.kind() == io::ErrorKind::ResourceBusy && Instant::now() < end => {
                std::thread::sleep(RETRY);
            }
            other => return other,
        }
    }
}

/// Unmounts a directory. With `lazy`, this succeeds also if it is in use or its server no longer
/// exists.
///
/// # Errors
/// `ResourceBusy` if it is in use, or the error of the kernel or fusermount3.
pub fn unmount(mountpoint: &Path, lazy: bool) -> io::Result<()> {
    let flags = if lazy { UnmountFlags::DETACH } else { UnmountFlags::empty() };
    match rustix::mount::unmount(mountpoint, flags | UnmountFlags::NOFOLLOW) {
        Err(rustix::io::Errno::PERM) => fusermount(mountpoint, lazy),
        other => Ok(other?),
    }
}

/// Unmounts as a user other than root.
fn fusermount(mountpoint: &Path, lazy: bool) -> io::Result<()> {
    let mut command = Command::new("fusermount3");
    command.env("LC_ALL", "C").arg(if lazy { "-uz" } else { "-u" }).arg("--").arg(mountpoint);
    let output = command.stdin(Stdio::null()).output()?;
    if output.status.success() {
        return Ok(());
    }
    let error_text = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    // The case is recognized by the message of fusermount3.
    let busy = error_text.contains("busy");
    Err(io::Error::new(if busy { io::ErrorKind::ResourceBusy } else { io::ErrorKind::Other }, error_text))
}

/// Returns the number of file systems mounted at a directory, one over the other.
///
/// # Errors
/// /proc cannot be read.
pub fn mounts_at(directory: &Path) -> io::Result<usize> {
    Ok(file_systems_at(directory)?.len())
}

/// Returns the number of volumes mounted at a directory, including those whose server no longer
/// exists.
///
/// # Errors
/// /proc cannot be read.
pub fn volumes_at(directory: &Path) -> io::Result<usize> {
    let ours = |k: &&(String, String)| k.0.starts_with("fuse") && k.1 == SOURCE;
    Ok(file_systems_at(directory)?.iter().filter(ours).count())
}

/// Returns the directories at which a file system of frit with this source is mounted: its image,
/// or the directory of its pool.
///
/// # Errors
/// /proc cannot be read.
pub fn mountpoints_of(source: &Path) -> io::Result<Vec<PathBuf>> {
    Ok(mountpoints_in(&mount_list()?, source))
}

/// Returns the directories at which file systems of this type are mounted.
///
/// # Errors
/// /proc cannot be read.
pub(super) fn mountpoints_of_type(kind: &str) -> io::Result<Vec<PathBuf>> {
    let list = mount_list()?;
    Ok(mountpoints_where(&list, |mount| mount.kind == kind))
}

/// Returns the directories at which the FUSE file system with this minor device number is mounted.
///
/// # Errors
/// /proc cannot be read.
pub(super) fn fuse_mountpoints_of_device(minor: u32) -> io::Result<Vec<PathBuf>> {
    let list = mount_list()?;
    let device = format!("0:{minor}");
    Ok(mountpoints_where(&list, |mount| mount.kind.starts_with("fuse") && mount.device == device))
}

/// Returns `true` if the kernel's list has a file system of frit with this device number.
///
/// # Errors
/// /proc cannot be read.
pub(super) fn is_file_system(device: u64) -> io::Result<bool> {
    Ok(is_file_system_in(&mount_list()?, device))
}

fn is_file_system_in(list: &str, device: u64) -> bool {
    let device = format!("{}:{}", rustix::fs::major(device), rustix::fs::minor(device));
    let ours = |line: Line<'_>| line.device == device && line.kind.strip_prefix("fuse.") == Some(SUBTYPE);
    list.lines().filter_map(Line::parse).any(ours)
}

/// Returns the minor device numbers of the FUSE file systems with this source: an image, or the directory of a pool
/// that contains it.
///
/// # Errors
/// /proc cannot be read.
pub(super) fn fuse_devices_of_source(image: &Path) -> io::Result<Vec<u32>> {
    Ok(devices_in(&mount_list()?, image))
}

fn devices_in(list: &str, image: &Path) -> Vec<u32> {
    // As `frit_fs::Pool::image` names it.
    let pool = image.parent().filter(|_| image.file_name() == Some("image".as_ref()));
    let is_of = |line: &Line<'_>| {
        line.kind.strip_prefix("fuse.") == Some(SUBTYPE)
            && [Some(image), pool].contains(&Some(&unescape(line.source)))
    };
    let all = list.lines().filter_map(Line::parse).filter(is_of);
    all.filter_map(|line| line.device.strip_prefix("0:")?.parse().ok()).collect()
}

/// Returns the directories at which a list of mounts (proc(5)) has a FUSE file system with this
/// source.
fn mountpoints_in(list: &str, source: &Path) -> Vec<PathBuf> {
    mountpoints_where(list, |mount| mount.kind.starts_with("fuse") && unescape(mount.source) == source)
}

/// Returns the device (major and minor number) of what is mounted at a directory, over all others.
///
/// # Errors
/// /proc cannot be read.
pub(super) fn top_device_at(directory: &Path) -> io::Result<Option<String>> {
    let list = mount_list()?;
    let top = list.lines().filter_map(Line::parse).rfind(|line| unescape(line.directory) == directory);
    Ok(top.map(|line| line.device.to_owned()))
}

/// Returns the kernel's list of mounts (proc(5)).
pub(super) fn mount_list() -> io::Result<String> {
    Ok(ascii(&std::fs::read("/proc/self/mountinfo")?))
}

/// A part of a file system that is mounted, as paths in the file system.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct MountedPart {
    /// Number of the mount.
    pub(super) id: u64,
    /// What is mounted: the root directory, or a directory or file that is bound.
    pub(super) root: PathBuf,
    /// On what something else is mounted.
    pub(super) covered: Vec<PathBuf>,
    pub(super) is_read_only: bool,
}

/// Returns the mounts of a device in a list of mounts, without those of removed directories, and the numbers of all
/// mounts in ascending order. `None`: the list has paths of different times.
pub(super) fn parts_in(list: &str, device: &str) -> Option<(Vec<MountedPart>, Vec<u64>)> {
    // proc(5); a removed directory has no name that could be found.
    let is_removed = |path: &str| path.ends_with("//deleted");
    let lines: Vec<Line<'_>> = list.lines().filter_map(Line::parse).collect();
    let mut mounts: Vec<u64> = lines.iter().filter_map(|line| line.id.parse().ok()).collect();
    mounts.sort_unstable();
    // Lists can have tens of thousands of mounts.
    let mut mounted_on: HashMap<&str, Vec<&str>> = HashMap::new();
    for line in lines.iter().filter(|line| line.id != line.parent && !is_removed(line.directory)) {
        mounted_on.entry(line.parent).or_default().push(line.directory);
    }
    let part = |part: &Line<'_>| {
        let (root, at) = (unescape(part.root), unescape(part.directory));
        let on = mounted_on.get(part.id).into_iter().flatten();
        let below = on.map(|directory| Some(root.join(unescape(directory).strip_prefix(&at).ok()?)));
        let (id, covered) = (part.id.parse().ok()?, below.collect::<Option<_>>()?);
        Some(MountedPart { id, root, covered, is_read_only: part.is_read_only })
    };
    let of_device = lines.iter().filter(|line| line.device == device && !is_removed(line.root));
    let parts = of_device.map(part).collect::<Option<_>>()?;
    Some((parts, mounts))
}

/// Returns a list of mounts as text. A path can have any bytes: those that are not ASCII become octal, as blanks are.
pub(super) fn ascii(list: &[u8]) -> String {
    let mut text = String::with_capacity(list.len());
    for byte in list {
        match byte.is_ascii() {
            true => text.push(char::from(*byte)),
            false => _ = write!(text, "\\{byte:03o}"),
        }
    }
    text
}

/// A line of a list of mounts.
struct Line<'a> {
    /// Numbers of the mount, and of that on which it is mounted.
    id: &'a str,
    parent: &'a str,
    /// Major and minor number.
    device: &'a str,
    /// What of the file system is mounted: a path in it, escaped.
    root: &'a str,
    /// Where it is mounted, escaped.
    directory: &'a str,
    /// Of the mount, and not of the file system, which other mounts have in common with it.
    is_read_only: bool,
    kind: &'a str,
    /// Source, escaped.
    source: &'a str,
}

impl<'a> Line<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        // The number of fields before the separator varies.
        let (before, after) = line.split_once(" - ")?;
        let (mut before, mut after) = (before.split(' '), after.split(' '));
        let (id, parent, device) = (before.next()?, before.next()?, before.next()?);
        let (root, directory) = (before.next()?, before.next()?);
        let is_read_only = before.next()?.split(',').any(|option| option == "ro");
        let (kind, source) = (after.next()?, after.next()?);
        Some(Self { id, parent, device, root, directory, is_read_only, kind, source })
    }
}

/// Returns the directories of the accepted lines of a list of mounts.
fn mountpoints_where(list: &str, is_wanted: impl Fn(&Line<'_>) -> bool) -> Vec<PathBuf> {
    list.lines().filter_map(Line::parse).filter(is_wanted).map(|line| unescape(line.directory)).collect()
}

/// Returns types and sources of the file systems mounted at a directory. They are taken from the
/// kernel's list, since the file systems themselves may hang.
pub(super) fn file_systems_at(directory: &Path) -> io::Result<Vec<(String, String)>> {
    Ok(file_systems_in(&mount_list()?, directory))
}

fn file_systems_in(list: &str, directory: &Path) -> Vec<(String, String)> {
    let at = list.lines().filter_map(Line::parse).filter(|line| unescape(line.directory) == directory);
    at.map(|line| (line.kind.to_owned(), unescape(line.source).to_string_lossy().into_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStrExt;

    #[test]
    fn a_mount_that_fails_says_what_failed() {
        use std::io::{Error, ErrorKind};

        if std::fs::File::options().read(true).write(true).open(FUSE).is_err() {
            eprintln!("skipped: {FUSE} cannot be opened");
            return;
        }
        let said = |kind, text| with_hint(Path::new("/"), &Error::new(kind, text)).to_string();
        let refused = "fusermount3: option allow_other only allowed if 'user_allow_other' is set";
        let whole = format!("cannot mount at /: {refused}");
        assert_eq!(said(ErrorKind::PermissionDenied, format!("{refused}\n")), whole);
        assert_eq!(said(ErrorKind::Other, format!("{refused}\n")), whole);
        assert!(said(ErrorKind::NotFound, String::new()).contains("install fuse3"));
    }

    #[test]
    fn mountpoints_are_found_by_their_source() {
        let list = "22 1 8:1 / / rw - ext4 /dev/a rw\n\
                    40 22 0:50 / /mnt/my\\040files rw,nosuid shared:3 - fuse.ispfs /home/img rw\n\
                    41 22 0:51 / /mnt/b rw - fuse /home/img rw\n\
                    42 22 0:52 / /mnt/c rw - ext4 /home/img rw\n";
        assert_eq!(
            mountpoints_in(list, Path::new("/home/img")),
            [Path::new("/mnt/my files"), Path::new("/mnt/b")]
        );
        assert!(mountpoints_in(list, Path::new("/home/im")).is_empty());
        assert_eq!(devices_in(list, Path::new("/home/img")), [50]);
        assert_eq!(devices_in(list, Path::new("/home/img/image")), [50]);
        assert!(devices_in(list, Path::new("/home/img/other")).is_empty(), "it is not that of a pool");
        let device = |minor| rustix::fs::makedev(0, minor);
        assert!(is_file_system_in(list, device(50)));
        assert!(!is_file_system_in(list, device(51)) && !is_file_system_in(list, device(5)), "another type");
        let others = "42 22 0:52 / /mnt/c rw - fuse.bindfs /home rw\n";
        assert!(devices_in(others, Path::new("/home/image")).is_empty());
    }

    #[test]
    fn a_path_of_any_bytes_is_read() {
        let list = ascii(b"22 1 8:1 / /mnt/\xff\\040\xc3\xa4 rw - ext4 /dev/a rw\n");
        let at = file_systems_in(&list, std::ffi::OsStr::from_bytes(b"/mnt/\xff \xc3\xa4").as_ref());
        assert_eq!(at, [("ext4".to_owned(), "/dev/a".to_owned())]);
    }

    #[test]
    fn what_mounts_cover_has_a_path_in_the_file_system() {
        let line = |id, parent, device, root, at| {
            format!("{id} {parent} {device} {root} {at} rw shared:3 - fuse.ispfs /img rw\n")
        };
        let list = [
            line(22, 22, "8:1", "/", "/"),
            line(40, 22, "0:50", "/", "/mnt"),
            line(41, 40, "0:51", "/", r"/mnt/a\040b/c"),
            line(42, 41, "0:52", "/", r"/mnt/a\040b/c/below"),
            line(43, 22, "0:50", "/pub", "/srv/pub").replace(" rw shared", " nosuid,ro shared"),
            line(44, 43, "0:50", "/pub/x", "/srv/pub/x"),
            line(45, 40, "0:53", "/", "/mnt/gone//deleted"),
            line(46, 22, "0:50", "/old//deleted", "/srv/old"),
            line(47, 43, "0:51", "/", "/srv/pub"),
        ]
        .concat();
        let part = |id, root: &str, covered: &[&str]| MountedPart {
            id,
            root: root.into(),
            covered: covered.iter().map(PathBuf::from).collect(),
            is_read_only: id == 43,
        };
        let expected =
            vec![part(40, "/", &["/a b/c"]), part(43, "/pub", &["/pub/x", "/pub/"]), part(44, "/pub/x", &[])];
        let mounts = vec![22, 40, 41, 42, 43, 44, 45, 46, 47];
        assert_eq!(parts_in(&list, "0:50"), Some((expected, mounts.clone())));
        assert_eq!(parts_in(&list, "0:5"), Some((Vec::new(), mounts)));
        let torn = line(40, 22, "0:50", "/", "/mnt") + &line(41, 40, "0:51", "/", "/moved/a");
        assert_eq!(parts_in(&torn, "0:50"), None);
    }
}

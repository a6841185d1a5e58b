//! Mounting and unmounting.

use super::adapter::Adapter;
use crate::device::Device;
use crate::pace::Timer;
use fuser::{BackgroundSession, Config, MountOption, Session, SessionACL};
use rustix::mount::UnmountFlags;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Threads that answer requests. The device serves one at a time; copying to and from the kernel, and
/// flushes that wait for the disk, go on beside it.
const THREADS: usize = 4;
/// What the kernel's list of mounts names as the source.
const SOURCE: &str = "frit";
/// How often an unmount that finds the file in use is tried again.
const RETRY: Duration = Duration::from_millis(50);

/// A mounted file.
#[derive(Debug)]
pub struct Export {
    mountpoint: PathBuf,
    session: Option<BackgroundSession>,
    device: Arc<Device>,
    /// Dropped last: it may hold replies.
    _timer: Arc<Timer>,
}

impl Export {
    /// Mounts on an empty directory.
    ///
    /// # Errors
    /// No FUSE in this machine, a directory that cannot be mounted on, in words.
    pub fn start(device: &Arc<Device>, directory: &Path) -> io::Result<Export> {
        let mountpoint = directory.canonicalize().map_err(|e| {
            let hint = if e.raw_os_error() == Some(NOT_CONNECTED) {
                "a server that mounted there was killed; `frit detach` or `fusermount3 -u` cleans up"
            } else {
                "the mountpoint has to be an existing directory"
            };
            io::Error::new(e.kind(), format!("{}: {e}; {hint}", directory.display()))
        })?;
        if !mountpoint.is_dir() {
            let what = format!("{}: is no directory, and FUSE mounts a volume on one", mountpoint.display());
            return Err(io::Error::new(io::ErrorKind::NotADirectory, what));
        }
        if mounts_at(&mountpoint)? > 0 {
            let what = format!("{}: something is mounted there already", mountpoint.display());
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, what));
        }
        let timer = Arc::new(Timer::start()?);
        let adapter = Adapter::new(device.clone(), timer.clone());
        let mounted = Session::new(adapter, &mountpoint, &config(device)).and_then(Session::spawn);
        let session = mounted.map_err(|e| {
            let hint = match e.kind() {
                io::ErrorKind::NotFound => {
                    "; FUSE needs /dev/fuse (modprobe fuse), and fusermount3 without root"
                }
                io::ErrorKind::PermissionDenied => {
                    "; mounting needs root, or fusermount3 from the package fuse3"
                }
                _ => "",
            };
            io::Error::new(e.kind(), format!("cannot mount at {}: {e}{hint}", mountpoint.display()))
        })?;
        device.clients().came();
        Ok(Export { mountpoint, session: Some(session), device: device.clone(), _timer: timer })
    }

    /// Where it is mounted.
    #[must_use]
    pub fn mountpoint(&self) -> &Path {
        &self.mountpoint
    }

    /// Whether it was unmounted by somebody else: nobody can use it any more.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.session.as_ref().is_none_or(|s| s.guard.is_finished())
    }

    /// Unmounts, and answers what is under way. When a program (a loop device, say) still uses the file after
    /// `patience`, the directory is unmounted all the same and that program gets errors from then on.
    ///
    /// # Errors
    /// `ResourceBusy` when that happened; a mount that cannot be undone.
    pub fn stop(mut self, patience: Duration) -> io::Result<()> {
        self.end(patience)
    }

    fn end(&mut self, patience: Duration) -> io::Result<()> {
        let Some(session) = self.session.take() else { return Ok(()) };
        self.device.clients().left();
        if session.guard.is_finished() {
            return session.join();
        }
        match unmount_within(&self.mountpoint, patience) {
            Ok(()) => session.join(),
            Err(e) if e.kind() == io::ErrorKind::ResourceBusy => {
                // The session would go on until the last user closes the file; it ends with the process.
                unmount(&self.mountpoint, true)?;
                let what = format!(
                    "{} was still in use (`frit detach` releases loop devices): its users get errors now",
                    self.mountpoint.display()
                );
                Err(io::Error::new(e.kind(), what))
            }
            Err(e) => Err(e),
        }
    }
}

impl Drop for Export {
    fn drop(&mut self) {
        // An error was reported by `stop`, or there is nobody to report it to.
        let _ = self.end(Duration::ZERO);
    }
}

/// `ENOTCONN`: what a mount says whose server is gone.
pub(crate) const NOT_CONNECTED: i32 = rustix::io::Errno::NOTCONN.raw_os_error();

fn config(device: &Device) -> Config {
    let mut config = Config::default();
    let access = if device.read_only().is_some() { MountOption::RO } else { MountOption::RW };
    config.mount_options = vec![
        MountOption::FSName(SOURCE.into()),
        MountOption::Subtype("frit".into()),
        MountOption::DefaultPermissions,
        MountOption::NoDev,
        MountOption::NoSuid,
        MountOption::NoExec,
        MountOption::NoAtime,
        access,
    ];
    config.acl = SessionACL::Owner;
    config.n_threads = Some(THREADS);
    config.clone_fd = true;
    config
}

/// Unmounts as soon as nobody uses it, within a time.
fn unmount_within(mountpoint: &Path, patience: Duration) -> io::Result<()> {
    let end = Instant::now() + patience;
    loop {
        match unmount(mountpoint, false) {
            Err(e) if e.kind() == io::ErrorKind::ResourceBusy && Instant::now() < end => {
                std::thread::sleep(RETRY);
            }
            other => return other,
        }
    }
}

/// Unmounts a directory; `lazy` also while it is in use, and when its server is gone.
///
/// # Errors
/// `ResourceBusy` when it is in use; what the kernel or fusermount3 says.
pub fn unmount(mountpoint: &Path, lazy: bool) -> io::Result<()> {
    let flags = if lazy { UnmountFlags::DETACH } else { UnmountFlags::empty() };
    match rustix::mount::unmount(mountpoint, flags | UnmountFlags::NOFOLLOW) {
        Err(rustix::io::Errno::PERM) => fusermount(mountpoint, lazy),
        other => Ok(other?),
    }
}

/// Unmounts as a user that is not root.
fn fusermount(mountpoint: &Path, lazy: bool) -> io::Result<()> {
    let mut command = Command::new("fusermount3");
    command.arg(if lazy { "-uz" } else { "-u" }).arg("--").arg(mountpoint);
    let output = command.stdin(Stdio::null()).output()?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    let busy = said.contains("busy");
    Err(io::Error::new(if busy { io::ErrorKind::ResourceBusy } else { io::ErrorKind::Other }, said))
}

/// How many file systems are mounted at a directory, one over the other.
///
/// # Errors
/// No /proc.
pub fn mounts_at(directory: &Path) -> io::Result<usize> {
    Ok(kinds_at(directory)?.len())
}

/// How many of them are volumes, served or left by a server that is gone.
///
/// # Errors
/// No /proc.
pub fn volumes_at(directory: &Path) -> io::Result<usize> {
    let ours = |k: &&(String, String)| k.0.starts_with("fuse") && k.1 == SOURCE;
    Ok(kinds_at(directory)?.iter().filter(ours).count())
}

/// Types and sources of the file systems that are mounted at a directory. It asks the kernel's list, never the
/// file systems themselves, which may not answer.
fn kinds_at(directory: &Path) -> io::Result<Vec<(String, String)>> {
    let list = std::fs::read_to_string("/proc/self/mountinfo")?;
    let at = |line: &&str| line.split(' ').nth(4).is_some_and(|p| super::loops::unescape(p) == directory);
    let kind = |line: &str| {
        let mut rest = line.split(" - ").nth(1)?.split(' ');
        Some((rest.next()?.to_owned(), rest.next()?.to_owned()))
    };
    Ok(list.lines().filter(at).filter_map(kind).collect())
}

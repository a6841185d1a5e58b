//! Mounting and unmounting.

use super::adapter::Adapter;
use super::mounts::{self, SOURCE, unmount, unmount_within};
use crate::device::Device;
use crate::pace::Timer;
use fuser::{BackgroundSession, Config, MountOption, Session, SessionACL};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Threads that answer requests. The device serves one at a time; copying to and from the kernel, and
/// flushes that wait for the disk, go on beside it.
const THREADS: usize = 4;
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
        let mountpoint = mounts::usable(directory)?;
        let timer = Arc::new(Timer::start()?);
        let adapter = Adapter::new(device.clone(), timer.clone());
        let mounted = Session::new(adapter, &mountpoint, &config(device)).and_then(Session::spawn);
        let session = mounted.map_err(|e| mounts::explained(&mountpoint, &e))?;
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

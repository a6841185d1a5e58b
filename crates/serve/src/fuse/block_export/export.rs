//! A device mounted as a file.

use super::adapter::BlockAdapter;
use crate::device::Device;
use crate::fuse::mounts::{self, SOURCE, unmount, unmount_with_timeout};
use crate::pace::Timer;
use frit_fuse::{Config, Connection, ConnectionOptions, MountOption, Rings, SessionACL};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Number of threads that answer requests. The device executes one request at a time; copies to and
/// from the kernel, and flushes that wait for the disk, run concurrently with it.
const THREADS: usize = 4;

/// A device mounted as a file.
#[derive(Debug)]
pub struct BlockExport {
    mountpoint: PathBuf,
    connection: Option<Connection>,
    device: Arc<Device>,
    /// Dropped last, since it may hold delayed replies.
    _timer: Arc<Timer>,
}

impl BlockExport {
    /// Mounts the file in an empty directory.
    ///
    /// # Errors
    /// FUSE is not available, or the directory cannot be mounted on.
    pub fn start(device: &Arc<Device>, directory: &Path) -> io::Result<BlockExport> {
        let checked = mounts::check_mountpoint(directory)?;
        let timer = Arc::new(Timer::start()?);
        let adapter = Arc::new(BlockAdapter::new(device.clone(), timer.clone()));
        let options = ConnectionOptions { config: config(device), threads: THREADS, rings: Rings::Auto };
        let connection = Connection::start(&adapter, checked.as_mountpoint(), &options);
        let connection = connection.map_err(|e| mounts::mount_error(&checked.path, e))?;
        device.clients().count_accepted();
        let mountpoint = checked.path;
        Ok(BlockExport { mountpoint, connection: Some(connection), device: device.clone(), _timer: timer })
    }

    /// Returns the mountpoint.
    #[must_use]
    pub fn mountpoint(&self) -> &Path {
        &self.mountpoint
    }

    /// Returns `true` if another process has unmounted the file and it can no longer be used.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.connection.as_ref().is_none_or(Connection::has_ended)
    }

    /// Unmounts after the requests in flight have been answered. If a program (a loop device, for
    /// example) still uses the file after `timeout`, the directory is unmounted anyway, and that
    /// program gets errors from then on.
    ///
    /// # Errors
    /// `ResourceBusy` if the file was still in use, or the error of unmounting.
    pub fn stop(mut self, timeout: Duration) -> io::Result<()> {
        self.end(timeout)
    }

    fn end(&mut self, timeout: Duration) -> io::Result<()> {
        let Some(connection) = self.connection.take() else { return Ok(()) };
        self.device.clients().count_closed();
        if connection.has_ended() {
            return connection.join();
        }
        match unmount_with_timeout(&self.mountpoint, timeout) {
            Ok(()) => connection.join(),
            Err(e) if e.kind() == io::ErrorKind::ResourceBusy => {
                // The connection would continue until the last user closes the file. It ends with this
                // process.
                unmount(&self.mountpoint, true)?;
                let what = format!(
                    "{} was still in use (`frit detach` releases loop devices): its users now get errors",
                    self.mountpoint.display()
                );
                Err(io::Error::new(e.kind(), what))
            }
            Err(e) => Err(e),
        }
    }
}

impl Drop for BlockExport {
    fn drop(&mut self) {
        // `stop` has reported an error already, or the caller has dropped the value and gets no
        // result.
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
    config
}

//! Mounting and unmounting of a file system.

use super::adapter::FsAdapter;
use super::in_storage::CommandFiles;
use super::options::MountOptions;
use crate::fuse::mounts::{check_mountpoint, mount_error, top_device_at, unmount_with_timeout};
use crate::fuse::unmount;
use frit_fs::{DirectFiles, InStorage};
use frit_fuse::Connection;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// A mounted file system. Dropping it unmounts it, even if it is in use.
#[derive(Debug)]
pub struct Mount {
    mountpoint: PathBuf,
    /// Device (major and minor number) in the list of mounts.
    device: Option<String>,
    connection: Option<Connection>,
    inactive_reason: Option<&'static str>,
    commands: Arc<CommandFiles>,
}

impl Mount {
    /// Mounts a file system on a directory.
    ///
    /// # Errors
    /// FUSE is not available, or the directory cannot be mounted on.
    pub fn start<F: InStorage + DirectFiles + 'static>(
        files: &Arc<F>,
        directory: &Path,
        options: &MountOptions,
    ) -> io::Result<Mount> {
        let checked = check_mountpoint(directory)?;
        let mountpoint = checked.path.clone();
        let is_empty = || std::fs::read_dir(&mountpoint).map(|mut names| names.next().is_none());
        let unread = |e: io::Error| {
            let what = format!("{}: {e}: a mountpoint has to be readable", mountpoint.display());
            io::Error::new(e.kind(), what)
        };
        if !options.nonempty && !is_empty().map_err(unread)? {
            let what = format!(
                "{}: the directory is not empty, and what is in it would be hidden; -o nonempty mounts over it",
                mountpoint.display()
            );
            return Err(io::Error::new(io::ErrorKind::DirectoryNotEmpty, what));
        }
        if options.writeback && options.passthrough {
            let what =
                "a pool's files are read and written by the kernel itself: --writeback is not supported";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        let adapter = Arc::new(FsAdapter::new(Arc::clone(files), options)?);
        let reason = adapter.passthrough.inactive_reason();
        let connection = Connection::start(&adapter, checked.as_mountpoint(), &options.connection());
        let connection = connection.map_err(|e| mount_error(&mountpoint, e))?;
        let device = top_device_at(&mountpoint);
        adapter.commands.set_device(device.as_ref().ok().and_then(Option::as_deref));
        let device = device?;
        let inactive_reason = reason.get().copied();
        let commands = Arc::clone(&adapter.commands);
        Ok(Mount { mountpoint, device, connection: Some(connection), inactive_reason, commands })
    }

    /// Returns `true` if requests come through io_uring.
    #[must_use]
    pub fn uses_rings(&self) -> bool {
        self.connection.as_ref().is_some_and(Connection::uses_rings)
    }

    /// Returns the reason why passthrough is not active although it was requested. Files work
    /// without it.
    #[must_use]
    pub fn passthrough_inactive_reason(&self) -> Option<&'static str> {
        self.inactive_reason
    }

    /// Returns the mountpoint.
    #[must_use]
    pub fn mountpoint(&self) -> &Path {
        &self.mountpoint
    }

    /// Returns `true` if the file system is unmounted and no longer in use.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.connection.as_ref().is_none_or(Connection::has_ended)
    }

    /// Unmounts as soon as the file system is not in use, and at the latest after `timeout`, so
    /// that no new users can access it. Returns `true` if it is still in use; its current users are
    /// served until they end.
    ///
    /// # Errors
    /// The error of the kernel or fusermount3.
    pub fn unmount(&self, timeout: Duration) -> io::Result<bool> {
        if self.has_ended() {
            return Ok(false);
        }
        // A lazy unmount has removed it, and programs still use it. Others may have mounted there since.
        if top_device_at(&self.mountpoint)? != self.device {
            return Ok(true);
        }
        match unmount_with_timeout(&self.mountpoint, timeout) {
            Ok(()) => Ok(false),
            Err(e) if e.kind() == io::ErrorKind::ResourceBusy => {
                unmount(&self.mountpoint, true).map(|()| true)
            }
            Err(e) => Err(e),
        }
    }

    /// Waits until the file system is unmounted and the last request is answered. Cancels the
    /// instructions of command files that are in progress then.
    ///
    /// # Errors
    /// The connection to the kernel failed.
    pub fn join(mut self) -> io::Result<()> {
        let ended = self.connection.take().map_or(Ok(()), Connection::join);
        // An unmount discards the RELEASE requests that the kernel has not sent before.
        self.commands.close();
        ended
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        if self.connection.is_some() {
            // An error cannot be returned from here.
            let _ = self.unmount(Duration::ZERO);
        }
    }
}

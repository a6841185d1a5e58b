//! The kernel's block path: a loop device over a file in tmpfs, read and written with O_DIRECT.

use super::paths::RequestPath;
use crate::{Error, Result};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Mount point of a tmpfs on Linux.
const TMPFS: &str = "/dev/shm";
/// Maximum buffer alignment that O_DIRECT requires.
const ALIGN: usize = 4096;

/// A loop device. The device and its file are removed when this is dropped.
pub(super) struct TempLoopDevice {
    file: File,
    device: PathBuf,
    buffer: Vec<u8>,
    from: usize,
    len: usize,
    _backing: tempfile::NamedTempFile,
}

/// Runs losetup. Returns its output; the error is its message.
fn losetup(args: &[&std::ffi::OsStr]) -> std::result::Result<String, String> {
    let out =
        Command::new("losetup").args(args).output().map_err(|e| format!("losetup cannot be run: {e}"))?;
    if !out.status.success() {
        return Err(format!("losetup: {}", String::from_utf8_lossy(&out.stderr).trim()));
    }
    Ok(String::from_utf8_lossy(&out.stdout).trim().to_owned())
}

/// Guard that detaches a device when it is dropped, unless the device was taken out.
struct AttachGuard(Option<PathBuf>);

impl Drop for AttachGuard {
    fn drop(&mut self) {
        if let Some(device) = &self.0 {
            detach(device);
        }
    }
}

fn detach(device: &Path) {
    // A failure cannot be handled: the device stays, and `losetup -l` shows it.
    let _ = losetup(&["-d".as_ref(), device.as_os_str()]);
}

impl TempLoopDevice {
    /// Creates a device of `bytes`, for requests of `len` bytes. The error is the reason why that
    /// is not possible.
    pub(super) fn new(bytes: u64, len: usize) -> std::result::Result<TempLoopDevice, String> {
        let words = |e: std::io::Error| format!("a file in {TMPFS}: {e}");
        let backing = tempfile::Builder::new().prefix("frit-loop").tempfile_in(TMPFS).map_err(words)?;
        backing.as_file().set_len(bytes).map_err(words)?;
        let device = losetup(&["--find".as_ref(), "--show".as_ref(), backing.path().as_os_str()])?;
        let mut attached = AttachGuard(Some(PathBuf::from(device)));
        let device = attached.0.clone().unwrap_or_default();
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_DIRECT)
            .open(&device)
            .map_err(|e| format!("{}: {e}", device.display()))?;
        attached.0 = None;
        let buffer = vec![0x5a; len + ALIGN];
        let from = buffer.as_ptr().align_offset(ALIGN);
        Ok(TempLoopDevice { file, device, buffer, from, len, _backing: backing })
    }

    fn failed(&self, source: std::io::Error) -> Error {
        Error::File { path: self.device.display().to_string(), source }
    }
}

impl RequestPath for TempLoopDevice {
    fn read(&mut self, at: u64) -> Result<()> {
        let into = &mut self.buffer[self.from..self.from + self.len];
        let done = self.file.read_exact_at(into, at);
        done.map_err(|e| self.failed(e))
    }

    fn write(&mut self, at: u64) -> Result<()> {
        let data = &self.buffer[self.from..self.from + self.len];
        self.file.write_all_at(data, at).map_err(|e| self.failed(e))
    }
}

impl Drop for TempLoopDevice {
    fn drop(&mut self) {
        detach(&self.device);
    }
}

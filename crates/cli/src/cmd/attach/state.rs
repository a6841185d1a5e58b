//! State that `frit attach` records for `frit detach`.

use frit_core::files::{self, TEXT_BYTES_MAX};
use frit_core::paths::{self, OpenOptions};
use miette::{IntoDiagnostic, Result, WrapErr};
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Name of the state file in the volume's directory.
const NAME: &str = "attached.json";

/// State of an attached volume.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct AttachState {
    /// Directory where the raw file is mounted.
    pub(crate) mountpoint: PathBuf,
    /// Process ID of the server.
    pub(crate) server: i32,
    /// `true` if `frit attach` started the server, so that `frit detach` stops it.
    pub(crate) started: bool,
    /// Path of the loop device.
    pub(crate) device: Option<PathBuf>,
}

impl AttachState {
    /// Reads the recorded state, if there is any. Only root attaches, and a state that another user
    /// wrote into their volume would have root unmount what it names.
    pub(crate) fn read(dir: &Path) -> Option<AttachState> {
        let mut options = OpenOptions::new();
        options.read(true).flags(OFlags::NOFOLLOW | OFlags::NONBLOCK);
        let file = options.open(&dir.join(NAME)).ok()?;
        let owner = file.metadata().ok().filter(std::fs::Metadata::is_file)?.uid();
        if owner != rustix::process::geteuid().as_raw() {
            return None;
        }
        let mut bytes = Vec::new();
        file.take(TEXT_BYTES_MAX).read_to_end(&mut bytes).ok()?;
        serde_json::from_slice(&bytes).ok()
    }

    /// Records the state.
    pub(crate) fn write(&self, dir: &Path) -> Result<()> {
        let text = serde_json::to_vec(self).into_diagnostic()?;
        files::write(&dir.join(NAME), &text).into_diagnostic().wrap_err("cannot write down what is attached")
    }

    /// Removes the recorded state.
    pub(crate) fn remove(dir: &Path) -> Result<()> {
        match paths::remove_file(&dir.join(NAME)) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(e).into_diagnostic(),
            _ => Ok(()),
        }
    }
}

/// Returns the mount point as the kernel's lists name it. The mounted file system is not accessed,
/// because it may not answer.
pub(crate) fn mountpoint(dir: &Path, given: Option<&Path>) -> Result<PathBuf> {
    let Some(given) = given else { return Ok(dir.join("mnt")) };
    frit_serve::fuse::absolute_path(given).into_diagnostic()
}

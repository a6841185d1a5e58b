//! State that `frit attach` records for `frit detach`.

use frit_core::files::{self, TEXT_BYTES_MAX};
use miette::{IntoDiagnostic, Result, WrapErr};
use serde::{Deserialize, Serialize};
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
    /// Reads the recorded state, if there is any.
    pub(crate) fn read(dir: &Path) -> Option<AttachState> {
        serde_json::from_slice(&files::read(&dir.join(NAME), TEXT_BYTES_MAX).ok()?).ok()
    }

    /// Records the state.
    pub(crate) fn write(&self, dir: &Path) -> Result<()> {
        let text = serde_json::to_vec(self).into_diagnostic()?;
        files::write(&dir.join(NAME), &text).into_diagnostic().wrap_err("cannot write down what is attached")
    }

    /// Removes the recorded state.
    pub(crate) fn remove(dir: &Path) -> Result<()> {
        match std::fs::remove_file(dir.join(NAME)) {
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

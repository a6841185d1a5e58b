//! What `frit attach` writes down for `frit detach`.

use frit_core::files::{self, TEXT_BYTES_MAX};
use miette::{IntoDiagnostic, Result, WrapErr};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The file in the volume's directory.
const NAME: &str = "attached.json";

/// An attached volume.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Attached {
    /// Where the raw file is mounted.
    pub(crate) mountpoint: PathBuf,
    /// The process that serves.
    pub(crate) server: i32,
    /// `frit attach` started it, so that `frit detach` stops it.
    pub(crate) started: bool,
    /// The loop device.
    pub(crate) device: Option<PathBuf>,
}

impl Attached {
    /// What was written down, if anything.
    pub(crate) fn read(dir: &Path) -> Option<Attached> {
        serde_json::from_slice(&files::read(&dir.join(NAME), TEXT_BYTES_MAX).ok()?).ok()
    }

    /// Writes it down.
    pub(crate) fn write(&self, dir: &Path) -> Result<()> {
        let text = serde_json::to_vec(self).into_diagnostic()?;
        files::write(&dir.join(NAME), &text).into_diagnostic().wrap_err("cannot write down what is attached")
    }

    /// Forgets it.
    pub(crate) fn remove(dir: &Path) -> Result<()> {
        match std::fs::remove_file(dir.join(NAME)) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(e).into_diagnostic(),
            _ => Ok(()),
        }
    }
}

/// The mountpoint as the kernel's lists name it, without asking what is mounted there: that may not answer.
pub(crate) fn mountpoint(dir: &Path, given: Option<&Path>) -> Result<PathBuf> {
    let Some(given) = given else { return Ok(dir.join("mnt")) };
    frit_serve::fuse::whole(given).into_diagnostic()
}

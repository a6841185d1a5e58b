//! Shared parts of the commands on volumes: opening, a progress bar, recovery and findings as text.

pub(crate) mod check;
mod progress;
mod show;

pub(crate) use progress::ByteProgress;
use progress::ReadProgress;
pub(crate) use show::{recovery, seconds_per_gb, sizes, when};

use crate::output::{print_stderr, report};
use frit_core::Sink;
use frit_volume::{OpenOptions, Volume};
use miette::{IntoDiagnostic, Report, Result, WrapErr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Exit code of a command if the volume cannot be opened.
pub(crate) const NOT_OPENED: u8 = 2;

/// Opens a volume with a bar that shows the progress of its recovery.
pub(crate) fn open(dir: &Path, read_only: bool, quiet: bool) -> frit_volume::Result<Volume> {
    let bar = ByteProgress::bytes(quiet, "recovering", None);
    Volume::open_with(dir, &OpenOptions { read_only, crash: None }, |_| {
        Sink::untimed().observed(ReadProgress::new(bar))
    })
}

/// Restarts the bar of a volume that [`open`] has opened, for another phase that reads `length` bytes.
pub(crate) fn begin_phase(volume: &mut Volume, what: &str, length: Option<u64>) {
    if let Some(progress) = volume.sink().observer::<ReadProgress>() {
        progress.bar().begin(what, length);
    }
}

/// Warns about files of a volume that other users can read or change.
///
/// # Errors
/// The output cannot be written, or there is no volume.
pub(crate) fn warn_exposed(dir: &Path) -> Result<()> {
    warn(frit_volume::inspect(dir)?.exposed)
}

/// Prints a warning that other users have access.
///
/// # Errors
/// The output cannot be written.
pub(crate) fn warn(exposed: Option<String>) -> Result<()> {
    exposed.map_or(Ok(()), |exposed| print_stderr(&format!("frit: warning: {exposed}\n")))
}

/// Returns the absolute path of a volume.
///
/// # Errors
/// There is no volume.
pub(crate) fn whole_path(volume: &Path) -> Result<PathBuf> {
    frit_volume::inspect(volume)?;
    frit_core::paths::canonical(volume).into_diagnostic().wrap_err_with(|| volume.display().to_string())
}

/// Reports why a volume could not be opened. Returns the exit code for that.
pub(crate) fn not_opened(e: frit_volume::Error) -> Result<ExitCode> {
    report(&Report::new(e))?;
    Ok(ExitCode::from(NOT_OPENED))
}

//! Hints of writes that a server starts with.

use frit_core::HintRange;
use frit_serve::hints::{HintFile, HintOptions, ProcessRule};
use miette::{IntoDiagnostic, Result, WrapErr};
use std::path::Path;

/// Command-line options of hints.
#[derive(clap::Args, Debug)]
pub(super) struct HintArgs {
    /// Give writes to a range a hint: metadata, hot or cold, such as 0+64M=metadata. Can be given
    /// again.
    #[arg(long, value_name = "OFFSET+LENGTH=HINT")]
    hint: Vec<HintRange>,
    /// Recognise metadata of ext4, XFS and btrfs in what clients write, and give it the metadata
    /// hint.
    #[arg(long)]
    detect_metadata: bool,
    /// Give writes of a process a hint, by the name in /proc/PID/comm. Only FUSE transmits the
    /// process of a request. Can be given again.
    #[arg(long, value_name = "NAME=HINT", requires = "fuse")]
    hint_process: Vec<ProcessRule>,
}

impl HintArgs {
    /// Returns the hints of the command line, and those that the volume keeps.
    pub(super) fn options(&self, volume: &Path) -> Result<HintOptions> {
        let file = HintFile::of(volume);
        let saved = file.load().into_diagnostic().wrap_err_with(|| {
            format!("the hints that the volume keeps cannot be read: {}", file.path().display())
        })?;
        Ok(HintOptions {
            ranges: [&saved.ranges[..], &self.hint].concat(),
            detect_metadata: saved.detect_metadata || self.detect_metadata,
            processes: self.hint_process.clone(),
        })
    }
}

//! Progress bar of a run on standard error, if that is a terminal.

use frit_replay::JobProgress;
use indicatif::{ProgressBar, ProgressStyle};

/// A progress bar, removed when this is dropped.
pub(super) struct RunProgress {
    bar: ProgressBar,
    name: String,
}

impl RunProgress {
    pub(super) fn new(quiet: bool, name: &str, length: Option<u64>) -> RunProgress {
        let bar = match (quiet, length) {
            (true, _) => ProgressBar::hidden(),
            (false, Some(n)) => ProgressBar::new(n),
            (false, None) => ProgressBar::new_spinner(),
        };
        let template = match length {
            Some(_) => "{msg} {wide_bar} {percent} %, {human_pos} requests, {eta} left",
            None => "{spinner} {msg}: {human_pos} requests, {elapsed}",
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_message(name.to_owned());
        RunProgress { bar, name: name.to_owned() }
    }

    /// Updates the position.
    pub(super) fn at(&self, progress: JobProgress) {
        let (n, warming) = match progress {
            JobProgress::Warmed(n) => (n, true),
            JobProgress::Scanned(n) | JobProgress::Served(n) => (n, false),
        };
        if n < self.bar.position() || self.bar.position() == 0 {
            let part = if warming { ", warm-up" } else { "" };
            self.bar.set_message(format!("{}{part}", self.name));
        }
        self.bar.set_position(n);
    }
}

impl Drop for RunProgress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

//! Progress bar of a run on standard error, if that is a terminal.

use frit_replay::JobProgress;
use indicatif::{ProgressBar, ProgressStyle};
use std::cell::Cell;

/// A progress bar, removed when this is dropped.
pub(super) struct RunProgress {
    bar: ProgressBar,
    name: String,
    /// The message says that the run warms up.
    warming: Cell<bool>,
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
        RunProgress { bar, name: name.to_owned(), warming: Cell::new(false) }
    }

    /// Updates the position.
    pub(super) fn at(&self, progress: JobProgress) {
        let (n, warming) = match progress {
            JobProgress::Warmed(n) => (n, true),
            JobProgress::Scanned(n) | JobProgress::Served(n) => (n, false),
        };
        // The first measured position may be above the last one of the warm-up.
        if self.warming.replace(warming) != warming {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_label_of_the_warm_up_ends_with_it() {
        let progress = RunProgress::new(true, "hfsl-small", Some(1000));
        let after = |at: JobProgress| {
            progress.at(at);
            progress.bar.message()
        };
        assert_eq!(after(JobProgress::Scanned(500)), "hfsl-small");
        assert_eq!(after(JobProgress::Warmed(100)), "hfsl-small, warm-up");
        assert_eq!(after(JobProgress::Warmed(200)), "hfsl-small, warm-up");
        // The first position after a short warm-up is above all of its positions.
        assert_eq!(after(JobProgress::Served(400)), "hfsl-small");
        assert_eq!(after(JobProgress::Served(800)), "hfsl-small");
    }
}

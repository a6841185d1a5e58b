//! Progress bar on standard error, if that is a terminal, and an observer of commands that advances it.

use frit_core::{Cmd, CommandObserver, Tok};
use indicatif::{ProgressBar, ProgressStyle};

/// A progress bar that counts bytes, removed when this is dropped.
pub(crate) struct ByteProgress {
    bar: ProgressBar,
}

impl ByteProgress {
    /// Returns a bar for a known number of bytes, or a spinner without one.
    pub(crate) fn bytes(quiet: bool, what: &str, length: Option<u64>) -> ByteProgress {
        let bar = match (quiet, length) {
            (true, _) => ProgressBar::hidden(),
            (false, Some(n)) => ProgressBar::new(n),
            (false, None) => ProgressBar::new_spinner(),
        };
        let bar = ByteProgress { bar };
        bar.begin(what, length);
        bar
    }

    /// Restarts the bar for another phase.
    pub(crate) fn begin(&self, what: &str, length: Option<u64>) {
        let template = match length {
            Some(_) => "{msg} {wide_bar} {percent} %, {bytes_per_sec}, {eta} left",
            None => "{spinner} {msg}: {bytes}, {elapsed}",
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            self.bar.set_style(style);
        }
        self.bar.set_message(what.to_owned());
        if let Some(n) = length {
            self.bar.set_length(n);
        }
        self.bar.reset();
    }

    /// Sets the position.
    pub(crate) fn at(&self, bytes: u64) {
        self.bar.set_position(bytes);
    }

    fn add(&self, bytes: u64) {
        self.bar.inc(bytes);
    }
}

impl Drop for ByteProgress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Advances a progress bar by the bytes read.
pub(crate) struct ReadProgress {
    bar: ByteProgress,
    read: u64,
}

/// Number of read bytes between two updates of the bar: an update costs more than a read.
const EVERY: u64 = 4 << 20;

impl ReadProgress {
    pub(crate) fn new(bar: ByteProgress) -> ReadProgress {
        ReadProgress { bar, read: 0 }
    }

    /// Returns the bar.
    pub(crate) fn bar(&mut self) -> &mut ByteProgress {
        &mut self.bar
    }
}

impl CommandObserver for ReadProgress {
    fn command(&mut self, cmd: &Cmd, _: Tok, _: Tok) {
        if cmd.op.is_read() {
            self.read += u64::from(cmd.len);
            if self.read >= EVERY {
                self.bar.add(self.read);
                self.read = 0;
            }
        }
    }
}

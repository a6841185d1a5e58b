//! The log of a server: rare messages of one line each.

use frit_core::text::Escaped;
use std::fmt;
use std::sync::Arc;

/// Receives log lines for the operator of a server.
#[derive(Clone)]
pub struct Logger(Arc<dyn Fn(&str) + Send + Sync>);

impl Logger {
    /// Creates a log that passes its lines to a function.
    pub fn new(line: impl Fn(&str) + Send + Sync + 'static) -> Logger {
        Logger(Arc::new(line))
    }

    /// Creates a log that discards its lines.
    #[must_use]
    pub fn none() -> Logger {
        Logger::new(|_| {})
    }

    /// Logs one line. Control characters are escaped, since clients control parts of the text.
    pub fn write_line(&self, line: impl fmt::Display) {
        (self.0)(&Escaped(&line.to_string()).to_string());
    }
}

impl fmt::Debug for Logger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Logger")
    }
}

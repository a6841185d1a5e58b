//! What a server has to say while it runs: rare, one line each.

use frit_core::text::Escaped;
use std::fmt;
use std::sync::Arc;

/// Takes lines that a person who runs a server should see.
#[derive(Clone)]
pub struct Log(Arc<dyn Fn(&str) + Send + Sync>);

impl Log {
    /// Lines go to a function.
    pub fn new(line: impl Fn(&str) + Send + Sync + 'static) -> Log {
        Log(Arc::new(line))
    }

    /// Lines go nowhere.
    #[must_use]
    pub fn none() -> Log {
        Log::new(|_| {})
    }

    /// Says one line. Control characters in it are escaped: clients choose parts of what is said.
    pub fn say(&self, line: impl fmt::Display) {
        (self.0)(&Escaped(&line.to_string()).to_string());
    }
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Log")
    }
}

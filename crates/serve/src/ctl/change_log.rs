//! Log of the parameter changes of a volume: user, time and values.

use super::rights::PeerCredentials;
use super::wire::ParamChange;
use frit_core::paths::OpenOptions;
use frit_core::text::Escaped;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The log file in a volume's directory. Each change appends one line; the file is never rewritten.
#[derive(Clone, Debug)]
pub struct ChangeLog {
    path: PathBuf,
}

/// The process that made a change.
pub type ChangeAuthor = PeerCredentials;

impl ChangeLog {
    /// Name of the file.
    pub const NAME: &'static str = "changes.log";

    /// Returns the log of a volume.
    #[must_use]
    pub fn of(volume: &Path) -> ChangeLog {
        ChangeLog { path: volume.join(ChangeLog::NAME) }
    }

    /// Appends changes in the format `2026-01-31T12:00:00Z uid 1000 pid 4711 SSW: 2048 -> 4096`.
    /// The lines are durable when the function returns.
    ///
    /// # Errors
    /// The error of the host.
    pub fn append(&self, at: SystemTime, author: ChangeAuthor, changes: &[ParamChange]) -> io::Result<()> {
        if changes.is_empty() {
            return Ok(());
        }
        let lines: String = changes.iter().map(|c| line(at, author, c) + "\n").collect();
        let mut file = OpenOptions::new().append(true).create(true).mode(0o600).open(&self.path)?;
        file.write_all(lines.as_bytes())?;
        file.sync_data()
    }
}

/// Formats a change as one line.
pub(super) fn line(at: SystemTime, author: ChangeAuthor, change: &ParamChange) -> String {
    let ParamChange { key, old, new } = change;
    let at = humantime::format_rfc3339_seconds(at);
    let [key, old, new] = [key, old, new].map(|text| Escaped(text));
    format!("{at} uid {} pid {} {key}: {old} -> {new}", author.uid, author.pid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn changes_are_appended() {
        let dir = tempfile::tempdir().unwrap();
        let log = ChangeLog::of(dir.path());
        let at = SystemTime::UNIX_EPOCH + Duration::from_secs(86_400);
        let change = |new: &str| ParamChange { key: "gc".into(), old: "greedy".into(), new: new.into() };
        log.append(at, ChangeAuthor { uid: 7, pid: 8 }, &[]).unwrap();
        assert!(!dir.path().join("changes.log").exists());
        log.append(at, ChangeAuthor { uid: 7, pid: 8 }, &[change("fifo")]).unwrap();
        log.append(at, ChangeAuthor { uid: 7, pid: 9 }, &[change("off")]).unwrap();
        let text = std::fs::read_to_string(dir.path().join("changes.log")).unwrap();
        assert_eq!(
            text,
            "1970-01-02T00:00:00Z uid 7 pid 8 gc: greedy -> fifo\n1970-01-02T00:00:00Z uid 7 pid 9 gc: greedy -> off\n"
        );
    }
}

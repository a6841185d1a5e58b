//! Problems of a trace: they are counted, kept and shown.

use frit_core::Nanos;
use serde::Serialize;

/// Maximum number of malformed lines that are kept to be shown.
pub const MALFORMED_SHOWN_MAX: usize = 20;

/// Maximum number of characters of a malformed line that are kept.
const SNIPPET: usize = 100;

/// Reason for which a line is malformed.
pub(crate) type Reason = &'static str;

/// A line that could not be parsed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct MalformedLine {
    /// Line number, from 1 (for a binary format, the number of the record).
    pub line: u64,
    /// The line, shortened and escaped.
    pub text: String,
    /// Reason for which the line is malformed.
    pub reason: &'static str,
}

/// Problems of a trace.
#[derive(Clone, Default, Debug, PartialEq, Eq, Serialize)]
pub struct Problems {
    /// Number of lines (or binary records) that were read.
    pub lines: u64,
    /// Number of lines that could not be parsed.
    pub malformed: u64,
    /// The first malformed lines.
    pub shown: Vec<MalformedLine>,
    /// Number of requests with a time before that of the previous request. They keep their position
    /// and arrive together with the previous request.
    pub backwards: u64,
    /// Largest such step backwards.
    #[serde(rename = "backwards_max_ns")]
    pub backwards_max: Nanos,
    /// Number of steps of more than 30 days between two requests, forwards or backwards, which
    /// indicate that the clock was set. They are replaced by a gap of zero.
    pub clock_steps: u64,
    /// Number of requests that did not consist of whole sectors; they were widened to whole
    /// sectors.
    pub widened: u64,
    /// Description of the truncation, if the input is truncated.
    pub cut: Option<String>,
    /// Other notes.
    pub notes: Vec<String>,
}

impl Problems {
    /// Counts a malformed line, and keeps it if it is among the first.
    #[cold]
    pub(crate) fn malformed(&mut self, line: u64, text: &[u8], reason: Reason) {
        self.malformed += 1;
        if self.shown.len() < MALFORMED_SHOWN_MAX {
            self.shown.push(MalformedLine { line, text: snippet(text), reason });
        }
    }

    /// Returns `true` if there are no problems.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.malformed == 0
            && self.backwards == 0
            && self.clock_steps == 0
            && self.widened == 0
            && self.cut.is_none()
            && self.notes.is_empty()
    }

    /// Returns one sentence for each problem, for display.
    #[must_use]
    pub fn sentences(&self) -> Vec<String> {
        let mut out = Vec::new();
        if self.malformed > 0 {
            out.push(format!("{} of {} lines are malformed and were skipped", self.malformed, self.lines));
            out.extend(self.shown.iter().map(|m| format!("  line {}: {}: {}", m.line, m.reason, m.text)));
            if self.malformed > self.shown.len() as u64 {
                out.push(format!("  … and {} more", self.malformed - self.shown.len() as u64));
            }
        }
        if self.backwards > 0 {
            out.push(format!(
                "{} requests have a time before that of the previous request (at most {} before); they keep their \
                 position and arrive together with it",
                self.backwards, self.backwards_max
            ));
        }
        if self.clock_steps > 0 {
            out.push(format!(
                "the clock was set {} times (steps of more than 30 days); such a step counts as zero time",
                self.clock_steps
            ));
        }
        if self.widened > 0 {
            out.push(format!(
                "{} requests are not whole sectors and were widened to whole sectors",
                self.widened
            ));
        }
        out.extend(self.cut.clone());
        out.extend(self.notes.iter().cloned());
        out
    }
}

/// Returns a line, shortened and with unprintable bytes escaped.
pub(crate) fn snippet(line: &[u8]) -> String {
    let cut = &line[..line.len().min(SNIPPET)];
    let mut s: String = cut.escape_ascii().to_string();
    if s.len() > 2 * SNIPPET {
        s.truncate(2 * SNIPPET);
    }
    if cut.len() < line.len() {
        s.push('…');
    }
    s
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_are_shown_but_all_are_counted() {
        let mut p = Problems::default();
        assert!(p.is_clean());
        for i in 0..50 {
            p.malformed(i, b"\xff\x00", "no number");
        }
        assert_eq!((p.malformed, p.shown.len()), (50, MALFORMED_SHOWN_MAX));
        assert_eq!(p.shown[0].text, "\\xff\\x00");
        assert!(p.sentences().last().unwrap().contains("30 more"));
        assert!(!p.is_clean());
    }
}

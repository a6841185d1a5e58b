//! What was wrong with a trace and was not lost from sight.

use frit_core::Nanos;
use serde::Serialize;

/// How many malformed lines are kept to be shown.
pub const SHOWN: usize = 20;

/// Characters of a malformed line that are kept.
const SNIPPET: usize = 100;

/// Why a line is malformed.
pub(crate) type Reason = &'static str;

/// A line that could not be understood.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Malformed {
    /// Its number, from 1 (for a binary format, the record's).
    pub line: u64,
    /// The line, shortened and escaped.
    pub text: String,
    /// What is wrong with it.
    pub reason: &'static str,
}

/// What was wrong with a trace.
#[derive(Clone, Default, Debug, PartialEq, Eq, Serialize)]
pub struct Problems {
    /// Lines (or binary records) that were looked at.
    pub lines: u64,
    /// Lines that could not be understood.
    pub malformed: u64,
    /// The first of them.
    pub shown: Vec<Malformed>,
    /// Requests whose time lies before that of the request before them. They keep their place and
    /// arrive with the request before.
    pub backwards: u64,
    /// The longest such step back.
    #[serde(rename = "backwards_max_ns")]
    pub backwards_max: Nanos,
    /// Steps of more than 30 days between two requests, forth or back: a clock that was set. They count as no
    /// time at all.
    pub clock_steps: u64,
    /// Requests whose bytes were not whole sectors; they were widened to whole ones.
    pub widened: u64,
    /// Where the input was cut off, when it was.
    pub cut: Option<String>,
    /// Other remarks.
    pub notes: Vec<String>,
}

impl Problems {
    /// Counts a malformed line and keeps it when it is among the first.
    #[cold]
    pub(crate) fn malformed(&mut self, line: u64, text: &[u8], reason: Reason) {
        self.malformed += 1;
        if self.shown.len() < SHOWN {
            self.shown.push(Malformed { line, text: snippet(text), reason });
        }
    }

    /// Whether there is nothing to tell.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.malformed == 0
            && self.backwards == 0
            && self.clock_steps == 0
            && self.widened == 0
            && self.cut.is_none()
            && self.notes.is_empty()
    }

    /// One sentence a problem, ready to be shown.
    #[must_use]
    pub fn sentences(&self) -> Vec<String> {
        let mut out = Vec::new();
        if self.malformed > 0 {
            out.push(format!("{} of {} lines are malformed and were left out", self.malformed, self.lines));
            out.extend(self.shown.iter().map(|m| format!("  line {}: {}: {}", m.line, m.reason, m.text)));
            if self.malformed > self.shown.len() as u64 {
                out.push(format!("  … and {} more", self.malformed - self.shown.len() as u64));
            }
        }
        if self.backwards > 0 {
            out.push(format!(
                "{} requests carry a time before that of the request above them (at most {} before); they keep their \
                 place and arrive together with it",
                self.backwards, self.backwards_max
            ));
        }
        if self.clock_steps > 0 {
            out.push(format!(
                "the clock was set {} times (steps of more than 30 days); such a step counts as no time",
                self.clock_steps
            ));
        }
        if self.widened > 0 {
            out.push(format!(
                "{} requests are not whole sectors and were widened to whole ones",
                self.widened
            ));
        }
        out.extend(self.cut.clone());
        out.extend(self.notes.iter().cloned());
        out
    }
}

/// A line, shortened and with everything unprintable escaped.
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
        assert_eq!((p.malformed, p.shown.len()), (50, SHOWN));
        assert_eq!(p.shown[0].text, "\\xff\\x00");
        assert!(p.sentences().last().unwrap().contains("30 more"));
        assert!(!p.is_clean());
    }
}

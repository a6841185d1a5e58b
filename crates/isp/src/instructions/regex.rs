//! Matches of a regular expression: counts, and the first positions.

use super::words::INLINE_POSITIONS;
use super::{Answer, Kind, Report};
use crate::engine::{Charge, Control, Start};
use crate::matcher::{Matcher, Pattern, is_quick_to_compile, without_line_feed};
use crate::outcome::Failure;
use crate::scan::{Begin, Finished, Flow, Operation, Role, StepTime, Unit, View};
use crate::text::Keys;
use serde::Serialize;
use serde_json::Value;
use std::sync::Arc;

/// Largest range that the caller's thread scans itself.
const INLINE_BYTES: u64 = 16 << 10;

/// Counts the matches of a regular expression in lines, and the lines that match.
///
/// A match does not extend over lines. Matches of a line do not overlap, and empty ones are not
/// counted (as in `grep -o`). A line with only an empty match counts as a line (as in `grep -c`).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Regex {
    /// Regular expression in the syntax of the crate `regex`. `^` and `$` match at the ends of lines.
    pub regex: String,
    /// Number of positions to report, at most.
    pub positions: usize,
}

/// Results of `Regex`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct RegexAnswer {
    /// Number of matches.
    pub count: u64,
    /// Number of lines with a match.
    pub lines: u64,
    /// Positions of the first matches, ascending.
    pub positions: Vec<u64>,
}

impl Report for RegexAnswer {
    fn bytes(&self) -> usize {
        size_of_val(&self.positions[..])
    }
}

impl Kind for Regex {
    const NAME: &'static str = "regex";

    fn parse(value: &Value, keys: &mut Keys<'_>) -> Result<Self, Failure> {
        let regex = keys.as_text("regex", value)?;
        Ok(Self { regex, positions: keys.size("positions")?.unwrap_or(0) })
    }

    fn held_bytes(&self) -> usize {
        self.regex.len()
    }

    fn starts_quickly(&self) -> bool {
        is_quick_to_compile(&self.regex)
    }

    fn start(&self, start: Start) -> Result<(), Failure> {
        let control = Arc::clone(&start.control);
        let matcher = Matcher::of_lines(&Pattern::Regex(self.regex.clone()), control.account())?;
        start.with(Search { matcher, positions: self.positions, control })
    }
}

/// Operation of `Regex`.
struct Search {
    matcher: Matcher,
    positions: usize,
    control: Arc<Control>,
}

struct Found {
    answer: RegexAnswer,
    role: Role,
    /// Number of positions for which there is memory.
    max: usize,
    overflow: bool,
    charge: Charge,
}

impl Found {
    fn add(&mut self, at: u64, wanted: usize) -> Result<(), Failure> {
        if self.answer.count < wanted as u64 {
            if self.answer.positions.len() < self.max {
                self.charge.push(&mut self.answer.positions, at)?;
            } else {
                self.overflow = true;
            }
        }
        self.answer.count += 1;
        Ok(())
    }
}

impl Operation for Search {
    type Results = Found;

    fn unit(&self) -> Unit {
        Unit::Lines
    }

    /// Each match of a line can be found only at its end, so a long line can take very long.
    fn step_time(&self) -> StepTime {
        StepTime::Long
    }

    fn inline_bytes(&self, usual: u64) -> u64 {
        if self.positions > INLINE_POSITIONS {
            return 0;
        }
        self.matcher.inline_bytes(usual.min(INLINE_BYTES))
    }

    fn begin(&self, begin: Begin) -> Found {
        let answer = RegexAnswer { count: 0, lines: 0, positions: Vec::new() };
        let (max, charge) = (begin.memory / size_of::<u64>(), begin.account.charge());
        Found { answer, role: begin.role, max, overflow: false, charge }
    }

    fn view(&self, found: &mut Found, view: View<'_>) -> Result<Flow, Failure> {
        let (mut searches, mut from) = (self.matcher.searches(), 0);
        let check = || self.control.check_within(StepTime::Long);
        let mut added = Ok(());
        while let Some((begin, end)) = searches.next_line(view.bytes, from, &check)? {
            found.answer.lines += 1;
            let line = without_line_feed(&view.bytes[begin..end]);
            searches.matches(line, &check, |range| {
                if added.is_ok() {
                    added = found.add(view.at + (begin + range.start) as u64, self.positions);
                }
            })?;
            added.clone()?;
            from = end;
        }
        Ok(if found.overflow && found.role == Role::Part { Flow::Overflow } else { Flow::Continue })
    }

    fn merge(&self, total: &mut Found, next: Found) -> Result<Flow, Failure> {
        let counts = (total.answer.count + next.answer.count, total.answer.lines + next.answer.lines);
        for at in next.answer.positions {
            total.add(at, self.positions)?;
        }
        (total.answer.count, total.answer.lines) = counts;
        Ok(Flow::Continue)
    }

    fn finish(&self, total: Found) -> Result<Finished, Failure> {
        Ok(Finished::new(Answer::Regex(total.answer), total.overflow, total.charge))
    }
}

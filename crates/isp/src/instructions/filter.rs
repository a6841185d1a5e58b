//! Lines that match a pattern.

use super::{Answer, Kind, Report};
use crate::engine::{Charge, Control, Start, make_room};
use crate::matcher::{Check, Matcher, Pattern, without_line_feed};
use crate::outcome::Failure;
use crate::scan::{Begin, Finished, Flow, Operation, Role, StepTime, Unit, View};
use crate::text::Keys;
use serde::Serialize;
use serde_json::Value;
use std::sync::Arc;

/// Returns the lines that match a pattern, or those that do not.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Filter {
    /// Pattern of a line without its line feed.
    pub pattern: Pattern,
    /// `true` for the lines that do not match.
    pub invert: bool,
    /// Number of lines to return, at most.
    pub limit: Option<u64>,
}

/// Results of `Filter`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct FilterAnswer {
    /// Number of returned lines.
    pub lines: u64,
    /// The lines, each with a line feed.
    #[serde(skip)]
    pub payload: Vec<u8>,
}

impl Report for FilterAnswer {
    fn payload(&self) -> &[u8] {
        &self.payload
    }
}

impl Kind for Filter {
    const NAME: &'static str = "filter";

    fn parse(value: &Value, keys: &mut Keys<'_>) -> Result<Self, Failure> {
        let pattern = Pattern::parse("filter", value)?;
        Ok(Self { pattern, invert: keys.flag("invert")?, limit: keys.number("limit")? })
    }

    fn held_bytes(&self) -> usize {
        self.pattern.held_bytes()
    }

    fn starts_quickly(&self) -> bool {
        self.pattern.compiles_quickly()
    }

    fn start(&self, start: Start) -> Result<(), Failure> {
        let control = Arc::clone(&start.control);
        start.with(Search {
            matcher: Matcher::of_lines(&self.pattern, control.account())?,
            invert: self.invert,
            limit: self.limit.unwrap_or(u64::MAX),
            control,
        })
    }
}

/// Calls `each` with the lines of a block that match (or do not), each with its line feed if it has
/// one, until `each` returns `false`.
pub(super) fn matching_lines(
    matcher: &Matcher,
    invert: bool,
    block: &[u8],
    check: Check<'_>,
    each: &mut dyn FnMut(&[u8]) -> bool,
) -> Result<(), Failure> {
    let (mut searches, mut from) = (matcher.searches(), 0);
    loop {
        let found = searches.next_line(block, from, check)?;
        let (begin, end) = found.unwrap_or((block.len(), block.len()));
        if invert {
            let mut between = &block[from..begin];
            while !between.is_empty() {
                let len = memchr::memchr(b'\n', between).map_or(between.len(), |at| at + 1);
                if !each(&between[..len]) {
                    return Ok(());
                }
                between = &between[len..];
            }
        } else if found.is_some() && !each(&block[begin..end]) {
            return Ok(());
        }
        if found.is_none() {
            return Ok(());
        }
        from = end;
    }
}

/// Operation of `Filter`.
struct Search {
    matcher: Matcher,
    invert: bool,
    limit: u64,
    control: Arc<Control>,
}

/// Records in order, up to a limit of their number and one of their memory.
pub(super) struct Collected {
    pub(super) records: u64,
    pub(super) bytes: Vec<u8>,
    pub(super) truncated: bool,
    role: Role,
    memory: usize,
    pub(super) charge: Charge,
}

impl Collected {
    pub(super) fn new(begin: &Begin) -> Self {
        let charge = begin.account.charge();
        Self {
            records: 0,
            bytes: Vec::new(),
            truncated: false,
            role: begin.role,
            memory: begin.memory,
            charge,
        }
    }

    pub(super) fn is_part(&self) -> bool {
        self.role == Role::Part
    }

    pub(super) fn memory(&self) -> usize {
        self.memory
    }

    /// Adds a record of bytes that `write` appends. It is removed again if it exceeds the memory.
    pub(super) fn add(
        &mut self,
        limit: u64,
        write: impl FnOnce(&mut Vec<u8>, &mut Charge) -> Result<(), Failure>,
    ) -> Result<Flow, Failure> {
        if self.records >= limit {
            return Ok(Flow::Done);
        }
        let before = self.bytes.len();
        write(&mut self.bytes, &mut self.charge)?;
        if self.bytes.len() > self.memory {
            self.bytes.truncate(before);
            self.truncated = true;
            return Ok(if self.role == Role::Part { Flow::Overflow } else { Flow::Done });
        }
        self.charge.cover(self.bytes.len())?;
        self.records += 1;
        Ok(if self.records >= limit { Flow::Done } else { Flow::Continue })
    }

    /// Adds a record.
    pub(super) fn add_bytes(&mut self, limit: u64, record: &[u8]) -> Result<Flow, Failure> {
        self.add(limit, |bytes, _| {
            bytes.extend_from_slice(record);
            Ok(())
        })
    }

    /// Appends the lines of the next part.
    pub(super) fn append_lines(&mut self, next: &Self, limit: u64) -> Result<Flow, Failure> {
        let mut rest = &next.bytes[..];
        let fits = self.bytes.len() + rest.len() <= self.memory && self.records + next.records <= limit;
        if fits {
            self.charge.cover(self.bytes.len() + rest.len())?;
            make_room(&mut self.bytes, rest.len());
            self.bytes.extend_from_slice(rest);
            self.records += next.records;
            return Ok(if self.records >= limit { Flow::Done } else { Flow::Continue });
        }
        while let Some(line_feed) = memchr::memchr(b'\n', rest) {
            let (line, others) = rest.split_at(line_feed + 1);
            if self.add_bytes(limit, line)? == Flow::Done {
                return Ok(Flow::Done);
            }
            rest = others;
        }
        Ok(Flow::Continue)
    }
}

impl Operation for Search {
    type Results = Collected;

    fn unit(&self) -> Unit {
        Unit::Lines
    }

    fn step_time(&self) -> StepTime {
        self.matcher.step_time()
    }

    fn inline_bytes(&self, usual: u64) -> u64 {
        self.matcher.inline_bytes(usual)
    }

    fn begin(&self, begin: Begin) -> Collected {
        Collected::new(&begin)
    }

    fn view(&self, lines: &mut Collected, view: View<'_>) -> Result<Flow, Failure> {
        let mut flow = Ok(Flow::Continue);
        make_room(&mut lines.bytes, view.bytes.len() + 1);
        let check = || self.control.check_within(self.matcher.step_time());
        matching_lines(&self.matcher, self.invert, view.bytes, &check, &mut |line| {
            flow = lines.add(self.limit, |bytes, _| {
                bytes.extend_from_slice(without_line_feed(line));
                bytes.push(b'\n');
                Ok(())
            });
            flow == Ok(Flow::Continue)
        })?;
        flow
    }

    fn merge(&self, total: &mut Collected, next: Collected) -> Result<Flow, Failure> {
        total.append_lines(&next, self.limit)
    }

    fn finish(&self, total: Collected) -> Result<Finished, Failure> {
        let answer = FilterAnswer { lines: total.records, payload: total.bytes };
        Ok(Finished::new(Answer::Filter(answer), total.truncated, total.charge))
    }
}

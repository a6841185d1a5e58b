//! Fields of records that meet conditions.

use super::filter::Collected;
use super::{Answer, Kind, Report};
use crate::engine::{Start, make_room};
use crate::outcome::Failure;
use crate::records::{Condition, Decoder, Format, Record, Table, held_bytes, is_made_quickly};
use crate::scan::{Begin, Finished, Flow, Head, Operation, StepTime, Unit, View};
use crate::text::Keys;
use serde::Serialize;
use serde_json::Value;

/// Returns fields of the records that meet all conditions, in the format of the file.
#[derive(Clone, PartialEq, Debug)]
pub struct Select {
    /// Names of the fields, in the order of the output. In JSON, `a.b` is the key `b` below `a`.
    pub fields: Vec<String>,
    /// Format of the records.
    pub format: Format,
    /// Conditions.
    pub conditions: Vec<Condition>,
    /// Number of records to return, at most.
    pub limit: Option<u64>,
}

/// Results of `Select`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct SelectAnswer {
    /// Number of returned records.
    pub records: u64,
    /// Number of lines that are not JSON objects.
    pub invalid: u64,
    /// The records, one a line (in CSV, more if a field has line feeds), without a header.
    #[serde(skip)]
    pub payload: Vec<u8>,
}

impl Report for SelectAnswer {
    fn payload(&self) -> &[u8] {
        &self.payload
    }
}

impl Kind for Select {
    const NAME: &'static str = "select";

    fn parse(value: &Value, keys: &mut Keys<'_>) -> Result<Self, Failure> {
        Ok(Self {
            fields: keys.names("select", value)?,
            format: Format::parse(keys)?,
            conditions: keys.take("where").map_or(Ok(Vec::new()), Condition::parse_all)?,
            limit: keys.number("limit")?,
        })
    }

    fn held_bytes(&self) -> usize {
        held_bytes(self.fields.len(), &self.conditions)
    }

    fn starts_quickly(&self) -> bool {
        is_made_quickly(self.fields.len(), &self.conditions)
    }

    fn start(&self, start: Start) -> Result<(), Failure> {
        if self.fields.is_empty() {
            return Err(Failure::invalid("\"select\" needs at least one field"));
        }
        let table = Table::new(self.format, self.fields.clone(), &self.conditions, &start.control)?;
        start.with(Selection { table, fields: self.fields.len(), limit: self.limit.unwrap_or(u64::MAX) })
    }
}

/// Operation of `Select`.
struct Selection {
    table: Table,
    fields: usize,
    limit: u64,
}

struct Selected {
    decoder: Decoder,
    lines: Collected,
    /// Records of a part.
    ends: Vec<End>,
}

/// End of a record of a part.
struct End {
    bytes: usize,
    /// Number of lines before the record that are not JSON objects.
    invalid: u64,
}

impl Selection {
    /// Adds a record.
    fn add(&self, lines: &mut Collected, ends: &mut Vec<End>, record: &Record<'_>) -> Result<Flow, Failure> {
        let max = lines.memory();
        let flow = lines.add(self.limit, |line, charge| {
            self.table.write(line, charge, record.cells, (self.fields, max))
        })?;
        if lines.is_part() {
            ends.push(End { bytes: lines.bytes.len(), invalid: record.invalid });
            let bytes = ends.len() * size_of::<End>();
            if bytes > max {
                return Ok(Flow::Overflow);
            }
            lines.charge.cover(lines.bytes.len() + bytes)?;
        }
        Ok(flow)
    }
}

impl Operation for Selection {
    type Results = Selected;

    fn unit(&self) -> Unit {
        self.table.unit()
    }

    fn prepare(&self, head: &dyn Head) -> Result<(), Failure> {
        self.table.prepare(head)
    }

    fn step_time(&self) -> StepTime {
        self.table.step_time()
    }

    fn inline_bytes(&self, usual: u64) -> u64 {
        self.table.inline_bytes(usual)
    }

    fn begin(&self, begin: Begin) -> Selected {
        let (decoder, lines) = (self.table.decoder(&begin, 0), Collected::new(&begin));
        Selected { decoder, lines, ends: Vec::new() }
    }

    fn view(&self, selected: &mut Selected, view: View<'_>) -> Result<Flow, Failure> {
        let Selected { decoder, lines, ends } = selected;
        make_room(&mut lines.bytes, view.bytes.len());
        self.table.view(decoder, view, &mut |record| self.add(lines, ends, record))
    }

    fn end_of_part(&self, selected: &mut Selected) -> Result<Flow, Failure> {
        let Selected { decoder, lines, ends } = selected;
        self.table.end_of_part(decoder, &mut |record| self.add(lines, ends, record))
    }

    fn merge(&self, total: &mut Selected, next: Selected) -> Result<Flow, Failure> {
        let mut begin = 0;
        for End { bytes: end, invalid } in next.ends {
            let record = &next.lines.bytes[begin..end];
            if total.lines.add_bytes(self.limit, record)? == Flow::Done {
                // As if the scan had ended with this record.
                total.decoder.invalid += invalid;
                return Ok(Flow::Done);
            }
            begin = end;
        }
        total.decoder.invalid += next.decoder.invalid;
        Ok(Flow::Continue)
    }

    fn finish(&self, total: Selected) -> Result<Finished, Failure> {
        let Selected { decoder, lines, .. } = total;
        let answer = SelectAnswer { records: lines.records, invalid: decoder.invalid, payload: lines.bytes };
        Ok(Finished::new(Answer::Select(answer), lines.truncated, lines.charge))
    }
}

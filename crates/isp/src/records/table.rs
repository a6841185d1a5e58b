//! Records of a range, with the fields that an instruction reads.

use super::csv::{CsvReader, CsvRecord, write_field};
use super::json::{JsonFields, JsonValues};
use super::{Cell, Condition, Format, Test};
use crate::outcome::{Failure, Status};
use crate::scan::{Begin, Flow, Head, View};
use serde_json::Value;
use std::sync::OnceLock;

/// Bytes in which the header of CSV ends.
const HEADER_BYTES_MAX: usize = 64 << 10;

/// Function that gets the fields of a record that meets the conditions.
pub(crate) type Visit<'a> = dyn FnMut(&[Cell<'_>]) -> Result<Flow, Failure> + 'a;

/// Format, fields and conditions of an instruction on records.
pub(crate) struct Table {
    format: Format,
    /// Names of the fields that are read.
    fields: Vec<String>,
    tests: Vec<Test>,
    json: JsonFields,
    /// Names of the fields as JSON strings.
    quoted: Vec<String>,
    /// Number of the column of each field, and the position of the header.
    columns: OnceLock<(Vec<usize>, Option<u64>)>,
}

impl Table {
    /// Creates a table. `fields` are the fields that the instruction reads, and come first.
    pub(crate) fn new(
        format: Format,
        mut fields: Vec<String>,
        conditions: &[Condition],
    ) -> Result<Self, Failure> {
        let tests =
            conditions.iter().map(|condition| Test::new(condition, &mut fields)).collect::<Result<_, _>>()?;
        let json = JsonFields::new(&fields);
        let quoted = fields.iter().map(|field| Value::from(field.as_str()).to_string()).collect();
        Ok(Self { format, fields, tests, json, quoted, columns: OnceLock::new() })
    }

    /// Reads the header, and finds the columns.
    pub(crate) fn prepare(&self, head: &dyn Head) -> Result<(), Failure> {
        let Format::Csv { delimiter, header } = self.format else { return Ok(()) };
        let names = if header { header_names(&head.first(HEADER_BYTES_MAX)?, delimiter)? } else { None };
        let columns = if header && names.is_none() {
            vec![usize::MAX; self.fields.len()]
        } else {
            self.fields.iter().map(|field| column(field, names.as_deref())).collect::<Result<_, _>>()?
        };
        // A job prepares its operation once.
        let _ = self.columns.set((columns, header.then(|| head.range().start)));
        Ok(())
    }

    /// Creates a decoder for a part, or for a whole range.
    pub(crate) fn decoder(&self, begin: Begin) -> Decoder {
        let delimiter = if let Format::Csv { delimiter, .. } = self.format { delimiter } else { b',' };
        Decoder {
            reader: CsvReader::new(delimiter),
            values: JsonValues::default(),
            sequential: begin.sequential,
            ended: true,
            in_header: false,
            invalid: 0,
        }
    }

    /// Calls `visit` with the records of a view that meet the conditions.
    pub(crate) fn view(
        &self,
        decoder: &mut Decoder,
        view: View<'_>,
        visit: &mut Visit<'_>,
    ) -> Result<Flow, Failure> {
        if self.format == Format::JsonLines {
            return self.view_json(decoder, view, visit);
        }
        if !decoder.sequential && memchr::memchr(b'"', view.bytes).is_some() {
            // A line feed may be in quotes, so the begin of a line may not be that of a record.
            return Ok(Flow::Sequential);
        }
        if self.columns.get().is_some_and(|(_, header)| *header == Some(view.at)) {
            decoder.in_header = true;
        }
        decoder.ended = view.bytes.ends_with(b"\n");
        self.read_csv(decoder, view.bytes, visit)
    }

    /// Ends the last record of the range.
    pub(crate) fn end_of_part(&self, decoder: &mut Decoder, visit: &mut Visit<'_>) -> Result<Flow, Failure> {
        if self.format != Format::JsonLines && (decoder.sequential || !decoder.ended) {
            return self.read_csv(decoder, &[], visit);
        }
        Ok(Flow::Continue)
    }

    fn read_csv(&self, decoder: &mut Decoder, bytes: &[u8], visit: &mut Visit<'_>) -> Result<Flow, Failure> {
        let mut flow = Flow::Continue;
        let Decoder { reader, in_header, .. } = decoder;
        let (columns, _) = self.columns.get().map_or((&[][..], None), |(columns, header)| (columns, *header));
        reader.read(bytes, &mut |record| {
            if std::mem::take(in_header) {
                return Ok(true);
            }
            let cells = columns.iter().map(|column| record.field(*column).map_or(Cell::Missing, Cell::Csv));
            let cells: Cells<'_> = cells.collect();
            if self.accepts(&cells) {
                flow = visit(&cells)?;
            }
            Ok(flow == Flow::Continue)
        })?;
        Ok(flow)
    }

    fn view_json(
        &self,
        decoder: &mut Decoder,
        view: View<'_>,
        visit: &mut Visit<'_>,
    ) -> Result<Flow, Failure> {
        let mut rest = view.bytes;
        while !rest.is_empty() {
            let len = memchr::memchr(b'\n', rest).map_or(rest.len(), |at| at + 1);
            let (line, others) = rest.split_at(len);
            rest = others;
            if line.trim_ascii().is_empty() {
                continue;
            }
            if !self.json.read(line, &mut decoder.values) {
                decoder.invalid += 1;
                continue;
            }
            let values = &mut decoder.values;
            let cell = |field| self.json.field(field, line, values).map_or(Cell::Missing, Cell::Json);
            let cells: Cells<'_> = (0..self.fields.len()).map(cell).collect();
            if self.accepts(&cells) {
                let flow = visit(&cells)?;
                if flow != Flow::Continue {
                    return Ok(flow);
                }
            }
        }
        Ok(Flow::Continue)
    }

    fn accepts(&self, cells: &[Cell<'_>]) -> bool {
        self.tests.iter().all(|test| test.accepts(cells))
    }

    /// Appends the first fields of a record in the format of the table.
    pub(crate) fn write(&self, line: &mut Vec<u8>, cells: &[Cell<'_>], number: usize) {
        if let Format::Csv { delimiter, .. } = self.format {
            for (index, cell) in cells[..number].iter().enumerate() {
                if index > 0 {
                    line.push(delimiter);
                }
                write_field(line, &cell.text().unwrap_or_default(), delimiter);
            }
        } else {
            line.push(b'{');
            for (index, (name, cell)) in self.quoted.iter().zip(&cells[..number]).enumerate() {
                if index > 0 {
                    line.push(b',');
                }
                line.extend_from_slice(name.as_bytes());
                line.push(b':');
                line.extend_from_slice(if let Cell::Json(value) = cell { value } else { b"null" });
            }
            line.push(b'}');
        }
        line.push(b'\n');
    }
}

/// Fields of a record.
type Cells<'a> = Vec<Cell<'a>>;

/// State of the decoding of a part.
pub(crate) struct Decoder {
    reader: CsvReader,
    values: JsonValues,
    sequential: bool,
    /// `true` if the last view ended with a line feed.
    ended: bool,
    /// `true` if the next record is the header.
    in_header: bool,
    /// Number of lines that are not JSON objects.
    pub(crate) invalid: u64,
}

/// Names of the columns: the fields of the first record, if there is one.
fn header_names(first: &[u8], delimiter: u8) -> Result<Option<Vec<Vec<u8>>>, Failure> {
    let mut names: Option<Vec<Vec<u8>>> = None;
    let mut keep = |record: &CsvRecord<'_>| {
        let fields = (0..record.len()).filter_map(|index| record.field(index));
        names.get_or_insert_with(|| fields.map(<[u8]>::to_vec).collect());
        Ok(false)
    };
    let mut reader = CsvReader::new(delimiter);
    reader.read(first, &mut keep)?;
    if first.len() < HEADER_BYTES_MAX {
        // The range may end with its header.
        reader.read(&[], &mut keep)?;
    } else if names.is_none() {
        return Err(Failure::new(
            Status::Format,
            format!(
                "the first {HEADER_BYTES_MAX} bytes have no complete record with the names of columns; if there is \
                 none, set \"header\" to false, and name columns by their numbers from 1"
            ),
        ));
    }
    Ok(names)
}

/// Number of a column by its name, or by its number from 1.
fn column(field: &str, names: Option<&[Vec<u8>]>) -> Result<usize, Failure> {
    let Some(names) = names else {
        return match field.parse::<usize>() {
            Ok(number) if number > 0 => Ok(number - 1),
            _ => Err(Failure::invalid(format!(
                "{field:?} is not the number of a column; without a header, columns are named \"1\", \"2\" and so on"
            ))),
        };
    };
    names.iter().position(|name| name == field.as_bytes()).ok_or_else(|| {
        let names: Vec<_> = names.iter().map(|name| String::from_utf8_lossy(name)).collect();
        Failure::new(
            Status::Format,
            format!("there is no column {field:?}; the header has {}", names.join(", ")),
        )
    })
}

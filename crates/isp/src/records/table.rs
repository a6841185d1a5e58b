//! Records of a range, with the fields that an instruction reads.

use super::csv::{CsvReader, CsvRecord, write_field};
use super::json::{JsonFields, JsonValues};
use super::{Cell, Condition, Format, Test, TestInView};
use crate::engine::{Charge, Control};
use crate::matcher::{Expressions, is_quick_to_compile};
use crate::outcome::{Failure, Status};
use crate::scan::{Begin, Flow, Head, StepTime, Unit, View};
use serde_json::Value;
use std::sync::{Arc, OnceLock};

/// Bytes in which the header of CSV ends.
const HEADER_BYTES_MAX: usize = 64 << 10;

/// Byte order mark, which programs write at the begin of a file in UTF-8.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// Number of fields and conditions with which a view takes long.
const EXPENSIVE: usize = 16;

/// Memory of a field or condition in bytes, with its names, and its values in the records that are read at a time.
const FIELD_BYTES: usize = 1 << 10;

/// Largest number of fields and conditions, and of expressions in them, with which a table is made at once.
const QUICK_FIELDS: usize = 200;
const QUICK_EXPRESSIONS: usize = 4;

/// Returns `true` if a table is made within about a millisecond.
pub(crate) fn is_made_quickly(fields: usize, conditions: &[Condition]) -> bool {
    let mut regexes = conditions.iter().filter_map(Condition::regex);
    fields + conditions.len() <= QUICK_FIELDS
        && regexes.clone().count() <= QUICK_EXPRESSIONS
        && regexes.all(is_quick_to_compile)
}

/// Memory of fields and conditions of an instruction, beside their table.
pub(crate) fn held_bytes(fields: usize, conditions: &[Condition]) -> usize {
    (fields + conditions.len()) * FIELD_BYTES / 2
}

/// Record that meets the conditions.
pub(crate) struct Record<'a> {
    /// Fields, in the order of the table.
    pub(crate) cells: &'a [Cell<'a>],
    /// Number of lines of the part before it that are not JSON objects.
    pub(crate) invalid: u64,
}

/// Function that gets the records that meet the conditions.
pub(crate) type Visit<'a> = dyn FnMut(&Record<'_>) -> Result<Flow, Failure> + 'a;

/// Format, fields and conditions of an instruction on records.
pub(crate) struct Table {
    format: Format,
    /// Names of the fields that are read.
    fields: Vec<String>,
    tests: Vec<Test>,
    json: JsonFields,
    /// Names of the fields as JSON strings.
    quoted: Vec<String>,
    /// What is known after the preparation.
    prepared: OnceLock<Prepared>,
    control: Arc<Control>,
    step_time: StepTime,
    _charge: Charge,
}

struct Prepared {
    /// Begin of the range.
    start: u64,
    /// Number of the column of each field in CSV.
    columns: Vec<usize>,
}

impl Table {
    /// Creates a table. `fields` are the fields that the instruction reads, and come first.
    pub(crate) fn new(
        format: Format,
        mut fields: Vec<String>,
        conditions: &[Condition],
        control: &Arc<Control>,
    ) -> Result<Self, Failure> {
        let account = control.account();
        let charge = account.charged((fields.len() + conditions.len()) * FIELD_BYTES)?;
        let regexes = conditions.iter().filter(|condition| condition.regex().is_some()).count();
        let expressions = Expressions::new(account, regexes);
        let test = |condition| {
            // All of them together can take long.
            control.check_within(StepTime::Long)?;
            Test::new(condition, &mut fields, expressions)
        };
        let tests: Vec<_> = conditions.iter().map(test).collect::<Result<_, _>>()?;
        let json = JsonFields::new(&fields);
        let quoted = fields.iter().map(|field| Value::from(field.as_str()).to_string()).collect();
        let is_long = fields.len() + tests.len() > EXPENSIVE || tests.iter().any(Test::is_expensive);
        let step_time = if is_long { StepTime::Long } else { StepTime::Short };
        let (control, prepared) = (Arc::clone(control), OnceLock::new());
        Ok(Self { format, fields, tests, json, quoted, prepared, control, step_time, _charge: charge })
    }

    /// Reads the header, and finds the columns.
    pub(crate) fn prepare(&self, head: &dyn Head) -> Result<(), Failure> {
        let columns = match self.format {
            Format::JsonLines => Vec::new(),
            Format::Csv { header: false, .. } => {
                self.fields.iter().map(|field| column_number(field)).collect::<Result<_, _>>()?
            }
            Format::Csv { delimiter, header: true } => {
                match header_names(&head.first(HEADER_BYTES_MAX)?, delimiter)? {
                    Some(names) => {
                        self.fields.iter().map(|field| column(field, &names)).collect::<Result<_, _>>()?
                    }
                    None => vec![usize::MAX; self.fields.len()],
                }
            }
        };
        // A job prepares its operation once.
        let _ = self.prepared.set(Prepared { start: head.range().start, columns });
        Ok(())
    }

    /// Units of the views.
    pub(crate) fn unit(&self) -> Unit {
        if self.format == Format::JsonLines { Unit::Lines } else { Unit::Records }
    }

    /// Number of fields and conditions.
    fn cost(&self) -> usize {
        self.fields.len() + self.tests.len()
    }

    /// Returns the time that a view can take.
    pub(crate) fn step_time(&self) -> StepTime {
        self.step_time
    }

    /// Returns the largest range that the caller's thread scans itself.
    pub(crate) fn inline_bytes(&self, usual: u64) -> u64 {
        let usual = if self.cost() > EXPENSIVE { usual / self.cost() as u64 } else { usual };
        self.tests.iter().fold(usual, |bytes, test| test.inline_bytes(bytes))
    }

    /// Fails if the scan has to stop. Computations on fields ask as well, since they can be many and the
    /// fields long.
    pub(crate) fn check_stop(&self) -> Result<(), Failure> {
        self.control.check_within(self.step_time)
    }

    /// Creates a decoder for a part, or for a whole range. Further `bytes` of results are counted with its own
    /// memory.
    pub(crate) fn decoder(&self, begin: &Begin, bytes: usize) -> Decoder {
        let delimiter = if let Format::Csv { delimiter, .. } = self.format { delimiter } else { b',' };
        Decoder {
            reader: CsvReader::new(delimiter),
            values: JsonValues::default(),
            sequential: begin.sequential,
            ended: true,
            in_header: false,
            invalid: 0,
            charge: begin.account.charge(),
            bytes,
        }
    }

    /// Calls `visit` with the records of a view that meet the conditions.
    pub(crate) fn view(
        &self,
        decoder: &mut Decoder,
        view: View<'_>,
        visit: &mut Visit<'_>,
    ) -> Result<Flow, Failure> {
        let flow = self.read(decoder, view, visit)?;
        decoder.charge.cover(decoder.bytes + decoder.reader.bytes() + decoder.values.bytes())?;
        Ok(flow)
    }

    fn read(&self, decoder: &mut Decoder, view: View<'_>, visit: &mut Visit<'_>) -> Result<Flow, Failure> {
        let is_start = self.prepared.get().is_some_and(|prepared| prepared.start == view.at);
        let bytes = if is_start { without_mark(view.bytes) } else { view.bytes };
        let at = view.at + (view.bytes.len() - bytes.len()) as u64;
        if self.format == Format::JsonLines {
            return self.read_json(decoder, bytes, visit);
        }
        if !decoder.sequential && memchr::memchr(b'"', view.bytes).is_some() {
            // A line feed may be in quotes, so the begin of a line may not be that of a record.
            return Ok(Flow::Sequential);
        }
        decoder.in_header |= is_start && matches!(self.format, Format::Csv { header: true, .. });
        decoder.ended = bytes.is_empty() || bytes.ends_with(b"\n");
        // An empty piece would be the end of the data.
        if bytes.is_empty() { Ok(Flow::Continue) } else { self.read_csv(decoder, at, bytes, visit) }
    }

    /// Ends the last record of the range.
    pub(crate) fn end_of_part(&self, decoder: &mut Decoder, visit: &mut Visit<'_>) -> Result<Flow, Failure> {
        if self.format != Format::JsonLines && (decoder.sequential || !decoder.ended) {
            return self.read_csv(decoder, 0, &[], visit);
        }
        Ok(Flow::Continue)
    }

    fn read_csv(
        &self,
        decoder: &mut Decoder,
        at: u64,
        bytes: &[u8],
        visit: &mut Visit<'_>,
    ) -> Result<Flow, Failure> {
        let (mut flow, mut tests) = (Flow::Continue, self.tests_in_view());
        let Decoder { reader, in_header, .. } = decoder;
        let columns = self.prepared.get().map_or(&[][..], |prepared| &prepared.columns);
        reader.read(at, bytes, &mut |record| {
            self.check_stop()?;
            if std::mem::take(in_header) {
                return Ok(true);
            }
            let cells = columns.iter().map(|column| record.field(*column).map_or(Cell::Missing, Cell::Csv));
            let cells: Cells<'_> = cells.collect();
            if self.accepts(&mut tests, &cells)? {
                flow = visit(&Record { cells: &cells, invalid: 0 })?;
            }
            Ok(flow == Flow::Continue)
        })?;
        Ok(flow)
    }

    fn read_json(&self, decoder: &mut Decoder, bytes: &[u8], visit: &mut Visit<'_>) -> Result<Flow, Failure> {
        let (mut rest, mut tests) = (bytes, self.tests_in_view());
        while !rest.is_empty() {
            let len = memchr::memchr(b'\n', rest).map_or(rest.len(), |at| at + 1);
            let (line, others) = rest.split_at(len);
            rest = others;
            if line.iter().all(|byte| b" \t\r\n".contains(byte)) {
                continue;
            }
            self.check_stop()?;
            if !self.json.read(line, &mut decoder.values) {
                decoder.invalid += 1;
                continue;
            }
            let values = &decoder.values;
            let cell = |field| self.json.field(field, line, values).map_or(Cell::Missing, Cell::Json);
            let cells: Cells<'_> = (0..self.fields.len()).map(cell).collect();
            if self.accepts(&mut tests, &cells)? {
                let flow = visit(&Record { cells: &cells, invalid: decoder.invalid })?;
                if flow != Flow::Continue {
                    return Ok(flow);
                }
            }
        }
        Ok(Flow::Continue)
    }

    fn tests_in_view(&self) -> Vec<TestInView<'_>> {
        self.tests.iter().map(Test::in_view).collect()
    }

    fn accepts(&self, tests: &mut [TestInView<'_>], cells: &[Cell<'_>]) -> Result<bool, Failure> {
        let check = || self.check_stop();
        for test in tests {
            check()?;
            if !test.accepts(cells, &check)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Appends the first fields of a record in the format of the table. It ends early if the bytes exceed
    /// `max`, since a field can occur many times, and fails if their memory cannot be counted.
    pub(crate) fn write(
        &self,
        line: &mut Vec<u8>,
        charge: &mut Charge,
        cells: &[Cell<'_>],
        (number, max): (usize, usize),
    ) -> Result<(), Failure> {
        if let Format::Csv { delimiter, .. } = self.format {
            let begin = line.len();
            for (index, cell) in cells[..number].iter().enumerate() {
                if line.len() > max {
                    return Ok(());
                }
                charge.cover(line.len())?;
                if index > 0 {
                    line.push(delimiter);
                }
                write_field(line, &cell.text().unwrap_or_default(), delimiter);
            }
            if line.len() == begin {
                // An empty line is no record.
                line.extend_from_slice(b"\"\"");
            }
        } else {
            line.push(b'{');
            for (index, (name, cell)) in self.quoted.iter().zip(&cells[..number]).enumerate() {
                if line.len() > max {
                    return Ok(());
                }
                charge.cover(line.len())?;
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
        Ok(())
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
    /// Memory of the decoder, and of `bytes` of results.
    pub(crate) charge: Charge,
    bytes: usize,
}

fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes)
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
    reader.read(0, without_mark(first), &mut keep)?;
    if first.len() < HEADER_BYTES_MAX {
        // The range may end with its header.
        reader.read(0, &[], &mut keep)?;
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

/// Number of a column that is named by its number from 1.
fn column_number(field: &str) -> Result<usize, Failure> {
    match field.parse::<usize>() {
        Ok(number) if number > 0 => Ok(number - 1),
        _ => Err(Failure::invalid(format!(
            "{field:?} is not the number of a column; without a header, columns are named \"1\", \"2\" and so on"
        ))),
    }
}

/// Number of a column by its name.
fn column(field: &str, names: &[Vec<u8>]) -> Result<usize, Failure> {
    names.iter().position(|name| name == field.as_bytes()).ok_or_else(|| {
        let names: Vec<_> = names.iter().map(|name| String::from_utf8_lossy(name)).collect();
        Failure::new(
            Status::Format,
            format!("there is no column {field:?}; the header has {}", names.join(", ")),
        )
    })
}

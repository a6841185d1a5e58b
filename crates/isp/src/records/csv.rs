//! Fields of CSV records.

use crate::outcome::{Failure, Status};
use csv_core::{ReadRecordResult, Reader, ReaderBuilder};

/// Maximum size of a record in bytes, and of the number of its fields.
const RECORD_MAX: usize = 1 << 20;

/// Reader of CSV that gets its input in pieces.
pub(crate) struct CsvReader {
    reader: Reader,
    /// Fields of the current record without quotes, one after the other.
    fields: Vec<u8>,
    /// Ends of the fields.
    ends: Vec<usize>,
    bytes_used: usize,
    ends_used: usize,
    /// Position of the current record, if a byte of it was read.
    begin: Option<u64>,
}

impl CsvReader {
    pub(crate) fn new(delimiter: u8) -> Self {
        let mut reader = ReaderBuilder::new().delimiter(delimiter).build();
        // The first bytes that it reads lose a byte order mark, but only the range may begin with one. An empty
        // line is no record.
        reader.read_record(b"\n", &mut [0], &mut [0]);
        Self { reader, fields: vec![0; 1024], ends: vec![0; 64], bytes_used: 0, ends_used: 0, begin: None }
    }

    /// Memory in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.fields.capacity() + size_of::<usize>() * self.ends.capacity()
    }

    /// Reads a piece at the position `at`, and calls `each` with every record that ends in it until it returns
    /// `false`. An empty piece is the end of the input, which ends the last record.
    pub(crate) fn read(
        &mut self,
        mut at: u64,
        mut piece: &[u8],
        each: &mut dyn FnMut(&CsvRecord<'_>) -> Result<bool, Failure>,
    ) -> Result<(), Failure> {
        loop {
            if self.begin.is_none() {
                // Ends of lines before a record are not a part of it.
                let ends = piece.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
                self.begin = (ends < piece.len()).then_some(at + ends as u64);
            }
            let (result, read, bytes, ends) = self.reader.read_record(
                piece,
                &mut self.fields[self.bytes_used..],
                &mut self.ends[self.ends_used..],
            );
            (at, piece) = (at + read as u64, &piece[read..]);
            self.bytes_used += bytes;
            self.ends_used += ends;
            match result {
                ReadRecordResult::InputEmpty | ReadRecordResult::End => return Ok(()),
                ReadRecordResult::OutputFull => grow(&mut self.fields, self.begin)?,
                ReadRecordResult::OutputEndsFull => grow(&mut self.ends, self.begin)?,
                // The room that the reader has asked for.
                ReadRecordResult::Record if self.bytes_used.max(self.ends_used) > RECORD_MAX => {
                    return Err(too_long(self.begin));
                }
                ReadRecordResult::Record => {
                    let record = CsvRecord { fields: &self.fields, ends: &self.ends[..self.ends_used] };
                    let go_on = each(&record)?;
                    (self.bytes_used, self.ends_used, self.begin) = (0, 0, None);
                    if !go_on {
                        return Ok(());
                    }
                }
            }
        }
    }
}

fn too_long(begin: Option<u64>) -> Failure {
    let message = format!(
        "the record of CSV at byte {} has more than {RECORD_MAX} bytes or fields; this happens also if a quote is \
         not closed",
        begin.unwrap_or_default()
    );
    Failure::new(Status::RecordTooLong, message)
}

fn grow<T: Clone + Default>(buffer: &mut Vec<T>, begin: Option<u64>) -> Result<(), Failure> {
    // The reader asks for room behind the last byte before it sees the end of the record.
    const LEN_MAX: usize = RECORD_MAX + 1;
    if buffer.len() == LEN_MAX {
        return Err(too_long(begin));
    }
    buffer.resize(LEN_MAX.min(buffer.len() * 2), T::default());
    Ok(())
}

/// Record of CSV.
pub(crate) struct CsvRecord<'a> {
    fields: &'a [u8],
    ends: &'a [usize],
}

impl<'a> CsvRecord<'a> {
    /// Returns a field without its quotes.
    pub(crate) fn field(&self, index: usize) -> Option<&'a [u8]> {
        let end = *self.ends.get(index)?;
        let begin = if index == 0 { 0 } else { self.ends[index - 1] };
        self.fields.get(begin..end)
    }

    /// Number of fields.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }
}

/// Appends a field to a line of CSV, with quotes if it needs them.
pub(crate) fn write_field(line: &mut Vec<u8>, field: &[u8], delimiter: u8) {
    let special = |byte: &u8| *byte == delimiter || matches!(byte, b'"' | b'\r' | b'\n');
    if !field.iter().any(special) {
        line.extend_from_slice(field);
        return;
    }
    line.push(b'"');
    for byte in field {
        if *byte == b'"' {
            line.push(b'"');
        }
        line.push(*byte);
    }
    line.push(b'"');
}

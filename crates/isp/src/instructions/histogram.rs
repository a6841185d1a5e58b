//! Distribution of the values of bytes, or of the numbers of a field.

mod bins;

use super::{Answer, Kind, Report};
use crate::engine::Start;
use crate::outcome::Failure;
use crate::records::{Cell, Condition, Decoder, Format, Table, held_bytes, is_made_quickly};
use crate::scan::{Begin, Finished, Flow, Head, Operation, StepTime, Unit, View};
use crate::text::Keys;
use bins::{Bins, Place};
use serde::Serialize;
use serde_json::Value;

/// Field and bins for messages.
const EXAMPLE: &str = r#"{"field": "size", "low": 0, "high": 1000, "bins": 10}"#;

/// Counts values.
#[derive(Clone, PartialEq, Debug)]
pub enum Histogram {
    /// Bytes, in 256 bins.
    Bytes,
    /// Numbers of a field of the records that meet all conditions.
    Field {
        /// Name of the field.
        field: String,
        /// Least number of the first bin.
        low: f64,
        /// Number above the last bin.
        high: f64,
        /// Number of bins of equal width. Bin `i` begins with `low + (high - low) * i / bins`.
        bins: usize,
        /// Format of the records.
        format: Format,
        /// Conditions.
        conditions: Vec<Condition>,
    },
}

/// Results of `Histogram`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct HistogramAnswer {
    /// Number of values in each bin.
    pub bins: Vec<u64>,
    /// Number of values below the first bin.
    pub below: u64,
    /// Number of values above the last bin.
    pub above: u64,
    /// Number of records without the field, or with a field that is not a number.
    pub without: u64,
    /// Number of lines that are not JSON objects.
    pub invalid: u64,
}

impl Report for HistogramAnswer {
    fn bytes(&self) -> usize {
        size_of_val(&self.bins[..])
    }
}

impl Kind for Histogram {
    const NAME: &'static str = "histogram";

    fn parse(value: &Value, keys: &mut Keys<'_>) -> Result<Self, Failure> {
        if value.as_str() == Some("bytes") {
            return Ok(Self::Bytes);
        }
        if !value.is_object() {
            return Err(Failure::invalid(format!(
                "\"histogram\" is \"bytes\", or a field and its bins, such as {EXAMPLE}"
            )));
        }
        let mut own = Keys::new("histogram", EXAMPLE, value)?;
        let field = own.text("field")?;
        let (low, high, bins) = (own.float("low")?, own.float("high")?, own.size("bins")?);
        own.finish()?;
        let (Some(field), Some(low), Some(high), Some(bins)) = (field, low, high, bins) else {
            return Err(Failure::invalid(format!(
                "\"histogram\" of a field needs \"field\", \"low\", \"high\" and \"bins\", such as {EXAMPLE}"
            )));
        };
        let format = Format::parse(keys)?;
        let conditions = keys.take("where").map_or(Ok(Vec::new()), Condition::parse_all)?;
        Ok(Self::Field { field, low, high, bins, format, conditions })
    }

    fn held_bytes(&self) -> usize {
        match self {
            Self::Bytes => 0,
            Self::Field { conditions, .. } => held_bytes(1, conditions),
        }
    }

    fn starts_quickly(&self) -> bool {
        match self {
            Self::Bytes => true,
            Self::Field { conditions, .. } => is_made_quickly(1, conditions),
        }
    }

    fn start(&self, start: Start) -> Result<(), Failure> {
        match self {
            Self::Bytes => start.with(OfBytes),
            Self::Field { field, low, high, bins, format, conditions } => {
                let bins = Bins::new(*low, *high, *bins)?;
                let table = Table::new(*format, vec![field.clone()], conditions, &start.control)?;
                start.with(OfField { table, bins })
            }
        }
    }
}

fn answer(bins: Vec<u64>) -> HistogramAnswer {
    HistogramAnswer { bins, below: 0, above: 0, without: 0, invalid: 0 }
}

/// Operation of a histogram of bytes.
struct OfBytes;

impl Operation for OfBytes {
    type Results = Box<[u64; 256]>;

    fn unit(&self) -> Unit {
        Unit::Positions { overlap: 0 }
    }

    fn begin(&self, _: Begin) -> Box<[u64; 256]> {
        Box::new([0; 256])
    }

    fn view(&self, bins: &mut Box<[u64; 256]>, view: View<'_>) -> Result<Flow, Failure> {
        // Four tables, so that equal bytes in sequence do not wait for each other.
        let mut tables = [[0_u64; 256]; 4];
        let (words, rest) = view.bytes.as_chunks::<4>();
        for word in words {
            for (table, byte) in tables.iter_mut().zip(word) {
                table[usize::from(*byte)] += 1;
            }
        }
        for byte in rest {
            bins[usize::from(*byte)] += 1;
        }
        for table in &tables {
            bins.iter_mut().zip(table).for_each(|(bin, more)| *bin += more);
        }
        Ok(Flow::Continue)
    }

    fn merge(&self, total: &mut Box<[u64; 256]>, next: Box<[u64; 256]>) -> Result<Flow, Failure> {
        total.iter_mut().zip(*next).for_each(|(bin, more)| *bin += more);
        Ok(Flow::Continue)
    }

    fn finish(&self, total: Box<[u64; 256]>) -> Result<Finished, Failure> {
        Ok(Finished::small(Answer::Histogram(answer(total.to_vec()))))
    }
}

/// Operation of a histogram of a field.
struct OfField {
    table: Table,
    bins: Bins,
}

impl OfField {
    fn add(&self, counts: &mut HistogramAnswer, cells: &[Cell<'_>]) -> Flow {
        match cells.first().and_then(Cell::number).map(|value| self.bins.place(value)) {
            None => counts.without += 1,
            Some(Place::Below) => counts.below += 1,
            Some(Place::Above) => counts.above += 1,
            Some(Place::Bin(bin)) => counts.bins[bin] += 1,
        }
        Flow::Continue
    }
}

impl Operation for OfField {
    type Results = (Decoder, HistogramAnswer);

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

    fn begin(&self, begin: Begin) -> Self::Results {
        let decoder = self.table.decoder(&begin, size_of::<u64>() * self.bins.number());
        (decoder, answer(vec![0; self.bins.number()]))
    }

    fn view(&self, (decoder, counts): &mut Self::Results, view: View<'_>) -> Result<Flow, Failure> {
        self.table.view(decoder, view, &mut |record| Ok(self.add(counts, record.cells)))
    }

    fn end_of_part(&self, (decoder, counts): &mut Self::Results) -> Result<Flow, Failure> {
        self.table.end_of_part(decoder, &mut |record| Ok(self.add(counts, record.cells)))
    }

    fn merge(&self, total: &mut Self::Results, (decoder, next): Self::Results) -> Result<Flow, Failure> {
        total.0.invalid += decoder.invalid;
        let counts = &mut total.1;
        counts.bins.iter_mut().zip(next.bins).for_each(|(bin, more)| *bin += more);
        counts.below += next.below;
        counts.above += next.above;
        counts.without += next.without;
        Ok(Flow::Continue)
    }

    fn finish(&self, (decoder, mut counts): Self::Results) -> Result<Finished, Failure> {
        counts.invalid = decoder.invalid;
        Ok(Finished::new(Answer::Histogram(counts), false, decoder.charge))
    }
}

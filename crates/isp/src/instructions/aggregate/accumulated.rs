//! Values of one field in one group.

use super::Compute;
use super::sum::Sum;
use crate::records::{Cell, Number};
use serde_json::Value;

/// Values of a field in the records of a group.
#[derive(Clone, Default)]
pub(super) struct Accumulated {
    present: u64,
    numbers: u64,
    sum: Sum,
    min: Option<Number>,
    max: Option<Number>,
}

impl Accumulated {
    /// Adds the field of a record, as far as the function needs it.
    pub(super) fn add(&mut self, compute: Compute, cell: &Cell<'_>) {
        if compute == Compute::Count {
            self.present += u64::from(!matches!(cell, Cell::Missing));
        } else if let Some(number) = cell.number() {
            self.numbers += 1;
            match compute {
                Compute::Sum | Compute::Mean => self.sum.add(number),
                _ => self.extend(Some(number), Some(number)),
            }
        }
    }

    fn extend(&mut self, min: Option<Number>, max: Option<Number>) {
        if let Some(min) = min
            && self.min.is_none_or(|least| min.compare(least).is_lt())
        {
            self.min = Some(min);
        }
        if let Some(max) = max
            && self.max.is_none_or(|greatest| max.compare(greatest).is_gt())
        {
            self.max = Some(max);
        }
    }

    /// Memory beside the value itself, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.sum.bytes()
    }

    /// Appends the values of the next part.
    pub(super) fn merge(&mut self, next: &Self) {
        self.present += next.present;
        self.numbers += next.numbers;
        self.sum.merge(&next.sum);
        self.extend(next.min, next.max);
    }

    /// Result of a function: null without a number, and for a sum beyond the largest number.
    pub(super) fn value(self, compute: Compute) -> Value {
        let number = |number: Option<Number>| number.map_or(Value::Null, Number::to_json);
        match compute {
            Compute::Count => self.present.into(),
            _ if self.numbers == 0 => Value::Null,
            Compute::Sum => number(self.sum.total()),
            Compute::Mean => self.sum.quotient(self.numbers).into(),
            Compute::Min => number(self.min),
            Compute::Max => number(self.max),
        }
    }
}

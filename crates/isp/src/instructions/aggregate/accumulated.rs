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
    pub(super) fn add(&mut self, cell: &Cell<'_>, part: u64) {
        self.present += u64::from(!matches!(cell, Cell::Missing));
        if let Some(number) = cell.number() {
            self.numbers += 1;
            self.sum.add(number, part);
            self.extend(Some(number), Some(number));
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

    /// Appends the values of the next part.
    pub(super) fn merge(&mut self, next: &mut Self) {
        self.present += next.present;
        self.numbers += next.numbers;
        self.sum.merge(&mut next.sum);
        self.extend(next.min, next.max);
    }

    /// Result of a function.
    pub(super) fn value(&mut self, compute: Compute) -> Value {
        let number = |number: Option<Number>| number.map_or(Value::Null, Number::to_json);
        match compute {
            Compute::Count => self.present.into(),
            _ if self.numbers == 0 => Value::Null,
            Compute::Sum => self.sum.total().to_json(),
            Compute::Mean => (self.sum.total().as_f64() / self.numbers as f64).into(),
            Compute::Min => number(self.min),
            Compute::Max => number(self.max),
        }
    }
}

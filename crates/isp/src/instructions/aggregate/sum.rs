//! Sums that are exact, and so depend on no order and no number of threads.

mod exact;

use crate::records::Number;
use exact::ExactSum;

/// Sum of numbers.
#[derive(Clone, Default)]
pub(super) struct Sum {
    integers: i128,
    /// Numbers that are not integers.
    floats: ExactSum,
    /// `true` if at least one number is not an integer.
    has_float: bool,
}

impl Sum {
    pub(super) fn add(&mut self, number: Number) {
        match number {
            Number::Integer(integer) => self.integers = self.integers.saturating_add(integer.into()),
            Number::Float(float) => {
                self.floats.add(float);
                self.has_float = true;
            }
        }
    }

    /// Memory beside the sum itself, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.floats.bytes()
    }

    /// Adds the sum of other numbers.
    pub(super) fn merge(&mut self, other: &Self) {
        self.integers = self.integers.saturating_add(other.integers);
        self.floats.merge(&other.floats);
        self.has_float |= other.has_float;
    }

    /// Sum, or the floating-point number nearest to it. There is none beyond the largest one.
    pub(super) fn total(self) -> Option<Number> {
        match i64::try_from(self.integers) {
            Ok(integer) if !self.has_float => Some(Number::Integer(integer)),
            _ => self.quotient(1).map(Number::Float),
        }
    }

    /// Floating-point number nearest to the sum divided by a number that is not zero.
    pub(super) fn quotient(mut self, divisor: u64) -> Option<f64> {
        self.floats.add_integer(self.integers);
        self.floats.quotient(divisor)
    }
}

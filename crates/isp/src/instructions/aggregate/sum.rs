//! Sums that do not depend on the number of threads.

use crate::records::Number;

/// Sum of numbers. Integers are summed exactly. Other numbers are summed for each part of the range
/// with the compensation of Neumaier, and then the sums of the parts in their order.
#[derive(Clone, Default)]
pub(super) struct Sum {
    integers: i128,
    /// `true` if at least one number is not an integer.
    has_float: bool,
    /// Sum of the parts before `part`.
    parts: f64,
    /// Part of `current` and `lost`.
    part: u64,
    current: f64,
    /// Sum of the bits that were lost in additions to `current`.
    lost: f64,
}

impl Sum {
    pub(super) fn add(&mut self, number: Number, part: u64) {
        match number {
            Number::Integer(integer) => self.integers = self.integers.saturating_add(integer.into()),
            Number::Float(float) => {
                if self.part != part {
                    self.close_part();
                    self.part = part;
                }
                let next = self.current + float;
                self.lost += if self.current.abs() >= float.abs() {
                    (self.current - next) + float
                } else {
                    (float - next) + self.current
                };
                self.current = next;
                self.has_float = true;
            }
        }
    }

    /// Appends the sum of the next part.
    pub(super) fn merge(&mut self, next: &mut Self) {
        self.integers = self.integers.saturating_add(next.integers);
        if next.has_float {
            self.close_part();
            next.close_part();
            self.parts += next.parts;
            self.has_float = true;
        }
    }

    pub(super) fn total(&mut self) -> Number {
        self.close_part();
        match (i64::try_from(self.integers), self.has_float) {
            (Ok(integer), false) => Number::Integer(integer),
            _ => Number::Float(self.integers as f64 + self.parts),
        }
    }

    fn close_part(&mut self) {
        self.parts += self.current + self.lost;
        (self.current, self.lost) = (0.0, 0.0);
    }
}

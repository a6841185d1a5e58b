//! Number of commands by operation and cause. There are no other such statistics in frit.

use crate::{Cause, Op};
use serde::Serialize;
use std::iter::Sum;
use std::ops::AddAssign;
use strum::{EnumCount, IntoEnumIterator};

/// Number of commands and of the bytes that they carried.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct Count {
    /// Commands given.
    pub commands: u64,
    /// Payload, in bytes.
    pub bytes: u64,
}

impl AddAssign for Count {
    fn add_assign(&mut self, other: Count) {
        self.commands += other.commands;
        self.bytes += other.bytes;
    }
}

impl Sum for Count {
    fn sum<I: Iterator<Item = Count>>(counts: I) -> Count {
        counts.fold(Count::default(), |mut sum, count| {
            sum += count;
            sum
        })
    }
}

impl Count {
    /// Returns the difference to `earlier`, a former state of this count.
    #[must_use]
    pub fn since(self, earlier: Count) -> Count {
        Count {
            commands: self.commands.saturating_sub(earlier.commands),
            bytes: self.bytes.saturating_sub(earlier.bytes),
        }
    }
}

/// Counts by operation and cause.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Counts {
    cells: [[Count; Cause::COUNT]; Op::COUNT],
}

impl Default for Counts {
    fn default() -> Self {
        Counts { cells: [[Count::default(); Cause::COUNT]; Op::COUNT] }
    }
}

impl Counts {
    /// Counts one command.
    #[inline]
    pub fn add(&mut self, op: Op, cause: Cause, bytes: u32) {
        let c = &mut self.cells[op as usize][cause as usize];
        c.commands += 1;
        c.bytes += u64::from(bytes);
    }

    /// Returns the count of one operation and cause.
    #[must_use]
    pub fn get(&self, op: Op, cause: Cause) -> Count {
        self.cells[op as usize][cause as usize]
    }

    /// Returns the sum over all causes of one operation.
    #[must_use]
    pub fn of(&self, op: Op) -> Count {
        self.cells[op as usize].iter().copied().sum()
    }

    /// Iterates over the counts that are not zero, by operation and cause.
    pub fn iter(&self) -> impl Iterator<Item = (Op, Cause, Count)> + '_ {
        Op::iter().flat_map(move |op| {
            Cause::iter().filter_map(move |cause| {
                let c = self.get(op, cause);
                (c.commands > 0).then_some((op, cause, c))
            })
        })
    }

    /// Adds another table, cell by cell.
    pub fn merge(&mut self, other: &Counts) {
        for (op, cause, c) in other.iter() {
            self.cells[op as usize][cause as usize] += c;
        }
    }

    /// Returns the difference to `earlier`, a former state of this table.
    #[must_use]
    pub fn since(&self, earlier: &Counts) -> Counts {
        let mut d = self.clone();
        for (op, cause, c) in earlier.iter() {
            let cell = &mut d.cells[op as usize][cause as usize];
            *cell = cell.since(c);
        }
        d
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_add_up_and_subtract() {
        let mut a = Counts::default();
        a.add(Op::NandProgram, Cause::Host, 2048);
        let before = a.clone();
        a.add(Op::NandProgram, Cause::Gc, 2048);
        assert_eq!(a.of(Op::NandProgram), Count { commands: 2, bytes: 4096 });
        let d = a.since(&before);
        assert_eq!(d.get(Op::NandProgram, Cause::Host).commands, 0);
        assert_eq!(d.get(Op::NandProgram, Cause::Gc).commands, 1);
        let mut sum = before;
        sum.merge(&d);
        assert_eq!(sum, a);
    }
}

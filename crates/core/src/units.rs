//! Sector, page and NAND block numbers as separate types, and [`Nanos`] for times and durations.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::{Add, AddAssign, Sub};

/// Size of a sector in bytes, the unit of every block address in frit.
pub const SECTOR_BYTES: u64 = 512;

/// Reserved page number that means "no page", both as [`Lpn`] and as [`Ppn`].
pub const PAGE_NONE: u32 = u32::MAX;

/// A point in (virtual or real) time, or a duration, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Nanos(pub u64);

impl Nanos {
    /// Time zero.
    pub const ZERO: Nanos = Nanos(0);
    /// A time later than any that occurs.
    pub const MAX: Nanos = Nanos(u64::MAX);

    /// Converts microseconds, rounded to the nearest nanosecond. Negative values and NaN become
    /// zero.
    #[must_use]
    pub fn from_us(us: f64) -> Nanos {
        // A float-to-int cast saturates, so no value can wrap.
        Nanos((us * 1e3).round() as u64)
    }

    /// Returns the time in microseconds.
    #[must_use]
    pub fn as_us(self) -> f64 {
        self.0 as f64 / 1e3
    }

    /// Returns the time in seconds.
    #[must_use]
    pub fn as_secs(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Returns `self - other`, or zero if `other` is later.
    #[must_use]
    pub fn since(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_sub(other.0))
    }
}

impl Add for Nanos {
    type Output = Nanos;
    fn add(self, o: Nanos) -> Nanos {
        Nanos(self.0 + o.0)
    }
}

impl AddAssign for Nanos {
    fn add_assign(&mut self, o: Nanos) {
        self.0 += o.0;
    }
}

impl Sub for Nanos {
    type Output = Nanos;
    fn sub(self, o: Nanos) -> Nanos {
        Nanos(self.0 - o.0)
    }
}

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            n if n < 1_000 => write!(f, "{n} ns"),
            n if n < 1_000_000 => write!(f, "{:.1} µs", n as f64 / 1e3),
            n if n < 1_000_000_000 => write!(f, "{:.2} ms", n as f64 / 1e6),
            n => write!(f, "{:.2} s", n as f64 / 1e9),
        }
    }
}

/// A block address of the host, in sectors of 512 bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Sector(pub u64);

impl Sector {
    /// Returns the address in bytes.
    #[must_use]
    pub fn bytes(self) -> u64 {
        self.0 * SECTOR_BYTES
    }
}

/// Logical page number (LPN): the address that the host uses, in pages.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Lpn(pub u32);

/// Physical page number (PPN) of NAND: `block × pages per block + page`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Ppn(pub u32);

/// A NAND erase block: `unit × blocks per unit + block in the unit`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BlockId(pub u32);

/// Implements the methods of number types of 32 bits, which are tuple structs such as [`Lpn`]: one
/// method to index a table, one way from and to a bare number, and the number as text.
#[macro_export]
macro_rules! number_types {
    ($($t:ty),* $(,)?) => {$(
        #[allow(dead_code, reason = "all number types have the same methods, whether used or not")]
        impl $t {
            /// Returns the number as an index into a table with one row for each.
            #[inline]
            #[must_use]
            pub const fn idx(self) -> usize {
                $crate::convert::to_usize(self.0)
            }

            /// Returns the number of a row of such a table.
            #[inline]
            #[must_use]
            pub const fn of_idx(row: usize) -> Self {
                Self($crate::convert::count_u32(row))
            }

            /// Returns a number that was computed with 64 bits and is in range.
            #[inline]
            #[must_use]
            pub const fn of_u64(n: u64) -> Self {
                Self($crate::convert::bounded_u32(n))
            }

            /// Returns the number that is `n` higher.
            #[inline]
            #[must_use]
            pub const fn plus(self, n: u32) -> Self {
                Self(self.0 + n)
            }

            /// Iterates over the first `n` numbers.
            #[inline]
            pub fn first(n: u32) -> impl ExactSizeIterator<Item = Self> + DoubleEndedIterator + Clone {
                (0..n).map(Self)
            }

            /// Iterates over the numbers from `from` to below `to`.
            #[inline]
            pub fn range(from: Self, to: Self) -> impl ExactSizeIterator<Item = Self> + DoubleEndedIterator + Clone {
                (from.0..to.0).map(Self)
            }
        }

        impl From<$t> for u64 {
            #[inline]
            fn from(n: $t) -> u64 {
                u64::from(n.0)
            }
        }

        impl std::fmt::Display for $t {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }
    )*};
}
number_types!(Lpn, Ppn, BlockId);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn microseconds_round_and_saturate() {
        assert_eq!(Nanos::from_us(213.2), Nanos(213_200));
        assert_eq!(Nanos::from_us(-1.0), Nanos::ZERO);
        assert_eq!(Nanos::from_us(f64::NAN), Nanos::ZERO);
        assert_eq!(Nanos(5).since(Nanos(9)), Nanos::ZERO);
    }

    #[test]
    fn time_prints_in_the_unit_one_would_say() {
        assert_eq!(Nanos(999).to_string(), "999 ns");
        assert_eq!(Nanos(75_500).to_string(), "75.5 µs");
        assert_eq!(Nanos(1_500_000).to_string(), "1.50 ms");
    }

    #[test]
    fn numbers_index_tables_and_print_as_numbers() {
        assert_eq!((Lpn(3).idx(), Lpn::of_idx(3), Lpn::of_u64(3).plus(2)), (3, Lpn(3), Lpn(5)));
        assert_eq!(Ppn::first(3).rev().collect::<Vec<_>>(), [Ppn(2), Ppn(1), Ppn(0)]);
        assert_eq!(BlockId::range(BlockId(4), BlockId(6)).collect::<Vec<_>>(), [BlockId(4), BlockId(5)]);
        assert_eq!((format!("{:>3}", Lpn(7)), u64::from(Lpn(7))), ("  7".to_owned(), 7));
    }
}

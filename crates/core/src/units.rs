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

macro_rules! index {
    ($($t:ty),*) => {$(
        impl $t {
            /// Returns the number as an index into a table with one row for each.
            #[inline]
            #[must_use]
            pub fn idx(self) -> usize {
                self.0 as usize
            }
        }
    )*};
}
index!(Lpn, Ppn, BlockId);

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
}

//! Configuration of wear leveling.

use super::LevelerKind;
use frit_core::{Error, Result};

/// Number of bytes that count as one write: a block of the HALO paper's cache (section III: 4 KB
/// cache items).
pub(crate) const WRITE_BYTES: u32 = 4096;

/// User configuration of wear leveling.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WearConfig {
    /// Selected leveler.
    pub leveler: LevelerKind,
    /// Stripe size in bytes: the unit of a move, a power of two.
    pub stripe_bytes: u32,
    /// Number of ranks.
    pub ranks: u32,
    /// Number of banks in a rank.
    pub banks: u32,
    /// Space-filling curve: number of cubes.
    pub cubes: u32,
    /// Space-filling curve: rotates the ranks and banks of each cube by the cube's number, so that
    /// consecutive stripes are on different ranks. Equation 1 taken literally puts the same offsets
    /// of all cubes into one bank.
    pub turn: bool,
    /// Start-gap: physical stripes of a region. Security refresh: logical stripes of a region, a
    /// power of two. 0: a bank, rounded down to a number that the leveler can use.
    pub region_stripes: u32,
    /// Interval of the moves of a region, in writes of 4096 bytes to it.
    pub interval: u32,
    /// Seed of the keys: those of the address randomisation and of security refresh.
    pub seed: u64,
    /// Keeps the registers as of the last flush in addition to the current ones, for files behind a
    /// page cache.
    pub over_files: bool,
}

impl Default for WearConfig {
    /// The values of Table I of the HALO paper. The interval is that of start-gap (Qureshi et al.,
    /// MICRO 2009, section 4.2: a gap move every 100 writes), counted in cache blocks.
    fn default() -> Self {
        WearConfig {
            leveler: LevelerKind::Sfc,
            stripe_bytes: 32 << 10,
            ranks: 8,
            banks: 16,
            cubes: 32,
            turn: true,
            region_stripes: 0,
            interval: 100,
            seed: 1,
            over_files: false,
        }
    }
}

impl WearConfig {
    /// Number of bytes written to a region between two of its moves.
    ///
    /// # Errors
    /// The interval is zero.
    pub fn interval_bytes(&self) -> Result<u64> {
        if self.interval == 0 {
            return Err(Error::param(
                "interval",
                0,
                "has to be at least 1 (writes of 4096 bytes between moves)",
            ));
        }
        Ok(u64::from(self.interval) * u64::from(WRITE_BYTES))
    }
}

//! What wear leveling can be told.

use super::LevelerKind;
use frit_core::{Error, Result};

/// Bytes that count as one write: the block of the HALO paper's cache (section III: 4 KB cache items).
pub(crate) const WRITE_BYTES: u32 = 4096;

/// Wear leveling as a user asks for it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WearConfig {
    /// Which.
    pub leveler: LevelerKind,
    /// What moves as one, in bytes: a power of two.
    pub stripe_bytes: u32,
    /// Ranks.
    pub ranks: u32,
    /// Banks in a rank.
    pub banks: u32,
    /// Space-filling curve: cubes.
    pub cubes: u32,
    /// Space-filling curve: turn each cube's ranks and banks by its number, so that stripes that follow each other
    /// lie on different ranks. Equation 1 taken by the letter puts the same offsets of all cubes into one bank.
    pub turn: bool,
    /// Start-gap: physical stripes of a region. Security refresh: logical stripes of one, a power of two. 0: a
    /// bank, rounded down to what the leveler can use.
    pub region_stripes: u32,
    /// A region makes its next move when this many times 4096 bytes were written to it.
    pub interval: u32,
    /// For keys: of the address randomisation, and of security refresh.
    pub seed: u64,
    /// Keeps the registers as of the last flush beside the current ones, for files behind a page cache.
    pub over_files: bool,
}

impl Default for WearConfig {
    /// Table I of the HALO paper; the interval is that of start-gap (Qureshi et al., MICRO 2009, section 4.2: a gap
    /// move every 100 writes), counted in cache blocks.
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
    /// Bytes written to a region between two of its moves.
    ///
    /// # Errors
    /// An interval of zero.
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

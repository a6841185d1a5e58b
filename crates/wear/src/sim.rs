//! Simulation of the wear under a leveler: writes of blocks, without media, bytes or time.
//!
//! A write of a block wears its 4 KiB; a move wears the whole stripe that it writes. There are no
//! registers, so a PCM is divided as in the papers: 2 GiB are 512 stripes of 32 KiB in each of 128
//! banks.
//!
//! Levelers need free stripes, so they offer fewer blocks than their PCM has. To compare levelers,
//! give each a PCM that [offers](Simulation::offering) all blocks that are written: addresses taken
//! modulo a smaller number would count the first banks twice, which no leveler could correct.

use super::config::WRITE_BYTES;
use super::life::{self, WearLifetime};
use super::{Leveler, Levelers, Shape, WearConfig};
use crate::numbers::{LogicalStripe, PhysicalStripe};
use frit_core::convert::{to_f64, to_u64, to_usize};
use frit_core::{Error, Result};
use serde::Serialize;

/// PCM model that tracks wear only.
#[derive(Clone, Debug)]
pub struct Simulation {
    config: WearConfig,
    shape: Shape,
    leveler: Levelers,
    /// Number of blocks in a stripe, as a shift.
    shift: u32,
    /// For each region: writes since its last move.
    since: Vec<u32>,
    /// For each physical block: writes by the host.
    written: Vec<u32>,
    /// For each physical stripe: moves to it.
    moved: Vec<u32>,
    writes: u64,
    moves: u64,
}

/// Result of a simulation.
#[derive(Clone, Debug, Serialize)]
pub struct SimReport {
    /// Name of the leveler.
    pub leveler: &'static str,
    /// Number of blocks written by the host.
    pub writes: u64,
    /// Number of stripes moved.
    pub moves: u64,
    /// Blocks written by moves, divided by those written by the host.
    pub extra_writes: f64,
    /// The life rate: see [`life::rate`].
    pub life_rate: f64,
    /// Write count of the most written bank divided by the mean.
    pub bank_max_over_mean: f64,
    /// Write count of the most written block.
    pub block_max: u64,
    /// Mean write count of a block.
    pub block_mean: f64,
    /// Host writes, in blocks, until the first block exceeds its endurance, if the same writes
    /// continue.
    pub lifetime_writes: Option<f64>,
    /// The same, divided by the number under perfect leveling without moves (the endurance of all
    /// blocks).
    pub lifetime_share: Option<f64>,
    /// Size of the PCM, in bytes.
    pub pcm_bytes: u64,
    /// Bytes of PCM that are not available as data: gaps, scratch stripes, and the remainder of the
    /// division.
    pub overhead_bytes: u64,
    /// Number of blocks written to each bank, including moves.
    pub bank_writes: Vec<u64>,
}

impl Simulation {
    /// Creates a simulation of a new PCM of `bytes` bytes.
    ///
    /// # Errors
    /// Parameters that the leveler cannot use; stripes smaller than a 4 KiB block.
    pub fn new(config: &WearConfig, bytes: u64) -> Result<Simulation> {
        config.interval_bytes()?;
        if config.stripe_bytes < WRITE_BYTES {
            let why = "has to be at least 4096, the block that the simulation counts in";
            return Err(Error::param("stripe_bytes", config.stripe_bytes, why));
        }
        let shape = Shape::fit(config, bytes, 0, 0)?;
        let leveler = Levelers::new(config, &shape)?;
        let shift = (shape.stripe_bytes / WRITE_BYTES).trailing_zeros();
        let stripes = to_usize(shape.stripes());
        Ok(Simulation {
            since: vec![0; to_usize(leveler.regions().max(1))],
            written: vec![0; stripes << shift],
            moved: vec![0; stripes],
            writes: 0,
            moves: 0,
            config: config.clone(),
            shape,
            leveler,
            shift,
        })
    }

    /// Creates a simulation of a new PCM on which the leveler offers at least `blocks` blocks. The
    /// PCM grows by one stripe of each bank at a time.
    ///
    /// # Errors
    /// Parameters that the leveler cannot use; see [`Simulation::new`].
    pub fn offering(config: &WearConfig, blocks: u64) -> Result<Simulation> {
        let offered = |s: &Simulation| s.blocks() >= blocks;
        let row = u64::from(config.ranks) * u64::from(config.banks) * u64::from(config.stripe_bytes);
        let least = (blocks * u64::from(WRITE_BYTES)).next_multiple_of(row.max(1)).max(2 * row);
        let mut last = Simulation::new(config, least);
        // A leveler may need two further stripes of each bank for each cube, or a region that is
        // twice as large.
        for rows in 1..=least / row.max(1) + 2 * u64::from(config.cubes) {
            if last.as_ref().is_ok_and(offered) {
                break;
            }
            last = Simulation::new(config, least + rows * row);
        }
        last.and_then(|s| {
            let why = || format!("offers {} of {blocks} blocks on every size that was tried", s.blocks());
            if offered(&s) {
                Ok(s)
            } else {
                Err(Error::param("leveler", <&str>::from(config.leveler), why()))
            }
        })
    }

    /// Number of 4 KiB blocks that can be written.
    #[must_use]
    pub fn blocks(&self) -> u64 {
        u64::from(self.leveler.logical()) << self.shift
    }

    /// Writes blocks in the given order.
    ///
    /// # Errors
    /// A block is not below [`Simulation::blocks`]. None of the blocks is then counted.
    pub fn write(&mut self, blocks: &[u32]) -> Result<()> {
        let offered = self.blocks();
        if let Some(block) = blocks.iter().find(|b| u64::from(**b) >= offered) {
            let why =
                format!("is beyond the {offered} blocks that {} offers", <&str>::from(self.config.leveler));
            return Err(Error::param("block", block, why));
        }
        let still = self.leveler.regions() == 0;
        let mask = (1 << self.shift) - 1;
        for &block in blocks {
            let place = self.leveler.map(LogicalStripe(block >> self.shift));
            self.written[to_usize(place.stripe.0 << self.shift | block & mask)] += 1;
            if still {
                continue;
            }
            let since = &mut self.since[place.region.idx()];
            *since += 1;
            if *since == self.config.interval {
                *since = 0;
                let step = self.leveler.step(place.region);
                self.moved[step.to.idx()] += 1;
                self.leveler.set_number(place.region, step.number);
                self.moves += 1;
            }
        }
        self.writes += to_u64(blocks.len());
        Ok(())
    }

    /// Number of writes to each block of a bank.
    fn block_wear(&self, bank: u32) -> impl Iterator<Item = u64> + '_ {
        let first = PhysicalStripe(bank * self.shape.bank_stripes);
        let stripes = PhysicalStripe::range(first, first.plus(self.shape.bank_stripes));
        let of = |s: PhysicalStripe| {
            let blocks = s.idx() << self.shift..(s.idx() + 1) << self.shift;
            let moved = u64::from(self.moved[s.idx()]);
            self.written[blocks].iter().map(move |&w| u64::from(w) + moved)
        };
        stripes.flat_map(of)
    }

    /// Number of writes to each bank, including moves.
    #[must_use]
    pub fn bank_writes(&self) -> Vec<u64> {
        (0..self.shape.all_banks()).map(|b| self.block_wear(b).sum()).collect()
    }

    /// Number of writes to the most written block, including moves.
    #[must_use]
    pub fn block_max(&self) -> u64 {
        (0..self.shape.all_banks()).flat_map(|b| self.block_wear(b)).max().unwrap_or(0)
    }

    /// Returns the result, for cells with an endurance of `endurance` writes.
    #[must_use]
    pub fn report(&self, endurance: u64) -> SimReport {
        let banks = self.bank_writes();
        let block_max = self.block_max();
        let all = to_f64(to_u64(self.written.len()));
        let life = WearLifetime::new(&banks, self.writes, block_max, endurance);
        let offered = u64::from(self.leveler.logical()) * u64::from(self.shape.stripe_bytes);
        let pcm_bytes = u64::from(self.shape.stripes()) * u64::from(self.shape.stripe_bytes);
        SimReport {
            leveler: self.config.leveler.into(),
            writes: self.writes,
            moves: self.moves,
            extra_writes: to_f64(self.moves << self.shift) / to_f64(self.writes.max(1)),
            life_rate: life::rate(&banks),
            bank_max_over_mean: life.max_over_mean,
            block_max,
            block_mean: to_f64(banks.iter().sum::<u64>()) / all,
            lifetime_writes: life.host_until_worn,
            lifetime_share: life.host_until_worn.map(|w| w / (to_f64(endurance) * all)),
            pcm_bytes,
            overhead_bytes: pcm_bytes - offered,
            bank_writes: banks,
        }
    }
}

#[cfg(test)]
mod tests;

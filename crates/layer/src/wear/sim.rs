//! What a leveler would wear: writes of blocks, without media, bytes or time.
//!
//! A write of a block wears its 4 KiB; a move wears all of the stripe that it writes. There are no registers here,
//! so a PCM is divided as the papers do: 2 GiB are 512 stripes of 32 KiB in each of 128 banks.

use super::config::WRITE_BYTES;
use super::life::{self, Life};
use super::{Leveler, Levelers, Shape, WearConfig};
use frit_core::{Error, Result};
use serde::Serialize;

/// A PCM of which only wear is known.
#[derive(Clone, Debug)]
pub struct Simulation {
    config: WearConfig,
    shape: Shape,
    leveler: Levelers,
    /// Blocks of a stripe, as a shift.
    shift: u32,
    /// For each region: writes since its last move.
    since: Vec<u32>,
    /// For each physical block: writes of the host.
    written: Vec<u32>,
    /// For each physical stripe: moves to it.
    moved: Vec<u32>,
    writes: u64,
    moves: u64,
}

/// What came of it.
#[derive(Clone, Debug, Serialize)]
pub struct SimReport {
    /// Which leveler.
    pub leveler: &'static str,
    /// Blocks that the host wrote.
    pub writes: u64,
    /// Stripes that were moved.
    pub moves: u64,
    /// Blocks that moves wrote, over those that the host wrote.
    pub extra_writes: f64,
    /// The life rate: see [`life::rate`].
    pub life_rate: f64,
    /// Writes of the most written bank over the mean.
    pub bank_max_over_mean: f64,
    /// Writes of the most written block.
    pub block_max: u64,
    /// Mean writes of a block.
    pub block_mean: f64,
    /// Blocks that the host will have written when the first one passes its endurance, if it goes on so.
    pub lifetime_writes: Option<f64>,
    /// That over what perfect leveling without moves would take: the endurance of all blocks.
    pub lifetime_share: Option<f64>,
    /// Bytes of PCM that are not offered: gaps, scratch stripes, and what does not divide.
    pub overhead_bytes: u64,
}

impl Simulation {
    /// Of a new PCM of `bytes`.
    ///
    /// # Errors
    /// Parameters that the leveler cannot use; stripes smaller than a block of 4 KiB.
    pub fn new(config: &WearConfig, bytes: u64) -> Result<Simulation> {
        config.interval_bytes()?;
        if config.stripe_bytes < WRITE_BYTES {
            let why = "has to be at least 4096, the block that the simulation counts in";
            return Err(Error::param("stripe_bytes", config.stripe_bytes, why));
        }
        let shape = Shape::fit(config, bytes, 0, 0)?;
        let leveler = Levelers::new(config, &shape)?;
        let shift = (shape.stripe_bytes / WRITE_BYTES).trailing_zeros();
        let stripes = shape.stripes() as usize;
        Ok(Simulation {
            since: vec![0; leveler.regions().max(1) as usize],
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

    /// Blocks of 4 KiB that can be written.
    #[must_use]
    pub fn blocks(&self) -> u64 {
        u64::from(self.leveler.logical()) << self.shift
    }

    /// Writes blocks, in order. Each is below [`Simulation::blocks`].
    pub fn write(&mut self, blocks: &[u32]) {
        let still = self.leveler.regions() == 0;
        let mask = (1 << self.shift) - 1;
        for &block in blocks {
            let place = self.leveler.map(block >> self.shift);
            self.written[(place.stripe << self.shift | block & mask) as usize] += 1;
            if still {
                continue;
            }
            let since = &mut self.since[place.region as usize];
            *since += 1;
            if *since == self.config.interval {
                *since = 0;
                let step = self.leveler.step(place.region);
                self.moved[step.to as usize] += 1;
                self.leveler.set_number(place.region, step.number);
                self.moves += 1;
            }
        }
        self.writes += blocks.len() as u64;
    }

    /// Writes of each block of a bank.
    fn worn(&self, bank: u32) -> impl Iterator<Item = u64> + '_ {
        let first = bank * self.shape.bank_stripes;
        let stripes = first..first + self.shape.bank_stripes;
        let of = |s: u32| {
            let blocks = (s as usize) << self.shift..(s as usize + 1) << self.shift;
            let moved = u64::from(self.moved[s as usize]);
            self.written[blocks].iter().map(move |&w| u64::from(w) + moved)
        };
        stripes.flat_map(of)
    }

    /// Writes of each bank, moves among them.
    #[must_use]
    pub fn bank_writes(&self) -> Vec<u64> {
        (0..self.shape.all_banks()).map(|b| self.worn(b).sum()).collect()
    }

    /// Writes of the most written block, moves among them.
    #[must_use]
    pub fn block_max(&self) -> u64 {
        (0..self.shape.all_banks()).flat_map(|b| self.worn(b)).max().unwrap_or(0)
    }

    /// What came of it, for cells that take `endurance` writes.
    #[must_use]
    pub fn report(&self, endurance: u64) -> SimReport {
        let banks = self.bank_writes();
        let block_max = self.block_max();
        let all = self.written.len() as f64;
        let life = Life::new(&banks, self.writes, block_max, endurance);
        let offered = u64::from(self.leveler.logical()) * u64::from(self.shape.stripe_bytes);
        SimReport {
            leveler: self.config.leveler.into(),
            writes: self.writes,
            moves: self.moves,
            extra_writes: (self.moves << self.shift) as f64 / self.writes.max(1) as f64,
            life_rate: life::rate(&banks),
            bank_max_over_mean: life.max_over_mean,
            block_max,
            block_mean: banks.iter().sum::<u64>() as f64 / all,
            lifetime_writes: life.host_until_worn,
            lifetime_share: life.host_until_worn.map(|w| w / (endurance as f64 * all)),
            overhead_bytes: u64::from(self.shape.stripes()) * u64::from(self.shape.stripe_bytes) - offered,
        }
    }
}

#[cfg(test)]
mod tests;

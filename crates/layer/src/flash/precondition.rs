//! Preconditioned spaces: full, or in the steady state of long random overwriting, without doing the
//! writes.

use super::gc::Gc;
use super::space::Flash;
use frit_core::convert::low_u32;
use frit_core::{Lpn, Ppn, Precondition, Result};
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};

/// Free blocks of a unit that are opened before garbage collection starts: one by the host, one by
/// garbage collection.
const OPENED: usize = 2;

impl Flash {
    /// Brings a new space of `pages` logical pages into a state at once. `placed` is called with each
    /// valid page, its place and its sequence number.
    ///
    /// The steady state is that of uniform random overwriting. Under greedy garbage collection the
    /// share of blocks with `i` valid pages falls as 1/i down to the victim's level (a block loses
    /// pages at a rate of `i`, and as many blocks pass each level as are collected). Under FIFO
    /// garbage collection a block at position `x` of the queue (0 is the newest, 1 the next victim)
    /// keeps each page with probability p^x. Other policies start from the greedy state and need a
    /// warm-up.
    pub(crate) fn precondition(
        &mut self,
        how: Precondition,
        pages: u32,
        placed: &mut impl FnMut(Lpn, Ppn, u64),
    ) -> Result<()> {
        self.zero_scratch();
        match how {
            Precondition::Fill => self.fill(pages, placed),
            Precondition::FillPart { percent } => {
                let part = u64::from(pages) * u64::from(percent.min(100)) / 100;
                self.fill(low_u32(part), placed)
            }
            Precondition::Steady { seed } => self.steady(seed, pages, placed),
        }
    }

    /// Writes every page once. The pages of a program unit are consecutive, and program units are
    /// striped statically over the units, in the order in which writes are.
    fn fill(&mut self, pages: u32, placed: &mut impl FnMut(Lpn, Ppn, u64)) -> Result<()> {
        let units = self.blocks().count() / self.blocks().blocks_per_unit();
        let (ppb, run) = (self.blocks().pages_per_block(), self.unit_pages);
        let pools: Vec<Vec<u32>> = (0..units).map(|u| self.fillable(u)).collect();
        let mut page = vec![0u32; ppb as usize];
        let rounds = pages.div_ceil(units * ppb);
        let mut used = vec![0; units as usize];
        // Block by block over all units, so that entries are written in address order.
        for round in 0..rounds {
            for turn in 0..units {
                let unit = self.unit_at(turn);
                let lpn = |at: u32| {
                    (u64::from(at / run) * u64::from(units) + u64::from(turn)) * u64::from(run)
                        + u64::from(at % run)
                };
                let mut filled = 0;
                for (at, p) in (round * ppb..).zip(page.iter_mut()) {
                    let held = lpn(at) < u64::from(pages);
                    *p = if held { lpn(at) as u32 + 1 } else { 0 };
                    filled += u32::from(held);
                }
                if filled > 0 {
                    let n = filled.next_multiple_of(run) as usize;
                    self.preset_block(unit, pools[unit as usize][round as usize], &page[..n], placed)?;
                    used[unit as usize] += 1;
                }
            }
        }
        for unit in 0..units {
            self.remove_filled(unit, used[unit as usize]);
        }
        Ok(())
    }

    /// Writes every page once, at its own position in a block of its own logical block. Logical blocks
    /// are striped over the units.
    pub(crate) fn fill_blocks(&mut self, pages: u32, placed: &mut impl FnMut(Lpn, Ppn, u64)) -> Result<()> {
        self.zero_scratch();
        let ppb = self.blocks().pages_per_block();
        let units = self.blocks().count() / self.blocks().blocks_per_unit();
        let pools: Vec<Vec<u32>> = (0..units).map(|u| self.fillable(u)).collect();
        let blocks = pages.div_ceil(ppb);
        for lbn in 0..blocks {
            let (unit, round) = (lbn % units, (lbn / units) as usize);
            let held: Vec<u32> = (lbn * ppb..((lbn + 1) * ppb).min(pages)).map(|lpn| lpn + 1).collect();
            self.preset_block(unit, pools[unit as usize][round], &held, placed)?;
        }
        for unit in 0..units {
            self.remove_filled(unit, (blocks.saturating_sub(unit)).div_ceil(units) as usize);
        }
        Ok(())
    }

    fn steady(&mut self, seed: u64, pages: u32, placed: &mut impl FnMut(Lpn, Ppn, u64)) -> Result<()> {
        let mut rng = SmallRng::seed_from_u64(seed);
        let blocks = self.blocks();
        let (units, ppb) = (blocks.count() / blocks.blocks_per_unit(), blocks.pages_per_block());
        let fifo = matches!(self.config().gc, Gc::Fifo(_));
        for turn in 0..units {
            let unit = self.unit_at(turn);
            let mut lpns: Vec<u32> = (turn..pages).step_by(units as usize).map(|l| l + 1).collect();
            lpns.shuffle(&mut rng);
            let mut pool = self.fillable(unit);
            // The free pool is at the level at which garbage collection starts, which may be above
            // the configured one, and has the blocks that are opened first.
            let free = self.config().low_blocks + OPENED;
            let kept = free.saturating_sub(self.reserved_blocks());
            // With little over-provisioning, all pages need more blocks than that.
            let needed = lpns.len().div_ceil(ppb as usize);
            pool.truncate(pool.len().saturating_sub(kept).max(needed));
            let rho = lpns.len() as f64 / (pool.len() as f64 * f64::from(ppb));
            let targets =
                if fifo { fifo_counts(rho, pool.len(), ppb) } else { greedy_counts(rho, pool.len(), ppb) };
            let targets = round_to_sum(targets, lpns.len(), ppb);
            let mut next = lpns.into_iter();
            let mut page = vec![0u32; ppb as usize];
            for (&block, &valid) in pool.iter().zip(&targets) {
                scatter(&mut page, valid, &mut next, &mut rng);
                self.preset_block(unit, block, &page, placed)?;
            }
            self.remove_filled(unit, pool.len());
        }
        Ok(())
    }
}

/// Puts the next `valid` pages at random positions of a block.
fn scatter(page: &mut [u32], valid: u32, next: &mut impl Iterator<Item = u32>, rng: &mut SmallRng) {
    let n = page.len() as u32;
    // Selection sampling: each position is taken with probability (pages left) / (positions left).
    let mut left = valid;
    for (i, p) in page.iter_mut().enumerate() {
        let take = rng.random_range(0..n - i as u32) < left;
        *p = if take { next.next().unwrap_or(0) } else { 0 };
        left -= u32::from(take);
    }
}

/// Valid counts of `blocks` blocks under greedy garbage collection, in the order in which they were
/// sealed.
fn greedy_counts(rho: f64, blocks: usize, b: u32) -> Vec<f64> {
    // p_i = c / i for i above level j; the remaining share q is at j. Find j and c such that the
    // shares add up to 1 and the mean is ρ b.
    let mean = rho * f64::from(b);
    for j in (0..b).rev() {
        let sum: f64 = (j + 1..=b).map(|i| 1.0 / f64::from(i)).sum();
        // Shares: c·sum + q = 1; mean: c·(b − j) + q·j = mean.
        let c = (mean - f64::from(j)) / (f64::from(b - j) - f64::from(j) * sum);
        let q = 1.0 - c * sum;
        // Valid if no share is negative, and level j has at most the share that the law gives it.
        if c >= 0.0 && q >= -1e-12 && (j == 0 || q <= c / f64::from(j) + 1e-12) {
            return spread(blocks, j, b, c, q);
        }
    }
    vec![mean; blocks]
}

/// Distributes blocks by the shares of the steady state, fewest valid pages first: those blocks are
/// the oldest.
fn spread(blocks: usize, j: u32, b: u32, c: f64, q: f64) -> Vec<f64> {
    let mut out = Vec::with_capacity(blocks);
    let mut share = q.max(0.0);
    let mut level = j;
    for n in 0..blocks {
        while (n as f64 + 0.5) / blocks as f64 > share && level < b {
            level += 1;
            share += c / f64::from(level);
        }
        out.push(f64::from(level));
    }
    out
}

/// Valid counts under FIFO garbage collection: p^x, with ρ = (p − 1) / ln p.
fn fifo_counts(rho: f64, blocks: usize, b: u32) -> Vec<f64> {
    // (p − 1) / ln p grows with p, so bisection finds p; p = 0 and p = 1 have no logarithm to
    // divide by.
    let (mut low, mut high) = (1e-12, 1.0 - 1e-12);
    for _ in 0..100 {
        let p: f64 = (low + high) / 2.0;
        if (p - 1.0) / p.ln() < rho { low = p } else { high = p }
    }
    let p: f64 = (low + high) / 2.0;
    (0..blocks).map(|n| p.powf(1.0 - (n as f64 + 0.5) / blocks as f64) * f64::from(b)).collect()
}

/// Rounds to whole counts that add up to `pages`, each as close to its target as possible.
fn round_to_sum(targets: Vec<f64>, pages: usize, b: u32) -> Vec<u32> {
    // Error diffusion: each rounding error is carried to the next block. The loop below settles the
    // rest.
    let mut carry = 0.0;
    let mut counts: Vec<u32> = targets
        .into_iter()
        .map(|t| {
            let whole = (t + carry).round().clamp(0.0, f64::from(b));
            carry += t - whole;
            whole as u32
        })
        .collect();
    let mut sum: i64 = counts.iter().map(|&c| i64::from(c)).sum();
    let pages = pages as i64;
    while sum != pages {
        let before = sum;
        for c in &mut counts {
            if sum < pages && *c < b {
                *c += 1;
                sum += 1;
            } else if sum > pages && *c > 0 {
                *c -= 1;
                sum -= 1;
            }
        }
        // All blocks are full or empty: the sum cannot get closer.
        if sum == before {
            break;
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_the_mean_that_was_asked_for() {
        for (rho, b) in [(0.5, 64), (0.78, 64), (0.9346, 64), (0.9, 256), (0.3, 8)] {
            for counts in [greedy_counts(rho, 10_000, b), fifo_counts(rho, 10_000, b)] {
                let mean = counts.iter().sum::<f64>() / 10_000.0;
                assert!((mean / f64::from(b) - rho).abs() < 0.01, "{rho} {b}: {mean}");
            }
        }
    }

    #[test]
    fn counts_settle_to_the_exact_number_of_pages() {
        for pages in [0, 1, 500, 639, 640] {
            let counts = round_to_sum(vec![48.3; 10], pages, 64);
            assert_eq!(counts.iter().sum::<u32>() as usize, pages);
            assert!(counts.iter().all(|&c| c <= 64));
        }
    }
}

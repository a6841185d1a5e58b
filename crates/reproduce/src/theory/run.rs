//! Measurement of a layer under uniform random one-page overwrites, with its actual state.

use super::layer::{MeasuredLayer, PAGE_BYTES, TestedLayer};
use super::{Policy, Theory};
use crate::{Error, Result};
use frit_core::{Op, Precondition, Sector, WriteData};
use frit_layer::flash::BlockUse;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};

/// Number of samples of all blocks in the measured part.
const SAMPLES: u64 = 256;
/// Number of rounds, each of as many writes as there are pages, over which write amplification must
/// be steady.
const STEADY_ROUNDS: usize = 5;
/// Maximum spread over those rounds, relative to their mean; twice the limit of the drift between
/// the first and the last pair.
const STEADY_SPREAD: f64 = 0.01;
/// Number of rounds after which the state is used even if it is not steady.
const ROUNDS_MAX: usize = 80;
/// Number of measured writes, in rounds.
const MEASURED_ROUNDS: u64 = 4;

/// Initial state of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InitialState {
    /// Every page is written once, in order; then pages are overwritten until the state is steady.
    Fill,
    /// The state that preconditioning draws from the stationary distribution.
    Steady,
}

/// Parameters of one run.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct TheoryCase {
    /// Layer whose garbage collection is measured.
    pub layer: MeasuredLayer,
    /// Garbage collection policy.
    pub policy: Policy,
    /// Number of blocks of all units.
    pub blocks: u32,
    /// Number of NAND units; each is cleaned separately.
    pub units: u32,
    /// Number of pages in a block.
    pub pages_per_block: u32,
    /// Number of pages that are programmed together.
    pub program_pages: u32,
    /// Nominal over-provisioning T/U − 1; T itself is known only from the resulting state.
    pub over_provisioning: f64,
    /// Initial state.
    pub start: InitialState,
    /// Seed of the random choices.
    pub seed: u64,
}

/// Result of one run, with the theory for its actual T.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct CaseResult {
    /// Parameters of the run.
    pub case: TheoryCase,
    /// U: number of mapped pages.
    pub mapped_pages: u64,
    /// Mean number of free blocks over the measured part.
    pub free_blocks: f64,
    /// Mean number of open blocks over the measured part.
    pub open_blocks: f64,
    /// T: mean number of pages of all other blocks over the measured part.
    pub data_pages: f64,
    /// Actual over-provisioning T/U − 1.
    pub over_provisioning: f64,
    /// Number of rounds of U writes before the measured part.
    pub rounds: usize,
    /// `true` if the state was steady after those rounds.
    pub settled: bool,
    /// Number of measured writes.
    pub writes: u64,
    /// Measured write amplification: pages programmed for each page written.
    pub measured: f64,
    /// Write amplification of the theory for `over_provisioning`.
    pub theory: f64,
    /// Write amplification of the theory for the nominal over-provisioning.
    pub theory_nominal: f64,
    /// Largest difference between measured and theoretical share of blocks with a number of valid
    /// pages.
    pub worst_share: f64,
    /// Number of valid pages with that difference.
    pub worst_at: u32,
    /// Largest difference between the cumulative shares (Kolmogorov's distance).
    pub kolmogorov: f64,
}

impl CaseResult {
    /// Returns the relative difference between measured and theoretical write amplification.
    #[must_use]
    pub fn distance(&self) -> f64 {
        self.measured / self.theory - 1.0
    }
}

/// Runs one case. `progress` is called with the number of completed rounds.
///
/// # Errors
/// The case is invalid.
pub fn run(case: TheoryCase, progress: &mut dyn FnMut(usize)) -> Result<CaseResult> {
    let (mut layer, pages) = TestedLayer::new(&case)?;
    let how = match case.start {
        InitialState::Fill => Precondition::Fill,
        InitialState::Steady => Precondition::Steady { seed: case.seed },
    };
    layer.precondition(how)?;
    let mut rng = SmallRng::seed_from_u64(case.seed);
    let (rounds, settled) = settle(&case, &mut layer, pages, &mut rng, progress)?;
    let before = programmed(&layer);
    let mut seen = BlockStateSums::new(case.pages_per_block);
    let step = pages * MEASURED_ROUNDS / SAMPLES;
    for _ in 0..SAMPLES {
        overwrite(&mut layer, pages, step, &mut rng)?;
        seen.look(&layer);
    }
    let writes = step * SAMPLES;
    let measured = (programmed(&layer) - before) as f64 / writes as f64;
    let b = f64::from(case.pages_per_block);
    let data_pages = seen.mean(seen.data) * b;
    let over_provisioning = data_pages / pages as f64 - 1.0;
    let at = |op: f64| {
        case.policy.theory(1.0 / (1.0 + op), case.pages_per_block).ok_or_else(|| Error::Description {
            name: case.policy.name().into(),
            why: format!("theory has no answer for an over-provisioning of {op:.4}"),
        })
    };
    let (theory, nominal) = (at(over_provisioning)?, at(case.over_provisioning)?);
    let (worst_share, worst_at, kolmogorov) = seen.against(&theory);
    Ok(CaseResult {
        case,
        mapped_pages: pages,
        free_blocks: seen.mean(seen.free),
        open_blocks: seen.mean(seen.open),
        data_pages,
        over_provisioning,
        rounds,
        settled,
        writes,
        measured,
        theory: theory.write_amplification,
        theory_nominal: nominal.write_amplification,
        worst_share,
        worst_at,
        kolmogorov,
    })
}

/// Overwrites until write amplification is steady. Returns the number of rounds, and `true` if it
/// is steady.
fn settle(
    case: &TheoryCase,
    layer: &mut TestedLayer,
    pages: u64,
    rng: &mut SmallRng,
    progress: &mut dyn FnMut(usize),
) -> Result<(usize, bool)> {
    // Preconditioning draws the stationary state; one round lets pools and open blocks settle.
    if case.start == InitialState::Steady {
        overwrite(layer, pages, pages, rng)?;
        return Ok((1, true));
    }
    let mut history: Vec<f64> = Vec::new();
    while history.len() < ROUNDS_MAX {
        let before = programmed(layer);
        overwrite(layer, pages, pages, rng)?;
        history.push((programmed(layer) - before) as f64 / pages as f64);
        progress(history.len());
        if steady(&history) {
            return Ok((history.len(), true));
        }
    }
    Ok((history.len(), false))
}

fn steady(history: &[f64]) -> bool {
    let Some(last) = history.len().checked_sub(STEADY_ROUNDS).map(|from| &history[from..]) else {
        return false;
    };
    let mean = last.iter().sum::<f64>() / last.len() as f64;
    let (low, high) = last.iter().fold((f64::MAX, f64::MIN), |(l, h), &w| (l.min(w), h.max(w)));
    let drift = (last[3] + last[4] - last[0] - last[1]) / 2.0;
    high - low <= STEADY_SPREAD * mean && drift.abs() <= STEADY_SPREAD / 2.0 * mean
}

fn overwrite(layer: &mut TestedLayer, pages: u64, writes: u64, rng: &mut SmallRng) -> Result<()> {
    let sectors = u64::from(PAGE_BYTES) / frit_core::SECTOR_BYTES;
    for _ in 0..writes {
        let at = Sector(rng.random_range(0..pages) * sectors);
        layer.write(at, WriteData::Len(PAGE_BYTES))?;
    }
    Ok(())
}

/// Number of pages programmed so far.
fn programmed(layer: &TestedLayer) -> u64 {
    let bytes = layer.flash().nand().views().map(|v| v.counts.of(Op::NandProgram).bytes);
    bytes.sum::<u64>() / u64::from(PAGE_BYTES)
}

/// Sums of block states over all samples.
struct BlockStateSums {
    looks: u64,
    free: u64,
    open: u64,
    data: u64,
    /// Sealed blocks by number of valid pages.
    valid: Vec<u64>,
}

impl BlockStateSums {
    fn new(pages_per_block: u32) -> BlockStateSums {
        BlockStateSums { looks: 0, free: 0, open: 0, data: 0, valid: vec![0; pages_per_block as usize + 1] }
    }

    fn look(&mut self, layer: &TestedLayer) {
        let blocks = layer.flash().blocks();
        self.looks += 1;
        for block in 0..blocks.count() {
            match blocks.state(block) {
                BlockUse::Free => self.free += 1,
                BlockUse::Open => self.open += 1,
                BlockUse::Sealed => {
                    self.data += 1;
                    self.valid[usize::from(blocks.valid(block))] += 1;
                }
                BlockUse::Victim | BlockUse::Emptied | BlockUse::Placed | BlockUse::Cached => self.data += 1,
                BlockUse::Retiring | BlockUse::Bad => {}
            }
        }
    }

    fn mean(&self, sum: u64) -> f64 {
        sum as f64 / self.looks.max(1) as f64
    }

    /// Returns the largest difference of a share, its number of valid pages, and the largest
    /// difference of cumulative shares.
    fn against(&self, theory: &Theory) -> (f64, u32, f64) {
        let all = self.valid.iter().sum::<u64>().max(1) as f64;
        let (mut worst, mut at, mut sum, mut kolmogorov) = (0.0f64, 0, 0.0f64, 0.0f64);
        for (i, (&count, &share)) in self.valid.iter().zip(&theory.shares).enumerate() {
            let difference = count as f64 / all - share;
            if difference.abs() > worst.abs() {
                (worst, at) = (difference, i as u32);
            }
            sum += difference;
            kolmogorov = kolmogorov.max(sum.abs());
        }
        (worst, at, kolmogorov)
    }
}

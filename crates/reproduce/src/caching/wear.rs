//! Wear of the cache's PCM under each wear leveler, from the cache's writes, without media.

use super::cache_run::{CacheRun, drive};
use crate::Result;
use crate::sweep::AvailableWorkload;
use frit_core::{Cmd, CommandObserver, Op, SECTOR_BYTES, UntimedSink};
use frit_stack::Bytes;
use frit_trace::Fit;
use frit_wear::sim::{SimReport, Simulation};
use frit_wear::{LevelerKind, WearConfig};

/// Size of a block, in bytes.
const BLOCK_BYTES: u64 = 4096;
/// Endurance: writes to a cell until it wears out. It does not affect life rates.
const ENDURANCE: u64 = 100_000_000;
/// Number of blocks that are passed to the simulations together.
const BATCH: usize = 1 << 14;

/// Observer that passes the blocks written to PCM to simulated levelers.
struct WearSimulations {
    simulations: Vec<Simulation>,
    /// Number of blocks that all simulations have.
    blocks: u64,
    batch: Vec<u32>,
}

impl WearSimulations {
    fn flush(&mut self) {
        for s in &mut self.simulations {
            s.write(&self.batch);
        }
        self.batch.clear();
    }
}

impl CommandObserver for WearSimulations {
    fn command(&mut self, cmd: &Cmd) {
        // Records are smaller than a sector. The paper keeps them in the metadata sections of the
        // blocks, so they are not counted.
        if cmd.op != Op::PcmWrite || u64::from(cmd.len) < SECTOR_BYTES {
            return;
        }
        self.batch.push((cmd.addr / BLOCK_BYTES % self.blocks) as u32);
        if self.batch.len() == BATCH {
            self.flush();
        }
    }
}

/// Returns the wear by a workload's cache, by leveler.
///
/// # Errors
/// A stack, a workload or a leveler is invalid.
pub(crate) fn wear(
    cell: &CacheRun,
    input: &AvailableWorkload,
    levelers: &[LevelerKind],
) -> Result<Vec<SimReport>> {
    let simulation = |&leveler: &LevelerKind| {
        let plain = WearConfig { leveler, ..WearConfig::default() };
        // Cubes have 16 stripes a bank, as in Table I of the paper; a smaller PCM has fewer cubes.
        let stripes = cell.cache_bytes / u64::from(plain.stripe_bytes);
        let deep = stripes / u64::from(plain.ranks * plain.banks);
        let cubes = (deep / 16).clamp(1, u64::from(plain.cubes)) as u32;
        Simulation::new(&WearConfig { cubes, ..plain }, cell.cache_bytes)
    };
    let simulations: Vec<Simulation> = levelers.iter().map(simulation).collect::<frit_core::Result<_>>()?;
    let blocks = simulations.iter().map(Simulation::blocks).min().unwrap_or(1);
    let batch = Vec::with_capacity(BATCH);
    let mut sink = UntimedSink::observed(WearSimulations { simulations, blocks, batch });
    let mut built = cell.stack()?.build_untimed(&Bytes::None).map_err(Box::new)?;
    let top = built.layer.as_mut();
    let mut workload = input.open()?.fit(Fit::Strict, top.info().sectors, None)?;
    drive(top, &mut sink, &mut workload)?;
    Ok(sink.observer().map_or_else(Vec::new, |wear: &mut WearSimulations| {
        wear.flush();
        wear.simulations.iter().map(|s| s.report(ENDURANCE)).collect()
    }))
}

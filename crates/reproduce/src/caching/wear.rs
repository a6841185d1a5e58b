//! Wear of the cache's PCM under each wear leveler, from the cache's writes.
//!
//! The data alone is counted without media: one pass of the cache feeds all simulated levelers. The
//! whole PCM, with the records of the blocks and the registers of the leveler, is measured on a
//! stack with that leveler.

use super::cache_run::{CacheRun, drive, pcm_chips};
use crate::Result;
use crate::sweep::AvailableWorkload;
use frit_core::{Cmd, CommandObserver, Error, Op, SECTOR_BYTES, Sink, StackView, Tok};
use frit_stack::{Bytes, Stack};
use frit_trace::Fit;
use frit_wear::sim::{SimReport, Simulation};
use frit_wear::{LevelerKind, WearConfig};

/// Size of a block, in bytes.
const BLOCK_BYTES: u64 = 4096;
/// Endurance: writes to a cell until it wears out. It does not affect life rates.
const ENDURANCE: u64 = 100_000_000;
/// Number of blocks that are passed to the simulations together.
const BATCH: usize = 1 << 14;

/// Observer that passes the blocks written to the cache's slots to simulated levelers.
struct WearSimulations {
    simulations: Vec<Simulation>,
    /// Address of the first slot.
    data_at: u64,
    batch: Vec<u32>,
    /// First error of a simulation.
    failed: Option<Error>,
}

impl WearSimulations {
    fn flush(&mut self) {
        for s in &mut self.simulations {
            if let Err(e) = s.write(&self.batch) {
                self.failed.get_or_insert(e);
            }
        }
        self.batch.clear();
    }
}

impl CommandObserver for WearSimulations {
    fn command(&mut self, cmd: &Cmd, _: Tok, _: Tok) {
        // Records are smaller than a sector. The paper keeps them in the metadata sections of the
        // blocks, so they are not counted.
        if cmd.op != Op::PcmWrite || u64::from(cmd.len) < SECTOR_BYTES || cmd.addr < self.data_at {
            return;
        }
        // Addresses are not wrapped: the simulation refuses one that is not a slot.
        let slot = (cmd.addr - self.data_at) / BLOCK_BYTES;
        self.batch.push(u32::try_from(slot).unwrap_or(u32::MAX));
        if self.batch.len() == BATCH {
            self.flush();
        }
    }
}

/// Returns the wear of the slots by a workload's cache, by leveler. Each leveler has a PCM that
/// offers at least all slots.
///
/// # Errors
/// A stack, a workload or a leveler is invalid.
pub(crate) fn wear(
    cell: &CacheRun,
    input: &AvailableWorkload,
    levelers: &[(LevelerKind, bool)],
) -> Result<Vec<SimReport>> {
    let simulation = |&(leveler, turn): &(LevelerKind, bool)| {
        Simulation::offering(&config(cell, leveler, turn), cell.cache_bytes / BLOCK_BYTES)
    };
    let simulations: Vec<Simulation> = levelers.iter().map(simulation).collect::<frit_core::Result<_>>()?;
    let mut built = cell.stack()?.build(&Bytes::None).map_err(Box::new)?;
    let top = built.layer.as_mut();
    let data_at = top.info().durable_map_bytes;
    let batch = Vec::with_capacity(BATCH);
    let mut sink = Sink::untimed().observed(WearSimulations { simulations, data_at, batch, failed: None });
    let mut workload = input.open()?.fit(Fit::Strict, top.info().sectors, None)?;
    drive(top, &mut sink, &mut workload)?;
    let Some(wear) = sink.observer::<WearSimulations>() else { return Ok(Vec::new()) };
    wear.flush();
    match wear.failed.take() {
        Some(e) => Err(e.into()),
        None => Ok(wear.simulations.iter().map(|s| s.report(ENDURANCE)).collect()),
    }
}

/// Returns the life rate of the whole PCM of a stack with this leveler: of the slots, their records
/// and the registers of the leveler.
///
/// # Errors
/// A stack or a workload is invalid.
pub(crate) fn stack_life_rate(
    cell: &CacheRun,
    input: &AvailableWorkload,
    leveler: LevelerKind,
) -> Result<f64> {
    let mut built = leveled_stack(cell, leveler)?.build(&Bytes::None).map_err(Box::new)?;
    let top = built.layer.as_mut();
    let mut workload = input.open()?.fit(Fit::Strict, top.info().sectors, None)?;
    drive(top, &mut Sink::untimed(), &mut workload)?;
    let mut view = StackView::default();
    top.visible(&mut view);
    Ok(view.metric("wear_life_rate").unwrap_or(0.0))
}

/// Returns the stack of a run with a leveler, whose PCM has room for the slots, the records, the
/// stripes that the leveler leaves empty, and its registers.
fn leveled_stack(cell: &CacheRun, leveler: LevelerKind) -> Result<Stack> {
    let config = config(cell, leveler, true);
    // A record takes 32 bytes a block, the header a few KiB.
    let bytes = cell.cache_bytes + cell.cache_bytes / 64 + (1 << 20);
    let data = Simulation::offering(&config, bytes.div_ceil(BLOCK_BYTES))?.report(ENDURANCE).pcm_bytes;
    // A register takes a line a stripe; lines have at most 512 bytes in the profiles of this study.
    let need = data + (data / u64::from(config.stripe_bytes) + 2) * 512;
    let plain = Stack::load(&cell.stack, &cell.set).map_err(Box::new)?;
    let chip = need.div_ceil(pcm_chips(&plain)).next_multiple_of(1 << 16);
    let mut set = cell.set.clone();
    set.push(format!("media.pcm.chip_bytes={chip}"));
    set.push(format!("cache.cache_bytes={}", cell.cache_bytes));
    set.push(format!("cache.wear_leveling={}", <&str>::from(leveler)));
    set.push(format!("cache.wear_cubes={}", config.cubes));
    Ok(Stack::load(&cell.stack, &set).map_err(Box::new)?)
}

fn config(cell: &CacheRun, leveler: LevelerKind, turn: bool) -> WearConfig {
    let plain = WearConfig { leveler, turn, ..WearConfig::default() };
    // Cubes have 16 stripes a bank, as in Table I of the paper; a smaller PCM has fewer cubes.
    let stripes = cell.cache_bytes / u64::from(plain.stripe_bytes);
    let deep = stripes / u64::from(plain.ranks * plain.banks);
    let cubes = (deep / 16).clamp(1, u64::from(plain.cubes)) as u32;
    WearConfig { cubes, ..plain }
}

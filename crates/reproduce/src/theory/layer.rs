//! The layers whose garbage collection is measured, on NAND alone and without data.

use super::{Policy, TheoryCase};
use crate::{Error, Result};
use frit_core::{
    BlockLayer, Hints, Nanos, Precondition, Preconditioning, SECTOR_BYTES, Sector, Sink, WriteData,
};
use frit_layer::flash::Flash;
use frit_layer::{Ftl, FtlConfig, FusionMethod, Hfsl, HfslConfig};
use frit_media::{
    CommandCycles, Hardware, Nand, NandConfig, NandFaults, NandGeometry, NandTiming, NoStore, PlaneOps,
    SlcArea,
};
use serde::{Deserialize, Serialize};

/// Page size in bytes. Its value has no effect, because no data is stored.
pub(super) const PAGE_BYTES: u32 = 4096;

/// Layer whose garbage collection is measured.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MeasuredLayer {
    /// HFSL without PCM, with one stream: heat classification is off.
    #[default]
    Hfsl,
    /// The page-mapped FTL. A merge buffer collects the pages that are programmed together.
    Ftl,
}

/// A layer on NAND alone.
pub(super) enum TestedLayer {
    Hfsl(Box<Hfsl>),
    Ftl(Box<Ftl>),
}

impl TestedLayer {
    /// Builds the layer of a case, without wear leveling. Also returns its number of pages.
    pub(super) fn new(case: &TheoryCase) -> Result<(TestedLayer, u64)> {
        let refused = |why: String| refused(case.policy, why);
        let config = nand(case);
        let blocks = u64::from(config.geometry.blocks());
        let nand = Nand::new(config, NoStore, &mut Hardware::new()).map_err(|e| refused(e.to_string()))?;
        let layer = match case.layer {
            MeasuredLayer::Hfsl => {
                // A unit keeps `gc_low_blocks` free, and has one block open for the host and one for
                // garbage collection.
                let spare = u64::from(case.units) * u64::from(HfslConfig::default().gc_low_blocks + 2);
                let data = blocks.saturating_sub(spare) * u64::from(case.pages_per_block);
                let pages = (data as f64 / (1.0 + case.over_provisioning)) as u64;
                let config = HfslConfig {
                    fusion_method: FusionMethod::None,
                    gc: case.policy.name().into(),
                    wear_leveling: "none".into(),
                    heat: "off".into(),
                    capacity: pages * u64::from(PAGE_BYTES),
                    ..HfslConfig::default()
                };
                let layer = Hfsl::new(config, nand, None).map_err(|e| refused(e.to_string()))?;
                TestedLayer::Hfsl(Box::new(layer))
            }
            MeasuredLayer::Ftl => {
                let config = FtlConfig {
                    gc: case.policy.name().into(),
                    wear_leveling: "none".into(),
                    merge_buffer: if case.program_pages > 1 { 2 } else { 0 },
                    over_provisioning: case.over_provisioning,
                    ..FtlConfig::default()
                };
                TestedLayer::Ftl(Box::new(Ftl::new(config, nand).map_err(|e| refused(e.to_string()))?))
            }
        };
        let pages = layer.sectors() * SECTOR_BYTES / u64::from(PAGE_BYTES);
        Ok((layer, pages))
    }

    fn sectors(&self) -> u64 {
        match self {
            TestedLayer::Hfsl(layer) => BlockLayer::info(&**layer).sectors,
            TestedLayer::Ftl(layer) => BlockLayer::info(&**layer).sectors,
        }
    }

    pub(super) fn precondition(&mut self, how: Precondition) -> Result<()> {
        match self {
            TestedLayer::Hfsl(layer) => layer.precondition(how)?,
            TestedLayer::Ftl(layer) => layer.precondition(how)?,
        }
        Ok(())
    }

    #[inline]
    pub(super) fn write(&mut self, at: Sector, data: WriteData<'_>) -> Result<()> {
        let sink = &mut Sink::untimed();
        match self {
            TestedLayer::Hfsl(layer) => layer.write(sink, at, data, Hints::NONE)?,
            TestedLayer::Ftl(layer) => layer.write(sink, at, data, Hints::NONE)?,
        }
        Ok(())
    }

    pub(super) fn flash(&self) -> &Flash {
        match self {
            TestedLayer::Hfsl(layer) => layer.flash(),
            TestedLayer::Ftl(layer) => layer.flash(),
        }
    }
}

fn refused(policy: Policy, why: String) -> Error {
    Error::Description { name: policy.name().into(), why }
}

/// NAND whose commands take no time.
fn nand(case: &TheoryCase) -> NandConfig {
    let free = Nanos::ZERO;
    NandConfig {
        name: "nand".into(),
        geometry: NandGeometry {
            channels: case.units,
            chips_per_channel: 1,
            dies_per_chip: 1,
            planes_per_die: 1,
            blocks_per_plane: case.blocks / case.units.max(1),
            pages_per_block: case.pages_per_block,
            page_bytes: PAGE_BYTES,
            spare_bytes: 256,
            plane_ops: PlaneOps::Single,
            program_pages: case.program_pages,
            record_copies: 1,
            slc: SlcArea::default(),
        },
        timing: NandTiming {
            t_read: free,
            t_prog: free,
            t_erase: free,
            bus_ps_per_byte: 0,
            t_command: CommandCycles::all(free),
            t_plane: CommandCycles::all(free),
            t_cache_busy: None,
        },
        cells: None,
        slc: None,
        endurance: u32::MAX,
        faults: NandFaults::default(),
        serial: 0,
    }
}

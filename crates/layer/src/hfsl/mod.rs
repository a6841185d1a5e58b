//! HFSL: a host layer that fuses PCM and NAND, with methods and policies that software defines.
//!
//! Source: Li et al., *A user-visible solid-state storage system with software-defined fusion methods
//! for PCM and NAND flash*, J. Syst. Archit. 2016. Sections are named where they are implemented;
//! `docs/hfsl.md` lists what the paper leaves open and how it is read here.
//!
//! | file | subject |
//! |---|---|
//! | `entry`, `mapping` | the 8-byte map entry; the table in DRAM and PCM |
//! | `head`, `flush_map` | state, numbers and redo slot; the map as of the last flush |
//! | `pcm` | division of PCM, slots, descriptors, regions |
//! | `route` | which medium a write goes to |
//! | `to_pcm`, `to_nand` | writing a page to either |
//! | `read`, `read_buffer` | reading, wherever a page lies; copies in DRAM |
//! | `destage` | pages that leave PCM |
//! | `atomic` | pages smaller than 4 KiB that change together |
//! | `boot`, `recover` | halt and boot; coming up after a stop |
//! | `durable`, `check`, `repair` | what a volume asks of the layer |
//! | `precondition` | volumes that are not new |
//! | `raw` | bytes, and physical addresses |
//! | `params`, `view` | what can be changed, and seen |

mod atomic;
mod boot;
pub mod buffer;
mod check;
mod config;
mod destage;
mod durable;
mod entry;
mod flush_map;
mod head;
pub mod heat;
mod layer;
mod mapping;
mod params;
mod pcm;
pub mod placement;
mod precondition;
mod raw;
mod read;
mod read_buffer;
mod recover;
mod repair;
mod route;
mod to_nand;
mod to_pcm;
mod view;

#[cfg(test)]
mod tests;

pub use config::{FusionMethod, HfslConfig, MapPersist, SswCompare};
pub use entry::{Entry, Place};

use crate::Token;
use crate::flash::{Flash, FlashConfig, Gc, Wear, WearPolicy};
use crate::named::named;
use buffer::Buffer;
use entry::SUBPAGES_MAX;
use frit_core::{Error, Lpn, PAGE_NONE, Result, SECTOR_BYTES};
use frit_media::{Dram, Nand, NandGeometry, Pcm, Store};
use heat::{Heat, HeatPolicy};
use mapping::Mapping;
use pcm::PcmSpace;
use placement::Placement;
use read_buffer::ReadBuffer;

/// Events that are no commands. Commands are counted by the media.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct HfslStats {
    /// Writes of part of a page that lies in NAND: the paper's "update times" (section 3.3.3).
    pub(crate) flash_updates: u64,
    /// Pages that moved from NAND to PCM since a small write met them.
    pub(crate) to_pcm: u64,
    /// Pages that left PCM since a large write met them.
    pub(crate) to_nand: u64,
    /// Pages that left PCM to make room.
    pub(crate) destaged: u64,
    /// Writes that had to wait for a page to leave PCM.
    pub(crate) destage_waits: u64,
    /// Writes meant for PCM that went to NAND since PCM had no room.
    pub(crate) overflowed: u64,
}

/// The layer. `T` is the token of the sinks it works with; `N` and `P` hold the bytes of NAND and
/// PCM, both or neither.
#[derive(Debug)]
pub struct Hfsl<T, N: Store, P: Store> {
    pub(crate) config: HfslConfig,
    pub(crate) flash: Flash<T, N>,
    pub(crate) map: Mapping<T, P>,
    pub(crate) placement: Placement,
    pub(crate) heat: Heat,
    pub(crate) heat_on: bool,
    pub(crate) stats: HfslStats,
    pub(crate) page_bytes: u32,
    /// Logical pages.
    pub(crate) pages: u32,
    /// A page being put together; empty when the media hold no bytes.
    pub(crate) scratch: Vec<u8>,
    /// What the head in PCM says of the layer's use.
    pub(crate) usage: recover::Usage,
    pub(crate) dram: Option<ReadBuffer<P>>,
}

impl<T: Token, N: Store, P: Store> Hfsl<T, N, P> {
    /// A layer over new media. Without PCM it is a page-mapped FTL on NAND: the baseline.
    ///
    /// # Errors
    /// A parameter that cannot be with these media, with what it may be.
    pub fn new(config: HfslConfig, nand: Nand<N>, pcm: Option<Pcm<P>>) -> Result<Self> {
        config.validate()?;
        let g = *nand.geometry();
        check_sizes(&config, &g, pcm.as_ref().map(Pcm::bytes))?;
        let (pages, share) = match pcm.as_ref().map(head::made_for).transpose()?.flatten() {
            // Blocks that went bad since do not change the size.
            Some(pages) if config.capacity == 0 => (pages, pages.div_ceil(g.units())),
            _ => capacity(&config, &nand)?,
        };
        let mut wear: Wear = named("wear_leveling", &config.wear_leveling)?;
        wear.set_threshold(config.wear_threshold);
        let flash_config = FlashConfig {
            gc: named::<Gc>("gc", &config.gc)?,
            wear,
            low_blocks: config.gc_low_blocks as usize,
            high_blocks: config.gc_high_blocks as usize,
            copyback: config.copyback,
        };
        let buffer: Buffer = named("buffer", &config.buffer)?;
        let pcm = match pcm {
            Some(medium) => {
                let sub = subpage(&config, g.page_bytes)?;
                Some(PcmSpace::new(medium, pages, g.page_bytes, sub, &buffer, config.flush_map)?)
            }
            None => None,
        };
        let mut heat: Heat = named("heat", &config.heat)?;
        heat.set_window(config.heat_window);
        let mut hfsl = Hfsl {
            placement: named("placement", &config.placement)?,
            heat_on: config.heat != "off",
            heat,
            stats: HfslStats::default(),
            page_bytes: g.page_bytes,
            pages,
            scratch: if N::HOLDS { vec![0; g.page_bytes as usize] } else { Vec::new() },
            flash: Flash::new(nand, flash_config, share),
            dram: None,
            map: Mapping::new(pages, pcm, config.map_persist),
            usage: recover::Usage::default(),
            config,
        };
        if hfsl.map.each() {
            hfsl.flash.keep_order(hfsl.config.flush_map);
        }
        hfsl.apply_fusion();
        Ok(hfsl)
    }

    /// With a DRAM buffer for pages that are read from NAND.
    ///
    /// # Errors
    /// A buffer that is smaller than a page.
    pub fn with_dram(mut self, dram: Dram<P>) -> Result<Self> {
        let policy = named("buffer", &self.config.buffer)?;
        self.dram = Some(ReadBuffer::new(dram, self.page_bytes, policy)?);
        Ok(self)
    }

    /// Divides PCM as the fusion method says; pages above a quota leave in time.
    pub(crate) fn apply_fusion(&mut self) {
        let ratio = self.config.cache_ratio;
        let (level, cache) = match self.config.fusion_method {
            FusionMethod::None => (0.0, 0.0),
            FusionMethod::Cache => (0.0, 1.0),
            FusionMethod::SameLevel => (1.0, 0.0),
            FusionMethod::Both => (1.0 - ratio, ratio),
        };
        if let Some(pcm) = &mut self.map.pcm {
            pcm.set_quotas(level, cache);
        }
    }

    /// The NAND side.
    #[must_use]
    pub fn flash(&self) -> &Flash<T, N> {
        &self.flash
    }

    /// The NAND side, for faults.
    pub fn flash_mut(&mut self) -> &mut Flash<T, N> {
        &mut self.flash
    }

    /// The map entry of a page; `None` past the end.
    #[must_use]
    pub fn entry(&self, lpn: Lpn) -> Option<Entry> {
        self.map.table.get(lpn.idx()).copied().map(Entry)
    }

    /// The configuration as it is now.
    #[must_use]
    pub fn config(&self) -> &HfslConfig {
        &self.config
    }
}

/// The sub-page, in bytes, given or derived.
fn subpage(config: &HfslConfig, page_bytes: u32) -> Result<u32> {
    let least = (page_bytes / SUBPAGES_MAX).max(SECTOR_BYTES as u32);
    let sub = match config.subpage_size {
        0 => least,
        n => u32::try_from(n).unwrap_or(u32::MAX),
    };
    if sub < least || sub > page_bytes || !sub.is_power_of_two() || !page_bytes.is_multiple_of(sub) {
        return Err(Error::param(
            "SUBPAGE_SIZE",
            sub,
            format!(
                "with pages of {page_bytes} bytes it has to be a power of two from {least} to {page_bytes}"
            ),
        ));
    }
    Ok(sub)
}

/// Parameters of Table 5 that describe the media have to agree with them.
fn check_sizes(config: &HfslConfig, g: &NandGeometry, pcm_bytes: Option<u64>) -> Result<()> {
    let page = u64::from(g.page_bytes);
    let block = page * u64::from(g.pages_per_block);
    let checks = [
        ("FLASHSIZE", config.flashsize, g.bytes()),
        ("PAGESIZE", config.pagesize, page),
        ("BLOCKSIZE", config.blocksize, block),
        ("BLOCKNUM", config.blocknum, u64::from(g.blocks())),
        ("PCMSIZE", config.pcmsize, pcm_bytes.unwrap_or(0)),
        ("ADDR_GRAN_flash", config.addr_gran_flash, page),
    ];
    for (key, given, is) in checks {
        if given != 0 && given != is {
            return Err(Error::param(key, given, format!("the media of the stack make it {is}")));
        }
    }
    if pcm_bytes.is_none() && config.fusion_method != FusionMethod::None {
        let name: &'static str = config.fusion_method.into();
        return Err(Error::param("FUSION_METHOD", name, "needs a PCM medium in the stack; or use \"none\""));
    }
    if pcm_bytes.is_none() && config.map_persist == MapPersist::Each {
        return Err(Error::param("map_persist", "each", "needs a PCM medium in the stack to hold the map"));
    }
    if config.flush_map && config.map_persist != MapPersist::Each {
        let why = "goes with map_persist = \"each\" only: the map is kept with each write first";
        return Err(Error::param("flush_map", true, why));
    }
    Ok(())
}

/// Logical pages, and how many of them one NAND unit takes at most.
fn capacity<N: Store>(config: &HfslConfig, nand: &Nand<N>) -> Result<(u32, u32)> {
    let g = nand.geometry();
    let usable = Flash::<(), N>::usable_pages_per_unit(nand, config.map_persist == MapPersist::Each);
    // One block's worth of invalid pages, so that cleaning always gains something.
    let most = u64::from(usable.saturating_sub(g.pages_per_block)) * u64::from(g.units());
    if most == 0 {
        let why = match config.map_persist {
            MapPersist::Halt => {
                "a NAND unit needs at least 7 good blocks: 2 for cleaning, 3 open, 1 to gain and 1 for data"
            }
            MapPersist::Each => {
                "a NAND unit needs at least 8 good blocks: 3 for cleaning, 3 open, 1 to gain and 1 for data"
            }
        };
        return Err(Error::param("blocks_per_plane", g.blocks_per_plane, why));
    }
    let pages = if config.capacity == 0 {
        let all = u64::from(usable) * u64::from(g.units());
        ((all as f64 / (1.0 + config.over_provisioning)) as u64).min(most)
    } else {
        config.capacity.div_ceil(u64::from(g.page_bytes))
    };
    if pages > most || pages == 0 || pages >= u64::from(PAGE_NONE) {
        let why = format!("the NAND of the stack holds at most {} bytes", most * u64::from(g.page_bytes));
        return Err(Error::param("capacity", config.capacity, why));
    }
    Ok((pages as u32, (pages as u32).div_ceil(g.units())))
}

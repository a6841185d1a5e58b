//! HFSL: a host-side layer that fuses PCM and NAND by software-defined methods and policies.
//!
//! Source: Li et al., *A user-visible solid-state storage system with software-defined fusion methods
//! for PCM and NAND flash*, J. Syst. Archit. 2016. Sections are named where they are implemented;
//! `docs/reference/hfsl.md` lists what the paper leaves open and the reading that is implemented.
//!
//! | file | subject |
//! |---|---|
//! | `entry`, `mapping` | the 8-byte map entry; the mapping table in DRAM and PCM |
//! | `header`, `flush_map` | header, sequence numbers, redo slot; the map as of the last flush |
//! | `pcm` | layout of PCM, sub-page slots, descriptors, regions |
//! | `route` | choice of the medium of a write |
//! | `to_pcm`, `to_nand` | writes of a page to PCM and to NAND |
//! | `read`, `read_buffer` | reads from either medium; the DRAM read buffer |
//! | `destage` | destaging of pages from PCM to NAND |
//! | `atomic` | atomic updates of the pages (smaller than 4 KiB) of one 4 KiB block |
//! | `boot`, `recover` | clean halt and boot; recovery after a crash or a power loss |
//! | `durable`, `check`, `repair` | the volume interface: recovery, consistency check, repair |
//! | `precondition` | preconditioning: full volumes and the steady state |
//! | `raw` | access by physical address |
//! | `params`, `view` | run-time parameters; metrics and residence |

mod atomic;
mod boot;
pub mod buffer;
mod check;
mod config;
mod destage;
mod durable;
mod entry;
mod flush_map;
mod header;
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
pub use entry::{MapEntry, PageLocation};

use crate::Token;
use crate::flash::{Flash, FlashConfig, Gc, Wear, WearPolicy};
use buffer::Buffer;
use entry::SUBPAGES_MAX;
use frit_core::params::parse_name;
use frit_core::{Error, Lpn, PAGE_NONE, Result, SECTOR_BYTES};
use frit_media::{Dram, Nand, NandGeometry, Pcm, Store};
use heat::{Heat, HeatPolicy};
use mapping::Mapping;
use pcm::PcmSpace;
use placement::Placement;
use read_buffer::ReadBuffer;

/// Counters of events that are not commands. The media count commands.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct HfslStats {
    /// Writes of part of a page that is in NAND: the paper's "update times" (section 3.3.3).
    pub(crate) flash_updates: u64,
    /// Pages moved from NAND to PCM by a write that the policy sends to PCM.
    pub(crate) to_pcm: u64,
    /// Pages moved from PCM to NAND by a write that the policy sends to NAND.
    pub(crate) to_nand: u64,
    /// Pages destaged from PCM to free slots.
    pub(crate) destaged: u64,
    /// Destages that a write had to wait for.
    pub(crate) destage_waits: u64,
    /// Writes intended for PCM that went to NAND because PCM had no free space.
    pub(crate) overflowed: u64,
}

/// The HFSL layer. `T` is the token of the sinks; `N` and `P` store the bytes of NAND and PCM
/// (either both hold bytes or neither does).
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
    /// Number of logical pages.
    pub(crate) pages: u32,
    /// Buffer in which a page is assembled; empty when the media hold no bytes.
    pub(crate) scratch: Vec<u8>,
    /// State of use, as recorded in the header in PCM.
    pub(crate) usage: recover::UsageState,
    pub(crate) dram: Option<ReadBuffer<P>>,
}

impl<T: Token, N: Store, P: Store> Hfsl<T, N, P> {
    /// Creates a layer over the given media. Without PCM it is a page-mapped FTL on NAND: the
    /// baseline.
    ///
    /// # Errors
    /// A parameter that does not fit these media; the error names the permitted values.
    pub fn new(config: HfslConfig, nand: Nand<N>, pcm: Option<Pcm<P>>) -> Result<Self> {
        config.validate()?;
        let g = *nand.geometry();
        check_sizes(&config, &g, pcm.as_ref().map(Pcm::bytes))?;
        let (pages, share) = match pcm.as_ref().map(header::formatted_pages).transpose()?.flatten() {
            // The capacity does not change when blocks go bad after the volume was formatted.
            Some(pages) if config.capacity == 0 => (pages, pages.div_ceil(g.units())),
            _ => capacity(&config, &nand)?,
        };
        let mut wear: Wear = parse_name("wear_leveling", &config.wear_leveling)?;
        wear.set_threshold(config.wear_threshold);
        let flash_config = FlashConfig {
            gc: parse_name::<Gc>("gc", &config.gc)?,
            wear,
            low_blocks: config.gc_low_blocks as usize,
            high_blocks: config.gc_high_blocks as usize,
            copyback: config.copyback,
        };
        let buffer: Buffer = parse_name("buffer", &config.buffer)?;
        let pcm = match pcm {
            Some(medium) => {
                let sub = subpage(&config, g.page_bytes)?;
                Some(PcmSpace::new(medium, pages, g.page_bytes, sub, &buffer, config.flush_map)?)
            }
            None => None,
        };
        let mut heat: Heat = parse_name("heat", &config.heat)?;
        heat.set_window(config.heat_window);
        let mut hfsl = Hfsl {
            placement: parse_name("placement", &config.placement)?,
            heat_on: config.heat != "off",
            heat,
            stats: HfslStats::default(),
            page_bytes: g.page_bytes,
            pages,
            scratch: if N::HOLDS { vec![0; g.page_bytes as usize] } else { Vec::new() },
            flash: Flash::new(nand, flash_config, share),
            dram: None,
            map: Mapping::new(pages, pcm, config.map_persist),
            usage: recover::UsageState::default(),
            config,
        };
        // With a durable map, an erase must not destroy a page that a durable entry still names.
        if hfsl.map.each() {
            hfsl.flash.enforce_erase_order(hfsl.config.flush_map);
        }
        hfsl.apply_fusion();
        Ok(hfsl)
    }

    /// Adds a DRAM buffer for pages that are read from NAND.
    ///
    /// # Errors
    /// The buffer is smaller than a page.
    pub fn with_dram(mut self, dram: Dram<P>) -> Result<Self> {
        let policy = parse_name("buffer", &self.config.buffer)?;
        self.dram = Some(ReadBuffer::new(dram, self.page_bytes, policy)?);
        Ok(self)
    }

    /// Divides PCM between its regions by the fusion method. Pages above a quota are destaged
    /// later.
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

    /// The NAND side, for fault injection.
    pub fn flash_mut(&mut self) -> &mut Flash<T, N> {
        &mut self.flash
    }

    /// The map entry of a page; `None` past the end of the volume.
    #[must_use]
    pub fn entry(&self, lpn: Lpn) -> Option<MapEntry> {
        self.map.table.get(lpn.idx()).copied().map(MapEntry)
    }

    /// The current configuration.
    #[must_use]
    pub fn config(&self) -> &HfslConfig {
        &self.config
    }
}

/// Sub-page size in bytes: the configured one, or the smallest that the page size permits.
fn subpage(config: &HfslConfig, page_bytes: u32) -> Result<u32> {
    let least = (page_bytes / SUBPAGES_MAX).max(SECTOR_BYTES as u32);
    let sub = match config.subpage_size {
        // An entry has one state bit a sub-page, so a page has at most `SUBPAGES_MAX` of them.
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

/// Checks the parameters of Table 5 that describe the media against the media.
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
            return Err(Error::param(key, given, format!("the media of the stack have {is}")));
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
        let why = "requires map_persist = \"each\"";
        return Err(Error::param("flush_map", true, why));
    }
    Ok(())
}

/// Number of logical pages, and the largest number of them that one NAND unit holds.
fn capacity<N: Store>(config: &HfslConfig, nand: &Nand<N>) -> Result<(u32, u32)> {
    let g = nand.geometry();
    let usable = Flash::<(), N>::usable_pages_per_unit(nand, config.map_persist == MapPersist::Each);
    // At least one block's worth of pages stays invalid, so that garbage collection always has a
    // victim that frees space.
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

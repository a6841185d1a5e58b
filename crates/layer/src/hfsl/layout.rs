//! Sizes of a volume on its media, and the areas of HFSL in its PCM, which
//! `docs/reference/format.md` draws.

use super::config::{FusionMethod, HfslConfig, MapPersist};
use super::entry::SUBPAGES_MAX;
use super::redo::{RedoArea, RedoRing};
use crate::flash::page_capacity;
use frit_core::{Error, Result, SECTOR_BYTES};
use frit_media::{NandArray, NandGeometry};
use frit_wear::Leveled;

/// Size of the header, in bytes.
pub(crate) const HEADER_BYTES: u64 = 512;
/// Size of a map entry in PCM, in bytes: the unit that PCM writes atomically.
pub(crate) const ENTRY_BYTES: u64 = 8;
/// Size of a descriptor in PCM, in bytes.
pub(crate) const DESC_BYTES: u64 = 64;
/// Size of a map entry as the length of a slice.
pub(crate) const ENTRY_LEN: usize = ENTRY_BYTES as usize;
/// Size of a descriptor as the length of a slice.
pub(crate) const DESC_LEN: usize = DESC_BYTES as usize;
/// Number of entries transferred by one command: 4 KiB of map.
pub(super) const CHUNK: usize = 512;
/// Largest number of slots that a descriptor can address: 24 bits each, and one value for none.
const SLOTS_MAX: u64 = (1 << 24) - 1;

/// Sizes and addresses of the areas in PCM.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PcmLayout {
    pub(crate) header_at: u64,
    /// Place of the redo records.
    pub(crate) redo: RedoArea,
    pub(crate) map_at: u64,
    pub(crate) map_bytes: u64,
    /// Address of the map as of the last flush, for files behind a page cache.
    pub(crate) flush_map_at: Option<u64>,
    pub(crate) desc_at: u64,
    pub(crate) data_at: u64,
    pub(crate) sub_bytes: u32,
    /// Number of sub-pages of a page.
    pub(crate) subs: u32,
    /// Number of slots, and of descriptors.
    pub(crate) slots: u32,
}

impl PcmLayout {
    /// Divides a PCM for a volume of `pages` pages, and adds the areas as partitions.
    ///
    /// # Errors
    /// The map leaves too little space for data, or more slots than can be addressed.
    pub(super) fn new(
        medium: &mut Leveled,
        pages: u32,
        page_bytes: u32,
        sub_bytes: u32,
        flush_map: bool,
        ring: Option<RedoRing>,
        raw_bytes: u64,
    ) -> Result<PcmLayout> {
        let map_bytes = u64::from(pages) * ENTRY_BYTES;
        let align = u64::from(sub_bytes);
        let head = medium.add_partition("head", HEADER_BYTES, align)?;
        let redo = match ring {
            None => RedoArea::Fixed,
            // A line of the ring shares no line of PCM with other data.
            Some(ring) => {
                let align = align.max(u64::from(medium.geometry().line_bytes));
                let at = medium.add_partition("redo-ring", ring.bytes(), align)?.start;
                RedoArea::Ring(RedoRing { at, ..ring })
            }
        };
        let map = medium.add_partition("map", map_bytes, align)?;
        let flushed = flush_map.then(|| medium.add_partition("flush-map", map_bytes, align)).transpose()?;
        let rest = (medium.bytes() - medium.partitioned_bytes()).saturating_sub(raw_bytes);
        // Two sub-pages are left for the alignment of the two partitions below.
        // One descriptor for each slot: at worst each page in PCM has a single sub-page.
        let slots = rest.saturating_sub(2 * u64::from(sub_bytes)) / (u64::from(sub_bytes) + DESC_BYTES);
        if slots > SLOTS_MAX {
            let why = format!("PCM has {slots} sub-pages, and {SLOTS_MAX} can be addressed: use larger ones");
            return Err(Error::param("SUBPAGE_SIZE", sub_bytes, why));
        }
        let slots = slots as u32;
        let subs = page_bytes / sub_bytes;
        if slots < 4 * subs {
            return Err(Error::param(
                "PCMSIZE",
                medium.bytes(),
                format!(
                    "the map takes {map_bytes} bytes and leaves too little for data; \
                     use more PCM, larger pages or a smaller capacity{}",
                    if raw_bytes > 0 { " or raw_bytes" } else { "" }
                ),
            ));
        }
        let desc =
            medium.add_partition("descriptors", u64::from(slots) * DESC_BYTES, u64::from(sub_bytes))?;
        let data =
            medium.add_partition("data", u64::from(slots) * u64::from(sub_bytes), u64::from(sub_bytes))?;
        Ok(PcmLayout {
            header_at: head.start,
            redo,
            map_at: map.start,
            map_bytes,
            flush_map_at: flushed.map(|p| p.start),
            desc_at: desc.start,
            data_at: data.start,
            sub_bytes,
            subs,
            slots,
        })
    }
}

/// Sub-page size in bytes: the configured one, or the smallest that the page size permits.
pub(super) fn subpage(config: &HfslConfig, page_bytes: u32) -> Result<u32> {
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
pub(super) fn check_sizes(config: &HfslConfig, g: &NandGeometry, pcm_bytes: Option<u64>) -> Result<()> {
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
    if pcm_bytes.is_none() && config.levels_pcm() {
        let why = "needs a PCM medium in the stack; or use \"none\"";
        return Err(Error::param("pcm_wear_leveling", &config.pcm_wear.wear_leveling, why));
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
pub(super) fn capacity(config: &HfslConfig, nand: &NandArray) -> Result<(u32, u32)> {
    let survives = config.map_persist == MapPersist::Each;
    let pages = page_capacity(nand, config.capacity, config.over_provisioning, survives)?;
    Ok((pages, pages.div_ceil(nand.geometry().units())))
}

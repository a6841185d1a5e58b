//! Numbers that follow from the geometry and the configuration.

use super::config::ZnsConfig;
use super::table::part_zones;
use frit_core::convert::{bounded_u32, floor_u32};
use frit_core::{Error, PAGE_NONE, Result};
use frit_media::NandGeometry;

/// Blocks of the log of a unit beside those that its pages in use can fill: the one that is written, and
/// one that makes a cleaning gain space.
const LOG_BLOCKS_MORE: u32 = 2;
/// Blocks that the log of a unit can have beyond its limit: the next one while the oldest is cleaned, and
/// one in case a program fails.
const LOG_BLOCKS_EXCESS: u32 = 2;

/// Place of a page of a zone in the blocks of the zone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct StripePlace {
    /// Index of the block.
    pub(super) stripe: usize,
    /// Page of the block.
    pub(super) page: u32,
}

/// Numbers of pages, blocks and zones.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    pub(super) page_bytes: u32,
    /// Pages of a program unit.
    pub(super) unit_pages: u32,
    /// Program units of a block.
    pub(super) block_units: u32,
    /// Units of the NAND.
    pub(super) units: u32,
    pub(super) zone_blocks: u32,
    /// Pages of a zone.
    pub(super) zone_pages: u32,
    pub(super) zones: u32,
    /// Zones in a part of the table.
    pub(super) part_zones: u32,
    /// Parts of the table.
    pub(super) parts: u32,
    /// Largest number of blocks of the log of a unit.
    pub(super) log_blocks: u32,
}

impl Sizes {
    /// Sizes for a geometry.
    ///
    /// # Errors
    /// A parameter that does not fit; the error names the permitted values.
    pub(super) fn new(config: &ZnsConfig, g: &NandGeometry) -> Result<Sizes> {
        if config.mapping_unit != 0 && config.mapping_unit != u64::from(g.page_bytes) {
            let why = format!("the NAND is divided into pages of {} bytes", g.page_bytes);
            return Err(Error::param("mapping_unit", config.mapping_unit, why));
        }
        let zone_blocks = if config.zone_blocks == 0 { g.units() } else { config.zone_blocks };
        let zone_pages = u64::from(zone_blocks) * u64::from(g.pages_per_block);
        let zone_pages = u32::try_from(zone_pages).unwrap_or(PAGE_NONE);
        let most = g.blocks() / zone_blocks;
        let mut sizes = Sizes {
            page_bytes: g.page_bytes,
            unit_pages: g.program_pages,
            block_units: g.pages_per_block / g.program_pages,
            units: g.units(),
            zone_blocks,
            zone_pages,
            zones: 0,
            part_zones: part_zones(g.page_bytes),
            parts: most.div_ceil(part_zones(g.page_bytes)),
            log_blocks: 0,
        };
        let saved = most.min(config.active_limit());
        sizes.log_blocks = LOG_BLOCKS_MORE + (sizes.parts + saved).div_ceil(sizes.block_units);
        let spare = floor_u32((f64::from(g.blocks_per_unit()) * config.over_provisioning).ceil()).max(1);
        let without_data = spare + sizes.log_reserve();
        let data = g.blocks_per_unit().saturating_sub(without_data) * g.units();
        sizes.zones = data / zone_blocks;
        if sizes.zones == 0 {
            let why = format!(
                "leaves no block for a zone of {zone_blocks}: {without_data} blocks of each unit are for \
                 saved program units, the table of zones and bad blocks"
            );
            return Err(Error::param("blocks_per_plane", g.blocks_per_plane, why));
        }
        if config.capacity > 0 {
            let wanted = bounded_u32(config.capacity.div_ceil(sizes.zone_bytes()));
            if wanted > sizes.zones {
                let why = format!("the NAND has blocks for {} bytes", sizes.bytes());
                return Err(Error::param("capacity", config.capacity, why));
            }
            sizes.zones = wanted;
        }
        sizes.parts = sizes.zones.div_ceil(sizes.part_zones);
        Ok(sizes)
    }

    /// Blocks of a unit that its log can need.
    pub(super) fn log_reserve(&self) -> u32 {
        self.log_blocks + LOG_BLOCKS_EXCESS
    }

    /// Pages of a block.
    pub(super) fn block_pages(&self) -> u32 {
        self.block_units * self.unit_pages
    }

    /// Size of a program unit, in bytes.
    pub(super) fn unit_bytes(&self) -> u32 {
        self.unit_pages * self.page_bytes
    }

    /// Size of a zone, in bytes.
    pub(super) fn zone_bytes(&self) -> u64 {
        u64::from(self.zone_pages) * u64::from(self.page_bytes)
    }

    /// Size of the volume, in bytes.
    pub(super) fn bytes(&self) -> u64 {
        u64::from(self.zones) * self.zone_bytes()
    }

    /// Logical page of a page of a zone.
    pub(super) fn lpn(&self, zone: u32, page: u32) -> u32 {
        zone * self.zone_pages + page
    }

    /// Logical page of a part of the table.
    pub(super) fn part_lpn(&self, part: u32) -> u32 {
        self.zones * self.zone_pages + part
    }

    /// Place of a page of a zone: its program units lie in the blocks in turn.
    pub(super) fn place(&self, page: u32) -> StripePlace {
        let (unit, within) = (page / self.unit_pages, page % self.unit_pages);
        StripePlace {
            stripe: (unit % self.zone_blocks) as usize,
            page: unit / self.zone_blocks * self.unit_pages + within,
        }
    }

    /// Program units of a zone in one of its blocks, if the first `pages` pages of the zone are programmed.
    pub(super) fn stripe_units(&self, pages: u32, stripe: usize) -> u32 {
        let units = pages.div_ceil(self.unit_pages);
        (units + self.zone_blocks - 1 - stripe as u32) / self.zone_blocks
    }

    /// Unit of the NAND that a block of a zone should be on.
    pub(super) fn unit_of(&self, zone: u32, stripe: usize) -> u32 {
        let block = u64::from(zone) * u64::from(self.zone_blocks) + stripe as u64;
        (block % u64::from(self.units)) as u32
    }
}

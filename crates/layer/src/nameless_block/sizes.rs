//! Sizes of a device on its NAND: blocks of contents, and virtual blocks.

use super::config::NamelessBlockConfig;
use super::layer::NamelessBlock;
use crate::flash::{Flash, nominal_capacity};
use crate::nameless::{DeviceBlocks, HostFtl, waiting_limit};
use frit_core::{Error, Result};
use frit_media::{NandArray, NandGeometry};

/// Share of the capacity that the virtual address space has by default. Metadata of file systems is a few
/// percent of their contents at most: ext4 has an inode of 256 bytes for 16 KiB by default, a 64th.
const VIRTUAL_SHARE: u32 = 16;

/// Blocks of a device whose owner stores `capacity` blocks.
fn blocks_for(capacity: u32, config: &NamelessBlockConfig, g: &NandGeometry) -> Option<DeviceBlocks> {
    let virtual_blocks = match config.virtual_bytes {
        0 => capacity.div_ceil(VIRTUAL_SHARE),
        bytes => u32::try_from(bytes.div_ceil(u64::from(g.page_bytes))).ok()?,
    };
    let waiting = waiting_limit(capacity, g.program_pages);
    Some(DeviceBlocks { capacity, waiting, virtual_blocks, atomic_flush: config.device.scans() })
}

/// Pages that can be valid in such a device, with its checkpoints and the queue that is being programmed.
fn pages_for(blocks: &DeviceBlocks, g: &NandGeometry) -> u64 {
    let saved = HostFtl::saved_pages(blocks, g.page_bytes);
    blocks.pages() + u64::from(saved) + u64::from(g.program_pages)
}

/// Returns the blocks of a device on NAND.
fn sizes(config: &NamelessBlockConfig, g: &NandGeometry) -> Result<DeviceBlocks> {
    let (device, scans) = (&config.device, config.device.scans());
    let fit = |bytes| nominal_capacity(g, bytes, device.over_provisioning, scans);
    let (all, usable) = (fit(0)?, Flash::nominal_pages_per_unit(g, scans));
    let most = u64::from(usable.saturating_sub(g.pages_per_block)) * u64::from(g.units());
    let most = most.min(u64::from(all));
    let fits = |capacity: u32| blocks_for(capacity, config, g).filter(|blocks| pages_for(blocks, g) <= most);
    let page = u64::from(g.page_bytes);
    if device.capacity > 0 {
        let capacity = u32::try_from(device.capacity.div_ceil(page)).unwrap_or(u32::MAX);
        return fits(capacity).ok_or_else(|| {
            let why = format!(
                "does not fit: contents, {} of it that waits to be freed, and two versions of each virtual \
                 block may have {most} blocks of {page} bytes on this NAND",
                "a 32nd"
            );
            Error::param("capacity", device.capacity, why)
        });
    }
    // The largest capacity that fits: `low` does, and `high` does not.
    let (mut low, mut high) = (0, all.saturating_add(1));
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if fits(middle).is_some() { low = middle } else { high = middle }
    }
    fits(low).filter(|_| low > 0).ok_or_else(|| {
        let why = format!("leaves no block for contents: the NAND has {most} blocks of {page} bytes");
        Error::param("virtual_bytes", config.virtual_bytes, why)
    })
}

impl NamelessBlock<HostFtl> {
    /// Creates a device over NAND: one NAND device or an array of them. The page of the NAND is the block
    /// ([`crate::NamelessConfig::divide`]).
    ///
    /// # Errors
    /// A parameter that does not fit the media; the error names the permitted values.
    pub fn over_nand(config: NamelessBlockConfig, nand: impl Into<NandArray>) -> Result<Self> {
        config.validate()?;
        let nand = nand.into();
        let g = *nand.geometry();
        config.device.check_divided(&g)?;
        let blocks = sizes(&config, &g)?;
        let device = HostFtl::new(&config.device, nand, blocks)?;
        Ok(NamelessBlock::new(config, device))
    }
}

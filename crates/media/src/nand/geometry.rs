//! Geometry of a NAND device, and the numbering of its units, blocks and pages.

use crate::hardware::NandLayout;
use crate::stripe::div_fast;
use frit_core::{BlockId, Error, PAGE_NONE, Ppn, Result, size};
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use super::page::SPARE_RECORD_BYTES;

/// The part of a die that executes one command at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum PlaneOps {
    /// The die executes one command at a time: the die is the unit.
    Single,
    /// Each plane reads, programs and erases independently: the plane is the unit.
    Independent,
    /// The plane is the unit, and its die executes one command at a time. Commands of the same
    /// operation to the same page of blocks of different planes are executed together.
    Multi,
}

/// Blocks that are used with one bit a cell, although the cells can hold more: the first blocks of
/// each unit, or those that an erase put into this mode.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct SlcArea {
    /// Blocks of each unit that are always used in this way.
    pub blocks: u32,
    /// Pages of such a block; 0 if the device has no such mode.
    pub pages: u32,
    /// The mode of a block changes at an erase.
    pub dynamic: bool,
}

/// Geometry of a NAND device: channels × chips × dies × planes × blocks × pages.
///
/// Units are numbered channel first: unit `u` is on channel `u % channels`, so that striping over
/// consecutive units uses all channels before it uses the second chip of one. Chips, dies and
/// planes follow in this order. Blocks are numbered consecutively within a unit, pages within a
/// block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NandGeometry {
    /// Number of channels.
    pub channels: u32,
    /// Chips per channel.
    pub chips_per_channel: u32,
    /// Dies per chip.
    pub dies_per_chip: u32,
    /// Planes per die.
    pub planes_per_die: u32,
    /// Blocks per plane.
    pub blocks_per_plane: u32,
    /// Pages per block.
    pub pages_per_block: u32,
    /// Bytes per page, without its spare area.
    pub page_bytes: u32,
    /// Bytes in the spare area of a page.
    pub spare_bytes: u32,
    /// Part of a die that executes one command at a time.
    pub plane_ops: PlaneOps,
    /// Pages that are programmed by one command: 1, or the mapping units in a physical page.
    pub program_pages: u32,
    /// Copies of the record in the spare area of a page: 1, or 2 for a layer that finds its pages by
    /// their records alone.
    pub record_copies: u32,
    /// Blocks with one bit a cell.
    pub slc: SlcArea,
}

impl NandGeometry {
    /// Divides each page into mapping units of `bytes`, which are the pages of the new geometry. The
    /// page stays the unit of a program.
    ///
    /// # Errors
    /// A mapping unit that is not a multiple of a sector, or does not divide a page.
    pub fn with_mapping_unit(self, bytes: u32) -> Result<NandGeometry> {
        if bytes == 0 || !bytes.is_multiple_of(512) || !self.page_bytes.is_multiple_of(bytes) {
            let why = format!("has to be a multiple of 512 bytes that divides a page of {}", self.page_bytes);
            return Err(Error::param("mapping_unit", bytes, why));
        }
        let n = self.page_bytes / bytes;
        Ok(NandGeometry {
            pages_per_block: self.pages_per_block * n,
            page_bytes: bytes,
            spare_bytes: self.spare_bytes / n,
            program_pages: n,
            slc: SlcArea { pages: self.slc.pages * n, ..self.slc },
            ..self
        })
    }

    /// Uses a share of the blocks of each unit, at least one, with one bit a cell.
    ///
    /// # Errors
    /// A device without such a mode, or a share that leaves no other block.
    pub fn with_slc_share(self, key: &str, share: f64) -> Result<NandGeometry> {
        self.check_slc(key, share)?;
        let blocks = self.share_of_blocks(share);
        if blocks >= self.blocks_per_unit() {
            return Err(Error::param(key, share, "leaves no block that is used with all bits of its cells"));
        }
        Ok(NandGeometry { slc: SlcArea { blocks, ..self.slc }, ..self })
    }

    /// Lets an erase change the mode of any block.
    ///
    /// # Errors
    /// A device without such a mode.
    pub fn with_dynamic_slc(self, key: &str, share: f64) -> Result<NandGeometry> {
        self.check_slc(key, share)?;
        Ok(NandGeometry { slc: SlcArea { blocks: 0, dynamic: true, ..self.slc }, ..self })
    }

    /// Number of blocks of a unit that are a share of all, at least 1.
    #[must_use]
    pub fn share_of_blocks(&self, share: f64) -> u32 {
        ((f64::from(self.blocks_per_unit()) * share).round() as u32).max(1)
    }

    fn check_slc(&self, key: &str, share: f64) -> Result<()> {
        if self.slc.pages == 0 {
            let why = "needs NAND with `cell`, `t_read_slc` and `t_prog_slc`, and pages enough in a block";
            return Err(Error::param(key, share, why));
        }
        Ok(())
    }

    /// Returns `true` if a block is one of those that are always used with one bit a cell.
    #[inline]
    #[must_use]
    pub fn is_slc(&self, block: BlockId) -> bool {
        self.slc.blocks > 0 && block.0 % self.blocks_per_unit() < self.slc.blocks
    }

    /// Divides each page into mapping units of `unit` bytes, unless it is 0.
    ///
    /// # Errors
    /// As [`NandGeometry::with_mapping_unit`].
    pub fn divided(self, unit: u64) -> Result<NandGeometry> {
        match unit {
            0 => Ok(self),
            unit => self.with_mapping_unit(u32::try_from(unit).unwrap_or(u32::MAX)),
        }
    }

    /// Checks that the geometry is possible and can be addressed.
    ///
    /// # Errors
    /// The first value that is wrong, and the values that are allowed.
    pub fn check(&self) -> Result<()> {
        for (key, value, most) in [
            ("channels", self.channels, 4096),
            ("chips_per_channel", self.chips_per_channel, 4096),
            ("dies_per_chip", self.dies_per_chip, 256),
            ("planes_per_die", self.planes_per_die, 256),
            ("blocks_per_plane", self.blocks_per_plane, 1 << 24),
            // The state of a block counts its programmed pages with 16 bits.
            ("pages_per_block", self.pages_per_block, u32::from(u16::MAX)),
        ] {
            if value == 0 || value > most {
                return Err(Error::param(key, value, format!("has to be 1 to {most}")));
            }
        }
        if self.page_bytes == 0 || !self.page_bytes.is_multiple_of(512) || self.page_bytes > 64 << 10 {
            let why = "has to be a multiple of the sector of 512 bytes, up to 64K";
            return Err(Error::param("page_bytes", self.page_bytes, why));
        }
        if !(1..=2).contains(&self.record_copies) {
            return Err(Error::param("record_copies", self.record_copies, "has to be 1 or 2"));
        }
        let records = SPARE_RECORD_BYTES * self.record_copies as usize;
        if (self.spare_bytes as usize) < records {
            let why = format!("has to hold the {records} bytes of page number, sequence and checksums");
            return Err(Error::param("spare_bytes", self.spare_bytes, why));
        }
        if self.program_pages == 0 || !self.pages_per_block.is_multiple_of(self.program_pages) {
            let why = "has to divide the pages of a block";
            return Err(Error::param("program_pages", self.program_pages, why));
        }
        if self.slc.pages > self.pages_per_block || self.slc.blocks > 0 && self.slc.pages == 0 {
            let why = "has to be 1 to the pages of a block, if blocks are used with one bit a cell";
            return Err(Error::param("slc.pages", self.slc.pages, why));
        }
        let units = self.dies() * u128::from(self.planes_if_units());
        if units > u128::from(u16::MAX) {
            let why =
                format!("makes {units} units; there can be at most 65535, use fewer channels, chips or dies");
            return Err(Error::param("channels", self.channels, why));
            // 128-bit arithmetic: the product of six values within their limits exceeds 64 bits.
        }
        let per_die = u128::from(self.planes_per_die) * u128::from(self.blocks_per_plane);
        let pages = self.dies() * per_die * u128::from(self.pages_per_block);
        if pages >= u128::from(PAGE_NONE) {
            let why = format!(
                "makes {pages} pages; at most {} can be numbered, use larger pages or a smaller device",
                PAGE_NONE - 1
            );
            return Err(Error::param("blocks_per_plane", self.blocks_per_plane, why));
        }
        Ok(())
    }

    fn dies(&self) -> u128 {
        u128::from(self.channels) * u128::from(self.chips_per_channel) * u128::from(self.dies_per_chip)
    }

    fn planes_if_units(&self) -> u32 {
        match self.plane_ops {
            PlaneOps::Single => 1,
            PlaneOps::Independent | PlaneOps::Multi => self.planes_per_die,
        }
    }

    /// Returns the chips, dies and planes of the units.
    pub(crate) fn layout(&self) -> NandLayout {
        NandLayout {
            channels: self.channels as u16,
            chips: self.chips_per_channel as u16,
            dies: self.dies_per_chip as u16,
            pages_per_block: self.pages_per_block,
            program_pages: self.program_pages,
            multi_plane: self.plane_ops == PlaneOps::Multi,
        }
    }

    /// Number of units: dies, or planes if these are units.
    #[must_use]
    pub fn units(&self) -> u32 {
        self.channels * self.chips_per_channel * self.dies_per_chip * self.planes_if_units()
    }

    /// Blocks per unit.
    #[inline]
    #[must_use]
    pub fn blocks_per_unit(&self) -> u32 {
        match self.plane_ops {
            PlaneOps::Single => self.planes_per_die * self.blocks_per_plane,
            PlaneOps::Independent | PlaneOps::Multi => self.blocks_per_plane,
        }
    }

    /// Number of blocks of the device.
    #[must_use]
    pub fn blocks(&self) -> u32 {
        self.units() * self.blocks_per_unit()
    }

    /// Number of pages of the device.
    #[must_use]
    pub fn pages(&self) -> u32 {
        self.blocks() * self.pages_per_block
    }

    /// Raw size in bytes, without spare areas.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        u64::from(self.pages()) * u64::from(self.page_bytes)
    }

    /// Block of a page.
    #[inline]
    #[must_use]
    pub fn block_of(&self, page: Ppn) -> BlockId {
        BlockId(div_fast(page.0, self.pages_per_block))
    }

    /// Index of a page within its block.
    #[inline]
    #[must_use]
    pub fn page_in_block(&self, page: Ppn) -> u32 {
        page.0 - self.block_of(page).0 * self.pages_per_block
    }

    /// Page with the given index in a block.
    #[inline]
    #[must_use]
    pub fn ppn(&self, block: BlockId, page: u32) -> Ppn {
        Ppn(block.0 * self.pages_per_block + page)
    }

    /// Unit of a block, counted from 0 within the device.
    #[inline]
    #[must_use]
    pub fn unit_of_block(&self, block: BlockId) -> u32 {
        div_fast(block.0, self.blocks_per_unit())
    }

    /// First block of a unit.
    #[inline]
    #[must_use]
    pub fn first_block(&self, unit: u32) -> BlockId {
        BlockId(unit * self.blocks_per_unit())
    }

    /// Channel of a unit.
    #[inline]
    #[must_use]
    pub fn channel_of_unit(&self, unit: u32) -> u32 {
        unit % self.channels
    }

    /// The values by name, for views.
    #[must_use]
    pub fn named(&self) -> Vec<(&'static str, u64)> {
        [
            ("channels", self.channels),
            ("chips_per_channel", self.chips_per_channel),
            ("dies_per_chip", self.dies_per_chip),
            ("planes_per_die", self.planes_per_die),
            ("blocks_per_plane", self.blocks_per_plane),
            ("pages_per_block", self.pages_per_block),
            ("page_bytes", self.page_bytes),
            ("spare_bytes", self.spare_bytes),
            ("units", self.units()),
            ("blocks", self.blocks()),
            ("pages", self.pages()),
        ]
        .map(|(k, v)| (k, u64::from(v)))
        .to_vec()
    }
}

impl std::fmt::Display for NandGeometry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} channels x {} chips x {} dies x {} planes x {} blocks x {} pages of {} + {} B",
            self.channels,
            self.chips_per_channel,
            self.dies_per_chip,
            self.planes_per_die,
            self.blocks_per_plane,
            self.pages_per_block,
            size::format(u64::from(self.page_bytes)),
            self.spare_bytes
        )?;
        match self.slc.blocks {
            0 if self.slc.dynamic => write!(f, ", blocks change between one and all bits a cell"),
            0 => Ok(()),
            n => write!(f, ", the first {n} blocks of each unit with one bit a cell"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SMALL: NandGeometry = NandGeometry {
        channels: 2,
        chips_per_channel: 3,
        dies_per_chip: 2,
        planes_per_die: 4,
        blocks_per_plane: 5,
        pages_per_block: 6,
        page_bytes: 2048,
        spare_bytes: 64,
        plane_ops: PlaneOps::Single,
        program_pages: 1,
        record_copies: 1,
        slc: SlcArea { blocks: 0, pages: 0, dynamic: false },
    };

    proptest! {
        #[test]
        fn numbering_is_a_bijection(
            shape in prop::array::uniform6(1u32..6), independent in any::<bool>()
        ) {
            let [channels, chips_per_channel, dies_per_chip, planes_per_die, blocks_per_plane, pages_per_block] = shape;
            let plane_ops = if independent { PlaneOps::Independent } else { PlaneOps::Single };
            let g = NandGeometry {
                channels, chips_per_channel, dies_per_chip, planes_per_die, blocks_per_plane,
                pages_per_block, plane_ops, ..SMALL
            };
            prop_assert!(g.check().is_ok());
            let mut n = 0;
            for unit in 0..g.units() {
                for block in 0..g.blocks_per_unit() {
                    let b = BlockId(g.first_block(unit).0 + block);
                    prop_assert_eq!(g.unit_of_block(b), unit);
                    for page in 0..pages_per_block {
                        let p = g.ppn(b, page);
                        prop_assert_eq!(p, Ppn(n));
                        prop_assert_eq!((g.block_of(p), g.page_in_block(p)), (b, page));
                        n += 1;
                    }
                }
            }
            prop_assert_eq!(n, g.pages());
            prop_assert_eq!(g.bytes(), shape.iter().map(|&v| u64::from(v)).product::<u64>() * 2048);
        }
    }

    #[test]
    fn consecutive_units_go_over_the_channels_first() {
        let on: Vec<u32> = (0..6).map(|u| SMALL.channel_of_unit(u)).collect();
        assert_eq!(on, [0, 1, 0, 1, 0, 1]);
    }

    #[test]
    fn planes_are_units_only_when_independent() {
        assert_eq!((SMALL.units(), SMALL.blocks_per_unit()), (12, 20));
        let g = NandGeometry { plane_ops: PlaneOps::Independent, ..SMALL };
        assert_eq!((g.units(), g.blocks_per_unit()), (48, 5));
        assert_eq!(g.pages(), SMALL.pages());
    }

    #[test]
    fn the_first_blocks_of_each_unit_have_fewer_pages_with_one_bit_a_cell() {
        let tlc = NandGeometry { slc: SlcArea { blocks: 0, pages: 2, dynamic: false }, ..SMALL };
        let g = tlc.with_slc_share("slc_cache", 0.1).unwrap();
        assert_eq!(g.slc, SlcArea { blocks: 2, pages: 2, dynamic: false });
        let pages: Vec<u32> =
            (0..42).map(|b| if g.is_slc(BlockId(b)) { g.slc.pages } else { g.pages_per_block }).collect();
        let unit = [[2; 2].as_slice(), &[6; 18]].concat();
        assert_eq!(pages, [unit.as_slice(), &unit, &[2, 2]].concat());
        // Mapping units divide the pages of these blocks, too.
        assert_eq!(g.with_mapping_unit(512).unwrap().slc.pages, 8);
        assert!(tlc.with_slc_share("slc_cache", 0.99).is_err());
        assert!(SMALL.with_slc_share("slc_cache", 0.1).is_err());
    }

    #[test]
    fn impossible_shapes_are_refused_by_key() {
        let key = |g: NandGeometry| match g.check() {
            Err(Error::Param { key, .. }) => key,
            other => panic!("{other:?}"),
        };
        assert_eq!(key(NandGeometry { channels: 0, ..SMALL }), "channels");
        assert_eq!(key(NandGeometry { pages_per_block: 70_000, ..SMALL }), "pages_per_block");
        for page_bytes in [0, 100, 2047, 128 << 10] {
            assert_eq!(key(NandGeometry { page_bytes, ..SMALL }), "page_bytes");
        }
        assert_eq!(key(NandGeometry { spare_bytes: 8, ..SMALL }), "spare_bytes");
        assert_eq!(key(NandGeometry { channels: 4000, chips_per_channel: 40, ..SMALL }), "channels");
        let g = NandGeometry { blocks_per_plane: 1 << 24, pages_per_block: 60_000, ..SMALL };
        assert_eq!(key(g), "blocks_per_plane");
    }
}

//! Purpose of an access, derived from its address: the regions of the file system, and for the data
//! space the last write to the block.

use frit_core::Cause;
use frit_fs::{Geometry, Region};
use serde::Serialize;
use strum::{EnumCount, EnumIter, IntoEnumIterator, IntoStaticStr};

/// Area of the medium, as the purpose of an access.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, EnumCount, EnumIter, IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Area {
    /// Contents of files.
    Contents,
    /// The journal.
    Journal,
    /// The inode table.
    Inodes,
    /// The block bitmap.
    Bitmap,
    /// Checksums of contents.
    Sums,
    /// The ledger.
    Ledger,
    /// The list of orphans.
    Orphans,
    /// Blocks of the data space with names, tables of extents or extended attributes, and blocks
    /// that are zeroed as a whole, as for new blocks of a directory.
    Tables,
    /// Zeros in parts of blocks: the rest of a block around the first write of a file to it.
    Zeros,
    /// Superblocks.
    Superblock,
    /// The registers of in-storage processing.
    Registers,
}

impl Area {
    /// Returns the cause of its commands: the host for contents, metadata for all other areas.
    #[must_use]
    pub fn cause(self) -> Cause {
        if self == Area::Contents { Cause::Host } else { Cause::Meta }
    }

    /// Returns its name in tables and JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Kind of an access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum MediumAccess {
    Read,
    Metadata,
    Contents,
    Zero,
}

/// Map of the data space: the blocks that hold metadata.
#[derive(Debug)]
pub(crate) struct Areas {
    geometry: Geometry,
    /// One bit for each block of the medium: the last write to the block was metadata.
    tables: Vec<u64>,
}

/// Bytes of a block of the file system.
const BLOCK: u64 = 4096;

impl Areas {
    pub(crate) fn new(geometry: Geometry) -> Self {
        let blocks = geometry.bytes.div_ceil(BLOCK);
        Self { geometry, tables: vec![0; blocks.div_ceil(64) as usize] }
    }

    /// Returns the first byte after the region that contains `at`.
    pub(crate) fn region_end(&self, at: u64) -> u64 {
        self.geometry.region_end(at)
    }

    /// Returns the area of an access that starts at `at` and does not cross regions. Only zeros of
    /// formatting cross them. In the data space an access does not cross files.
    pub(crate) fn of(&mut self, access: MediumAccess, at: u64, len: u64) -> Area {
        match self.geometry.region_of(at) {
            Region::Superblock => Area::Superblock,
            Region::Registers => Area::Registers,
            Region::Ledger => Area::Ledger,
            Region::Orphans => Area::Orphans,
            Region::Journal => Area::Journal,
            Region::Inodes => Area::Inodes,
            Region::Bitmap => Area::Bitmap,
            Region::Sums => Area::Sums,
            Region::Data => self.of_data(access, at, len),
        }
    }

    fn of_data(&mut self, access: MediumAccess, at: u64, len: u64) -> Area {
        let blocks = at / BLOCK..(at + len).div_ceil(BLOCK).max(at / BLOCK + 1);
        match access {
            MediumAccess::Read => {
                let block = blocks.start;
                let bit = self.tables[(block / 64) as usize] >> (block % 64) & 1;
                if bit == 1 { Area::Tables } else { Area::Contents }
            }
            MediumAccess::Zero if !(at | len).is_multiple_of(BLOCK) => Area::Zeros,
            MediumAccess::Metadata | MediumAccess::Contents | MediumAccess::Zero => {
                // A block that is zeroed as a whole is a new block of a directory, until contents
                // are written to it.
                let is_table = access != MediumAccess::Contents;
                for block in blocks {
                    let word = &mut self.tables[(block / 64) as usize];
                    *word = *word & !(1 << (block % 64)) | u64::from(is_table) << (block % 64);
                }
                if is_table { Area::Tables } else { Area::Contents }
            }
        }
    }
}

/// Number of accesses of the file system to one area, and of the resulting commands.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct AreaCount {
    /// Reads by the file system.
    pub reads: u64,
    /// Bytes that the file system read.
    pub read_bytes: u64,
    /// Writes by the file system.
    pub writes: u64,
    /// Bytes that the file system wrote.
    pub written_bytes: u64,
    /// Commands to the medium.
    pub commands: u64,
    /// Bytes of write units that the medium wrote for these accesses.
    pub medium_bytes: u64,
}

/// Traffic to a medium, by area.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Traffic {
    areas: [AreaCount; Area::COUNT],
    /// Fences.
    pub fences: u64,
}

impl Traffic {
    /// Returns the counts of one area.
    #[must_use]
    pub fn of(&self, area: Area) -> AreaCount {
        self.areas[area as usize]
    }

    pub(crate) fn of_mut(&mut self, area: Area) -> &mut AreaCount {
        &mut self.areas[area as usize]
    }

    /// Returns the areas that were accessed.
    pub fn iter(&self) -> impl Iterator<Item = (Area, AreaCount)> + '_ {
        Area::iter().map(|area| (area, self.of(area))).filter(|(_, c)| c.reads + c.writes > 0)
    }

    /// Returns the traffic since `earlier`, a former state of these counts.
    #[must_use]
    pub fn since(&self, earlier: &Traffic) -> Traffic {
        let mut d = self.clone();
        for (now, then) in d.areas.iter_mut().zip(&earlier.areas) {
            now.reads -= then.reads;
            now.read_bytes -= then.read_bytes;
            now.writes -= then.writes;
            now.written_bytes -= then.written_bytes;
            now.commands -= then.commands;
            now.medium_bytes -= then.medium_bytes;
        }
        d.fences -= earlier.fences;
        d
    }

    /// Returns the bytes that the medium wrote for areas of a cause.
    #[must_use]
    pub fn medium_bytes(&self, cause: Cause) -> u64 {
        self.iter().filter(|(area, _)| area.cause() == cause).map(|(_, c)| c.medium_bytes).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_the_data_space_are_what_was_written_there_last() {
        let geometry = Geometry::divide(1 << 20, None).unwrap();
        let mut areas = Areas::new(geometry);
        let at = geometry.data_first * BLOCK + BLOCK;
        assert_eq!(areas.of(MediumAccess::Read, at, 8), Area::Contents);
        assert_eq!(areas.of(MediumAccess::Zero, at + 100, BLOCK - 100), Area::Zeros);
        assert_eq!(areas.of(MediumAccess::Zero, at, BLOCK), Area::Tables);
        assert_eq!(areas.of(MediumAccess::Metadata, at + 64, 32), Area::Tables);
        assert_eq!(areas.of(MediumAccess::Read, at, 8), Area::Tables);
        assert_eq!(areas.of(MediumAccess::Read, at + BLOCK, 8), Area::Contents);
        assert_eq!(areas.of(MediumAccess::Contents, at - BLOCK, 2 * BLOCK), Area::Contents);
        assert_eq!(areas.of(MediumAccess::Read, at, 8), Area::Contents);
        assert_eq!(areas.of(MediumAccess::Metadata, geometry.journal_at, 64), Area::Journal);
        assert_eq!(areas.of(MediumAccess::Zero, geometry.copy_at(), BLOCK), Area::Superblock);
        assert_eq!((Area::Contents.cause(), Area::Journal.cause()), (Cause::Host, Cause::Meta));
    }
}

//! Commands to media: what, where, and why.

use serde::{Deserialize, Serialize};
use strum::{EnumCount, EnumIter, FromRepr, IntoStaticStr};

/// A unit of a medium that does one thing at a time (a NAND plane, a PCM channel), numbered through
/// all media of a stack.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UnitId(pub u16);

impl UnitId {
    /// As an index into a table with one row a unit.
    #[inline]
    #[must_use]
    pub fn idx(self) -> usize {
        self.0 as usize
    }
}

/// What kind of medium something lies on.
#[derive(
    Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, EnumCount, EnumIter, IntoStaticStr,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum MediumKind {
    /// NAND flash: pages, erase blocks.
    Nand,
    /// Byte-addressable durable memory (PCM and its kin).
    Pcm,
    /// Volatile memory.
    Dram,
    /// A disk with an arm.
    Disk,
}

/// What a command does.
#[derive(
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    Debug,
    Serialize,
    Deserialize,
    EnumCount,
    EnumIter,
    IntoStaticStr,
    FromRepr,
)]
#[repr(u8)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Op {
    /// Read a NAND page into the page register and over the bus.
    NandRead,
    /// Program a NAND page.
    NandProgram,
    /// Erase a NAND block.
    NandErase,
    /// Move a page inside a NAND plane without the bus.
    NandCopyback,
    /// Read bytes of PCM.
    PcmRead,
    /// Write bytes of PCM in place.
    PcmWrite,
    /// Order all earlier PCM writes before all later ones.
    PcmFence,
    /// Write PCM cells that were refreshed (RESET) beforehand.
    PcmWriteClean,
    /// Refresh a block of PCM, so that later writes are clean.
    PcmRefresh,
    /// Read DRAM.
    DramRead,
    /// Write DRAM.
    DramWrite,
    /// Read sectors of a disk.
    DiskRead,
    /// Write sectors of a disk: certain once flushed.
    DiskWrite,
    /// Put all that a disk has acknowledged on its platters.
    DiskFlush,
}

impl Op {
    /// The kind of medium that carries the command out.
    #[must_use]
    pub fn medium(self) -> MediumKind {
        match self {
            Op::NandRead | Op::NandProgram | Op::NandErase | Op::NandCopyback => MediumKind::Nand,
            Op::PcmRead | Op::PcmWrite | Op::PcmFence | Op::PcmWriteClean | Op::PcmRefresh => MediumKind::Pcm,
            Op::DramRead | Op::DramWrite => MediumKind::Dram,
            Op::DiskRead | Op::DiskWrite | Op::DiskFlush => MediumKind::Disk,
        }
    }

    /// Whether the command orders those before it on its unit before those behind it, and makes them certain.
    #[inline]
    #[must_use]
    pub fn is_fence(self) -> bool {
        matches!(self, Op::PcmFence | Op::DiskFlush)
    }

    /// Whether the command writes data.
    #[inline]
    #[must_use]
    pub fn is_write(self) -> bool {
        matches!(
            self,
            Op::NandProgram
                | Op::NandCopyback
                | Op::PcmWrite
                | Op::PcmWriteClean
                | Op::DramWrite
                | Op::DiskWrite
        )
    }

    /// Whether the command only reads: what a read-first scheduler lets pass.
    #[inline]
    #[must_use]
    pub fn is_read(self) -> bool {
        matches!(self, Op::NandRead | Op::PcmRead | Op::DramRead | Op::DiskRead)
    }
}

/// Why a command was given.
#[derive(
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    Debug,
    Serialize,
    Deserialize,
    EnumCount,
    EnumIter,
    IntoStaticStr,
    FromRepr,
)]
#[repr(u8)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Cause {
    /// The host asked for it.
    Host,
    /// A write smaller than a page made the old page be read and merged.
    Merge,
    /// Garbage collection.
    Gc,
    /// Wear leveling.
    WearLevel,
    /// Mapping tables, descriptors, superblocks.
    Meta,
    /// Data moved between media because of its heat or size.
    Migrate,
    /// Dirty data written from a cache to what is behind it.
    Destage,
}

impl Cause {
    /// Whether the command is work of the layer's own and no part of a request: neither the host's data nor the old
    /// data that a small write is merged with.
    #[inline]
    #[must_use]
    pub fn is_background(self) -> bool {
        !matches!(self, Cause::Host | Cause::Merge)
    }
}

/// One command to one unit of a medium. `Copy`, at most 24 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Cmd {
    /// Where: NAND, the physical page (erase: the block's first page); PCM, DRAM and
    /// disks, the byte address.
    pub addr: u64,
    /// Payload in bytes (0 for an erase or a fence).
    pub len: u32,
    /// What may not be reordered against what: commands with the same hazard on the same unit keep
    /// their order. NAND: the block; PCM: the line; disks: the MiB.
    pub hazard: u32,
    /// Who does it.
    pub unit: UnitId,
    /// What.
    pub op: Op,
    /// Why.
    pub cause: Cause,
}

const _: () = assert!(size_of::<Cmd>() <= 24);

#[cfg(test)]
mod tests {
    use super::*;
    use strum::IntoEnumIterator;

    #[test]
    fn names_are_those_of_reports() {
        let ops: Vec<&str> = Op::iter().map(Into::into).collect();
        assert!(ops.contains(&"nand-program"));
        let causes: Vec<&str> = Cause::iter().map(Into::into).collect();
        assert_eq!(causes, ["host", "merge", "gc", "wear-level", "meta", "migrate", "destage"]);
    }
}

//! Commands to media: operation, address and cause.

use serde::{Deserialize, Serialize};
use strum::{EnumCount, EnumIter, FromRepr, IntoStaticStr};

/// A unit of a medium that executes one command at a time (a NAND plane, a PCM channel), numbered
/// through all media of a stack.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UnitId(pub u16);

impl UnitId {
    /// Returns the number as an index into a table with one row for each unit.
    #[inline]
    #[must_use]
    pub fn idx(self) -> usize {
        self.0 as usize
    }
}

/// Kind of a medium.
#[derive(
    Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, EnumCount, EnumIter, IntoStaticStr,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum MediumKind {
    /// NAND flash: pages, erase blocks.
    Nand,
    /// Byte-addressable durable memory (PCM and similar).
    Pcm,
    /// Volatile memory.
    Dram,
    /// Hard disk.
    Disk,
    /// Object store: immutable objects under names.
    Object,
}

impl MediumKind {
    /// Returns the name with its indefinite article, for messages.
    #[must_use]
    pub fn with_article(self) -> &'static str {
        match self {
            MediumKind::Nand => "a nand",
            MediumKind::Pcm => "a pcm",
            MediumKind::Dram => "a dram",
            MediumKind::Disk => "a disk",
            MediumKind::Object => "an object",
        }
    }
}

/// Operation of a command.
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
    /// Transfer more of the page that a read has left in the page register, without a read of the
    /// cells (ONFI: change read column). It is emitted directly after the [`Op::NandRead`] of its page
    /// on the same unit, which executes no command in between.
    NandRegisterRead,
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
    /// Refresh a block of PCM, so that later writes find RESET cells ([`Op::PcmWriteClean`]).
    PcmRefresh,
    /// Read DRAM.
    DramRead,
    /// Write DRAM.
    DramWrite,
    /// Read sectors of a disk.
    DiskRead,
    /// Write sectors of a disk. They are durable after a flush.
    DiskWrite,
    /// Write the volatile cache of a disk to its platters.
    DiskFlush,
    /// Read bytes of an object.
    ObjectGet,
    /// Write an object. It is durable after a flush.
    ObjectPut,
    /// Delete an object.
    ObjectDelete,
    /// List names of objects.
    ObjectList,
    /// Make earlier puts durable, and check that no newer writer has taken the store over.
    ObjectFlush,
}

impl Op {
    /// Returns the kind of medium that executes the operation.
    #[must_use]
    pub fn medium(self) -> MediumKind {
        match self {
            Op::NandRead | Op::NandRegisterRead | Op::NandProgram | Op::NandErase | Op::NandCopyback => {
                MediumKind::Nand
            }
            Op::PcmRead | Op::PcmWrite | Op::PcmFence | Op::PcmWriteClean | Op::PcmRefresh => MediumKind::Pcm,
            Op::DramRead | Op::DramWrite => MediumKind::Dram,
            Op::DiskRead | Op::DiskWrite | Op::DiskFlush => MediumKind::Disk,
            Op::ObjectGet | Op::ObjectPut | Op::ObjectDelete | Op::ObjectList | Op::ObjectFlush => {
                MediumKind::Object
            }
        }
    }

    /// Returns `true` if the operation is a barrier on its unit that makes earlier commands
    /// durable.
    #[inline]
    #[must_use]
    pub fn is_fence(self) -> bool {
        matches!(self, Op::PcmFence | Op::DiskFlush | Op::ObjectFlush)
    }

    /// Returns `true` if the operation writes data.
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
                | Op::ObjectPut
        )
    }

    /// Returns `true` if the operation only reads. A read-first scheduler gives such operations
    /// priority.
    #[inline]
    #[must_use]
    pub fn is_read(self) -> bool {
        matches!(
            self,
            Op::NandRead
                | Op::NandRegisterRead
                | Op::PcmRead
                | Op::DramRead
                | Op::DiskRead
                | Op::ObjectGet
                | Op::ObjectList
        )
    }
}

/// Cause of a command.
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
    /// A request of the host.
    Host,
    /// Read of the old page for a write smaller than a page, which is merged with it.
    Merge,
    /// Garbage collection.
    Gc,
    /// Wear leveling.
    WearLevel,
    /// Mapping tables, descriptors, superblocks.
    Meta,
    /// Data moved between media because of its heat or size, or copied between the sides of a mirror.
    Migrate,
    /// Dirty data written from a cache to the medium behind it.
    Destage,
    /// In-storage processing: an engine beside the medium reads data that do not leave the device.
    Isp,
}

impl Cause {
    /// Returns `true` if the command is work of the layer or of the device itself and not part of a
    /// request: neither the host's data nor the old data that a small write is merged with.
    #[inline]
    #[must_use]
    pub fn is_background(self) -> bool {
        !matches!(self, Cause::Host | Cause::Merge)
    }

    /// Returns `true` if the command has a lower rank than every command of another cause:
    /// in-storage processing uses the time that reads and writes leave.
    #[inline]
    #[must_use]
    pub fn yields_to_host(self) -> bool {
        self == Cause::Isp
    }
}

/// One command to one unit of a medium. It is `Copy` and has at most 24 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Cmd {
    /// Address. NAND: the physical page (erase: the first page of the block), and [`Cmd::ONE_BIT`].
    /// PCM, DRAM and disks: the byte address. Object stores: the byte address in the store that holds the
    /// objects, or the name.
    pub addr: u64,
    /// Payload in bytes (0 for an erase or a fence).
    pub len: u32,
    /// Hazard: commands with the same hazard on the same unit keep their order. NAND: the block.
    /// PCM: the line. Disks: the MiB. Object stores: the slot of the object, or its number.
    pub hazard: u32,
    /// Unit that executes the command.
    pub unit: UnitId,
    /// Operation.
    pub op: Op,
    /// Cause.
    pub cause: Cause,
}

const _: () = assert!(size_of::<Cmd>() <= 24);

impl Cmd {
    /// Bit of the address of a NAND command: the block is used with one bit a cell. Page numbers have
    /// 32 bits.
    pub const ONE_BIT: u64 = 1 << 32;

    /// Physical page of a NAND command.
    #[inline]
    #[must_use]
    pub fn nand_page(&self) -> u32 {
        (self.addr & u64::from(u32::MAX)) as u32
    }

    /// Returns `true` for a NAND command to a block that is used with one bit a cell.
    #[inline]
    #[must_use]
    pub fn is_one_bit(&self) -> bool {
        self.addr & Cmd::ONE_BIT != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use strum::IntoEnumIterator;

    #[test]
    fn names_are_those_of_reports() {
        let ops: Vec<&str> = Op::iter().map(Into::into).collect();
        assert!(ops.contains(&"nand-program"));
        for kind in MediumKind::iter() {
            assert!(kind.with_article().ends_with(<&str>::from(kind)));
        }
        let causes: Vec<&str> = Cause::iter().map(Into::into).collect();
        assert_eq!(causes, ["host", "merge", "gc", "wear-level", "meta", "migrate", "destage", "isp"]);
    }
}

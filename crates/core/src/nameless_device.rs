//! The interface of a nameless-write device (Zhang et al., "De-indirection for Flash-based SSDs with
//! Nameless Writes", FAST 2012): the device chooses the place of a block and returns its address, and
//! the owner of the block keeps the address.

use crate::visible::Metric;
use crate::{
    Cause, CrashKind, Precondition, Progress, ReadTarget, Recovery, Result, Sink, StackView, Tok, WriteData,
};

/// Owners have smaller numbers than this.
pub const OWNERS: u32 = 1 << 31;

/// Physical address of a block: its page, and the version that was written there.
///
/// The version makes an address unique for the life of the device. A block that the device has moved
/// keeps its version, so its owner finds it by an old address (section 3.4 of FAST 2012: the
/// associated metadata).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct PhysicalAddress {
    /// Page of the device.
    pub page: u32,
    /// Low 32 bits of the sequence number of the write; never 0 for a block that was written.
    pub version: u32,
}

impl PhysicalAddress {
    /// Returns the address as one word, which is 0 for the default address only.
    #[inline]
    #[must_use]
    pub fn to_word(self) -> u64 {
        u64::from(self.version) << 32 | u64::from(self.page)
    }

    /// Returns the address that a word stands for.
    #[inline]
    #[must_use]
    pub fn from_word(word: u64) -> PhysicalAddress {
        PhysicalAddress { page: crate::convert::low_u32(word), version: crate::convert::low_u32(word >> 32) }
    }
}

/// A block that was written without a name: its owner, and its address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub struct OwnedBlock {
    /// Number under which the owner finds its reference to the block: a logical page, or an inode. It
    /// is below [`OWNERS`].
    pub owner: u32,
    /// Address of the block.
    pub at: PhysicalAddress,
}

/// Notice that the device has moved a block, in garbage collection or wear leveling.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Migration {
    /// Owner of the block.
    pub owner: u32,
    /// Page at which the block was. Its version there was that of `to`. The page of a block that was
    /// lost is not written again.
    pub from: u32,
    /// Its new address; `None` if the block was unreadable, and is lost.
    pub to: Option<PhysicalAddress>,
}

/// Space for contents of a nameless-write device, in blocks.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ContentsSpace {
    /// Blocks that an owner can store.
    pub capacity: u32,
    /// Blocks beyond the capacity that may be stored for a while: those that the owner has replaced,
    /// and frees once its new metadata is durable.
    pub waiting: u32,
    /// Blocks that are stored: written or claimed, and not freed.
    pub stored: u32,
}

/// Where a block is after a recovery.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Claimed {
    /// At this address: the claimed one, or another one if the device had moved the block.
    At(PhysicalAddress),
    /// Nowhere: its record is missing or damaged.
    Lost(String),
}

/// A nameless-write device as a file system uses it.
///
/// Contents are written without a name ([`NamelessDevice::nameless_write`]). Metadata has addresses in
/// a small virtual address space ([`NamelessDevice::virtual_write`]). A token that an access returns is
/// done when the access is durable; an access begins once `after` is done.
///
/// **Addresses.** The `k` blocks of a request queue have the pages `p` to `p + k - 1` and the versions
/// `v` to `v + k - 1`, where `p` and `v` are those of the first one, and lie in one virtual page. So an
/// owner that keeps runs of blocks needs one address for a queue.
///
/// **Migration.** The device moves blocks. It notes each move in a queue ([`NamelessDevice::migration`])
/// until the owner has acknowledged it. Until then each access at an old address reaches the block at its
/// new place. The new place has the owner and the version of the block in its spare area, which is
/// programmed together with the data. So the notice itself need not be durable: after a crash, the owner
/// claims each block at the address that it knows, and is told the present one. Notices of a block that
/// was freed stay in the queue, and mean nothing: no other block has its version. An owner that can end
/// alone, while the device goes on, flushes metadata with the new addresses before it acknowledges them.
///
/// **Atomic flush.** With [`NamelessDevice::flushes_atomically`], virtual writes become durable with the
/// next flush, all or none: after a crash, each virtual block is as of the last flush that was completed,
/// or all are as of the flush that was in progress. Nameless writes, virtual writes that refer to them,
/// and one flush are a transaction. Without it, each virtual write becomes durable by itself, at the
/// flush at the latest.
///
/// **Recovery.** [`NamelessDevice::recover`] finds the virtual blocks. The owner reads its metadata,
/// claims all blocks that it refers to ([`NamelessDevice::claim`]), and calls
/// [`NamelessDevice::resume`]. Blocks that were not claimed are free. Until then the device refuses
/// writes and flushes; it reads virtual blocks, and contents that were claimed.
///
/// **Space.** A device with atomic flushes accepts nameless writes as long as
/// [`ContentsSpace::capacity`] and [`ContentsSpace::waiting`] together are not exceeded, and always
/// accepts virtual writes. A block counts until it is freed.
pub trait NamelessDevice: Send {
    /// Returns the size of a block, in bytes.
    fn block_bytes(&self) -> u32;

    /// Returns the number of blocks of a virtual page of the flash: the largest request queue.
    fn queue_blocks(&self) -> u32;

    /// Returns the number of pages that addresses can refer to.
    fn pages(&self) -> u32;

    /// Returns the number of virtual blocks.
    fn virtual_blocks(&self) -> u32;

    /// Returns `true` if virtual writes become durable together, at a flush.
    fn flushes_atomically(&self) -> bool;

    /// Returns the space for contents.
    fn space(&self) -> ContentsSpace;

    /// Writes a request queue of blocks, one for each owner. The queue gets a virtual page of its own.
    /// The addresses are added to `placed`.
    ///
    /// # Errors
    /// `NoSpace`; `ReadOnly`; a queue that is larger than a virtual page; an error of the medium.
    fn nameless_write(
        &mut self,
        sink: &mut Sink,
        owners: &[u32],
        data: WriteData<'_>,
        cause: Cause,
        after: Tok,
        placed: &mut Vec<PhysicalAddress>,
    ) -> Result<Tok>;

    /// Writes a request queue of virtual blocks.
    ///
    /// # Errors
    /// The errors of [`NamelessDevice::nameless_write`], and a block past the end.
    fn virtual_write(
        &mut self,
        sink: &mut Sink,
        blocks: &[u32],
        data: WriteData<'_>,
        cause: Cause,
        after: Tok,
    ) -> Result<Tok>;

    /// Forgets the contents of a virtual block, which reads as zeros then. It is durable as a virtual
    /// write is.
    ///
    /// # Errors
    /// A device without atomic flushes; the errors of [`NamelessDevice::virtual_write`].
    fn virtual_discard(&mut self, sink: &mut Sink, block: u32) -> Result<()>;

    /// Reads bytes of consecutive contents: from byte `offset` of the first block on, up to the length
    /// of `into`. Blocks of one virtual page are read by one command.
    ///
    /// # Errors
    /// `Corrupt` for a block that is damaged, or that is not at its address; an error of the medium.
    fn physical_read(
        &mut self,
        sink: &mut Sink,
        blocks: &[OwnedBlock],
        offset: u32,
        into: ReadTarget<'_>,
        cause: Cause,
    ) -> Result<Tok>;

    /// Reads bytes of a virtual block, from byte `offset` on. A block that was never written reads as
    /// zeros.
    ///
    /// # Errors
    /// `Corrupt` for a block that is damaged or lost, or an error of the medium.
    fn virtual_read(
        &mut self,
        sink: &mut Sink,
        block: u32,
        offset: u32,
        into: ReadTarget<'_>,
        cause: Cause,
    ) -> Result<Tok>;

    /// Returns `true` if a virtual block has contents, or has lost them.
    fn virtual_written(&self, block: u32) -> bool;

    /// Calls `each` with the virtual blocks whose contents are lost, and the reasons.
    fn virtual_losses(&self, each: &mut dyn FnMut(u32, &str));

    /// Frees a block, at its present address or at an old one. Its page may be erased once `after` is
    /// done: no durable metadata refers to the block then. That may be the token of a flush, or the
    /// default token if the flush is complete. A block that is lost or was freed before is ignored.
    fn free(&mut self, sink: &mut Sink, block: OwnedBlock, after: Tok);

    /// Returns the oldest migration that was not acknowledged.
    fn migration(&self) -> Option<Migration>;

    /// Adds the oldest migrations that were not acknowledged to `into`, `most` at most. They stay in the
    /// queue.
    fn migrations(&self, most: usize, into: &mut Vec<Migration>);

    /// Returns the number of migrations that were not acknowledged.
    fn pending_migrations(&self) -> usize;

    /// Acknowledges the `n` oldest migrations: the owner knows the new addresses. Migrations that follow
    /// are added at the end of the queue, so they are those that [`NamelessDevice::migrations`] has listed.
    fn acknowledge(&mut self, n: usize);

    /// Returns the token that is done when all writes so far are durable.
    fn written(&self) -> Tok;

    /// Syncs media in files. Every write so far survives a power loss of the machine.
    ///
    /// # Errors
    /// An error of the medium.
    fn sync(&mut self) -> Result<()>;

    /// Makes all writes durable, and saves the metadata of the device.
    ///
    /// # Errors
    /// `ReadOnly` before the owner has resumed; an error of the medium.
    fn flush(&mut self, sink: &mut Sink) -> Result<Tok>;

    /// Does background work: garbage collection and wear leveling.
    ///
    /// # Errors
    /// An error of the medium.
    fn step(&mut self, sink: &mut Sink, budget: u32) -> Result<Progress>;

    /// Shuts the device down: all writes and its metadata are durable.
    ///
    /// # Errors
    /// An error of the medium.
    fn halt(&mut self, sink: &mut Sink) -> Result<()>;

    /// Finds the virtual blocks and the records of all others.
    ///
    /// # Errors
    /// Media without bytes, or an error of the medium.
    fn recover(&mut self, sink: &mut Sink, crash: CrashKind) -> Result<Recovery>;

    /// Returns the number of records of contents that the recovery has found, whether or not an owner
    /// refers to them; 0 after [`NamelessDevice::resume`].
    fn found_blocks(&self) -> u64;

    /// Returns `true` from a recovery on until [`NamelessDevice::resume`].
    fn awaits_claims(&self) -> bool;

    /// Claims a block that the metadata of the owner refers to. Each block is claimed once. The cost is a
    /// search in the sorted records; a block is read only if the device was moving it.
    ///
    /// # Errors
    /// `ReadOnly` after the owner has resumed; an error of the medium.
    fn claim(&mut self, block: OwnedBlock) -> Result<Claimed>;

    /// Ends a recovery. Blocks that were not claimed are free. Without a recovery it does nothing.
    ///
    /// # Errors
    /// An error of the medium.
    fn resume(&mut self, sink: &mut Sink, recovery: &mut Recovery) -> Result<()>;

    /// Verifies a block: its record, and with `data` its contents.
    ///
    /// # Errors
    /// `Corrupt` for damage, or an error of the medium.
    fn verify(&mut self, sink: &mut Sink, block: OwnedBlock, data: bool) -> Result<()>;

    /// Verifies a virtual block, as [`NamelessDevice::verify`] does others.
    ///
    /// # Errors
    /// The errors of [`NamelessDevice::verify`].
    fn verify_virtual(&mut self, sink: &mut Sink, block: u32, data: bool) -> Result<()>;

    /// Writes `blocks` blocks at once, one for each owner below that number. No command is emitted or
    /// counted. `placed` is called with each block.
    ///
    /// # Errors
    /// A device that is not new.
    fn precondition(
        &mut self,
        how: Precondition,
        blocks: u32,
        placed: &mut dyn FnMut(OwnedBlock),
    ) -> Result<()>;

    /// Checks that writes are accepted.
    ///
    /// # Errors
    /// `ReadOnly`, with the reason, if they are refused.
    fn writable(&self) -> Result<()>;

    /// Returns the reason for which the device refuses writes.
    fn refuses(&self) -> Option<String>;

    /// Refuses writes from now on.
    fn refuse(&mut self, why: String);

    /// Returns `true` if the medium holds bytes.
    fn holds_bytes(&self) -> bool;

    /// Returns the DRAM that the FTL of the device uses, in bytes.
    fn dram_bytes(&self) -> u64;

    /// Returns the metrics of the device.
    fn metrics(&self) -> Vec<Metric>;

    /// Adds the medium of the device to the view.
    fn visible(&self, view: &mut StackView);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_word() {
        let at = PhysicalAddress { page: u32::MAX - 1, version: 7 };
        assert_eq!(PhysicalAddress::from_word(at.to_word()), at);
        assert_eq!(PhysicalAddress::default().to_word(), 0);
    }
}

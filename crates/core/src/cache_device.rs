//! The interface of a solid-state cache (Saxena et al., "FlashTier", EuroSys 2012): a device that
//! holds blocks of a disk under the disk's own addresses.

use crate::visible::Metric;
use crate::{
    Cause, CheckCounts, CheckScope, CrashKind, DurabilityPoint, Finding, Progress, ReadTarget, Recovery,
    Result, Sink, StackView, Tok, WriteData,
};
use std::ops::Range;

/// State of a block that is present in a cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BlockState {
    /// The disk has the same data. The device may drop the block at any time.
    Clean,
    /// Only the device has the data. It keeps the block until it is cleaned, evicted or overwritten.
    Dirty,
}

/// Result of a read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CacheRead {
    /// The block is present and was read. The token is done when the data has arrived.
    Hit(Tok),
    /// The block is not present. The contents of the target of the read are undefined.
    Miss,
}

/// Result of a recovery.
#[derive(Clone, Debug)]
pub struct CacheRecovery {
    /// Result for the user.
    pub recovery: Recovery,
    /// Token that is done when the device durably states that it is in use. The disk must not change
    /// before.
    pub ready: Tok,
}

/// A solid-state cache as a cache manager uses it.
///
/// Addresses are block numbers of the disk. A token that an access returns is done when the device
/// acknowledges the access; an access begins once `after` is done, and the record of an access is
/// durable after it only.
///
/// The guarantees hold for accesses that are durable: at their acknowledgement under
/// [`DurabilityPoint::OnAck`], and else after a [`CacheDevice::flush`].
///
/// 1. A read after [`CacheDevice::write_dirty`] returns that data, until the block is cleaned, evicted
///    or overwritten.
/// 2. A read after [`CacheDevice::write_clean`] returns that data or a miss, never older data.
/// 3. A read after [`CacheDevice::evict`] is a miss.
pub trait CacheDevice: Send {
    /// Returns the size of a block, in bytes.
    fn block_bytes(&self) -> u32;

    /// Returns the largest number of blocks that are present together.
    fn blocks(&self) -> u64;

    /// Returns the number of dirty blocks up to which [`CacheDevice::write_dirty`] finds space.
    fn dirty_limit(&self) -> u64;

    /// Returns the number of dirty blocks for which there is space during the whole life of the device:
    /// with as many bad blocks as its data sheet permits. It never changes.
    fn lifetime_dirty_limit(&self) -> u64;

    /// Returns the number of dirty blocks.
    fn dirty_blocks(&self) -> u64;

    /// Announces blocks that will be written or read: see [`crate::BlockLayer::prefetch`].
    fn prefetch(&self, blocks: &[u32]);

    /// Returns the state of a block; `None` if it is not present.
    fn state(&self, block: u32) -> Option<BlockState>;

    /// Returns `true` if metadata is missing: any block can be present with a newer version, and reads
    /// are errors.
    fn has_missing(&self) -> bool;

    /// Reads part of a block, from byte `offset` on.
    ///
    /// # Errors
    /// `Corrupt` for a dirty block that is damaged (a clean one is a miss), or an error of the medium.
    fn read(
        &mut self,
        sink: &mut Sink,
        block: u32,
        offset: u32,
        into: ReadTarget<'_>,
        cause: Cause,
        after: Tok,
    ) -> Result<CacheRead>;

    /// Writes whole blocks, from `first` on, that the disk does not have.
    ///
    /// # Errors
    /// `NoSpace` beyond [`CacheDevice::dirty_limit`]; `ReadOnly`; an error of the medium.
    fn write_dirty(
        &mut self,
        sink: &mut Sink,
        first: u32,
        data: WriteData<'_>,
        cause: Cause,
        after: Tok,
    ) -> Result<Tok>;

    /// Writes whole blocks, from `first` on, that the disk has as well.
    ///
    /// # Errors
    /// The errors of [`CacheDevice::write_dirty`].
    fn write_clean(
        &mut self,
        sink: &mut Sink,
        first: u32,
        data: WriteData<'_>,
        cause: Cause,
        after: Tok,
    ) -> Result<Tok>;

    /// Removes blocks.
    ///
    /// # Errors
    /// `ReadOnly`, or an error of the medium. Under [`DurabilityPoint::OnAck`], the blocks whose eviction
    /// is not durable then are still present.
    fn evict(&mut self, sink: &mut Sink, blocks: Range<u32>, after: Tok) -> Result<Tok>;

    /// Removes all clean blocks.
    ///
    /// # Errors
    /// `ReadOnly`, or an error of the medium.
    fn evict_clean(&mut self, sink: &mut Sink, after: Tok) -> Result<Tok>;

    /// Removes the clean blocks of a range in memory only, where the device cannot record it: the disk may
    /// have newer versions of them. A recovery can find them again.
    fn forget_clean(&mut self, blocks: Range<u32>);

    /// Makes blocks clean, which the disk durably has once `after` is done. A crash may make them dirty
    /// again.
    ///
    /// # Errors
    /// `ReadOnly`, or an error of the medium.
    fn clean(&mut self, sink: &mut Sink, blocks: Range<u32>, after: Tok) -> Result<Tok>;

    /// Calls `each` with the blocks of a range that are present, in ascending order.
    fn exists(&self, blocks: Range<u32>, each: &mut dyn FnMut(u32, BlockState));

    /// Makes all acknowledged accesses durable.
    ///
    /// # Errors
    /// An error of the medium.
    fn flush(&mut self, sink: &mut Sink, after: Tok) -> Result<Tok>;

    /// Returns the point at which `write_dirty` and `evict` are durable.
    fn durable_at(&self) -> DurabilityPoint;

    /// Does background work.
    ///
    /// # Errors
    /// An error of the medium.
    fn step(&mut self, sink: &mut Sink, budget: u32) -> Result<Progress>;

    /// Prepares a blank medium for a volume.
    ///
    /// # Errors
    /// A configuration that cannot be durable.
    fn format(&mut self, sink: &mut Sink) -> Result<()>;

    /// Recovers the blocks from the medium.
    ///
    /// # Errors
    /// Media without bytes, or an error of the medium.
    fn recover(&mut self, sink: &mut Sink, crash: CrashKind) -> Result<CacheRecovery>;

    /// Shuts the device down after `after`: everything is durable, and the next recovery is clean.
    ///
    /// # Errors
    /// An error of the medium.
    fn halt(&mut self, sink: &mut Sink, after: Tok) -> Result<()>;

    /// States that the device is in use, if it stated a halt before. Returns a token that is done when the
    /// statement is durable: the disk must not change before.
    ///
    /// # Errors
    /// `ReadOnly`, or an error of the medium.
    fn begin_use(&mut self, sink: &mut Sink) -> Result<Tok>;

    /// Checks the map against the medium.
    ///
    /// # Errors
    /// An error of the medium. Damage is reported as findings.
    fn check(
        &mut self,
        sink: &mut Sink,
        scope: CheckScope,
        found: &mut dyn FnMut(Finding),
    ) -> Result<CheckCounts>;

    /// Returns the reason for which the device refuses writes.
    fn refuses(&self) -> Option<String>;

    /// Refuses writes from now on.
    fn refuse(&mut self, why: String);

    /// Returns `true` if the medium holds bytes.
    fn holds_bytes(&self) -> bool;

    /// Returns the DRAM that the device uses, in bytes.
    fn dram_bytes(&self) -> u64;

    /// Returns the metrics of the device.
    fn metrics(&self) -> Vec<Metric>;

    /// Adds the medium of the device to the view.
    fn visible(&self, view: &mut StackView);
}

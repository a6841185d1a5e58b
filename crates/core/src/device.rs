//! The device below a layer: a disk, or another layer.

use crate::{
    BlockingMedium, Cause, CheckCounts, CheckScope, Count, CrashKind, Error, Finding, Hints, Info,
    LayerRecovery, MediumKind, Op, Params, Precondition, Progress, ReadTarget, Result, SECTOR_BYTES, Sector,
    Sink, StackView, Tok, WriteData, WriteGuarantee,
};
use serde::Serialize;
use std::sync::Arc;
use strum::{EnumCount, EnumIter, IntoEnumIterator, IntoStaticStr};

/// Access of an upper layer to the device below it.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, EnumCount, EnumIter, IntoStaticStr,
)]
#[repr(u8)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum TrafficKind {
    /// A read.
    Read,
    /// A write.
    Write,
    /// A discard, or a write of zeros without a payload.
    Zero,
    /// A flush.
    Flush,
}

/// Number of the requests that a layer received from the layer above it, with their bytes, by kind
/// and by the cause that the upper layer gives.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Traffic {
    cells: [[Count; Cause::COUNT]; TrafficKind::COUNT],
}

impl Traffic {
    /// Counts a request.
    #[inline]
    pub fn add(&mut self, kind: TrafficKind, cause: Cause, bytes: u64) {
        self.cells[kind as usize][cause as usize] += Count { commands: 1, bytes };
    }

    /// Returns the sum over all causes of one kind.
    #[must_use]
    pub fn of(&self, kind: TrafficKind) -> Count {
        self.cells[kind as usize].iter().copied().sum()
    }

    /// Iterates over the counts that are not zero, by kind and cause.
    pub fn iter(&self) -> impl Iterator<Item = (TrafficKind, Cause, Count)> + '_ {
        TrafficKind::iter().flat_map(move |kind| {
            Cause::iter().filter_map(move |cause| {
                let cell = self.cells[kind as usize][cause as usize];
                (cell.commands > 0).then_some((kind, cause, cell))
            })
        })
    }

    /// Returns the difference to `earlier`, a former state of these counts.
    #[must_use]
    pub fn since(&self, earlier: &Traffic) -> Traffic {
        let mut difference = self.clone();
        for (row, before) in difference.cells.iter_mut().zip(&earlier.cells) {
            for (cell, before) in row.iter_mut().zip(before) {
                *cell = cell.since(*before);
            }
        }
        difference
    }
}

/// A block device as the layer above it uses it.
///
/// Addresses are in bytes, and accesses cover whole sectors. A token that an access returns is done
/// when the device acknowledges the access. Its durability is that of
/// [`BlockDevice::write_guarantee`], or that of a later [`BlockDevice::flush`]. `docs/reference/composition.md` states what an upper layer may assume.
pub trait BlockDevice: Send {
    /// Returns the capacity, in bytes: a multiple of a sector.
    fn bytes(&self) -> u64;

    /// Returns the size of a mapped page, in bytes: requests aligned to it need no read-modify-write.
    fn page_bytes(&self) -> u32 {
        SECTOR_BYTES as u32
    }

    /// Announces the next requests (first sector, length in sectors): see
    /// [`crate::BlockLayer::prefetch`]. A device that passes requests on passes this on as well:
    /// without it, each request of a layer below waits for memory.
    fn prefetch(&self, next: &[(Sector, u32)]);

    /// Sets the hints of the writes of [`Cause::Host`] that follow. A device that is no layer ignores
    /// them.
    fn set_hints(&mut self, _hints: Hints) {}

    /// Reads sectors, once `after` is done.
    ///
    /// # Errors
    /// An access past the end or to parts of sectors, or a failure of the device.
    fn read(
        &mut self,
        sink: &mut Sink,
        at: u64,
        into: ReadTarget<'_>,
        cause: Cause,
        after: Tok,
    ) -> Result<Tok>;

    /// Writes sectors, once `after` is done.
    ///
    /// # Errors
    /// An access past the end or to parts of sectors, or a failure of the device.
    fn write(
        &mut self,
        sink: &mut Sink,
        at: u64,
        data: WriteData<'_>,
        cause: Cause,
        after: Tok,
    ) -> Result<Tok>;

    /// Makes sectors read as zeros, once `after` is done.
    ///
    /// # Errors
    /// The errors of [`BlockDevice::write`].
    fn zero(&mut self, sink: &mut Sink, at: u64, len: u64, cause: Cause, after: Tok) -> Result<Tok>;

    /// Makes the writes durable that `after` waits for. A layer also makes all writes durable that it
    /// has acknowledged; a disk does not, so its upper layer has to keep their tokens.
    ///
    /// # Errors
    /// A failure of the device.
    fn flush(&mut self, sink: &mut Sink, cause: Cause, after: Tok) -> Result<Tok>;

    /// Returns the guarantees of an acknowledged write.
    fn write_guarantee(&self) -> WriteGuarantee;

    /// Returns `true` after a failed sync of a file below the device. What was written since the last
    /// good one may be lost, and all flushes fail until
    /// [`forgive_failed_sync`](BlockDevice::forgive_failed_sync).
    fn failed_sync(&self) -> bool {
        false
    }

    /// Lets flushes through again after a failed sync ([`crate::SyncGate::forgive`]): the upper layer
    /// writes all data once more that it has written since the last good flush. A device with data of
    /// its own does nothing.
    fn forgive_failed_sync(&mut self) {}

    /// Returns a handle for accesses from any thread, if the device can be accessed without its
    /// upper layer's lock ([`crate::deferred`]). A layer defers its own accesses from now on.
    fn shared(&mut self) -> Option<Arc<dyn BlockingMedium>> {
        None
    }

    /// Returns `true` if accesses may have to wait for a slow medium.
    fn waits(&self) -> bool {
        false
    }

    /// Calls `each` for the handle of each layer of the device that was [shared](Self::shared), the
    /// uppermost first: its background work needs no lock of an upper layer.
    fn each_shared(&mut self, _each: &mut dyn FnMut(&Arc<dyn BlockingMedium>)) {}

    /// Emits and counts an access that the caller executes itself through [`BlockDevice::shared`].
    ///
    /// # Errors
    /// An access past the end or to parts of sectors; a device that is not shared.
    fn emit_deferred(
        &mut self,
        _sink: &mut Sink,
        _op: Op,
        at: u64,
        _len: u64,
        _cause: Cause,
        _after: Tok,
    ) -> Result<Tok> {
        Err(Error::Rule { medium: MediumKind::Disk, at, what: "the device has no accesses to defer" })
    }

    /// Adds the media and layers of the device to the view.
    fn visible(&self, view: &mut StackView);

    /// Returns the end of the run of bytes from `at` on that lies on one medium, and this medium;
    /// `None` for bytes that were never written or were discarded.
    fn place(&self, at: u64) -> (u64, Option<MediumKind>);

    /// Writes the metadata that assigns the media to the layers of the device.
    ///
    /// # Errors
    /// The errors of [`crate::Durable::format`].
    fn format(&mut self, _sink: &mut Sink) -> Result<()> {
        Ok(())
    }

    /// Recovers the layers of the device, the lowest first. Returns their results, the uppermost
    /// first.
    ///
    /// # Errors
    /// The errors of [`crate::Durable::recover`].
    fn recover(&mut self, _sink: &mut Sink, _crash: CrashKind) -> Result<Vec<LayerRecovery>> {
        Ok(Vec::new())
    }

    /// Shuts the layers of the device down, the uppermost first.
    ///
    /// # Errors
    /// The errors of [`crate::Quiesce::halt`].
    fn halt(&mut self, _sink: &mut Sink) -> Result<()> {
        Ok(())
    }

    /// Reads the persisted state of the layers of the device back, the lowest first.
    ///
    /// # Errors
    /// The errors of [`crate::Quiesce::boot`].
    fn boot(&mut self, _sink: &mut Sink) -> Result<()> {
        Ok(())
    }

    /// Checks the layers of the device.
    ///
    /// # Errors
    /// The errors of [`crate::Durable::check`].
    fn check(
        &mut self,
        _sink: &mut Sink,
        _scope: CheckScope,
        _found: &mut dyn FnMut(Finding),
    ) -> Result<CheckCounts> {
        Ok(CheckCounts::default())
    }

    /// Brings the layers of a new device into a state as after long use.
    ///
    /// # Errors
    /// The errors of [`crate::Preconditioning::precondition`].
    fn precondition(&mut self, _how: Precondition) -> Result<()> {
        Ok(())
    }

    /// Does background work of the layers of the device.
    ///
    /// # Errors
    /// The errors of [`crate::BlockLayer::step`].
    fn step(&mut self, _sink: &mut Sink, _budget: u32) -> Result<Progress> {
        Ok(Progress::Idle)
    }

    /// Returns the reason for which the device refuses writes.
    fn refuses(&self) -> Option<String> {
        None
    }

    /// Enters read-only mode.
    fn refuse(&mut self, _why: &str) {}

    /// Calls `each` with the name, the sizes and the parameters of each layer of the device, the
    /// uppermost first.
    fn each_layer(&mut self, _each: &mut dyn FnMut(&str, &Info, &mut dyn Params)) {}
}

//! The block interface between the layers of a stack.

use crate::{
    BlockingMedium, Buffer, ByteAccess, CacheAccess, Deferred, Durable, Hints, NamelessDevice, Nanos, Params,
    RawAccess, ReadTarget, RequestIntent, Result, Sector, Sink, StackView, Tok, WriteData, ZoneAccess,
};
use std::sync::Arc;

/// Identity and sizes of a layer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Info {
    /// The layer's name in a stack file.
    pub name: &'static str,
    /// Capacity, in sectors.
    pub sectors: u64,
    /// Size of one mapped page, in bytes. Requests aligned to it need no read-modify-write.
    pub page_bytes: u32,
    /// DRAM that the layer uses for its mapping, in bytes.
    pub dram_bytes: u64,
    /// Durable memory that the layer reserves for its mapping, in bytes.
    pub durable_map_bytes: u64,
}

/// State of the background work of a layer after a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Progress {
    /// No work is pending. Call again after the next request.
    Idle,
    /// A step was taken. More work is pending once the token is done.
    Busy(Tok),
    /// No work is due before this time.
    At(Nanos),
}

impl Progress {
    /// Returns the state of two layers, of which the other one had nothing to do.
    #[must_use]
    pub fn or(self, other: Progress) -> Progress {
        match (self, other) {
            (Progress::Busy(tok), _) | (_, Progress::Busy(tok)) => Progress::Busy(tok),
            (Progress::At(a), Progress::At(b)) => Progress::At(a.min(b)),
            (Progress::At(at), Progress::Idle) | (Progress::Idle, Progress::At(at)) => Progress::At(at),
            (Progress::Idle, Progress::Idle) => Progress::Idle,
        }
    }
}

/// Number of requests that a host announces together ([`BlockLayer::prefetch`]), and for which layers
/// reserve space. A layer takes larger announcements in parts.
pub const PREFETCH_REQUESTS: usize = 16;

/// A layer that serves block requests.
///
/// Requests are in sectors of 512 bytes. Sectors that were never written or were discarded read as
/// zeros. The functional effect of a call is complete when the call returns; the sink decides how
/// long the call takes in virtual time.
pub trait BlockLayer {
    /// Returns the identity and the sizes of the layer.
    fn info(&self) -> Info;

    /// Announces the next requests (first sector, length in sectors). The call has no functional
    /// effect. A layer whose tables are larger than the processor's cache can prefetch their rows
    /// together instead of waiting for each cache miss.
    fn prefetch(&self, _next: &[(Sector, u32)]) {}

    /// Reads `into.len()` bytes (whole sectors) from `at`.
    ///
    /// # Errors
    /// Returns an error if the range is outside the layer, or if the medium cannot return the data.
    fn read(&mut self, sink: &mut Sink, at: Sector, into: ReadTarget<'_>, hints: Hints) -> Result<()>;

    /// Writes `data` (whole sectors) at `at`.
    ///
    /// # Errors
    /// Returns an error if the range is outside the layer, no space is left, or the volume became
    /// read-only. Data that was written before is not lost then.
    fn write(&mut self, sink: &mut Sink, at: Sector, data: WriteData<'_>, hints: Hints) -> Result<()>;

    /// Makes all acknowledged writes durable.
    ///
    /// # Errors
    /// Returns an error if the medium fails.
    fn flush(&mut self, sink: &mut Sink) -> Result<()>;

    /// Discards sectors. They read as zeros afterwards.
    ///
    /// # Errors
    /// Returns an error if the range is outside the layer, or if the medium fails.
    fn discard(&mut self, sink: &mut Sink, at: Sector, sectors: u64) -> Result<()>;

    /// Does background work, at most about `budget` media commands.
    ///
    /// # Errors
    /// Returns an error if the medium fails in a way that the layer cannot repair.
    fn step(&mut self, sink: &mut Sink, budget: u32) -> Result<Progress>;

    /// Turns deferral on or off: if it is on, the layer leaves accesses to slow media to the caller
    /// ([`crate::deferred`]). Returns `true` if the layer defers from now on. A layer without slow
    /// media always returns `false`.
    fn defer(&mut self, _on: bool) -> bool {
        false
    }

    /// Returns `true` if a request would have to wait for a slow medium now. It is a hint for
    /// callers that choose which thread waits. The call changes nothing and is cheap; a wrong
    /// answer costs only time.
    fn would_block(&self, _what: RequestIntent, _at: Sector, _sectors: u64) -> bool {
        false
    }

    /// Returns the accesses that must be executed before the last request is complete.
    fn deferred(&mut self) -> Option<Deferred> {
        None
    }

    /// Returns background work that is ready. The caller that takes it must execute it.
    ///
    /// # Errors
    /// Returns an error if the medium fails.
    fn job(&mut self, _sink: &mut Sink) -> Result<Option<Deferred>> {
        Ok(None)
    }

    /// Completes accesses that were executed or failed. `buffer` is the buffer of their request.
    ///
    /// # Errors
    /// Returns the error with which the request of the accesses ends, or an error of the medium.
    fn settle(
        &mut self,
        _sink: &mut Sink,
        _of: &Deferred,
        outcome: Result<()>,
        _buffer: &mut Buffer<'_>,
    ) -> Result<()> {
        outcome
    }

    /// Returns `true` if requests may have to wait for a slow medium, deferred or not.
    fn waits(&self) -> bool {
        false
    }

    /// Returns `true` after a failed sync below the layer that the layer above may forgive: see
    /// [`crate::BlockDevice::failed_sync`].
    fn failed_sync(&self) -> bool {
        false
    }

    /// Forgives a failed sync below the layer: see [`crate::BlockDevice::forgive_failed_sync`].
    fn forgive_failed_sync(&mut self) {}

    /// Calls `each` for the handle of each layer below this one that works without its lock
    /// ([`crate::BlockDevice::shared`]).
    fn each_shared(&mut self, _each: &mut dyn FnMut(&Arc<dyn BlockingMedium>)) {}

    /// Returns the byte interface of the layer; `None` if the layer serves whole sectors only.
    fn byte_access(&mut self) -> Option<&mut dyn ByteAccess> {
        None
    }

    /// Returns the interface to physical addresses; `None` if the layer has none.
    fn raw_access(&mut self) -> Option<&mut dyn RawAccess> {
        None
    }

    /// Returns the commands of a solid-state cache; `None` if the layer is none.
    fn cache_access(&mut self) -> Option<&mut dyn CacheAccess> {
        None
    }

    /// Returns the nameless-write device that the layer is; `None` if the layer is none.
    fn nameless_device(&mut self) -> Option<&mut dyn NamelessDevice> {
        None
    }

    /// Returns the commands of a zoned device; `None` if the layer is none.
    fn zone_access(&mut self) -> Option<&mut dyn ZoneAccess> {
        None
    }

    /// Adds the metrics of the layer and of its media to the view.
    fn visible(&self, view: &mut StackView);

    /// Returns the parameters of the layer, which can be read and changed while it runs.
    fn params(&mut self) -> &mut dyn Params;

    /// Tells the layer that it serves clients, and no layer above it. A client cannot repeat writes
    /// that a failed flush has lost, as a layer can.
    fn serve_clients(&mut self) {}

    /// Calls `each` for each layer below this one, the uppermost first.
    fn each_layer_below(&mut self, _each: &mut dyn FnMut(&str, &Info, &mut dyn Params)) {}
}

/// A layer that can be shut down and opened again.
pub trait Quiesce {
    /// Shuts down in order: persists the state that must survive (mapping tables).
    ///
    /// # Errors
    /// Returns an error if the medium fails.
    fn halt(&mut self, sink: &mut Sink) -> Result<()>;

    /// Reads the persisted state back into a layer whose volatile state is empty.
    ///
    /// # Errors
    /// Returns an error if the medium fails or the stored data is damaged.
    fn boot(&mut self, sink: &mut Sink) -> Result<()>;
}

/// State of a volume before a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Precondition {
    /// Every page was written once, in order.
    Fill,
    /// The first pages were written once, in order.
    FillPart {
        /// Share of the pages, in percent.
        percent: u8,
    },
    /// Every page was written at random until the state of the media is stationary.
    Steady {
        /// Seed of the random choices.
        seed: u64,
    },
}

/// A layer that can start in a preconditioned state.
pub trait Preconditioning {
    /// Brings a new volume into the state at once: no command is emitted or counted. Pages hold
    /// zeros.
    ///
    /// # Errors
    /// Returns an error if the volume is not new.
    fn precondition(&mut self, how: Precondition) -> Result<()>;
}

/// All interfaces of a complete stack, the device that a client uses.
pub trait StackDevice: BlockLayer + Quiesce + Preconditioning + Durable + Send {}
impl<L: BlockLayer + Quiesce + Preconditioning + Durable + Send> StackDevice for L {}

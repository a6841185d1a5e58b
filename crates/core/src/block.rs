//! The block interface: what sits on what.

use crate::{
    Buffer, Deferred, Durable, Hints, Intent, Nanos, Params, Result, Sector, Sink, Source, Target, Visible,
};

/// What a layer can do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Info {
    /// The layer's name in a stack file.
    pub name: &'static str,
    /// Size, in sectors.
    pub sectors: u64,
    /// The size of one mapped page, in bytes: requests aligned to it need no read-modify-write.
    pub page_bytes: u32,
    /// DRAM that the layer holds for its mapping, in bytes.
    pub dram_bytes: u64,
    /// Durable memory that the layer reserves for its mapping, in bytes.
    pub durable_map_bytes: u64,
}

/// What background work there is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Progress<T> {
    /// None: call again after the next request.
    Idle,
    /// A step was taken; more is to do once the token is done.
    Busy(T),
    /// Nothing to do before this time.
    At(Nanos),
}

/// A layer that serves blocks.
///
/// Requests are in sectors of 512 bytes. What was never written, and what was discarded, reads as
/// zeros. Every call has taken its functional effect when it returns; its time is the sink's affair.
pub trait BlockLayer<S: Sink> {
    /// What it is and can do.
    fn info(&self) -> Info;

    /// These requests (first sector, length in sectors) will come next. Nothing follows from it; a
    /// layer whose tables are larger than the processor's cache can fetch their rows together instead
    /// of waiting for each.
    fn expect(&self, _next: &[(Sector, u32)]) {}

    /// Reads `into.len()` bytes (whole sectors) from `at`.
    ///
    /// # Errors
    /// A range outside the layer, or a medium that cannot give the bytes back.
    fn read(&mut self, sink: &mut S, at: Sector, into: Target<'_>, hints: Hints) -> Result<()>;

    /// Writes `data` (whole sectors) at `at`.
    ///
    /// # Errors
    /// A range outside the layer, no space, or a volume that became read-only; then nothing that was
    /// written before is lost.
    fn write(&mut self, sink: &mut S, at: Sector, data: Source<'_>, hints: Hints) -> Result<()>;

    /// Makes all that was acknowledged durable.
    ///
    /// # Errors
    /// A medium that fails.
    fn flush(&mut self, sink: &mut S) -> Result<()>;

    /// Forgets sectors: they read as zeros afterwards.
    ///
    /// # Errors
    /// A range outside the layer, or a medium that fails.
    fn discard(&mut self, sink: &mut S, at: Sector, sectors: u64) -> Result<()>;

    /// Background work, at most about `budget` media commands.
    ///
    /// # Errors
    /// A medium that fails in a way that the layer cannot mend.
    fn step(&mut self, sink: &mut S, budget: u32) -> Result<Progress<S::Tok>>;

    /// Leaves accesses to slow media to the caller from now on, or no longer ([`crate::deferred`]). Returns whether
    /// it does: a layer without slow media never does.
    fn defer(&mut self, _on: bool) -> bool {
        false
    }

    /// Whether a request would have to wait for a slow medium now. It is a hint, for callers that choose who waits:
    /// nothing changes by asking, the answer costs little, and a wrong one costs time only.
    fn slow(&self, _what: Intent, _at: Sector, _sectors: u64) -> bool {
        false
    }

    /// What the last call left to be carried out before its request is done.
    fn deferred(&mut self) -> Option<Deferred> {
        None
    }

    /// Background work that waits to be carried out. Whoever takes it carries it out.
    ///
    /// # Errors
    /// A medium that fails.
    fn job(&mut self, _sink: &mut S) -> Result<Option<Deferred>> {
        Ok(None)
    }

    /// Accesses were carried out, or failed; `buffer` is that of their request.
    ///
    /// # Errors
    /// What the request of the accesses ends with; a medium that fails.
    fn settle(
        &mut self,
        _sink: &mut S,
        _of: &Deferred,
        outcome: Result<()>,
        _buffer: &Buffer<'_>,
    ) -> Result<()> {
        outcome
    }

    /// Adds what the layer and its media can show.
    fn visible(&self, view: &mut Visible);

    /// The layer's parameters, readable and changeable while it runs.
    fn params(&mut self) -> &mut dyn Params;
}

/// A layer that can be stopped and started.
pub trait Quiesce<S: Sink> {
    /// Writes down what must outlive a stop (mapping tables).
    ///
    /// # Errors
    /// A medium that fails.
    fn halt(&mut self, sink: &mut S) -> Result<()>;

    /// Reads it back into a layer that has forgotten everything.
    ///
    /// # Errors
    /// A medium that fails, or bytes that are damaged.
    fn boot(&mut self, sink: &mut S) -> Result<()>;
}

/// What a volume has gone through before a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Precondition {
    /// Every page was written once, in order.
    Fill,
    /// Every page was written at random for so long that the state of the media is stationary.
    Steady {
        /// Of the random choices.
        seed: u64,
    },
}

/// A layer that can start as if it had been used.
pub trait Condition {
    /// Puts a new volume into the state, at once: nothing is emitted or counted. Pages hold zeros.
    ///
    /// # Errors
    /// A volume that is not new.
    fn precondition(&mut self, how: Precondition) -> Result<()>;
}

/// All that a layer on top of a stack can do.
pub trait Top<S: Sink>: BlockLayer<S> + Quiesce<S> + Condition + Durable<S> + Send {}
impl<S: Sink, L: BlockLayer<S> + Quiesce<S> + Condition + Durable<S> + Send> Top<S> for L {}

//! A device below a composer, with the writes that its next flush covers.

use crate::deferral::BufferScope;
use crate::planted::NestBug;
use frit_core::planted::is_planted;
use frit_core::{
    BlockDevice, BlockingAccess, BlockingMedium, Cause, CheckCounts, CheckScope, CrashKind, DeferredPart,
    Finding, Hints, Info, LayerRecovery, MediumKind, Op, Params, Precondition, Progress, ReadTarget, Result,
    Sector, Sink, StackView, Tok, WriteData, WriteGuarantee,
};
use std::ops::Range;
use std::sync::Arc;

/// A device below a composer.
///
/// A disk makes the writes durable that its flush waits for. The slot keeps their tokens, so that a
/// composer need not.
pub struct Slot {
    device: Box<dyn BlockDevice>,
    /// Completion of the last flush, and of the writes since then.
    unflushed: Tok,
    /// Handle for accesses without the lock of the composer.
    shared: Option<Arc<dyn BlockingMedium>>,
    /// Writes wait for the device, so they are deferred too.
    writes_wait: bool,
    scope: BufferScope,
    /// Deferred accesses of the current request.
    deferred: Vec<BlockingAccess>,
}

impl Slot {
    /// Takes a device without writes in flight.
    #[must_use]
    pub fn new(device: Box<dyn BlockDevice>) -> Slot {
        Slot {
            device,
            unflushed: Tok::default(),
            shared: None,
            writes_wait: false,
            scope: BufferScope::default(),
            deferred: Vec::new(),
        }
    }

    /// Prepares the deferral of accesses. Returns `true` if the device can be accessed without the
    /// lock of the composer.
    pub(crate) fn share(&mut self) -> bool {
        if self.shared.is_none() {
            self.shared = self.device.shared();
            self.writes_wait = self.shared.as_ref().is_some_and(|medium| medium.writes_wait());
        }
        self.shared.is_some()
    }

    /// Returns `true` if writes are deferred.
    pub(crate) fn writes_wait(&self) -> bool {
        self.writes_wait
    }

    /// Defers the accesses from or to this buffer, until [`Slot::end_deferral`].
    pub(crate) fn begin_deferral(&mut self, buffer: &Range<usize>) {
        if self.shared.is_some() {
            self.scope.begin(buffer.clone());
        }
    }

    /// Returns the accesses that were deferred.
    pub(crate) fn end_deferral(&mut self) -> Option<DeferredPart> {
        self.scope.end();
        let accesses = std::mem::take(&mut self.deferred);
        let medium = self.shared.as_ref().filter(|_| !accesses.is_empty())?;
        Some(DeferredPart { medium: Arc::clone(medium), accesses })
    }

    /// Counts an access, which the caller of the composer makes.
    fn defer(
        &mut self,
        sink: &mut Sink,
        access: BlockingAccess,
        (op, at, len): (Op, u64, u64),
        cause: Cause,
        after: Tok,
    ) -> Result<Tok> {
        let done = self.device.emit_deferred(sink, op, at, len, cause, after)?;
        self.deferred.push(access);
        Ok(done)
    }

    #[inline]
    fn note(&mut self, sink: &mut Sink, done: Result<Tok>) -> Result<Tok> {
        let done = done?;
        self.unflushed = sink.join(self.unflushed, done);
        Ok(done)
    }
}

impl BlockDevice for Slot {
    fn bytes(&self) -> u64 {
        self.device.bytes()
    }

    fn page_bytes(&self) -> u32 {
        self.device.page_bytes()
    }

    #[inline]
    fn prefetch(&self, next: &[(Sector, u32)]) {
        self.device.prefetch(next);
    }

    fn set_hints(&mut self, hints: Hints) {
        self.device.set_hints(hints);
    }

    #[inline]
    fn read(
        &mut self,
        sink: &mut Sink,
        at: u64,
        into: ReadTarget<'_>,
        cause: Cause,
        after: Tok,
    ) -> Result<Tok> {
        match into {
            ReadTarget::Bytes(bytes) if let Some(part) = self.scope.find(bytes) => {
                let done =
                    self.device.emit_deferred(sink, Op::DiskRead, at, bytes.len() as u64, cause, after)?;
                // What is in memory need not be deferred.
                if !self.shared.as_ref().is_some_and(|medium| medium.read_now(at, bytes)) {
                    self.deferred.push(BlockingAccess::Read { at, into: part });
                }
                Ok(done)
            }
            into => self.device.read(sink, at, into, cause, after),
        }
    }

    #[inline]
    fn write(
        &mut self,
        sink: &mut Sink,
        at: u64,
        data: WriteData<'_>,
        cause: Cause,
        after: Tok,
    ) -> Result<Tok> {
        let done = match data {
            WriteData::Bytes(bytes)
                if self.writes_wait
                    && let Some(part) = self.scope.find(bytes) =>
            {
                let write = BlockingAccess::Write { at, from: part };
                self.defer(sink, write, (Op::DiskWrite, at, data.len().into()), cause, after)
            }
            _ => self.device.write(sink, at, data, cause, after),
        };
        self.note(sink, done)
    }

    fn zero(&mut self, sink: &mut Sink, at: u64, len: u64, cause: Cause, after: Tok) -> Result<Tok> {
        let done = if self.writes_wait && self.scope.is_open() {
            self.defer(sink, BlockingAccess::Zero { at, len }, (Op::DiskWrite, at, len), cause, after)
        } else {
            self.device.zero(sink, at, len, cause, after)
        };
        self.note(sink, done)
    }

    fn flush(&mut self, sink: &mut Sink, cause: Cause, after: Tok) -> Result<Tok> {
        let after =
            if is_planted(NestBug::FlushEarly) { Tok::default() } else { sink.join(self.unflushed, after) };
        let done = self.device.flush(sink, cause, after)?;
        // A later flush covers these writes only if this one is complete by then.
        self.unflushed = done;
        Ok(done)
    }

    fn write_guarantee(&self) -> WriteGuarantee {
        self.device.write_guarantee()
    }

    fn visible(&self, view: &mut StackView) {
        self.device.visible(view);
    }

    fn place(&self, at: u64) -> (u64, Option<MediumKind>) {
        self.device.place(at)
    }

    fn format(&mut self, sink: &mut Sink) -> Result<()> {
        self.device.format(sink)
    }

    fn recover(&mut self, sink: &mut Sink, crash: CrashKind) -> Result<Vec<LayerRecovery>> {
        self.device.recover(sink, crash)
    }

    fn halt(&mut self, sink: &mut Sink) -> Result<()> {
        self.device.halt(sink)
    }

    fn boot(&mut self, sink: &mut Sink) -> Result<()> {
        self.device.boot(sink)
    }

    fn check(
        &mut self,
        sink: &mut Sink,
        scope: CheckScope,
        found: &mut dyn FnMut(Finding),
    ) -> Result<CheckCounts> {
        self.device.check(sink, scope, found)
    }

    fn precondition(&mut self, how: Precondition) -> Result<()> {
        self.device.precondition(how)
    }

    fn step(&mut self, sink: &mut Sink, budget: u32) -> Result<Progress> {
        self.device.step(sink, budget)
    }

    fn refuses(&self) -> Option<String> {
        self.device.refuses()
    }

    fn refuse(&mut self, why: &str) {
        self.device.refuse(why);
    }

    fn failed_sync(&self) -> bool {
        self.device.failed_sync()
    }

    fn forgive_failed_sync(&mut self) {
        self.device.forgive_failed_sync();
    }

    fn waits(&self) -> bool {
        self.device.waits()
    }

    fn each_shared(&mut self, each: &mut dyn FnMut(&Arc<dyn BlockingMedium>)) {
        self.device.each_shared(each);
    }

    fn each_layer(&mut self, each: &mut dyn FnMut(&str, &Info, &mut dyn Params)) {
        self.device.each_layer(each);
    }
}

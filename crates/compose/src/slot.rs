//! A device below a composer, with the writes that its next flush covers.

use frit_core::{
    BlockDevice, Cause, CheckCounts, CheckScope, CrashKind, Finding, Hints, Info, LayerRecovery, MediumKind,
    Params, Precondition, Progress, ReadTarget, Result, Sink, StackView, WriteData, WriteGuarantee,
};

/// A device below a composer.
///
/// A disk makes the writes durable that its flush waits for. The slot keeps their tokens, so that a
/// composer need not.
pub struct Slot<S: Sink> {
    device: Box<dyn BlockDevice<S>>,
    /// Completion of the last flush, and of the writes since then.
    unflushed: S::Tok,
}

impl<S: Sink> Slot<S> {
    /// Takes a device without writes in flight.
    #[must_use]
    pub fn new(device: Box<dyn BlockDevice<S>>) -> Slot<S> {
        Slot { device, unflushed: S::Tok::default() }
    }

    #[inline]
    fn note(&mut self, sink: &mut S, done: Result<S::Tok>) -> Result<S::Tok> {
        let done = done?;
        self.unflushed = sink.join(self.unflushed, done);
        Ok(done)
    }
}

impl<S: Sink> BlockDevice<S> for Slot<S> {
    fn bytes(&self) -> u64 {
        self.device.bytes()
    }

    fn page_bytes(&self) -> u32 {
        self.device.page_bytes()
    }

    fn set_hints(&mut self, hints: Hints) {
        self.device.set_hints(hints);
    }

    #[inline]
    fn read(
        &mut self,
        sink: &mut S,
        at: u64,
        into: ReadTarget<'_>,
        cause: Cause,
        after: S::Tok,
    ) -> Result<S::Tok> {
        self.device.read(sink, at, into, cause, after)
    }

    #[inline]
    fn write(
        &mut self,
        sink: &mut S,
        at: u64,
        data: WriteData<'_>,
        cause: Cause,
        after: S::Tok,
    ) -> Result<S::Tok> {
        let done = self.device.write(sink, at, data, cause, after);
        self.note(sink, done)
    }

    fn zero(&mut self, sink: &mut S, at: u64, len: u64, cause: Cause, after: S::Tok) -> Result<S::Tok> {
        let done = self.device.zero(sink, at, len, cause, after);
        self.note(sink, done)
    }

    fn flush(&mut self, sink: &mut S, cause: Cause, after: S::Tok) -> Result<S::Tok> {
        let after = sink.join(self.unflushed, after);
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

    fn format(&mut self, sink: &mut S) -> Result<()> {
        self.device.format(sink)
    }

    fn recover(&mut self, sink: &mut S, crash: CrashKind) -> Result<Vec<LayerRecovery>> {
        self.device.recover(sink, crash)
    }

    fn halt(&mut self, sink: &mut S) -> Result<()> {
        self.device.halt(sink)
    }

    fn boot(&mut self, sink: &mut S) -> Result<()> {
        self.device.boot(sink)
    }

    fn check(
        &mut self,
        sink: &mut S,
        scope: CheckScope,
        found: &mut dyn FnMut(Finding),
    ) -> Result<CheckCounts> {
        self.device.check(sink, scope, found)
    }

    fn precondition(&mut self, how: Precondition) -> Result<()> {
        self.device.precondition(how)
    }

    fn step(&mut self, sink: &mut S, budget: u32) -> Result<Progress<S::Tok>> {
        self.device.step(sink, budget)
    }

    fn refuses(&self) -> Option<String> {
        self.device.refuses()
    }

    fn refuse(&mut self, why: &str) {
        self.device.refuse(why);
    }

    fn each_layer(&mut self, each: &mut dyn FnMut(&str, &Info, &mut dyn Params)) {
        self.device.each_layer(each);
    }
}

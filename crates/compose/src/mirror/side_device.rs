//! A device as a side of a mirror: the failure of its recovery or of its background work is a
//! failure of this side, and not of the mirror.

use frit_core::{
    BlockDevice, BlockingMedium, Cause, CheckCounts, CheckScope, CrashKind, Error, Finding, Hints, Info,
    LayerRecovery, MediumKind, Op, Params, Precondition, Progress, ReadTarget, Result, Sector, Sink,
    StackView, Tok, WriteData, WriteGuarantee,
};
use std::sync::Arc;

/// A device below a mirror.
pub(super) struct SideDevice {
    device: Box<dyn BlockDevice>,
    /// Reason for which the device could not be started.
    failed: Option<String>,
}

/// Returns `true` if an error is a mistake of the caller, which another side would return too.
pub(super) fn is_misuse(e: &Error) -> bool {
    matches!(e, Error::Rule { .. } | Error::OutOfRange { .. } | Error::WouldBlock | Error::Protected { .. })
}

impl SideDevice {
    pub(super) fn new(device: Box<dyn BlockDevice>) -> SideDevice {
        SideDevice { device, failed: None }
    }

    #[inline]
    fn started(&mut self) -> Result<&mut dyn BlockDevice> {
        match &self.failed {
            None => Ok(&mut *self.device),
            Some(why) => Err(Error::Medium { what: why.clone() }),
        }
    }

    fn start<V: Default>(&mut self, done: Result<V>) -> Result<V> {
        self.failed = None;
        match done {
            Err(e) if is_misuse(&e) => Err(e),
            Err(e) => {
                self.failed = Some(e.to_string());
                Ok(V::default())
            }
            done => done,
        }
    }
}

impl BlockDevice for SideDevice {
    fn bytes(&self) -> u64 {
        self.device.bytes()
    }

    fn page_bytes(&self) -> u32 {
        self.device.page_bytes()
    }

    fn prefetch(&self, next: &[(Sector, u32)]) {
        self.device.prefetch(next);
    }

    fn set_hints(&mut self, hints: Hints) {
        self.device.set_hints(hints);
    }

    fn read(
        &mut self,
        sink: &mut Sink,
        at: u64,
        into: ReadTarget<'_>,
        cause: Cause,
        after: Tok,
    ) -> Result<Tok> {
        self.started()?.read(sink, at, into, cause, after)
    }

    fn write(
        &mut self,
        sink: &mut Sink,
        at: u64,
        data: WriteData<'_>,
        cause: Cause,
        after: Tok,
    ) -> Result<Tok> {
        self.started()?.write(sink, at, data, cause, after)
    }

    fn zero(&mut self, sink: &mut Sink, at: u64, len: u64, cause: Cause, after: Tok) -> Result<Tok> {
        self.started()?.zero(sink, at, len, cause, after)
    }

    fn flush(&mut self, sink: &mut Sink, cause: Cause, after: Tok) -> Result<Tok> {
        self.started()?.flush(sink, cause, after)
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
        self.failed = None;
        self.device.format(sink)
    }

    fn recover(&mut self, sink: &mut Sink, crash: CrashKind) -> Result<Vec<LayerRecovery>> {
        let done = self.device.recover(sink, crash);
        self.start(done)
    }

    /// A side that cannot shut down is found at the next start.
    fn halt(&mut self, sink: &mut Sink) -> Result<()> {
        match self.device.halt(sink) {
            Err(e) if is_misuse(&e) => Err(e),
            _ => Ok(()),
        }
    }

    fn boot(&mut self, sink: &mut Sink) -> Result<()> {
        let done = self.device.boot(sink);
        self.start(done)
    }

    fn check(
        &mut self,
        sink: &mut Sink,
        scope: CheckScope,
        found: &mut dyn FnMut(Finding),
    ) -> Result<CheckCounts> {
        match self.failed {
            None => self.device.check(sink, scope, found),
            Some(_) => Ok(CheckCounts::default()),
        }
    }

    fn precondition(&mut self, how: Precondition) -> Result<()> {
        self.device.precondition(how)
    }

    /// A failure of background work shows in the requests after it.
    fn step(&mut self, sink: &mut Sink, budget: u32) -> Result<Progress> {
        match self.device.step(sink, budget) {
            Err(e) if is_misuse(&e) => Err(e),
            Err(_) => Ok(Progress::Idle),
            done => done,
        }
    }

    fn shared(&mut self) -> Option<Arc<dyn BlockingMedium>> {
        if self.failed.is_some() { None } else { self.device.shared() }
    }

    fn emit_deferred(
        &mut self,
        sink: &mut Sink,
        op: Op,
        at: u64,
        len: u64,
        cause: Cause,
        after: Tok,
    ) -> Result<Tok> {
        self.device.emit_deferred(sink, op, at, len, cause, after)
    }

    fn waits(&self) -> bool {
        self.device.waits()
    }

    fn each_shared(&mut self, each: &mut dyn FnMut(&Arc<dyn BlockingMedium>)) {
        self.device.each_shared(each);
    }

    fn refuses(&self) -> Option<String> {
        self.failed.clone().or_else(|| self.device.refuses())
    }

    fn refuse(&mut self, why: &str) {
        self.device.refuse(why);
    }

    fn each_layer(&mut self, each: &mut dyn FnMut(&str, &Info, &mut dyn Params)) {
        self.device.each_layer(each);
    }
}

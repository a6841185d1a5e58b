//! A layer in the role of a device below another layer.

use crate::composed::Composed;
use crate::concat::{Concat, ConcatConfig};
use crate::devices::Devices;
use crate::locked::LockedLayer;
use crate::planted::NestBug;
use frit_core::planted::is_planted;
use frit_core::{
    BlockDevice, BlockingMedium, Cause, CheckCounts, CheckScope, CrashKind, Finding, Hints, Info,
    LayerRecovery, LinkRequest, MediumKind, Op, Params, Precondition, Progress, ReadTarget, Result,
    SECTOR_BYTES, Sector, Sink, StackDevice, StackView, Tok, Traffic, TrafficKind, WriteData, WriteGuarantee,
};
use std::sync::Arc;

static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// A layer below another one. It names the layer in errors, findings and views, and counts the
/// requests of the upper layer.
pub struct NestedLayer {
    name: String,
    number: u16,
    layer: LayerAccess,
    traffic: Traffic,
    /// Hints of the host's writes.
    hints: Hints,
    has_bytes: bool,
}

/// The layer, as its upper layer reaches it.
enum LayerAccess {
    /// Below the lock of the upper layer.
    Direct(Box<dyn StackDevice>),
    /// Behind a lock of its own.
    Locked(Arc<LockedLayer>),
}

/// Writes zeros to a range, in parts.
pub(crate) fn zero_parts(at: u64, len: u64, mut write: impl FnMut(u64, &[u8]) -> Result<()>) -> Result<()> {
    let (mut pos, end) = (at, at + len);
    while pos < end {
        let n = (end - pos).min(ZEROS.len() as u64);
        write(pos, &ZEROS[..n as usize])?;
        pos += n;
    }
    Ok(())
}

impl NestedLayer {
    /// Gives a layer the interface of a device. `name` and `number` are those of the layer in its
    /// stack.
    #[must_use]
    pub fn new(name: &str, number: u16, layer: Box<dyn StackDevice>) -> NestedLayer {
        let layer = LayerAccess::Direct(layer);
        let (traffic, hints) = (Traffic::default(), Hints::NONE);
        NestedLayer { name: name.into(), number, layer, traffic, hints, has_bytes: true }
    }

    /// Gives the layer lengths only, since its media store no bytes. An upper layer has bytes also then: those of its
    /// metadata.
    #[must_use]
    pub fn without_bytes(self) -> NestedLayer {
        NestedLayer { has_bytes: false, ..self }
    }

    /// Calls the layer, behind its lock if it has one.
    fn with<V>(&mut self, call: impl FnOnce(&mut dyn StackDevice) -> V) -> V {
        match &mut self.layer {
            LayerAccess::Direct(layer) => call(&mut **layer),
            LayerAccess::Locked(locked) => call(&mut *locked.lock().layer),
        }
    }

    fn locked(&self) -> Option<&LockedLayer> {
        match &self.layer {
            LayerAccess::Direct(_) => None,
            LayerAccess::Locked(locked) => Some(locked),
        }
    }

    fn look<V>(&self, call: impl FnOnce(&dyn StackDevice) -> V) -> V {
        match &self.layer {
            LayerAccess::Direct(layer) => call(&**layer),
            LayerAccess::Locked(locked) => call(&*locked.lock().layer),
        }
    }

    /// Makes a request to the layer, which starts when `after` is done. Returns the token of its
    /// acknowledgement. A layer behind its own lock is called in another way.
    #[inline]
    fn request(
        &mut self,
        sink: &mut Sink,
        kind: TrafficKind,
        after: Tok,
        ask: impl FnOnce(&mut dyn StackDevice, &mut Sink) -> Result<()>,
    ) -> Result<Tok> {
        let start = if is_planted(NestBug::StartEarly) { Tok::default() } else { after };
        let outer = sink.begin_nested(start);
        let answer = self.with(|layer| ask(layer, sink));
        // The scope ends also if the request fails: later commands belong to the upper request.
        let done = sink.end_measured(outer, LinkRequest { layer: self.number, kind });
        let done = if is_planted(NestBug::AckEarly) { after } else { done };
        self.located(answer).map(|()| done)
    }

    /// Writes zeros in the place of a discard that the layer would forget.
    fn write_zeros(&mut self, sink: &mut Sink, at: u64, len: u64, cause: Cause, after: Tok) -> Result<Tok> {
        let mut done = after;
        zero_parts(at, len, |at, zeros| {
            let tok = self.write(sink, at, WriteData::Bytes(zeros), cause, after)?;
            done = sink.join(done, tok);
            Ok(())
        })?;
        Ok(done)
    }

    fn located<V>(&self, answer: Result<V>) -> Result<V> {
        answer.map_err(|e| e.in_layer(&self.name))
    }
}

impl BlockDevice for NestedLayer {
    fn bytes(&self) -> u64 {
        self.look(|layer| layer.info().sectors) * SECTOR_BYTES
    }

    fn page_bytes(&self) -> u32 {
        self.look(|layer| layer.info().page_bytes)
    }

    fn prefetch(&self, next: &[(Sector, u32)]) {
        if let LayerAccess::Direct(layer) = &self.layer {
            layer.prefetch(next);
        }
    }

    fn set_hints(&mut self, hints: Hints) {
        self.hints = hints;
    }

    fn read(
        &mut self,
        sink: &mut Sink,
        at: u64,
        mut into: ReadTarget<'_>,
        cause: Cause,
        after: Tok,
    ) -> Result<Tok> {
        self.traffic.add(TrafficKind::Read, cause, u64::from(into.len()));
        if !self.has_bytes {
            into.zero();
            into = ReadTarget::Len(into.len());
        }
        if let (Some(locked), ReadTarget::Bytes(bytes)) = (self.locked(), &mut into) {
            return locked.read(at, bytes).map(|()| after);
        }
        let hints = if cause == Cause::Isp { Hints::IN_STORAGE } else { Hints::NONE };
        self.request(sink, TrafficKind::Read, after, |layer, sink| {
            layer.read(sink, Sector(at / SECTOR_BYTES), into, hints)
        })
    }

    fn write(
        &mut self,
        sink: &mut Sink,
        at: u64,
        data: WriteData<'_>,
        cause: Cause,
        after: Tok,
    ) -> Result<Tok> {
        self.traffic.add(TrafficKind::Write, cause, u64::from(data.len()));
        let data = if self.has_bytes { data } else { WriteData::Len(data.len()) };
        // What the upper layer writes for itself is not data of the host.
        let hints = if cause == Cause::Host { self.hints } else { Hints::NONE };
        if let (Some(locked), WriteData::Bytes(bytes)) = (self.locked(), data) {
            return locked.write_hinted(at, bytes, hints).map(|()| after);
        }
        let done = self.request(sink, TrafficKind::Write, after, |layer, sink| {
            layer.write(sink, Sector(at / SECTOR_BYTES), data, hints)
        });
        if is_planted(NestBug::WriteErrorDropped) { Ok(done.unwrap_or(after)) } else { done }
    }

    fn zero(&mut self, sink: &mut Sink, at: u64, len: u64, cause: Cause, after: Tok) -> Result<Tok> {
        if is_planted(NestBug::ZeroNotPassed) {
            return Ok(after);
        }
        if !self.look(|layer| layer.keeps_discards()) {
            return self.write_zeros(sink, at, len, cause, after);
        }
        self.traffic.add(TrafficKind::Zero, cause, len);
        if let Some(locked) = self.locked() {
            return locked.zero(at, len).map(|()| after);
        }
        self.request(sink, TrafficKind::Zero, after, |layer, sink| {
            layer.discard(sink, Sector(at / SECTOR_BYTES), len / SECTOR_BYTES)
        })
    }

    fn flush(&mut self, sink: &mut Sink, cause: Cause, after: Tok) -> Result<Tok> {
        if is_planted(NestBug::FlushNotPassed) {
            return Ok(after);
        }
        let after = if is_planted(NestBug::FlushEarly) { Tok::default() } else { after };
        self.traffic.add(TrafficKind::Flush, cause, 0);
        if let Some(locked) = self.locked() {
            return locked.sync().map(|()| after);
        }
        self.request(sink, TrafficKind::Flush, after, |layer, sink| layer.flush(sink))
    }

    fn write_guarantee(&self) -> WriteGuarantee {
        self.look(|layer| layer.write_guarantee())
    }

    fn failed_sync(&self) -> bool {
        self.look(|layer| layer.failed_sync())
    }

    fn forgive_failed_sync(&mut self) {
        self.with(|layer| layer.forgive_failed_sync());
    }

    fn shared(&mut self) -> Option<Arc<dyn BlockingMedium>> {
        if let LayerAccess::Direct(layer) = &mut self.layer {
            let defers = layer.defer(true);
            if !defers && !layer.waits() {
                return None;
            }
            let sink = Sink::untimed();
            // An empty layer takes the place of this one for a moment.
            let none = Composed::new(Concat::new(ConcatConfig {}, Devices::new(Vec::new())));
            let layer = std::mem::replace(layer, Box::new(none));
            self.layer = LayerAccess::Locked(Arc::new(LockedLayer::new(&self.name, layer, defers, sink)));
        }
        match &self.layer {
            LayerAccess::Direct(_) => None,
            LayerAccess::Locked(locked) => Some(Arc::clone(locked) as Arc<dyn BlockingMedium>),
        }
    }

    fn waits(&self) -> bool {
        self.look(|layer| layer.waits())
    }

    fn each_shared(&mut self, each: &mut dyn FnMut(&Arc<dyn BlockingMedium>)) {
        if let LayerAccess::Locked(locked) = &self.layer {
            each(&(Arc::clone(locked) as Arc<dyn BlockingMedium>));
        }
        self.with(|layer| layer.each_shared(each));
    }

    fn emit_deferred(
        &mut self,
        _: &mut Sink,
        op: Op,
        _: u64,
        len: u64,
        cause: Cause,
        after: Tok,
    ) -> Result<Tok> {
        let kind = match op {
            Op::DiskRead => TrafficKind::Read,
            Op::DiskFlush => TrafficKind::Flush,
            _ => TrafficKind::Write,
        };
        self.traffic.add(kind, cause, len);
        Ok(after)
    }

    fn visible(&self, view: &mut StackView) {
        let (media, own) = (view.media.len(), view.layers.len());
        self.look(|layer| layer.visible(view));
        view.name_layer(&self.name, media, own);
        if let Some(layer) = view.layers.get_mut(own) {
            layer.number = self.number;
            layer.traffic = Some(Box::new(self.traffic.clone()));
        }
    }

    fn place(&self, at: u64) -> (u64, Option<MediumKind>) {
        let from = Sector(at / SECTOR_BYTES);
        let page = u64::from(BlockDevice::page_bytes(self));
        let end = ((at / page + 1) * page).min(self.bytes());
        let mut first = None;
        let sectors = (end - from.bytes()) / SECTOR_BYTES;
        let found = self.look(|layer| {
            layer.extents(from, sectors, &mut |e| {
                first.get_or_insert(e);
            })
        });
        match first.filter(|_| found.is_ok()) {
            Some(extent) => (from.bytes() + extent.sectors * SECTOR_BYTES, extent.place),
            None => (end, None),
        }
    }

    fn format(&mut self, sink: &mut Sink) -> Result<()> {
        let answer = self.with(|layer| layer.format(sink));
        self.located(answer)
    }

    fn recover(&mut self, sink: &mut Sink, crash: CrashKind) -> Result<Vec<LayerRecovery>> {
        if is_planted(NestBug::BelowNotRecovered) {
            return Ok(Vec::new());
        }
        let answer = self.with(|layer| layer.recover(sink, crash));
        let mut recovery = self.located(answer)?;
        let below = std::mem::take(&mut recovery.below);
        let own = LayerRecovery { layer: self.name.clone(), recovery };
        Ok(std::iter::once(own).chain(below).collect())
    }

    fn halt(&mut self, sink: &mut Sink) -> Result<()> {
        if let LayerAccess::Locked(locked) = &self.layer {
            // The requests are complete; what the layer does in the background is completed here.
            while locked.run_job()? {}
            locked.lock().layer.defer(false);
        }
        let answer = self.with(|layer| layer.halt(sink));
        self.located(answer)
    }

    fn boot(&mut self, sink: &mut Sink) -> Result<()> {
        let answer = self.with(|layer| layer.boot(sink));
        self.located(answer)
    }

    fn check(
        &mut self,
        sink: &mut Sink,
        scope: CheckScope,
        found: &mut dyn FnMut(Finding),
    ) -> Result<CheckCounts> {
        let name = self.name.clone();
        let answer = self.with(|layer| {
            layer.check(sink, scope, &mut |mut finding| {
                if is_planted(NestBug::FindingsDropped) {
                    return;
                }
                if finding.layer.is_empty() {
                    finding.layer.clone_from(&name);
                }
                found(finding);
            })
        });
        self.located(answer)
    }

    fn precondition(&mut self, how: Precondition) -> Result<()> {
        let answer = self.with(|layer| layer.precondition(how));
        self.located(answer)
    }

    fn step(&mut self, sink: &mut Sink, budget: u32) -> Result<Progress> {
        match &mut self.layer {
            LayerAccess::Direct(layer) => {
                let answer = layer.step(sink, budget);
                self.located(answer)
            }
            // Its background work is done without the lock of the upper layer.
            LayerAccess::Locked(_) => Ok(Progress::Idle),
        }
    }

    fn refuses(&self) -> Option<String> {
        self.look(|layer| layer.refuses()).map(|why| format!("layer '{}': {why}", self.name))
    }

    fn refuse(&mut self, why: &str) {
        self.with(|layer| layer.refuse(why.into()));
    }

    fn each_layer(&mut self, each: &mut dyn FnMut(&str, &Info, &mut dyn Params)) {
        let name = self.name.clone();
        self.with(|layer| {
            let info = layer.info();
            each(&name, &info, layer.params());
            layer.each_layer_below(each);
        });
    }
}

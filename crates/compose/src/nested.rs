//! A layer in the role of a device below another layer.

use crate::planted::NestBug;
use frit_core::planted::is_planted;
use frit_core::{
    BlockDevice, Cause, CheckCounts, CheckScope, CrashKind, Finding, Hints, Info, LayerRecovery, LinkRequest,
    MediumKind, Params, Precondition, Progress, ReadTarget, Result, SECTOR_BYTES, Sector, Sink, StackDevice,
    StackView, Traffic, TrafficKind, WriteData, WriteGuarantee,
};

static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// A layer below another one. It names the layer in errors, findings and views, and counts the
/// requests of the upper layer.
pub struct NestedLayer<S: Sink> {
    name: String,
    number: u16,
    layer: Box<dyn StackDevice<S>>,
    traffic: Traffic,
    /// Hints of the host's writes.
    hints: Hints,
}

impl<S: Sink> NestedLayer<S> {
    /// Gives a layer the interface of a device. `name` and `number` are those of the layer in its
    /// stack.
    #[must_use]
    pub fn new(name: &str, number: u16, layer: Box<dyn StackDevice<S>>) -> NestedLayer<S> {
        NestedLayer { name: name.into(), number, layer, traffic: Traffic::default(), hints: Hints::NONE }
    }

    /// Makes a request to the layer, which starts when `after` is done. Returns the token of its
    /// acknowledgement.
    #[inline]
    fn request(
        &mut self,
        sink: &mut S,
        kind: TrafficKind,
        after: S::Tok,
        ask: impl FnOnce(&mut dyn StackDevice<S>, &mut S) -> Result<()>,
    ) -> Result<S::Tok> {
        let start = if is_planted(NestBug::StartEarly) { S::Tok::default() } else { after };
        let outer = sink.begin_nested(start);
        let answer = ask(&mut *self.layer, sink);
        // The scope ends also if the request fails: later commands belong to the upper request.
        let done = sink.end_measured(outer, LinkRequest { layer: self.number, kind });
        let done = if is_planted(NestBug::AckEarly) { after } else { done };
        self.located(answer).map(|()| done)
    }

    /// Writes zeros in the place of a discard that the layer would forget.
    fn write_zeros(
        &mut self,
        sink: &mut S,
        at: u64,
        len: u64,
        cause: Cause,
        after: S::Tok,
    ) -> Result<S::Tok> {
        let (mut done, mut pos) = (after, at);
        while pos < at + len {
            let n = (at + len - pos).min(ZEROS.len() as u64);
            let zeros = WriteData::Bytes(&ZEROS[..n as usize]);
            let tok = self.write(sink, pos, zeros, cause, after)?;
            done = sink.join(done, tok);
            pos += n;
        }
        Ok(done)
    }

    fn located<V>(&self, answer: Result<V>) -> Result<V> {
        answer.map_err(|e| e.in_layer(&self.name))
    }
}

impl<S: Sink> BlockDevice<S> for NestedLayer<S> {
    fn bytes(&self) -> u64 {
        self.layer.info().sectors * SECTOR_BYTES
    }

    fn page_bytes(&self) -> u32 {
        self.layer.info().page_bytes
    }

    fn prefetch(&self, next: &[(Sector, u32)]) {
        self.layer.prefetch(next);
    }

    fn set_hints(&mut self, hints: Hints) {
        self.hints = hints;
    }

    fn read(
        &mut self,
        sink: &mut S,
        at: u64,
        into: ReadTarget<'_>,
        cause: Cause,
        after: S::Tok,
    ) -> Result<S::Tok> {
        self.traffic.add(TrafficKind::Read, cause, u64::from(into.len()));
        self.request(sink, TrafficKind::Read, after, |layer, sink| {
            layer.read(sink, Sector(at / SECTOR_BYTES), into, Hints::NONE)
        })
    }

    fn write(
        &mut self,
        sink: &mut S,
        at: u64,
        data: WriteData<'_>,
        cause: Cause,
        after: S::Tok,
    ) -> Result<S::Tok> {
        self.traffic.add(TrafficKind::Write, cause, u64::from(data.len()));
        // What the upper layer writes for itself is not data of the host.
        let hints = if cause == Cause::Host { self.hints } else { Hints::NONE };
        let done = self.request(sink, TrafficKind::Write, after, |layer, sink| {
            layer.write(sink, Sector(at / SECTOR_BYTES), data, hints)
        });
        if is_planted(NestBug::WriteErrorDropped) { Ok(done.unwrap_or(after)) } else { done }
    }

    fn zero(&mut self, sink: &mut S, at: u64, len: u64, cause: Cause, after: S::Tok) -> Result<S::Tok> {
        if is_planted(NestBug::ZeroNotPassed) {
            return Ok(after);
        }
        if !self.layer.keeps_discards() {
            return self.write_zeros(sink, at, len, cause, after);
        }
        self.traffic.add(TrafficKind::Zero, cause, len);
        self.request(sink, TrafficKind::Zero, after, |layer, sink| {
            layer.discard(sink, Sector(at / SECTOR_BYTES), len / SECTOR_BYTES)
        })
    }

    fn flush(&mut self, sink: &mut S, cause: Cause, after: S::Tok) -> Result<S::Tok> {
        if is_planted(NestBug::FlushNotPassed) {
            return Ok(after);
        }
        let after = if is_planted(NestBug::FlushEarly) { S::Tok::default() } else { after };
        self.traffic.add(TrafficKind::Flush, cause, 0);
        self.request(sink, TrafficKind::Flush, after, |layer, sink| layer.flush(sink))
    }

    fn write_guarantee(&self) -> WriteGuarantee {
        self.layer.write_guarantee()
    }

    fn visible(&self, view: &mut StackView) {
        let (media, own) = (view.media.len(), view.layers.len());
        self.layer.visible(view);
        view.name_layer(&self.name, media, own);
        if let Some(layer) = view.layers.get_mut(own) {
            layer.number = self.number;
            layer.traffic = Some(Box::new(self.traffic.clone()));
        }
    }

    fn place(&self, at: u64) -> (u64, Option<MediumKind>) {
        let from = Sector(at / SECTOR_BYTES);
        let page = u64::from(self.layer.info().page_bytes);
        let end = ((at / page + 1) * page).min(self.bytes());
        let mut first = None;
        let sectors = (end - from.bytes()) / SECTOR_BYTES;
        let found = self.layer.extents(from, sectors, &mut |e| {
            first.get_or_insert(e);
        });
        match first.filter(|_| found.is_ok()) {
            Some(extent) => (from.bytes() + extent.sectors * SECTOR_BYTES, extent.place),
            None => (end, None),
        }
    }

    fn format(&mut self, sink: &mut S) -> Result<()> {
        let answer = self.layer.format(sink);
        self.located(answer)
    }

    fn recover(&mut self, sink: &mut S, crash: CrashKind) -> Result<Vec<LayerRecovery>> {
        if is_planted(NestBug::BelowNotRecovered) {
            return Ok(Vec::new());
        }
        let answer = self.layer.recover(sink, crash);
        let mut recovery = self.located(answer)?;
        let below = std::mem::take(&mut recovery.below);
        let own = LayerRecovery { layer: self.name.clone(), recovery };
        Ok(std::iter::once(own).chain(below).collect())
    }

    fn halt(&mut self, sink: &mut S) -> Result<()> {
        let answer = self.layer.halt(sink);
        self.located(answer)
    }

    fn boot(&mut self, sink: &mut S) -> Result<()> {
        let answer = self.layer.boot(sink);
        self.located(answer)
    }

    fn check(
        &mut self,
        sink: &mut S,
        scope: CheckScope,
        found: &mut dyn FnMut(Finding),
    ) -> Result<CheckCounts> {
        let name = &self.name;
        let answer = self.layer.check(sink, scope, &mut |mut finding| {
            if is_planted(NestBug::FindingsDropped) {
                return;
            }
            if finding.layer.is_empty() {
                finding.layer.clone_from(name);
            }
            found(finding);
        });
        self.located(answer)
    }

    fn precondition(&mut self, how: Precondition) -> Result<()> {
        let answer = self.layer.precondition(how);
        self.located(answer)
    }

    fn step(&mut self, sink: &mut S, budget: u32) -> Result<Progress<S::Tok>> {
        let answer = self.layer.step(sink, budget);
        self.located(answer)
    }

    fn refuses(&self) -> Option<String> {
        self.layer.refuses().map(|why| format!("layer '{}': {why}", self.name))
    }

    fn refuse(&mut self, why: &str) {
        self.layer.refuse(why.into());
    }

    fn each_layer(&mut self, each: &mut dyn FnMut(&str, &Info, &mut dyn Params)) {
        let info = self.layer.info();
        each(&self.name, &info, self.layer.params());
        self.layer.each_layer_below(each);
    }
}

//! The devices below a composer, and what all of them do together.

use crate::planted::NestBug;
use crate::slot::Slot;
use frit_core::planted::is_planted;
use frit_core::{
    BlockDevice, BlockingMedium, Cause, CheckCounts, CheckScope, CrashKind, DeferredPart, DurabilityPoint,
    Finding, Hints, Info, LayerRecovery, Params, Precondition, Progress, Result, Sink, StackView, Tok,
    WriteGuarantee,
};
use std::ops::Range;
use std::sync::Arc;

/// The devices below a composer, in the order of the stack file.
pub struct Devices {
    all: Vec<Slot>,
    /// Device whose background work has the first turn in the next step.
    turn: usize,
}

impl Devices {
    /// Takes the devices.
    #[must_use]
    pub fn new(all: Vec<Box<dyn BlockDevice>>) -> Devices {
        Devices { all: all.into_iter().map(Slot::new).collect(), turn: 0 }
    }

    /// Returns the number of devices.
    #[must_use]
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Returns `true` if there are no devices.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Returns the devices.
    pub fn iter(&self) -> impl Iterator<Item = &Slot> {
        self.all.iter()
    }

    /// Returns the devices.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Slot> {
        self.all.iter_mut()
    }

    /// Returns a device, by its place in the stack file.
    #[must_use]
    pub fn get(&self, i: usize) -> &Slot {
        &self.all[i]
    }

    /// Returns a device, by its place in the stack file.
    #[inline]
    pub fn get_mut(&mut self, i: usize) -> &mut Slot {
        &mut self.all[i]
    }

    /// Returns the device of a composer that has one only.
    ///
    /// # Panics
    /// If there are several devices: their composer computes capacity and places itself.
    #[must_use]
    pub fn only(&self) -> &Slot {
        assert_eq!(self.all.len(), 1, "a composer of several devices uses each by its number");
        &self.all[0]
    }

    /// Sets the hints of the host's writes that follow.
    pub fn set_hints(&mut self, hints: Hints) {
        self.all.iter_mut().for_each(|d| d.set_hints(hints));
    }

    /// Flushes all devices.
    ///
    /// # Errors
    /// The first failure of a device. The others are flushed too.
    pub fn flush(&mut self, sink: &mut Sink, cause: Cause, after: Tok) -> Result<Tok> {
        let mut done = after;
        let mut failed = Ok(());
        let some = if is_planted(NestBug::FlushFirstDevice) { 1 } else { self.all.len() };
        for device in &mut self.all[..some] {
            match device.flush(sink, cause, after) {
                Ok(tok) => done = sink.join(done, tok),
                Err(e) => failed = failed.and(Err(e)),
            }
        }
        failed.map(|()| done)
    }

    /// Returns what holds for a write to any of the devices.
    #[must_use]
    pub fn weakest_guarantee(&self) -> WriteGuarantee {
        if is_planted(NestBug::StrongestGuarantee) {
            return WriteGuarantee::default();
        }
        self.all.iter().map(BlockDevice::write_guarantee).fold(WriteGuarantee::default(), |a, b| {
            WriteGuarantee {
                durable_at: if a.durable_at == DurabilityPoint::OnFlush {
                    a.durable_at
                } else {
                    b.durable_at
                },
                atomic_bytes: a.atomic_bytes.min(b.atomic_bytes),
                // A flush of several devices is not atomic.
                atomic_flush: false,
            }
        })
    }

    /// Adds the media and layers of all devices to the view.
    pub fn visible(&self, view: &mut StackView) {
        self.all.iter().for_each(|d| d.visible(view));
    }

    /// Formats all devices.
    ///
    /// # Errors
    /// The first failure of a device.
    pub fn format(&mut self, sink: &mut Sink) -> Result<()> {
        let some = if is_planted(NestBug::FormatFirstDevice) { 1 } else { self.all.len() };
        self.all[..some].iter_mut().try_for_each(|d| d.format(sink))
    }

    /// Recovers all devices.
    ///
    /// # Errors
    /// The first failure of a device.
    pub fn recover(&mut self, sink: &mut Sink, crash: CrashKind) -> Result<Vec<LayerRecovery>> {
        let mut below = Vec::new();
        let some = if is_planted(NestBug::RecoverFirstDevice) { 1 } else { self.all.len() };
        for device in &mut self.all[..some] {
            below.extend(device.recover(sink, crash)?);
        }
        Ok(below)
    }

    /// Shuts all devices down.
    ///
    /// # Errors
    /// The first failure of a device.
    pub fn halt(&mut self, sink: &mut Sink) -> Result<()> {
        self.all.iter_mut().try_for_each(|d| d.halt(sink))
    }

    /// Reads the persisted state of all devices back.
    ///
    /// # Errors
    /// The first failure of a device.
    pub fn boot(&mut self, sink: &mut Sink) -> Result<()> {
        self.all.iter_mut().try_for_each(|d| d.boot(sink))
    }

    /// Checks all devices.
    ///
    /// # Errors
    /// The first failure of a device.
    pub fn check(
        &mut self,
        sink: &mut Sink,
        scope: CheckScope,
        found: &mut dyn FnMut(Finding),
    ) -> Result<CheckCounts> {
        let mut sum = CheckCounts::default();
        for device in &mut self.all {
            sum = sum + device.check(sink, scope, found)?;
        }
        Ok(sum)
    }

    /// Brings all devices into a state as after long use.
    ///
    /// # Errors
    /// The first failure of a device.
    pub fn precondition(&mut self, how: Precondition) -> Result<()> {
        self.all.iter_mut().try_for_each(|d| d.precondition(how))
    }

    /// Does background work of one device. The devices have their turns one after the other; a
    /// device without work passes its turn on.
    ///
    /// # Errors
    /// A failure of a device.
    pub fn step(&mut self, sink: &mut Sink, budget: u32) -> Result<Progress> {
        let mut state = Progress::Idle;
        for _ in 0..self.all.len() {
            let i = self.turn % self.all.len();
            self.turn = i + 1;
            state = state.or(self.all[i].step(sink, budget)?);
            if matches!(state, Progress::Busy(_)) {
                break;
            }
        }
        Ok(state)
    }

    /// Returns the reason for which a device refuses writes. Writes to the other devices can succeed.
    #[must_use]
    pub fn refuses(&self) -> Option<String> {
        self.all.iter().find_map(BlockDevice::refuses)
    }

    /// Makes all devices refuse writes.
    pub fn refuse(&mut self, why: &str) {
        self.all.iter_mut().for_each(|d| d.refuse(why));
    }

    /// Prepares the deferral of accesses. Returns `true` if a device can be accessed without the lock
    /// of the composer.
    pub(crate) fn share(&mut self) -> bool {
        self.all.iter_mut().fold(false, |any, d| d.share() | any)
    }

    /// Returns `true` if writes of a device are deferred.
    pub(crate) fn writes_wait(&self) -> bool {
        self.all.iter().any(Slot::writes_wait)
    }

    /// Defers the accesses from or to the buffer of a request.
    pub(crate) fn begin_deferral(&mut self, buffer: &Range<usize>) {
        self.all.iter_mut().for_each(|d| d.begin_deferral(buffer));
    }

    /// Returns the accesses that were deferred, and ends the deferral.
    pub(crate) fn end_deferral(&mut self) -> Vec<DeferredPart> {
        self.all.iter_mut().filter_map(Slot::end_deferral).collect()
    }

    /// Returns `true` if an access may have to wait for a slow medium.
    #[must_use]
    pub fn wait(&self) -> bool {
        self.all.iter().any(BlockDevice::waits)
    }

    /// Calls `each` for the handle of each layer that was shared.
    pub fn each_shared(&mut self, each: &mut dyn FnMut(&Arc<dyn BlockingMedium>)) {
        self.all.iter_mut().for_each(|d| d.each_shared(each));
    }

    /// Calls `each` for each layer of the devices.
    pub fn each_layer(&mut self, each: &mut dyn FnMut(&str, &Info, &mut dyn Params)) {
        self.all.iter_mut().for_each(|d| d.each_layer(each));
    }
}

//! Tests of verification itself: a layer that loses, swaps, keeps old or damages one write is
//! detected.

use super::{mixed_trace, small};
use crate::report::StackId;
use crate::runner::Runner;
use crate::verify::{Verification, VerifyPhase};
use crate::{RunOptions, sectors};
use frit_core::{
    BlockLayer, CheckCounts, CheckScope, CrashKind, Durable, Extent, Finding, Hints, Info, Params,
    Precondition, Preconditioning, Progress, Quiesce, ReadTarget, Recovery, Result, Sector, Sink,
    StackDevice, StackView, WriteData,
};
use frit_engine::InOrder;
use frit_stack::{BuiltStack, Bytes};
use frit_trace::{Options, Workload};

/// Fault that is injected into one operation.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Fault {
    None,
    /// The write is acknowledged and dropped.
    Drop,
    /// The write goes to the next page.
    Misplace,
    /// One byte of the write is changed.
    Flip,
    /// The first sector of the write is only half written.
    Tear,
    /// A discard is acknowledged and dropped.
    KeepDiscarded,
    /// A read leaves its buffer unchanged.
    Unread,
    /// After a boot, one page has an earlier version.
    StaleBoot,
}

/// A layer with one injected fault.
struct Faulty {
    inner: Box<dyn StackDevice>,
    fault: Fault,
    /// The fault was injected.
    done: bool,
    writes: u64,
    /// A write of one page, which is restored after a boot.
    old: Option<(Sector, Vec<u8>)>,
}

impl Faulty {
    /// Returns `true` once, after some writes, if the fault is the given one.
    fn now(&mut self, fault: Fault) -> bool {
        let now = self.fault == fault && !self.done && self.writes > 700;
        self.done |= now;
        now
    }
}

impl BlockLayer for Faulty {
    fn info(&self) -> Info {
        self.inner.info()
    }
    fn read(&mut self, sink: &mut Sink, at: Sector, into: ReadTarget<'_>, hints: Hints) -> Result<()> {
        if self.now(Fault::Unread) {
            return Ok(());
        }
        self.inner.read(sink, at, into, hints)
    }
    fn write(&mut self, sink: &mut Sink, at: Sector, data: WriteData<'_>, hints: Hints) -> Result<()> {
        self.writes += 1;
        let bytes = data.bytes().expect("verification writes bytes");
        if self.old.is_none() {
            self.old = Some((at, bytes.to_vec()));
        }
        if self.now(Fault::Drop) {
            return Ok(());
        }
        if self.now(Fault::Misplace) {
            return self.inner.write(sink, Sector(at.0 + 4), data, hints);
        }
        let mut changed = bytes.to_vec();
        if self.now(Fault::Flip) {
            let last = changed.len() - 1;
            changed[last] ^= 1;
            return self.inner.write(sink, at, WriteData::Bytes(&changed), hints);
        }
        if self.now(Fault::Tear) {
            changed[256..512].fill(0);
            return self.inner.write(sink, at, WriteData::Bytes(&changed), hints);
        }
        self.inner.write(sink, at, data, hints)
    }
    fn flush(&mut self, sink: &mut Sink) -> Result<()> {
        self.inner.flush(sink)
    }
    fn discard(&mut self, sink: &mut Sink, at: Sector, sectors: u64) -> Result<()> {
        // A large discard, so that part of its range had been written.
        if sectors > 60 && self.now(Fault::KeepDiscarded) {
            return Ok(());
        }
        self.inner.discard(sink, at, sectors)
    }
    fn step(&mut self, sink: &mut Sink, budget: u32) -> Result<Progress> {
        self.inner.step(sink, budget)
    }
    fn visible(&self, view: &mut StackView) {
        self.inner.visible(view);
    }
    fn params(&mut self) -> &mut dyn Params {
        self.inner.params()
    }
}

impl Durable for Faulty {
    fn format(&mut self, sink: &mut Sink) -> Result<()> {
        self.inner.format(sink)
    }
    fn recover(&mut self, sink: &mut Sink, stop: CrashKind) -> Result<Recovery> {
        self.inner.recover(sink, stop)
    }
    fn check(
        &mut self,
        sink: &mut Sink,
        scope: CheckScope,
        found: &mut dyn FnMut(Finding),
    ) -> Result<CheckCounts> {
        self.inner.check(sink, scope, found)
    }
    fn extents(&self, at: Sector, sectors: u64, each: &mut dyn FnMut(Extent)) -> Result<()> {
        self.inner.extents(at, sectors, each)
    }
    fn refuses(&self) -> Option<String> {
        self.inner.refuses()
    }
    fn refuse(&mut self, why: String) {
        self.inner.refuse(why);
    }
}

impl Quiesce for Faulty {
    fn halt(&mut self, sink: &mut Sink) -> Result<()> {
        self.inner.halt(sink)
    }
    fn boot(&mut self, sink: &mut Sink) -> Result<()> {
        self.inner.boot(sink)?;
        match self.old.take() {
            Some((at, old)) if self.now(Fault::StaleBoot) => {
                self.inner.write(sink, at, WriteData::Bytes(&old), Hints::NONE)
            }
            _ => Ok(()),
        }
    }
}

impl Preconditioning for Faulty {
    fn precondition(&mut self, how: Precondition) -> Result<()> {
        self.inner.precondition(how)
    }
}

fn verified(fault: Fault) -> Verification {
    let stack = small(&["FUSION_METHOD=same-level"]);
    let dir = tempfile::tempdir().unwrap();
    let trace = mixed_trace(&dir, sectors(&stack).unwrap() - 4, 3000);
    let mut workload = Workload::open(trace.to_str().unwrap(), &Options::default()).unwrap();
    let built = stack.build(&Bytes::Memory).unwrap();
    let engine = Sink::new(InOrder::new(&built.hardware));
    let layer = Faulty { inner: built.layer, fault, done: false, writes: 0, old: None };
    let id = StackId { name: "faulty".into(), sha256: String::new(), toml: String::new(), volume_bytes: 0 };
    let options = RunOptions { verify: true, ..RunOptions::default() };
    let runner =
        Runner::new(engine, ("in-order", None), BuiltStack { layer: Box::new(layer), ..built }, id, &options)
            .unwrap();
    let report = runner.measure(&mut workload, &mut |_| {}, None).unwrap();
    assert_eq!(report.passed(), report.verification.as_ref().unwrap().mismatches == 0);
    report.verification.unwrap()
}

#[test]
fn a_sound_layer_passes() {
    assert_eq!(verified(Fault::None).mismatches, 0);
}

#[test]
fn every_planted_fault_is_found_and_named() {
    for (fault, word) in [
        (Fault::Drop, "stale"),
        (Fault::Misplace, "misplaced"),
        (Fault::Flip, "byte 511"),
        (Fault::Tear, "byte 256"),
        (Fault::KeepDiscarded, "version"),
        (Fault::Unread, "did not write"),
        (Fault::StaleBoot, "stale"),
    ] {
        let v = verified(fault);
        assert!(v.mismatches > 0, "{fault:?} was not found");
        assert!(v.first.len() <= 10 && v.first.len() as u64 == v.mismatches.min(10));
        assert!(v.first.iter().any(|m| m.found.contains(word)), "{fault:?}: {:#?}", v.first);
        if fault == Fault::StaleBoot {
            assert!(v.first.iter().all(|m| m.stage == VerifyPhase::AfterBoot), "{:#?}", v.first);
        }
    }
}

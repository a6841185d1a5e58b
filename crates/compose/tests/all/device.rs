//! A device with a volatile cache, fixed latencies and faults, for tests of composers.

use frit_core::{
    BlockDevice, Cause, Cmd, DurabilityPoint, Error, MediumKind, Nanos, Op, ReadTarget, Result, Sector, Sink,
    StackView, Tok, UnitId, WriteData, WriteGuarantee,
};
use frit_media::{Device, DramTiming, Hardware, TimingModel};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};

pub(crate) const SECTOR: usize = 512;
type SectorData = [u8; SECTOR];

/// Power of all devices of a test: after `left` commands, nothing is written any more.
#[derive(Default, Debug)]
pub(crate) struct Power {
    pub(crate) left: Option<u32>,
}

/// State of a device, which outlives the layers over it.
#[derive(Default, Debug)]
pub(crate) struct State {
    /// Sectors on the medium.
    durable: BTreeMap<u64, SectorData>,
    /// Writes in the cache, oldest first.
    cached: Vec<(u64, SectorData)>,
    /// Every access fails.
    pub(crate) dead: bool,
    /// The next write fails.
    pub(crate) fail_write: bool,
    /// The next flush fails, and the cache is lost.
    pub(crate) fail_flush: bool,
    /// Sectors that cannot be read until they are written.
    pub(crate) unreadable: BTreeSet<u64>,
    /// Announced requests.
    pub(crate) announced: Vec<(Sector, u32)>,
    pub(crate) reads: u64,
    pub(crate) writes: u64,
}

/// A device that several layers can use one after the other.
#[derive(Clone, Debug)]
pub(crate) struct TestDevice {
    bytes: u64,
    unit: UnitId,
    state: Arc<Mutex<State>>,
    power: Arc<Mutex<Power>>,
}

impl TestDevice {
    /// Creates a device with one unit of its own, for which an access takes `latency`.
    pub(crate) fn new(
        bytes: u64,
        latency: Nanos,
        hw: &mut Hardware,
        power: &Arc<Mutex<Power>>,
    ) -> TestDevice {
        let model = TimingModel::Dram(DramTiming { latency, ps_per_byte: 0 });
        let (name, kind) = ("device".into(), MediumKind::Dram);
        let unit = hw.add(Device { name, kind, model, unit_channel: vec![0], nand: None }).unwrap();
        TestDevice { bytes, unit, state: Arc::default(), power: power.clone() }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Loses the cache, except what `keep` chooses: given the number of cached writes of a sector,
    /// it returns how many of them reached the medium.
    pub(crate) fn crash(&self, mut keep: impl FnMut(usize) -> usize) {
        let mut s = self.state();
        let mut by_sector: BTreeMap<u64, Vec<SectorData>> = BTreeMap::new();
        for (sector, data) in std::mem::take(&mut s.cached) {
            by_sector.entry(sector).or_default().push(data);
        }
        for (sector, writes) in by_sector {
            let kept = keep(writes.len());
            if kept > 0 {
                s.durable.insert(sector, writes[kept - 1]);
            }
        }
    }

    /// Overwrites a sector without a command.
    pub(crate) fn poke(&self, at: u64, data: SectorData) {
        let mut s = self.state();
        s.cached.retain(|(sector, _)| *sector != at / SECTOR as u64);
        s.durable.insert(at / SECTOR as u64, data);
    }

    /// Returns a sector as a read gives it.
    pub(crate) fn peek(&self, at: u64) -> SectorData {
        self.state().sector(at / SECTOR as u64)
    }

    /// Counts a command that changes the device. Returns `false` if the power is off.
    fn powered(&self) -> bool {
        let mut power = self.power.lock().unwrap();
        match &mut power.left {
            None => true,
            Some(0) => false,
            Some(left) => {
                *left -= 1;
                true
            }
        }
    }

    fn emit(&self, sink: &mut Sink, op: Op, at: u64, len: u32, cause: Cause, after: Tok) -> Tok {
        sink.emit(Cmd { addr: at, len, hazard: (at >> 16) as u32, unit: self.unit, op, cause }, after)
    }

    fn failure(what: &str) -> Error {
        Error::Io { what: what.into(), source: std::io::ErrorKind::Other.into() }
    }

    fn alive(&self) -> Result<()> {
        if self.state().dead { Err(TestDevice::failure("the device is gone")) } else { Ok(()) }
    }

    fn put(&self, at: u64, sectors: impl Iterator<Item = SectorData>) -> Result<()> {
        self.alive()?;
        if std::mem::take(&mut self.state().fail_write) {
            return Err(TestDevice::failure("a write failed"));
        }
        if !self.powered() {
            return Ok(());
        }
        let mut s = self.state();
        s.writes += 1;
        for (sector, data) in (at / SECTOR as u64..).zip(sectors) {
            s.unreadable.remove(&sector);
            s.cached.push((sector, data));
        }
        Ok(())
    }
}

impl State {
    fn sector(&self, sector: u64) -> SectorData {
        let cached = self.cached.iter().rev().find(|(s, _)| *s == sector).map(|(_, d)| *d);
        cached.or_else(|| self.durable.get(&sector).copied()).unwrap_or([0; SECTOR])
    }
}

impl BlockDevice for TestDevice {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn prefetch(&self, next: &[(Sector, u32)]) {
        self.state().announced.extend(next);
    }

    fn read(
        &mut self,
        sink: &mut Sink,
        at: u64,
        mut into: ReadTarget<'_>,
        cause: Cause,
        after: Tok,
    ) -> Result<Tok> {
        let len = into.len();
        assert!(at + u64::from(len) <= self.bytes);
        self.alive()?;
        let mut s = self.state();
        let first = at / SECTOR as u64;
        if s.unreadable.range(first..first + u64::from(len) / SECTOR as u64).next().is_some() {
            return Err(TestDevice::failure("a sector is unreadable"));
        }
        s.reads += 1;
        if let Some(bytes) = into.bytes() {
            for (sector, out) in (first..).zip(bytes.chunks_exact_mut(SECTOR)) {
                out.copy_from_slice(&s.sector(sector));
            }
        }
        Ok(self.emit(sink, Op::DramRead, at, len, cause, after))
    }

    fn write(
        &mut self,
        sink: &mut Sink,
        at: u64,
        data: WriteData<'_>,
        cause: Cause,
        after: Tok,
    ) -> Result<Tok> {
        assert!(at + u64::from(data.len()) <= self.bytes);
        let bytes = data.bytes().unwrap_or_default();
        self.put(at, bytes.chunks_exact(SECTOR).map(|s| s.try_into().unwrap()))?;
        Ok(self.emit(sink, Op::DramWrite, at, data.len(), cause, after))
    }

    fn zero(&mut self, sink: &mut Sink, at: u64, len: u64, cause: Cause, after: Tok) -> Result<Tok> {
        self.put(at, (0..len / SECTOR as u64).map(|_| [0; SECTOR]))?;
        Ok(self.emit(sink, Op::DramWrite, at, len as u32, cause, after))
    }

    fn flush(&mut self, sink: &mut Sink, cause: Cause, after: Tok) -> Result<Tok> {
        self.alive()?;
        if std::mem::take(&mut self.state().fail_flush) {
            self.state().cached.clear();
            return Err(TestDevice::failure("a flush failed"));
        }
        if self.powered() {
            let mut s = self.state();
            for (sector, data) in std::mem::take(&mut s.cached) {
                s.durable.insert(sector, data);
            }
        }
        Ok(self.emit(sink, Op::DramWrite, 0, 0, cause, after))
    }

    fn write_guarantee(&self) -> WriteGuarantee {
        WriteGuarantee {
            durable_at: DurabilityPoint::OnFlush,
            atomic_bytes: SECTOR as u32,
            ..WriteGuarantee::default()
        }
    }

    fn visible(&self, _: &mut StackView) {}

    fn place(&self, _: u64) -> (u64, Option<MediumKind>) {
        (self.bytes, Some(MediumKind::Dram))
    }
}

//! Requests under the lock: alignment, counting, recording, refusal after an error.

use super::counters::Kind;
use super::{Device, Failure, SLICE_BYTES, SYNC_AHEAD_BYTES, State};
use crate::backend::{Backend, Done, is_unexpected};
use frit_core::{Buffer, Deferred, Error, Hints, Intent, MediumKind, SECTOR_BYTES, Sector};
use frit_trace::ReqOp;
use parking_lot::MutexGuard;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

type Result<T> = std::result::Result<T, Failure>;

/// A bounce buffer above this is given back after its request, in bytes.
const BOUNCE_KEPT: usize = 1 << 20;

/// Bytes of data that are moved before others are let in.
const DATA_SLICE: u64 = 1 << 20;

/// Zeros to write.
static ZEROS: [u8; DATA_SLICE as usize] = [0; DATA_SLICE as usize];

/// How long to wait for accesses under way before looking again.
const WAIT_AT_MOST: Duration = Duration::from_millis(20);

/// The lock on a device, held for a few requests.
///
/// Ranges may begin and end anywhere: what does not fill whole sectors is read, changed and written
/// back under the lock, in one write to the backend.
pub struct Access<'a> {
    device: &'a Device,
    state: MutexGuard<'a, State>,
    /// When the current request's turn came.
    turn: Instant,
}

/// A request, as it is counted and recorded.
struct Item {
    kind: Kind,
    op: Option<ReqOp>,
    at: u64,
    len: u64,
    hints: Hints,
}

impl<'a> Access<'a> {
    pub(super) fn new(device: &'a Device, state: MutexGuard<'a, State>) -> Access<'a> {
        Access { device, state, turn: Instant::now() }
    }

    /// The next request is counted from this moment on.
    pub(super) fn asked(&mut self, when: Instant) {
        self.turn = when;
    }

    /// Lets another thread that waits for the lock have its turn.
    pub fn yield_to_others(&mut self) {
        MutexGuard::bump(&mut self.state);
    }

    /// Whether a request would have to wait for a slow medium now: a hint, never true where the backend has none.
    pub fn slow(&self, what: Intent, at: u64, len: u64) -> bool {
        let Some(backend) = self.state.backend.as_ref().filter(|_| self.device.deferring) else {
            return false;
        };
        // Files are synced ahead then, that of the slow medium among them.
        if what == Intent::Flush && self.device.unsynced.load(Ordering::Relaxed) >= SYNC_AHEAD_BYTES {
            return true;
        }
        let (from, to) = around(at.min(self.device.bytes()), len.min(self.device.bytes()));
        backend.slow(what, from, to - from)
    }

    /// Reads.
    ///
    /// # Errors
    /// A range outside the device, or bytes that a medium cannot give back.
    pub fn read(&mut self, at: u64, into: &mut [u8]) -> Result<Done> {
        let len = into.len() as u64;
        let result = self.reading(at, len).and_then(|()| {
            if aligned(at, len) {
                return self.read_sectors(at, into);
            }
            let (from, to) = around(at, len);
            if self.device.deferring {
                // Others go on while the slow medium is read: the common buffer is theirs.
                let mut sectors = vec![0; (to - from) as usize];
                let done = self.read_sectors(from, &mut sectors)?;
                into.copy_from_slice(&sectors[(at - from) as usize..][..into.len()]);
                return Ok(done);
            }
            self.at_once(|backend, bounce| {
                let done = backend.read(from, sized(bounce, to - from))?;
                into.copy_from_slice(&bounce[(at - from) as usize..][..into.len()]);
                shrink(bounce);
                Ok(done)
            })
        });
        let item = Item { kind: Kind::Read, op: Some(ReqOp::Read), at, len, hints: Hints::NONE };
        self.count(&item, result)
    }

    /// Writes. With [`Hints::FUA`] the caller also flushes before it answers.
    ///
    /// # Errors
    /// A range outside the device, no space, writes refused, or a medium that fails.
    pub fn write(&mut self, at: u64, data: &[u8], hints: Hints) -> Result<Done> {
        let len = data.len() as u64;
        let result = self.writing(at, len).and_then(|()| {
            if !aligned(at, len) {
                return self.at_once(|backend, bounce| {
                    patch(backend, bounce, (at, len), |part| part.copy_from_slice(data))
                });
            }
            let mut done = Done::NOW;
            for (pos, n) in Slices(at, at + len, DATA_SLICE) {
                let part = &data[(pos - at) as usize..][..n as usize];
                let slice = self.persist(pos > at, |b| b.write(pos, part, own(hints)))?;
                self.carry_out(&mut Buffer::Out(part))?;
                done = done.and(slice);
            }
            Ok(done)
        });
        if self.device.deferring {
            self.device.wanted.notify_one();
        }
        self.count(&Item { kind: Kind::Write, op: Some(ReqOp::Write), at, len, hints }, result)
    }

    /// Makes a range read as zeros; it stays allocated when asked for. Between slices of
    /// [`SLICE_BYTES`] others are let in.
    ///
    /// # Errors
    /// As for [`Access::write`].
    pub fn write_zeroes(&mut self, at: u64, len: u64, keep_allocated: bool) -> Result<Done> {
        let result = self.writing(at, len).and_then(|()| {
            let (from, to) = within(at, len);
            if from >= to {
                return self
                    .at_once(|backend, bounce| patch(backend, bounce, (at, len), |part| part.fill(0)));
            }
            let mut done = Done::NOW;
            for (at, len) in Slices(from, to, SLICE_BYTES) {
                let slice = self.zeroes(at > from, at, len, keep_allocated)?;
                done = done.and(slice);
            }
            for (at, len) in [(at, from - at), (to, at + len - to)].into_iter().filter(|p| p.1 > 0) {
                let part =
                    self.at_once(|backend, bounce| patch(backend, bounce, (at, len), |part| part.fill(0)))?;
                done = done.and(part);
            }
            Ok(done)
        });
        let op = if keep_allocated { ReqOp::Write } else { ReqOp::Discard };
        let item = Item { kind: Kind::WriteZeroes, op: Some(op), at, len, hints: Hints::NONE };
        self.count(&item, result)
    }

    /// Forgets the whole sectors of a range: they read as zeros. Between slices of [`SLICE_BYTES`] others
    /// are let in.
    ///
    /// # Errors
    /// As for [`Access::write`].
    pub fn discard(&mut self, at: u64, len: u64) -> Result<Done> {
        let result = self.writing(at, len).and_then(|()| {
            let (from, to) = within(at, len);
            if from >= to {
                return Ok(Done::NOW);
            }
            let mut done = Done::NOW;
            for (at, len) in Slices(from, to, SLICE_BYTES) {
                let slice = self.persist(at > from, |b| b.discard(at, len))?;
                self.carry_out(&mut Buffer::None)?;
                done = done.and(slice);
            }
            Ok(done)
        });
        let item = Item { kind: Kind::Discard, op: Some(ReqOp::Discard), at, len, hints: Hints::NONE };
        self.count(&item, result)
    }

    /// Flushes, unless a flush that began after number `begun` has succeeded.
    pub(super) fn flush(&mut self, begun: u64, op: Option<ReqOp>) -> Result<Done> {
        let item = Item { kind: Kind::Flush, op, at: 0, len: 0, hints: Hints::NONE };
        if self.state.flushed > begun {
            self.state.counters.flushes_shared += 1;
            return self.count(&item, Ok(Done::NOW));
        }
        let number = self.device.flushes_begun.fetch_add(1, Ordering::AcqRel) + 1;
        self.device.unsynced.store(0, Ordering::Relaxed);
        let result = self.persist(false, |b| b.flush());
        let result = result.and_then(|done| self.carry_out(&mut Buffer::None).map(|()| done));
        if result.is_ok() {
            self.state.flushed = number;
        }
        self.count(&item, result)
    }

    /// Where a range lies, in order: lengths in bytes that sum up to `len`.
    ///
    /// # Errors
    /// A range outside the device, or a map that cannot be read.
    pub fn extents(
        &mut self,
        at: u64,
        len: u64,
        each: &mut dyn FnMut(u64, Option<MediumKind>),
    ) -> Result<()> {
        let result = self.reading(at, len).and_then(|()| {
            let (from, to) = around(at, len);
            let mut pos = from;
            self.backend()?.extents(from, to - from, &mut |bytes, place| {
                let end = pos + bytes;
                let part = end.min(at + len).saturating_sub(pos.max(at));
                if part > 0 {
                    each(part, place);
                }
                pos = end;
            })?;
            Ok(Done::NOW)
        });
        let item = Item { kind: Kind::Extents, op: None, at, len, hints: Hints::NONE };
        self.count(&item, result).map(|_| ())
    }

    /// Background work; whether there is more.
    ///
    /// # Errors
    /// A medium that fails in a way that cannot be mended.
    pub fn step(&mut self, budget: u32) -> Result<bool> {
        self.state.counters.steps += 1;
        let result = match self.backend()?.step(budget) {
            Err(Error::Later) => Ok(false),
            done => done,
        };
        if let Some(e) = result.as_ref().err().filter(|e| is_unexpected(e)) {
            let why = format!("background work failed: {e}");
            self.device.refuse(&mut self.state, &why);
        }
        Ok(result?)
    }

    pub(super) fn refuse(&mut self, why: &str) {
        self.device.refuse(&mut self.state, why);
    }

    /// Asks the backend for something, after others had their turn when `others`, and again as long as it meets
    /// accesses under way.
    fn persist<T>(
        &mut self,
        others: bool,
        mut ask: impl FnMut(&mut dyn Backend) -> frit_core::Result<T>,
    ) -> Result<T> {
        if others {
            self.yield_to_others();
        }
        loop {
            match ask(self.backend()?) {
                Err(Error::Later) => self.wait_for_others()?,
                done => return Ok(done?),
            }
        }
    }

    /// Carries out, without the lock, what the last call left.
    fn carry_out(&mut self, buffer: &mut Buffer<'_>) -> Result<()> {
        while let Some(left) = self.backend()?.deferred() {
            self.settle(&left, buffer)?;
        }
        Ok(())
    }

    fn settle(&mut self, left: &Deferred, buffer: &mut Buffer<'_>) -> Result<()> {
        let outcome = MutexGuard::unlocked(&mut self.state, || left.run(buffer));
        let settled = self.backend()?.settle(left, outcome, buffer);
        self.device.settled.notify_all();
        Ok(settled?)
    }

    /// What is asked for meets accesses under way: carries out what waits, or waits for who does.
    fn wait_for_others(&mut self) -> Result<()> {
        match self.backend()?.job()? {
            Some(job) => self.settle(&job, &mut Buffer::None),
            None => {
                self.device.settled.wait_for(&mut self.state, WAIT_AT_MOST);
                Ok(())
            }
        }
    }

    /// Does something that reads and writes under one lock, slow media included.
    fn at_once(
        &mut self,
        mut ask: impl FnMut(&mut dyn Backend, &mut Vec<u8>) -> Result<Done>,
    ) -> Result<Done> {
        loop {
            let State { backend, bounce, .. } = &mut *self.state;
            let backend = backend.as_deref_mut().ok_or(Failure::Stopping)?;
            if self.device.deferring {
                backend.defer(false);
            }
            let done = ask(backend, bounce);
            if self.device.deferring {
                backend.defer(true);
            }
            match done {
                Err(Failure::Backend(Error::Later)) => self.wait_for_others()?,
                done => return done,
            }
        }
    }

    /// Takes the backend away, once no flush is under way.
    pub(super) fn take_backend(&mut self) -> Option<Box<dyn Backend>> {
        if self.device.deferring {
            // What is wrong shows when it is closed.
            let flushed = self.persist(false, |b| b.flush());
            drop(flushed.and_then(|_| self.carry_out(&mut Buffer::None)));
        }
        self.state.backend.take()
    }

    /// Waits until work may be wanted.
    pub(super) fn wait_for_work(&mut self) {
        self.device.wanted.wait_for(&mut self.state, WAIT_AT_MOST);
    }

    /// Background work that is left to others is carried out; whether there was any.
    ///
    /// # Errors
    /// A medium that fails in a way that cannot be mended.
    pub(super) fn do_job(&mut self) -> Result<bool> {
        match self.backend()?.job()? {
            Some(job) => self.settle(&job, &mut Buffer::None).map(|()| true),
            None => Ok(false),
        }
    }

    fn read_sectors(&mut self, at: u64, into: &mut [u8]) -> Result<Done> {
        let mut done = Done::NOW;
        for (pos, n) in Slices(at, at + into.len() as u64, DATA_SLICE) {
            let part = &mut into[(pos - at) as usize..][..n as usize];
            let slice = self.persist(pos > at, |b| b.read(pos, part))?;
            self.carry_out(&mut Buffer::In(part))?;
            done = done.and(slice);
        }
        Ok(done)
    }

    fn zeroes(&mut self, others: bool, at: u64, len: u64, keep_allocated: bool) -> Result<Done> {
        if !keep_allocated {
            let done = self.persist(others, |b| b.write_zeroes(at, len, false))?;
            self.carry_out(&mut Buffer::None)?;
            return Ok(done);
        }
        let mut done = Done::NOW;
        for (pos, n) in Slices(at, at + len, DATA_SLICE) {
            let slice = self.persist(others || pos > at, |b| b.write_zeroes(pos, n, true))?;
            self.carry_out(&mut Buffer::Out(&ZEROS))?;
            done = done.and(slice);
        }
        Ok(done)
    }

    fn backend(&mut self) -> Result<&mut dyn Backend> {
        match &mut self.state.backend {
            Some(backend) => Ok(&mut **backend),
            None => Err(Failure::Stopping),
        }
    }

    fn reading(&self, at: u64, len: u64) -> Result<()> {
        let bytes = self.device.bytes();
        if self.device.is_stopping() {
            return Err(Failure::Stopping);
        }
        match at.checked_add(len) {
            Some(end) if end <= bytes => Ok(()),
            _ => Err(Failure::Backend(Error::OutOfRange {
                at: at / SECTOR_BYTES,
                sectors: len.div_ceil(SECTOR_BYTES),
                capacity: bytes / SECTOR_BYTES,
            })),
        }
    }

    fn writing(&self, at: u64, len: u64) -> Result<()> {
        match &self.state.refusal {
            Some(why) => Err(Failure::ReadOnly(why.clone())),
            None => self.reading(at, len),
        }
    }

    fn count(&mut self, item: &Item, result: Result<Done>) -> Result<Done> {
        let now = Instant::now();
        let until = match &result {
            Ok(done) => done.not_before.map_or(now, |t| t.max(now)),
            Err(_) => now,
        };
        let service_ns = until.duration_since(self.turn).as_nanos() as u64;
        self.state.counters.of(item.kind).add(item.len, service_ns, result.is_err());
        if let (Some(recorder), Some(op), Ok(_)) = (&self.device.recorder, item.op, &result) {
            let (from, to) = if item.len == 0 { (0, 0) } else { around(item.at, item.len) };
            let sectors = (to - from) / SECTOR_BYTES;
            recorder.note(self.turn, op, Sector(from / SECTOR_BYTES), sectors, item.hints);
        }
        let changes = !matches!(item.kind, Kind::Read | Kind::Extents);
        if item.op == Some(ReqOp::Write) && result.is_ok() {
            self.device.unsynced.fetch_add(item.len, Ordering::Relaxed);
        }
        match &result {
            Err(Failure::Backend(e @ Error::Corrupt { .. })) => {
                self.device.met_damage(item.at, item.len, e);
            }
            Err(Failure::Backend(e @ Error::Io { .. })) if !changes => {
                self.device.met_damage(item.at, item.len, e);
            }
            // What the volume found out by itself.
            Err(Failure::Backend(Error::ReadOnly { why })) => {
                self.device.refuse(&mut self.state, why);
            }
            _ => {}
        }
        if let (Err(Failure::Backend(e)), true) = (&result, changes)
            && is_unexpected(e)
        {
            let why = e.to_string();
            self.device.refuse(&mut self.state, &why);
        }
        self.turn = now;
        result
    }
}

impl Drop for Access<'_> {
    fn drop(&mut self) {
        // A backend that panicked half-way through a request is not to be written any more.
        if std::thread::panicking() {
            self.device.refuse(&mut self.state, "a request ended in a panic; please report it");
        }
    }
}

/// Reads the sectors around a range, changes the range, and writes them back at once.
fn patch(
    backend: &mut dyn Backend,
    bounce: &mut Vec<u8>,
    (at, len): (u64, u64),
    change: impl FnOnce(&mut [u8]),
) -> Result<Done> {
    let (from, to) = around(at, len);
    let buffer = sized(bounce, to - from);
    let sector = SECTOR_BYTES as usize;
    let tail = buffer.len() - sector;
    let mut done = backend.read(from, &mut buffer[..sector])?;
    if tail > 0 {
        done = done.and(backend.read(from + tail as u64, &mut buffer[tail..])?);
    }
    change(&mut buffer[(at - from) as usize..][..len as usize]);
    done = done.and(backend.write(from, buffer, Hints::NONE)?);
    shrink(bounce);
    Ok(done)
}

/// A range, from and to, in slices that end at multiples of the third: (at, length) each.
struct Slices(u64, u64, u64);

impl Iterator for Slices {
    type Item = (u64, u64);
    fn next(&mut self) -> Option<(u64, u64)> {
        let at = self.0;
        let len = (self.1 - at).min(self.2 - at % self.2);
        self.0 += len;
        (len > 0).then_some((at, len))
    }
}

/// Hints as the backend gets them: a flush that several writes share follows FUA, so that the backend
/// need not flush after each.
fn own(hints: Hints) -> Hints {
    if hints == Hints::FUA { Hints::NONE } else { hints }
}

fn aligned(at: u64, len: u64) -> bool {
    (at | len).is_multiple_of(SECTOR_BYTES)
}

/// The whole sectors that a range touches, from and to.
fn around(at: u64, len: u64) -> (u64, u64) {
    (at - at % SECTOR_BYTES, (at + len).next_multiple_of(SECTOR_BYTES))
}

/// The whole sectors inside a range, from and to.
fn within(at: u64, len: u64) -> (u64, u64) {
    let end = at + len;
    (at.next_multiple_of(SECTOR_BYTES), end - end % SECTOR_BYTES)
}

fn sized(bounce: &mut Vec<u8>, len: u64) -> &mut [u8] {
    let len = len as usize;
    if bounce.len() < len {
        bounce.resize(len, 0);
    }
    &mut bounce[..len]
}

fn shrink(bounce: &mut Vec<u8>) {
    if bounce.len() > BOUNCE_KEPT {
        *bounce = Vec::new();
    }
}

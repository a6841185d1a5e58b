//! [`DeviceGuard`]: requests and background steps under the device lock, and accesses to slow media
//! with the lock released.

use super::counters::ClientRequestKind;
use super::marked::MarkedWrite;
use super::{Device, DeviceState, Failure, SLICE_BYTES, SYNC_AHEAD_BYTES};
use crate::backend::{Backend, ReplyTime, is_unexpected};
use crate::hints::{ClientHints, Marks};
use frit_core::{Buffer, Deferred, Error, Hints, MediumKind, RequestIntent, SECTOR_BYTES};
use frit_isp::ForegroundGuard;
use frit_trace::ReqOp;
use parking_lot::MutexGuard;
use std::ops::Range;
use std::sync::LazyLock;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

type Result<T> = std::result::Result<T, Failure>;

/// Size in bytes above which the bounce buffer is freed after its request.
const BOUNCE_KEPT: usize = 1 << 20;

/// Maximum number of bytes of data moved before the lock is offered to other threads.
const DATA_SLICE: u64 = 1 << 20;

/// Source of zeros for deferred writes of zeros.
static ZEROS: LazyLock<Vec<u8>> = LazyLock::new(|| vec![0; DATA_SLICE as usize]);

/// Maximum time to wait on a condition variable before its condition is checked again.
const WAIT_MAX: Duration = Duration::from_millis(20);

/// Exclusive access to a device for a few requests; holds the device lock.
///
/// Ranges may begin and end at any byte. They go to the byte interface of the backend if it has
/// one. Otherwise, sectors that a range covers only in part are read, modified and written back
/// under the lock, in one write to the backend.
pub struct DeviceGuard<'a> {
    pub(super) device: &'a Device,
    pub(super) state: MutexGuard<'a, DeviceState>,
    /// Time from which the service time of the current request is counted.
    service_start: Instant,
    /// Makes the processing engine wait until this access ends; `None` if it has nothing to do.
    _foreground: Option<ForegroundGuard>,
}

/// Properties of a request for counters and the recording.
struct RequestInfo {
    kind: ClientRequestKind,
    op: Option<ReqOp>,
    at: u64,
    len: u64,
    hints: Hints,
}

impl<'a> DeviceGuard<'a> {
    pub(super) fn new(
        device: &'a Device,
        state: MutexGuard<'a, DeviceState>,
        foreground: Option<ForegroundGuard>,
    ) -> DeviceGuard<'a> {
        DeviceGuard { device, state, service_start: Instant::now(), _foreground: foreground }
    }

    /// Sets the time from which the service time of the next request is counted.
    pub(super) fn arrived(&mut self, when: Instant) {
        self.service_start = when;
    }

    /// Hands the lock to another thread that waits for it, and takes it again afterwards.
    pub fn yield_to_others(&mut self) {
        MutexGuard::bump(&mut self.state);
    }

    /// Returns `true` if a request would have to wait for a slow medium now. The result is a hint,
    /// and always `false` for a backend without slow media.
    pub fn would_block(&self, what: RequestIntent, at: u64, len: u64) -> bool {
        let Some(backend) = self.state.backend.as_ref().filter(|_| self.device.deferring) else {
            return false;
        };
        // With this many unsynced bytes a flush syncs all files before it takes the lock, including
        // that of the slow medium.
        if what == RequestIntent::Flush && self.device.unsynced.load(Ordering::Relaxed) >= SYNC_AHEAD_BYTES {
            return true;
        }
        let (from, to) = outer_sectors(at.min(self.device.bytes()), len.min(self.device.bytes()));
        backend.would_block(what, from, to - from)
    }

    /// Reads the bytes from `at` on into `into`.
    ///
    /// # Errors
    /// A range outside the device, or a medium that cannot return the bytes.
    pub fn read(&mut self, at: u64, into: &mut [u8]) -> Result<ReplyTime> {
        let len = into.len() as u64;
        let result = self.check_read(at, len).and_then(|()| {
            if aligned(at, len) {
                return self.read_sectors(at, into);
            }
            if self.device.serves_bytes {
                return self.retry_on_conflict(false, |b| b.read_bytes(at, into));
            }
            let (from, to) = outer_sectors(at, len);
            if self.device.deferring {
                // The lock is released while the slow medium is read, and other requests may use
                // the shared bounce buffer meanwhile. So this request needs a private one.
                let mut sectors = vec![0; (to - from) as usize];
                let done = self.read_sectors(from, &mut sectors)?;
                into.copy_from_slice(&sectors[(at - from) as usize..][..into.len()]);
                return Ok(done);
            }
            self.read_modify_write(|backend, bounce| {
                let done = backend.read(from, sized(bounce, to - from))?;
                into.copy_from_slice(&bounce[(at - from) as usize..][..into.len()]);
                shrink(bounce);
                Ok(done)
            })
        });
        let item =
            RequestInfo { kind: ClientRequestKind::Read, op: Some(ReqOp::Read), at, len, hints: Hints::NONE };
        self.count(&item, result)
    }

    /// Reads whole sectors for the processing engine. They are counted as its reads and not as those of
    /// clients, also in the media.
    ///
    /// # Errors
    /// As for [`DeviceGuard::read`]; a range that is not of whole sectors.
    pub(crate) fn read_in_storage(&mut self, at: u64, into: &mut [u8]) -> Result<ReplyTime> {
        let len = into.len() as u64;
        let result = self.check_read(at, len).and_then(|()| {
            let done = self.retry_on_conflict(false, |b| b.read_in_storage(at, into))?;
            self.run_deferred(&mut Buffer::In(into))?;
            Ok(done)
        });
        let item = RequestInfo { kind: ClientRequestKind::Isp, op: None, at, len, hints: Hints::NONE };
        self.count(&item, result)
    }

    /// Writes `data` at `at`. With [`Hints::FUA`] the caller must also flush before it replies.
    ///
    /// # Errors
    /// A range outside the device, no space, read-only mode, or a medium that fails.
    pub fn write(&mut self, at: u64, data: &[u8], hints: Hints) -> Result<ReplyTime> {
        self.write_of_process(at, data, hints, Hints::NONE)
    }

    /// Writes as [`DeviceGuard::write`] does, with the hints of the process that sent the request.
    ///
    /// # Errors
    /// As for [`DeviceGuard::write`].
    pub(crate) fn write_of_process(
        &mut self,
        at: u64,
        data: &[u8],
        hints: Hints,
        process: Hints,
    ) -> Result<ReplyTime> {
        let len = data.len() as u64;
        let client = ClientHints { own: without_fua(hints), process };
        let mut marked = MarkedWrite::default();
        let result = self.change(at, len, |this| {
            if !aligned(at, len) {
                let hints = this.mark_whole(at, data, client, &mut marked);
                if this.device.serves_bytes {
                    return this.retry_on_conflict(false, |b| b.write_bytes(at, data, hints));
                }
                return this.read_modify_write(|backend, bounce| {
                    rmw(backend, bounce, at..at + len, hints, |part| part.copy_from_slice(data))
                });
            }
            let mut done = ReplyTime::NOW;
            // Other requests may come between slices, so a longer write is not atomic.
            for (pos, n) in AlignedSlices(at, at + len, DATA_SLICE) {
                let part = &data[(pos - at) as usize..][..n as usize];
                done = done.and(this.write_slice(pos, part, pos > at, client, &mut marked)?);
            }
            Ok(done)
        });
        if self.device.deferring {
            self.device.work_available.notify_one();
        }
        if self.state.hints.is_some() {
            self.learn();
        }
        self.state.counters.hints.add_request(marked.any);
        let hints = hints.with(marked.common.unwrap_or_default());
        self.count(
            &RequestInfo { kind: ClientRequestKind::Write, op: Some(ReqOp::Write), at, len, hints },
            result,
        )
    }

    /// Writes a slice of aligned data, in one part if no rule distinguishes its pages.
    fn write_slice(
        &mut self,
        at: u64,
        data: &[u8],
        yield_first: bool,
        client: ClientHints,
        marked: &mut MarkedWrite,
    ) -> Result<ReplyTime> {
        if self.state.hints.is_some() {
            return self.write_parts(at, data, yield_first, client, marked);
        }
        let marks = Marks::of_client(client);
        marked.add(marks);
        self.state.counters.hints.add_bytes(marks, data.len() as u64);
        self.write_aligned(at, data, yield_first, client.own.with(client.process))
    }

    /// Writes aligned data with one set of hints.
    pub(super) fn write_aligned(
        &mut self,
        at: u64,
        data: &[u8],
        yield_first: bool,
        hints: Hints,
    ) -> Result<ReplyTime> {
        let done = self.retry_on_conflict(yield_first, |b| b.write(at, data, hints))?;
        self.run_deferred(&mut Buffer::Out(data))?;
        Ok(done)
    }

    /// Makes a range read as zeros. With `keep_allocated` its space stays allocated. The lock is
    /// offered to other threads after every [`SLICE_BYTES`], or after every zone.
    ///
    /// # Errors
    /// As for [`DeviceGuard::write`].
    pub fn write_zeroes(&mut self, at: u64, len: u64, keep_allocated: bool) -> Result<ReplyTime> {
        let result = self.change(at, len, |this| {
            let (from, to) = inner_sectors(at, len);
            // The range contains no whole sector.
            if from >= to {
                return this.read_modify_write(|backend, bounce| {
                    rmw(backend, bounce, at..at + len, Hints::NONE, |part| part.fill(0))
                });
            }
            let mut done = ReplyTime::NOW;
            let slice_bytes = if keep_allocated { SLICE_BYTES } else { this.device.discard_slice };
            for (at, len) in AlignedSlices(from, to, slice_bytes) {
                let slice = this.zeroes(at > from, at, len, keep_allocated)?;
                done = done.and(slice);
            }
            for (at, len) in [(at, from - at), (to, at + len - to)].into_iter().filter(|p| p.1 > 0) {
                let part = this.read_modify_write(|backend, bounce| {
                    rmw(backend, bounce, at..at + len, Hints::NONE, |part| part.fill(0))
                })?;
                done = done.and(part);
            }
            Ok(done)
        });
        self.note_zeroed(at, len, result.is_ok());
        let op = if keep_allocated { ReqOp::Write } else { ReqOp::Discard };
        let item =
            RequestInfo { kind: ClientRequestKind::WriteZeroes, op: Some(op), at, len, hints: Hints::NONE };
        self.count(&item, result)
    }

    /// Discards the whole sectors inside a range, which read as zeros afterwards. The lock is
    /// offered to other threads after every [`SLICE_BYTES`], or after every zone.
    ///
    /// # Errors
    /// As for [`DeviceGuard::write`].
    pub fn discard(&mut self, at: u64, len: u64) -> Result<ReplyTime> {
        let result = self.change(at, len, |this| {
            let (from, to) = inner_sectors(at, len);
            if from >= to {
                return Ok(ReplyTime::NOW);
            }
            let mut done = ReplyTime::NOW;
            for (at, len) in AlignedSlices(from, to, this.device.discard_slice) {
                let slice = this.retry_on_conflict(at > from, |b| b.discard(at, len))?;
                this.run_deferred(&mut Buffer::None)?;
                done = done.and(slice);
            }
            Ok(done)
        });
        self.note_zeroed(at, len, result.is_ok());
        let item = RequestInfo {
            kind: ClientRequestKind::Discard,
            op: Some(ReqOp::Discard),
            at,
            len,
            hints: Hints::NONE,
        };
        self.count(&item, result)
    }

    /// Flushes. `begun` is the number of flushes begun when this request arrived. If a later one
    /// has succeeded, no flush is needed.
    pub(super) fn flush(&mut self, begun: u64, op: Option<ReqOp>) -> Result<ReplyTime> {
        let item = RequestInfo { kind: ClientRequestKind::Flush, op, at: 0, len: 0, hints: Hints::NONE };
        // A flush that began after the arrival of this one covers all writes that this one must
        // cover.
        if self.state.flushed > begun {
            self.state.counters.flushes_coalesced += 1;
            return self.count(&item, Ok(ReplyTime::NOW));
        }
        // The counter is reset before the flush: bytes written meanwhile belong to the next one.
        let number = self.device.flushes_begun.fetch_add(1, Ordering::AcqRel) + 1;
        self.device.unsynced.store(0, Ordering::Relaxed);
        let result = self.retry_on_conflict(false, |b| b.flush());
        let result = result.and_then(|done| self.run_deferred(&mut Buffer::None).map(|()| done));
        if result.is_ok() {
            self.state.flushed = number;
        }
        self.count(&item, result)
    }

    /// Passes the extents of a range to `each`, in order. The lengths in bytes add up to `len`.
    ///
    /// # Errors
    /// A range outside the device, or a map that cannot be read.
    pub fn extents(
        &mut self,
        at: u64,
        len: u64,
        each: &mut dyn FnMut(u64, Option<MediumKind>),
    ) -> Result<()> {
        let result = self.check_read(at, len).and_then(|()| {
            let (from, to) = outer_sectors(at, len);
            let mut pos = from;
            self.backend()?.extents(from, to - from, &mut |bytes, place| {
                let end = pos + bytes;
                let part = end.min(at + len).saturating_sub(pos.max(at));
                if part > 0 {
                    each(part, place);
                }
                pos = end;
            })?;
            Ok(ReplyTime::NOW)
        });
        let item = RequestInfo { kind: ClientRequestKind::Extents, op: None, at, len, hints: Hints::NONE };
        self.count(&item, result).map(|_| ())
    }

    /// Does background work of about `budget` media commands. Returns `true` if there is more to
    /// do.
    ///
    /// # Errors
    /// A medium fails in a way that the backend cannot repair.
    pub fn step(&mut self, budget: u32) -> Result<bool> {
        self.state.counters.steps += 1;
        let result = match self.backend()?.step(budget) {
            Err(Error::WouldBlock) => Ok(false),
            done => done,
        };
        if let Some(e) = result.as_ref().err().filter(|e| is_unexpected(e)) {
            let why = format!("background work failed: {e}");
            self.device.enter_read_only(&mut self.state, &why);
        }
        Ok(result?)
    }

    /// Calls the backend, and repeats the call as long as it conflicts with accesses in flight.
    /// With `yield_first` the lock is offered to other threads first.
    fn retry_on_conflict<T>(
        &mut self,
        yield_first: bool,
        mut ask: impl FnMut(&mut dyn Backend) -> frit_core::Result<T>,
    ) -> Result<T> {
        if yield_first {
            self.yield_to_others();
        }
        loop {
            match ask(self.backend()?) {
                Err(Error::WouldBlock) => self.wait_for_conflict()?,
                done => return Ok(done?),
            }
        }
    }

    /// Executes the accesses that the last call deferred, with the lock released.
    fn run_deferred(&mut self, buffer: &mut Buffer<'_>) -> Result<()> {
        while let Some(deferred) = self.backend()?.deferred() {
            self.complete_deferred(&deferred, buffer)?;
        }
        Ok(())
    }

    /// Executes a deferred access with the lock released, and passes its result to the backend.
    fn complete_deferred(&mut self, deferred: &Deferred, buffer: &mut Buffer<'_>) -> Result<()> {
        let outcome = MutexGuard::unlocked(&mut self.state, || deferred.run(buffer));
        let settled = self.backend()?.settle(deferred, outcome, buffer);
        self.device.settled.notify_all();
        Ok(settled?)
    }

    /// Waits after a conflict with accesses in flight: executes a pending access if there is one,
    /// otherwise waits until another thread completes its access.
    fn wait_for_conflict(&mut self) -> Result<()> {
        match self.backend()?.job()? {
            Some(job) => self.complete_deferred(&job, &mut Buffer::None),
            None => {
                self.device.settled.wait_for(&mut self.state, WAIT_MAX);
                Ok(())
            }
        }
    }

    /// Runs a read-modify-write under one hold of the lock. Accesses to slow media are not deferred
    /// meanwhile, so that no other request can come between the read and the write.
    fn read_modify_write(
        &mut self,
        mut ask: impl FnMut(&mut dyn Backend, &mut Vec<u8>) -> Result<ReplyTime>,
    ) -> Result<ReplyTime> {
        loop {
            let DeviceState { backend, bounce, .. } = &mut *self.state;
            let backend = backend.as_deref_mut().ok_or(Failure::Stopping)?;
            if self.device.deferring {
                backend.defer(false);
            }
            let done = ask(backend, bounce);
            if self.device.deferring {
                backend.defer(true);
            }
            match done {
                // The whole operation is repeated, since the data read may be stale after the lock
                // was released.
                Err(Failure::Backend(Error::WouldBlock)) => self.wait_for_conflict()?,
                done => return done,
            }
        }
    }

    /// Takes the backend out of the device. With deferral, a flush completes first.
    pub(super) fn take_backend(&mut self) -> Option<Box<dyn Backend>> {
        if self.device.deferring {
            // An error is ignored here, since `Backend::close` reports it again.
            let flushed = self.retry_on_conflict(false, |b| b.flush());
            drop(flushed.and_then(|_| self.run_deferred(&mut Buffer::None)));
        }
        self.state.backend.take()
    }

    /// Waits until there may be background work.
    pub(super) fn wait_for_work(&mut self) {
        self.device.work_available.wait_for(&mut self.state, WAIT_MAX);
    }

    /// Executes one deferred background access. Returns `true` if there was one.
    ///
    /// # Errors
    /// A medium fails in a way that the backend cannot repair.
    pub(super) fn run_one_deferred(&mut self) -> Result<bool> {
        match self.backend()?.job()? {
            Some(job) => self.complete_deferred(&job, &mut Buffer::None).map(|()| true),
            None => Ok(false),
        }
    }

    pub(super) fn read_sectors(&mut self, at: u64, into: &mut [u8]) -> Result<ReplyTime> {
        let mut done = ReplyTime::NOW;
        for (pos, n) in AlignedSlices(at, at + into.len() as u64, DATA_SLICE) {
            let part = &mut into[(pos - at) as usize..][..n as usize];
            let slice = self.retry_on_conflict(pos > at, |b| b.read(pos, part))?;
            self.run_deferred(&mut Buffer::In(part))?;
            done = done.and(slice);
        }
        Ok(done)
    }

    fn zeroes(&mut self, yield_first: bool, at: u64, len: u64, keep_allocated: bool) -> Result<ReplyTime> {
        if !keep_allocated {
            let done = self.retry_on_conflict(yield_first, |b| b.write_zeroes(at, len, false))?;
            self.run_deferred(&mut Buffer::None)?;
            return Ok(done);
        }
        let mut done = ReplyTime::NOW;
        for (pos, n) in AlignedSlices(at, at + len, DATA_SLICE) {
            let slice = self.retry_on_conflict(yield_first || pos > at, |b| b.write_zeroes(pos, n, true))?;
            self.run_deferred(&mut Buffer::Out(&ZEROS))?;
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

    fn check_read(&self, at: u64, len: u64) -> Result<()> {
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

    /// Changes a range. Queries that read bytes of it see that they change, from here to the end of
    /// `make`, which may release the lock.
    fn change(
        &mut self,
        at: u64,
        len: u64,
        make: impl FnOnce(&mut Self) -> Result<ReplyTime>,
    ) -> Result<ReplyTime> {
        self.check_write(at, len)?;
        self.state.changes.begin(at..at + len);
        let done = make(self);
        self.state.changes.end(&(at..at + len));
        done
    }

    fn check_write(&self, at: u64, len: u64) -> Result<()> {
        match &self.state.read_only_reason {
            Some(why) => Err(Failure::ReadOnly(why.clone())),
            None => self.check_read(at, len),
        }
    }

    fn count(&mut self, item: &RequestInfo, result: Result<ReplyTime>) -> Result<ReplyTime> {
        let now = Instant::now();
        // A paced request counts until its due time, so that the histogram shows the modelled
        // latency.
        let until = match &result {
            Ok(done) => done.not_before.map_or(now, |t| t.max(now)),
            Err(_) => now,
        };
        let service_ns = until.duration_since(self.service_start).as_nanos() as u64;
        self.state.counters.of(item.kind).add(item.len, service_ns, result.is_err());
        if let (Some(recorder), Some(op), Ok(_)) = (&self.device.recorder, item.op, &result) {
            let exact = self.device.serves_bytes
                && matches!(item.kind, ClientRequestKind::Read | ClientRequestKind::Write);
            let (from, to) = match item.len {
                0 => (0, 0),
                len if exact => (item.at, item.at + len),
                len => outer_sectors(item.at, len),
            };
            recorder.note(self.service_start, op, from, to - from, item.hints);
        }
        let changes = !matches!(
            item.kind,
            ClientRequestKind::Read | ClientRequestKind::Extents | ClientRequestKind::Isp
        );
        if item.op == Some(ReqOp::Write) && result.is_ok() {
            self.device.unsynced.fetch_add(item.len, Ordering::Relaxed);
        }
        match &result {
            Err(Failure::Backend(e @ Error::Corrupt { .. })) => {
                self.device.log_damage(item.at, item.len, e);
            }
            // Failed writes are logged by `enter_read_only` below.
            Err(Failure::Backend(e @ Error::Io { .. })) if !changes => {
                self.device.log_damage(item.at, item.len, e);
            }
            // The volume itself has entered read-only mode.
            Err(Failure::Backend(Error::ReadOnly { why })) => {
                self.device.enter_read_only(&mut self.state, why);
            }
            _ => {}
        }
        if let (Err(Failure::Backend(e)), true) = (&result, changes)
            && is_unexpected(e)
        {
            let why = e.to_string();
            self.device.enter_read_only(&mut self.state, &why);
        }
        // The service time of the next request starts here.
        self.service_start = now;
        result
    }
}

impl Drop for DeviceGuard<'_> {
    fn drop(&mut self) {
        // A backend that panicked in the middle of a request may be inconsistent, so it must not be
        // written again.
        if std::thread::panicking() {
            self.device.enter_read_only(&mut self.state, "a request ended in a panic; please report it");
        }
    }
}

/// Reads the sectors at both ends of a range, modifies the range, and writes all its sectors in one
/// write.
fn rmw(
    backend: &mut dyn Backend,
    bounce: &mut Vec<u8>,
    range: Range<u64>,
    hints: Hints,
    change: impl FnOnce(&mut [u8]),
) -> Result<ReplyTime> {
    let (at, len) = (range.start, range.end - range.start);
    let (from, to) = outer_sectors(at, len);
    let buffer = sized(bounce, to - from);
    let sector = SECTOR_BYTES as usize;
    let tail = buffer.len() - sector;
    let mut done = backend.read(from, &mut buffer[..sector])?;
    if tail > 0 {
        done = done.and(backend.read(from + tail as u64, &mut buffer[tail..])?);
    }
    change(&mut buffer[(at - from) as usize..][..len as usize]);
    done = done.and(backend.write(from, buffer, hints)?);
    shrink(bounce);
    Ok(done)
}

/// Iterator over the range from `.0` to `.1` in slices that end at multiples of `.2`; yields
/// (address, length).
struct AlignedSlices(u64, u64, u64);

impl Iterator for AlignedSlices {
    type Item = (u64, u64);
    fn next(&mut self) -> Option<(u64, u64)> {
        let at = self.0;
        let len = (self.1 - at).min(self.2 - at % self.2);
        self.0 += len;
        (len > 0).then_some((at, len))
    }
}

/// Returns the hints for the backend. FUA is removed, since one flush afterwards covers several
/// writes, and the backend need not flush after each of them.
fn without_fua(hints: Hints) -> Hints {
    hints.without(Hints::FUA)
}

fn aligned(at: u64, len: u64) -> bool {
    (at | len).is_multiple_of(SECTOR_BYTES)
}

/// Returns start and end of the range, extended to whole sectors.
fn outer_sectors(at: u64, len: u64) -> (u64, u64) {
    (at - at % SECTOR_BYTES, (at + len).next_multiple_of(SECTOR_BYTES))
}

/// Returns start and end of the whole sectors inside a range. The start may be after the end.
fn inner_sectors(at: u64, len: u64) -> (u64, u64) {
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

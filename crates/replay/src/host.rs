//! The host of a run: takes requests from a workload in batches and passes them to the layer.

use crate::device_commands::{self, CommandCounts};
use crate::hinted::HintedRanges;
use crate::request_log::RequestLog;
use crate::request_stats::{WriteSizes, WrittenMap};
use crate::verify::Verifier;
use frit_core::{
    Hints, Nanos, PREFETCH_REQUESTS, Progress, ReadTarget, Result, SECTOR_BYTES, Sector, Sink, StackDevice,
    WriteData,
};
use frit_engine::{Arrival, Host, LatencyByClass, RequestTimes};
use frit_trace::{DeviceCommand, ReqOp, Request, Workload};
use serde::Serialize;
use std::time::{Duration, Instant};

/// Maximum number of bytes in one call of a layer: 1 GiB. Longer reads and writes are split,
/// discards are not.
const BYTES_PER_CALL_MAX: u64 = 1 << 30;

/// Operations of the first classes of requests, indexed by class number. The commands of devices
/// follow.
const CLASSES: [ReqOp; 4] = [ReqOp::Read, ReqOp::Write, ReqOp::Discard, ReqOp::Flush];

/// Counts of the requests that a workload issued.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct WorkloadCounts {
    /// Number of requests of all kinds.
    pub requests: u64,
    /// Number of reads, with those of a cache that may miss.
    pub reads: u64,
    /// Number of bytes that were read; a miss reads none.
    pub read_bytes: u64,
    /// Number of bytes that were read where the workload itself, warm-up included, had written. Places
    /// have 4 KiB (on volumes above 32 GiB more); one that was written in part counts as written.
    pub reread_bytes: u64,
    /// Number of writes, with the commands that write.
    pub writes: u64,
    /// Number of bytes that were written.
    pub written_bytes: u64,
    /// Number of discards.
    pub discards: u64,
    /// Number of bytes that were discarded.
    pub discarded_bytes: u64,
    /// Number of flushes.
    pub flushes: u64,
    /// Number of commands of a cache or a zoned device.
    pub commands: u64,
}

impl WorkloadCounts {
    #[inline]
    fn count(&mut self, r: &Request) {
        self.requests += 1;
        match r.op {
            ReqOp::Read => {
                self.reads += 1;
                self.read_bytes += r.bytes();
            }
            ReqOp::Write => {
                self.writes += 1;
                self.written_bytes += r.bytes();
            }
            ReqOp::Discard => {
                self.discards += 1;
                self.discarded_bytes += r.bytes();
            }
            ReqOp::Flush => self.flushes += 1,
            // The effect of a command is known after it.
            ReqOp::Command(_) => self.commands += 1,
        }
    }
}

/// Requests that were read from the workload, with the position of the next one. A batch outlives a
/// host, so that a warm-up can end in the middle of a batch.
#[derive(Debug, Default)]
pub(crate) struct RequestBatch {
    requests: Vec<Request>,
    next: usize,
}

/// Host of a replay.
pub(crate) struct ReplayHost<'a> {
    layer: &'a mut dyn StackDevice,
    workload: &'a mut Workload,
    batch: &'a mut RequestBatch,
    verifier: Option<&'a mut Verifier>,
    written: &'a mut WrittenMap,
    pub(crate) log: Option<&'a mut RequestLog>,
    /// Ranges with hints.
    pub(crate) hinted: Option<&'a mut HintedRanges>,
    /// Latencies by class.
    pub(crate) latencies: LatencyByClass,
    /// Counts of the requests that were issued.
    pub(crate) issued: WorkloadCounts,
    /// Counts of the commands of devices.
    pub(crate) commands: CommandCounts,
    /// Sizes of the writes.
    pub(crate) write_sizes: WriteSizes,
    /// Recorded times of the first and the latest arrival.
    pub(crate) arrivals: Option<(Nanos, Nanos)>,
    /// Wall-clock time spent in the workload: parsing, decompressing, generating.
    pub(crate) workload_time: Duration,
    /// Error of the workload, if it failed.
    pub(crate) failure: Option<frit_trace::Error>,
    /// `true` if the error came from background work, not from a request.
    pub(crate) background_failed: bool,
}

impl<'a> ReplayHost<'a> {
    pub(crate) fn new(
        layer: &'a mut dyn StackDevice,
        workload: &'a mut Workload,
        batch: &'a mut RequestBatch,
        verifier: Option<&'a mut Verifier>,
        written: &'a mut WrittenMap,
    ) -> ReplayHost<'a> {
        ReplayHost {
            layer,
            workload,
            batch,
            verifier,
            written,
            log: None,
            hinted: None,
            latencies: LatencyByClass::new(),
            issued: WorkloadCounts::default(),
            commands: CommandCounts::default(),
            write_sizes: WriteSizes::new(),
            arrivals: None,
            workload_time: Duration::ZERO,
            failure: None,
            background_failed: false,
        }
    }

    /// Returns the request that was passed to the layer last.
    pub(crate) fn last(&self) -> Option<Request> {
        self.batch.requests.get(self.batch.next.wrapping_sub(1)).copied()
    }

    #[cold]
    #[inline(never)]
    fn refill(&mut self) -> Result<bool> {
        let start = Instant::now();
        let more = self.workload.fill(&mut self.batch.requests);
        self.workload_time += start.elapsed();
        self.batch.next = 0;
        match more {
            Ok(more) => Ok(more),
            Err(e) => {
                self.failure = Some(e);
                self.batch.requests.clear();
                // The caller replaces this error by `failure`.
                Err(frit_core::Error::param("workload", "", "it failed"))
            }
        }
    }

    /// Announces the next requests to the layer: see [`frit_core::BlockLayer::prefetch`].
    fn announce(&mut self) {
        let next = self.batch.requests[self.batch.next..].iter().take(PREFETCH_REQUESTS);
        let mut ranges = [(Sector(0), 0); PREFETCH_REQUESTS];
        let mut n = 0;
        for r in next.filter(|r| matches!(r.op, ReqOp::Read | ReqOp::Write)) {
            ranges[n] = (r.sector, r.sectors);
            n += 1;
        }
        self.layer.prefetch(&ranges[..n]);
    }

    /// Counts a request for the report.
    #[inline]
    fn count(&mut self, r: &Request) {
        self.issued.count(r);
        let (first, latest) = self.arrivals.unwrap_or((r.at, r.at));
        self.arrivals = Some((first, latest.max(r.at)));
        match r.op {
            ReqOp::Read => self.issued.reread_bytes += self.written.written_bytes(r),
            ReqOp::Write => {
                self.write_sizes.count(r);
                self.written.mark(r);
            }
            ReqOp::Discard | ReqOp::Flush | ReqOp::Command(_) => {}
        }
    }

    fn read(&mut self, sink: &mut Sink, r: &Request) -> Result<()> {
        if !r.is_whole() {
            return crate::byte_requests::read(self.layer, self.verifier.as_deref_mut(), sink, r);
        }
        for (at, bytes) in sector_pieces(r) {
            match &mut self.verifier {
                Some(v) => v.read(self.layer, sink, at, bytes, r.hints)?,
                None => self.layer.read(sink, at, ReadTarget::Len(bytes), r.hints)?,
            }
        }
        Ok(())
    }

    fn write(&mut self, sink: &mut Sink, r: &Request) -> Result<()> {
        if !r.is_whole() {
            let mut r = *r;
            if let Some(hinted) = &mut self.hinted {
                r.hints = hinted.of_all(&r);
            }
            return crate::byte_requests::write(self.layer, self.verifier.as_deref_mut(), sink, &r);
        }
        for (at, bytes) in sector_pieces(r) {
            let Some(hinted) = &mut self.hinted else {
                self.write_part(sink, at, bytes, r.hints)?;
                continue;
            };
            for part in hinted.split(at, bytes, r.hints) {
                self.write_part(sink, part.at, part.bytes, part.hints)?;
            }
        }
        Ok(())
    }

    #[inline]
    fn write_part(&mut self, sink: &mut Sink, at: Sector, bytes: u32, hints: Hints) -> Result<()> {
        match &mut self.verifier {
            Some(v) => v.write(self.layer, sink, at, bytes, hints),
            None => self.layer.write(sink, at, WriteData::Len(bytes), hints),
        }
    }

    fn discard(&mut self, sink: &mut Sink, r: &Request) -> Result<()> {
        let sectors = u64::from(r.sectors);
        match &mut self.verifier {
            Some(v) => v.discard(self.layer, sink, r.sector, sectors),
            None => self.layer.discard(sink, r.sector, sectors),
        }
    }

    #[cold]
    #[inline(never)]
    fn command(&mut self, sink: &mut Sink, command: DeviceCommand, r: &Request) -> Result<()> {
        let effect = device_commands::execute(self.layer, self.verifier.as_deref_mut(), sink, command, r)?;
        self.commands.count(command, r, &effect);
        if command == DeviceCommand::ReadOrMiss {
            self.issued.reads += 1;
            self.issued.read_bytes += effect.read_bytes;
            // A cache has only what was written to it.
            self.issued.reread_bytes += effect.read_bytes;
        }
        if let Some(at) = effect.written {
            let write = Request { op: ReqOp::Write, sector: at, ..*r };
            self.issued.writes += 1;
            self.issued.written_bytes += write.bytes();
            self.write_sizes.count(&write);
            self.written.mark(&write);
        }
        Ok(())
    }
}

/// Splits a range into pieces that a layer accepts: address and length in bytes.
#[inline]
pub(crate) fn pieces(mut at: u64, bytes: u64) -> impl Iterator<Item = (u64, u32)> {
    let end = at + bytes;
    std::iter::from_fn(move || {
        let piece = (at, (end - at).min(BYTES_PER_CALL_MAX) as u32);
        at += u64::from(piece.1);
        (piece.1 > 0).then_some(piece)
    })
}

/// Splits a request of whole sectors into pieces that a layer accepts.
#[inline]
fn sector_pieces(r: &Request) -> impl Iterator<Item = (Sector, u32)> + use<> {
    let bytes = u64::from(r.sectors) * SECTOR_BYTES;
    pieces(r.sector.bytes(), bytes).map(|(at, bytes)| (Sector(at / SECTOR_BYTES), bytes))
}

impl Host for ReplayHost<'_> {
    #[inline]
    fn next(&mut self) -> Result<Option<Arrival>> {
        if self.batch.next == self.batch.requests.len() && !self.refill()? {
            return Ok(None);
        }
        // An announcement covers the next PREFETCH_REQUESTS requests, so one for each batch of this
        // size is enough.
        if self.batch.next.is_multiple_of(PREFETCH_REQUESTS) {
            self.announce();
        }
        let r = &self.batch.requests[self.batch.next];
        self.batch.next += 1;
        Ok(Some(Arrival { at: r.at, class: class(r.op) }))
    }

    #[inline]
    fn serve(&mut self, sink: &mut Sink) -> Result<()> {
        let Some(r) = self.last() else { return Ok(()) };
        self.count(&r);
        if let Some(log) = &mut self.log {
            log.begin(r);
        }
        match r.op {
            ReqOp::Read => self.read(sink, &r),
            ReqOp::Write => self.write(sink, &r),
            ReqOp::Discard => self.discard(sink, &r),
            ReqOp::Flush => self.layer.flush(sink),
            ReqOp::Command(command) => self.command(sink, command, &r),
        }
    }

    #[inline]
    fn background(&mut self, sink: &mut Sink, budget: u32) -> Result<Progress> {
        let step = self.layer.step(sink, budget);
        self.background_failed = step.is_err();
        step
    }

    #[inline]
    fn done(&mut self, class: u8, times: RequestTimes) {
        self.latencies.record(class, times);
        if let Some(log) = &mut self.log {
            log.done(times);
        }
    }
}

/// Returns the class of an operation: its index in [`CLASSES`], or behind them.
#[inline]
pub(crate) fn class(op: ReqOp) -> u8 {
    match op {
        ReqOp::Read => 0,
        ReqOp::Write => 1,
        ReqOp::Discard => 2,
        ReqOp::Flush => 3,
        ReqOp::Command(command) => 4 + command as u8,
    }
}

/// Returns the operation of a class.
pub(crate) fn operation(class: u8) -> Option<ReqOp> {
    let class = usize::from(class);
    let command = || DeviceCommand::all().get(class.checked_sub(CLASSES.len())?).map(|&c| ReqOp::Command(c));
    CLASSES.get(class).copied().or_else(command)
}

/// Returns the operations that read or write data, whose latencies belong together.
pub(crate) fn data_operations() -> impl Iterator<Item = ReqOp> {
    use DeviceCommand::{ReadOrMiss, WriteClean, WriteDirty, ZoneAppend};
    let commands = [ReadOrMiss, WriteDirty, WriteClean, ZoneAppend].map(ReqOp::Command);
    [ReqOp::Read, ReqOp::Write].into_iter().chain(commands)
}

/// Describes a request, for an error message.
pub(crate) fn describe_request(r: &Request) -> String {
    let op = r.op.name();
    match r.op {
        ReqOp::Flush => op.into(),
        _ if !r.is_whole() => {
            format!("{op} of {} bytes at byte {}, arriving at {}", r.bytes(), r.offset(), format_time(r.at))
        }
        _ => format!(
            "{op} of {} sectors at sector {}, arriving at {}",
            r.sectors,
            r.sector.0,
            format_time(r.at)
        ),
    }
}

fn format_time(t: Nanos) -> String {
    format!("{:.6} s", t.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use frit_core::Hints;
    use frit_trace::SectorCut;

    #[test]
    fn a_class_has_one_operation() {
        let all = CLASSES.into_iter().chain(DeviceCommand::all().iter().map(|&c| ReqOp::Command(c)));
        let classes: Vec<u8> = all.map(class).collect();
        assert_eq!(classes, (0..15).collect::<Vec<u8>>());
        assert!(classes.iter().all(|&c| operation(c).map(class) == Some(c)));
        assert_eq!(operation(15), None);
    }

    #[test]
    fn long_requests_go_in_pieces() {
        const SECTORS_MAX: u32 = 1 << 21;
        let r = |sectors| Request {
            at: Nanos(0),
            sector: Sector(5),
            sectors,
            device: 0,
            op: ReqOp::Read,
            hints: Hints::NONE,
            cut: SectorCut::NONE,
        };
        assert_eq!(sector_pieces(&r(8)).collect::<Vec<_>>(), [(Sector(5), 4096)]);
        let long: Vec<_> = sector_pieces(&r(SECTORS_MAX + 1)).collect();
        assert_eq!(long, [(Sector(5), 1 << 30), (Sector(5 + u64::from(SECTORS_MAX)), 512)]);
        assert_eq!(sector_pieces(&r(0)).count(), 0);
        assert_eq!(pieces(7, (1 << 30) + 3).collect::<Vec<_>>(), [(7, 1 << 30), (7 + (1 << 30), 3)]);
    }
}

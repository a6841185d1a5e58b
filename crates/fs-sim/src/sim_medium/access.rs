//! Translation of accesses into requests over the link and commands to the memory.

use super::{MediumCall, RecordedCall, SimState};
use crate::area::{Area, MediumAccess};
use frit_core::{Cause, Op, ReadTarget, Tok, WriteData};

/// Bytes that a fence reads over the link: a status word which shows that all programming is
/// complete.
const STATUS_BYTES: u32 = 4;
/// Bytes of zeros in one write.
const ZEROS: usize = 4096;

/// Returns the result of a device. Errors cannot occur: the file system stays within its medium,
/// and memory does not fail.
#[allow(clippy::panic)]
pub(super) fn expect_access<T>(answer: frit_core::Result<T>) -> T {
    match answer {
        Ok(answer) => answer,
        Err(error) => panic!("the modelled memory refused an access of the file system: {error}"),
    }
}

/// Splits an access into requests: position and length of each. With `burst` 0 the access is one
/// request.
pub(super) fn requests(at: u64, len: u64, burst: u64) -> impl Iterator<Item = (u64, u32)> {
    let mut from = at;
    let end = at + len;
    std::iter::from_fn(move || {
        if from == end {
            return None;
        }
        let next = from.checked_div(burst).map_or(end, |n| end.min((n + 1) * burst));
        let request = (from, (next - from) as u32);
        from = next;
        Some(request)
    })
}

impl SimState {
    /// Records a call and its commands.
    fn step(&mut self, call: MediumCall, at: u64, bytes: u64, area: Option<Area>, first: u64) {
        if let Some(steps) = &mut self.steps {
            steps.push(RecordedCall { call, at, bytes, area, first, end: self.issued });
        }
    }

    /// Returns the number of commands for a cause so far, and the bytes that the memory wrote for
    /// it.
    fn counted(&self, cause: Cause) -> (u64, u64) {
        let counts = self.pcm.counts();
        let (read, write) = (counts.get(Op::PcmRead, cause), counts.get(Op::PcmWrite, cause));
        (read.commands + write.commands, write.bytes)
    }

    pub(super) fn read(&mut self, at: u64, into: &mut [u8]) {
        let len = into.len() as u64;
        if len == 0 {
            return;
        }
        let area = self.areas.of(MediumAccess::Read, at, len);
        let (cause, first) = (area.cause(), self.issued);
        let before = self.counted(cause);
        let burst = self.host.values.burst_bytes.0;
        let depth = self.host.values.outstanding as usize;
        let mut rest = into;
        let mut done = self.cpu;
        self.loads.clear();
        for (from, n) in requests(at, len, burst) {
            let (part, later) = std::mem::take(&mut rest).split_at_mut(n as usize);
            rest = later;
            // At most `depth` requests of a load are in flight: a further one waits for the oldest.
            let after = match self.loads.len() >= depth {
                true => self.loads.pop_front().map_or(self.cpu, |tok| self.sink.join(self.cpu, tok)),
                false => self.cpu,
            };
            let mut tok =
                expect_access(self.pcm.read(&mut self.sink, from, ReadTarget::Bytes(part), cause, after));
            if let Some(link) = &mut self.link {
                // The processor fetches whole lines.
                let carried = n.max(burst as u32);
                tok = expect_access(link.receive(&mut self.sink, carried, cause, tok));
                self.issued += 1;
            }
            self.loads.push_back(tok);
            done = if from == at { tok } else { self.sink.join(done, tok) };
        }
        self.cpu = done;
        let now = self.counted(cause);
        self.issued += now.0 - before.0;
        self.copy(len, cause);
        let count = self.traffic.of_mut(area);
        count.reads += 1;
        count.read_bytes += len;
        count.commands += now.0 - before.0;
        self.step(MediumCall::Read, at, len, Some(area), first);
    }

    /// Adds the processor's time for copying bytes.
    fn copy(&mut self, len: u64, cause: Cause) {
        if let Some(copies) = &mut self.copies {
            self.cpu = expect_access(copies.send(&mut self.sink, len as u32, cause, self.cpu));
            self.issued += 1;
        }
    }

    pub(super) fn write(&mut self, access: MediumAccess, at: u64, data: &[u8]) {
        let len = data.len() as u64;
        if len == 0 {
            return;
        }
        let area = self.areas.of(access, at, len);
        let first = self.issued;
        self.copy(len, area.cause());
        self.store(area, at, data);
        self.traffic.of_mut(area).writes += 1;
        self.step(MediumCall::Write, at, len, Some(area), first);
    }

    /// Writes zeros. Formatting zeroes several regions at once: the part in each is a call of its
    /// own, so that it counts for its area.
    pub(super) fn zero(&mut self, at: u64, len: u64) {
        let (mut from, end) = (at, at + len);
        while from < end {
            let next = self.areas.region_end(from).min(end);
            self.zero_region(from, next - from);
            from = next;
        }
    }

    fn zero_region(&mut self, at: u64, len: u64) {
        let area = self.areas.of(MediumAccess::Zero, at, len);
        let first = self.issued;
        let zeros = [0; ZEROS];
        for (from, n) in requests(at, len, ZEROS as u64) {
            self.store(area, from, &zeros[..n as usize]);
        }
        self.traffic.of_mut(area).writes += 1;
        self.step(MediumCall::Zero, at, len, Some(area), first);
    }

    /// Posts bytes: each request crosses the link and is then written by the memory, without a wait
    /// for the write.
    fn store(&mut self, area: Area, at: u64, data: &[u8]) {
        let cause = area.cause();
        let before = self.counted(cause);
        let mut rest = data;
        for (from, n) in requests(at, data.len() as u64, self.host.values.burst_bytes.0) {
            let (part, later) = rest.split_at(n as usize);
            rest = later;
            if let Some(link) = &mut self.link {
                self.cpu = expect_access(link.send(&mut self.sink, n, cause, self.cpu));
                self.issued += 1;
            }
            let tok =
                expect_access(self.pcm.write(&mut self.sink, from, WriteData::Bytes(part), cause, self.cpu));
            self.post(tok, n);
        }
        let now = self.counted(cause);
        self.issued += now.0 - before.0;
        let count = self.traffic.of_mut(area);
        count.written_bytes += data.len() as u64;
        count.commands += now.0 - before.0;
        count.medium_bytes += now.1 - before.1;
    }

    /// Adds a posted store. If too many bytes are posted, the processor waits for the oldest
    /// stores.
    fn post(&mut self, tok: Tok, bytes: u32) {
        self.posted.push_back((tok, bytes));
        self.posted_bytes += u64::from(bytes);
        while self.posted_bytes > self.host.values.posted_bytes.0 {
            let Some((oldest, n)) = self.posted.pop_front() else { return };
            self.posted_bytes -= u64::from(n);
            self.cpu = self.sink.join(self.cpu, oldest);
        }
    }

    pub(super) fn fence(&mut self) {
        let first = self.issued;
        let mut all = self.cpu;
        for (tok, _) in self.posted.drain(..) {
            all = self.sink.join(all, tok);
        }
        self.posted_bytes = 0;
        self.cpu = self.pcm.fence(&mut self.sink, all);
        self.issued += u64::from(self.pcm.geometry().units());
        if let Some(link) = &mut self.link {
            self.cpu = expect_access(link.receive(&mut self.sink, STATUS_BYTES, Cause::Meta, self.cpu));
            self.issued += 1;
        }
        self.traffic.fences += 1;
        self.step(MediumCall::Fence, 0, 0, None, first);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_access_is_cut_at_multiples_of_the_burst() {
        let cut = |at, len, burst| requests(at, len, burst).collect::<Vec<_>>();
        assert_eq!(cut(60, 72, 64), [(60, 4), (64, 64), (128, 4)]);
        assert_eq!(cut(64, 64, 64), [(64, 64)]);
        assert_eq!(cut(5, 1000, 0), [(5, 1000)]);
        assert_eq!(cut(5, 0, 64), []);
    }
}

//! Writes with hints by rules of the operator: their parts, and what the detector has to read.

use super::{Device, DeviceGuard, Failure};
use crate::backend::ReplyTime;
use crate::hints::{ClientHints, Detector, HintRules, Marks};
use frit_core::{HintRange, Hints};

type Result<T> = std::result::Result<T, Failure>;

/// Maximum number of reads of the detector after one request, of at most 64 KiB each. Further ones
/// follow after the next request, so that no client waits for long.
const READS_MAX: usize = 512;

/// Marks of the parts of a write.
#[derive(Default, Debug)]
pub(super) struct MarkedWrite {
    /// Marks of at least one part.
    pub(super) any: Marks,
    /// Hints of all parts; `None` before the first part.
    pub(super) common: Option<Hints>,
}

impl MarkedWrite {
    pub(super) fn add(&mut self, marks: Marks) {
        let (hints, before) = (marks.hints(), self.common.unwrap_or(marks.hints()));
        // Only the hints that both have are common.
        self.common = Some(hints.without(hints.without(before)));
        self.any = self.any.with(marks);
    }
}

/// Hints of a device, as shown to operators.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct DeviceHints {
    /// Ranges with a hint, in order of addresses.
    pub ranges: Vec<HintRange>,
    /// The detector of metadata is on.
    pub detecting: bool,
    /// File systems that the detector has found.
    pub file_systems: Vec<String>,
}

impl Device {
    /// Adds a range whose writes have a hint. Returns `false` if the same rule exists.
    ///
    /// # Errors
    /// The range ends outside the device, or there are too many.
    pub fn add_hint(&self, range: HintRange) -> std::result::Result<bool, String> {
        self.lock().change_hints(|rules| rules.add(range))
    }

    /// Removes a range. Returns `false` if there is no such rule.
    pub fn remove_hint(&self, range: HintRange) -> bool {
        self.lock().change_hints(|rules| rules.remove(range))
    }

    /// Switches the detector of metadata on or off. Returns `true` if this is a change. A detector
    /// that is switched on reads the places of superblocks and what they refer to.
    pub fn detect_metadata(&self, on: bool) -> bool {
        let mut access = self.lock();
        let changed = access.change_hints(|rules| rules.detect(on));
        access.learn();
        changed
    }

    /// Returns the hints in effect.
    pub fn hints(&self) -> DeviceHints {
        let state = self.state.lock();
        let Some(rules) = &state.hints else { return DeviceHints::default() };
        DeviceHints {
            ranges: rules.ranges().to_vec(),
            detecting: rules.detector().is_some(),
            file_systems: rules.detector().map(Detector::file_systems).unwrap_or_default(),
        }
    }

    /// Returns the hints of the writes of a process.
    pub(crate) fn process_hints(&self, pid: u32) -> Hints {
        self.processes.as_ref().map_or(Hints::NONE, |p| p.of(pid))
    }
}

impl DeviceGuard<'_> {
    fn change_hints<T>(&mut self, change: impl FnOnce(&mut HintRules) -> T) -> T {
        let (bytes, page) = (self.device.bytes(), self.device.page_bytes());
        let rules = self.state.hints.get_or_insert_with(|| Box::new(HintRules::new(bytes, page)));
        let result = change(rules);
        if rules.is_empty() {
            self.state.hints = None;
        }
        result
    }

    /// Writes a slice in parts of equal hints.
    pub(super) fn write_parts(
        &mut self,
        at: u64,
        data: &[u8],
        yield_first: bool,
        client: ClientHints,
        marked: &mut MarkedWrite,
    ) -> Result<ReplyTime> {
        let mut parts = std::mem::take(&mut self.state.parts);
        if let Some(rules) = &mut self.state.hints {
            rules.mark(at, data, client, &mut parts);
        }
        let (mut done, mut pos) = (Ok(ReplyTime::NOW), 0);
        for run in parts.chunk_by(|a, b| a.marks.hints() == b.marks.hints()) {
            for part in run {
                self.state.counters.hints.add_bytes(part.marks, part.len as u64);
                marked.add(part.marks);
            }
            let len: usize = run.iter().map(|part| part.len).sum();
            let hints = client.own.with(run[0].marks.hints());
            let part =
                self.write_aligned(at + pos as u64, &data[pos..pos + len], yield_first && pos == 0, hints);
            done = done.and_then(|done| part.map(|part| done.and(part)));
            if done.is_err() {
                break;
            }
            pos += len;
        }
        self.state.parts = parts;
        done
    }

    /// Returns the hints of a write that is not aligned to sectors, which is written as a whole.
    pub(super) fn mark_whole(
        &mut self,
        at: u64,
        data: &[u8],
        client: ClientHints,
        marked: &mut MarkedWrite,
    ) -> Hints {
        let mut marks = Marks::of_client(client);
        if let Some(rules) = &mut self.state.hints {
            let mut parts = Vec::new();
            rules.mark(at, data, client, &mut parts);
            marks = parts.iter().fold(marks, |all, part| all.with(part.marks));
        }
        self.state.counters.hints.add_bytes(marks, data.len() as u64);
        marked.add(marks);
        client.own.with(marks.hints())
    }

    /// Notes zeros for the detector, which forgets a file system without its superblock.
    pub(super) fn note_zeroed(&mut self, at: u64, len: u64, succeeded: bool) {
        if let Some(rules) = self.state.hints.as_mut().filter(|_| succeeded) {
            rules.zeroed(at, len);
        }
        self.learn();
    }

    /// Reads what the detector asks for: places that a new superblock names. A read that fails is
    /// left out, since the request of the client does not depend on it.
    pub(super) fn learn(&mut self) {
        for _ in 0..READS_MAX {
            let wanted = self.state.hints.as_mut().and_then(|rules| rules.wanted());
            let Some(range) = wanted else { return };
            let mut bytes = vec![0; (range.end - range.start) as usize];
            let read = self.read_sectors(range.start, &mut bytes);
            if let (Ok(_), Some(rules)) = (read, &mut self.state.hints) {
                rules.supply(range.start, &bytes);
            }
        }
    }
}

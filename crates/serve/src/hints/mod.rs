//! Hints that the server gives to writes, by rules of its operator.
//!
//! NBD and FUSE transmit no hint, so a layer that places data by hints ([`frit_core::Hints`]) would
//! never see one. [`HintRules`] is the one place that gives hints to the requests of a device: by
//! ranges, by a detector of file-system metadata ([`Detector`]), and by what a protocol itself says
//! of a request. All protocols write through the device, which applies the
//! rules. A device without rules has none of this work.
//!
//! A write whose pages have different hints is passed on in parts. Parts end at page boundaries, so
//! each page is still written at once.

pub mod detect;
mod options;
mod process;
mod rule_file;
mod source;

pub use detect::Detector;
pub use options::{HintOptions, ProcessRule};
pub(crate) use process::ProcessHints;
pub use rule_file::{HintFile, SavedHints};
pub(crate) use source::{ClientHints, Marks};
pub use source::{HintCount, HintCounters, HintSource};

use frit_core::{HintMap, HintRange};
use std::ops::Range;

/// Maximum number of ranges.
pub const RANGES_MAX: usize = 4096;

/// Rules that give hints to the writes of a device.
#[derive(Debug)]
pub struct HintRules {
    bytes: u64,
    align: u64,
    ranges: Vec<HintRange>,
    map: HintMap,
    detector: Option<Detector>,
    /// Marks of the pages of the current write.
    pages: Vec<Marks>,
}

/// Part of a write whose pages have equal marks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct MarkedPart {
    pub(crate) len: usize,
    pub(crate) marks: Marks,
}

impl HintRules {
    /// Creates an empty set of rules for a device of `bytes` bytes that maps pages of `page_bytes`.
    #[must_use]
    pub fn new(bytes: u64, page_bytes: u32) -> HintRules {
        let align = HintMap::unit(page_bytes);
        let (ranges, map, pages) = (Vec::new(), HintMap::default(), Vec::new());
        HintRules { bytes, align, ranges, map, detector: None, pages }
    }

    /// Returns `true` if no write can be marked.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty() && self.detector.is_none()
    }

    /// Returns the ranges, in order of addresses.
    #[must_use]
    pub fn ranges(&self) -> &[HintRange] {
        &self.ranges
    }

    /// Returns the detector, if it is on.
    #[must_use]
    pub fn detector(&self) -> Option<&Detector> {
        self.detector.as_ref()
    }

    /// Adds a range. Returns `false` if the same rule exists.
    ///
    /// # Errors
    /// The range ends outside the device, or there are [`RANGES_MAX`] ranges.
    pub fn add(&mut self, range: HintRange) -> Result<bool, String> {
        if range.end() > self.bytes {
            return Err(format!("{range} ends beyond the volume, which has {} bytes", self.bytes));
        }
        match self.ranges.binary_search(&range) {
            Ok(_) => Ok(false),
            Err(_) if self.ranges.len() >= RANGES_MAX => {
                Err(format!("there are {RANGES_MAX} ranges already, the maximum"))
            }
            Err(at) => {
                self.ranges.insert(at, range);
                self.map = HintMap::new(&self.ranges, self.align);
                Ok(true)
            }
        }
    }

    /// Removes a range. Returns `false` if there is no such rule.
    pub fn remove(&mut self, range: HintRange) -> bool {
        let found = self.ranges.binary_search(&range);
        if let Ok(at) = found {
            self.ranges.remove(at);
            self.map = HintMap::new(&self.ranges, self.align);
        }
        found.is_ok()
    }

    /// Switches the detector on or off. Returns `true` if this is a change. After switching it on,
    /// the ranges that it wants to read have to be supplied.
    pub fn detect(&mut self, on: bool) -> bool {
        if on == self.detector.is_some() {
            return false;
        }
        self.detector = on.then(|| Detector::new(self.bytes));
        true
    }

    /// Splits a write into parts of equal marks.
    pub(crate) fn mark(&mut self, at: u64, data: &[u8], client: ClientHints, parts: &mut Vec<MarkedPart>) {
        parts.clear();
        let (end, first) = (at + data.len() as u64, at / self.align);
        let count = (end.div_ceil(self.align) - first) as usize;
        self.pages.clear();
        self.pages.resize(count, Marks::of_client(client));
        let (align, pages) = (self.align, &mut self.pages);
        let mut mark = |range: Range<u64>, marks: Marks| {
            let touched =
                (range.start / align - first) as usize..(range.end.div_ceil(align) - first) as usize;
            pages[touched].iter_mut().for_each(|page| *page = page.with(marks));
        };
        for span in self.map.overlapping(at, data.len() as u64) {
            mark(span.at..span.end, Marks::of(HintSource::Range, span.hints));
        }
        if let Some(detector) = &mut self.detector {
            let found = Marks::of(HintSource::Detector, frit_core::Hints::METADATA);
            detector.observe(at, data, &mut |range| mark(range, found));
        }
        let mut from = at;
        for run in self.pages.chunk_by(|a, b| a == b) {
            let to = (from / self.align + run.len() as u64) * self.align;
            parts.push(MarkedPart { len: (to.min(end) - from) as usize, marks: run[0] });
            from = to;
        }
    }

    /// Notes that a range reads as zeros from now on.
    pub(crate) fn zeroed(&mut self, at: u64, len: u64) {
        if let Some(detector) = &mut self.detector {
            detector.zeroed(at, len);
        }
    }

    /// Returns the next range that the detector wants to read.
    pub(crate) fn wanted(&mut self) -> Option<Range<u64>> {
        self.detector.as_mut()?.wanted()
    }

    /// Passes bytes that the detector wanted.
    pub(crate) fn supply(&mut self, at: u64, data: &[u8]) {
        if let Some(detector) = &mut self.detector {
            detector.supply(at, data);
        }
    }
}

#[cfg(test)]
mod tests;

//! [`DetectionArea`]: a volume or a partition that may hold a file system.

use super::btrfs::{self, Btrfs};
use super::bytes::slice_at;
use super::ext4::{self, Ext4};
use super::xfs::{self, Xfs};
use frit_core::{HintMap, HintSpan, Hints};
use std::collections::VecDeque;
use std::ops::Range;

/// A detected file system.
#[derive(Debug)]
enum DetectedFs {
    Ext4(Box<Ext4>),
    Xfs(Box<Xfs>),
    Btrfs(Box<Btrfs>),
}

/// FsKind of a file system, with the place of its superblock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum FsKind {
    Ext4,
    Xfs,
    Btrfs,
}

impl FsKind {
    const ALL: [FsKind; 3] = [FsKind::Ext4, FsKind::Xfs, FsKind::Btrfs];

    fn superblock(self) -> Range<u64> {
        match self {
            FsKind::Ext4 => ext4::SUPERBLOCK,
            FsKind::Xfs => xfs::SUPERBLOCK,
            FsKind::Btrfs => btrfs::SUPERBLOCK,
        }
    }

    fn parse(self, superblock: &[u8], bytes: u64) -> Option<DetectedFs> {
        match self {
            FsKind::Ext4 => Ext4::parse(superblock, bytes).map(|fs| DetectedFs::Ext4(Box::new(fs))),
            FsKind::Xfs => Xfs::parse(superblock, bytes).map(|fs| DetectedFs::Xfs(Box::new(fs))),
            FsKind::Btrfs => Btrfs::parse(superblock, bytes).map(|fs| DetectedFs::Btrfs(Box::new(fs))),
        }
    }
}

impl DetectedFs {
    fn kind(&self) -> FsKind {
        match self {
            DetectedFs::Ext4(_) => FsKind::Ext4,
            DetectedFs::Xfs(_) => FsKind::Xfs,
            DetectedFs::Btrfs(_) => FsKind::Btrfs,
        }
    }

    /// Returns `true` if another superblock describes the same places.
    fn same_layout(&self, other: &DetectedFs) -> bool {
        match (self, other) {
            (DetectedFs::Ext4(a), DetectedFs::Ext4(b)) => a.same_layout(b),
            (DetectedFs::Xfs(a), DetectedFs::Xfs(b)) => a == b,
            (DetectedFs::Btrfs(a), DetectedFs::Btrfs(b)) => a.same_layout(b),
            _ => false,
        }
    }

    /// Returns the places that are metadata whatever they contain.
    fn spans(&self) -> Vec<Range<u64>> {
        match self {
            DetectedFs::Ext4(fs) => fs.spans(),
            DetectedFs::Xfs(fs) => fs.spans(),
            DetectedFs::Btrfs(fs) => fs.spans(),
        }
    }

    fn describe(&self) -> String {
        match self {
            DetectedFs::Ext4(fs) => fs.describe(),
            DetectedFs::Xfs(fs) => fs.describe(),
            DetectedFs::Btrfs(fs) => fs.describe(),
        }
    }
}

/// A volume or a partition. Addresses of calls are those of the volume; the code of file systems
/// sees addresses from the start of the area.
#[derive(Debug)]
pub(super) struct DetectionArea {
    start: u64,
    bytes: u64,
    file_system: Option<DetectedFs>,
    map: HintMap,
    /// Ranges to read, from the start of the area.
    reads: VecDeque<Range<u64>>,
}

impl DetectionArea {
    /// Creates an area whose contents are unknown.
    pub(super) fn new(start: u64, bytes: u64) -> DetectionArea {
        let superblocks = FsKind::ALL.map(FsKind::superblock).into_iter().filter(|s| s.end <= bytes);
        DetectionArea {
            start,
            bytes,
            file_system: None,
            map: HintMap::default(),
            reads: superblocks.collect(),
        }
    }

    pub(super) fn range(&self) -> Range<u64> {
        self.start..self.start + self.bytes
    }

    pub(super) fn has_file_system(&self) -> bool {
        self.file_system.is_some()
    }

    pub(super) fn describe(&self) -> Option<String> {
        self.file_system.as_ref().map(DetectedFs::describe)
    }

    /// Passes the metadata of a write to `each`.
    pub(super) fn observe(&mut self, at: u64, data: &[u8], each: &mut dyn FnMut(Range<u64>)) {
        let Some((at, data)) = self.inside(at, data) else { return };
        self.learn(at, data, true);
        for span in self.map.overlapping(at, data.len() as u64) {
            each(span.at + self.start..span.end + self.start);
        }
        let (start, end) = (self.start, at + data.len() as u64);
        // A structure may be longer than the write that begins it.
        let mut found = |range: Range<u64>| each(range.start + start..range.end.min(end) + start);
        match &mut self.file_system {
            Some(DetectedFs::Ext4(fs)) => fs.content(at, data, &mut found),
            Some(DetectedFs::Xfs(fs)) => fs.content(at, data, &mut found),
            Some(DetectedFs::Btrfs(fs)) => fs.content(at, data, &mut found),
            None => {}
        }
    }

    /// Takes bytes that were wanted.
    pub(super) fn supply(&mut self, at: u64, data: &[u8]) {
        if let Some((at, data)) = self.inside(at, data) {
            self.learn(at, data, false);
        }
    }

    /// Notes that a range reads as zeros. A file system whose superblock is gone is forgotten.
    pub(super) fn zeroed(&mut self, at: u64, len: u64) {
        let Some(fs) = &self.file_system else { return };
        let superblock = fs.kind().superblock();
        if at <= self.start + superblock.start && at.saturating_add(len) >= self.start + superblock.end {
            self.replace(None);
        }
    }

    /// Returns the next range to read.
    pub(super) fn wanted(&mut self) -> Option<Range<u64>> {
        loop {
            let range = self.reads.pop_front()?;
            if range.start < range.end && range.end <= self.bytes {
                return Some(range.start + self.start..range.end + self.start);
            }
        }
    }

    /// Returns the part of a write inside the area, with its address from the start of the area.
    fn inside<'d>(&self, at: u64, data: &'d [u8]) -> Option<(u64, &'d [u8])> {
        let end = (at + data.len() as u64).min(self.start + self.bytes);
        let from = at.max(self.start);
        (from < end).then(|| (from - self.start, &data[(from - at) as usize..(end - at) as usize]))
    }

    /// Updates the known places from bytes at an address, of a write or of a read.
    #[inline]
    fn learn(&mut self, at: u64, data: &[u8], written: bool) {
        if at < btrfs::SUPERBLOCK.end {
            self.find_superblock(at, data, written);
        }
        if let Some(DetectedFs::Ext4(fs)) = &mut self.file_system
            && fs.learn(at, data, &mut self.reads)
        {
            self.rebuild();
        }
    }

    fn find_superblock(&mut self, at: u64, data: &[u8], written: bool) {
        let end = at + data.len() as u64;
        for kind in FsKind::ALL {
            let place = kind.superblock();
            if end <= place.start || at >= place.end || place.end > self.bytes {
                continue;
            }
            let Some(superblock) = slice_at(data, at, place.start, (place.end - place.start) as usize) else {
                // After a write of a part, the whole is read. A read changes nothing: if it asked for
                // another one, two overlapping areas would ask without end.
                if written {
                    self.reads.push_back(place);
                }
                continue;
            };
            match (kind.parse(superblock, self.bytes), &self.file_system) {
                // A file system stays until its own superblock is gone: the place of another kind's
                // superblock can lie in a file.
                (_, Some(known)) if known.kind() != kind => {}
                (Some(new), Some(known)) if new.same_layout(known) => {}
                (Some(new), _) => self.replace(Some(new)),
                (None, Some(_)) => self.replace(None),
                (None, None) => {}
            }
        }
    }

    fn replace(&mut self, new: Option<DetectedFs>) {
        self.reads.clear();
        self.file_system = new;
        if let Some(DetectedFs::Ext4(fs)) = &mut self.file_system {
            fs.begin(&mut self.reads);
        }
        self.rebuild();
    }

    fn rebuild(&mut self) {
        let spans = self.file_system.as_ref().map(DetectedFs::spans).unwrap_or_default();
        let span =
            |r: Range<u64>| HintSpan { at: r.start, end: r.end.min(self.bytes), hints: Hints::METADATA };
        self.map = HintMap::of_spans(spans.into_iter().map(span), 1);
    }
}

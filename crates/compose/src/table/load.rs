//! The start: reads both copies of a table, and takes the newest valid copy of each sector.

use super::commit::{Fill, RUN, Table};
use super::layout::COPIES;
use super::sector::{FoundSuperblock, SECTOR_LEN, payload, read_superblock, seq_of};
use crate::planted::TableBug;
use frit_core::planted::is_planted;
use frit_core::{BlockDevice, Cause, Error, ReadTarget, Result, Sink, Tok};

/// Result of a start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Loaded {
    /// The media hold no bytes, and the state in DRAM is that of this instance.
    Kept,
    /// The entries were read.
    Read {
        /// Number of sectors of which one copy was damaged or older than the other.
        unequal: u32,
        /// Number of bytes that were read.
        bytes: u64,
    },
}

impl Table {
    /// Reads the table. `take` receives the entries of each sector, in ascending order, or `None`
    /// for a sector of which both copies are damaged.
    ///
    /// [`Table::settle`] completes the start.
    ///
    /// # Errors
    /// A device that was never formatted or belongs to another configuration, or a failure of it.
    pub(crate) fn load(
        &mut self,
        sink: &mut Sink,
        device: &mut dyn BlockDevice,
        take: &mut dyn FnMut(u32, Option<&[u8]>),
    ) -> Result<Loaded> {
        if !self.read_superblocks(sink, device)? {
            return Ok(Loaded::Kept);
        }
        self.accept();
        self.changed.clear();
        self.lost.clear();
        let (mut unequal, mut newest, mut bytes) = (0, 0, 0);
        let mut copies = [Vec::new(), Vec::new()];
        let mut first = 0;
        while first < self.layout.sectors {
            let n = RUN.min(self.layout.sectors - first);
            for (copy, buffer) in (0..COPIES).zip(&mut copies) {
                buffer.resize(n as usize * SECTOR_LEN, 0);
                self.read_run(sink, device, copy, first, buffer);
                bytes += buffer.len() as u64;
            }
            let [a, b] = &copies;
            for (i, (a, b)) in (first..).zip(a.chunks_exact(SECTOR_LEN).zip(b.chunks_exact(SECTOR_LEN))) {
                let unchecked = is_planted(TableBug::CrcIgnored);
                let seqs = [a, b].map(|s| seq_of(&self.kind, i, s, unchecked));
                let taken = match seqs {
                    [Some(_), Some(_)] if is_planted(TableBug::SequenceIgnored) => Some(a),
                    [Some(x), Some(y)] if y > x => Some(b),
                    [Some(_), _] => Some(a),
                    [None, Some(_)] => Some(b),
                    [None, None] => None,
                };
                newest = newest.max(seqs[0].max(seqs[1]).unwrap_or(0));
                if taken.is_none() {
                    self.lost.push(i);
                } else if seqs[0] != seqs[1] {
                    // The copies have to be equal before anything relies on this sector.
                    self.changed.add(i);
                    unequal += 1;
                }
                take(i, taken.map(payload));
            }
            first += n;
        }
        self.next_seq = newest + 1;
        Ok(Loaded::Read { unequal, bytes })
    }

    /// Makes durable what the start has read: after a crash of the process, a sector can be in the
    /// cache of the device only. What the entries do not name may be used afterwards. If the device
    /// has become read-only, the table is read-only too, and what it names stays readable.
    ///
    /// # Errors
    /// A failure of the device.
    pub(crate) fn settle(
        &mut self,
        sink: &mut Sink,
        device: &mut dyn BlockDevice,
        fill: Fill<'_>,
    ) -> Result<Tok> {
        match self.write_settled(sink, device, fill) {
            Err(Error::ReadOnly { why }) => {
                self.refuse(why);
                Ok(sink.start())
            }
            settled => settled,
        }
    }

    fn write_settled(
        &mut self,
        sink: &mut Sink,
        device: &mut dyn BlockDevice,
        fill: Fill<'_>,
    ) -> Result<Tok> {
        let start = sink.start();
        if self.superblock_damaged {
            self.write_superblocks(sink, device, start)?;
        }
        self.commit(sink, device, start, fill)
    }

    /// Returns `true` if the device has a table of this shape, and `false` if its media hold no
    /// bytes.
    fn read_superblocks(&mut self, sink: &mut Sink, device: &mut dyn BlockDevice) -> Result<bool> {
        let layer = self.kind.layer;
        let mut found = Vec::new();
        for copy in 0..COPIES {
            let mut b = [0; SECTOR_LEN];
            let (at, start) = (self.layout.superblock_at(copy), sink.start());
            let read = device.read(sink, at, ReadTarget::Bytes(&mut b), Cause::Meta, start);
            found.push(match read {
                Ok(_) => read_superblock(&self.kind, copy, &b),
                Err(_) => FoundSuperblock::Other,
            });
        }
        let valid =
            found.iter().find_map(|f| if let FoundSuperblock::Valid(s) = f { Some(*s) } else { None });
        match valid {
            Some(shape) if shape == self.shape => {
                self.formatted = true;
                self.superblock_damaged = found.iter().any(|f| *f != FoundSuperblock::Valid(shape));
                Ok(true)
            }
            Some(other) => Err(Error::Medium {
                what: format!(
                    "the device holds a {layer} of {} bytes in chunks of {} on a device of {} bytes, and the \
                     stack has {} in chunks of {} on {}; use the stack that formatted it",
                    other.size,
                    other.chunk,
                    other.device_bytes,
                    self.shape.size,
                    self.shape.chunk,
                    self.shape.device_bytes
                ),
            }),
            // What this instance has written reads as zeros only if no bytes are stored.
            None if self.formatted && found.iter().all(|f| *f == FoundSuperblock::Blank) => Ok(false),
            None => Err(Error::Medium {
                what: format!(
                    "the device has no valid superblock of {layer}: it was never formatted, or both copies \
                     are damaged"
                ),
            }),
        }
    }

    /// Reads a run of sectors. A sector that cannot be read is zeros, which no sector of a table is.
    pub(super) fn read_run(
        &self,
        sink: &mut Sink,
        device: &mut dyn BlockDevice,
        copy: u32,
        first: u32,
        into: &mut [u8],
    ) {
        let mut read = |at, b: &mut [u8]| {
            let start = sink.start();
            device.read(sink, at, ReadTarget::Bytes(b), Cause::Meta, start).is_ok()
        };
        if read(self.layout.sector_at(copy, first), into) {
            return;
        }
        for (i, sector) in (first..).zip(into.chunks_exact_mut(SECTOR_LEN)) {
            if !read(self.layout.sector_at(copy, i), sector) {
                sector.fill(0);
            }
        }
    }
}

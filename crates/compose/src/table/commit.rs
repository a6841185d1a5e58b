//! Changes of a table, and their commit.

use super::layout::{COPIES, TableKind, TableLayout, VolumeShape};
use super::sector::{SECTOR_LEN, encode, superblock};
use super::sector_set::SectorSet;
use crate::planted::TableBug;
use frit_core::planted::is_planted;
use frit_core::{BlockDevice, Cause, Error, MediumKind, Result, Sink, Tok, WriteData};

/// Largest number of sectors that are read or written together: 1 MiB.
pub(super) const RUN: u32 = 2048;

/// Writes the entries of a sector over zeros.
pub(crate) type Fill<'a> = &'a dyn Fn(u32, &mut [u8]);

/// State of a table. Its entries are in the layer, which adds each change with [`Table::change`].
#[derive(Debug)]
pub(crate) struct Table {
    pub(super) kind: TableKind,
    pub(super) shape: VolumeShape,
    pub(super) layout: TableLayout,
    /// Sequence number of the next commit.
    pub(super) next_seq: u64,
    /// Sectors whose copies on the device are not those of DRAM.
    pub(super) changed: SectorSet,
    /// Sectors whose copies were damaged at the last start.
    pub(super) lost: Vec<u32>,
    /// `true` if this instance has written its superblock or read it.
    pub(super) formatted: bool,
    /// `true` if a copy of the superblock was damaged at the last start.
    pub(super) superblock_damaged: bool,
    /// Reason for which the layer refuses writes.
    failed: Option<String>,
    buffer: Vec<u8>,
}

impl Table {
    /// Creates the table of a new device, which is blank.
    pub(crate) fn new(kind: TableKind, shape: VolumeShape, layout: TableLayout) -> Table {
        Table {
            kind,
            shape,
            layout,
            next_seq: 1,
            changed: SectorSet::new(layout.sectors),
            lost: Vec::new(),
            formatted: false,
            superblock_damaged: false,
            failed: None,
            buffer: Vec::new(),
        }
    }

    /// Returns the reason for which the layer refuses writes.
    pub(crate) fn refuses(&self) -> Option<&str> {
        self.failed.as_deref()
    }

    /// Makes the layer refuse writes.
    pub(crate) fn refuse(&mut self, why: impl Into<String>) {
        self.failed.get_or_insert(why.into());
    }

    /// Accepts writes again, when the state is built anew.
    pub(super) fn accept(&mut self) {
        self.failed = None;
    }

    /// Returns an error if the layer refuses writes.
    ///
    /// # Errors
    /// `ReadOnly`.
    #[inline]
    pub(crate) fn writable(&self) -> Result<()> {
        match &self.failed {
            None => Ok(()),
            Some(why) => Err(Error::ReadOnly { why: why.clone() }),
        }
    }

    /// Records the change of an entry.
    #[inline]
    pub(crate) fn change(&mut self, entry: u64) {
        self.changed.add((entry / self.kind.entries_per_sector() as u64) as u32);
    }

    /// Returns the number of the sector of an entry.
    pub(crate) fn sector_of(&self, entry: u64) -> u32 {
        (entry / self.kind.entries_per_sector() as u64) as u32
    }

    /// Returns the error of an access to a chunk whose entry is lost.
    pub(crate) fn lost_entry(&self, chunk: u64) -> Error {
        let i = self.sector_of(chunk);
        let bytes = self.kind.entries_per_sector() as u64 * self.shape.chunk;
        let first = u64::from(i) * bytes;
        let end = (first + bytes).min(self.shape.size);
        let layer = self.kind.layer;
        Error::Corrupt {
            medium: MediumKind::Disk,
            at: self.layout.sector_at(0, i),
            what: format!(
                "both copies of table sector {i} of {layer} are damaged: bytes {first} to {end} of the layer \
                 (chunk {chunk} among them) cannot be found"
            ),
        }
    }

    /// Flushes the device after `after`, writes the changed sectors, and flushes the device again.
    /// A failed write of a sector is repeated by the next commit. After a failed flush nobody knows
    /// which writes are durable, so the layer refuses writes.
    ///
    /// # Errors
    /// A failure of the device, or a table that refuses writes.
    pub(crate) fn commit(
        &mut self,
        sink: &mut Sink,
        device: &mut dyn BlockDevice,
        after: Tok,
        fill: Fill<'_>,
    ) -> Result<Tok> {
        self.writable()?;
        let flushed = self.flush(sink, device, Cause::Host, after)?;
        if self.changed.is_empty() {
            return Ok(flushed);
        }
        let ready = if is_planted(TableBug::WrittenBeforeData) { sink.start() } else { flushed };
        let written = self.write_changed(sink, device, ready, fill)?;
        let done = self.flush(sink, device, Cause::Meta, written)?;
        self.changed.clear();
        Ok(if is_planted(TableBug::FlushedBeforeTable) { flushed } else { done })
    }

    /// Commits, and writes what a run on an unformatted device has never written.
    ///
    /// # Errors
    /// The errors of [`Table::commit`].
    pub(crate) fn save(
        &mut self,
        sink: &mut Sink,
        device: &mut dyn BlockDevice,
        after: Tok,
        fill: Fill<'_>,
    ) -> Result<Tok> {
        if self.formatted {
            return self.commit(sink, device, after, fill);
        }
        (0..self.layout.sectors).for_each(|i| self.changed.add(i));
        let done = self.commit(sink, device, after, fill)?;
        self.write_superblocks(sink, device, done)
    }

    /// Writes a new table. A superblock is valid only after all its sectors are durable.
    ///
    /// # Errors
    /// A failure of the device.
    pub(crate) fn format(
        &mut self,
        sink: &mut Sink,
        device: &mut dyn BlockDevice,
        fill: Fill<'_>,
    ) -> Result<Tok> {
        let mut done = sink.start();
        for copy in 0..COPIES {
            let at = self.layout.superblock_at(copy);
            let zeros = WriteData::Bytes(&[0; SECTOR_LEN]);
            let tok = device.write(sink, at, zeros, Cause::Meta, sink.start())?;
            done = sink.join(done, tok);
        }
        self.formatted = false;
        self.save(sink, device, done, fill)
    }

    pub(super) fn write_superblocks(
        &mut self,
        sink: &mut Sink,
        device: &mut dyn BlockDevice,
        after: Tok,
    ) -> Result<Tok> {
        let mut written = after;
        for copy in 0..COPIES {
            let block = superblock(&self.kind, &self.shape, self.layout, copy);
            let at = self.layout.superblock_at(copy);
            let tok = device.write(sink, at, WriteData::Bytes(&block), Cause::Meta, after)?;
            written = sink.join(written, tok);
        }
        let done = self.flush(sink, device, Cause::Meta, written)?;
        self.formatted = true;
        self.superblock_damaged = false;
        Ok(done)
    }

    /// Writes both copies of the changed sectors.
    fn write_changed(
        &mut self,
        sink: &mut Sink,
        device: &mut dyn BlockDevice,
        after: Tok,
        fill: Fill<'_>,
    ) -> Result<Tok> {
        let mut done = after;
        // A commit that fails has written some sectors. The next one may write them with other
        // entries, so it has another number.
        let seq = self.next_seq;
        self.next_seq += 1;
        for (first, n) in self.changed.runs(RUN) {
            self.buffer.resize(n as usize * SECTOR_LEN, 0);
            for (i, sector) in (first..).zip(self.buffer.chunks_exact_mut(SECTOR_LEN)) {
                encode(&self.kind, i, seq, sector, |payload| fill(i, payload));
            }
            for copy in 0..COPIES {
                let at = self.layout.sector_at(copy, first);
                let tok = device.write(sink, at, WriteData::Bytes(&self.buffer), Cause::Meta, after)?;
                done = sink.join(done, tok);
            }
        }
        Ok(done)
    }

    fn flush(
        &mut self,
        sink: &mut Sink,
        device: &mut dyn BlockDevice,
        cause: Cause,
        after: Tok,
    ) -> Result<Tok> {
        device.flush(sink, cause, after).inspect_err(|e| {
            self.refuse(format!("a flush of the device failed, and writes may be lost: {e}"));
        })
    }
}

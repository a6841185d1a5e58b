//! Check of the metadata on the SSD against the map, and its repair.

use super::layer::Flashcache;
use super::sector::{Entry, EntryState, SECTOR, decode};
use super::sets::flag;
use frit_core::convert::{bounded_u32, to_usize};
use frit_core::{
    BlockDevice, Cause, CheckCounts, CheckScope, Error, Finding, MediumKind, ReadTarget, Result, Severity,
    Sink,
};

impl<C: BlockDevice + ?Sized, D: BlockDevice + ?Sized> Flashcache<C, D> {
    /// Checks the metadata, and the data of dirty blocks if `scope` asks for it. A repair writes the
    /// metadata again; with `older` it accepts that blocks of damaged metadata have the contents of the
    /// disk.
    pub(super) fn check_cache(
        &mut self,
        sink: &mut Sink,
        scope: CheckScope,
        found: &mut dyn FnMut(Finding),
    ) -> Result<CheckCounts> {
        let accepts = scope.repair && scope.older;
        if let Some(finding) = self.health.missing_finding(self.layout.metadata_at(0), accepts) {
            found(Finding { medium: MediumKind::Disk, ..finding });
        }
        if accepts && self.health.has_missing() {
            self.health.accept_missing();
            let start = sink.start();
            let done = self.write_all(sink, start)?;
            self.ready = done;
            sink.ack(done);
        }
        let mut counts = CheckCounts::default();
        let known = !self.health.has_missing();
        for block in 0..self.layout.metadata_blocks() {
            let bad = self.bad_sectors(sink, block, &mut counts)?;
            if bad == 0 || !known {
                continue;
            }
            let repaired = scope.repair && self.health.writable().is_ok();
            if repaired {
                let start = sink.start();
                let written = self.write_metadata(sink, vec![block], start)?;
                let done = self.flush_ssd(sink, written)?;
                sink.ack(done);
            }
            found(Finding {
                layer: String::new(),
                kind: "bad-entry",
                severity: Severity::Major,
                lpn: None,
                medium: MediumKind::Disk,
                at: self.layout.metadata_at(block),
                what: format!("{bad} sectors of metadata block {block} do not state the dirty blocks"),
                repaired,
            });
        }
        if scope.data {
            self.check_data(sink, &mut counts, found)?;
        }
        Ok(counts)
    }

    /// Returns the number of sectors of a metadata block that do not state the dirty blocks.
    fn bad_sectors(&mut self, sink: &mut Sink, block: u32, counts: &mut CheckCounts) -> Result<u32> {
        let mut bytes = vec![0; to_usize(self.layout.metadata_block)];
        let (at, start) = (self.layout.metadata_at(block), sink.start());
        let per_block = self.layout.sectors_per_block();
        match self.ssd.read(sink, at, ReadTarget::Bytes(&mut bytes), Cause::Meta, start) {
            Ok(_) => {}
            Err(Error::Corrupt { .. }) => return Ok(per_block),
            Err(e) => return Err(e),
        }
        let refuses = self.health.refusal().is_some() || self.ssd.refuses().is_some();
        let mut bad = 0;
        for (sector, b) in (0..per_block).zip(bytes.chunks_exact(SECTOR)) {
            counts.records += 1;
            let slots = self.layout.slots_of(block, sector);
            counts.entries += u64::from(slots.end - slots.start);
            let agrees = decode(block * per_block + sector, b).is_some_and(|mut entries| {
                slots.zip(&mut entries).all(|(slot, entry)| {
                    let stated = (entry.state == EntryState::Dirty).then_some(entry.block);
                    let dirty = self.sets.block(slot).filter(|_| self.sets.is(slot, flag::DIRTY));
                    stated == dirty || refuses && self.may_differ(slot, entry)
                })
            });
            bad += u32::from(!agrees);
        }
        Ok(bad)
    }

    /// Returns `true` if the entry of a slot need not state its dirty block, on an SSD that has become
    /// read-only: the write of the entry can have failed.
    fn may_differ(&self, slot: u32, entry: Entry) -> bool {
        let counts = entry.state == EntryState::Dirty && entry.epoch <= self.epoch;
        match self.sets.is(slot, flag::DIRTY) {
            // The block became dirty in an epoch that is not committed, or is on the disk durably.
            true => self.sets.is(slot, flag::FRESH | flag::FLUSHED) && !counts,
            // The entry does not count, or the disk has the same block.
            false => !counts || self.sets.block(slot) == Some(entry.block),
        }
    }

    fn check_data(
        &mut self,
        sink: &mut Sink,
        counts: &mut CheckCounts,
        found: &mut dyn FnMut(Finding),
    ) -> Result<()> {
        let mut bytes = vec![0; to_usize(self.layout.block_bytes)];
        for slot in (0..self.layout.slots()).filter(|&slot| self.sets.is(slot, flag::DIRTY)) {
            let (at, start) = (self.layout.slot_at(slot), sink.start());
            counts.pages_read += 1;
            match self.ssd.read(sink, at, ReadTarget::Bytes(&mut bytes), Cause::Meta, start) {
                Ok(_) => counts.bytes_verified += self.config.block,
                Err(Error::Corrupt { what, .. }) => found(Finding {
                    layer: String::new(),
                    kind: "bad-data",
                    severity: Severity::Major,
                    lpn: self.sets.block(slot),
                    medium: MediumKind::Disk,
                    at: u64::from(bounded_u32(at / self.config.block)),
                    what: format!("a dirty block cannot be read: {what}"),
                    repaired: false,
                }),
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }
}

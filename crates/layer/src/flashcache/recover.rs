//! Recovery of the map from the metadata on the SSD.
//!
//! After a clean shutdown all entries count. After a crash those of dirty blocks count whose epoch is
//! committed: the others may state data that the SSD has lost.

use super::layer::Flashcache;
use super::layout::HEADERS;
use super::sector::{Entry, EntryState, FoundHeader, Header, SECTOR, UsageState, decode, read_header};
use super::sets::{Sets, flag};
use crate::health::Health;
use crate::planted::FlashcacheBug;
use frit_core::convert::{count_u32, to_u64, to_usize};
use frit_core::planted::is_planted;
use frit_core::{BlockDevice, Cause, Error, MediumKind, ReadTarget, Recovery, Result, Sink, Tok};

/// Bytes of metadata that are read together.
const READ_BYTES: u32 = 1 << 20;

/// Result of the reading of the metadata.
#[derive(Default)]
struct FoundMetadata {
    /// Metadata blocks with entries that do not count, and that a later epoch would make count.
    stale: Vec<u32>,
    /// Damaged sectors, and entries that no cache writes.
    damaged: u32,
    /// Slots of blocks that count, and whether they are dirty.
    slots: Vec<(u32, Entry)>,
}

impl<C: BlockDevice + ?Sized, D: BlockDevice + ?Sized> Flashcache<C, D> {
    /// Recovers the map.
    pub(super) fn recover_cache(&mut self, sink: &mut Sink) -> Result<Recovery> {
        self.reset();
        let header = self.find_header(sink)?;
        (self.state, self.epoch) = (header.state, header.epoch);
        let found = self.read_metadata(sink, header)?;
        let mut damaged = found.damaged;
        for (slot, entry) in found.slots {
            let fits = entry.block < self.disk_blocks
                && self.sets.set_of(entry.block) == self.sets.set_of_slot(slot)
                && self.sets.find(entry.block).is_none();
            if !fits {
                damaged += 1;
                continue;
            }
            self.sets.put(slot, entry.block);
            if entry.state == EntryState::Dirty {
                self.sets.change(slot, flag::DIRTY, 0);
            }
        }
        let mut recovery = Recovery {
            clean: header.state == UsageState::Halted,
            pages: u64::from(self.sets.valid()),
            bytes_read: u64::from(self.layout.metadata_blocks()) * self.config.metadata_block,
            ..Recovery::default()
        };
        if damaged > 0 {
            let what = format!("{damaged} sectors or entries of the metadata on the SSD are damaged");
            self.health.note_missing(what, &mut recovery);
            return Ok(recovery);
        }
        if !recovery.clean {
            self.finish_crash(sink, found.stale)?;
        }
        Ok(recovery)
    }

    /// Makes entries void that do not count, and what the devices got before the crash durable. If a device
    /// refuses this, the volume is read-only, and the next recovery does the same.
    fn finish_crash(&mut self, sink: &mut Sink, stale: Vec<u32>) -> Result<()> {
        if let Some(why) = self.ssd.refuses().or_else(|| self.disk.refuses()) {
            self.health.refuse(why);
            return Ok(());
        }
        match self.settle_crash(sink, stale) {
            Err(Error::ReadOnly { why }) => {
                self.health.refuse(why);
                Ok(())
            }
            settled => settled,
        }
    }

    fn settle_crash(&mut self, sink: &mut Sink, stale: Vec<u32>) -> Result<()> {
        let start = sink.start();
        if !stale.is_empty() && !is_planted(FlashcacheBug::StaleKept) {
            self.write_metadata(sink, stale, start)?;
        }
        let noted = self.flush_ssd(sink, start)?;
        let flushed = self.flush_disk(sink, start)?;
        self.ready = sink.join(noted, flushed);
        sink.ack(self.ready);
        Ok(())
    }

    fn reset(&mut self) {
        self.sets = Sets::new(self.layout.set_blocks, self.layout.sets);
        self.fresh.clear();
        self.changed.clear();
        self.written.clear();
        self.flushed.clear();
        (self.ssd_pending, self.disk_pending) = (None, None);
        let none = Tok::default();
        (self.ssd_flushed, self.disk_flushed, self.flushed_at) = (none, none, none);
        (self.ready, self.metadata_after, self.reuse_after) = (none, none, none);
        (self.health, self.intact, self.direct_pending) = (Health::default(), false, false);
        (self.slots_unflushed, self.ssd_failed) = (false, false);
    }

    /// Returns the newest header.
    fn find_header(&mut self, sink: &mut Sink) -> Result<Header> {
        let mut newest: Option<Header> = None;
        let mut what = "the SSD has no cache: it was never formatted";
        for copy in 0..HEADERS {
            let mut b = [0; SECTOR];
            let at = self.layout.header_at(copy);
            let start = sink.start();
            match self.ssd.read(sink, at, ReadTarget::Bytes(&mut b), Cause::Meta, start) {
                Ok(read) => sink.ack(read),
                Err(Error::Corrupt { .. }) => {
                    what = "both headers of the cache are damaged";
                    continue;
                }
                Err(e) => return Err(e),
            }
            match read_header(&self.layout, self.disk_blocks, &b) {
                FoundHeader::Valid(h) if newest.is_none_or(|n| n.epoch < h.epoch) => newest = Some(h),
                FoundHeader::Valid(_) | FoundHeader::Blank => {}
                FoundHeader::Other => {
                    what = "the SSD has a cache with other sizes, or of another disk; open it with the \
                            parameters with which it was made";
                }
                FoundHeader::Damaged => what = "both headers of the cache are damaged",
            }
        }
        newest.ok_or_else(|| Error::Corrupt { medium: MediumKind::Disk, at: 0, what: what.into() })
    }

    fn read_metadata(&mut self, sink: &mut Sink, header: Header) -> Result<FoundMetadata> {
        let mut found = FoundMetadata::default();
        let per_read = (READ_BYTES / self.layout.metadata_block).max(1);
        let all = self.layout.metadata_blocks();
        let mut first = 0;
        while first < all {
            let blocks = per_read.min(all - first);
            let mut bytes = vec![0; to_usize(blocks * self.layout.metadata_block)];
            let damage = self.read_blocks(sink, first, &mut bytes)?;
            for (i, block) in bytes.chunks_exact(to_usize(self.layout.metadata_block)).enumerate() {
                self.read_block(header, first + count_u32(i), block, &damage, &mut found);
            }
            first += blocks;
        }
        Ok(found)
    }

    /// Reads metadata blocks. Returns the numbers of the blocks that cannot be read.
    fn read_blocks(&mut self, sink: &mut Sink, first: u32, bytes: &mut [u8]) -> Result<Vec<u32>> {
        let (at, start) = (self.layout.metadata_at(first), sink.start());
        match self.ssd.read(sink, at, ReadTarget::Bytes(bytes), Cause::Meta, start) {
            Ok(read) => {
                sink.ack(read);
                return Ok(Vec::new());
            }
            Err(Error::Corrupt { .. }) => {}
            Err(e) => return Err(e),
        }
        let mut damaged = Vec::new();
        for (block, b) in (first..).zip(bytes.chunks_exact_mut(to_usize(self.layout.metadata_block))) {
            let at = self.layout.metadata_at(block);
            match self.ssd.read(sink, at, ReadTarget::Bytes(b), Cause::Meta, start) {
                Ok(read) => sink.ack(read),
                Err(Error::Corrupt { .. }) => damaged.push(block),
                Err(e) => return Err(e),
            }
        }
        Ok(damaged)
    }

    fn read_block(&self, header: Header, block: u32, b: &[u8], damage: &[u32], found: &mut FoundMetadata) {
        let per_block = self.layout.sectors_per_block();
        for (sector, b) in (0..per_block).zip(b.chunks_exact(SECTOR)) {
            let entries = decode(block * per_block + sector, b).filter(|_| !damage.contains(&block));
            let Some(entries) = entries else {
                found.damaged += 1;
                continue;
            };
            for (slot, entry) in self.layout.slots_of(block, sector).zip(entries) {
                match counts(header, entry) {
                    true => found.slots.push((slot, entry)),
                    false if entry.state == EntryState::Dirty => found.stale.push(block),
                    false => {}
                }
            }
        }
    }
}

/// Returns `true` if an entry counts after a recovery with this header.
fn counts(header: Header, entry: Entry) -> bool {
    let halted = header.state == UsageState::Halted;
    match entry.state {
        EntryState::Invalid => false,
        EntryState::Clean => halted || is_planted(FlashcacheBug::CleanTrusted),
        EntryState::Dirty => halted || entry.epoch <= header.epoch || is_planted(FlashcacheBug::EpochIgnored),
    }
}

const _: () = assert!(to_u64(SECTOR) == frit_core::SECTOR_BYTES);

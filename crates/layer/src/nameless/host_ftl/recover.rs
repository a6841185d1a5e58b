//! Recovery: the newest complete checkpoint, completed by a scan of the records in spare areas; and the
//! claims of the owner.
//!
//! **Virtual blocks.** A version counts if it is the one of the checkpoint, wherever garbage collection
//! has moved it. Without atomic flushes, newer versions count too. Of the newer versions, the newest one whose data
//! is whole counts: a crash may have interrupted the program of a newer one, which was not acknowledged
//! then. At its end, recovery writes a checkpoint, so that such a version plays no part later.
//!
//! **Nameless blocks.** The owner claims each block at the address that it knows. If the device had moved
//! the block, the copy has the same owner and version in its record.

use super::HostFtl;
use super::VIRTUAL;
use super::checkpoint::CheckpointPart;
use super::maps::{LOST, address_of, tag_of};
use crate::planted::NamelessBug;
use frit_core::convert::{low_u16, low_u32, to_u64, to_usize};
use frit_core::planted::is_planted;
use frit_core::{
    BlockId, Claimed, CrashKind, Error, Lpn, OwnedBlock, PAGE_NONE, PhysicalAddress, Ppn, Recovery, Result,
    Sink, Tok,
};
use frit_media::{PageState, SPARE_RECORD_BYTES, Spare};
use std::collections::BTreeMap;
use std::ops::Range;

/// A version of a virtual block or of a page of metadata.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Version {
    number: u32,
    seq: u64,
    ppn: u32,
}

/// Records that a scan has found.
#[derive(Clone, Debug, Default)]
pub(super) struct FoundBlocks {
    /// Nameless blocks, in order: all places of an owner's version follow each other.
    nameless: Vec<OwnedBlock>,
    /// Virtual blocks and pages of metadata.
    numbered: Vec<Version>,
    /// Highest sequence number.
    seq: u64,
    records: u64,
}

/// Parts of a checkpoint that were found.
#[derive(Clone, Debug, Default)]
struct FoundParts {
    /// The parts by index, of any copy.
    parts: BTreeMap<u32, CheckpointPart>,
    /// Their places, by the numbers of the pages.
    places: BTreeMap<u32, Version>,
}

/// A checkpoint that was found.
#[derive(Clone, Debug, Default)]
struct FoundCheckpoint {
    number: u64,
    through: u64,
    halted: bool,
    /// Addresses of all virtual blocks, or of all parts of the map.
    entries: Vec<PhysicalAddress>,
    /// Places of the parts.
    places: Vec<Version>,
}

impl HostFtl {
    /// Forgets all volatile state.
    fn reset(&mut self) {
        self.maps.reset();
        self.programmed = Tok::default();
        self.checkpoint.last = 0;
        self.checkpoint.complete = 0;
        self.checkpoint.outdated = true;
        self.flash.reset();
    }

    /// Finds the virtual blocks, and the records of all others.
    pub(super) fn find_blocks(&mut self, _: &mut Sink, _: CrashKind) -> Result<Recovery> {
        if !self.stores_bytes() {
            let why = "media without bytes hold nothing to recover from";
            return Err(Error::param("store", "none", why));
        }
        self.reset();
        self.recovering = true;
        self.found = self.scan()?;
        let (checkpoint, last) = self.find_checkpoint()?;
        let copies = u64::from(self.flash.nand().geometry().record_copies);
        let mut r = Recovery {
            bytes_read: self.found.records * copies * to_u64(SPARE_RECORD_BYTES),
            ..Recovery::default()
        };
        let newest = self.found.numbered.iter().filter(|v| v.number < self.maps.virtual_blocks());
        let newest = newest.map(|v| v.seq).max().unwrap_or(0);
        r.clean = checkpoint.halted && newest <= checkpoint.through;
        self.map_metadata_found(&checkpoint)?;
        if self.blocks.atomic_flush {
            r.pages = to_u64(self.maps.mapped());
        }
        for part in &checkpoint.places {
            self.maps.set(part.number, address_of(Ppn(part.ppn), part.seq));
            self.flash.adopt(Lpn(VIRTUAL + part.number), Ppn(part.ppn), low_u16(part.seq), false)?;
        }
        (self.checkpoint.last, self.checkpoint.complete) = (last, checkpoint.number);
        Ok(r)
    }

    /// Reads the records of all programmed pages.
    fn scan(&self) -> Result<FoundBlocks> {
        let g = *self.flash.nand().geometry();
        let mut found = FoundBlocks::default();
        for block in (0..g.blocks()).map(BlockId) {
            for at in 0..self.flash.nand().next_page(block) {
                let ppn = g.ppn(block, at);
                found.records += 1;
                if let PageState::Programmed(spare) = self.flash.nand().page_state(ppn)? {
                    found.add(ppn, spare);
                }
            }
        }
        found.nameless.sort_unstable_by_key(|b| (b.owner, b.at.version, b.at.page));
        found.numbered.sort_unstable();
        Ok(found)
    }

    /// Finds the newest complete checkpoint, and the highest number of any part.
    fn find_checkpoint(&mut self) -> Result<(FoundCheckpoint, u64)> {
        let numbers = self.maps.first_of_checkpoints()..self.maps.numbers();
        let found = self.found.numbered.iter().copied();
        let pages: Vec<Version> = found.filter(|v| numbers.contains(&v.number)).collect();
        let mut found: BTreeMap<u64, FoundParts> = BTreeMap::new();
        let mut page = vec![0; to_usize(self.page_bytes)];
        for v in pages {
            if is_planted(NamelessBug::SecondCopyIgnored) && self.checkpoint.is_second_copy(v.number) {
                continue;
            }
            let read = self.read_version(Ppn(v.ppn), VIRTUAL + v.number, low_u16(v.seq), &mut page);
            match read {
                Ok(()) => {}
                // Its program was interrupted, or it is damaged.
                Err(Error::Corrupt { .. }) => continue,
                Err(e) => return Err(e),
            }
            if let Some(part) = CheckpointPart::decode(&page) {
                let of = found.entry(part.number).or_default();
                of.places.insert(v.number, v);
                of.parts.insert(part.index, part);
            }
        }
        let last = found.keys().next_back().copied().unwrap_or(0);
        let whole =
            |of: &FoundParts| of.parts.values().next().is_some_and(|p| to_usize(p.parts) == of.parts.len());
        let Some((number, of)) = found.into_iter().rev().find(|(_, of)| whole(of)) else {
            return Ok((FoundCheckpoint::default(), last));
        };
        let places = of.places.into_values().collect();
        let mut checkpoint = FoundCheckpoint { number, places, ..FoundCheckpoint::default() };
        for part in of.parts.into_values() {
            (checkpoint.through, checkpoint.halted) = (part.through, part.halted);
            checkpoint.entries.extend(part.entries);
        }
        Ok((checkpoint, last))
    }

    /// Finds the versions that count: of the parts of the map, and of the virtual blocks.
    fn map_metadata_found(&mut self, checkpoint: &FoundCheckpoint) -> Result<()> {
        let virtual_blocks = self.maps.virtual_blocks();
        if !self.blocks.atomic_flush {
            return self.map_numbers(0..virtual_blocks, &checkpoint.entries, checkpoint.through);
        }
        let parts = virtual_blocks..self.maps.first_of_checkpoints();
        self.map_numbers(parts.clone(), &checkpoint.entries, checkpoint.through)?;
        let entries = self.read_map_parts()?;
        self.map_numbers(0..virtual_blocks, &entries, checkpoint.through)?;
        // The versions that were found are those that the checkpoint names.
        self.maps.mark_saved(|_| {});
        self.maps.forget_saved_losses();
        Ok(())
    }

    /// Finds the version of each number that counts. `stated` has the entries of these numbers.
    fn map_numbers(&mut self, numbers: Range<u32>, stated: &[PhysicalAddress], through: u64) -> Result<()> {
        let numbered = std::mem::take(&mut self.found.numbered);
        let mut page = vec![0; to_usize(self.page_bytes)];
        let mut mapped = Ok(());
        for (i, number) in numbers.enumerate() {
            let start = numbered.partition_point(|v| v.number < number);
            let end = numbered.partition_point(|v| v.number <= number);
            let stated = stated.get(i).copied().unwrap_or_default();
            mapped = self.map_block(number, &numbered[start..end], stated, through, &mut page);
            if mapped.is_err() {
                break;
            }
        }
        self.found.numbered = numbered;
        mapped
    }

    /// Maps a virtual block to the version that counts, of the versions that were found.
    fn map_block(
        &mut self,
        block: u32,
        versions: &[Version],
        stated: PhysicalAddress,
        through: u64,
        page: &mut [u8],
    ) -> Result<()> {
        let counts_newer = !self.blocks.atomic_flush || is_planted(NamelessBug::NewerCounts);
        let newer = versions.iter().rev().filter(|v| counts_newer && v.seq > through);
        let same = versions.iter().filter(|v| v.seq <= through && low_u32(v.seq) == stated.version).rev();
        if !counts_newer && let (Some(v), None) = (same.clone().next(), same.clone().nth(1)) {
            // It was durable before the checkpoint, so no crash has interrupted its program.
            self.maps.set(block, address_of(Ppn(v.ppn), v.seq));
            return self.flash.adopt(Lpn(VIRTUAL + block), Ppn(v.ppn), low_u16(v.seq), false);
        }
        let mut damage = None;
        for v in newer.chain(same) {
            let unverified = is_planted(NamelessBug::TornTaken);
            match self.read_version(Ppn(v.ppn), VIRTUAL + block, low_u16(v.seq), page) {
                Err(e @ Error::Corrupt { .. }) if !unverified => damage = Some(e.to_string()),
                Err(e) if !unverified => return Err(e),
                _ => {
                    self.maps.set(block, address_of(Ppn(v.ppn), v.seq));
                    return self.flash.adopt(Lpn(VIRTUAL + block), Ppn(v.ppn), low_u16(v.seq), false);
                }
            }
        }
        if stated == LOST {
            if self.maps.why_lost(block).is_none() {
                self.maps.note_lost(block, "it was lost before the last flush".to_owned());
            }
        } else if stated != PhysicalAddress::default() {
            let why = damage.unwrap_or_else(|| "no record of it was found".to_owned());
            self.maps.note_lost(block, why);
        }
        Ok(())
    }

    /// Finds a block that the owner refers to.
    pub(super) fn claim_block(&mut self, block: OwnedBlock) -> Result<Claimed> {
        if !self.recovering {
            let why = "the recovery of the device has ended; blocks are claimed before resume";
            return Err(Error::ReadOnly { why: why.to_owned() });
        }
        let key = |b: &OwnedBlock| (b.owner, b.at.version);
        let of = (block.owner, block.at.version);
        let start = self.found.nameless.partition_point(|b| key(b) < of);
        let end = self.found.nameless.partition_point(|b| key(b) <= of);
        let places = &self.found.nameless[start..end];
        let moved = |b: &&OwnedBlock| b.at.page == block.at.page || !is_planted(NamelessBug::MovedNotFound);
        let places: Vec<PhysicalAddress> = places.iter().filter(moved).map(|b| b.at).collect();
        let mut chosen = places.first().copied();
        // Garbage collection was moving the block: the program of the copy may have been interrupted, or
        // the erase of the block that it came from.
        if places.len() > 1 && !is_planted(NamelessBug::AnyCopyTaken) {
            let mut page = vec![0; to_usize(self.page_bytes)];
            for at in places {
                match self.read_version(Ppn(at.page), block.owner, tag_of(at), &mut page) {
                    Ok(()) => {
                        chosen = Some(at);
                        break;
                    }
                    Err(Error::Corrupt { .. }) => {}
                    Err(e) => return Err(e),
                }
            }
        }
        let Some(at) = chosen else {
            let what = format!("no record of version {} of it was found", block.at.version);
            return Ok(Claimed::Lost(what));
        };
        match self.flash.adopt(Lpn(block.owner), Ppn(at.page), tag_of(at), false) {
            Ok(()) => {
                self.maps.stored += 1;
                Ok(Claimed::At(at))
            }
            Err(e @ Error::Corrupt { .. }) => Ok(Claimed::Lost(e.to_string())),
            Err(e) => Err(e),
        }
    }

    /// Ends a recovery: what was not claimed is free.
    pub(super) fn end_recovery(&mut self, sink: &mut Sink, r: &mut Recovery) -> Result<()> {
        if !self.recovering {
            return Ok(());
        }
        self.recovering = false;
        // A program that was interrupted can look as if it had never begun, also after a clean halt.
        r.padded = self.flash.pad_partial_blocks(sink)?;
        let seq = if is_planted(NamelessBug::SeqRestarts) { 0 } else { self.found.seq };
        self.flash.adopted(seq, true);
        r.suspect_blocks = self.flash.suspect_blocks();
        self.found = FoundBlocks::default();
        if self.flash.health.refusal().is_some() || is_planted(NamelessBug::NoCheckpointAtStart) {
            return Ok(());
        }
        match self.write_checkpoint(sink, false) {
            Ok(done) => {
                self.flash.in_use = sink.join(self.flash.in_use, done);
                sink.ack(done);
                self.flash.nand_mut().sync()
            }
            // The volume is read-only from now on.
            Err(Error::ReadOnly { .. }) => Ok(()),
            Err(e) => Err(e),
        }
    }
}

impl FoundBlocks {
    /// Number of records of nameless blocks.
    pub(super) fn nameless_blocks(&self) -> u64 {
        to_u64(self.nameless.len())
    }

    fn add(&mut self, ppn: Ppn, spare: Spare) {
        self.seq = self.seq.max(spare.seq);
        match spare.lpn.checked_sub(VIRTUAL) {
            _ if spare.lpn == PAGE_NONE => {}
            Some(number) => self.numbered.push(Version { number, seq: spare.seq, ppn: ppn.0 }),
            None => {
                self.nameless.push(OwnedBlock { owner: spare.lpn, at: address_of(ppn, spare.seq) });
            }
        }
    }
}

//! Redo records, which make changes of several map entries atomic.
//!
//! A commit changes the entries of the pages of one 4 KiB block. Its record is durable before the
//! first of these entries is written, so recovery can complete a commit that was interrupted.
//!
//! # Ring
//!
//! Records are written to the lines of a ring in turn, so that no line of PCM wears with every
//! commit. Nothing clears a record: the next record takes its place. Each record has a number,
//! which contains a sequence number of the layer (`Flash::next_seq`). Such a number is never used
//! twice, also across crashes. A record without entries is a *retirement*: it only takes the place
//! of the record before it.
//!
//! **Rule.** Recovery applies the valid record with the highest number, if it is no retirement. It
//! applies no other record.
//!
//! **Proof.** The layer keeps these orders:
//!
//! 1. The entries of a commit wait for the fence of its record.
//! 2. A record, a retirement included, waits for the fence of the entries of the commit before it.
//! 3. Let a page be in the latest record. Before its entry changes by anything but a commit, a
//!    retirement is written, and the entry waits for the fence of the retirement.
//! 4. Recovery overwrites the number of a torn record before anything else is written to the ring.
//!
//! Let *r* be the valid record with the highest number, and let a cut be anywhere.
//!
//! - A record *n* that was begun after *r* is torn. By 1, no entry of *n* was written. The words of
//!   *n* do not make another record valid in its line: the CRC covers the number, so the line needs
//!   the number of that record, and by 4 a line has no number of a torn record.
//! - By 2, the entries of all commits before *r* are durable, so no older record is needed.
//! - If *r* is a retirement, the same holds for the last commit: nothing needs to be applied.
//! - Otherwise each entry of *r* in the map is that of *r* or one from before *r*. A later change
//!   of such an entry waits, by 1 and 3, for a later record to be durable, and a durable record is
//!   valid, which contradicts the choice of *r*. So the application reverts nothing.
//! - If there is no valid record, then no commit was begun, or the ring has one line in which the
//!   next record is torn. By 2, the entries of the record before it are durable.
//!
//! Damage can make an older record the latest valid one. Three conditions that the proof does not
//! need protect newer entries then: no record is applied after a clean shutdown; none is applied if
//! the line after it has a damaged record; and none is applied over newer versions. So one damaged
//! record reverts nothing. After a recovery the latest record is a retirement.
//!
//! # Fixed line
//!
//! Volumes of version 1 have one record, in the header. It is cleared after the entries are
//! durable, and the next change of any entry waits for the fence of the clearing.

use super::atomic::ATOMIC_BYTES;
use super::entry::{MapEntry, PageLocation, SUBPAGES_MAX};
use super::header::{FIXED_REDO_AT, FormattedSizes};
use super::layout::{ENTRY_BYTES, ENTRY_LEN};
use super::pcm::PcmSpace;
use super::{Hfsl, HfslConfig, MapPersist};
use crate::planted::HfslBug;
use frit_core::planted::is_planted;
use frit_core::{Cause, Error, Lpn, ReadTarget, Result, Sink, Tok};
use frit_media::checksum::{crc32c, digest};
use frit_wear::Leveled;

/// Number of entries in a redo record: at most the pages of a 4 KiB block.
pub(crate) const REDO_ENTRIES: usize = SUBPAGES_MAX as usize;
/// Size of the record in the header of version 1: first page and mask, entries, CRC32C.
const FIXED_BYTES: usize = 16 + ENTRY_LEN * REDO_ENTRIES;
/// Size of a record of the ring without its entries: number, first page and mask, CRC.
const RECORD_BYTES: usize = 24;
/// Size of the largest record of a ring.
const RECORD_MOST: usize = RECORD_BYTES + ENTRY_LEN * REDO_ENTRIES;

/// Number of lines of a ring, if the configuration does not state it.
const LINES: u32 = 64;
/// Share of PCM that a ring takes at most then.
const SHARE: u64 = 64;
/// Largest number of lines of a ring: recovery reads all of them.
pub(crate) const LINES_MOST: u32 = 1 << 16;
/// Bit of a record's number that makes it a retirement.
const RETIRED: u64 = 1;
/// Number of a free line. It is not zero, so that zeros are damage.
const FREE: u64 = u64::MAX;

/// Place of the redo records.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RedoArea {
    /// One record in the header: version 1, and layers without commits of several entries.
    Fixed,
    /// A ring of records in a partition of its own.
    Ring(RedoRing),
}

/// Ring of redo records.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RedoRing {
    /// Address of the first line.
    pub(crate) at: u64,
    pub(crate) lines: u32,
    /// Size of a line: a record, rounded up to whole lines of PCM.
    pub(crate) line_bytes: u32,
    /// Entries of a record: the pages of a 4 KiB block.
    pub(crate) entries: u32,
}

impl RedoArea {
    /// Number of lines of the ring; 0 without a ring.
    pub(crate) fn lines(&self) -> u32 {
        match self {
            RedoArea::Fixed => 0,
            RedoArea::Ring(ring) => ring.lines,
        }
    }
}

impl RedoRing {
    /// Returns the ring of a layer, to be placed in PCM: that of a formatted layer, or a new one.
    pub(crate) fn of(
        config: &HfslConfig,
        formatted: Option<FormattedSizes>,
        medium: &Leveled,
        page_bytes: u32,
    ) -> Option<RedoRing> {
        let line = medium.geometry().line_bytes;
        let planned = RedoRing::planned(config, page_bytes, medium.bytes(), line)?;
        match formatted {
            Some(f) if config.redo_lines == 0 => {
                // Damage of the number must not make the layout larger than PCM.
                let lines = f.redo_lines.min(LINES_MOST);
                (lines > 0).then_some(RedoRing { lines, ..planned })
            }
            _ => Some(planned),
        }
    }

    /// Returns the ring of a new layer, to be placed in PCM. `None` if no commit of the layer has
    /// several entries.
    fn planned(config: &HfslConfig, page_bytes: u32, pcm_bytes: u64, pcm_line: u32) -> Option<RedoRing> {
        if config.map_persist != MapPersist::Each || page_bytes >= ATOMIC_BYTES {
            return None;
        }
        let entries = ATOMIC_BYTES / page_bytes;
        let line_bytes = (RECORD_BYTES as u32 + ENTRY_BYTES as u32 * entries).next_multiple_of(pcm_line);
        let fit = pcm_bytes / SHARE / u64::from(line_bytes);
        let lines = match config.redo_lines {
            0 => LINES.min(u32::try_from(fit).unwrap_or(LINES)).max(1),
            lines => lines,
        };
        Some(RedoRing { at: 0, lines, line_bytes, entries })
    }

    /// Size in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        u64::from(self.lines) * u64::from(self.line_bytes)
    }

    fn at(&self, line: u32) -> u64 {
        self.at + u64::from(line) * u64::from(self.line_bytes)
    }

    /// Size of a record in bytes.
    fn record_bytes(&self) -> usize {
        RECORD_BYTES + ENTRY_LEN * self.entries as usize
    }
}

/// State of the ring.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct RedoLog {
    /// Line of the next record.
    next: u32,
    /// Latest record in PCM, if it is no retirement: recovery would apply it.
    live: Option<LiveRedo>,
}

/// Latest record in PCM.
#[derive(Clone, Copy, Debug)]
struct LiveRedo {
    number: u64,
    first: u32,
    mask: u8,
}

impl RedoLog {
    /// Returns `true` if recovery would overwrite the entry of a page.
    #[inline]
    pub(crate) fn covers(&self, lpn: Lpn) -> bool {
        self.live.is_some_and(|r| {
            let i = lpn.0.wrapping_sub(r.first);
            i < REDO_ENTRIES as u32 && r.mask & (1 << i) != 0
        })
    }
}

/// Record of pages whose entries change together: those from `first` whose bit in `mask` is set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RedoRecord {
    pub(crate) first: u32,
    pub(crate) mask: u8,
    /// Entries in the encoding of PCM.
    pub(crate) raw: [u64; REDO_ENTRIES],
}

impl RedoRecord {
    /// A record without entries.
    pub(crate) const EMPTY: RedoRecord = RedoRecord { first: 0, mask: 0, raw: [0; REDO_ENTRIES] };

    /// Iterates over the pages and their entries.
    pub(crate) fn entries(self) -> impl Iterator<Item = (u32, u64)> {
        (0..REDO_ENTRIES as u32)
            .filter(move |i| self.mask & (1 << i) != 0)
            .map(move |i| (self.first + i, self.raw[i as usize]))
    }

    /// Encodes first page (4 bytes), mask (4) and as many entries as there is space for.
    fn encode_body(&self, b: &mut [u8]) {
        b[..4].copy_from_slice(&self.first.to_le_bytes());
        b[4..8].copy_from_slice(&u32::from(self.mask).to_le_bytes());
        for (to, raw) in b[8..].chunks_exact_mut(ENTRY_LEN).zip(self.raw) {
            to.copy_from_slice(&raw.to_le_bytes());
        }
    }

    fn decode_body(b: &[u8]) -> Option<RedoRecord> {
        let head = word(b, 0)?;
        let mut raw = [0; REDO_ENTRIES];
        for (r, bytes) in raw.iter_mut().zip(b[8..].chunks_exact(ENTRY_LEN)) {
            *r = u64::from_le_bytes(bytes.try_into().ok()?);
        }
        Some(RedoRecord { first: head as u32, mask: (head >> 32) as u8, raw })
    }

    /// Layout in the header: first page (4 bytes), mask (4), entries (64), zero (4), CRC32C of all
    /// preceding bytes (4).
    fn encode_fixed(&self) -> [u8; FIXED_BYTES] {
        let mut b = [0; FIXED_BYTES];
        self.encode_body(&mut b[..FIXED_BYTES - 8]);
        let crc = crc32c(&b[..FIXED_BYTES - 4]);
        b[FIXED_BYTES - 4..].copy_from_slice(&crc.to_le_bytes());
        b
    }

    fn decode_fixed(b: &[u8; FIXED_BYTES]) -> Option<RedoRecord> {
        let redo = RedoRecord::decode_body(&b[..FIXED_BYTES - 8])?;
        (redo.mask != 0 && redo.encode_fixed() == *b).then_some(redo)
    }

    /// Layout in a ring: number (8 bytes), first page (4), mask (4), entries (8 each), CRC-64/NVME
    /// of all preceding bytes (8).
    ///
    /// The CRC has 64 bits because a line holds many records in its life, each of which a power
    /// loss can tear.
    fn encode_numbered(&self, number: u64, b: &mut [u8]) {
        let end = b.len() - 8;
        b[..8].copy_from_slice(&number.to_le_bytes());
        self.encode_body(&mut b[8..end]);
        let crc = digest(&b[..end]);
        b[end..].copy_from_slice(&crc.to_le_bytes());
    }

    /// Decodes a record of a ring and its number.
    fn decode_numbered(b: &[u8]) -> Option<(u64, RedoRecord)> {
        let end = b.len() - 8;
        let number = word(b, 0)?;
        let redo = RedoRecord::decode_body(&b[8..end])?;
        let entries = (end - 16) / ENTRY_LEN;
        let mask = u32::from_le_bytes(b[12..16].try_into().ok()?);
        let fits = mask >> entries == 0 && (redo.mask == 0) == (number & RETIRED != 0);
        (fits && word(b, end)? == digest(&b[..end])).then_some((number, redo))
    }
}

fn word(b: &[u8], at: usize) -> Option<u64> {
    b.get(at..at + 8)?.try_into().ok().map(u64::from_le_bytes)
}

/// Result of a scan of the redo records.
#[derive(Clone, Debug, Default)]
struct RedoScan {
    /// Latest valid record with its line and number.
    latest: Option<(u32, u64, RedoRecord)>,
    /// Lines that are not free and have no valid record: torn or damaged ones.
    torn: Vec<u32>,
}

impl PcmSpace {
    /// Writes the record of a commit. `seq` is larger than the sequence numbers of its pages. The
    /// record is durable when the returned token completes.
    pub(crate) fn write_redo(
        &mut self,
        sink: &mut Sink,
        redo: &RedoRecord,
        seq: u64,
        after: Tok,
    ) -> Result<Tok> {
        match self.layout.redo {
            RedoArea::Fixed => {
                let at = self.layout.header_at + FIXED_REDO_AT;
                let written = self.meta(sink, at, &redo.encode_fixed(), after)?;
                Ok(self.medium.fence(sink, written))
            }
            RedoArea::Ring(ring) => {
                let number = seq << 1;
                let done = self.write_to_ring(sink, ring, redo, number, after)?;
                self.redo.live = Some(LiveRedo { number, first: redo.first, mask: redo.mask });
                Ok(done)
            }
        }
    }

    /// Ends a commit whose entries are durable after `done`. The next record waits for the returned
    /// token, and so does the next change of an entry.
    pub(crate) fn end_commit(&mut self, sink: &mut Sink, done: Tok) -> Result<Tok> {
        match self.layout.redo {
            RedoArea::Fixed if is_planted(HfslBug::RedoNotCleared) => Ok(done),
            RedoArea::Fixed => self.clear_fixed(sink, done),
            RedoArea::Ring(_) => Ok(done),
        }
    }

    /// Writes a retirement after `after`: recovery does not apply the latest record any more when
    /// the returned token completes.
    #[cold]
    pub(crate) fn retire_redo(&mut self, sink: &mut Sink, after: Tok) -> Result<Tok> {
        match (self.layout.redo, self.redo.live.take()) {
            (RedoArea::Ring(ring), Some(live)) => {
                self.write_to_ring(sink, ring, &RedoRecord::EMPTY, live.number | RETIRED, after)
            }
            _ => Ok(after),
        }
    }

    fn write_to_ring(
        &mut self,
        sink: &mut Sink,
        ring: RedoRing,
        redo: &RedoRecord,
        number: u64,
        after: Tok,
    ) -> Result<Tok> {
        let mut bytes = [0; RECORD_MOST];
        let bytes = &mut bytes[..ring.record_bytes()];
        redo.encode_numbered(number, bytes);
        let at = ring.at(self.redo.next);
        self.redo.next = (self.redo.next + 1) % ring.lines;
        let written = self.meta(sink, at, bytes, after)?;
        Ok(self.medium.fence(sink, written))
    }

    /// Clears the record in the header.
    fn clear_fixed(&mut self, sink: &mut Sink, after: Tok) -> Result<Tok> {
        let at = self.layout.header_at + FIXED_REDO_AT;
        let mask = self.meta(sink, at, &[0; 8], after)?;
        // The checksum is cleared too: otherwise a torn new record of the same pages could leave
        // the old one valid.
        let crc = self.meta(sink, at + FIXED_BYTES as u64 - 8, &[0; 8], after)?;
        let written = sink.join(mask, crc);
        Ok(self.medium.fence(sink, written))
    }

    /// Clears all records: those of a map that is replaced, and the former contents of PCM at a
    /// format.
    pub(crate) fn clear_redo(&mut self, sink: &mut Sink, after: Tok) -> Result<Tok> {
        match self.layout.redo {
            RedoArea::Fixed => self.clear_fixed(sink, after),
            RedoArea::Ring(ring) => self.clear_lines(sink, ring, 0..ring.lines, after),
        }
    }

    /// Marks lines as free, each with one atomic write to its number. A torn record is invalid
    /// before and after, so an interrupted recovery finds what it found.
    fn clear_lines(
        &mut self,
        sink: &mut Sink,
        ring: RedoRing,
        lines: impl IntoIterator<Item = u32>,
        after: Tok,
    ) -> Result<Tok> {
        let mut done = after;
        for line in lines {
            let one = self.meta(sink, ring.at(line), &FREE.to_le_bytes(), after)?;
            done = sink.join(done, one);
        }
        Ok(self.medium.fence(sink, done))
    }

    /// Reads all redo records. Zeros are damage if the ring was initialised at format time.
    fn scan_redo(&mut self, sink: &mut Sink, initialised: bool) -> Result<RedoScan> {
        let pages = self.layout.map_bytes / ENTRY_BYTES;
        let fits = |r: &RedoRecord| r.entries().all(|(lpn, _)| u64::from(lpn) < pages);
        let mut scan = RedoScan::default();
        let ring = match self.layout.redo {
            RedoArea::Fixed => {
                let mut bytes = [0; FIXED_BYTES];
                self.read_redo(sink, self.layout.header_at + FIXED_REDO_AT, &mut bytes)?;
                match RedoRecord::decode_fixed(&bytes).filter(fits) {
                    Some(redo) => scan.latest = Some((0, 0, redo)),
                    None if bytes.iter().any(|&b| b != 0) => scan.torn.push(0),
                    None => {}
                }
                return Ok(scan);
            }
            RedoArea::Ring(ring) => ring,
        };
        let mut bytes = [0; RECORD_MOST];
        let bytes = &mut bytes[..ring.record_bytes()];
        for line in 0..ring.lines {
            self.read_redo(sink, ring.at(line), bytes)?;
            match RedoRecord::decode_numbered(bytes).filter(|(_, r)| fits(r)) {
                Some((number, redo)) => {
                    let newer = scan.latest.is_none_or(|(_, latest, _)| number > latest);
                    if newer || is_planted(HfslBug::RedoByPosition) {
                        scan.latest = Some((line, number, redo));
                    }
                }
                None if word(bytes, 0) == Some(FREE) => {}
                None if word(bytes, 0) == Some(0) && !initialised => {}
                None => scan.torn.push(line),
            }
        }
        Ok(scan)
    }

    fn read_redo(&mut self, sink: &mut Sink, at: u64, into: &mut [u8]) -> Result<()> {
        let start = sink.start();
        let done = self.medium.read(sink, at, ReadTarget::Bytes(into), Cause::Meta, start)?;
        sink.ack(done);
        Ok(())
    }
}

impl Hfsl {
    /// Completes a commit that a crash interrupted. Returns the number of entries that were
    /// missing. After a clean shutdown (`clean`) none is missing, whatever the records say. No
    /// record is in force afterwards.
    pub(super) fn redo(&mut self, sink: &mut Sink, clean: bool, map_initialised: bool) -> Result<u32> {
        let Some(pcm) = &mut self.map.pcm else { return Ok(0) };
        if self.config.map_persist != MapPersist::Each {
            return Ok(0);
        }
        let scan = pcm.scan_redo(sink, map_initialised)?;
        let area = pcm.layout.redo;
        if let (RedoArea::Ring(ring), Some((line, ..))) = (area, &scan.latest) {
            pcm.redo.next = (line + 1) % ring.lines;
        }
        // The record after the latest one was begun, so the entries of the latest one are durable.
        let followed = scan.latest.is_some() && scan.torn.contains(&pcm.redo.next);
        let live = scan.latest.filter(|(_, number, _)| number & RETIRED == 0);
        let (mut redone, mut done) = (0, sink.start());
        if let Some((_, number, redo)) = live {
            let applies = !clean && !followed && !self.is_superseded(sink, number, redo)?;
            if applies && !is_planted(HfslBug::RedoForgotten) {
                (redone, done) = self.apply_redo(sink, redo)?;
            }
        }
        let Some(pcm) = &mut self.map.pcm else { return Ok(0) };
        // The words of a torn record must not complete a later record that is torn too.
        match area {
            RedoArea::Fixed if live.is_some() || !scan.torn.is_empty() => {
                done = pcm.clear_fixed(sink, done)?;
            }
            RedoArea::Ring(ring) if !scan.torn.is_empty() => {
                done = pcm.clear_lines(sink, ring, scan.torn, done)?;
            }
            _ => {}
        }
        if let Some((_, number, redo)) = live {
            pcm.redo.live = Some(LiveRedo { number, first: redo.first, mask: redo.mask });
            done = pcm.retire_redo(sink, done)?;
        }
        sink.ack(done);
        Ok(redone)
    }

    /// Finds damaged records of the ring, which no commit needs while the layer runs. Returns their
    /// addresses. A repair clears them, after a retirement that is later than all of them.
    pub(super) fn check_redo(&mut self, sink: &mut Sink, repair: bool) -> Result<Vec<u64>> {
        let Some(pcm) = &mut self.map.pcm else { return Ok(Vec::new()) };
        let RedoArea::Ring(ring) = pcm.layout.redo else { return Ok(Vec::new()) };
        let damaged = pcm.scan_redo(sink, self.usage.map_initialised)?.torn;
        if repair && !damaged.is_empty() {
            self.ensure_in_use(sink)?;
            let number = self.flash.next_seq() << 1 | RETIRED;
            let barrier = self.map.redo_barrier;
            let Some(pcm) = &mut self.map.pcm else { return Ok(Vec::new()) };
            pcm.redo.live = None;
            let last = pcm.redo.next;
            let retired = pcm.write_to_ring(sink, ring, &RedoRecord::EMPTY, number, barrier)?;
            let others = damaged.iter().copied().filter(|&line| line != last);
            self.map.redo_barrier = pcm.clear_lines(sink, ring, others, retired)?;
            sink.ack(self.map.redo_barrier);
        }
        Ok(damaged.into_iter().map(|line| ring.at(line)).collect())
    }

    /// Returns `true` if the map refers to a version of one of the pages that is newer than the
    /// record. Only damage can have that effect: see the rule of this module.
    fn is_superseded(&mut self, sink: &mut Sink, number: u64, redo: RedoRecord) -> Result<bool> {
        let Some(pcm) = &mut self.map.pcm else { return Ok(false) };
        // The record of version 1 has no number.
        if pcm.layout.redo == RedoArea::Fixed || is_planted(HfslBug::RedoNotCleared) {
            return Ok(false);
        }
        for (lpn, raw) in redo.entries() {
            let now = pcm.peek_entry(lpn)?;
            let Some(entry) = MapEntry::decode_checked(now, lpn).filter(|_| now != raw) else { continue };
            let version = match entry.place() {
                PageLocation::Unmapped => continue,
                PageLocation::Nand(ppn) => self.flash.version(ppn, Lpn(lpn), entry.tag()),
                PageLocation::Pcm(desc) => {
                    pcm.read_desc(sink, Lpn(lpn), desc, entry.tag()).map(|(d, _)| d.seq)
                }
            };
            match version {
                Ok(seq) if seq > number >> 1 => return Ok(true),
                // A damaged version gives way to that of the record.
                Ok(_) | Err(Error::Corrupt { .. }) => {}
                Err(e) => return Err(e),
            }
        }
        Ok(false)
    }

    /// Writes the entries of a record that the map does not have. Returns their number and a token
    /// that completes when they are durable.
    fn apply_redo(&mut self, sink: &mut Sink, redo: RedoRecord) -> Result<(u32, Tok)> {
        let start = sink.start();
        let Some(pcm) = &mut self.map.pcm else { return Ok((0, start)) };
        let (mut missing, mut done) = (0, start);
        for (lpn, raw) in redo.entries() {
            if pcm.peek_entry(lpn)? != raw {
                let one = pcm.write_entry(sink, lpn, raw, start)?;
                done = sink.join(done, one);
                missing += 1;
            }
        }
        if missing > 0 {
            done = pcm.medium.fence(sink, done);
        }
        Ok((missing, done))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_check_themselves() {
        let redo = RedoRecord { first: 8, mask: 0b101, raw: [7; REDO_ENTRIES] };
        assert_eq!(redo.entries().collect::<Vec<_>>(), [(8, 7), (10, 7)]);
        let b = redo.encode_fixed();
        assert_eq!(RedoRecord::decode_fixed(&b), Some(redo));
        for bit in 0..FIXED_BYTES * 8 {
            let mut bad = b;
            bad[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(RedoRecord::decode_fixed(&bad), None, "bit {bit}");
        }
        assert_eq!(RedoRecord::decode_fixed(&[0; FIXED_BYTES]), None);
        for entries in [2, 4, 8] {
            let mut raw = [0; REDO_ENTRIES];
            raw[..entries].fill(7);
            let redo = RedoRecord { first: 8, mask: 0b11, raw };
            let mut b = vec![0; RECORD_BYTES + ENTRY_LEN * entries];
            redo.encode_numbered(10, &mut b);
            assert_eq!(RedoRecord::decode_numbered(&b), Some((10, redo)));
            for bit in 0..b.len() * 8 {
                b[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(RedoRecord::decode_numbered(&b), None, "bit {bit}");
                b[bit / 8] ^= 1 << (bit % 8);
            }
            RedoRecord::EMPTY.encode_numbered(11, &mut b);
            assert_eq!(RedoRecord::decode_numbered(&b), Some((11, RedoRecord::EMPTY)));
            // A retirement has no entries, and other records have some.
            RedoRecord::EMPTY.encode_numbered(12, &mut b);
            assert_eq!(RedoRecord::decode_numbered(&b), None);
            b.fill(0);
            assert_eq!(RedoRecord::decode_numbered(&b), None);
        }
    }
}

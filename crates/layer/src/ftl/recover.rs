//! Recovery by a scan of the records in spare areas: the newest version of each page counts.
//!
//! A crash may interrupt programs, whose pages are then unreadable or damaged. Such pages are newer
//! than the last flush that the mark states, and were never acknowledged as durable, so the older
//! version counts. A damaged page that is not newer is lost, and a read of it is an error.
//!
//! An interrupted page can have a valid record. It is superseded at once: the older version is
//! written again, or the page is recorded as discarded. Otherwise a later recovery, whose mark is
//! newer, would take it for a page that was lost.

use super::layer::Ftl;
use super::mapping::Mapping;
use super::meta::{InterruptedPage, MAP_COPIES, MapSummary, Mark, decode_discards};
use super::page_map::PageEntry;
use crate::flash::NandStream;
use crate::planted::FtlBug;
use frit_core::convert::{count_u32, to_usize};
use frit_core::planted::is_planted;
use frit_core::{
    BlockId, Cause, CrashKind, Error, LostPage, Lpn, PAGE_NONE, Ppn, ReadTarget, Recovery, Result, Sink, Tok,
};
use frit_media::{ExpectedPage, PageState, SPARE_RECORD_BYTES, Spare};
use std::collections::HashSet;

/// Newest versions that a scan found.
struct Newest {
    /// Sequence number by logical page; 0 for none.
    seq: Vec<u64>,
    ppn: Vec<Ppn>,
    /// Further places of versions that were the newest ones when they were found.
    others: Vec<(Lpn, u64, Ppn)>,
}

impl Newest {
    fn new(pages: usize) -> Newest {
        Newest { seq: vec![0; pages], ppn: vec![Ppn(PAGE_NONE); pages], others: Vec::new() }
    }

    fn offer(&mut self, spare: Spare, ppn: Ppn) {
        let lpn = spare.lpn as usize;
        match self.seq.get(lpn) {
            Some(&seq) if seq < spare.seq => {
                self.seq[lpn] = spare.seq;
                self.ppn[lpn] = ppn;
            }
            Some(&seq) if seq == spare.seq => self.others.push((Lpn(spare.lpn), seq, ppn)),
            _ => {}
        }
    }

    fn entry(&self, lpn: Lpn) -> PageEntry {
        match self.seq[lpn.idx()] {
            0 => PageEntry::default(),
            seq => PageEntry::in_nand(self.ppn[lpn.idx()], seq),
        }
    }
}

/// Results of a scan.
struct Scan {
    newest: Newest,
    /// Highest sequence number of a readable record.
    seq: u64,
    /// Pages that an interrupted program left with a valid record.
    torn: Vec<(Ppn, Spare)>,
    damaged: Vec<DamagedRecord>,
    /// Discard maps: number, record and place.
    maps: Vec<(u32, Spare, Ppn)>,
    records: u64,
}

/// Programs at the end of a block that may have been interrupted.
struct BlockTail {
    /// First page of the first one.
    from: u32,
    /// Pages with valid records and damaged data.
    bad: Vec<Ppn>,
}

/// A record that is neither valid nor erased.
#[derive(Clone, Copy, Debug)]
struct DamagedRecord {
    ppn: Ppn,
    /// `true` if only programs that may have been interrupted follow it in its block.
    in_tail: bool,
}

impl Ftl {
    /// Recovers from the media after the given kind of crash.
    pub(super) fn recover_from_media(&mut self, sink: &mut Sink, crash: CrashKind) -> Result<Recovery> {
        if !self.stores_bytes() {
            let why = "media without bytes hold nothing to recover from";
            return Err(Error::param("store", "none", why));
        }
        self.reset();
        let mark = self.find_mark()?;
        let (mark, newest) = mark.unwrap_or_default();
        let clean = mark.halted && newest;
        let durable = if clean { u64::MAX } else { mark.durable };
        let mut scan = self.scan(&mark, durable, crash)?;
        let copies = u64::from(self.flash.nand().geometry().record_copies);
        let bytes_read = scan.records * copies * SPARE_RECORD_BYTES as u64;
        let mut r = Recovery { clean, bytes_read, ..Recovery::default() };
        self.choose_copies(&mut scan.newest)?;
        self.apply_discards(&mut scan, &mut r)?;
        self.apply_lost(&mut scan, &mark, &mut r);
        let mut found = MapSummary::default();
        for lpn in (0..self.all_pages()).map(Lpn) {
            let entry = scan.newest.entry(lpn);
            let Some(ppn) = entry.ppn() else { continue };
            self.map.set(lpn, entry);
            self.flash.adopt(lpn, ppn, entry.tag(), false)?;
            if lpn.0 < self.pages {
                r.pages += 1;
                found.add(lpn, entry);
            }
        }
        // After a clean halt, the summary tells whether a page is missing.
        let damaged = match clean {
            true if mark.summary == found => std::mem::take(&mut scan.damaged),
            true => Vec::new(),
            false => self.explain_damage(&mut scan, &mark, durable, crash),
        };
        self.note_damage(&scan, clean.then_some(mark.summary), found, &mut r);
        // A program that was interrupted can look as if it had never begun, also after a clean halt.
        r.padded = self.flash.pad_partial_blocks(sink)?;
        self.flash.adopted(if is_planted(FtlBug::SeqRestarts) { 0 } else { scan.seq }, true);
        self.adopt_blocks();
        self.find_stale_entries(sink)?;
        r.suspect_blocks = self.flash.suspect_blocks();
        self.flushed = if clean { scan.seq } else { durable };
        (self.changed, self.unflushed) = (!clean, false);
        self.unmarked = false;
        self.note_interrupted(&damaged, &scan.torn)?;
        // A fold could move a page to a place that the mark still lists as interrupted with the same version.
        self.flash.write_past_cache(true);
        let resumed = self.resume(sink, &mark, &scan.torn, &mut r);
        self.flash.write_past_cache(false);
        match resumed {
            // The volume became read-only. What is interrupted stays so until the next recovery.
            Err(Error::ReadOnly { .. }) => {}
            resumed => resumed?,
        }
        Ok(r)
    }

    /// Writes what later recoveries need, before other programs follow interrupted ones.
    fn resume(
        &mut self,
        sink: &mut Sink,
        mark: &Mark,
        torn: &[(Ppn, Spare)],
        r: &mut Recovery,
    ) -> Result<()> {
        if self.flash.health.refusal().is_some() {
            return Ok(());
        }
        let now = self.mark();
        if now.interrupted.iter().any(|page| !mark.interrupted.contains(page)) {
            self.write_mark_alone(sink, &now, self.mark_after)?;
        }
        if !is_planted(FtlBug::TornKept) {
            self.supersede_torn(sink, torn, r)?;
        }
        self.refill_reserve(sink)
    }

    /// Collects garbage until the reserve of each unit is full again: recoveries that are interrupted one
    /// after the other must not use it up with their marks. Erases wait for the mark of this one.
    fn refill_reserve(&mut self, sink: &mut Sink) -> Result<()> {
        if self.config.mapping != Mapping::Page {
            return Ok(());
        }
        for unit in 0..self.flash.nand().geometry().units() {
            match self.flash.reserve(sink, &mut self.map, unit, NandStream::Gc, self.unit_pages) {
                Ok(()) | Err(Error::NoSpace { .. }) => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    /// Notes the interrupted pages.
    fn note_interrupted(&mut self, damaged: &[DamagedRecord], torn: &[(Ppn, Spare)]) -> Result<()> {
        self.interrupted.clear();
        let damaged = damaged.iter().map(|d| InterruptedPage { ppn: d.ppn, seq: 0 });
        let torn = torn.iter().map(|(ppn, spare)| InterruptedPage { ppn: *ppn, seq: spare.seq });
        let nand = self.flash.nand();
        for page in damaged.chain(torn) {
            let block = nand.geometry().block_of(page.ppn);
            self.interrupted.push((page, nand.erases(block)));
        }
        Ok(())
    }

    /// Mark of a flush: what was durable before, and the interrupted pages that are still there. It
    /// waits for the erases of those that are not ([`Ftl::mark_after`]).
    pub(super) fn mark(&mut self) -> Mark {
        let nand = self.flash.nand();
        let before = self.interrupted.len();
        self.interrupted.retain(|(page, erases)| nand.erases(nand.geometry().block_of(page.ppn)) == *erases);
        if self.interrupted.len() < before {
            self.mark_after = self.flash.erased;
        }
        let interrupted = self.interrupted.iter().map(|(page, _)| *page).collect();
        let lost = self.map.lost().range(..self.pages).map(|(&lpn, _)| lpn).collect();
        Mark { durable: self.flushed, interrupted, seq: self.flash.last_seq(), lost, ..Mark::default() }
    }

    /// Programs a mark into a program unit of its own. Nothing is programmed or erased before it is
    /// durable.
    pub(super) fn write_mark_alone(&mut self, sink: &mut Sink, mark: &Mark, after: Tok) -> Result<()> {
        let page = self.page_bytes as usize;
        let mut lpns = vec![PAGE_NONE; self.unit_pages as usize];
        let mut bytes = vec![0; page * lpns.len()];
        lpns[0] = self.meta.mark().0;
        mark.encode(&mut bytes[..page]);
        self.stats.marks += 1;
        let (_, programmed) = self.program_meta(sink, &lpns, &bytes, after)?;
        self.flash.in_use = sink.join(self.flash.in_use, programmed.done);
        self.flash.nand_mut().sync()?;
        sink.ack(self.programmed);
        Ok(())
    }

    /// Forgets all volatile state.
    fn reset(&mut self) {
        self.map.reset();
        self.reset_buffers();
        self.reads.reset();
        self.discards_pending.clear();
        self.any_discards_pending = false;
        self.programmed = Tok::default();
        self.stale_below = 0;
        (self.flush_done, self.mark_after) = (Tok::default(), Tok::default());
        self.interrupted.clear();
        (self.merged, self.translated) = (Tok::default(), Tok::default());
        self.flash.reset();
    }

    /// Calls `each` with the state of every programmed page.
    fn each_page(&self, mut each: impl FnMut(Ppn, PageState) -> Result<()>) -> Result<()> {
        let g = *self.flash.nand().geometry();
        for block in (0..g.blocks()).map(BlockId) {
            for page in 0..self.flash.nand().next_page(block) {
                let ppn = g.ppn(block, page);
                each(ppn, self.flash.nand().page_state(ppn)?)?;
            }
        }
        Ok(())
    }

    /// Returns the newest mark that can be read, and whether no other page is newer than what it
    /// states. Pages that garbage collection has moved since keep their numbers.
    fn find_mark(&mut self) -> Result<Option<(Mark, bool)>> {
        let (mark_lpn, mut marks, mut newest) = (self.meta.mark().0, Vec::new(), 0);
        self.each_page(|ppn, state| {
            match state {
                PageState::Programmed(spare) if spare.lpn == mark_lpn => marks.push((spare.seq, ppn)),
                PageState::Programmed(spare) if spare.lpn != PAGE_NONE => newest = newest.max(spare.seq),
                _ => {}
            }
            Ok(())
        })?;
        marks.sort_unstable();
        let mut page = std::mem::take(&mut self.scratch);
        let mut found = None;
        for (i, (seq, ppn)) in marks.into_iter().rev().enumerate() {
            let expect = ExpectedPage { lpn: mark_lpn, tag: seq as u16 };
            let read = self.flash.nand_mut().copy_out(ppn, 0, ReadTarget::Bytes(&mut page), Some(expect));
            // The program of the newest mark may have been interrupted.
            if read.is_ok()
                && let Some(mark) = Mark::decode(&page)
            {
                let last = i == 0 && newest <= mark.durable;
                found = Some((mark, last));
                break;
            }
        }
        self.scratch = page;
        Ok(found)
    }

    /// Finds the newest version of each page. Versions up to `durable` are complete, whatever the
    /// crash interrupted.
    fn scan(&mut self, mark: &Mark, durable: u64, crash: CrashKind) -> Result<Scan> {
        let g = *self.flash.nand().geometry();
        let mut scan = Scan {
            newest: Newest::new(to_usize(self.all_pages())),
            seq: 0,
            torn: Vec::new(),
            damaged: Vec::new(),
            maps: Vec::new(),
            records: 0,
        };
        let mut page = std::mem::take(&mut self.scratch);
        let scanned = (0..g.blocks())
            .map(BlockId)
            .try_for_each(|block| self.scan_block(block, mark, durable, crash, &mut page, &mut scan));
        self.scratch = page;
        scanned.map(|()| scan)
    }

    fn scan_block(
        &mut self,
        block: BlockId,
        mark: &Mark,
        durable: u64,
        crash: CrashKind,
        page: &mut [u8],
        scan: &mut Scan,
    ) -> Result<()> {
        let g = *self.flash.nand().geometry();
        let nand = self.flash.nand();
        let states: Vec<PageState> =
            (0..nand.next_page(block)).map(|at| nand.page_state(g.ppn(block, at))).collect::<Result<_>>()?;
        scan.records += states.len() as u64;
        let tail = self.tail(block, &states, durable, crash, page)?;
        for (at, state) in (0..).zip(states) {
            let ppn = g.ppn(block, at);
            let spare = match state {
                PageState::Erased | PageState::Failed => continue,
                PageState::Damaged => {
                    let in_tail = at >= tail.from;
                    scan.damaged.push(DamagedRecord { ppn, in_tail });
                    continue;
                }
                PageState::Programmed(spare) => spare,
            };
            scan.seq = scan.seq.max(spare.seq);
            let interrupted = InterruptedPage { ppn, seq: spare.seq };
            if tail.bad.contains(&ppn) || mark.interrupted.contains(&interrupted) {
                scan.torn.push((ppn, spare));
                continue;
            }
            if let Some(index) = self.meta.index_of(Lpn(spare.lpn)) {
                scan.maps.push((index, spare, ppn));
            }
            scan.newest.offer(spare, ppn);
        }
        Ok(())
    }

    /// Finds the programs of a block that may have been interrupted, and those of their pages with
    /// damaged data.
    ///
    /// Without a power loss of the machine these are the programs after the last one whose pages are
    /// all valid: programs of one block are executed in order. Earlier recoveries that were
    /// interrupted too can have left several.
    fn tail(
        &mut self,
        block: BlockId,
        states: &[PageState],
        durable: u64,
        crash: CrashKind,
        page: &mut [u8],
    ) -> Result<BlockTail> {
        let run = self.unit_pages as usize;
        let mut tail = BlockTail { from: count_u32(states.len()), bad: Vec::new() };
        let units = states.len().div_ceil(run);
        for unit in (0..units).rev() {
            let pages = unit * run..((unit + 1) * run).min(states.len());
            let (mut valid, mut bad, mut blank) = (false, false, false);
            for at in pages.clone() {
                let ppn = self.flash.nand().geometry().ppn(block, count_u32(at));
                match states[at] {
                    PageState::Damaged => bad = true,
                    PageState::Programmed(spare)
                        if spare.seq > durable && self.is_bad(ppn, spare, page)? =>
                    {
                        tail.bad.push(ppn);
                        bad = true;
                    }
                    PageState::Programmed(_) => valid = true,
                    PageState::Erased => blank = !is_planted(FtlBug::BlankComplete),
                    PageState::Failed => {}
                }
            }
            tail.from = count_u32(pages.start);
            // A complete program leaves no page of its unit blank.
            if crash == CrashKind::Process && valid && !bad && !blank {
                break;
            }
        }
        Ok(tail)
    }

    /// Chooses among several copies of a version. Garbage collection was moving such a page: the
    /// program of the copy may have been interrupted, or the erase of the block that it came from.
    fn choose_copies(&mut self, newest: &mut Newest) -> Result<()> {
        if is_planted(FtlBug::FirstCopyTaken) {
            return Ok(());
        }
        let mut page = std::mem::take(&mut self.scratch);
        let mut chosen = Ok(());
        for &(lpn, seq, other) in newest.others.iter().filter(|(lpn, seq, _)| newest.seq[lpn.idx()] == *seq) {
            let spare = Spare { lpn: lpn.0, seq };
            match self.is_bad(newest.ppn[lpn.idx()], spare, &mut page) {
                Ok(true) => newest.ppn[lpn.idx()] = other,
                Ok(false) => {}
                Err(e) => chosen = Err(e),
            }
        }
        self.scratch = page;
        chosen
    }

    /// Returns `true` if the data of a page is damaged.
    fn is_bad(&mut self, ppn: Ppn, spare: Spare, page: &mut [u8]) -> Result<bool> {
        let expect = ExpectedPage { lpn: spare.lpn, tag: spare.seq as u16 };
        match self.flash.nand_mut().copy_out(ppn, 0, ReadTarget::Bytes(page), Some(expect)) {
            Ok(()) => Ok(false),
            Err(Error::Corrupt { .. }) => Ok(!is_planted(FtlBug::TornUnverified)),
            Err(e) => Err(e),
        }
    }

    /// Divides the damaged records into those that an interrupted program or erase explains, which
    /// are returned, and others.
    fn explain_damage(
        &self,
        scan: &mut Scan,
        mark: &Mark,
        durable: u64,
        crash: CrashKind,
    ) -> Vec<DamagedRecord> {
        let g = *self.flash.nand().geometry();
        // The last page of each block that is a current version: any, and one that was durable.
        let mut last = vec![[None; 2]; g.blocks() as usize];
        let moving: HashSet<Lpn> = scan.newest.others.iter().map(|(lpn, ..)| *lpn).collect();
        for (lpn, (&seq, &ppn)) in (0..).map(Lpn).zip(scan.newest.seq.iter().zip(&scan.newest.ppn)) {
            let durable = if seq <= durable { 2 } else { 1 };
            // Of two copies of a page, one may have been interrupted, or its block be erased.
            if seq > 0 && !moving.contains(&lpn) {
                for last in &mut last[g.block_of(ppn).idx()][..durable] {
                    *last = (*last).max(Some(ppn.0));
                }
            }
        }
        let explained = |d: &DamagedRecord| {
            let [current, durable] = last[g.block_of(d.ppn).idx()];
            mark.interrupted.contains(&InterruptedPage { ppn: d.ppn, seq: 0 })
                || match crash {
                    // Its block was being erased, or nothing was programmed after it.
                    CrashKind::Process => current.is_none() || d.in_tail,
                    // A block that was erased and written again can have old and new records.
                    CrashKind::PowerLoss => durable.is_none_or(|last| last < d.ppn.0),
                }
        };
        let all = std::mem::take(&mut scan.damaged);
        let (explained, damaged): (Vec<_>, Vec<_>) = all.into_iter().partition(explained);
        scan.damaged = damaged;
        explained
    }

    /// Removes the versions that were discarded. An older discard map stays true: it is about older
    /// versions only.
    fn apply_discards(&mut self, scan: &mut Scan, r: &mut Recovery) -> Result<()> {
        if is_planted(FtlBug::DiscardsForgotten) {
            return Ok(());
        }
        let mut page = std::mem::take(&mut self.scratch);
        let mut damaged = Vec::new();
        for (index, spare, ppn) in std::mem::take(&mut scan.maps) {
            let covered = self.meta.covered_by(index);
            let expect = ExpectedPage { lpn: spare.lpn, tag: spare.seq as u16 };
            let into = ReadTarget::Bytes(&mut page);
            let newest = &mut scan.newest;
            let decoded = self.flash.nand_mut().copy_out(ppn, 0, into, Some(expect)).map(|()| {
                decode_discards(&page, index, covered.clone(), |lpn, seq| {
                    if newest.seq[lpn.idx()] <= seq {
                        newest.seq[lpn.idx()] = 0;
                    }
                })
            });
            let is_newest = scan.newest.ppn[to_usize(spare.lpn)] == ppn;
            if is_newest && !matches!(decoded, Ok(Some(()))) {
                damaged.push((index, spare.seq));
            }
        }
        self.scratch = page;
        for &(index, seq) in &damaged {
            // The other copy states the same, and both are written again.
            self.note_discard_map(index);
            if damaged.iter().filter(|d| d.0 == index).count() < to_usize(MAP_COPIES) {
                continue;
            }
            let covered = self.meta.covered_by(index);
            let what = format!(
                "both records of the discards of pages {} to {} are damaged: discarded pages may have older \
                 contents",
                covered.start,
                covered.end - 1
            );
            self.stale_below = self.stale_below.max(seq + 1);
            self.flash.health.note_missing(what, r);
        }
        Ok(())
    }

    /// Removes the pages that were lost before the mark was written: what a scan finds of them is
    /// damaged, or older.
    fn apply_lost(&mut self, scan: &mut Scan, mark: &Mark, r: &mut Recovery) {
        if is_planted(FtlBug::LostForgotten) {
            return;
        }
        for &lpn in &mark.lost {
            if scan.newest.seq.get(to_usize(lpn)).is_some_and(|&seq| seq <= mark.seq) {
                scan.newest.seq[to_usize(lpn)] = 0;
                let why = "it was lost before the last flush or halt";
                self.map.note_lost(Lpn(lpn), why.to_owned());
                r.lost.push(LostPage { lpn, why: why.to_owned() });
            }
        }
        if mark.more_lost {
            self.stale_below = self.stale_below.max(mark.seq + 1);
            let what = "more pages were lost before the last flush than its mark lists".to_owned();
            self.flash.health.note_missing(what, r);
        }
    }

    /// Notes damaged records, unless the summary of a clean halt shows that no page misses them.
    fn note_damage(&mut self, scan: &Scan, halted: Option<MapSummary>, found: MapSummary, r: &mut Recovery) {
        let what = match halted {
            Some(summary) if summary == found => return,
            Some(summary) => format!(
                "{} pages were mapped at the last halt, and {} are found, or other versions of them; {} records \
                 in spare areas are damaged",
                summary.pages,
                found.pages,
                scan.damaged.len()
            ),
            None if scan.damaged.is_empty() => return,
            None => format!(
                "{} records in spare areas are damaged, the first at NAND page {}: pages may be missing, or older",
                scan.damaged.len(),
                scan.damaged[0].ppn.0
            ),
        };
        // The number of a damaged record is unknown.
        self.stale_below = scan.seq + 1;
        self.flash.health.note_missing(what, r);
    }

    /// Writes newer versions of pages whose interrupted versions have valid records.
    fn supersede_torn(&mut self, sink: &mut Sink, torn: &[(Ppn, Spare)], r: &mut Recovery) -> Result<()> {
        if torn.is_empty() {
            return Ok(());
        }
        let mut page = vec![0; self.page_bytes as usize];
        for (_, spare) in torn {
            let lpn = Lpn(spare.lpn);
            if let Some(index) = self.meta.index_of(lpn) {
                self.note_discard_map(index);
            }
            if lpn.0 >= self.pages || self.map.get(lpn).is_buffered() {
                continue;
            }
            let entry = self.map.get(lpn);
            let Some(ppn) = entry.ppn() else {
                self.note_discard_map(self.meta.map_of(lpn));
                continue;
            };
            let into = ReadTarget::Bytes(&mut page);
            match self.flash.read(sink, ppn, 0, into, entry.tag(), Cause::Meta) {
                Ok(read) => {
                    self.buffer_meta(sink, lpn, |to| to.copy_from_slice(&page))?;
                    self.note_changed(lpn, 0);
                    self.buffer.wait_for(sink, read);
                }
                Err(e @ Error::Corrupt { .. }) => {
                    r.lost.push(LostPage { lpn: lpn.0, why: e.to_string() });
                }
                Err(e) => return Err(e),
            }
        }
        self.write_discards(sink)?;
        self.program_buffer(sink, Cause::Meta)?;
        self.flash.nand_mut().sync()?;
        sink.ack(self.programmed);
        Ok(())
    }

    /// Shuts down in order: programs everything, and the mark of the halt.
    pub(super) fn shut_down(&mut self, sink: &mut Sink) -> Result<()> {
        self.flash.writable()?;
        self.flush_all(sink)?;
        if !self.config.scans() {
            return Ok(());
        }
        let mut summary = MapSummary::default();
        self.map.entries(self.pages).for_each(|(lpn, entry)| summary.add(lpn, entry));
        let mark = Mark { durable: self.flash.last_seq(), halted: true, summary, ..self.mark() };
        if !mark.fits(self.page_bytes) {
            // A scan finds the records of lost pages, so a summary would not agree.
            return Ok(());
        }
        // The mark must not be durable before what it states. No garbage collection follows it,
        // which would change the map.
        let after = sink.join(self.flush_done, self.flash.erased);
        self.write_mark_alone(sink, &mark, after)?;
        self.changed = false;
        Ok(())
    }
}

//! Consistency check of map, spare areas, descriptors and data.
//!
//! A read verifies the page that the map names. It cannot detect a map entry whose last change
//! never reached PCM: the old page that the entry names is valid. Only the newer page, which no
//! entry names, reveals it. Pages without an entry are in order up to the sequence number of the
//! last recovery after a crash (`RecordedUse::recovered`): they belong to writes that were never
//! acknowledged.

use super::Hfsl;
use super::entry::{MapEntry, PageLocation};
use super::layout::{DESC_BYTES, DESC_LEN};
use super::pcm::{Desc, NONE};
use crate::planted::HfslBug;
use crate::spans::PageSpan;
use frit_core::planted::is_planted;
use frit_core::{
    BlockId, Cause, CheckCounts, CheckScope, Error, Finding, Lpn, MediumKind, Ppn, ReadTarget, Result,
    Severity, Sink,
};
use std::collections::BTreeMap;

/// Page version that no entry names.
#[derive(Clone, Copy, Debug)]
pub(super) struct Orphan {
    pub(super) seq: u64,
    pub(super) place: PageLocation,
}

/// Location in a medium that a finding names.
#[derive(Clone, Copy, Debug)]
struct MediumAddr {
    medium: MediumKind,
    at: u64,
}

/// State of a running check.
pub(super) struct CheckRun<'a> {
    pub(super) scope: CheckScope,
    found: &'a mut dyn FnMut(Finding),
    pub(super) seen: CheckCounts,
    /// Sequence numbers of the versions that the map names; 0 for none.
    mapped: Vec<u64>,
    /// Findings about damaged pages, held back until their other versions are known.
    bad: BTreeMap<u32, Vec<Finding>>,
    /// Newest version that no entry names, by logical page.
    newest: BTreeMap<u32, Orphan>,
}

impl CheckRun<'_> {
    fn report(&mut self, kind: &'static str, lpn: u32, place: MediumAddr, what: String) {
        let (severity, MediumAddr { medium, at }) = (Severity::Major, place);
        let finding = Finding {
            layer: String::new(),
            kind,
            severity,
            lpn: Some(lpn),
            medium,
            at,
            what,
            repaired: false,
        };
        self.bad.entry(lpn).or_default().push(finding);
    }

    fn emit_finding(
        &mut self,
        kind: &'static str,
        lpn: u32,
        place: MediumAddr,
        what: String,
        repaired: bool,
    ) {
        let MediumAddr { medium, at } = place;
        (self.found)(Finding {
            layer: String::new(),
            kind,
            severity: Severity::Major,
            lpn: Some(lpn),
            medium,
            at,
            what,
            repaired,
        });
    }

    /// Records a page version that the map does not name.
    fn orphan(&mut self, lpn: u32, seq: u64, place: PageLocation) {
        let newest = self.newest.entry(lpn).or_insert(Orphan { seq, place });
        if seq > newest.seq {
            *newest = Orphan { seq, place };
        }
    }
}

/// Location of the damage that an error reports.
fn damage_location(e: &Error) -> MediumAddr {
    match e {
        Error::Corrupt { medium, at, .. } => MediumAddr { medium: *medium, at: *at },
        _ => MediumAddr { medium: MediumKind::Pcm, at: 0 },
    }
}

impl Hfsl {
    /// Compares map, spare areas, descriptors and data with each other.
    pub(super) fn run_check(
        &mut self,
        sink: &mut Sink,
        scope: CheckScope,
        found: &mut dyn FnMut(Finding),
    ) -> Result<CheckCounts> {
        let mut check = CheckRun {
            scope,
            found,
            seen: CheckCounts::default(),
            mapped: vec![0; self.pages as usize],
            bad: BTreeMap::new(),
            newest: BTreeMap::new(),
        };
        for (&lpn, why) in &self.map.lost {
            let at = self.map.pcm.as_ref().map_or(0, |p| p.layout.map_at) + 8 * u64::from(lpn);
            check.report("lost", lpn, MediumAddr { medium: MediumKind::Pcm, at }, why.clone());
        }
        for lpn in (0..self.pages).map(Lpn) {
            self.check_entry(lpn, &mut check)?;
            if let Err(e) = self.check_page(sink, lpn, &mut check) {
                match e {
                    Error::Corrupt { .. } => {
                        check.report("bad-page", lpn.0, damage_location(&e), e.to_string());
                    }
                    e => return Err(e),
                }
            }
        }
        self.find_orphans(sink, &mut check)?;
        self.resolve_orphans(sink, &mut check)?;
        for at in self.check_redo(sink, scope.repair)? {
            (check.found)(Finding {
                layer: String::new(),
                kind: "bad-redo-record",
                severity: Severity::Minor,
                lpn: None,
                medium: MediumKind::Pcm,
                at,
                what: "a redo record is damaged; no page needs it while the volume is open".into(),
                repaired: scope.repair,
            });
        }
        let CheckRun { bad, found, seen, .. } = check;
        bad.into_values().flatten().for_each(found);
        Ok(seen)
    }

    /// Compares the entry in PCM with the entry in DRAM.
    fn check_entry(&self, lpn: Lpn, check: &mut CheckRun<'_>) -> Result<()> {
        let Some(pcm) = &self.map.pcm else { return Ok(()) };
        check.seen.entries += 1;
        let is = self.map.get(lpn);
        // Under `map_persist = halt` the entry in PCM may be older while the layer is in use.
        if self.map.lost.contains_key(&lpn.0) || is.changed() {
            return Ok(());
        }
        let place = MediumAddr { medium: MediumKind::Pcm, at: pcm.layout.map_at + 8 * u64::from(lpn.0) };
        let raw = pcm.peek_entry(lpn.0)?;
        match MapEntry::decode_checked(raw, lpn.0) {
            None if raw == 0 && !self.usage.map_initialised => {}
            None => check.report("bad-entry", lpn.0, place, "the map entry in PCM is damaged".into()),
            Some(e) if e.place() != is.place() || e.tag() != is.tag() => {
                let what =
                    format!("the map entry in PCM says {:?}, and {:?} is expected", e.place(), is.place());
                check.report("stale-entry", lpn.0, place, what);
            }
            Some(_) => {}
        }
        Ok(())
    }

    /// Compares the record of a page with its entry, and verifies the data if the scope includes
    /// it.
    fn check_page(&mut self, sink: &mut Sink, lpn: Lpn, check: &mut CheckRun<'_>) -> Result<()> {
        let entry = self.map.get(lpn);
        match entry.place() {
            PageLocation::Unmapped => return Ok(()),
            PageLocation::Nand(ppn) => {
                check.seen.records += 1;
                check.mapped[lpn.idx()] = self.flash.version(ppn, lpn, entry.tag())?;
            }
            PageLocation::Pcm(desc) => {
                let Some(pcm) = &mut self.map.pcm else { return Ok(()) };
                check.mapped[lpn.idx()] = pcm.desc[desc as usize].seq;
                if !entry.changed() {
                    check.seen.records += 1;
                    pcm.read_desc(sink, lpn, desc, entry.tag())?;
                }
            }
        }
        if check.scope.data {
            let mut page = std::mem::take(&mut self.scratch);
            let span = PageSpan::whole(lpn, self.page_bytes);
            let read = self.read_part(sink, span, ReadTarget::Bytes(&mut page), Cause::Meta);
            self.scratch = page;
            check.seen.pages_read += 1;
            check.seen.bytes_verified += u64::from(self.page_bytes);
            read?;
        }
        Ok(())
    }

    /// Finds valid page versions that no entry names.
    fn find_orphans(&mut self, sink: &mut Sink, check: &mut CheckRun<'_>) -> Result<()> {
        let g = *self.flash.nand().geometry();
        for block in (0..g.blocks()).map(BlockId) {
            for page in 0..self.flash.nand().next_page(block) {
                let ppn: Ppn = g.ppn(block, page);
                check.seen.records += 1;
                if self.flash.lpn_of(ppn).is_some() {
                    continue;
                }
                match self.flash.nand().spare(ppn) {
                    Ok(Some(s)) if s.lpn < self.pages => check.orphan(s.lpn, s.seq, PageLocation::Nand(ppn)),
                    Ok(_) | Err(Error::Corrupt { .. }) => {}
                    Err(e) => return Err(e),
                }
            }
        }
        let Some(pcm) = &mut self.map.pcm else { return Ok(()) };
        let mut bytes = [0; DESC_LEN];
        for desc in (0..pcm.layout.slots).filter(|&d| pcm.desc[d as usize].lpn == NONE).collect::<Vec<_>>() {
            check.seen.records += 1;
            let (at, start) = (pcm.layout.desc_at + u64::from(desc) * DESC_BYTES, sink.start());
            pcm.medium.read(sink, at, ReadTarget::Bytes(&mut bytes), Cause::Meta, start)?;
            if let Some((d, _)) = Desc::decode(&bytes).filter(|(d, _)| d.lpn < self.pages) {
                check.orphan(d.lpn, d.seq, PageLocation::Pcm(desc));
            }
        }
        Ok(())
    }

    /// Decides whether an entry should name a version that it does not, and repairs it if asked to.
    fn resolve_orphans(&mut self, sink: &mut Sink, check: &mut CheckRun<'_>) -> Result<()> {
        for (lpn, orphan) in std::mem::take(&mut check.newest) {
            let (medium, at) = match orphan.place {
                PageLocation::Nand(ppn) => (MediumKind::Nand, u64::from(ppn.0)),
                PageLocation::Pcm(desc) => (MediumKind::Pcm, u64::from(desc)),
                PageLocation::Unmapped => continue,
            };
            let place = MediumAddr { medium, at };
            if let Some(findings) = check.bad.remove(&lpn) {
                let findings = self.extend_findings(sink, Lpn(lpn), orphan, place, findings, check)?;
                check.bad.insert(lpn, findings);
                continue;
            }
            if is_planted(HfslBug::StaleEntryUnseen) || !self.is_stale(Lpn(lpn), orphan, check)? {
                continue;
            }
            let repaired = check.scope.repair && self.map_orphan(sink, Lpn(lpn), orphan)?;
            let what = format!(
                "version {} of the page lies here{}, the map names version {}",
                orphan.seq,
                self.device_of(orphan),
                check.mapped[lpn as usize]
            );
            check.emit_finding("stale-entry", lpn, place, what, repaired);
        }
        Ok(())
    }

    /// Returns the text that names the NAND device of a version, if there are several.
    fn device_of(&self, orphan: Orphan) -> String {
        match orphan.place {
            PageLocation::Nand(ppn) => self.flash.nand().page_place(ppn),
            PageLocation::Pcm(_) | PageLocation::Unmapped => String::new(),
        }
    }

    /// Extends the findings about a damaged page by its newest other version. Maps that version if
    /// repair is asked for, and it is the lost version or a newer one, or older versions are
    /// permitted.
    fn extend_findings(
        &mut self,
        sink: &mut Sink,
        lpn: Lpn,
        orphan: Orphan,
        place: MediumAddr,
        mut findings: Vec<Finding>,
        check: &CheckRun<'_>,
    ) -> Result<Vec<Finding>> {
        let raw = self.map.pcm.as_ref().map(|p| p.peek_entry(lpn.0)).transpose()?;
        // The entry in PCM still has the version tag of a lost page, unless the entry itself is
        // damaged.
        let named = raw.and_then(|raw| MapEntry::decode_checked(raw, lpn.0)).map(MapEntry::tag);
        let (same, which) = match named {
            Some(tag) if tag == orphan.seq as u16 => (true, "the same version"),
            // The page is damaged, and the map is stale as well.
            Some(_) if check.mapped[lpn.idx()] != 0 && self.is_stale(lpn, orphan, check)? => {
                (true, "a newer version")
            }
            Some(_) => (false, "an older version"),
            // The lost entry may have named a newer version, or none: a discard leaves no record.
            None => (false, "a version that may be older"),
        };
        let scope = check.scope;
        let mapped = scope.repair && (same || scope.older) && self.map_orphan(sink, lpn, orphan)?;
        let (medium, at): (&'static str, u64) = (place.medium.into(), place.at);
        let device = self.device_of(orphan);
        let then = match (mapped, same || scope.older) {
            (true, _) => "; that version is mapped now",
            (false, false) => "; --repair --older maps it",
            (false, true) if scope.repair => ", which is damaged too",
            (false, true) => "; --repair maps it",
        };
        for f in &mut findings {
            f.what += &format!("; {which}, {}, lies in {medium} at {at}{device}{then}", orphan.seq);
            f.repaired = mapped;
        }
        Ok(findings)
    }

    /// Returns `true` if the map should name this version: it is newer, and not the result of a
    /// crash.
    fn is_stale(&self, lpn: Lpn, orphan: Orphan, check: &CheckRun<'_>) -> Result<bool> {
        if orphan.seq <= self.usage.recovered {
            return Ok(false);
        }
        if self.map.get(lpn).place() != PageLocation::Unmapped {
            return Ok(orphan.seq > check.mapped[lpn.idx()]);
        }
        // A discarded page keeps only the tag of its version in the entry, so nothing can be
        // concluded. A page that was never written (tag 0) must not have any version.
        Ok(self.map.each() && self.map.get(lpn).tag() == 0)
    }
}

//! Check: the metadata of the sides, and a comparison of their data.

use super::sector::{Found, SECTOR, Superblock, decode_bitmap};
use super::{Mirror, each};
use frit_core::BlockDevice;
use frit_core::{
    Cause, CheckCounts, CheckScope, Finding, MediumKind, ReadTarget, Result, SECTOR_BYTES, Severity, Sink,
    WriteData,
};

/// Number of bytes that are compared at a time.
const PART: u64 = 64 << 10;

fn finding(kind: &'static str, severity: Severity, at: u64, what: String, repaired: bool) -> Finding {
    Finding { layer: String::new(), kind, severity, lpn: None, medium: MediumKind::Disk, at, what, repaired }
}

impl Mirror {
    /// Checks the mirror.
    pub(super) fn run_check(
        &mut self,
        sink: &mut Sink,
        scope: CheckScope,
        found: &mut dyn FnMut(Finding),
    ) -> Result<CheckCounts> {
        for (side, why) in &self.out {
            let what = format!("side {side} is out of service: {why}");
            found(finding("side-out", Severity::Minor, 0, what, false));
        }
        let mut counts = CheckCounts::default();
        if self.formatted {
            for side in each(self.serving) {
                counts.records += self.check_metadata(sink, side, scope, found)?;
            }
        }
        if scope.data {
            let mut at = 0;
            while at < self.layout.data {
                let end = (at + PART).min(self.layout.bytes_of(self.layout.region_of(at)).end);
                // Sides may differ where copies are to be made.
                if !self.regions.differs(self.layout.region_of(at)) {
                    counts.bytes_verified += self.compare(sink, at, end - at, scope, found);
                }
                at = end;
            }
        }
        if scope.repair {
            let start = sink.start();
            self.flush_sides(sink, Cause::Meta, start)?;
        }
        Ok(counts)
    }

    /// Checks the metadata sectors of a side. Returns their number.
    fn check_metadata(
        &mut self,
        sink: &mut Sink,
        side: usize,
        scope: CheckScope,
        found: &mut dyn FnMut(Finding),
    ) -> Result<u64> {
        let start = sink.start();
        for at in self.layout.superblocks() {
            let read = self.read_sector(sink, side, at).map(|b| Superblock::decode(&b));
            if matches!(read, Ok(Found::Valid(s)) if s.identity == self.identity) {
                continue;
            }
            let repaired = scope.repair && self.put_superblock(sink, side, self.stale, start).is_ok();
            let what = format!("side {side}: a copy of the superblock is damaged");
            found(finding("bad-superblock", Severity::Minor, at, what, repaired));
        }
        for sector in 0..self.layout.bitmap_sectors() {
            let at = self.layout.bitmap_at(sector);
            let read = self.read_sector(sink, side, at);
            if read.is_ok_and(|b| decode_bitmap(&b, self.identity, sector).is_some()) {
                continue;
            }
            let after = sink.join(start, self.cleared);
            let repaired =
                scope.repair && self.put_bitmap(sink, 1 << side, sector..sector + 1, after).failed == 0;
            let what = format!("side {side}: a sector of the bitmap is damaged");
            found(finding("bad-bitmap", Severity::Minor, at, what, repaired));
        }
        Ok(2 + self.layout.bitmap_sectors() as u64)
    }

    /// Compares a part of the data on all sides that serve, with the side that the user trusts or
    /// the first one. Returns the number of bytes that it read.
    fn compare(
        &mut self,
        sink: &mut Sink,
        at: u64,
        len: u64,
        scope: CheckScope,
        found: &mut dyn FnMut(Finding),
    ) -> u64 {
        let prefer = usize::try_from(self.base.config.prefer).ok().filter(|p| self.serving >> p & 1 == 1);
        let first = prefer.unwrap_or(self.source);
        let mut model = vec![0; len as usize];
        if !self.read_for_check(sink, first, at, &mut model, found) {
            return 0;
        }
        let mut read = len;
        let mut other = vec![0; len as usize];
        for side in each(self.serving & !(1 << first)) {
            if !self.read_for_check(sink, side, at, &mut other, found) {
                continue;
            }
            read += len;
            for (from, to) in differing(&model, &other) {
                let data = WriteData::Bytes(&model[from..to]);
                let (place, start) = (at + from as u64, sink.start());
                let mut write =
                    || self.base.devices.get_mut(side).write(sink, place, data, Cause::Migrate, start);
                let written = if scope.repair { write().ok() } else { None };
                if let Some(tok) = written {
                    self.pending = sink.join(self.pending, tok);
                    self.counts.sectors_rewritten += (to - from) as u64 / SECTOR_BYTES;
                }
                let what = format!(
                    "sectors {} to {} of side {side} differ from those of side {first}",
                    place / SECTOR_BYTES,
                    (at + to as u64) / SECTOR_BYTES - 1
                );
                found(finding("sides-differ", Severity::Major, place, what, written.is_some()));
            }
        }
        read
    }

    fn read_for_check(
        &mut self,
        sink: &mut Sink,
        side: usize,
        at: u64,
        into: &mut [u8],
        found: &mut dyn FnMut(Finding),
    ) -> bool {
        let start = sink.start();
        let sectors = into.len() as u64 / SECTOR_BYTES;
        let read =
            self.base.devices.get_mut(side).read(sink, at, ReadTarget::Bytes(into), Cause::Host, start);
        if let Err(e) = &read {
            let first = at / SECTOR_BYTES;
            let what =
                format!("sectors {first} to {} of side {side} cannot be read: {e}", first + sectors - 1);
            // A read of them is served from another side, which rewrites them.
            found(finding("unreadable-side", Severity::Minor, at, what, false));
        }
        read.is_ok()
    }
}

/// Returns the runs of sectors that differ, as ranges of bytes.
fn differing(a: &[u8], b: &[u8]) -> Vec<(usize, usize)> {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for (i, (x, y)) in a.chunks(SECTOR).zip(b.chunks(SECTOR)).enumerate().filter(|(_, (x, y))| x != y) {
        let (from, to) = (i * SECTOR, i * SECTOR + x.len().min(y.len()));
        match runs.last_mut() {
            Some(run) if run.1 == from => run.1 = to,
            _ => runs.push((from, to)),
        }
    }
    runs
}

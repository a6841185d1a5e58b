//! Check of the map against the store, and of the checksums.

use super::entry::checksum;
use super::layer::{Segments, fill_from};
use super::space::DEAD;
use frit_core::{
    Cause, CheckCounts, CheckScope, Finding, MediumKind, ObjectId, ReadTarget, Result, Severity, Sink,
};
use std::collections::BTreeMap;

impl Segments {
    /// Compares the map on its device with the entries, and the entries with the objects of the
    /// store; with `scope.data`, the contents with their checksums.
    pub(super) fn run_check(
        &mut self,
        sink: &mut Sink,
        scope: CheckScope,
        found: &mut dyn FnMut(Finding),
    ) -> Result<CheckCounts> {
        let records = self.table.check(sink, self.base.devices.get_mut(0), &fill_from(&self.entries), found);
        let mut counts =
            CheckCounts { entries: self.entries.len() as u64, records, ..CheckCounts::default() };
        let mut report = |kind, severity, chunk: Option<u32>, at, what| {
            let medium = if kind == "bad-entry" { MediumKind::Disk } else { MediumKind::Object };
            let layer = String::new();
            found(Finding { layer, kind, severity, lpn: chunk, medium, at, what, repaired: false });
        };
        let listed: BTreeMap<ObjectId, u32> = self.store.list(sink)?.into_iter().collect();
        let chunk = self.shape.volume.chunk;
        let mut places: Vec<(ObjectId, u16, u32)> = Vec::new();
        for (i, e) in (0..).zip(&self.entries) {
            if e.is_lost() {
                let at = self.shape.layout.sector_at(0, self.table.sector_of(u64::from(i)));
                report("bad-entry", Severity::Major, Some(i), at, format!("the entry of chunk {i} is lost"));
            } else if e.is_mapped() && self.open_segment(e.object).is_none() {
                let end = (u64::from(e.index) + 1) * chunk;
                if listed.get(&e.object).is_none_or(|&size| end > u64::from(size)) {
                    let what =
                        format!("object {} of chunk {i} is missing in the store, or too short", e.object);
                    report("missing-object", Severity::Major, Some(i), end - chunk, what);
                } else {
                    places.push((e.object, e.index, i));
                }
            }
        }
        places.sort_unstable();
        for pair in places.windows(2).filter(|p| (p[0].0, p[0].1) == (p[1].0, p[1].1)) {
            let ((object, index, a), (_, _, b)) = (pair[0], pair[1]);
            let what = format!("chunks {a} and {b} have the same place in object {object}");
            report("double-use", Severity::Major, Some(a), u64::from(index) * chunk, what);
        }
        for id in listed.keys().filter(|id| !self.knows(**id)) {
            let what = format!("no chunk is in object {id}, which takes space in the store");
            report("orphan-object", Severity::Minor, None, 0, what);
        }
        if scope.data && !self.without_bytes {
            self.check_contents(sink, &places, &mut counts, &mut |i, at, what| {
                report("bad-data", Severity::Major, Some(i), at, what);
            });
        }
        Ok(counts)
    }

    /// Returns `true` for an object with live chunks, and for one that waits for its deletion.
    fn knows(&self, id: ObjectId) -> bool {
        self.space.get(id).is_some_and(|s| s.owners.iter().any(|&o| o != DEAD)) || self.space.is_garbage(id)
    }

    /// Reads the chunks of `places`, which are sorted, and verifies their checksums.
    fn check_contents(
        &mut self,
        sink: &mut Sink,
        places: &[(ObjectId, u16, u32)],
        counts: &mut CheckCounts,
        report: &mut dyn FnMut(u32, u64, String),
    ) {
        let len = self.chunk_len();
        let mut bytes = Vec::new();
        // Chunks that follow each other in an object are read together.
        for run in places.chunk_by(|a, b| a.0 == b.0 && u32::from(a.1) + 1 == u32::from(b.1)) {
            let (object, first, _) = run[0];
            bytes.resize(run.len() * len, 0);
            let (start, into) = (sink.start(), ReadTarget::Bytes(&mut bytes));
            let read = self.store.get(sink, object, u32::from(first) * len as u32, into, Cause::Meta, start);
            for (&(_, index, chunk), b) in run.iter().zip(bytes.chunks_exact(len)) {
                counts.pages_read += 1;
                counts.bytes_verified += len as u64;
                let at = u64::from(index) * len as u64;
                match &read {
                    Err(e) => report(chunk, at, e.to_string()),
                    Ok(_) if checksum(b, chunk) != self.entries[chunk as usize].sum => {
                        report(chunk, at, self.damaged(chunk).to_string());
                    }
                    Ok(_) => {}
                }
            }
        }
    }
}

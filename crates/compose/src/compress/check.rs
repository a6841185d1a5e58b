//! Check of the table against the free runs, and of the digests.

use super::layer::{Compress, fill_from};
use frit_core::{Cause, CheckCounts, CheckScope, Finding, MediumKind, SECTOR_BYTES, Severity, Sink};

impl Compress {
    /// Compares the table on the device with the entries, the entries with each other and with the
    /// free runs, and with `scope.data` the contents with their digests.
    pub(super) fn run_check(
        &mut self,
        sink: &mut Sink,
        scope: CheckScope,
        found: &mut dyn FnMut(Finding),
    ) -> CheckCounts {
        let records = self.table.check(sink, self.base.devices.get_mut(0), &fill_from(&self.entries), found);
        let mut counts =
            CheckCounts { entries: self.entries.len() as u64, records, ..CheckCounts::default() };
        let mut report = |kind, at, i: u32, what| {
            let (layer, medium) = (String::new(), MediumKind::Disk);
            let lpn = Some(i);
            found(Finding { layer, kind, severity: Severity::Major, lpn, medium, at, what, repaired: false });
        };
        let mut runs: Vec<(u64, u64, u32)> = Vec::new();
        for (i, e) in (0..).zip(&self.entries) {
            if e.is_lost() {
                let at = self.shape.layout.sector_at(0, self.table.sector_of(u64::from(i)));
                report("bad-entry", at, i, format!("the entry of chunk {i} is lost"));
            } else if e.sectors > 0 {
                runs.push((e.first, u64::from(e.sectors), i));
            }
        }
        let used: Vec<(u64, u64, u32)> = runs.clone();
        runs.extend(self.space.runs().map(|(first, n)| (first, n, u32::MAX)));
        runs.sort_unstable();
        for pair in runs.windows(2) {
            let ((first, n, a), (next, _, b)) = (pair[0], pair[1]);
            if first + n > next {
                let of = |c: u32| if c == u32::MAX { "a free run".into() } else { format!("chunk {c}") };
                report(
                    "double-use",
                    next * SECTOR_BYTES,
                    a.min(b),
                    format!("{} and {} overlap", of(a), of(b)),
                );
            }
        }
        if scope.data && !self.without_bytes {
            let mut contents = vec![0; self.shape.volume.chunk as usize];
            for (first, _, chunk) in used {
                let start = sink.start();
                counts.pages_read += 1;
                counts.bytes_verified += self.shape.volume.chunk;
                if let Err(e) = self.fetch(sink, chunk, &mut contents, Cause::Meta, start) {
                    report("bad-data", first * SECTOR_BYTES, chunk, e.to_string());
                }
            }
        }
        counts
    }
}

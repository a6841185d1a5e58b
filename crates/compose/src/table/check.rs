//! Check of a table: its copies on the device against the entries in DRAM.

use super::commit::{Fill, RUN, Table};
use super::layout::COPIES;
use super::sector::{PAYLOAD_BYTES, SECTOR_LEN, payload, seq_of};
use frit_core::{BlockDevice, Finding, MediumKind, Severity, Sink};

impl Table {
    /// Compares both copies of each sector with DRAM. Sectors with changes that are not committed
    /// are left out. Returns the number of sectors that were compared.
    pub(crate) fn check(
        &self,
        sink: &mut Sink,
        device: &mut dyn BlockDevice,
        fill: Fill<'_>,
        found: &mut dyn FnMut(Finding),
    ) -> u64 {
        if !self.formatted {
            return 0;
        }
        let mut compared = 0;
        let mut copies = [Vec::new(), Vec::new()];
        let mut first = 0;
        while first < self.layout.sectors {
            let n = RUN.min(self.layout.sectors - first);
            for (copy, buffer) in (0..COPIES).zip(&mut copies) {
                buffer.resize(n as usize * SECTOR_LEN, 0);
                self.read_run(sink, device, copy, first, buffer);
            }
            let [a, b] = &copies;
            for (i, (a, b)) in (first..).zip(a.chunks_exact(SECTOR_LEN).zip(b.chunks_exact(SECTOR_LEN))) {
                if !self.changed.has(i) {
                    compared += 1;
                    self.check_sector(i, [a, b], fill, found);
                }
            }
            first += n;
        }
        compared
    }

    fn check_sector(&self, i: u32, copies: [&[u8]; 2], fill: Fill<'_>, found: &mut dyn FnMut(Finding)) {
        let lost = self.lost.contains(&i);
        let mut expected = [0; PAYLOAD_BYTES];
        fill(i, &mut expected);
        let valid = copies.map(|b| seq_of(&self.kind, i, b, false).is_some());
        for (copy, b) in (0..COPIES).zip(copies) {
            let what = if !valid[copy as usize] {
                "is damaged"
            } else if !lost && payload(b) != expected {
                "differs from the table in use"
            } else {
                continue;
            };
            let severity = if valid == [false, false] || valid[copy as usize] {
                Severity::Major
            } else {
                Severity::Minor
            };
            found(Finding {
                layer: String::new(),
                kind: if valid[copy as usize] { "stale-entry" } else { "bad-entry" },
                severity,
                lpn: None,
                medium: MediumKind::Disk,
                at: self.layout.sector_at(copy, i),
                what: format!("copy {copy} of table sector {i} {what}"),
                repaired: false,
            });
        }
    }
}

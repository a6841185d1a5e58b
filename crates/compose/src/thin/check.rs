//! Check of the table against the allocation of chunks.

use super::layer::{LOST, NONE, Thin, fill_from};
use frit_core::{CheckCounts, Finding, MediumKind, Severity, Sink};

impl Thin {
    /// Compares the table on the device with the entries, and the entries with the free chunks.
    pub(super) fn run_check(&mut self, sink: &mut Sink, found: &mut dyn FnMut(Finding)) -> CheckCounts {
        let device = self.base.devices.get_mut(0);
        let records = self.table.check(sink, device, &fill_from(&self.map), found);
        let mut owner: Vec<u32> = vec![NONE; self.shape.stored as usize];
        let mut report = |kind, at, i: usize, what| {
            let lpn = Some(i as u32);
            let (layer, medium) = (String::new(), MediumKind::Disk);
            found(Finding { layer, kind, severity: Severity::Major, lpn, medium, at, what, repaired: false });
        };
        let (data_at, chunk) = (self.shape.volume.data_at, self.shape.volume.chunk);
        for (i, &mapped) in self.map.iter().enumerate() {
            if mapped == NONE {
                continue;
            }
            if mapped == LOST {
                let at = self.shape.layout.sector_at(0, self.table.sector_of(i as u64));
                report("bad-entry", at, i, format!("the entry of chunk {i} is lost"));
                continue;
            }
            let at = data_at + u64::from(mapped - 1) * chunk;
            let before = std::mem::replace(&mut owner[mapped as usize - 1], i as u32 + 1);
            if before != NONE {
                report("double-use", at, i, format!("chunks {} and {i} have the same place", before - 1));
            } else if self.space.is_free(mapped - 1) {
                report("double-use", at, i, format!("the place of chunk {i} counts as free"));
            }
        }
        CheckCounts { entries: self.map.len() as u64, records, ..CheckCounts::default() }
    }
}

//! Extents of a range of a volume.

use crate::{Extent, MediumKind, SECTOR_BYTES};
use std::ops::Range;

/// Calls `each` with the extents of a range of bytes, in ascending order. `run` returns the end of
/// the run that begins at a byte, and its medium. Adjacent runs on one medium are one extent, and
/// the last run ends at the end of the range.
pub fn merge_runs(
    range: Range<u64>,
    each: &mut dyn FnMut(Extent),
    run: impl Fn(u64) -> (u64, Option<MediumKind>),
) {
    let mut at = range.start;
    let mut open: Option<Extent> = None;
    while at < range.end {
        let (end, place) = run(at);
        let end = end.min(range.end);
        let sectors = (end - at) / SECTOR_BYTES;
        match &mut open {
            Some(e) if e.place == place => e.sectors += sectors,
            _ => open.replace(Extent { sectors, place }).into_iter().for_each(&mut *each),
        }
        at = end;
    }
    open.into_iter().for_each(each);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extents(range: Range<u64>, run: impl Fn(u64) -> (u64, Option<MediumKind>)) -> Vec<Extent> {
        let mut all = Vec::new();
        merge_runs(range, &mut |e| all.push(e), run);
        all
    }

    #[test]
    fn adjacent_runs_on_one_medium_are_one_extent() {
        // Blocks of 4 KiB: two in PCM, one hole, and the rest on the disk.
        let place = |at: u64| match at / 4096 {
            0 | 1 => Some(MediumKind::Pcm),
            2 => None,
            _ => Some(MediumKind::Disk),
        };
        let run = |at: u64| ((at / 4096 + 1) * 4096, place(at));
        let found = extents(512..5 * 4096 - 1024, run);
        let expected = [(15, Some(MediumKind::Pcm)), (8, None), (14, Some(MediumKind::Disk))];
        assert_eq!(found.iter().map(|e| (e.sectors, e.place)).collect::<Vec<_>>(), expected);
        assert_eq!(extents(0..0, run), []);
        assert_eq!(extents(0..4096, |_| (u64::MAX, None)), [Extent { sectors: 8, place: None }]);
    }
}

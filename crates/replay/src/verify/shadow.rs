//! Shadow table of the expected version of each sector: four bytes per touched sector, instead of a
//! copy of its data.

/// Number of sectors of one leaf (256 KiB of the volume).
const LEAF_SECTORS: usize = 512;
/// Flag of a sector that was discarded after the given version was written.
const DISCARDED: u32 = 1 << 31;

/// Highest version; versions start at 1.
pub(crate) const VERSION_MAX: u32 = DISCARDED - 1;

/// Expected contents of a sector.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Expected {
    /// Zeros: the sector was never written.
    Unwritten,
    /// Zeros: the sector was discarded after this version.
    Discarded(u32),
    /// The given version.
    Version(u32),
}

/// A table of versions in leaves, which are allocated on the first write.
#[derive(Debug)]
pub(crate) struct Shadow {
    leaves: Vec<Option<Box<[u32; LEAF_SECTORS]>>>,
    sectors: u64,
}

impl Shadow {
    /// Creates the table for a volume of `sectors` sectors that contains zeros.
    pub(crate) fn new(sectors: u64) -> Shadow {
        let leaves = sectors.div_ceil(LEAF_SECTORS as u64) as usize;
        Shadow { leaves: std::iter::repeat_with(|| None).take(leaves).collect(), sectors }
    }

    fn raw(&self, sector: u64) -> u32 {
        let leaf = self.leaves.get((sector / LEAF_SECTORS as u64) as usize).and_then(Option::as_ref);
        leaf.map_or(0, |l| l[sector as usize % LEAF_SECTORS])
    }

    /// Returns the expected contents of a sector.
    pub(crate) fn get(&self, sector: u64) -> Expected {
        match self.raw(sector) {
            0 => Expected::Unwritten,
            v if v & DISCARDED != 0 => Expected::Discarded(v & !DISCARDED),
            v => Expected::Version(v),
        }
    }

    /// Records a write of the given version.
    pub(crate) fn write(&mut self, from: u64, sectors: u64, version: u32) {
        for sector in from..(from + sectors).min(self.sectors) {
            let leaf = &mut self.leaves[(sector / LEAF_SECTORS as u64) as usize];
            leaf.get_or_insert_with(|| Box::new([0; LEAF_SECTORS]))[sector as usize % LEAF_SECTORS] = version;
        }
    }

    /// Records a discard.
    pub(crate) fn discard(&mut self, from: u64, sectors: u64) {
        let (mut at, end) = (from, (from + sectors).min(self.sectors));
        while at < end {
            let stop = end.min((at / LEAF_SECTORS as u64 + 1) * LEAF_SECTORS as u64);
            if let Some(leaf) = &mut self.leaves[(at / LEAF_SECTORS as u64) as usize] {
                for s in at..stop {
                    let v = &mut leaf[s as usize % LEAF_SECTORS];
                    *v |= if *v == 0 { 0 } else { DISCARDED };
                }
            }
            at = stop;
        }
    }

    /// Returns ranges (first sector, number of sectors) of at most `longest` sectors that cover, in
    /// order and without overlap, every sector that was ever written and `margin` sectors on either
    /// side.
    pub(crate) fn touched(&self, margin: u64, longest: u64) -> Vec<(u64, u64)> {
        let mut runs: Vec<(u64, u64)> = Vec::new();
        for (i, leaf) in self.leaves.iter().enumerate() {
            let Some(leaf) = leaf else { continue };
            for (j, _) in leaf.iter().enumerate().filter(|(_, v)| **v != 0) {
                let sector = (i * LEAF_SECTORS + j) as u64;
                let (from, to) = (sector.saturating_sub(margin), (sector + 1 + margin).min(self.sectors));
                match runs.last_mut() {
                    Some(run) if from <= run.1 => run.1 = to,
                    _ => runs.push((from, to)),
                }
            }
        }
        let cut = |(from, to): (u64, u64)| {
            (from..to).step_by(longest.max(1) as usize).map(move |at| (at, longest.max(1).min(to - at)))
        };
        runs.into_iter().flat_map(cut).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn agrees_with_a_plain_map(ops in prop::collection::vec((0u64..2000, 1u64..700, prop::bool::ANY), 1..40)) {
            let (mut s, mut plain) = (Shadow::new(2000), BTreeMap::new());
            for (i, (at, n, write)) in ops.into_iter().enumerate() {
                let version = i as u32 + 1;
                if write { s.write(at, n, version) } else { s.discard(at, n) }
                for sector in at..(at + n).min(2000) {
                    match (write, plain.get(&sector).copied()) {
                        (true, _) => { plain.insert(sector, Expected::Version(version)); }
                        (false, Some(Expected::Version(v))) => { plain.insert(sector, Expected::Discarded(v)); }
                        _ => {}
                    }
                }
            }
            for sector in 0..2000 {
                prop_assert_eq!(s.get(sector), plain.get(&sector).copied().unwrap_or(Expected::Unwritten));
            }
            let mut covered = vec![0; 2000];
            for (at, n) in s.touched(4, 64) {
                prop_assert!(n > 0 && n <= 64);
                (at..at + n).for_each(|x| covered[x as usize] += 1);
            }
            for x in 0..2000u64 {
                let near = plain.range(x.saturating_sub(4)..=x + 4).next().is_some();
                prop_assert_eq!(covered[x as usize], i32::from(near), "sector {}", x);
            }
        }
    }
}

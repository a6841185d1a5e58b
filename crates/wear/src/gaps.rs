//! Start-gap registers: Qureshi et al., MICRO 2009, section 4.
//!
//! A region of `n` logical stripes has `n + 1` positions, one of which, the gap, is empty. A move
//! copies the stripe before the gap into the gap. When the gap has passed through all positions,
//! every stripe is one position further, and the start register is incremented. Both registers
//! follow from the number of moves.

use crate::numbers::RegionId;
use frit_core::convert::{bounded_u32, count_u32, to_usize};

/// State of one region: its number of moves, and the registers that follow from it.
#[derive(Clone, Copy, Debug)]
struct RegionGap {
    moves: u64,
    start: u32,
    gap: u32,
}

/// Start-gap registers of all regions, which have the same size.
#[derive(Clone, Debug)]
pub(crate) struct GapRegisters {
    n: u32,
    regions: Vec<RegionGap>,
}

impl GapRegisters {
    /// Creates `regions` regions of `n` logical stripes, with `n + 1` positions each.
    pub(crate) fn new(regions: u32, n: u32) -> GapRegisters {
        GapRegisters { n, regions: vec![RegionGap { moves: 0, start: 0, gap: n }; to_usize(regions)] }
    }

    pub(crate) fn regions(&self) -> u32 {
        count_u32(self.regions.len())
    }

    /// Number of logical stripes of a region.
    #[inline]
    pub(crate) fn n(&self) -> u32 {
        self.n
    }

    /// Position of a logical stripe in its region (figure 6 of the paper).
    #[inline]
    pub(crate) fn map(&self, region: RegionId, offset: u32) -> u32 {
        let r = &self.regions[region.idx()];
        // A conditional subtraction instead of a remainder: both terms are below n.
        let turned = offset + r.start;
        let turned = if turned >= self.n { turned - self.n } else { turned };
        turned + u32::from(turned >= r.gap)
    }

    /// Next move of a region: source and destination positions.
    pub(crate) fn step(&self, region: RegionId) -> (u32, u32) {
        match self.regions[region.idx()].gap {
            0 => (self.n, 0),
            gap => (gap - 1, gap),
        }
    }

    pub(crate) fn moves(&self, region: RegionId) -> u64 {
        self.regions[region.idx()].moves
    }

    pub(crate) fn set_moves(&mut self, region: RegionId, moves: u64) {
        // The gap visits n + 1 positions in a round; each round increments the start register.
        let places = u64::from(self.n) + 1;
        let start = bounded_u32(moves / places % u64::from(self.n));
        let gap = self.n - bounded_u32(moves % places);
        self.regions[region.idx()] = RegionGap { moves, start, gap };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_go_as_in_the_paper() {
        // Figure 4 of the paper: 16 lines; after 17 moves the gap is at the end again and start is
        // 1.
        let mut g = GapRegisters::new(1, 16);
        for moves in 1..=17 {
            let (from, to) = g.step(RegionId(0));
            let before: Vec<u32> = (0..16).map(|l| g.map(RegionId(0), l)).collect();
            assert!(before.contains(&from) && !before.contains(&to), "move {moves}");
            g.set_moves(RegionId(0), moves);
            for (l, &was) in before.iter().enumerate() {
                let want = if was == from { to } else { was };
                assert_eq!(g.map(RegionId(0), count_u32(l)), want, "move {moves}, line {l}");
            }
        }
        assert_eq!((g.regions[0].start, g.regions[0].gap), (1, 16));
        assert_eq!((g.map(RegionId(0), 0), g.map(RegionId(0), 15)), (1, 0));
    }
}

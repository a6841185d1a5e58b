//! Greedy cleaning in the limit of many blocks.
//!
//! A page is overwritten with probability 1/U a write, so that a block with `i` valid pages loses one at a rate of
//! i/U. Blocks come in full and leave at the victims' level; in between as many pass each level as are cleaned, c =
//! WA/b a write. With N blocks and U = ρbN that makes a share ρbc/i of them have i valid pages, down to a level
//! j where the rest waits. Victims have j or j − 1 valid pages: "one of two successive values" in the large-system
//! model of W. Bux and I. Iliadis, *Performance of greedy garbage collection in flash-based solid-state drives*,
//! Performance Evaluation 67 (2010), 1172–1186 (abstract). The mean-field model of B. Van Houdt, *A mean field
//! model for a class of garbage collection algorithms in flash-based solid state drives*, SIGMETRICS 2013,
//! 191–202, is of policies that look at d blocks; it is greedy's as d grows.

use super::Theory;

/// The level, the rate and the shares; none when even the emptiest victims are empty.
pub(super) fn theory(rho: f64, b: u32) -> Option<Theory> {
    let pages = f64::from(b);
    // The sum of 1/i for i from j + 1 to b.
    let mut tail = 0.0;
    for j in (1..b).rev() {
        tail += 1.0 / f64::from(j + 1);
        let level = f64::from(j);
        let c = (rho * pages / level - 1.0) / (rho * pages * ((pages - level) / level - tail));
        let rest = 1.0 - c * (pages - level);
        if c > 0.0 && (-1e-12..=c).contains(&rest) {
            let mut shares = vec![0.0; b as usize + 1];
            for i in j + 1..=b {
                shares[i as usize] = rho * pages * c / f64::from(i);
            }
            shares[j as usize] = 1.0 - rho * pages * c * tail;
            return Some(Theory { write_amplification: c * pages, shares });
        }
    }
    None
}

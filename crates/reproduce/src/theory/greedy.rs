//! Model of greedy garbage collection in the limit of many blocks.
//!
//! A page is overwritten with probability 1/U a write, so a block with `i` valid pages loses one at
//! a rate of i/U. Blocks enter full and leave at the level of the victims; in between, as many
//! blocks pass each level as are cleaned, c = WA/b a write. With N blocks and U = ρbN, the share of
//! blocks with i valid pages is ρbc/i, down to a level j at which the remaining blocks are. The
//! condition that shares add up to 1 and valid pages to U determines c. Victims have j or j − 1
//! valid pages.
//!
//! `docs/results/write-amplification.md` relates this to the literature. W. Bux and I. Iliadis,
//! *Performance of greedy garbage collection in flash-based solid-state drives*, Performance
//! Evaluation (2010), doi:10.1016/j.peva.2010.07.003, find the two successive values of a large
//! system, and that write amplification grows with b up to a bound.

use super::Theory;

/// Returns write amplification and shares; `None` if even the victims with the fewest valid pages
/// are empty.
pub(super) fn theory(rho: f64, b: u32) -> Option<Theory> {
    let pages = f64::from(b);
    // Sum of 1/i for i from j + 1 to b.
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

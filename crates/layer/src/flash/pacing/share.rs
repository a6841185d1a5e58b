//! Pacing by shares: each written page pays for its share of the victim at once.

use super::{PaceAccount, PaceState, PacingPolicy};

/// Copies for each written page while a block is collected that gains no pages (wear leveling,
/// retirement).
const COPIES_WITHOUT_GAIN: u32 = 1;

/// A victim with `v` valid pages of `b` yields `b − v` pages for `v` copies, so each written page owes
/// `v / (b − v)` copies. The unit never runs out of blocks, and no write waits for a whole block.
#[derive(Clone, Copy, Default, Debug)]
pub struct Share;

impl PacingPolicy for Share {
    #[inline]
    fn due(&self, account: &mut PaceAccount, pages: u32, state: PaceState) -> u32 {
        // Integer arithmetic without loss: the remainder of v / gain stays in `debt` for the next
        // page.
        account.debt += state.valid * pages;
        let owed = account.debt.checked_div(state.gain).unwrap_or(COPIES_WITHOUT_GAIN * pages);
        account.debt = account.debt.checked_rem(state.gain).unwrap_or(0);
        let due = owed.saturating_sub(account.ahead);
        account.ahead = account.ahead.saturating_sub(owed);
        due
    }

    #[inline]
    fn paid(&self, account: &mut PaceAccount, due: u32, copied: u32, _: PaceState) {
        // A program unit is copied as a whole.
        account.ahead += copied.saturating_sub(due);
    }

    fn started(&self, account: &mut PaceAccount) {
        account.debt = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_victim_is_paid_for_by_the_pages_that_it_yields() {
        let state = PaceState { valid: 9, gain: 3, free: 3, low: 3, pages_per_block: 12 };
        let account = &mut PaceAccount::default();
        assert_eq!((0..3).map(|_| Share.due(account, 1, state)).collect::<Vec<_>>(), [3, 3, 3]);
        let state = PaceState { valid: 5, gain: 3, ..state };
        assert_eq!((0..3).map(|_| Share.due(account, 1, state)).collect::<Vec<_>>(), [1, 2, 2]);
        // Two copies more than were due count for the next page.
        Share.paid(account, 2, 4, state);
        assert_eq!((0..3).map(|_| Share.due(account, 1, state)).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(Share.due(account, 4, PaceState { gain: 0, ..state }), 4);
    }
}

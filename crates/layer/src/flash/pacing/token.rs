//! Pacing by tokens, as in MQSim-E (Lee et al., "MQSim-E: An Enterprise SSD Simulator", IEEE Computer
//! Architecture Letters, 2022): copies earn tokens, and writes spend them.

use super::{IdleCopies, PaceAccount, PaceState, PacingPolicy};

/// A token: the right to write a page.
pub(super) const PAGE: i64 = 1 << 16;

/// A unit whose free blocks have fallen to the threshold has `burst` blocks of tokens. A written page
/// costs one, and a copy earns `gain / valid` of them: the pages that it yields. Without tokens, a write
/// pays for the copies that earn them. So a burst of writes is not delayed by copies, which are made
/// in units that are idle, and free blocks do not run out.
///
/// With fewer free blocks than the threshold, copies earn less, so that the pool is filled again.
#[derive(Clone, Copy, Debug)]
pub struct Token {
    burst: f64,
    urgency: f64,
}

impl Default for Token {
    fn default() -> Token {
        Token { burst: 1.0, urgency: 0.25 }
    }
}

impl Token {
    fn most(self, pages_per_block: u32) -> i64 {
        (self.burst * f64::from(pages_per_block) * PAGE as f64) as i64
    }

    /// Returns the tokens that a copy earns; `None` for a copy that yields no pages.
    fn earned(self, state: PaceState) -> Option<i64> {
        let all = (i64::from(state.gain) * PAGE).checked_div(i64::from(state.valid))?;
        if all == 0 {
            return None;
        }
        let missing = state.low.saturating_sub(state.free) as f64 / state.low.max(1) as f64;
        Some(((all as f64 * (1.0 - self.urgency * missing)) as i64).max(1))
    }

    fn earn(self, account: &mut PaceAccount, copied: u32, state: PaceState) {
        let earned = i64::from(copied) * self.earned(state).unwrap_or(0);
        account.tokens = (account.tokens + earned).min(self.most(state.pages_per_block));
    }
}

impl PacingPolicy for Token {
    fn due(&self, account: &mut PaceAccount, pages: u32, state: PaceState) -> u32 {
        let Some(earned) = self.earned(state) else {
            // Its pages are invalid already, or it yields none: it costs no tokens.
            return pages;
        };
        account.tokens -= i64::from(pages) * PAGE;
        let missing = (-account.tokens).max(0);
        u32::try_from((missing + earned - 1) / earned).unwrap_or(u32::MAX)
    }

    fn paid(&self, account: &mut PaceAccount, _: u32, copied: u32, state: PaceState) {
        self.earn(account, copied, state);
    }

    fn copied_in_background(&self, account: &mut PaceAccount, copied: u32, state: PaceState) {
        self.earn(account, copied, state);
    }

    #[inline]
    fn rested(&self, account: &mut PaceAccount, pages_per_block: u32) {
        account.tokens = self.most(pages_per_block);
    }

    fn in_background(&self, budget: u32) -> IdleCopies {
        IdleCopies::InIdleUnits(budget)
    }

    fn burst_blocks(&self) -> usize {
        self.burst.ceil() as usize
    }

    fn set_limits(&mut self, burst_blocks: f64, urgency: f64) {
        (self.burst, self.urgency) = (burst_blocks, urgency);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATE: PaceState = PaceState { valid: 9, gain: 3, free: 4, low: 4, pages_per_block: 12 };

    #[test]
    fn writes_pay_once_the_tokens_of_a_burst_are_spent() {
        let token = Token::default();
        let account = &mut PaceAccount::default();
        token.rested(account, 12);
        for _ in 0..12 {
            assert_eq!(token.due(account, 1, STATE), 0);
        }
        // A copy earns a third of a token.
        assert_eq!(token.due(account, 1, STATE), 4, "a third is rounded down");
        token.paid(account, 4, 4, STATE);
        assert_eq!(token.due(account, 1, STATE), 3);
    }

    #[test]
    fn copies_in_the_background_earn_tokens_up_to_a_burst() {
        let token = Token::default();
        let account = &mut PaceAccount::default();
        token.copied_in_background(account, 7, STATE);
        assert_eq!(token.due(account, 2, STATE), 0);
        token.copied_in_background(account, 1000, STATE);
        assert_eq!(account.tokens, 12 * PAGE);
    }

    #[test]
    fn copies_earn_less_while_free_blocks_are_missing() {
        let token = Token::default();
        let account = &mut PaceAccount::default();
        // Half of the blocks are missing: an eighth less.
        assert_eq!(token.due(account, 7, PaceState { free: 2, ..STATE }), 25);
        *account = PaceAccount::default();
        assert_eq!(token.due(account, 7, STATE), 22);
    }

    #[test]
    fn a_block_that_yields_nothing_costs_a_copy_a_page() {
        let account = &mut PaceAccount::default();
        assert_eq!(Token::default().due(account, 3, PaceState { gain: 0, ..STATE }), 3);
        assert_eq!(account.tokens, 0);
    }
}

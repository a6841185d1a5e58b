//! Pacing without pace: a victim is copied as a whole, as in MQSim (Tavakkol et al., FAST 2018), which
//! issues all copies of a victim together.

use super::{IdleCopies, PaceAccount, PaceState, PacingPolicy};

/// Requests behind the copies wait for all of them.
#[derive(Clone, Copy, Default, Debug)]
pub struct AllAtOnce;

impl PacingPolicy for AllAtOnce {
    #[inline]
    fn due(&self, _: &mut PaceAccount, _: u32, _: PaceState) -> u32 {
        u32::MAX
    }

    fn in_background(&self, _: u32) -> IdleCopies {
        IdleCopies::InTurn(u32::MAX)
    }
}

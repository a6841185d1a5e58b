//! No judgement of heat.

use super::HeatPolicy;
use frit_core::Lpn;

/// Nothing is hot.
#[derive(Clone, Default, Debug)]
pub struct Off;

impl HeatPolicy for Off {
    #[inline]
    fn wrote(&mut self, _: Lpn, _: u8) -> bool {
        false
    }
    #[inline]
    fn is_hot(&self, _: Lpn, _: u8) -> bool {
        false
    }
}

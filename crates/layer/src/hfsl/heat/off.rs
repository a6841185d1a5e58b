//! No detection of heat.

use super::HeatPolicy;
use frit_core::Lpn;

/// Detector that never classifies a page as hot.
#[derive(Clone, Default, Debug)]
pub struct Off;

impl HeatPolicy for Off {
    #[inline]
    fn record_write(&mut self, _: Lpn, _: u8) -> bool {
        false
    }
    #[inline]
    fn is_hot(&self, _: Lpn, _: u8) -> bool {
        false
    }
}

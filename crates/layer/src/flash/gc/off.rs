//! No garbage collection, for media that are written once (HFSL paper, section 2.7.3).

use super::GcPolicy;
use crate::flash::BlockTable;

/// Policy that never chooses a victim.
#[derive(Clone, Default, Debug)]
pub struct Off;

impl GcPolicy for Off {
    fn victim(&mut self, _: u32, _: &BlockTable) -> Option<u32> {
        None
    }
}

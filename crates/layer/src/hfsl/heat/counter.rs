//! Heat by the write counter of the map entry (HFSL paper, Table 3, "Counter").

use super::HeatPolicy;
use frit_core::Lpn;

/// Number of writes from which a page is hot. An assumption, since the paper gives no value. The
/// counter saturates at 31 and never decreases, so this detects pages that were written often at
/// any time.
const HOT_FROM: u8 = 4;

/// Detector by write counter: a page is hot from its fourth write on.
#[derive(Clone, Default, Debug)]
pub struct Counter;

impl HeatPolicy for Counter {
    fn record_write(&mut self, _: Lpn, counter: u8) -> bool {
        counter >= HOT_FROM
    }
    fn is_hot(&self, _: Lpn, counter: u8) -> bool {
        counter >= HOT_FROM
    }
}

//! Heat by the write counter of the map entry (HFSL paper, Table 3, "Counter").

use super::HeatPolicy;
use frit_core::Lpn;

/// Writes from which on a page is hot. An assumption: the paper gives none; the counter saturates at
/// 31 and is never aged, so this tells pages that were ever rewritten often.
const HOT_FROM: u8 = 4;

/// Hot from the fourth write on.
#[derive(Clone, Default, Debug)]
pub struct Counter;

impl HeatPolicy for Counter {
    fn wrote(&mut self, _: Lpn, counter: u8) -> bool {
        counter >= HOT_FROM
    }
    fn is_hot(&self, _: Lpn, counter: u8) -> bool {
        counter >= HOT_FROM
    }
}

//! Transfers of data over a link, in virtual time.

use crate::{Nanos, Sink, Tok};

/// Returns the time in which a link of this rate transfers data; `None` at a rate of 0, which stands for
/// no time.
#[must_use]
pub fn transfer_time(bytes: u64, mb_per_s: u64) -> Option<Nanos> {
    // A byte takes 1000 / rate ns.
    bytes.saturating_mul(1000).checked_div(mb_per_s).map(Nanos)
}

/// A link whose transfers follow each other in the order of the calls.
#[derive(Clone, Copy, Default, Debug)]
pub struct SerialLink {
    /// Completion of the last transfer.
    transferred: Tok,
}

impl SerialLink {
    /// Returns a token that is done when data are transferred, after `after` and the transfers before. At
    /// a rate of 0, it is `after`.
    pub fn transfer(&mut self, sink: &mut Sink, after: Tok, bytes: u64, mb_per_s: u64) -> Tok {
        let Some(time) = transfer_time(bytes, mb_per_s) else { return after };
        let ready = sink.join(self.transferred, after);
        self.transferred = sink.delay(ready, time);
        self.transferred
    }
}

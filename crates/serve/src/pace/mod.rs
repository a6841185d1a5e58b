//! `--pace model`: replies take the time of the modelled device.
//!
//! The request itself is carried out at once, by the machine. The engine says when the modelled device
//! would be done with it ([`Timeline`]), and the reply waits until then ([`Timer`], [`wait_until`]). How well that was met is
//! counted ([`Meter`]).
//!
//! The engine is the eager one whatever the stack says: it knows the end of a request when the request
//! is admitted, so that no thread has to play events in real time. It serves each unit first come,
//! first served; schedulers that reorder show in `frit run`, not here.

mod backend;
mod meter;
mod timeline;
mod timer;
mod wait;

pub use backend::Paced;
pub use meter::{Meter, PaceStat, Ticket};
pub use timeline::Timeline;
pub use timer::Timer;
pub use wait::{Sleeper, wait_until};

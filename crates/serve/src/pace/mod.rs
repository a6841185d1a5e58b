//! Pacing (`--pace model`): replies take as long as on the modelled device.
//!
//! The request itself is executed at once, at the speed of the host. The engine computes the time
//! at which the modelled device would complete it ([`Timeline`]), and the reply is delayed until
//! then ([`Timer`], [`wait_until`]). The accuracy is measured ([`Meter`]).
//!
//! The engine is always the eager one, independent of the stack. It knows the completion time of a
//! request at its admission, so that no thread has to process events in real time. It serves each
//! unit in order of arrival; schedulers that reorder commands have an effect in `frit run`, but not
//! here.

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

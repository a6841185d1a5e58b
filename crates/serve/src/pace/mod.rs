//! Pacing (`--pace model`): replies take as long as on the modelled device.
//!
//! The request itself is executed at once, at the speed of the host. The engine computes the time
//! at which the modelled device would complete it ([`VirtualClock`]), and the reply is delayed until
//! then ([`Timer`], [`wait_until`]). The accuracy is measured ([`PaceMeter`]).
//!
//! The engine is always the eager one, independent of the stack. It knows the completion time of a
//! request at its admission, so that no thread has to process events in real time. It serves each
//! unit in order of arrival; schedulers that reorder commands have an effect in `frit run`, but not
//! here.

mod backend;
mod meter;
mod timer;
mod virtual_clock;
mod wait;

pub use backend::PacedBackend;
pub use meter::{PaceMeter, PaceStat, PendingReply};
pub use timer::Timer;
pub use virtual_clock::VirtualClock;
pub use wait::{SleepClock, wait_until};

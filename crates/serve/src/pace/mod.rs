//! Pacing (`--pace model`): replies take as long as on the modelled device.
//!
//! The request itself is executed at once, at the speed of the host. The engine computes the time
//! at which the modelled device would complete it ([`VirtualClock`]), and the reply is delayed until
//! then ([`Timer`], [`wait_until`]). The accuracy is measured ([`PaceMeter`]).
//!
//! The engine is always the in-order engine, independent of the stack: schedulers that reorder
//! commands have an effect in `frit run`, but not here. The due time of a reply is computed at the
//! admission of its request, as if no other request followed, so that no thread has to process
//! events in real time. A request that arrives later and uses a bus earlier, or that a disk serves
//! first, delays the model's completion, but not the reply. The state of the model is exact: such
//! errors do not add up.

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

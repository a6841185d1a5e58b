//! Time: what the commands of a layer mean in it, and the loop that drives a layer through it.
//!
//! A layer emits commands into a [`Sink`](frit_core::Sink); here are the sinks that know about time
//! ([`Eager`]), queues and schedulers ([`Event`]) and durability ([`Record`]). An [`Engine`]
//! is a sink that a [`Driver`] can run a [`Host`] on: arrivals, queue depth, background steps.
//!
//! It is not: a place where requests are made (that is the host's affair) or carried out (the
//! layer's), and it never looks into a payload.

pub mod arm_use;
pub mod driver;
pub mod eager;
pub mod event;
pub mod latency;
pub mod pace;
pub mod record;
pub mod sched;
pub mod usage;

mod calendar;

pub use arm_use::ArmUse;
pub use driver::{Arrival, Driver, Engine, Host, Mode, Outcome, Times};
pub use eager::Eager;
pub use event::Event;
pub use latency::{Latencies, Latency, Summary};
pub use pace::Pacer;
pub use record::{Record, Recording};
pub use sched::{AnyScheduler, Scheduler};
pub use usage::Usage;

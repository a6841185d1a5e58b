//! Source of timestamps.

use crate::types::Time;
use rustix::time::{ClockId, clock_gettime};
use std::sync::atomic::{AtomicI64, Ordering};

/// Source of the timestamps of a file system.
#[derive(Debug)]
pub enum Clock {
    /// The wall clock, with the coarse resolution of the kernel's own timestamps: a few
    /// milliseconds.
    Wall,
    /// A counter that advances by one at each call, so that runs are reproducible.
    Counted(AtomicI64),
}

impl Clock {
    /// Creates a clock that counts from `first` nanoseconds.
    #[must_use]
    pub const fn counted(first: i64) -> Self {
        Self::Counted(AtomicI64::new(first))
    }

    /// Returns the current time.
    #[inline]
    pub fn now(&self) -> Time {
        match self {
            Self::Wall => {
                let now = clock_gettime(ClockId::RealtimeCoarse);
                Time::new(now.tv_sec, now.tv_nsec as u32)
            }
            Self::Counted(next) => Time(next.fetch_add(1, Ordering::Relaxed)),
        }
    }
}

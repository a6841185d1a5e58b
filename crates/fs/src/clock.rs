//! What time it is.

use crate::types::Time;
use rustix::time::{ClockId, clock_gettime};
use std::sync::atomic::{AtomicI64, Ordering};

/// Where a file system takes its times from.
#[derive(Debug)]
pub enum Clock {
    /// The wall clock, as coarse as the kernel's own time stamps: a few milliseconds.
    Wall,
    /// Counts up by one at every look, so that runs repeat.
    Counted(AtomicI64),
}

impl Clock {
    /// A clock that counts from `first` nanoseconds on.
    #[must_use]
    pub const fn counted(first: i64) -> Self {
        Self::Counted(AtomicI64::new(first))
    }

    /// The time.
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

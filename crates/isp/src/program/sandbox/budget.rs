//! What an instruction has used of its limits.

use crate::outcome::{Failure, Status};
use crate::program::limits::Grant;
use std::sync::atomic::{AtomicU64, Ordering};

/// Fuel and processor time that all instances of an instruction share.
pub(crate) struct Budget {
    grant: Grant,
    fuel_used: AtomicU64,
    time_used_ns: AtomicU64,
}

impl Budget {
    pub(crate) fn new(grant: Grant) -> Self {
        Self { grant, fuel_used: AtomicU64::new(0), time_used_ns: AtomicU64::new(0) }
    }

    pub(crate) fn grant(&self) -> &Grant {
        &self.grant
    }

    /// Fuel that all instances have used.
    pub(crate) fn fuel_used(&self) -> Option<u64> {
        self.grant.fuel.map(|_| self.fuel_used.load(Ordering::Relaxed))
    }

    /// Fuel that is left, if it is limited.
    pub(super) fn fuel_left(&self) -> Option<u64> {
        self.grant.fuel.map(|limit| limit.saturating_sub(self.fuel_used.load(Ordering::Relaxed)))
    }

    /// Adds fuel that was used.
    pub(super) fn use_fuel(&self, used: u64) -> Result<(), Failure> {
        let before = self.fuel_used.fetch_add(used, Ordering::Relaxed);
        match self.grant.fuel {
            Some(limit) if before.saturating_add(used) > limit => Err(self.out_of_fuel()),
            _ => Ok(()),
        }
    }

    /// Adds processor time that was used.
    pub(super) fn use_time(&self, used_ns: u64) -> Result<(), Failure> {
        let before = self.time_used_ns.fetch_add(used_ns, Ordering::Relaxed);
        if before.saturating_add(used_ns) <= self.grant.time_ns {
            return Ok(());
        }
        Err(Failure::new(
            Status::OutOfTime,
            format!(
                "the program used more than its {} ms of processor time; raise \"time_ms\" if it does not loop",
                self.grant.time_ns / 1_000_000
            ),
        ))
    }

    pub(super) fn out_of_fuel(&self) -> Failure {
        Failure::new(
            Status::OutOfFuel,
            format!(
                "the program used more than its {} units of fuel; raise \"fuel\" if it does not loop",
                self.grant.fuel.unwrap_or(0)
            ),
        )
    }
}

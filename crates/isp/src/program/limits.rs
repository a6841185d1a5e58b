//! Limits of programs: those of an engine, and what an instruction has used of its own.

use crate::outcome::{Failure, Status};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Largest limit of fuel: the counter of wasmtime has a sign.
pub(crate) const FUEL_MAX: u64 = i64::MAX as u64;

/// Upper limits of programs, which an embedding service can lower.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProgramLimits {
    /// Largest module in bytes. The time of its compilation grows with it, and is not limited by others.
    pub module_bytes_max: usize,
    /// Largest limit of memory that an instruction with a program may have, in bytes.
    pub memory_bytes_max: usize,
    /// Largest limit of fuel that an instruction may have.
    pub fuel_max: u64,
    /// `true` if each instruction has a limit of fuel: the largest one, if it does not name another.
    pub fuel_required: bool,
    /// Processor time of an instruction that does not name a limit.
    pub time_default: Duration,
    /// Largest limit of processor time that an instruction may have.
    pub time_max: Duration,
}

impl Default for ProgramLimits {
    fn default() -> Self {
        Self {
            module_bytes_max: 1 << 20,
            memory_bytes_max: 1 << 30,
            fuel_max: FUEL_MAX,
            fuel_required: false,
            time_default: Duration::from_secs(10),
            time_max: Duration::from_secs(600),
        }
    }
}

/// Limits of one instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grant {
    pub(crate) memory_bytes: usize,
    pub(crate) fuel: Option<u64>,
    pub(crate) time_ns: u64,
}

impl ProgramLimits {
    /// Limits of an instruction that asks for some of them.
    pub(crate) fn grant(
        &self,
        memory_bytes: usize,
        fuel: Option<u64>,
        time_ms: Option<u64>,
    ) -> Result<Grant, Failure> {
        let within = |key: &str, asked: u64, most: u64| {
            if asked <= most {
                return Ok(());
            }
            Err(Failure::invalid(format!(
                "{key:?} is {asked}; this engine allows at most {most} for a program"
            )))
        };
        let most = u64::try_from(self.time_max.as_millis()).unwrap_or(u64::MAX);
        within("memory", memory_bytes as u64, self.memory_bytes_max as u64)?;
        within("fuel", fuel.unwrap_or(0), self.fuel_max)?;
        within("time_ms", time_ms.unwrap_or(0), most)?;
        let time = time_ms.map_or(self.time_default.min(self.time_max), Duration::from_millis);
        Ok(Grant {
            memory_bytes,
            fuel: fuel.or(self.fuel_required.then_some(self.fuel_max)),
            time_ns: u64::try_from(time.as_nanos()).unwrap_or(u64::MAX),
        })
    }
}

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

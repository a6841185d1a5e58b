//! Limits of programs: those of an engine, and those of an instruction.

use crate::outcome::Failure;
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
#[cfg_attr(not(feature = "programs"), expect(dead_code, reason = "programs are refused"))]
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

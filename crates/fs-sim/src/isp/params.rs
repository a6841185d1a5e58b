//! Parameters of a host with in-storage processing: the path of an instruction, the engine, and the
//! software that does the same work.

use frit_core::{Error, Nanos, Result, size};
use frit_media::DramTiming;
use frit_media::profile::{ByteSize, Picos};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Largest request of the engine in bytes.
pub(crate) const REQUEST_MAX: u64 = 64 << 10;

/// Parameters of in-storage processing. The engine has one unit for each channel of the memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IspParams {
    /// Bytes that the software query reads with one call.
    pub read_block: ByteSize,
    /// Processor time of the software query for each byte that it compares with the words.
    pub compare_per_byte: Picos,
    /// Processor time of the call that writes an instruction to the command file.
    pub command_software: Picos,
    /// Bytes of an instruction, which the processor writes to registers over the link.
    pub instruction_bytes: u32,
    /// Bytes of the results, which the processor reads over the link.
    pub result_bytes: u32,
    /// Time that the program sleeps between two reads of the status register.
    pub poll_period: Picos,
    /// Time from the start register to the first access of the engine.
    pub engine_start: Picos,
    /// Duration of a cycle of the engine.
    pub engine_cycle: Picos,
    /// Bytes that a unit of the engine processes in a cycle.
    pub engine_bytes_per_cycle: u32,
    /// Largest request of the engine to the memory in bytes, a power of two.
    pub engine_request_bytes: ByteSize,
    /// Requests of a unit of the engine that are in flight at a time.
    pub engine_buffers: u32,
}

/// In-storage processing of a host: its parameters and their sources.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IspHost {
    /// Parameters.
    pub values: IspParams,
    /// Source of each parameter.
    pub sources: BTreeMap<String, String>,
}

impl IspParams {
    /// Names of the parameters.
    pub(crate) const KEYS: [&str; 11] = [
        "read_block",
        "compare_per_byte",
        "command_software",
        "instruction_bytes",
        "result_bytes",
        "poll_period",
        "engine_start",
        "engine_cycle",
        "engine_bytes_per_cycle",
        "engine_request_bytes",
        "engine_buffers",
    ];

    /// Sets a parameter by its name, one of those of `frit fs-sim --host`.
    ///
    /// # Errors
    /// An unknown name, or an invalid value.
    pub fn set(&mut self, key: &str, text: &str) -> Result<()> {
        let time = || Picos::parse(text).map_err(|why| Error::param(key, text, why));
        let bytes = || size::parse(text).map(ByteSize).map_err(|why| Error::param(key, text, why));
        let number = || text.parse::<u32>().map_err(|_| Error::param(key, text, "has to be a number"));
        match key {
            "read_block" => self.read_block = bytes()?,
            "compare_per_byte" => self.compare_per_byte = time()?,
            "command_software" => self.command_software = time()?,
            "instruction_bytes" => self.instruction_bytes = number()?,
            "result_bytes" => self.result_bytes = number()?,
            "poll_period" => self.poll_period = time()?,
            "engine_start" => self.engine_start = time()?,
            "engine_cycle" => self.engine_cycle = time()?,
            "engine_bytes_per_cycle" => self.engine_bytes_per_cycle = number()?,
            "engine_request_bytes" => self.engine_request_bytes = bytes()?,
            "engine_buffers" => self.engine_buffers = number()?,
            _ => return Err(Error::param(key, text, "is not a key of in-storage processing")),
        }
        Ok(())
    }

    /// Validates the parameters.
    ///
    /// # Errors
    /// The first invalid value, with the allowed values.
    pub fn check(&self) -> Result<()> {
        let request = self.engine_request_bytes.0;
        if !request.is_power_of_two() || !(8..=REQUEST_MAX).contains(&request) {
            let why = "has to be a power of two from 8 bytes to 64 KiB";
            return Err(Error::param("engine_request_bytes", size::format(request), why));
        }
        let block = self.read_block.0;
        if block == 0 || block > 1 << 30 {
            return Err(Error::param("read_block", size::format(block), "has to be 1 byte to 1 GiB"));
        }
        for (key, value, most) in [
            ("instruction_bytes", self.instruction_bytes, 4096),
            ("result_bytes", self.result_bytes, 4096),
            ("engine_bytes_per_cycle", self.engine_bytes_per_cycle, 1 << 16),
            ("engine_buffers", self.engine_buffers, 1 << 10),
        ] {
            if value == 0 || value > most {
                return Err(Error::param(key, value, format!("has to be 1 to {most}")));
            }
        }
        if self.poll_period.nanos() == Nanos::ZERO {
            return Err(Error::param("poll_period", "0", "has to be 1 ns or more"));
        }
        Ok(())
    }

    /// Returns the time that a unit of the engine takes for bytes.
    pub(crate) fn engine(&self) -> DramTiming {
        let ps_per_byte = self.engine_cycle.0.div_ceil(u64::from(self.engine_bytes_per_cycle));
        DramTiming { latency: Nanos::ZERO, ps_per_byte }
    }

    /// Returns the speed of a unit of the engine in MB/s, without waits for the memory.
    #[must_use]
    pub fn engine_mb_s(&self) -> f64 {
        match self.engine().ps_per_byte {
            0 => f64::INFINITY,
            ps => 1e6 / ps as f64,
        }
    }
}

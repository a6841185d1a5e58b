//! Programs of users, in WebAssembly.

use super::{Kind, Report};
use crate::engine::Start;
use crate::outcome::{Failure, Status};
use crate::program::{FUEL_MAX, execute};
use crate::source::{Source, Target};
use crate::text::Keys;
use serde::Serialize;
use serde_json::Value;
use std::sync::Arc;

/// Place of a module.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Module {
    /// File, which the caller may read.
    File(Target),
    /// Bytes of the module.
    Bytes(Vec<u8>),
}

/// Executes a program on the bytes or lines of a range.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Program {
    /// Module in the binary format of WebAssembly.
    pub module: Module,
    /// Bytes for the function `start` of the program.
    pub argument: Option<Vec<u8>>,
    /// Limit of the fuel: about one unit for each instruction of WebAssembly.
    pub fuel: Option<u64>,
    /// Limit of the time of processors in milliseconds, summed over the threads.
    pub time_ms: Option<u64>,
}

impl Program {
    /// Creates a program without an argument, with default limits.
    #[must_use]
    pub fn new(module: Module) -> Self {
        Self { module, argument: None, fuel: None, time_ms: None }
    }
}

/// Results of `Program`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ProgramAnswer {
    /// Fuel that all instances have used, if it was limited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fuel_used: Option<u64>,
    /// `true` if the module was compiled, and `false` if its compiled form was cached.
    pub compiled: bool,
    /// Time of reading and compiling the module in nanoseconds.
    pub load_ns: u64,
    /// Bytes that the program has emitted.
    #[serde(skip)]
    pub payload: Vec<u8>,
}

impl Report for ProgramAnswer {
    fn payload(&self) -> &[u8] {
        &self.payload
    }
}

impl Kind for Program {
    const NAME: &'static str = "program";

    fn parse(value: &Value, keys: &mut Keys<'_>) -> Result<Self, Failure> {
        let module = match value {
            Value::String(path) => Module::File(Target::name(path).map_err(Failure::invalid)?),
            _ => Module::Bytes(keys.bytes("program", value)?),
        };
        let argument = keys.take("argument").map(|value| keys.bytes("argument", value)).transpose()?;
        Ok(Self {
            module,
            argument,
            fuel: keys.number_up_to("fuel", FUEL_MAX)?,
            time_ms: keys.number("time_ms")?,
        })
    }

    fn held_bytes(&self) -> usize {
        let module = if let Module::Bytes(bytes) = &self.module { 2 * bytes.len() } else { 0 };
        module + 2 * self.argument.as_ref().map_or(0, Vec::len)
    }

    fn start(&self, start: Start) -> Result<(), Failure> {
        let limits = &start.control.options().programs;
        let grant = limits.grant(start.request.instruction.memory_bytes, self.fuel, self.time_ms)?;
        let module: Arc<dyn Source> = match (&self.module, &start.request.module) {
            (Module::Bytes(bytes), _) => Arc::new(bytes.clone()),
            (Module::File(_), Some(module)) => Arc::clone(module),
            (Module::File(target), None) => {
                return Err(Failure::new(Status::NotFound, format!("{target}: there are no files here")));
            }
        };
        execute(self, module, grant, start)
    }
}

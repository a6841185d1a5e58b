//! Engine: threads that execute instructions.

mod control;
mod job;
mod memory;
mod pool;
mod priority;
mod reader;
mod ticket;

pub(crate) use control::{Control, cpu_ns};
pub use ticket::Ticket;

use crate::foreground::Foreground;
use crate::instructions::{Command, Instruction};
use crate::outcome::{Failure, Outcome};
use crate::program::{ProgramLimits, Programs};
use crate::scan::Operation;
use crate::source::{Destination, Source};
use job::Job;
use memory::ResultMemory;
use pool::{Pool, Step, Steps};
use std::sync::Arc;

/// Configuration of an engine.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// Number of threads. The default is the number of processors.
    pub threads: usize,
    /// Niceness of the threads (nice(2)), unless that of the process is higher. `None`: that of the process.
    pub niceness: Option<i32>,
    /// Bytes that are read by one call of a source.
    pub chunk_bytes: usize,
    /// Bytes that are read by one call of a source while foreground requests come, at most `chunk_bytes`.
    pub foreground_chunk_bytes: usize,
    /// Bytes of a part of a range. Parts are scanned in parallel.
    pub part_bytes: u64,
    /// Largest range that the caller's thread scans itself, unless foreground requests are in progress or
    /// the instruction writes a file: a wake-up of another thread takes longer.
    pub inline_bytes: u64,
    /// Maximum length of a line or record in bytes. It is at least `chunk_bytes`.
    pub record_bytes_max: usize,
    /// Bytes of the results of all instructions that are in execution or have not been read. An instruction
    /// counts with its limit of memory until it is complete. The default is half of the memory of the machine.
    pub result_bytes_max: u64,
    /// Foreground requests to which the threads yield.
    pub foreground: Arc<Foreground>,
    /// Upper limits of programs.
    pub programs: ProgramLimits,
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self {
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            niceness: None,
            chunk_bytes: 256 << 10,
            foreground_chunk_bytes: 256 << 10,
            part_bytes: 4 << 20,
            inline_bytes: 256 << 10,
            record_bytes_max: 1 << 20,
            result_bytes_max: machine_memory() / 2,
            foreground: Arc::default(),
            programs: ProgramLimits::default(),
        }
    }
}

/// Bytes of the memory of the machine.
fn machine_memory() -> u64 {
    let info = rustix::system::sysinfo();
    info.totalram.saturating_mul(info.mem_unit.into())
}

/// Instruction with the data that it refers to.
#[derive(Clone)]
pub struct Request {
    /// Instruction.
    pub instruction: Instruction,
    /// Data of `instruction.file`.
    pub source: Arc<dyn Source>,
    /// Module of a program that is a file ([`Instruction::module`]).
    pub module: Option<Arc<dyn Source>>,
    /// Place for copied data, if the instruction has one.
    pub destination: Option<Arc<dyn Destination>>,
}

/// Threads that execute instructions. They are started by the first instruction, and end when the
/// engine is dropped.
#[derive(Debug)]
pub struct Engine {
    pool: Arc<Pool>,
    options: Arc<EngineOptions>,
    programs: Arc<Programs>,
    memory: Arc<ResultMemory>,
}

impl Default for Engine {
    fn default() -> Self {
        Self::new(EngineOptions::default())
    }
}

impl Engine {
    /// Creates an engine.
    #[must_use]
    pub fn new(mut options: EngineOptions) -> Self {
        options.threads = options.threads.max(1);
        options.chunk_bytes = options.chunk_bytes.max(1);
        options.foreground_chunk_bytes = options.foreground_chunk_bytes.clamp(1, options.chunk_bytes);
        options.part_bytes = options.part_bytes.max(1);
        options.record_bytes_max = options.record_bytes_max.max(options.chunk_bytes);
        Self {
            pool: Pool::new(options.threads, options.niceness, Arc::clone(&options.foreground)),
            memory: ResultMemory::new(options.result_bytes_max),
            options: Arc::new(options),
            programs: Arc::default(),
        }
    }

    /// Configuration of the engine.
    #[must_use]
    pub fn options(&self) -> &EngineOptions {
        &self.options
    }

    /// Executes an instruction, and waits for its outcome.
    #[must_use]
    pub fn run(&self, request: Request) -> Arc<Outcome> {
        self.submit(request).wait()
    }

    /// Begins to execute an instruction.
    #[must_use]
    pub fn submit(&self, request: Request) -> Ticket {
        let ticket = match self.memory.reserve(request.instruction.memory_bytes as u64) {
            Ok(reservation) => Ticket::new(reservation),
            Err(failure) => return Ticket::completed(Outcome::failed(failure)),
        };
        let control = Arc::new(Control::new(Arc::clone(&self.options), ticket.clone()));
        let start = Start { engine: self, control, request };
        if let Err(failure) = Command::start(start) {
            ticket.complete(Outcome::failed(failure));
        }
        ticket
    }

    /// Cancels all instructions, and waits until their threads have ended. Instructions that are
    /// submitted later are cancelled, except for short ones that the caller's thread executes.
    pub fn close(&self) {
        self.pool.close();
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.close();
    }
}

/// Start of an instruction whose operation is not yet known.
pub(crate) struct Start<'a> {
    engine: &'a Engine,
    pub(crate) control: Arc<Control>,
    pub(crate) request: Request,
}

impl Start<'_> {
    /// Compiled programs of the engine.
    pub(crate) fn programs(&self) -> Arc<Programs> {
        Arc::clone(&self.engine.programs)
    }

    /// Starts the instruction with its operation.
    pub(crate) fn with<O: Operation>(self, operation: O) -> Result<(), Failure> {
        let options = &self.engine.options;
        let range = self.request.instruction.range.within(self.request.source.len());
        // A destination may have to wait for requests that the caller's thread answers.
        let inline = range.end - range.start <= operation.inline_bytes(options.inline_bytes)
            && self.request.destination.is_none()
            && !options.foreground.is_active();
        let job = Arc::new(Job::new(operation, self.request, self.control));
        if inline {
            loop {
                match job.step() {
                    Step::Worked => {}
                    Step::Finished => return Ok(()),
                    Step::Blocked => break,
                }
            }
        }
        self.engine.pool.add(job)
    }
}

//! Engine: threads that execute instructions.

mod control;
mod job;
mod memory;
mod pool;
mod priority;
mod queue;
mod reader;
mod start;
mod ticket;
mod turns;
mod user;

pub(crate) use control::Control;
#[cfg(feature = "programs")]
pub(crate) use control::cpu_ns;
#[cfg(test)]
pub(crate) use memory::Memory as TestMemory;
pub(crate) use memory::{Account, Charge, make_room};
pub(crate) use start::Start;
pub use ticket::Ticket;
pub use user::User;

use crate::channel::Channels;
use crate::foreground::Foreground;
use crate::instructions::Instruction;
use crate::outcome::Outcome;
use crate::program::{ProgramLimits, Programs};
use crate::source::{Destination, Source};
use control::Share;
use memory::Memory;
use pool::{Pool, Threads};
use std::sync::Arc;
use turns::Turns;

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
    /// Budget of memory in bytes, for all instructions that are in execution or whose results have not been read.
    /// Half of it is given to them, as they use it, and a user has at most as much as is free. The default is a quarter of the memory of the machine, or of the smallest limit of the control groups of the process.
    pub memory_bytes_max: u64,
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
            memory_bytes_max: memory::machine_budget(),
            foreground: Arc::default(),
            programs: ProgramLimits::default(),
        }
    }
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
    memory: Arc<Memory>,
    turns: Arc<Turns>,
    channels: Arc<Channels>,
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
        // What the threads of the engine allocate is accounted for together, and is not more for more threads.
        memory::limit_arenas(std::thread::available_parallelism().map_or(1, usize::from));
        let (turns, memory) = (Turns::new(options.threads), Memory::new(options.memory_bytes_max));
        let threads = Threads::new(options.threads, memory.users_max());
        Self {
            pool: Pool::new(threads, options.niceness, Arc::clone(&options.foreground), &turns),
            turns,
            memory,
            channels: Arc::default(),
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

    /// Begins to execute an instruction of the default user.
    #[must_use]
    pub fn submit(&self, request: Request) -> Ticket {
        self.submit_for(User::default(), request)
    }

    /// Begins to execute an instruction of a user, who has a share of the memory and of the processors.
    #[must_use]
    pub fn submit_for(&self, user: User, request: Request) -> Ticket {
        let account = self.account(user);
        let ticket = match account.charged(start::held_bytes(&request.instruction)) {
            Ok(charge) => Ticket::new(charge),
            Err(failure) => return Ticket::completed(Outcome::failed(failure)),
        };
        let (usage, turns) = (self.turns.usage(user), Arc::clone(&self.turns));
        let share = Share { user, account, usage, turns };
        let control = Arc::new(Control::new(Arc::clone(&self.options), share, ticket.clone()));
        start::begin(self, control, request);
        ticket
    }

    /// Memory of a user.
    pub(crate) fn account(&self, user: User) -> Account {
        Account::new(&self.memory, user)
    }

    /// Open command files, by users.
    pub(crate) fn channels(&self) -> &Arc<Channels> {
        &self.channels
    }

    /// Bytes of the budget of memory that are in use.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.memory.used()
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

//! In-storage processing: an engine that computes where data lies, and the command files by which
//! programs instruct it.
//!
//! An [`Instruction`] names a computation and the bytes of a file. The [`Engine`] executes it over any
//! [`Source`], with several threads, limits of memory, and lower priority than foreground requests. A
//! [`Channel`] is an open command file: bytes that are written to it are instructions, and bytes that
//! are read from it are results. The crate depends on no other one of frit. File systems and volumes
//! implement [`Source`], [`Destination`] and [`Resolver`].
//!
//! `docs/reference/isp.md` has the instructions, their forms, and their semantics.

pub mod binary;
mod channel;
mod engine;
mod foreground;
mod instructions;
mod matcher;
mod outcome;
mod program;
mod records;
mod scan;
mod search;
mod source;
pub mod text;

pub use channel::{Channel, ChannelError, Held, Readiness};
pub use engine::{Engine, EngineOptions, Request, Ticket, User};
pub use foreground::{Foreground, ForegroundGuard};
pub use instructions::{
    Aggregate, AggregateAnswer, Algorithm, Answer, ByteRange, Checksum, ChecksumAnswer, Command, Compute,
    Copy, CopyAnswer, Filter, FilterAnswer, GroupAnswer, Histogram, HistogramAnswer, Instruction,
    MEMORY_BYTES_DEFAULT, Module, Program, ProgramAnswer, RecordUnit, Regex, RegexAnswer, Select,
    SelectAnswer, WordAnswer, Words, WordsAnswer,
};
pub use matcher::Pattern;
pub use outcome::{Failure, Outcome, Status, Work};
pub use program::ProgramLimits;
pub use records::{Comparison, Condition, Format};
pub use search::{Kernel, Searcher, WORD_BYTES_MAX, WORDS_MAX};
pub use source::{Destination, Extents, ResolveError, Resolver, Source, SourceError, Target};

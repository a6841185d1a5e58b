//! Instructions: one file each, and one line of registration each.

mod aggregate;
mod checksum;
mod copy;
mod filter;
mod histogram;
mod program;
mod regex;
mod select;
mod words;

pub use aggregate::{Aggregate, AggregateAnswer, Compute, GroupAnswer};
pub use checksum::{Algorithm, Checksum, ChecksumAnswer};
pub use copy::{Copy, CopyAnswer, RecordUnit};
pub use filter::{Filter, FilterAnswer};
pub use histogram::{Histogram, HistogramAnswer};
pub use program::{Module, Program, ProgramAnswer};
pub use regex::{Regex, RegexAnswer};
pub use select::{Select, SelectAnswer};
pub use words::{WordAnswer, Words, WordsAnswer};

use crate::engine::Start;
use crate::outcome::Failure;
use crate::source::Target;
use crate::text::Keys;
use serde::Serialize;
use serde_json::Value;
use std::ops::Range;

/// Kind of instruction: its JSON form and its operation.
pub(crate) trait Kind: Sized {
    /// Key of the JSON form.
    const NAME: &'static str;

    /// Reads the JSON form: the value of the key, and further keys.
    fn parse(value: &Value, keys: &mut Keys<'_>) -> Result<Self, Failure>;

    /// Starts the operation.
    fn start(&self, start: Start) -> Result<(), Failure>;

    /// Memory of the instruction in bytes, as far as it grows with its length.
    fn held_bytes(&self) -> usize {
        0
    }

    /// Returns `true` if the start takes at most about a millisecond.
    fn starts_quickly(&self) -> bool {
        true
    }
}

/// Results of an instruction: values for the JSON form, and bytes.
pub(crate) trait Report: Serialize {
    /// Bytes that follow the line of the JSON form.
    fn payload(&self) -> &[u8] {
        &[]
    }

    /// Memory of the results in bytes, as far as it grows with them.
    fn bytes(&self) -> usize {
        self.payload().len()
    }
}

macro_rules! instructions {
    ($($(#[$doc:meta])* $kind:ident => $answer:ident,)*) => {
        /// Computation of an instruction.
        #[derive(Clone, PartialEq, Debug)]
        #[non_exhaustive]
        pub enum Command {
            $($(#[$doc])* $kind($kind),)*
        }

        /// Results of an instruction.
        #[derive(Clone, PartialEq, Debug, Serialize)]
        #[serde(untagged)]
        #[non_exhaustive]
        pub enum Answer {
            $($(#[$doc])* $kind($answer),)*
        }

        impl Command {
            /// Keys of the JSON forms of all instructions.
            pub const NAMES: &'static [&'static str] = &[$($kind::NAME,)*];

            /// Key of the JSON form.
            #[must_use]
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$kind(_) => $kind::NAME,)*
                }
            }

            /// Number of the instruction in [`Self::NAMES`], from 1. Registers contain it.
            #[must_use]
            pub fn code(&self) -> u64 {
                Self::NAMES.iter().position(|name| *name == self.name()).map_or(0, |index| index as u64 + 1)
            }

            /// Reads the JSON form of an instruction by its key.
            pub(crate) fn parse(name: &str, value: &Value, keys: &mut Keys<'_>) -> Result<Self, Failure> {
                match name {
                    $($kind::NAME => $kind::parse(value, keys).map(Self::$kind),)*
                    _ => Err(Failure::invalid(format!("there is no instruction {name:?}"))),
                }
            }

            /// Memory of the instruction in bytes, as far as it grows with its length.
            pub(crate) fn held_bytes(&self) -> usize {
                match self {
                    $(Self::$kind(kind) => kind.held_bytes(),)*
                }
            }

            /// Returns `true` if the start takes at most about a millisecond.
            pub(crate) fn starts_quickly(&self) -> bool {
                match self {
                    $(Self::$kind(kind) => kind.starts_quickly(),)*
                }
            }

            /// Starts the operation of an instruction.
            pub(crate) fn start(start: Start) -> Result<(), Failure> {
                match start.request.instruction.command.clone() {
                    $(Self::$kind(kind) => kind.start(start),)*
                }
            }
        }

        impl Answer {
            /// Bytes of the results that are not a part of the JSON line.
            #[must_use]
            pub fn payload(&self) -> &[u8] {
                match self {
                    $(Self::$kind(answer) => answer.payload(),)*
                }
            }

            /// Memory of the results in bytes, as far as it grows with them.
            pub(crate) fn bytes(&self) -> usize {
                match self {
                    $(Self::$kind(answer) => answer.bytes(),)*
                }
            }
        }
    };
}

instructions! {
    /// Occurrences of words.
    Words => WordsAnswer,
    /// Matches of a regular expression.
    Regex => RegexAnswer,
    /// Lines that match.
    Filter => FilterAnswer,
    /// Fields of records.
    Select => SelectAnswer,
    /// Aggregates of fields.
    Aggregate => AggregateAnswer,
    /// Checksum or hash.
    Checksum => ChecksumAnswer,
    /// Distribution of values.
    Histogram => HistogramAnswer,
    /// Copy of records that match.
    Copy => CopyAnswer,
    /// Program of the user.
    Program => ProgramAnswer,
}

/// Memory for the results of an instruction that does not name a limit: 16 MiB.
pub const MEMORY_BYTES_DEFAULT: usize = 16 << 20;

/// Range of bytes of a file.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ByteRange {
    /// First byte.
    pub offset: u64,
    /// Number of bytes, or `None` for all up to the end of the file.
    pub length: Option<u64>,
}

impl ByteRange {
    /// Part of the range that a file of `len` bytes has.
    pub(crate) fn within(self, len: u64) -> Range<u64> {
        let start = self.offset.min(len);
        start..self.length.map_or(len, |length| start.saturating_add(length).min(len))
    }
}

/// Instruction: a computation, and the data that it reads.
#[derive(Clone, PartialEq, Debug)]
pub struct Instruction {
    /// Computation.
    pub command: Command,
    /// File to read.
    pub file: Target,
    /// Bytes of the file to read.
    pub range: ByteRange,
    /// Bytes that the results may occupy. Results that need more are cut, and marked as `truncated`.
    pub memory_bytes: usize,
    /// `true` if the instruction fails when the file changes during the scan.
    pub fail_if_changed: bool,
}

impl Instruction {
    /// Creates an instruction for a whole file, with default limits.
    #[must_use]
    pub fn new(command: Command, file: Target) -> Self {
        Self {
            command,
            file,
            range: ByteRange::default(),
            memory_bytes: MEMORY_BYTES_DEFAULT,
            fail_if_changed: false,
        }
    }

    /// File that the instruction writes.
    #[must_use]
    pub fn destination(&self) -> Option<&Target> {
        if let Command::Copy(copy) = &self.command { Some(&copy.to) } else { None }
    }

    /// File with the module of a program.
    #[must_use]
    pub fn module(&self) -> Option<&Target> {
        match &self.command {
            Command::Program(Program { module: Module::File(target), .. }) => Some(target),
            _ => None,
        }
    }
}

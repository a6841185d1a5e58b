//! Registers of in-storage processing (ISPFS 3.1, Fig. 2): one block of the medium with a set of
//! registers for each instruction that is in progress.
//!
//! The registers state what the engine does, for programs that look at the medium. Nothing is
//! recovered from them: a mount clears the block, whatever it contains.

use crate::error::{Error, Result};
use crate::format::{BLOCK, Geometry, read_words, write_words};
use crate::fs::Fs;
use crate::medium::Medium;
use crate::planted::Bug;
use crate::sync::Mutex;
use frit_core::planted::is_planted;

/// First word of the block.
const MAGIC: u64 = u64::from_le_bytes(*b"frit-isp");
/// Format version of the block.
const VERSION: u64 = 1;
/// Size of a set in words. The header has this size, too.
const SET_WORDS: usize = 64;
/// Number of sets.
pub const REGISTER_SETS: usize = (BLOCK / 8) as usize / SET_WORDS - 1;
/// Number of words of a query that a set has (ISPFS 3.4).
pub const REGISTER_QUERIES: usize = 4;
/// Number of bytes of each of them, with zeros at its end.
const QUERY_BYTES: usize = 64;
/// Position of the words of a query in a set, in words.
const QUERIES_AT: usize = 32;

/// State of a set: the status register of the paper.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, strum::FromRepr, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
#[repr(u64)]
pub enum RegisterStatus {
    /// The set was not used since the mount.
    #[default]
    Unused = 0,
    /// The engine executes the instruction: the start register is set.
    Running = 1,
    /// The instruction is complete, and its results are valid.
    Complete = 2,
    /// The instruction failed.
    Failed = 3,
}

/// Contents of a set.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct RegisterSet {
    /// Status of the instruction.
    pub status: RegisterStatus,
    /// Number of the instruction since the mount, from 1.
    pub number: u64,
    /// Command of the instruction (docs/reference/isp.md).
    pub command: u64,
    /// Inode number of the file.
    pub ino: u64,
    /// First byte of the range.
    pub offset: u64,
    /// Length of the range in bytes.
    pub len: u64,
    /// Code of the error; 0 if there is none.
    pub error: u64,
    /// Bytes that the engine has read.
    pub scanned: u64,
    /// Execution time in ns.
    pub time_ns: u64,
    /// Counts, in the order of the words.
    pub counts: [u64; REGISTER_QUERIES],
    /// Position of the first occurrence of each word; `u64::MAX` if there is none.
    pub firsts: [u64; REGISTER_QUERIES],
    /// The words of a query, cut to 64 bytes.
    pub queries: Vec<Vec<u8>>,
}

impl RegisterSet {
    fn encode(&self) -> [u64; SET_WORDS] {
        let mut w = [0; SET_WORDS];
        w[..9].copy_from_slice(&[
            self.status as u64,
            self.number,
            self.command,
            self.ino,
            self.offset,
            self.len,
            self.error,
            self.scanned,
            self.time_ns,
        ]);
        w[9] = self.queries.len() as u64;
        w[16..16 + REGISTER_QUERIES].copy_from_slice(&self.counts);
        w[24..24 + REGISTER_QUERIES].copy_from_slice(&self.firsts);
        let places = w[QUERIES_AT..].chunks_exact_mut(QUERY_BYTES / 8);
        for (place, query) in places.zip(&self.queries) {
            let len = query.len().min(QUERY_BYTES);
            bytemuck::cast_slice_mut(place)[..len].copy_from_slice(&query[..len]);
        }
        w
    }

    fn decode(w: &[u64; SET_WORDS]) -> Option<Self> {
        let status = RegisterStatus::from_repr(w[0])?;
        if status == RegisterStatus::Unused {
            // Other values are those of an instruction that is being written.
            return Some(Self::default());
        }
        let mut set = Self {
            status,
            number: w[1],
            command: w[2],
            ino: w[3],
            offset: w[4],
            len: w[5],
            error: w[6],
            scanned: w[7],
            time_ns: w[8],
            ..Self::default()
        };
        set.counts.copy_from_slice(&w[16..16 + REGISTER_QUERIES]);
        set.firsts.copy_from_slice(&w[24..24 + REGISTER_QUERIES]);
        let places = w[QUERIES_AT..].chunks_exact(QUERY_BYTES / 8);
        set.queries = places
            .take((w[9] as usize).min(REGISTER_QUERIES))
            .map(|place| {
                let bytes: &[u8] = bytemuck::cast_slice(place);
                let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
                bytes[..end].to_vec()
            })
            .collect();
        Some(set)
    }
}

fn set_at(index: usize) -> u64 {
    Geometry::REGISTERS_AT + ((index + 1) * SET_WORDS * 8) as u64
}

fn header() -> [u64; SET_WORDS] {
    let mut header = [0; SET_WORDS];
    header[..2].copy_from_slice(&[MAGIC, VERSION | (REGISTER_SETS as u64) << 32]);
    header
}

/// Clears the registers at a mount. `enabled`: the file system has command files.
pub(crate) fn reset<M: Medium>(medium: &M, enabled: bool) {
    let header = if enabled { header() } else { [0; SET_WORDS] };
    let sets = (0..REGISTER_SETS).map(|index| (set_at(index), [0; SET_WORDS]));
    for (at, words) in [(Geometry::REGISTERS_AT, header)].into_iter().chain(sets) {
        if read_words(medium, at) != words {
            write_words(medium, at, &words);
        }
    }
}

/// Describes what in the block is not a state of the registers, or returns `None`.
///
/// `closed`: the file system was closed. Otherwise a power loss, or this moment, may be between two words
/// of a mount or of an instruction: a part of the header may be missing, and a set without a status may
/// have values.
pub(crate) fn damage<M: Medium>(medium: &M, enabled: bool, closed: bool) -> Option<String> {
    let closed = closed || is_planted(Bug::RegistersTornReported);
    let block = read_words::<M, { (BLOCK / 8) as usize }>(medium, Geometry::REGISTERS_AT);
    if block.iter().all(|word| *word == 0) {
        return None;
    }
    if !enabled {
        return Some("the registers of in-storage processing are in use, in a file system without".into());
    }
    let fits = |(found, expected): (&u64, &u64)| found == expected || (!closed && *found == 0);
    if !block[..SET_WORDS].iter().zip(&header()).all(fits) {
        return Some("the header of the registers of in-storage processing is damaged".into());
    }
    let bad = block[SET_WORDS..].chunks_exact(SET_WORDS).position(|set| {
        let status = RegisterStatus::from_repr(set[0]);
        let unused = closed && status == Some(RegisterStatus::Unused);
        status.is_none() || (unused && set.iter().any(|word| *word != 0))
    });
    bad.map(|set| format!("set {set} of the registers of in-storage processing has no known status"))
}

/// Reads the registers of a medium, also while it is mounted: a set may be in change.
///
/// # Errors
/// The medium has no file system with command files, or its registers are damaged.
pub fn read_registers(medium: &dyn Medium) -> Result<Vec<RegisterSet>> {
    let medium = &medium;
    if !crate::format::Superblock::read(medium)?.command_files {
        return Err(Error::Image(
            "the file system has no command files: it was made with --no-isp, or by an older version. \
             frit isp enable adds them"
                .into(),
        ));
    }
    let damaged =
        Error::Damaged { what: "the registers of in-storage processing", at: Geometry::REGISTERS_AT };
    if damage(medium, true, false).is_some() {
        return Err(damaged);
    }
    let sets = (0..REGISTER_SETS).map(|index| RegisterSet::decode(&read_words(medium, set_at(index))));
    sets.collect::<Option<_>>().ok_or(damaged)
}

/// Allocation of the sets to instructions.
#[derive(Debug)]
pub(crate) struct RegisterAllocator {
    inner: Mutex<AllocatorState>,
}

#[derive(Debug)]
struct AllocatorState {
    number: u64,
    running: [bool; REGISTER_SETS],
    next: usize,
}

impl RegisterAllocator {
    pub(crate) fn new() -> Self {
        Self { inner: Mutex::new(AllocatorState { number: 0, running: [false; REGISTER_SETS], next: 0 }) }
    }
}

/// A set that an instruction holds until [`crate::InStorage::finish_registers`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RegistersHeld {
    index: Option<usize>,
    number: u64,
}

impl<M: Medium> Fs<M> {
    /// Writes an instruction to the registers and sets its start register. If all sets are in use, the
    /// instruction is executed without one.
    pub(crate) fn start_set(&self, set: &RegisterSet) -> RegistersHeld {
        let mut inner = self.registers.inner.lock();
        inner.number += 1;
        let number = inner.number;
        // The sets are used in turn, so that results stay readable for a while.
        let free = (0..REGISTER_SETS).map(|i| (inner.next + i) % REGISTER_SETS).find(|i| !inner.running[*i]);
        let Some(index) = free.filter(|_| !self.read_only && self.has_command_files()) else {
            return RegistersHeld { index: None, number };
        };
        inner.running[index] = true;
        inner.next = index + 1;
        drop(inner);
        self.write_registers(index, &RegisterSet { status: RegisterStatus::Running, number, ..set.clone() });
        RegistersHeld { index: Some(index), number }
    }

    /// Writes the results of an instruction to its registers and releases them.
    pub(crate) fn finish_set(&self, held: RegistersHeld, set: &RegisterSet) {
        let Some(index) = held.index else { return };
        self.write_registers(index, &RegisterSet { number: held.number, ..set.clone() });
        self.registers.inner.lock().running[index] = false;
    }

    fn write_registers(&self, index: usize, set: &RegisterSet) {
        let words = set.encode();
        // The status is written last: a reader that sees it sees the other registers.
        write_words(&self.medium, set_at(index) + 8, &words[1..]);
        self.medium.fence();
        write_words(&self.medium, set_at(index), &words[..1]);
    }
}

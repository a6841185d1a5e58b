//! Binary form of instructions and results: one structure of 4096 bytes, in which a program writes an
//! instruction and gets its results, and a buffer that follows the structure in the results.
//!
//! `docs/reference/isp.md` documents every byte. All numbers are little-endian.

mod layout;

pub(crate) use layout::NAME_OF_FORM;
pub use layout::{MAGIC, STRUCTURE_BYTES};

use crate::instructions::{Answer, ByteRange, Command, Instruction, MEMORY_BYTES_DEFAULT, Words};
use crate::outcome::{Failure, Outcome};
use crate::search::WORDS_MAX;
use crate::source::Target;
use crate::text;
use layout::{Field, Structure};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// Number of the command whose words are in the structure.
const COMMAND_WORDS: u64 = 1;
/// Number of the command that has a JSON form in the structure.
const COMMAND_JSON: u64 = 2;
const FLAG_FAIL_IF_CHANGED: u64 = 1;

/// Reads an instruction in its binary form. The parts for results and status are not read.
///
/// # Errors
/// The bytes are not an instruction. The message names the byte and what is possible.
pub fn parse(bytes: &[u8]) -> Result<Instruction, Failure> {
    let structure = Structure::new(bytes)?;
    let flags = structure.number(layout::FLAGS);
    if flags & !FLAG_FAIL_IF_CHANGED != 0 {
        return Err(wrong(layout::FLAGS, flags, "0 or 1 (fail if the file changes)"));
    }
    let count = structure.number(layout::COUNT);
    let command = match structure.number(layout::COMMAND) {
        COMMAND_WORDS => words(&structure, count)?,
        COMMAND_JSON => json(&structure, count)?,
        other => return Err(wrong(layout::COMMAND, other, "1 (words) or 2 (JSON)")),
    };
    let length = structure.number(layout::LENGTH);
    let memory = structure.number(layout::MEMORY);
    let memory_bytes = if memory == 0 { MEMORY_BYTES_DEFAULT as u64 } else { memory };
    let memory_bytes = usize::try_from(memory_bytes).unwrap_or(usize::MAX);
    text::check_memory(memory_bytes)?;
    Ok(Instruction {
        command,
        file: target(&structure)?,
        range: ByteRange {
            offset: structure.number(layout::OFFSET),
            length: if length == 0 { None } else { Some(length) },
        },
        memory_bytes,
        fail_if_changed: flags & FLAG_FAIL_IF_CHANGED != 0,
    })
}

fn words(structure: &Structure<'_>, count: u64) -> Result<Command, Failure> {
    if !(1..=WORDS_MAX as u64).contains(&count) {
        return Err(wrong(layout::COUNT, count, "the number of words, 1 to 64"));
    }
    let (slots, rest) = structure.bytes(layout::PARAMETERS).as_chunks::<{ layout::SLOT_BYTES }>();
    let mut words = Vec::new();
    for (index, [len, slot @ ..]) in slots.iter().enumerate() {
        let at = layout::PARAMETERS.0 + index * layout::SLOT_BYTES;
        let len = usize::from(*len);
        let used = index < count as usize;
        let Some(unused) = slot.get(len..).filter(|_| used == (len > 0)) else {
            return Err(Failure::invalid(format!(
                "byte {at} of the instruction is {len}; it is the length of word {}, 1 to 31, or 0 behind the last \
                 word",
                index + 1
            )));
        };
        zeros(at + 1 + len, unused)?;
        if used {
            words.push(slot[..len].to_vec());
        }
    }
    zeros(layout::PARAMETERS.0 + layout::PARAMETERS.1 - rest.len(), rest)?;
    let positions = structure.number(layout::POSITIONS_MAX);
    Ok(Command::Words(Words { words, positions: usize::try_from(positions).unwrap_or(usize::MAX) }))
}

fn json(structure: &Structure<'_>, length: u64) -> Result<Command, Failure> {
    let parameters = structure.bytes(layout::PARAMETERS);
    let split = usize::try_from(length).ok().and_then(|length| parameters.split_at_checked(length));
    let Some((text, rest)) = split else {
        return Err(wrong(layout::COUNT, length, "the length of the JSON text, at most 2048"));
    };
    zeros(layout::PARAMETERS.0 + text.len(), rest)?;
    zeros(layout::POSITIONS_MAX.0, structure.bytes(layout::POSITIONS_MAX))?;
    text::parse_command(text)
}

fn target(structure: &Structure<'_>) -> Result<Target, Failure> {
    let name = structure.bytes(layout::NAME);
    let len = memchr::memchr(0, name).ok_or_else(|| {
        Failure::invalid(format!("the name at byte {} has no zero at its end", layout::NAME.0))
    })?;
    zeros(layout::NAME.0 + len, &name[len..])?;
    match (len, structure.number(layout::INODE)) {
        (0, inode) if inode != 0 => Ok(Target::Inode(inode)),
        (1.., 0) => Target::name(OsStr::from_bytes(&name[..len])).map_err(Failure::invalid),
        _ => Err(Failure::invalid(format!(
            "the instruction has either the name of a file at byte {} or an inode number at byte {}",
            layout::NAME.0,
            layout::INODE.0
        ))),
    }
}

/// Fails if a byte is not zero.
fn zeros(at: usize, bytes: &[u8]) -> Result<(), Failure> {
    match bytes.iter().position(|byte| *byte != 0) {
        None => Ok(()),
        Some(index) => Err(Failure::invalid(format!(
            "byte {} of the instruction is {}; it is reserved and must be 0",
            at + index,
            bytes[index]
        ))),
    }
}

fn wrong(field: Field, value: u64, form: &str) -> Failure {
    Failure::invalid(format!(
        "the number at byte {} of the instruction is {value}; it must be {form}",
        field.0
    ))
}

/// Result of an instruction in its binary form: the structure that was written, with results and
/// status, and then the results buffer.
#[must_use]
pub fn format(instruction: &[u8], outcome: &Outcome) -> Vec<u8> {
    let is_text = has_text(instruction, outcome);
    let buffer = if is_text { text::format(outcome) } else { positions(outcome) };
    head(instruction, outcome, &buffer, 0)
}

/// Returns `true` if the results buffer is text. The JSON command has its results in JSON, also if they are those of
/// words.
pub(crate) fn has_text(instruction: &[u8], outcome: &Outcome) -> bool {
    match &outcome.result {
        Ok(Answer::Words(_)) => layout::read(instruction, layout::COMMAND) != COMMAND_WORDS,
        Ok(_) => true,
        Err(_) => false,
    }
}

/// Results buffer that is no text: the positions of words.
pub(crate) fn positions(outcome: &Outcome) -> Vec<u8> {
    let Ok(Answer::Words(answer)) = &outcome.result else { return Vec::new() };
    let words = answer.words.iter().take(WORDS_MAX);
    words.flat_map(|word| word.positions.iter().flat_map(|at| at.to_le_bytes())).collect()
}

/// The structure that was written, with results and status, and the begin of the results buffer, behind which `behind`
/// bytes follow.
pub(crate) fn head(instruction: &[u8], outcome: &Outcome, buffer: &[u8], behind: usize) -> Vec<u8> {
    let mut reply = Vec::with_capacity(STRUCTURE_BYTES + buffer.len());
    reply.extend_from_slice(instruction);
    reply.resize(STRUCTURE_BYTES, 0);
    layout::clear_results(&mut reply);
    match &outcome.result {
        Ok(Answer::Words(answer)) if !has_text(instruction, outcome) => {
            for (index, word) in answer.words.iter().enumerate().take(WORDS_MAX) {
                layout::write(&mut reply, layout::COUNTS.element(index, 8), word.count);
                let number = word.positions.len() as u64;
                layout::write(&mut reply, layout::POSITION_COUNTS.element(index, 4), number);
            }
        }
        Ok(_) => {}
        Err(failure) => layout::write_text(&mut reply, layout::MESSAGE, &failure.message),
    }
    let work = &outcome.work;
    let flags = u64::from(outcome.changed) | u64::from(outcome.truncated) << 1;
    for (field, value) in [
        (layout::RESULT_BYTES, (buffer.len() + behind) as u64),
        (layout::BYTES_SCANNED, work.bytes_scanned),
        (layout::COMPLETE, 1),
        (layout::CODE, outcome.status() as u64),
        (layout::RESULT_FLAGS, flags),
        (layout::YIELDS, work.yields),
        (layout::WALL_NS, work.wall_ns),
        (layout::CPU_NS, work.cpu_ns),
        (layout::YIELDED_NS, work.yielded_ns),
    ] {
        layout::write(&mut reply, field, value);
    }
    reply.extend_from_slice(buffer);
    reply
}

//! JSON form of instructions and results: one line for an instruction, and one line and a payload for
//! a result.

mod keys;
mod unique;

pub(crate) use keys::{Keys, shortened};
pub use unique::UniqueKeys;

use crate::engine::{Charge, make_room};
use crate::instructions::{Answer, ByteRange, Command, Instruction, MEMORY_BYTES_DEFAULT};
use crate::outcome::{Failure, Outcome, Status, Work};
use crate::source::{Extents, Target};
use serde::Serialize;
use serde_json::Value;

/// Maximum length of an instruction in its JSON form, in bytes.
pub const LINE_BYTES_MAX: usize = 64 << 10;
/// Largest limit of the memory of an instruction: 1 GiB.
const MEMORY_BYTES_MAX: usize = 1 << 30;

/// Computation of an instruction, for messages.
const EXAMPLE: &str = r#"{"words": ["error"]}"#;

/// Reads an instruction in its JSON form.
///
/// # Errors
/// The text is not an instruction. The message names the key or the position, and what is possible.
pub fn parse(line: &[u8]) -> Result<Instruction, Failure> {
    parse_with(&parse_value(line)?, |keys| match (keys.text("file")?, keys.number("inode")?) {
        (Some(name), None) => Target::name(name).map_err(Failure::invalid),
        (None, Some(inode)) => Ok(Target::Inode(inode)),
        _ => Err(Failure::invalid(
            "an instruction names its file with either \"file\" or \"inode\", such as \"file\": \"log.txt\"",
        )),
    })
}

/// Reads an instruction for a volume: it has extents in place of a file. [`UniqueKeys`] reads a value that
/// has every key once.
///
/// # Errors
/// As for [`parse`].
pub fn parse_for_volume(instruction: &Value) -> Result<Instruction, Failure> {
    parse_with(instruction, |keys| {
        let namespace = keys.text("namespace")?;
        let list = keys.take("extents").map(|value| keys.extents("extents", value)).transpose()?;
        Ok(Target::Extents(Box::new(Extents { namespace, list })))
    })
}

fn parse_with(
    value: &Value,
    target: impl FnOnce(&mut Keys<'_>) -> Result<Target, Failure>,
) -> Result<Instruction, Failure> {
    let mut keys = Keys::new("the instruction", EXAMPLE, value)?;
    let command = take_command(&mut keys)?;
    let file = target(&mut keys)?;
    let range = ByteRange { offset: keys.number("offset")?.unwrap_or(0), length: keys.number("length")? };
    let memory_bytes = keys.number_up_to("memory", MEMORY_BYTES_MAX as u64)?;
    let memory_bytes = memory_bytes.map_or(MEMORY_BYTES_DEFAULT, |bytes| bytes as usize);
    let fail_if_changed = keys.flag("fail_if_changed")?;
    keys.finish()?;
    Ok(Instruction { command, file, range, memory_bytes, fail_if_changed })
}

/// Reads the computation of an instruction in its JSON form, without the file.
pub(crate) fn parse_command(text: &[u8]) -> Result<Command, Failure> {
    let value = parse_value(text)?;
    let mut keys = Keys::new("the instruction", EXAMPLE, &value)?;
    let command = take_command(&mut keys)?;
    keys.finish()?;
    Ok(command)
}

pub(crate) fn check_memory(bytes: usize) -> Result<(), Failure> {
    if bytes <= MEMORY_BYTES_MAX {
        return Ok(());
    }
    Err(Failure::invalid(format!("the limit of memory is {bytes} bytes; it is at most {MEMORY_BYTES_MAX}")))
}

fn parse_value(line: &[u8]) -> Result<Value, Failure> {
    if line.len() > LINE_BYTES_MAX {
        return Err(Failure::invalid(format!(
            "the instruction has more than {LINE_BYTES_MAX} bytes; name a file in place of a long \"program\", and \
             write long bytes as a string in place of \"hex\""
        )));
    }
    serde_json::from_slice(line).map(|UniqueKeys(value)| value).map_err(|error| {
        if error.is_data() {
            return Failure::invalid(format!("the instruction {error}"));
        }
        let example = "{\"words\": [\"error\"], \"file\": \"log.txt\"}";
        let what = if error.is_eof() { "not complete" } else { "not valid JSON" };
        Failure::invalid(format!("the instruction is {what}: {error}; an instruction is like {example}"))
    })
}

fn take_command(keys: &mut Keys<'_>) -> Result<Command, Failure> {
    let names: Vec<_> = Command::NAMES.iter().filter(|name| keys.has(name)).collect();
    let [name] = names[..] else {
        let known = Command::NAMES.join(", ");
        return Err(Failure::invalid(format!(
            "an instruction has exactly one of the keys {known}, such as {EXAMPLE}; this one has the keys {}",
            keys.all().join(", ")
        )));
    };
    let value = keys.take(name).unwrap_or(&Value::Null);
    Command::parse(name, value, keys)
}

/// Line of a result.
#[derive(Serialize)]
struct Reply<'a> {
    status: Status,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
    #[serde(flatten)]
    answer: Option<&'a Answer>,
    changed: bool,
    truncated: bool,
    payload_bytes: usize,
    #[serde(flatten)]
    work: Work,
}

impl<'a> Reply<'a> {
    fn new(outcome: &'a Outcome) -> Self {
        Self {
            status: outcome.status(),
            error: outcome.result.as_ref().err().map(|failure| failure.message.as_str()),
            answer: outcome.result.as_ref().ok(),
            changed: outcome.changed,
            truncated: outcome.truncated,
            payload_bytes: payload(outcome).len(),
            work: outcome.work,
        }
    }
}

fn payload(outcome: &Outcome) -> &[u8] {
    outcome.result.as_ref().map_or(&[][..], Answer::payload)
}

/// Result of an instruction in its JSON form: a line, and then the payload.
#[must_use]
pub fn format(outcome: &Outcome) -> Vec<u8> {
    // A reply has only strings, numbers and lists, which can always be written.
    let mut line = serde_json::to_vec(&Reply::new(outcome)).unwrap_or_default();
    line.push(b'\n');
    line.extend_from_slice(payload(outcome));
    line
}

/// Line of a result in its JSON form, whose memory is counted.
pub(crate) fn line(outcome: &Outcome, charge: &mut Charge) -> Result<Vec<u8>, Failure> {
    let mut line = Counted { bytes: Vec::new(), charge, refused: None };
    let written = serde_json::to_writer(&mut line, &Reply::new(outcome));
    if let Some(failure) = line.refused {
        return Err(failure);
    }
    let mut bytes = if written.is_ok() { line.bytes } else { Vec::new() };
    bytes.push(b'\n');
    Ok(bytes)
}

/// Bytes that are written while there is memory for them.
struct Counted<'a> {
    bytes: Vec<u8>,
    charge: &'a mut Charge,
    refused: Option<Failure>,
}

impl std::io::Write for Counted<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if let Err(failure) = self.charge.cover(self.bytes.len() + bytes.len()) {
            self.refused = Some(failure);
            return Err(std::io::ErrorKind::OutOfMemory.into());
        }
        make_room(&mut self.bytes, bytes.len());
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

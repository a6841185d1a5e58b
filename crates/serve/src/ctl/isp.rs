//! Instructions of the processing engine on extents of a volume, by control.

use super::device_commands::invalid;
use super::wire::{ANSWER_BYTES_MAX, IspAnswer, RefusalKind, Refused, to_hex};
use crate::device::{Device, DeviceExtents};
use frit_isp::{
    Command, Engine, EngineOptions, Extents, Instruction, Outcome, Request, Status, Target, text,
};
use serde_json::Value;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Maximum number of instructions in execution.
const QUERIES_MAX: usize = 4;

/// Largest memory of the results of an instruction. Positions and addresses have up to 42 digits for 8
/// bytes of memory, and the answer has to be shorter than [`ANSWER_BYTES_MAX`].
pub const RESULT_BYTES_MAX: usize = 2 << 20;

/// Largest memory of the results of an instruction that returns lines or records, which have two
/// digits a byte.
const PAYLOAD_BYTES_MAX: usize = 7 << 20;

/// Number of bytes of a read, during which the lock is held: 128 KiB take about 50 µs.
const CHUNK_BYTES: usize = 128 << 10;

/// Number of bytes of a read while clients send requests, which wait for the lock: a wait of a few
/// microseconds is shorter than the wake-up of a thread.
const FOREGROUND_CHUNK_BYTES: usize = 16 << 10;

/// Maximum length of a line, which a thread of the engine holds in memory. A volume has long runs of zeros,
/// which are a part of a line.
const LINE_BYTES_MAX: usize = 512 << 20;

/// Interval of checks for a client that has disconnected.
const GONE_CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// Processing engine of a device, and its instructions in execution.
#[derive(Debug)]
pub struct Queries {
    device: Arc<Device>,
    engine: Engine,
    running: AtomicUsize,
}

/// Instruction in execution.
struct Running<'a>(&'a AtomicUsize);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Queries {
    /// Creates the engine of a device. Its threads start with the first instruction.
    #[must_use]
    pub fn new(device: &Arc<Device>) -> Queries {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let engine = Engine::new(EngineOptions {
            // A thread that holds the lock has to run.
            niceness: None,
            // One processor stays for clients, whose requests would wait for a time slice.
            threads: processors.saturating_sub(1).max(1),
            chunk_bytes: CHUNK_BYTES,
            foreground_chunk_bytes: FOREGROUND_CHUNK_BYTES,
            record_bytes_max: LINE_BYTES_MAX,
            foreground: device.foreground(),
            ..EngineOptions::default()
        });
        Queries { device: Arc::clone(device), engine, running: AtomicUsize::new(0) }
    }

    /// Executes an instruction over extents of the device, and ends early when `gone` returns `true`.
    ///
    /// # Errors
    /// An instruction that is not valid; an unknown name space; an extent outside of the volume or the
    /// name space; too many instructions at a time; an answer that is too long. Other failures are
    /// statuses of the result.
    pub fn execute(
        &self,
        namespaces: &[(String, Range<u64>)],
        instruction: &Value,
        gone: &dyn Fn() -> bool,
    ) -> Result<IspAnswer, Refused> {
        let _running = self.begin()?;
        let mut instruction = parse(instruction)?;
        let Target::Extents(extents) = &instruction.file else {
            return Err(invalid("an instruction for a volume has extents".into()));
        };
        let space = space_of(extents, namespaces, self.device.bytes())?;
        let ranges = ranges_in(extents, &space)?;
        let named = extents.list.is_some();
        instruction.memory_bytes = instruction.memory_bytes.min(match instruction.command {
            Command::Filter(_) | Command::Select(_) => PAYLOAD_BYTES_MAX,
            _ => RESULT_BYTES_MAX,
        });
        let source = Arc::new(DeviceExtents::new(&self.device, &ranges).map_err(invalid)?);
        let request =
            Request { instruction, source: Arc::clone(&source) as _, module: None, destination: None };
        let ticket = self.engine.submit(request);
        let outcome = loop {
            match ticket.wait_for(GONE_CHECK_INTERVAL) {
                Some(outcome) => break outcome,
                None if gone() || self.device.is_stopping() => ticket.cancel(),
                None => {}
            }
        };
        let address = |position| source.address(position) - space.start;
        answer(&outcome, named.then_some(&address))
    }

    fn begin(&self) -> Result<Running<'_>, Refused> {
        let running = self.running.fetch_add(1, Ordering::AcqRel);
        let guard = Running(&self.running);
        if running < QUERIES_MAX {
            return Ok(guard);
        }
        let what = format!("{QUERIES_MAX} instructions are being executed already; try again");
        Err(Refused::new(RefusalKind::Busy, what))
    }
}

fn parse(instruction: &Value) -> Result<Instruction, Refused> {
    if instruction.get("copy").is_some() {
        let what = "\"copy\" writes to a file, and a volume has none: use \"filter\", and write the lines as a \
                    client of the volume";
        return Err(invalid(what.into()));
    }
    let instruction = text::parse_for_volume(instruction).map_err(|failure| invalid(failure.message))?;
    if instruction.module().is_some() {
        let what = "a volume has no files: give the module of the program as {\"hex\": …}";
        return Err(invalid(what.into()));
    }
    Ok(instruction)
}

/// Returns the bytes of the volume to which the addresses of an instruction belong.
fn space_of(
    extents: &Extents,
    namespaces: &[(String, Range<u64>)],
    bytes: u64,
) -> Result<Range<u64>, Refused> {
    let Some(wanted) = &extents.namespace else { return Ok(0..bytes) };
    let found = namespaces.iter().find(|(name, _)| name == wanted);
    found.map(|(_, range)| range.clone()).ok_or_else(|| {
        let names: Vec<&str> = namespaces.iter().map(|(name, _)| name.as_str()).collect();
        let names =
            if names.is_empty() { "it has none".into() } else { format!("it has {}", names.join(", ")) };
        invalid(format!("the volume has no name space {wanted:?}; {names}"))
    })
}

/// Returns the bytes of the volume that the extents have.
fn ranges_in(extents: &Extents, space: &Range<u64>) -> Result<Vec<Range<u64>>, Refused> {
    let Some(list) = &extents.list else { return Ok(vec![space.clone()]) };
    let bytes = space.end - space.start;
    let range = |(number, &(offset, length)): (usize, &(u64, u64))| {
        let end = offset.checked_add(length).filter(|end| *end <= bytes);
        let what = || {
            let whose =
                extents.namespace.as_ref().map_or("the volume".into(), |n| format!("name space {n:?}"));
            invalid(format!(
                "extent {number}, [{offset}, {length}], ends behind the {bytes} bytes of {whose}; name bytes before \
                 its end",
            ))
        };
        end.map(|end| space.start + offset..space.start + end).ok_or_else(what)
    };
    list.iter().enumerate().map(range).collect()
}

/// Returns the answer to an instruction. With `address`, positions have their addresses beside them.
fn answer(outcome: &Outcome, address: Option<&dyn Fn(u64) -> u64>) -> Result<IspAnswer, Refused> {
    if let Err(failure) = &outcome.result
        && failure.status == Status::Invalid
    {
        return Err(invalid(failure.message.clone()));
    }
    let text = text::format(outcome);
    let end = text.iter().position(|byte| *byte == b'\n').unwrap_or(text.len());
    let mut result: Value = serde_json::from_slice(&text[..end])
        .map_err(|e| Refused::new(RefusalKind::Failed, format!("the result has no JSON form: {e}")))?;
    if let Some(address) = address {
        add_addresses(&mut result, address);
        if let Some(words) = result.get_mut("words").and_then(Value::as_array_mut) {
            words.iter_mut().for_each(|word| add_addresses(word, address));
        }
    }
    let payload = text.get(end + 1..).unwrap_or_default();
    let answer =
        IspAnswer { payload: if payload.is_empty() { String::new() } else { to_hex(payload) }, result };
    // Keys and braces around the answer have fewer bytes than the line of the result without addresses.
    let bytes = serde_json::to_vec(&answer).map_or(usize::MAX, |bytes| bytes.len() + 100);
    if bytes > ANSWER_BYTES_MAX {
        let what = format!(
            "the answer has {bytes} bytes; it has at most {ANSWER_BYTES_MAX}: ask for fewer results with \"limit\", \
             \"positions\" or \"memory\""
        );
        return Err(Refused::new(RefusalKind::Failed, what));
    }
    Ok(answer)
}

fn add_addresses(result: &mut Value, address: &dyn Fn(u64) -> u64) {
    let Some(positions) = result.get("positions").and_then(Value::as_array) else { return };
    let addresses = positions.iter().filter_map(Value::as_u64).map(|at| Value::from(address(at))).collect();
    result["addresses"] = Value::Array(addresses);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::DeviceOptions;
    use crate::testing::MemoryBackend;

    #[test]
    fn a_query_holds_the_lock_for_less_while_clients_send_requests() {
        let device = Device::new(Box::new(MemoryBackend::new(256 << 10)), DeviceOptions::default());
        let queries = Queries::new(&device);
        let reads = || {
            let before = device.counters().isp.requests;
            let answer = queries.execute(&[], &serde_json::json!({"words": ["a"]}), &|| false);
            assert!(answer.is_ok(), "{answer:?}");
            device.counters().isp.requests - before
        };
        assert_eq!(reads(), 2);
        let foreground = device.foreground();
        let _request = foreground.enter();
        assert_eq!(reads(), 16);
    }
}

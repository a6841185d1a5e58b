//! Side of the engine: the functions that a program calls, and the limits that it meets.

use super::abi::{self, IMPORT_MODULE};
use super::budget::Budget;
use crate::engine::{Account, Charge, Control, cpu_ns, make_room};
use crate::outcome::{Failure, Status};
use crate::source::Source;
use std::ops::Range;
use std::sync::Arc;
use wasmtime::{Caller, Engine, Extern, Linker, Memory, ResourceLimiter};

/// Elements of the tables of a program, at most. Tables hold the addresses of functions.
const TABLE_ELEMENTS_MAX: usize = 1 << 16;
/// Memory of an element of a table in bytes.
const ELEMENT_BYTES: usize = 16;
/// Memory of an instance in bytes, beside that of the program.
const INSTANCE_BYTES: usize = 32 << 10;
/// Longest message of a program for the user, in bytes.
const MESSAGE_BYTES_MAX: usize = 500;

/// Data and limits of all instances of an instruction.
#[derive(Clone)]
pub(crate) struct Conditions {
    pub(crate) control: Arc<Control>,
    pub(crate) source: Arc<dyn Source>,
    pub(crate) range: Range<u64>,
    pub(crate) budget: Arc<Budget>,
}

/// Reason why a call of a program was ended by the engine.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Stop {
    /// the instruction fails
    #[error(transparent)]
    Failure(#[from] Failure),
    /// the results of a part exceed its memory
    #[error("the results of a part exceed its memory")]
    Overflow,
}

/// State of an instance on the side of the engine.
pub(super) struct Host {
    pub(super) conditions: Conditions,
    /// `true` if the results are those of one part: they must not exceed their memory.
    pub(super) is_part: bool,
    /// Memory for emitted bytes.
    pub(super) output_max: usize,
    pub(super) output: Vec<u8>,
    /// `true` if bytes were not added to the output.
    pub(super) truncated: bool,
    /// Processor time of the thread that is accounted for.
    pub(super) counted_ns: u64,
    /// Memory of the instance.
    pub(super) memory: InstanceMemory,
}

/// Memory of an instance, which is counted for its user.
pub(super) struct InstanceMemory {
    charge: Charge,
    pages: usize,
    tables: usize,
}

impl InstanceMemory {
    pub(super) fn new(account: &Account) -> Self {
        Self { charge: account.charge(), pages: 0, tables: 0 }
    }

    /// Counts the memory with `output` bytes of results.
    fn count(&mut self, output: usize) -> Result<(), Failure> {
        self.charge.cover(INSTANCE_BYTES + self.pages + self.tables * ELEMENT_BYTES + output)
    }

    /// Ends the instance, whose results remain.
    pub(super) fn into_charge(self) -> Charge {
        self.charge
    }
}

impl Host {
    /// Accounts for time, and yields to foreground requests. An error ends the call.
    pub(super) fn tick(&mut self) -> Result<(), Failure> {
        let now = cpu_ns();
        let used = now.saturating_sub(self.counted_ns);
        self.counted_ns = now;
        self.conditions.budget.use_time(used)?;
        let control = &self.conditions.control;
        if self.is_part { control.check() } else { control.check_cancelled() }
    }

    /// Appends bytes to the results. Returns `false` if they are cut at the limit of memory.
    pub(super) fn emit(&mut self, bytes: &[u8]) -> Result<bool, Stop> {
        // Later bytes without earlier ones would not be a beginning of the results.
        if !self.truncated && self.output.len() + bytes.len() <= self.output_max {
            self.memory.count(self.output.len() + bytes.len())?;
            make_room(&mut self.output, bytes.len());
            self.output.extend_from_slice(bytes);
            return Ok(true);
        }
        if self.is_part {
            return Err(Stop::Overflow);
        }
        self.truncated = true;
        Ok(false)
    }
}

impl ResourceLimiter for Host {
    fn memory_growing(&mut self, current: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        let limit = self.conditions.budget.grant().memory_bytes;
        if desired <= limit {
            self.memory.pages = desired;
            let counted = self.memory.count(self.output.len());
            return counted.map(|()| true).map_err(|failure| wasmtime::Error::new(Stop::Failure(failure)));
        }
        // A refusal (-1) would be seen by the program, most of which then end with an obscure trap.
        let failure = Failure::new(
            Status::OutOfMemory,
            format!(
                "the program has {current} bytes of memory and asks for {desired}; the limit is {limit}, which \
                 \"memory\" can raise"
            ),
        );
        Err(wasmtime::Error::new(Stop::Failure(failure)))
    }

    fn table_growing(&mut self, current: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        if desired <= TABLE_ELEMENTS_MAX {
            self.memory.tables += desired.saturating_sub(current);
            let counted = self.memory.count(self.output.len());
            return counted.map(|()| true).map_err(|failure| wasmtime::Error::new(Stop::Failure(failure)));
        }
        let failure = Failure::new(
            Status::OutOfMemory,
            format!(
                "the program asks for a table of {desired} elements; at most {TABLE_ELEMENTS_MAX} are allowed"
            ),
        );
        Err(wasmtime::Error::new(Stop::Failure(failure)))
    }

    fn instances(&self) -> usize {
        1
    }

    fn tables(&self) -> usize {
        4
    }

    fn memories(&self) -> usize {
        1
    }
}

/// Creates the functions of the engine.
pub(super) fn linker(engine: &Engine) -> wasmtime::Result<Linker<Host>> {
    let mut linker = Linker::new(engine);
    linker.func_wrap(IMPORT_MODULE, "emit", |mut caller: Caller<'_, Host>, address: u32, len: u32| {
        let bytes = memory_range(&mut caller, "emit", address, len)?;
        let (memory, host) = memory(&mut caller)?.data_and_store_mut(&mut caller);
        let kept = host.emit(&memory[bytes]).map_err(wasmtime::Error::new)?;
        Ok(i32::from(!kept))
    })?;
    linker.func_wrap(IMPORT_MODULE, "fail", |mut caller: Caller<'_, Host>, address: u32, len: u32| {
        let bytes = memory_range(&mut caller, "fail", address, len)?;
        let text = &memory(&mut caller)?.data(&caller)[bytes];
        // A character at the limit is left out. It has up to 4 bytes, so more than the limit are decoded.
        let mut text = String::from_utf8_lossy(&text[..text.len().min(MESSAGE_BYTES_MAX + 3)]).into_owned();
        text.truncate(text.floor_char_boundary(MESSAGE_BYTES_MAX));
        // The message is printed on terminals.
        let text = text.replace(char::is_control, " ");
        Err::<(), _>(stop(Status::Program, format!("the program failed: {text}")))
    })?;
    linker.func_wrap(IMPORT_MODULE, "read_at", read_at)?;
    linker
        .func_wrap(IMPORT_MODULE, "size", |caller: Caller<'_, Host>| caller.data().conditions.source.len())?;
    linker.func_wrap(IMPORT_MODULE, "range_start", |caller: Caller<'_, Host>| {
        caller.data().conditions.range.start
    })?;
    linker.func_wrap(IMPORT_MODULE, "range_end", |caller: Caller<'_, Host>| {
        caller.data().conditions.range.end
    })?;
    Ok(linker)
}

/// Reads bytes of the file into the memory of a program.
fn read_at(mut caller: Caller<'_, Host>, offset: u64, address: u32, len: u32) -> wasmtime::Result<()> {
    let place = memory_range(&mut caller, "read_at", address, len)?;
    let source = Arc::clone(&caller.data().conditions.source);
    let size = source.len();
    if offset.checked_add(u64::from(len)).is_none_or(|end| end > size) {
        return Err(stop(
            Status::Trap,
            format!("the program called read_at for {len} bytes at {offset}, in a file of {size} bytes"),
        ));
    }
    let mut done = 0;
    while done < place.len() {
        caller.data_mut().tick().map_err(|failure| wasmtime::Error::new(Stop::Failure(failure)))?;
        let at = offset + done as u64;
        let wanted = (place.len() - done).min(caller.data().conditions.control.chunk_bytes());
        let mut rest = &mut memory(&mut caller)?.data_mut(&mut caller)[place.clone()][done..done + wanted];
        let read = source.read(at, wanted, &mut |piece| {
            let len = piece.len().min(rest.len());
            let (bytes, behind) = std::mem::take(&mut rest).split_at_mut(len);
            bytes.copy_from_slice(&piece[..len]);
            rest = behind;
        });
        read.map_err(|error| {
            stop(Status::Io, format!("bytes {at} to {} cannot be read: {error}", at + wanted as u64))
        })?;
        if !rest.is_empty() {
            return Err(stop(Status::Io, format!("a read of {wanted} bytes at {at} returned fewer")));
        }
        caller.data().conditions.control.count_bytes(wanted as u64);
        done += wanted;
    }
    Ok(())
}

fn stop(status: Status, message: String) -> wasmtime::Error {
    wasmtime::Error::new(Stop::Failure(Failure::new(status, message)))
}

fn memory(caller: &mut Caller<'_, Host>) -> wasmtime::Result<Memory> {
    match caller.get_export(abi::MEMORY) {
        Some(Extern::Memory(memory)) => Ok(memory),
        _ => Err(stop(Status::Internal, "the program has no memory".into())),
    }
}

/// Bytes of the memory of a program that it passed to a function.
fn memory_range(
    caller: &mut Caller<'_, Host>,
    function: &str,
    address: u32,
    len: u32,
) -> wasmtime::Result<Range<usize>> {
    let size = memory(caller)?.data_size(&caller);
    let (start, len) = (address as usize, len as usize);
    if start.checked_add(len).is_some_and(|end| end <= size) {
        return Ok(start..start + len);
    }
    let message =
        format!("the program called {function} with {len} bytes at {start} of its memory of {size} bytes");
    Err(stop(Status::Trap, message))
}

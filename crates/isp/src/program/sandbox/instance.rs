//! Instance of a program: its memory, and calls of its functions under its limits.

use super::abi;
use super::compile::{Compiled, Unit};
use super::host::{Conditions, Host, InstanceMemory, Stop};
use crate::engine::{Charge, cpu_ns};
use crate::outcome::{Failure, Status};
use crate::scan::{Begin, Role};
use wasmtime::{Memory, Store, Trap, TypedFunc, UpdateDeadline, WasmParams, WasmResults};

/// Instance of a program.
pub(crate) struct Instance {
    store: Store<Host>,
    memory: Memory,
    buffer: TypedFunc<u32, u32>,
    scan: TypedFunc<(u32, u32, u64), i32>,
    functions: wasmtime::Instance,
    finishes: bool,
}

impl Instance {
    /// Creates an instance, and passes the argument on if there is one.
    pub(crate) fn new(
        compiled: &Compiled,
        conditions: &Conditions,
        begin: &Begin,
        argument: Option<&[u8]>,
    ) -> Result<Self, Stop> {
        let host = Host {
            conditions: conditions.clone(),
            is_part: begin.role == Role::Part,
            output_max: begin.memory,
            output: Vec::new(),
            truncated: false,
            counted_ns: cpu_ns(),
            memory: InstanceMemory::new(&begin.account),
        };
        let mut store = Store::new(compiled.instance.module().engine(), host);
        store.limiter(|host| host);
        store.epoch_deadline_callback(|mut context| {
            context.data_mut().tick().map_err(|failure| wasmtime::Error::new(Stop::Failure(failure)))?;
            Ok(UpdateDeadline::Continue(1))
        });
        let functions =
            bounded(&mut store, &|| "at its start".into(), |store| compiled.instance.instantiate(store))?;
        let memory = functions.get_memory(&mut store, abi::MEMORY).ok_or_else(missing)?;
        let scan = if compiled.unit == Unit::Lines { abi::SCAN_LINES.0 } else { abi::SCAN.0 };
        let buffer = functions.get_typed_func(&mut store, abi::BUFFER.0).map_err(|_| missing())?;
        let scan = functions.get_typed_func(&mut store, scan).map_err(|_| missing())?;
        let finishes = compiled.finishes;
        let mut instance = Self { store, memory, buffer, scan, functions, finishes };
        if let Some(argument) = argument {
            instance.give(abi::START.0, argument)?;
        }
        Ok(instance)
    }

    /// Processes bytes of the file. Returns `false` if the program needs no more of them.
    pub(crate) fn scan(&mut self, bytes: &[u8], at: u64) -> Result<bool, Stop> {
        let address = self.place(bytes)?;
        let function = self.scan.clone();
        let place = || format!("in scan at byte {at}");
        match self.call(&function, (address, bytes.len() as u32, at), &place)? {
            0 => Ok(true),
            1 => Ok(false),
            other => Err(Stop::Failure(Failure::new(
                Status::Trap,
                format!(
                    "the program returned {other} from scan at byte {at}; 0 continues the scan, and 1 ends it"
                ),
            ))),
        }
    }

    /// Removes what the program has emitted.
    pub(crate) fn take_output(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.store.data_mut().output)
    }

    /// Bytes that the program has emitted, and if they are cut.
    pub(crate) fn output(&self) -> (usize, bool) {
        (self.store.data().output.len(), self.store.data().truncated)
    }

    /// Returns the state of a part.
    pub(crate) fn partial(&mut self) -> Result<Vec<u8>, Stop> {
        self.invoke(abi::PARTIAL.0)?;
        Ok(self.take_output())
    }

    /// Appends what the program has emitted in the next part, and gives its state to the program.
    /// Returns `false` if the results are cut.
    pub(crate) fn merge(&mut self, output: &[u8], state: &[u8]) -> Result<bool, Stop> {
        self.store.data_mut().emit(output)?;
        self.give(abi::MERGE.0, state)?;
        Ok(!self.store.data().truncated)
    }

    /// Ends the scan, and returns all that the program has emitted, if it is cut, and the count of its memory.
    pub(crate) fn finish(mut self) -> Result<(Vec<u8>, bool, Charge), Stop> {
        if self.finishes {
            self.invoke(abi::FINISH.0)?;
        }
        let host = self.store.into_data();
        Ok((host.output, host.truncated, host.memory.into_charge()))
    }

    fn invoke(&mut self, name: &'static str) -> Result<(), Stop> {
        let function = self.functions.get_typed_func(&mut self.store, name).map_err(|_| missing())?;
        self.call(&function, (), &|| format!("in {name}"))
    }

    fn give(&mut self, name: &'static str, bytes: &[u8]) -> Result<(), Stop> {
        let address = self.place(bytes)?;
        let function = self.functions.get_typed_func(&mut self.store, name).map_err(|_| missing())?;
        self.call(&function, (address, bytes.len() as u32), &|| format!("in {name}"))
    }

    /// Copies bytes into the memory of the program. Returns their address.
    fn place(&mut self, bytes: &[u8]) -> Result<u32, Stop> {
        let function = self.buffer.clone();
        let len = u32::try_from(bytes.len()).map_err(|_| missing())?;
        let address = self.call(&function, len, &|| "in buffer".into())?;
        let place = self.memory.data_mut(&mut self.store);
        let size = place.len();
        let place = place.get_mut(address as usize..).and_then(|rest| rest.get_mut(..bytes.len()));
        let Some(place) = place else {
            return Err(Stop::Failure(Failure::new(
                Status::Trap,
                format!("the program returned {address} from buffer({len}), but its memory has {size} bytes"),
            )));
        };
        place.copy_from_slice(bytes);
        Ok(address)
    }

    fn call<P: WasmParams, R: WasmResults>(
        &mut self,
        function: &TypedFunc<P, R>,
        parameters: P,
        place: &dyn Fn() -> String,
    ) -> Result<R, Stop> {
        bounded(&mut self.store, place, |store| function.call(store, parameters))
    }
}

/// Runs a program within the limits of the instruction.
fn bounded<T>(
    store: &mut Store<Host>,
    place: &dyn Fn() -> String,
    run: impl FnOnce(&mut Store<Host>) -> wasmtime::Result<T>,
) -> Result<T, Stop> {
    let fuel = store.data().conditions.budget.fuel_left();
    if let Some(fuel) = fuel {
        store.set_fuel(fuel).map_err(|_| missing())?;
    }
    store.data_mut().counted_ns = cpu_ns();
    store.set_epoch_deadline(1);
    let result = run(store);
    let host = store.data_mut();
    let used_ns = cpu_ns().saturating_sub(host.counted_ns);
    let timed = host.conditions.budget.use_time(used_ns);
    if let Some(before) = fuel {
        let left = store.get_fuel().unwrap_or(0);
        let used = before.saturating_sub(left);
        // A limit that other instances have reached is reported by the next call.
        let _ = store.data().conditions.budget.use_fuel(used);
    }
    let result = result.map_err(|error| explain(error, store.data(), place))?;
    timed?;
    Ok(result)
}

/// Converts the error of a call.
fn explain(error: wasmtime::Error, host: &Host, place: &dyn Fn() -> String) -> Stop {
    let error = match error.downcast::<Stop>() {
        Ok(stop) => return stop,
        Err(error) => error,
    };
    let budget = &host.conditions.budget;
    let reason = match error.downcast_ref::<Trap>() {
        Some(Trap::OutOfFuel) => return Stop::Failure(budget.out_of_fuel()),
        Some(Trap::UnreachableCodeReached) => {
            "it executed \"unreachable\", as programs do after a panic or a failed assertion".to_owned()
        }
        Some(Trap::MemoryOutOfBounds) => "it accessed memory out of bounds".to_owned(),
        Some(Trap::StackOverflow) => "its calls need more stack than there is".to_owned(),
        Some(Trap::IntegerDivisionByZero) => "it divided by zero".to_owned(),
        Some(trap) => trap.to_string().replace("wasm trap: ", ""),
        None => format!("{error:#}"),
    };
    Stop::Failure(Failure::new(Status::Trap, format!("the program failed {}: {reason}", place())))
}

fn missing() -> Failure {
    Failure::new(Status::Internal, "the engine could not call the program; please report it with the module")
}

//! Compilation of modules, and the check that they are programs.

use super::abi::{self, bad, check_imports};
use super::cost;
use super::host::{self, Host};
use super::ticker::Ticker;
use crate::outcome::{Failure, Status};
use crate::source::Source;
use wasmtime::{Config, Engine, ExternType, InstancePre, Linker, Module};

/// First bytes of a module.
const MAGIC: &[u8] = b"\0asm";
/// Stack of a program in bytes. Threads have 2 MiB by default.
const STACK_BYTES: usize = 512 << 10;
/// Bytes of a module that are read by one call.
const READ_BYTES: u64 = 256 << 10;

/// Division of the bytes for a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unit {
    /// Pieces of any length.
    Bytes,
    /// Whole lines.
    Lines,
}

/// Module that was compiled, and is a program.
pub(crate) struct Compiled {
    pub(super) instance: InstancePre<Host>,
    pub(crate) unit: Unit,
    /// `true` if parts of the range can have instances of their own, which are merged.
    pub(crate) parallel: bool,
    pub(crate) takes_argument: bool,
    pub(super) finishes: bool,
    bytes: usize,
}

impl Compiled {
    /// Length of the module.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

/// Compilers for code with and without fuel: to count fuel makes code slower.
pub(super) struct Compilers {
    plain: Compiler,
    counting: Compiler,
    pub(super) ticker: Ticker,
}

impl Compilers {
    pub(super) fn new() -> Result<Self, Failure> {
        let (plain, counting) = (Compiler::new(false)?, Compiler::new(true)?);
        let ticker = Ticker::new(vec![plain.engine.weak(), counting.engine.weak()]);
        Ok(Self { plain, counting, ticker })
    }

    pub(super) fn compile(&self, bytes: &[u8], counts_fuel: bool) -> Result<Compiled, Failure> {
        if counts_fuel { self.counting.compile(bytes) } else { self.plain.compile(bytes) }
    }
}

struct Compiler {
    engine: Engine,
    linker: Linker<Host>,
}

impl Compiler {
    fn new(counts_fuel: bool) -> Result<Self, Failure> {
        let mut config = Config::new();
        config
            .consume_fuel(counts_fuel)
            .epoch_interruption(true)
            .max_wasm_stack(STACK_BYTES)
            // Traps by signals are 10 to 25 % faster, but they need handlers of SIGSEGV and SIGFPE for the
            // whole process, which a library must not install.
            .signals_based_traps(false)
            .memory_guard_size(0)
            // Results must not depend on the processor.
            .cranelift_nan_canonicalization(true)
            .wasm_relaxed_simd(false)
            .wasm_memory64(false)
            .wasm_multi_memory(false)
            .wasm_tail_call(false);
        let failed = |error: wasmtime::Error| {
            Failure::new(Status::Internal, format!("WebAssembly is not available on this machine: {error:#}"))
        };
        let engine = Engine::new(&config).map_err(failed)?;
        let linker = host::linker(&engine).map_err(failed)?;
        Ok(Self { engine, linker })
    }

    fn compile(&self, bytes: &[u8]) -> Result<Compiled, Failure> {
        if bytes.trim_ascii_start().starts_with(b"(") {
            return Err(bad(
                "the module is text; assemble it with \"wat2wasm\" or \"wasm-tools parse\", and name the result",
            ));
        }
        if !bytes.starts_with(MAGIC) {
            return Err(not_a_module(bytes));
        }
        cost::check(bytes)?;
        let module = Module::from_binary(&self.engine, bytes)
            .map_err(|error| bad(format!("the file is not a valid module of WebAssembly: {error:#}")))?;
        check_imports(&module)?;
        let Some(ExternType::Memory(_)) = module.get_export(abi::MEMORY) else {
            return Err(bad("the module does not export its memory as \"memory\""));
        };
        abi::BUFFER.require(&module)?;
        let unit = match (abi::SCAN.is_exported(&module)?, abi::SCAN_LINES.is_exported(&module)?) {
            (true, false) => Unit::Bytes,
            (false, true) => Unit::Lines,
            _ => {
                return Err(bad(format!(
                    "the module exports exactly one of the functions \"scan\" and \"scan_lines\", {}",
                    abi::SCAN
                )));
            }
        };
        let parallel = match (abi::PARTIAL.is_exported(&module)?, abi::MERGE.is_exported(&module)?) {
            (false, false) => false,
            (true, true) => true,
            _ => return Err(bad("the module exports only one of the functions \"partial\" and \"merge\"")),
        };
        let takes_argument = abi::START.is_exported(&module)?;
        let finishes = abi::FINISH.is_exported(&module)?;
        let instance = self
            .linker
            .instantiate_pre(&module)
            .map_err(|error| bad(format!("the module cannot be linked: {error:#}")))?;
        Ok(Compiled { instance, unit, parallel, takes_argument, finishes, bytes: bytes.len() })
    }
}

fn not_a_module(bytes: &[u8]) -> Failure {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ");
    let first = &bytes[..bytes.len().min(MAGIC.len())];
    let found = if first.is_empty() {
        "it is empty".into()
    } else {
        format!("it begins with {}, and not with {}", hex(first), hex(MAGIC))
    };
    bad(format!("the file is not a valid module of WebAssembly: {found}"))
}

/// Reads the bytes of a module.
pub(super) fn read(module: &dyn Source, bytes_max: usize) -> Result<Vec<u8>, Failure> {
    let len = module.len();
    if len > bytes_max as u64 {
        return Err(bad(format!(
            "the module has {len} bytes; this engine allows at most {bytes_max}: compile it with optimization and \
             without names and debug information (rustc -O -C strip=symbols)"
        )));
    }
    let mut bytes = Vec::with_capacity(len as usize);
    while (bytes.len() as u64) < len {
        let at = bytes.len() as u64;
        let wanted = (len - at).min(READ_BYTES) as usize;
        module.read(at, wanted, &mut |piece| bytes.extend_from_slice(piece)).map_err(|error| {
            Failure::new(Status::Io, format!("byte {at} of the module cannot be read: {error}"))
        })?;
        if bytes.len() as u64 != at + wanted as u64 {
            return Err(Failure::new(Status::Io, "the module changed while it was read"));
        }
    }
    Ok(bytes)
}

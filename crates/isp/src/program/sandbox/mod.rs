//! The sandbox of programs, with wasmtime: only with the feature `programs`.

mod abi;
mod background;
mod budget;
mod compile;
mod cost;
mod execution;
mod host;
mod instance;
mod ticker;

pub(crate) use execution::execute;

use crate::engine::{Charge, Control};
use crate::outcome::Failure;
use crate::source::Source;
use background::Compilations;
use compile::{Compiled, Compilers};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};
use ticker::Running;

/// Number of compiled modules that an engine keeps.
const CACHED_MODULES: usize = 16;
/// Bytes of modules whose compiled forms an engine keeps. A compiled form has about four times the bytes.
const CACHED_MODULE_BYTES: usize = 8 << 20;

/// Memory of a compiled form, for each byte of its module.
const COMPILED_BYTES: usize = 4;
/// Memory of the compiler, for each byte of a module and for any module.
const COMPILER_BYTES: (usize, usize) = (32, 4 << 20);

/// Identity of a compiled module: the hash of its bytes, and if its code counts fuel.
type Key = ([u8; 32], bool);

/// Compiled modules of an engine.
#[derive(Default)]
pub(crate) struct Programs {
    compilers: OnceLock<Compilers>,
    /// The module that was used last is the last one.
    cache: Mutex<VecDeque<(Key, Arc<Compiled>)>>,
    compilations: Compilations,
}

/// Compiled module that an instruction uses.
pub(crate) struct Loaded {
    pub(crate) compiled: Arc<Compiled>,
    /// `true` if it was not cached.
    pub(crate) was_compiled: bool,
    /// Count of its memory, which it has also when the cache has it no longer.
    pub(crate) charge: Charge,
}

impl std::fmt::Debug for Programs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Programs").field("cached", &self.cache.lock().len()).finish_non_exhaustive()
    }
}

impl Programs {
    /// Reads a module, and compiles it unless its compiled form is cached.
    ///
    /// # Errors
    /// The module cannot be read, or is no program. There is no memory for it. The instruction was cancelled: the
    /// module is compiled to the end without it.
    pub(crate) fn load(
        self: &Arc<Self>,
        control: &Control,
        module: &dyn Source,
        counts_fuel: bool,
        bytes_max: usize,
    ) -> Result<Loaded, Failure> {
        let len = usize::try_from(module.len()).map_or(bytes_max, |len| len.min(bytes_max));
        let charge = control.account().charged(len * (COMPILED_BYTES + 1))?;
        let bytes = compile::read(module, bytes_max)?;
        let key = (*blake3::hash(&bytes).as_bytes(), counts_fuel);
        if let Some(found) = self.cached(&key) {
            return Ok(Loaded { compiled: found, was_compiled: false, charge });
        }
        let (of_byte, of_module) = COMPILER_BYTES;
        let memory = of_module + of_byte * bytes.len();
        let programs = Arc::clone(self);
        let (compiled, cpu_ns) = self.compilations.run(control, memory, move || {
            let compiled = Arc::new(programs.compilers()?.compile(&bytes, counts_fuel)?);
            programs.keep(key, &compiled);
            Ok(compiled)
        })?;
        control.count_other_cpu(cpu_ns);
        Ok(Loaded { compiled, was_compiled: true, charge })
    }

    /// Puts a compiled form into the cache.
    fn keep(&self, key: Key, compiled: &Arc<Compiled>) {
        let mut cache = self.cache.lock();
        cache.retain(|(other, _)| *other != key);
        cache.push_back((key, Arc::clone(compiled)));
        let mut total: usize = cache.iter().map(|(_, module)| module.bytes()).sum();
        while cache.len() > CACHED_MODULES || total > CACHED_MODULE_BYTES {
            let Some((_, oldest)) = cache.pop_front() else { break };
            total -= oldest.bytes();
        }
    }

    fn cached(&self, key: &Key) -> Option<Arc<Compiled>> {
        let mut cache = self.cache.lock();
        let index = cache.iter().position(|(other, _)| other == key)?;
        let found = cache.remove(index)?;
        let compiled = Arc::clone(&found.1);
        cache.push_back(found);
        Some(compiled)
    }

    fn compilers(&self) -> Result<&Compilers, Failure> {
        if let Some(compilers) = self.compilers.get() {
            return Ok(compilers);
        }
        let compilers = Compilers::new()?;
        Ok(self.compilers.get_or_init(|| compilers))
    }

    /// Begins a time in which programs run, and are interrupted every [`TICK`](ticker::TICK).
    pub(crate) fn run(&self) -> Result<Running, Failure> {
        self.compilers()?.ticker.run()
    }
}

//! Names and types of the functions between a program and the engine.

use crate::outcome::{Failure, Status};
use wasmtime::{ExternType, FuncType, Module, ValType};

/// Module from which programs import functions of the engine.
pub(super) const IMPORT_MODULE: &str = "frit";
/// Functions of the engine: name, parameters, results.
const IMPORTS: [Function; 6] = [
    Function("emit", &[I32, I32], &[I32]),
    Function("fail", &[I32, I32], &[]),
    Function("range_end", &[], &[I64]),
    Function("range_start", &[], &[I64]),
    Function("read_at", &[I64, I32, I32], &[]),
    Function("size", &[], &[I64]),
];

pub(super) const MEMORY: &str = "memory";
pub(super) const BUFFER: Function = Function("buffer", &[I32], &[I32]);
pub(super) const START: Function = Function("start", &[I32, I32], &[]);
pub(super) const SCAN: Function = Function("scan", &[I32, I32, I64], &[I32]);
pub(super) const SCAN_LINES: Function = Function("scan_lines", &[I32, I32, I64], &[I32]);
pub(super) const PARTIAL: Function = Function("partial", &[], &[]);
pub(super) const MERGE: Function = Function("merge", &[I32, I32], &[]);
pub(super) const FINISH: Function = Function("finish", &[], &[]);

const I32: Number = Number::I32;
const I64: Number = Number::I64;

/// Type of a parameter or result.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Number {
    I32,
    I64,
}

impl Number {
    fn is(self, other: &ValType) -> bool {
        matches!((self, other), (Self::I32, ValType::I32) | (Self::I64, ValType::I64))
    }

    fn name(self) -> &'static str {
        if self == Self::I32 { "i32" } else { "i64" }
    }
}

/// Name, parameters and results of a function.
#[derive(Clone, Copy)]
pub(super) struct Function(pub(super) &'static str, &'static [Number], &'static [Number]);

impl Function {
    fn has_type(self, found: &FuncType) -> bool {
        let same = |expected: &[Number], found: &mut dyn ExactSizeIterator<Item = ValType>| {
            expected.len() == found.len() && expected.iter().zip(found).all(|(one, other)| one.is(&other))
        };
        same(self.1, &mut found.params()) && same(self.2, &mut found.results())
    }

    /// Returns `true` if the module exports this function.
    ///
    /// # Errors
    /// The export is not a function of this type.
    pub(super) fn is_exported(self, module: &Module) -> Result<bool, Failure> {
        match module.get_export(self.0) {
            None => Ok(false),
            Some(ExternType::Func(found)) if self.has_type(&found) => Ok(true),
            Some(_) => Err(bad(format!("the export {:?} is not a function {self}", self.0))),
        }
    }

    pub(super) fn require(self, module: &Module) -> Result<(), Failure> {
        if self.is_exported(module)? {
            return Ok(());
        }
        Err(bad(format!("the module does not export the function {:?}, {self}", self.0)))
    }
}

impl std::fmt::Display for Function {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let list = |numbers: &[Number]| numbers.iter().map(|one| one.name()).collect::<Vec<_>>().join(", ");
        write!(f, "({})", list(self.1))?;
        if self.2.is_empty() { Ok(()) } else { write!(f, " -> {}", list(self.2)) }
    }
}

/// Failure of a module that is not a program.
pub(super) fn bad(message: impl Into<String>) -> Failure {
    Failure::new(Status::BadModule, message)
}

/// Fails if the module imports something that the engine does not have.
pub(super) fn check_imports(module: &Module) -> Result<(), Failure> {
    for import in module.imports() {
        let known = IMPORTS.iter().find(|known| import.module() == IMPORT_MODULE && import.name() == known.0);
        let Some(known) = known else {
            let names = IMPORTS.map(|known| known.0).join(", ");
            return Err(bad(format!(
                "the module imports {:?} of {:?}, which the engine does not have; a program can import {names} of \
                 {IMPORT_MODULE:?}",
                import.name(),
                import.module()
            )));
        };
        if !matches!(import.ty(), ExternType::Func(found) if known.has_type(&found)) {
            return Err(bad(format!("the import {:?} is not a function {known}", known.0)));
        }
    }
    Ok(())
}

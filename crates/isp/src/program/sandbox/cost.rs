//! Bound of the time to compile a module.
//!
//! A compilation cannot be interrupted, and its time grows with the square of the length of a function, with the square
//! of the number of its loops, and with the number of its blocks, each times the number of variables: each block can have
//! an own value of each variable. A function of 1 MiB takes minutes, and so do 4000 loops in 30 KB. So the sums of these
//! products are limited, and with them the numbers of functions and of their variables. Measured with wasmtime 48 on
//! functions of additions, conditions, loops and loads: 1 to 10 s at each limit. A module of 940 KB with the crates regex
//! and `serde_json` has up to 0.85 of a limit, and takes 0.8 s.

use super::abi::bad;
use crate::outcome::Failure;
use std::ops::Range;
use wasmparser::{BlockType, CompositeInnerType, FunctionBody, Operator, Parser, Payload, SubType, TypeRef};

/// Largest sum of the squares of the lengths of functions: that of one function of 64 KiB.
const SQUARES_MAX: u64 = 1 << 32;
/// Largest sum of the numbers of blocks times those of variables.
const BLOCK_VARIABLES_MAX: u64 = 1_000_000;
/// Largest sum of the squares of the numbers of loops times those of variables, and [`LOOP_VARIABLES`] more: that of one
/// function with 1000 loops.
const LOOP_VARIABLES_MAX: u64 = 500_000_000;
/// Number of variables that take as long to compile as a loop itself.
const LOOP_VARIABLES: u64 = 500;
/// Largest sum of the numbers of parameters and results of calls.
const PASSED_MAX: u64 = 500_000;
/// Largest sum of the numbers of parameters and results of functions.
const SIGNATURES_MAX: u64 = 100_000;
/// Number of parameters of a type of function, and of results, at most.
const SIGNATURE_MAX: usize = 100;
/// Number of functions, at most.
const FUNCTIONS_MAX: u32 = 4000;
/// Number of the variables of a function, at most.
const VARIABLES_MAX: u64 = 1000;

/// Fails if the compilation of a module could take long. Other faults are left to the compiler.
pub(super) fn check(module: &[u8]) -> Result<(), Failure> {
    let mut sums = Sums::default();
    let mut signatures = Signatures::default();
    let mut bodies = 0;
    for payload in Parser::new(0).parse_all(module) {
        match payload.map_err(|error| unreadable(&error))? {
            Payload::TypeSection(section) => {
                for group in section {
                    group
                        .map_err(|error| unreadable(&error))?
                        .types()
                        .try_for_each(|kind| signatures.add(kind))?;
                }
            }
            Payload::ImportSection(section) => {
                for import in section.into_imports() {
                    if let TypeRef::Func(number) = import.map_err(|error| unreadable(&error))?.ty {
                        signatures.functions.push(number);
                        signatures.imports += 1;
                    }
                }
            }
            Payload::FunctionSection(section) => {
                for number in section {
                    signatures.functions.push(number.map_err(|error| unreadable(&error))?);
                }
            }
            Payload::CodeSectionStart { count, .. } if count > FUNCTIONS_MAX => {
                return Err(bad(format!(
                    "the module has {count} functions; at most {FUNCTIONS_MAX} are allowed"
                )));
            }
            Payload::CodeSectionEntry(body) => {
                let (parameters, results) = signatures.of_function(signatures.imports + bodies);
                bodies += 1;
                let function =
                    Function::read(&body, parameters, &signatures).map_err(|error| unreadable(&error))?;
                sums.add(&function, parameters + results)?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Numbers of parameters and results.
#[derive(Default)]
struct Signatures {
    types: Vec<(u64, u64)>,
    /// The type of each function, with those that are imported first.
    functions: Vec<u32>,
    imports: u32,
}

impl Signatures {
    fn add(&mut self, kind: &SubType) -> Result<(), Failure> {
        let (parameters, results) = match &kind.composite_type.inner {
            CompositeInnerType::Func(function) => (function.params().len(), function.results().len()),
            _ => (0, 0),
        };
        if parameters.max(results) > SIGNATURE_MAX {
            return Err(bad(format!(
                "type {} of the module has {parameters} parameters and {results} results; at most {SIGNATURE_MAX} of \
                 each are allowed",
                self.types.len()
            )));
        }
        self.types.push((parameters as u64, results as u64));
        Ok(())
    }

    fn of_type(&self, number: u32) -> (u64, u64) {
        self.types.get(number as usize).copied().unwrap_or_default()
    }

    fn of_function(&self, number: u32) -> (u64, u64) {
        self.functions.get(number as usize).map_or((0, 0), |kind| self.of_type(*kind))
    }
}

/// What the time to compile a function depends on.
struct Function {
    range: Range<usize>,
    /// Variables, and among them parameters.
    variables: u64,
    /// Blocks of instructions without a jump, and among them loops.
    blocks: u64,
    loops: u64,
    /// Largest number of values that a block takes and returns. They are as variables.
    values: u64,
    /// Number of values that calls pass and return.
    passed: u64,
}

impl Function {
    fn read(body: &FunctionBody<'_>, parameters: u64, signatures: &Signatures) -> wasmparser::Result<Self> {
        let mut function =
            Self { range: body.range(), variables: parameters, blocks: 1, loops: 0, values: 0, passed: 0 };
        let mut locals = body.get_locals_reader()?;
        for _ in 0..locals.get_count() {
            function.variables += u64::from(locals.read()?.0);
        }
        let mut operators = body.get_operators_reader()?;
        while !operators.eof() {
            let operator = operators.read()?;
            function.blocks += match &operator {
                Operator::Block { .. }
                | Operator::Loop { .. }
                | Operator::If { .. }
                | Operator::Else
                | Operator::BrIf { .. } => 1,
                Operator::BrTable { targets } => u64::from(targets.len()),
                _ => 0,
            };
            let (takes, returns) = match operator {
                Operator::Call { function_index } => signatures.of_function(function_index),
                Operator::CallIndirect { type_index, .. } => signatures.of_type(type_index),
                _ => (0, 0),
            };
            function.passed += takes + returns;
            match operator {
                Operator::Loop { blockty } => {
                    function.loops += 1;
                    function.values = function.values.max(values_of(blockty, signatures));
                }
                Operator::Block { blockty } | Operator::If { blockty } => {
                    function.values = function.values.max(values_of(blockty, signatures));
                }
                _ => {}
            }
        }
        Ok(function)
    }
}

/// Returns the number of values that a block takes and returns.
fn values_of(kind: BlockType, signatures: &Signatures) -> u64 {
    match kind {
        BlockType::Empty => 0,
        BlockType::Type(_) => 1,
        BlockType::FuncType(number) => {
            let (takes, returns) = signatures.of_type(number);
            takes + returns
        }
    }
}

/// Sums over the functions of a module.
#[derive(Default)]
struct Sums {
    squares: u64,
    block_variables: u64,
    loop_variables: u64,
    passed: u64,
    signatures: u64,
}

impl Sums {
    /// Adds a function, and fails if a sum exceeds its limit.
    fn add(&mut self, function: &Function, signature: u64) -> Result<(), Failure> {
        let Function { range, variables, blocks, loops, values, passed } = function;
        if *variables > VARIABLES_MAX {
            return Err(bad(format!(
                "the function at byte {} of the module has {variables} variables; at most {VARIABLES_MAX} are allowed",
                range.start
            )));
        }
        let len = range.len() as u64;
        let all = variables + values;
        for (sum, product, max, what, this, cure) in [
            (
                &mut self.squares,
                len.saturating_mul(len),
                SQUARES_MAX,
                "squares of the lengths",
                format!("{len} bytes"),
                "divide long functions, or compile for size and without optimization at link time",
            ),
            (
                &mut self.loop_variables,
                loops.saturating_mul(*loops).saturating_mul(all + LOOP_VARIABLES),
                LOOP_VARIABLES_MAX,
                "squares of the numbers of loops times variables and 500",
                format!("{loops} loops and {all} variables and values of blocks"),
                "divide the function",
            ),
            (
                &mut self.block_variables,
                blocks.saturating_mul(all),
                BLOCK_VARIABLES_MAX,
                "numbers of blocks times variables",
                format!("{blocks} blocks and {all} variables and values of blocks"),
                "divide the function",
            ),
            (
                &mut self.passed,
                *passed,
                PASSED_MAX,
                "numbers of parameters and results of calls",
                format!("{passed} of them"),
                "pass values in memory",
            ),
            (
                &mut self.signatures,
                signature,
                SIGNATURES_MAX,
                "numbers of parameters and results",
                format!("{signature} of them"),
                "pass values in memory",
            ),
        ] {
            *sum = sum.saturating_add(product);
            if *sum > max {
                return Err(bad(format!(
                    "the module would take long to compile: the sum of the {what} of its functions exceeds {max} at \
                     byte {}, in a function with {this}; {cure}",
                    range.start
                )));
            }
        }
        Ok(())
    }
}

fn unreadable(error: &wasmparser::BinaryReaderError) -> Failure {
    bad(format!("the file is not a valid module of WebAssembly: {error}"))
}

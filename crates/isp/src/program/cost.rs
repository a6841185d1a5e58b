//! Bound of the time to compile a module.
//!
//! A compilation cannot be interrupted, and its time grows with the square of the length of a function, with the square
//! of the number of its loops, and with the number of its blocks, each times the number of variables: each block can have
//! an own value of each variable. A function of 1 MiB takes minutes, and so do 4000 loops in 30 KB. So the sums of these
//! products are limited, and with them the numbers of functions and of their variables. Measured with wasmtime 48 on
//! functions of additions, conditions, loops and loads: 1 to 8 s at each limit. A module of 940 KB with the crates regex
//! and `serde_json` has up to 0.85 of a limit, and takes 0.8 s.

use super::abi::bad;
use crate::outcome::Failure;
use std::ops::Range;
use wasmparser::{BlockType, CompositeInnerType, FunctionBody, Operator, Parser, Payload};

/// Largest sum of the squares of the lengths of functions: that of one function of 64 KiB.
const SQUARES_MAX: u64 = 1 << 32;
/// Largest sum of the numbers of blocks times those of variables.
const BLOCK_VARIABLES_MAX: u64 = 1_000_000;
/// Largest sum of the squares of the numbers of loops times those of variables, and [`LOOP_VARIABLES`] more: that of one
/// function with 1000 loops.
const LOOP_VARIABLES_MAX: u64 = 500_000_000;
/// Number of variables that take as long to compile as a loop itself.
const LOOP_VARIABLES: u64 = 500;
/// Number of functions, at most.
const FUNCTIONS_MAX: u32 = 4000;
/// Number of the variables of a function, at most.
const VARIABLES_MAX: u64 = 1000;

/// Fails if the compilation of a module could take long. Other faults are left to the compiler.
pub(super) fn check(module: &[u8]) -> Result<(), Failure> {
    let mut sums = Sums::default();
    // Parameters of each type, and those of the functions in their order.
    let (mut types, mut parameters) = (Vec::new(), Vec::new().into_iter());
    for payload in Parser::new(0).parse_all(module) {
        match payload.map_err(|error| unreadable(&error))? {
            Payload::TypeSection(section) => {
                for group in section {
                    types.extend(group.map_err(|error| unreadable(&error))?.types().map(|kind| {
                        match &kind.composite_type.inner {
                            CompositeInnerType::Func(function) => {
                                (function.params().len() as u64, function.results().len() as u64)
                            }
                            _ => (0, 0),
                        }
                    }));
                }
            }
            Payload::FunctionSection(section) => {
                let numbers = section.into_iter().collect::<Result<Vec<u32>, _>>();
                let numbers = numbers.map_err(|error| unreadable(&error))?;
                let all = numbers.iter().map(|number| types.get(*number as usize).map_or(0, |kind| kind.0));
                parameters = all.collect::<Vec<u64>>().into_iter();
            }
            Payload::CodeSectionStart { count, .. } if count > FUNCTIONS_MAX => {
                return Err(bad(format!(
                    "the module has {count} functions; at most {FUNCTIONS_MAX} are allowed"
                )));
            }
            Payload::CodeSectionEntry(body) => {
                let function = Function::read(&body, parameters.next().unwrap_or(0), &types)
                    .map_err(|error| unreadable(&error))?;
                sums.add(&function)?;
            }
            _ => {}
        }
    }
    Ok(())
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
}

impl Function {
    fn read(body: &FunctionBody<'_>, parameters: u64, types: &[(u64, u64)]) -> wasmparser::Result<Self> {
        let mut function =
            Self { range: body.range(), variables: parameters, blocks: 1, loops: 0, values: 0 };
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
            match operator {
                Operator::Loop { blockty } => {
                    function.loops += 1;
                    function.values = function.values.max(values_of(blockty, types));
                }
                Operator::Block { blockty } | Operator::If { blockty } => {
                    function.values = function.values.max(values_of(blockty, types));
                }
                _ => {}
            }
        }
        Ok(function)
    }
}

/// Returns the number of values that a block takes and returns.
fn values_of(kind: BlockType, types: &[(u64, u64)]) -> u64 {
    match kind {
        BlockType::Empty => 0,
        BlockType::Type(_) => 1,
        BlockType::FuncType(number) => {
            types.get(number as usize).map_or(0, |(takes, returns)| takes + returns)
        }
    }
}

/// Sums over the functions of a module.
#[derive(Default)]
struct Sums {
    squares: u64,
    block_variables: u64,
    loop_variables: u64,
}

impl Sums {
    /// Adds a function, and fails if a sum exceeds its limit.
    fn add(&mut self, function: &Function) -> Result<(), Failure> {
        let Function { range, variables, blocks, loops, values } = function;
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
                "divide long functions",
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

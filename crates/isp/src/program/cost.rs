//! Bound of the time to compile a module.
//!
//! A compilation cannot be interrupted, and its time grows with the square of the length of a function, and of the
//! number of loops inside of one another: a function of 1 MiB takes minutes, and so do 10 000 loops in 30 KB. So the
//! sums of these squares are limited, and with them the numbers of functions and of their variables. Measured with
//! wasmtime 48 on functions of additions, conditions, loops and loads: 1 to 4 s at each limit.

use super::abi::bad;
use crate::outcome::Failure;
use wasmparser::{FunctionBody, Operator, Parser, Payload};

/// Largest sum of the squares of the lengths of functions: that of one function of 46 KiB, or of 8 MiB in
/// functions of 256 bytes.
const SQUARES_MAX: u64 = 1 << 31;
/// Largest sum of the squares of the depths of loops of functions: that of one function with 1000 loops inside of one
/// another.
const LOOP_SQUARES_MAX: u64 = 1_000_000;
/// Number of functions, at most.
const FUNCTIONS_MAX: u32 = 4000;
/// Number of the variables of a function, at most.
const VARIABLES_MAX: u64 = 1000;

/// Fails if the compilation of a module could take long. Other faults are left to the compiler.
pub(super) fn check(module: &[u8]) -> Result<(), Failure> {
    let (mut squares, mut loop_squares) = (0_u64, 0_u64);
    for payload in Parser::new(0).parse_all(module) {
        match payload
            .map_err(|error| bad(format!("the file is not a valid module of WebAssembly: {error}")))?
        {
            Payload::CodeSectionStart { count, .. } if count > FUNCTIONS_MAX => {
                return Err(bad(format!(
                    "the module has {count} functions; at most {FUNCTIONS_MAX} are allowed"
                )));
            }
            Payload::CodeSectionEntry(body) => {
                let range = body.range();
                let len = range.len() as u64;
                squares = squares.saturating_add(len.saturating_mul(len));
                if squares > SQUARES_MAX {
                    return Err(bad(format!(
                        "the module would take long to compile: the sum of the squares of the lengths of its \
                         functions exceeds {SQUARES_MAX} at byte {}, in a function of {len} bytes; divide long \
                         functions",
                        range.start
                    )));
                }
                let depth = depth_of_loops(&body)?;
                loop_squares += depth * depth;
                if loop_squares > LOOP_SQUARES_MAX {
                    return Err(bad(format!(
                        "the module would take long to compile: the sum of the squares of the depths of loops of its \
                         functions exceeds {LOOP_SQUARES_MAX} at byte {}, in a function with {depth} loops inside of \
                         one another; divide the function",
                        range.start
                    )));
                }
                let mut locals = body.get_locals_reader().map_err(|error| unreadable(&error))?;
                let mut variables = 0_u64;
                for _ in 0..locals.get_count() {
                    variables += u64::from(locals.read().map_err(|error| unreadable(&error))?.0);
                }
                if variables > VARIABLES_MAX {
                    return Err(bad(format!(
                        "the function at byte {} of the module has {variables} variables; at most {VARIABLES_MAX} \
                         are allowed",
                        range.start
                    )));
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Returns the largest number of loops of a function that are inside of one another.
fn depth_of_loops(body: &FunctionBody<'_>) -> Result<u64, Failure> {
    let mut operators = body.get_operators_reader().map_err(|error| unreadable(&error))?;
    // For each block that is open: whether it is a loop.
    let mut open = Vec::new();
    let (mut depth, mut max) = (0, 0);
    while !operators.eof() {
        match operators.read().map_err(|error| unreadable(&error))? {
            Operator::Loop { .. } => {
                open.push(true);
                depth += 1;
                max = depth.max(max);
            }
            Operator::Block { .. } | Operator::If { .. } | Operator::TryTable { .. } => open.push(false),
            Operator::End if open.pop() == Some(true) => depth -= 1,
            _ => {}
        }
    }
    Ok(max)
}

fn unreadable(error: &wasmparser::BinaryReaderError) -> Failure {
    bad(format!("the file is not a valid module of WebAssembly: {error}"))
}

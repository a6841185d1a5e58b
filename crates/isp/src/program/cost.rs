//! Bound of the time to compile a module.
//!
//! A compilation cannot be interrupted, and its time grows with the square of the length of a function: a
//! function of 1 MiB takes minutes. So the sum of these squares is limited, and with it the numbers of
//! functions and of their variables. Measured with wasmtime 48 on functions of additions, conditions, loops
//! and loads: 1 to 4 s at the limit.

use super::abi::bad;
use crate::outcome::Failure;
use wasmparser::{Parser, Payload};

/// Largest sum of the squares of the lengths of functions: that of one function of 46 KiB, or of 8 MiB in
/// functions of 256 bytes.
const SQUARES_MAX: u64 = 1 << 31;
/// Number of functions, at most.
const FUNCTIONS_MAX: u32 = 10_000;
/// Number of the variables of a function, at most.
const VARIABLES_MAX: u64 = 1000;

/// Fails if the compilation of a module could take long. Other faults are left to the compiler.
pub(super) fn check(module: &[u8]) -> Result<(), Failure> {
    let mut squares = 0_u64;
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

fn unreadable(error: &wasmparser::BinaryReaderError) -> Failure {
    bad(format!("the file is not a valid module of WebAssembly: {error}"))
}

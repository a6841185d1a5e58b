//! Sizing of a stack for a volume of a given size.

use crate::error::{Error, Result};
use frit_stack::Stack;

/// Returns the stack with media of the sizes that a volume of `bytes` needs, and with that capacity:
/// [`frit_stack::sized`]. `load` reads the stack with overrides added to the given ones.
///
/// # Errors
/// The stack is invalid, or cannot have this size.
pub fn sized_stack(bytes: u64, load: impl Fn(&[String]) -> frit_stack::Result<Stack>) -> Result<Stack> {
    if bytes == 0 {
        return Err(Error::Unsupported {
            requirement: "a size above zero: --size 0 leaves no space for data".into(),
        });
    }
    Ok(frit_stack::sized(bytes, load)?)
}

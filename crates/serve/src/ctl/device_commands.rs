//! Parts that the commands of devices share.

use super::wire::{CACHE_BYTES_MAX, RefusalKind, Refused, from_hex};
use crate::device::Device;

/// Returns the refusal of an invalid command.
pub(super) fn invalid(what: String) -> Refused {
    Refused::new(RefusalKind::Invalid, what)
}

/// Decodes the contents of a command, which are hexadecimal digits.
///
/// # Errors
/// Other characters; more than [`CACHE_BYTES_MAX`] bytes.
pub(super) fn contents_of(data: &str) -> Result<Vec<u8>, Refused> {
    let data = from_hex(data).map_err(invalid)?;
    if data.len() > CACHE_BYTES_MAX {
        let what = format!("{} bytes: a command writes at most {CACHE_BYTES_MAX} bytes", data.len());
        return Err(invalid(what));
    }
    Ok(data)
}

/// Fails if a device accepts no changes.
pub(super) fn check_writable(device: &Device) -> Result<(), Refused> {
    match device.read_only() {
        Some(why) => Err(Refused::new(RefusalKind::Failed, format!("read-only: {why}"))),
        None => Ok(()),
    }
}

//! Reads and writes of bytes by control: of the volume, or of a medium by physical address.

use super::device_commands::check_writable;
use super::wire::{PEEK_BYTES_MAX, POKE_BYTES_MAX, RawMedium, RefusalKind, Refused, from_hex};
use crate::backend::ReplyTime;
use crate::device::{Device, Failure};
use frit_core::{Error, Hints};
use std::time::Instant;

/// Reads bytes of a device: of its address space between requests of other clients, or of a medium
/// for a caller that has one of these names.
///
/// # Errors
/// More than [`PEEK_BYTES_MAX`] bytes; an address outside; damage; a caller without the right.
pub fn peek(
    device: &Device,
    callers: &[String],
    at: u64,
    len: u32,
    raw: Option<RawMedium>,
) -> Result<Vec<u8>, Refused> {
    if len == 0 || len > PEEK_BYTES_MAX {
        let what = format!("{len} bytes: a request reads 1 to {PEEK_BYTES_MAX} bytes");
        return Err(Refused::new(RefusalKind::Invalid, what));
    }
    let mut bytes = vec![0; len as usize];
    match raw {
        None => wait(device, device.lock().read(at, &mut bytes).map_err(failed)?),
        Some(medium) => by_name(callers, |caller| {
            device
                .with(|b| b.raw_read(caller, medium.into(), at, &mut bytes))
                .map_err(failed)?
                .map_err(refused)
        })?,
    }
    Ok(bytes)
}

/// Writes bytes, given as hexadecimal digits, and flushes. Returns their number.
///
/// # Errors
/// As for [`peek`], with at most [`POKE_BYTES_MAX`] bytes; a device that refuses writes; a physical
/// address in NAND or in an area of the layer.
pub fn poke(
    device: &Device,
    callers: &[String],
    at: u64,
    data: &str,
    raw: Option<RawMedium>,
) -> Result<u64, Refused> {
    let invalid = |what: String| Refused::new(RefusalKind::Invalid, what);
    let data = from_hex(data).map_err(invalid)?;
    if data.len() > POKE_BYTES_MAX {
        return Err(invalid(format!(
            "{} bytes: a request writes at most {POKE_BYTES_MAX} bytes",
            data.len()
        )));
    }
    match raw {
        None => {
            let written = device.lock().write(at, &data, Hints::FUA).map_err(failed)?;
            wait(device, written);
        }
        Some(RawMedium::Nand) => {
            return Err(invalid(
                "only PCM is written by physical address: NAND has to be erased first".into(),
            ));
        }
        Some(RawMedium::Pcm) => {
            check_writable(device)?;
            by_name(callers, |caller| {
                device.with(|b| b.raw_write(caller, at, &data)).map_err(failed)?.map_err(refused)
            })?;
        }
    }
    let flushed = device.flush_for_fua().map_err(failed)?;
    wait(device, flushed);
    Ok(data.len() as u64)
}

/// Tries an access under each name of the caller, until one has the right.
fn by_name(callers: &[String], mut access: impl FnMut(&str) -> Result<(), Refused>) -> Result<(), Refused> {
    let mut denied = Refused::new(RefusalKind::Denied, "the caller has no name");
    for caller in callers {
        match access(caller) {
            Err(refused) if refused.kind == RefusalKind::Denied => denied = refused,
            done => return done,
        }
    }
    Err(denied)
}

/// Waits until the reply may be sent, on a paced device.
pub(super) fn wait(device: &Device, done: ReplyTime) {
    if let Some(due) = done.not_before {
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        device.replied(due);
    }
}

pub(super) fn failed(failure: Failure) -> Refused {
    match failure {
        Failure::Backend(e) => refused(e),
        other => Refused::new(RefusalKind::Failed, other.to_string()),
    }
}

#[allow(clippy::needless_pass_by_value, reason = "for map_err")]
pub(super) fn refused(error: Error) -> Refused {
    let kind = match error {
        Error::Protected { .. } => RefusalKind::Denied,
        Error::Param { .. } | Error::OutOfRange { .. } => RefusalKind::Invalid,
        _ => RefusalKind::Failed,
    };
    let fault = match error {
        Error::Zone { fault, .. } => Some(super::zoned_commands::fault(fault)),
        _ => None,
    };
    Refused { fault, ..Refused::new(kind, error.to_string()) }
}

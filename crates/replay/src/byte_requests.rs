//! Requests that begin or end inside a sector: they go to the byte interface of the layer.

use crate::host::pieces;
use crate::verify::Verifier;
use frit_core::{ByteAccess, Error, ReadTarget, Result, Sink, StackDevice, WriteData};
use frit_trace::Request;

/// Returns the byte interface of a layer.
///
/// # Errors
/// The layer serves whole sectors only.
fn byte_access<'a>(layer: &'a mut dyn StackDevice, r: &Request) -> Result<&'a mut dyn ByteAccess> {
    let name = layer.info().name;
    layer.byte_access().ok_or_else(|| {
        let why = format!(
            "the layer {name} serves whole sectors of 512 bytes only; layers that serve bytes: {}; \
             --whole-sectors widens such requests to whole sectors",
            frit_stack::layers::with_byte_access().join(", ")
        );
        Error::param("request", format!("{} bytes at byte {}", r.bytes(), r.offset()), why)
    })
}

/// Reads the bytes of a request, and checks them if there is a verifier.
pub(crate) fn read(
    layer: &mut dyn StackDevice,
    mut verifier: Option<&mut Verifier>,
    sink: &mut Sink,
    r: &Request,
) -> Result<()> {
    let access = byte_access(layer, r)?;
    for (at, len) in pieces(r.offset(), r.bytes()) {
        match &mut verifier {
            Some(v) => v.read_bytes(access, sink, at, len)?,
            None => access.read_bytes(sink, at, ReadTarget::Len(len))?,
        }
    }
    Ok(())
}

/// Writes the bytes of a request, with generated contents if there is a verifier.
pub(crate) fn write(
    layer: &mut dyn StackDevice,
    mut verifier: Option<&mut Verifier>,
    sink: &mut Sink,
    r: &Request,
) -> Result<()> {
    let access = byte_access(layer, r)?;
    for (at, len) in pieces(r.offset(), r.bytes()) {
        match &mut verifier {
            Some(v) => v.write_bytes(access, sink, at, len, r.hints)?,
            None => access.write_bytes(sink, at, WriteData::Len(len), r.hints)?,
        }
    }
    Ok(())
}

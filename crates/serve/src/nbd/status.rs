//! BLOCK_STATUS: a range's extents as each context tells them.

use super::handshake::Context;
use crate::backend::medium_number;
use crate::device::{Access, Failure};
use frit_core::MediumKind;

/// The most extents that one reply tells of a context; the client asks again for the rest.
const EXTENTS_MAX: usize = 2048;

/// Bytes of a range that are looked at before others have their turn.
const SLICE: u64 = 16 << 20;

/// `base:allocation`: not allocated.
const HOLE: u32 = 1;
/// `base:allocation`: reads as zeros.
const ZERO: u32 = 2;

/// Extents of one context: length in bytes and flags, neighbours with the same flags joined.
#[derive(Debug)]
pub(super) struct Told {
    context: Context,
    pub(super) extents: Vec<(u32, u32)>,
    most: usize,
    full: bool,
}

impl Told {
    fn new(context: Context, one: bool) -> Told {
        Told { context, extents: Vec::new(), most: if one { 1 } else { EXTENTS_MAX }, full: false }
    }

    fn add(&mut self, bytes: u64, place: Option<MediumKind>) {
        if self.full {
            return;
        }
        let flags = match self.context {
            Context::Allocation if place.is_none() => HOLE | ZERO,
            Context::Allocation => 0,
            Context::Medium => medium_number(place),
        };
        // Requests are shorter than 4 GiB, and so are their parts.
        let bytes = bytes as u32;
        let n = self.extents.len();
        match self.extents.last_mut() {
            Some(last) if last.1 == flags => last.0 += bytes,
            _ if n == self.most => self.full = true,
            _ => self.extents.push((bytes, flags)),
        }
    }
}

/// Looks at a range until each context has told enough.
pub(super) fn look(
    access: &mut Access<'_>,
    (at, len): (u64, u32),
    one: bool,
    contexts: &[Context],
) -> Result<Vec<Told>, Failure> {
    let mut told: Vec<Told> = contexts.iter().map(|&c| Told::new(c, one)).collect();
    let (mut at, end) = (at, at + u64::from(len));
    while at < end && !told.iter().all(|t| t.full) {
        let part = SLICE.min(end - at);
        access.extents(at, part, &mut |bytes, place| {
            for t in &mut told {
                t.add(bytes, place);
            }
        })?;
        access.yield_to_others();
        at += part;
    }
    Ok(told)
}

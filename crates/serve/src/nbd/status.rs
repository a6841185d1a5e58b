//! Execution of BLOCK_STATUS: extents of a range in each metadata context.

use super::handshake::Context;
use crate::backend::medium_number;
use crate::device::{DeviceGuard, Failure};
use frit_core::MediumKind;
use std::ops::Range;

/// Maximum number of extents per context in one reply. The client requests the rest separately.
const EXTENTS_MAX: usize = 2048;

/// Number of bytes whose extents are read under one hold of the lock.
const SLICE: u64 = 16 << 20;

/// `base:allocation`: not allocated.
const HOLE: u32 = 1;
/// `base:allocation`: reads as zeros.
const ZERO: u32 = 2;

/// Extents of one context: length in bytes and flags. Adjacent extents with equal flags are merged.
#[derive(Debug)]
pub(super) struct ContextExtents {
    context: Context,
    pub(super) extents: Vec<(u32, u32)>,
    most: usize,
    full: bool,
}

impl ContextExtents {
    fn new(context: Context, one: bool) -> ContextExtents {
        ContextExtents { context, extents: Vec::new(), most: if one { 1 } else { EXTENTS_MAX }, full: false }
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
        // Requests are shorter than 4 GiB, and so are their extents.
        let bytes = bytes as u32;
        let n = self.extents.len();
        match self.extents.last_mut() {
            Some(last) if last.1 == flags => last.0 += bytes,
            _ if n == self.most => self.full = true,
            _ => self.extents.push((bytes, flags)),
        }
    }
}

/// Returns the extents of a range in each context. It stops when every context has reached its
/// maximum number of extents.
pub(super) fn block_status(
    access: &mut DeviceGuard<'_>,
    range: Range<u64>,
    one: bool,
    contexts: &[Context],
) -> Result<Vec<ContextExtents>, Failure> {
    let mut replies: Vec<ContextExtents> = contexts.iter().map(|&c| ContextExtents::new(c, one)).collect();
    let Range { start: mut at, end } = range;
    while at < end && !replies.iter().all(|t| t.full) {
        let part = SLICE.min(end - at);
        access.extents(at, part, &mut |bytes, place| {
            for t in &mut replies {
                t.add(bytes, place);
            }
        })?;
        access.yield_to_others();
        at += part;
    }
    Ok(replies)
}

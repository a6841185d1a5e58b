//! Views of whole blocks of a size.

use super::{Bytes, Each, View};
use crate::outcome::Failure;
use std::ops::Range;

/// Scans the blocks of `part`. The part begins with a block, and ends with one, or with the range.
pub(super) fn scan(
    bytes: &mut dyn Bytes,
    part: &Range<u64>,
    size: usize,
    each: &mut Each<'_>,
) -> Result<(), Failure> {
    // Beginning of a block whose end has not been read.
    let mut carry: Vec<u8> = Vec::new();
    let mut stopped = false;
    bytes.read(part.clone(), &mut |mut at, mut piece| {
        stopped = true;
        if !carry.is_empty() {
            let (missing, rest) = piece.split_at(piece.len().min(size - carry.len()));
            let carry_at = at - carry.len() as u64;
            carry.extend_from_slice(missing);
            (at, piece) = (at + missing.len() as u64, rest);
            if carry.len() == size {
                if !each(View { at: carry_at, bytes: &carry, starts: size })? {
                    return Ok(false);
                }
                carry.clear();
            }
        }
        let whole = piece.len() / size * size;
        if whole > 0 && !each(View { at, bytes: &piece[..whole], starts: whole })? {
            return Ok(false);
        }
        carry.extend_from_slice(&piece[whole..]);
        stopped = false;
        Ok(true)
    })?;
    if !stopped && !carry.is_empty() {
        each(View { at: part.end - carry.len() as u64, bytes: &carry, starts: carry.len() })?;
    }
    Ok(())
}

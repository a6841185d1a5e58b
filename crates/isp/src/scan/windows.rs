//! Views of positions: each has the bytes that an occurrence at its last position needs.

use super::{Bytes, Each, View};
use crate::outcome::Failure;
use std::ops::Range;

/// Scans the positions of `part`, with up to `overlap` bytes of `range` behind them.
pub(super) fn scan(
    bytes: &mut dyn Bytes,
    part: &Range<u64>,
    range: &Range<u64>,
    overlap: usize,
    each: &mut Each<'_>,
) -> Result<(), Failure> {
    // The last bytes that were read. Their positions belong to no view yet.
    let mut tail = Vec::new();
    let mut stopped = false;
    let end = part.end.saturating_add(overlap as u64).min(range.end);
    bytes.read(part.start..end, &mut |at, piece| {
        let tail_at = at - tail.len() as u64;
        let go_on = if piece.len() >= overlap {
            let seam_starts = tail.len();
            tail.extend_from_slice(&piece[..overlap]);
            let starts = piece.len() - overlap;
            let go_on = each(View { at: tail_at, bytes: &tail, starts: seam_starts })?
                && each(View { at, bytes: piece, starts })?;
            tail.clear();
            tail.extend_from_slice(&piece[starts..]);
            go_on
        } else {
            tail.extend_from_slice(piece);
            let starts = tail.len().saturating_sub(overlap);
            let go_on = starts == 0 || each(View { at: tail_at, bytes: &tail, starts })?;
            tail.drain(..starts);
            go_on
        };
        stopped = !go_on;
        Ok(go_on)
    })?;
    let tail_at = end - tail.len() as u64;
    if !stopped && tail_at < part.end {
        each(View { at: tail_at, bytes: &tail, starts: (part.end - tail_at) as usize })?;
    }
    Ok(())
}

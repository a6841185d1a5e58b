//! Reduction of a failing list of items to a smaller one that still fails.

use std::time::Instant;

/// Returns a small subset of `count` items that still fails. It removes halves first and single
/// items last, until the time `end`. At least one item remains.
pub(crate) fn minimize_set(count: usize, end: Instant, fails: &mut dyn FnMut(&[u32]) -> bool) -> Vec<u32> {
    let mut keep: Vec<u32> = (0..count as u32).collect();
    let mut chunk = keep.len().div_ceil(2).max(1);
    while Instant::now() < end {
        let mut at = 0;
        while at < keep.len() && keep.len() > 1 && Instant::now() < end {
            let mut less = keep.clone();
            less.drain(at..(at + chunk).min(keep.len()));
            if !less.is_empty() && fails(&less) {
                keep = less;
            } else {
                at += chunk;
            }
        }
        if chunk == 1 {
            break;
        }
        chunk = chunk.div_ceil(2);
    }
    keep
}

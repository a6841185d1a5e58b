//! Residence of the blocks of a cache.

use frit_core::convert::{bounded_u32, to_usize};
use frit_core::visible::Residence;

/// Number of slices of the address space in the view.
const SLICES: u32 = 512;

/// Returns the residence of `blocks` blocks by slices of the address space. `present` passes on the blocks
/// that are in NAND; all others count in the field that `others` selects.
pub(crate) fn of_cached_blocks(
    blocks: u32,
    others: impl Fn(&mut Residence) -> &mut u32,
    present: impl FnOnce(&mut dyn FnMut(u32)),
) -> Vec<Residence> {
    let slices = SLICES.min(blocks);
    let border = |slice: u32| (u64::from(slice) * u64::from(blocks)).div_ceil(u64::from(slices));
    let mut all = vec![Residence::default(); to_usize(slices)];
    for (slice, row) in (0..).zip(&mut all) {
        *others(row) = bounded_u32(border(slice + 1) - border(slice));
    }
    present(&mut |block| {
        let slice = bounded_u32(u64::from(block) * u64::from(slices) / u64::from(blocks));
        let row = &mut all[to_usize(slice)];
        row.nand += 1;
        *others(row) -= 1;
    });
    all
}

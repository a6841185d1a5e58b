//! Capacity of a space.

use super::space::{Flash, SpareNeeds};
use frit_core::{Error, PAGE_NONE, Result};
use frit_media::{NandArray, NandGeometry};

/// Number of logical pages on NAND devices: as many as `capacity` bytes need, or, if that is 0, as
/// `over_provisioning` leaves. `survives` states that the space must survive crashes, for which
/// garbage collection needs one block more.
///
/// # Errors
/// Too few blocks, or a capacity that the devices do not hold.
pub(crate) fn page_capacity(
    nand: &NandArray,
    capacity: u64,
    over_provisioning: f64,
    survives: bool,
) -> Result<u32> {
    let usable = Flash::usable_pages_per_unit(nand, survives);
    pages_of(nand.geometry(), usable, capacity, over_provisioning, survives.into())
}

/// Number of logical pages on devices without bad blocks, as [`page_capacity`] for others. It does not
/// change when blocks go bad.
///
/// # Errors
/// As for [`page_capacity`].
pub(crate) fn nominal_capacity(
    g: &NandGeometry,
    capacity: u64,
    over_provisioning: f64,
    needs: impl Into<SpareNeeds>,
) -> Result<u32> {
    let needs = needs.into();
    let usable = Flash::nominal_pages_per_unit(g, needs);
    pages_of(g, usable, capacity, over_provisioning, needs)
}

fn pages_of(
    g: &NandGeometry,
    usable: u32,
    capacity: u64,
    over_provisioning: f64,
    needs: SpareNeeds,
) -> Result<u32> {
    // At least one block's worth of pages stays invalid, so that garbage collection always has a
    // victim that frees space.
    let most = u64::from(usable.saturating_sub(g.pages_per_block)) * u64::from(g.units());
    if most == 0 {
        let why = if needs.handles > 0 {
            "a NAND unit needs more good blocks: one for each stream beside those of other volumes"
        } else if needs.lasting {
            "a NAND unit needs at least 8 good blocks: 3 for cleaning, 3 open, 1 to gain and 1 for data"
        } else {
            "a NAND unit needs at least 7 good blocks: 2 for cleaning, 3 open, 1 to gain and 1 for data"
        };
        return Err(Error::param("blocks_per_plane", g.blocks_per_plane, why));
    }
    let pages = if capacity == 0 {
        let all = u64::from(usable) * u64::from(g.units());
        ((all as f64 / (1.0 + over_provisioning)) as u64).min(most)
    } else {
        capacity.div_ceil(u64::from(g.page_bytes))
    };
    if pages > most || pages == 0 || pages >= u64::from(PAGE_NONE) {
        let why = format!("the NAND of the stack holds at most {} bytes", most * u64::from(g.page_bytes));
        return Err(Error::param("capacity", capacity, why));
    }
    Ok(pages as u32)
}

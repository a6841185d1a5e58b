//! Checks of media that one layer uses as one: an array of NAND devices.

use crate::error::Problem;
use crate::layers::Interface;
use crate::media::{StackMedium, span_of};
use crate::stack::{Below, Layer};
use crate::tree::Table;
use frit_core::MediumKind;
use frit_media::MediumSpec;

/// Checks that the NAND media of each layer have equal pages, blocks and units.
pub(crate) fn check(layers: &[Layer], media: &[StackMedium], root: &Table, problems: &mut Vec<Problem>) {
    for layer in layers {
        let nand = layer.on.iter().filter_map(|&(role, below)| match below {
            Below::Medium(i) if role.needs == Interface::Medium(MediumKind::Nand) => Some(&media[i]),
            _ => None,
        });
        let mut nand = nand.collect::<Vec<_>>().into_iter();
        let Some(first) = nand.next() else { continue };
        problems.extend(nand.filter_map(|other| mismatch(&layer.name, first, other, root)));
    }
}

/// Returns the problem of a medium that cannot be in an array with the first one.
fn mismatch(layer: &str, first: &StackMedium, other: &StackMedium, root: &Table) -> Option<Problem> {
    let (MediumSpec::Nand(a), MediumSpec::Nand(b)) = (&first.spec, &other.spec) else { return None };
    let (key, all, one) = a.geometry.array_mismatch(&b.geometry)?;
    // The blocks of a unit are those of a plane, or of a die.
    let what = if key == "blocks_per_plane" { "blocks in a unit" } else { key };
    let table = root.table("media")?.table(&other.name)?;
    let (span, label) = span_of(table, key, "profile");
    let message =
        format!("`{layer}.nand`: '{}' has {one} {what}, and '{}' has {all}", other.name, first.name);
    let help = format!(
        "media of one `nand` list have equal page_bytes, pages_per_block and blocks in a unit; for others, \
         put a stripe above one hfsl for each medium (or set media.{}.{key})",
        other.name
    );
    Some(Problem::new(message).at(Some(span), label).help(help))
}

//! Sizing of a stack for a volume of a given size.

use crate::error::{Error, Result};
use frit_core::SECTOR_BYTES;
use frit_media::{MediumSpec, NandGeometry};
use frit_stack::layers::LayerKind;
use frit_stack::{Bytes, Stack, StackMedium};

/// Sizes of disks are multiples of this: a cache ignores a remainder that does not fill one of its
/// blocks.
const DISK_STEP: u64 = 4096;

/// Maximum number of block counts that are tried above the first estimate.
const TRIES: u32 = 64;

/// Sizes of memory chips are multiples of this, which all refresh and interleave units of the
/// profiles divide.
const CHIP_STEP: u64 = 1 << 20;

/// Returns the stack with as many NAND blocks, or as large a disk, as a volume of `bytes` needs,
/// and with that capacity. `load` reads the stack with overrides added to the given ones.
///
/// # Errors
/// The stack is invalid, or cannot be that large.
pub fn sized_stack(bytes: u64, load: impl Fn(&[String]) -> frit_stack::Result<Stack>) -> Result<Stack> {
    if bytes == 0 {
        return Err(Error::Unsupported {
            requirement: "a size above zero: --size 0 leaves no space for data".into(),
        });
    }
    let given = load(&[])?;
    if given.layers().len() > 1 {
        let requirement = format!(
            "a stack of one layer to choose sizes for: '{}' has {}. Give the sizes of the media in the stack",
            given.name(),
            given.layers().len()
        );
        return Err(Error::Unsupported { requirement });
    }
    let layer = &given.layer().name;
    if given.layer().kind == LayerKind::Ntl {
        return sized_ntl_stack(bytes, &given, load);
    }
    let nand: Vec<(&str, NandGeometry)> =
        given.all_on(given.layer(), "nand").into_iter().filter_map(nand_of).collect();
    if nand.is_empty() {
        let disk = medium_in_role(&given, "disk").ok_or_else(|| Error::Unsupported {
            requirement: "a NAND medium or a disk, whose size --size can choose".into(),
        })?;
        let whole = bytes.next_multiple_of(DISK_STEP);
        return Ok(load(&[format!("media.{disk}.bytes={whole}")])?);
    }
    // Capacity of one more block in every plane, in bytes.
    let row: u64 = nand.iter().map(|(_, g)| g.bytes() / u64::from(g.blocks_per_plane.max(1))).sum();
    let first = u32::try_from(bytes / row.max(1)).unwrap_or(u32::MAX).max(1);
    let pages = bytes.next_multiple_of(SECTOR_BYTES);
    let mut last = None;
    let mut blocks = first;
    for _ in 0..TRIES {
        let sets = |capacity| {
            let sizes = nand.iter().map(|(name, _)| format!("media.{name}.blocks_per_plane={blocks}"));
            sizes.chain([format!("{layer}.capacity={capacity}")]).collect::<Vec<_>>()
        };
        match load(&sets(0)).and_then(|s| s.build_untimed(&Bytes::None)) {
            Ok(built) if built.layer.info().sectors * SECTOR_BYTES >= pages => {
                return Ok(load(&sets(pages))?);
            }
            Ok(built) => {
                let has = built.layer.info().sectors * SECTOR_BYTES;
                // The block count grows in proportion to the missing capacity, and by at least one.
                let more = (f64::from(blocks) * (pages as f64 / has.max(1) as f64 - 1.0)) as u32;
                blocks = blocks.saturating_add(more.max(1));
                last = None;
            }
            Err(e) => {
                blocks = blocks.saturating_add(1);
                last = Some(e);
            }
        }
    }
    Err(last.map_or_else(
        || Error::Unsupported { requirement: format!("another stack: this one cannot hold {bytes} bytes") },
        Error::InvalidStack,
    ))
}

fn nand_of(medium: &StackMedium) -> Option<(&str, NandGeometry)> {
    if let MediumSpec::Nand(c) = &medium.spec { Some((&medium.name, c.geometry)) } else { None }
}

/// Returns the stack of an NTL volume of `bytes`: its chips become larger.
fn sized_ntl_stack(
    bytes: u64,
    given: &Stack,
    load: impl Fn(&[String]) -> frit_stack::Result<Stack>,
) -> Result<Stack> {
    let layer = &given.layer().name;
    let wanted = bytes.next_multiple_of(SECTOR_BYTES);
    let (Some(name), Some(chips)) = (medium_in_role(given, "pcm"), given.media().iter().find_map(chips_of))
    else {
        return Err(Error::Unsupported { requirement: "memory, whose size --size can choose".into() });
    };
    let mut chip = (bytes / chips).next_multiple_of(CHIP_STEP);
    loop {
        let sets = [format!("media.{name}.chip_bytes={chip}"), format!("{layer}.capacity={wanted}")];
        // The stack is built as a durable volume, since its records take space as well.
        let durable = [&sets[..], &given.durable(true)].concat();
        match load(&durable).and_then(|s| s.build_untimed(&Bytes::None)) {
            Ok(_) => return Ok(load(&sets)?),
            // Records, log and registers take a tenth of the memory, or half of it with small
            // pages.
            Err(e) if chip > 2 * bytes / chips + 64 * CHIP_STEP => return Err(Error::InvalidStack(e)),
            Err(_) => chip = (chip + chip / 64 + 1).next_multiple_of(CHIP_STEP),
        }
    }
}

fn chips_of(medium: &StackMedium) -> Option<u64> {
    match &medium.spec {
        MediumSpec::Pcm(c) if medium.used => {
            Some(u64::from(c.geometry.channels) * u64::from(c.geometry.chips_per_channel))
        }
        _ => None,
    }
}

/// Returns the name of the medium that a layer has in a role.
fn medium_in_role(stack: &Stack, role: &str) -> Option<String> {
    stack.on(stack.layer(), role).map(|medium| medium.name.clone())
}

//! A stack made as large as wanted.

use crate::error::{Error, Result};
use frit_core::{Null, SECTOR_BYTES};
use frit_media::MediumSpec;
use frit_stack::{Bytes, Stack};

/// Disks are made a multiple of this: a cache leaves out what does not fill a block of its own.
const DISK_STEP: u64 = 4096;

/// Block counts that are tried above the first guess.
const TRIES: u32 = 64;

/// The stack with as many NAND blocks, or as large a disk, as a volume of `bytes` needs, and with that capacity.
/// `load` reads the stack with overrides added to those that were given.
///
/// # Errors
/// A stack that is wrong, or cannot be so large.
pub fn sized(bytes: u64, load: impl Fn(&[String]) -> frit_stack::Result<Stack>) -> Result<Stack> {
    let given = load(&[])?;
    let layer = &given.layer().name;
    let nand = given.layer().on.iter().find(|(role, _)| role.key == "nand").map(|&(_, i)| &given.media()[i]);
    let Some((name, geometry)) = nand.and_then(|m| match &m.spec {
        MediumSpec::Nand(c) => Some((m.name.clone(), c.geometry)),
        _ => None,
    }) else {
        let disk = layer_on(&given, "disk").ok_or_else(|| Error::Stack {
            what: "a NAND medium or a disk, whose size --size can choose".into(),
        })?;
        let whole = bytes.next_multiple_of(DISK_STEP);
        return Ok(load(&[format!("media.{disk}.bytes={whole}")])?);
    };
    // One more block in each plane makes it so much larger.
    let row = geometry.bytes() / u64::from(geometry.blocks_per_plane.max(1));
    let first = u32::try_from(bytes / row.max(1)).unwrap_or(u32::MAX).max(1);
    let pages = bytes.next_multiple_of(SECTOR_BYTES);
    let mut last = None;
    let mut blocks = first;
    for _ in 0..TRIES {
        let sets = [format!("media.{name}.blocks_per_plane={blocks}"), format!("{layer}.capacity=0")];
        match load(&sets).and_then(|s| s.build::<Null>(&Bytes::None)) {
            Ok(built) if built.layer.info().sectors * SECTOR_BYTES >= pages => {
                let exact =
                    [format!("media.{name}.blocks_per_plane={blocks}"), format!("{layer}.capacity={pages}")];
                return Ok(load(&exact)?);
            }
            Ok(built) => {
                let has = built.layer.info().sectors * SECTOR_BYTES;
                // In proportion, and at least one more.
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
        || Error::Stack { what: format!("another stack: this one cannot be made to hold {bytes} bytes") },
        Error::Parse,
    ))
}

/// The name of the medium that a layer has in a role.
fn layer_on(stack: &Stack, role: &str) -> Option<String> {
    let (_, i) = stack.layer().on.iter().find(|(r, _)| r.key == role)?;
    Some(stack.media()[*i].name.clone())
}

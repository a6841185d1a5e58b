//! A stack made as large as wanted.

use crate::error::{Error, Result};
use frit_core::{Null, SECTOR_BYTES};
use frit_media::MediumSpec;
use frit_stack::layers::Kind;
use frit_stack::{Bytes, Stack};

/// Disks are made a multiple of this: a cache leaves out what does not fill a block of its own.
const DISK_STEP: u64 = 4096;

/// Block counts that are tried above the first guess.
const TRIES: u32 = 64;

/// What chips of memory are made a multiple of: refresh units and interleave units of the profiles divide it.
const CHIP_STEP: u64 = 1 << 20;

/// The stack with as many NAND blocks, or as large a disk, as a volume of `bytes` needs, and with that capacity.
/// `load` reads the stack with overrides added to those that were given.
///
/// # Errors
/// A stack that is wrong, or cannot be so large.
pub fn sized(bytes: u64, load: impl Fn(&[String]) -> frit_stack::Result<Stack>) -> Result<Stack> {
    if bytes == 0 {
        return Err(Error::Stack { what: "a size above zero: --size 0 leaves no place for data".into() });
    }
    let given = load(&[])?;
    let layer = &given.layer().name;
    if given.layer().kind == Kind::Ntl {
        return memory(bytes, &given, load);
    }
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

/// The same of memory alone: its chips become larger.
fn memory(bytes: u64, given: &Stack, load: impl Fn(&[String]) -> frit_stack::Result<Stack>) -> Result<Stack> {
    let layer = &given.layer().name;
    let wanted = bytes.next_multiple_of(SECTOR_BYTES);
    let (Some(name), Some(chips)) = (layer_on(given, "pcm"), given.media().iter().find_map(chips_of)) else {
        return Err(Error::Stack { what: "memory, whose size --size can choose".into() });
    };
    let mut chip = (bytes / chips).next_multiple_of(CHIP_STEP);
    loop {
        let sets = [format!("media.{name}.chip_bytes={chip}"), format!("{layer}.capacity={wanted}")];
        // As the volume will be: with records.
        let durable = [&sets[..], &given.layer().durable(true)].concat();
        match load(&durable).and_then(|s| s.build::<Null>(&Bytes::None)) {
            Ok(_) => return Ok(load(&sets)?),
            // Records, log and registers take a tenth, or half of it for small pages.
            Err(e) if chip > 2 * bytes / chips + 64 * CHIP_STEP => return Err(Error::Parse(e)),
            Err(_) => chip = (chip + chip / 64 + 1).next_multiple_of(CHIP_STEP),
        }
    }
}

fn chips_of(medium: &frit_stack::Medium) -> Option<u64> {
    match &medium.spec {
        MediumSpec::Pcm(c) if medium.used => {
            Some(u64::from(c.geometry.channels) * u64::from(c.geometry.chips_per_channel))
        }
        _ => None,
    }
}

/// The name of the medium that a layer has in a role.
fn layer_on(stack: &Stack, role: &str) -> Option<String> {
    let (_, i) = stack.layer().on.iter().find(|(r, _)| r.key == role)?;
    Some(stack.media()[*i].name.clone())
}

//! A disk behind an ordinary SSD as its cache.

use super::{Durability, Interface, Role, RoleNames};
use crate::decode::{decode as decode_as, keys_of};
use crate::error::Problem;
use crate::tree::Table;
use frit_compose::sizing::{DeviceSizes, Resizable};
use frit_core::{BlockDevice, Result, StackDevice};
use frit_layer::flashcache::{Flashcache, FlashcacheConfig};

pub(super) const ABOUT: &str = "a disk behind an ordinary SSD, cached by a set-associative manager with metadata on the \
     SSD (after Facebook's Flashcache)";

pub(super) const ROLES: &[Role] = &[
    Role {
        key: "ssd",
        needs: Interface::Block,
        optional: false,
        names: RoleNames::One,
        help: "holds the cached blocks and their metadata: an ftl layer, or any other device",
    },
    Role {
        key: "disk",
        needs: Interface::Block,
        optional: false,
        names: RoleNames::One,
        help: "the disk that is cached",
    },
];

/// It is durable at a flush, as its devices are.
pub(super) const DURABILITY: Durability = Durability { each_request: &[], over_files: &[] };

pub(super) fn decode(path: &str, table: &Table, problems: &mut Vec<Problem>) -> Option<FlashcacheConfig> {
    decode_as(path, table, keys_of::<FlashcacheConfig>(), problems)
}

/// The capacity of a cached disk: its whole blocks. The SSD keeps its size.
pub(super) struct WholeBlocks;

/// Largest block.
const BLOCK_BYTES_MAX: u64 = 1 << 20;

impl Resizable for WholeBlocks {
    fn sizes_for(&self, now: &DeviceSizes, bytes: u64) -> Result<DeviceSizes> {
        let ssd = now.devices.first().copied().unwrap_or_default();
        let devices = vec![ssd, bytes.next_multiple_of(BLOCK_BYTES_MAX)];
        Ok(DeviceSizes { devices, ..DeviceSizes::default() })
    }
}

/// Builds the layer over the SSD and the disk.
pub(crate) fn build(
    config: FlashcacheConfig,
    ssd: Box<dyn BlockDevice>,
    disk: Box<dyn BlockDevice>,
    holds_bytes: bool,
) -> Result<Box<dyn StackDevice>> {
    Ok(Box::new(Flashcache::<dyn BlockDevice, dyn BlockDevice>::new(config, ssd, disk, holds_bytes)?))
}

//! The small layers that are made for composition.

use super::{Durability, Interface, RequiredSetting, Role, RoleNames};
use crate::decode::{decode as decode_as, keys_of};
use crate::error::Problem;
use crate::tree::Table;
use frit_core::{MediumKind, ParamTable};
use serde::de::DeserializeOwned;

pub(super) const CONCAT: &str = "devices one after the other, as one device of their total capacity";
pub(super) const STRIPE: &str = "equal chunks on devices in turn (RAID 0)";
pub(super) const MIRROR: &str =
    "the same data on all devices; it survives the failure of all but one (RAID 1)";

pub(super) const DELAY: &str =
    "a device whose acknowledgements arrive later, in virtual time or on a served volume";
pub(super) const HOST_LINK: &str = "command queues and a link before a device: the host interface of a drive";
pub(super) const DRAM_CACHE: &str =
    "a cache in the DRAM of a drive, for writes, reads or both (MQSim, Tavakkol et al., FAST 2018)";
pub(super) const FLAKY: &str = "a device that fails by rules, for tests of the layers above it";
pub(super) const RECORD: &str = "a device whose requests are recorded as a trace, which frit run can replay";

pub(super) const THIN: &str = "a device of any size, whose chunks are allocated at the first write";
pub(super) const SEGMENTS: &str =
    "a log of immutable segments in an object store, with its map in durable memory";
pub(super) const COMPRESS: &str = "compressed chunks, whose checksums every read verifies";

/// Role of a composer of one device.
pub(super) const DEVICE: &[Role] = &[Role {
    key: "device",
    needs: Interface::Block,
    optional: false,
    names: RoleNames::One,
    help: "the device: a disk or a layer",
}];

/// Role of a composer of several devices.
pub(super) const DEVICES: &[Role] = &[Role {
    key: "devices",
    needs: Interface::Block,
    optional: false,
    names: RoleNames::List,
    help: "the devices, as a list of names of disks or layers",
}];

/// Roles of a log of segments.
pub(super) const MAP_AND_STORE: &[Role] = &[
    Role {
        key: "map",
        needs: Interface::Block,
        optional: false,
        names: RoleNames::One,
        help: "the device of the map, durable and small: an ntl layer over PCM, a disk, or a mirror of two",
    },
    Role {
        key: "store",
        needs: Interface::Medium(MediumKind::Object),
        optional: false,
        names: RoleNames::One,
        help: "the object store of the segments",
    },
];

/// A composer without metadata is as durable as its devices. One with a table is durable at a flush.
pub(super) const DURABILITY: Durability = Durability { each_request: &[], over_files: &[] };

/// Durability of a cache in DRAM.
pub(super) const DRAM_CACHE_DURABILITY: Durability = Durability {
    each_request: &[RequiredSetting {
        key: "power_loss_protection",
        value: "false",
        why: "the memory of this program is lost in a crash",
    }],
    over_files: &[],
};

pub(super) fn decode<C: ParamTable + DeserializeOwned>(
    path: &str,
    table: &Table,
    problems: &mut Vec<Problem>,
) -> Option<C> {
    decode_as(path, table, keys_of::<C>(), problems)
}

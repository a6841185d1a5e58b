//! Parts that the tests of several layers share.

mod failing_store;
mod recording_sink;
pub(crate) mod shadow;
mod timed_sink;

pub(crate) use failing_store::{FailingAccess, FailingStore};
use frit_media::{NandGeometry, PlaneOps, SlcArea};
pub(crate) use recording_sink::RecordingSink;
pub(crate) use timed_sink::{CommandClock, clock, timed_sink};

/// Two units of 12 blocks of 8 NAND pages of 4 KiB.
pub(crate) const TWO_UNITS: NandGeometry = NandGeometry {
    channels: 2,
    chips_per_channel: 1,
    dies_per_chip: 1,
    planes_per_die: 1,
    blocks_per_plane: 12,
    pages_per_block: 8,
    page_bytes: 4096,
    spare_bytes: 256,
    plane_ops: PlaneOps::Single,
    program_pages: 1,
    record_copies: 1,
    slc: SlcArea { blocks: 0, pages: 0, dynamic: false },
};

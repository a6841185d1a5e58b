//! A durable table of entries of a fixed size at the start of a device.
//!
//! The table has two copies. Each copy is a superblock and the sectors of the table. A sector
//! describes itself: its kind, its index, the number of the commit that wrote it, and a CRC32C. A
//! start takes the newest valid copy of each sector, so one damaged sector loses nothing. If both
//! copies of a sector are damaged, its entries are lost: the layer refuses writes, and reads of the
//! range return an error.
//!
//! Entries change in DRAM. A commit flushes the device, writes both copies of each changed sector,
//! and flushes the device again. A sector is atomic, and the sectors of one commit are independent
//! of each other: a power loss during a commit leaves each of them old or new. A layer therefore
//! must not use again what an entry of a commit names no longer, until the commit is done.
//!
//! `docs/reference/composers/thin.md` draws the format.

mod check;
mod commit;
mod layout;
mod load;
mod sector;
mod sector_set;

pub(crate) use commit::Table;
pub(crate) use layout::{TableKind, TableLayout, VolumeShape, check_chunks, fill_from};
pub(crate) use load::Loaded;

//! Directories.
//!
//! On the medium a directory is a file of slots of 32 bytes. A name takes one slot, or as many as its length needs, and
//! never moves while it exists, so its place is a position for readdir(3) that stays right whatever else changes. In
//! DRAM a table from hashes to places is made when the directory is used first: 13 to 25 bytes a name; a directory of
//! a million names takes some ten milliseconds, once.

mod change;
mod index;
mod list;
mod record;
mod salvage;

pub(crate) use change::valid;
pub(crate) use index::{BLOCKS_MAX, Found, Index};
pub(crate) use record::SLOT;
pub(crate) use salvage::salvage;

//! Directories.
//!
//! On the medium, a directory is a file of slots of 32 bytes. A name takes one slot, or more if it
//! is long, and never moves while it exists. Its slot is therefore a position for readdir(3) that
//! remains valid under any changes. In DRAM, a hash table from names to slots is built at the first
//! use of the directory. It takes 13 to 25 bytes a name; a directory of a million names takes about
//! ten milliseconds to load.

mod change;
mod index;
mod list;
mod record;
mod salvage;

pub(crate) use change::check_name;
pub(crate) use index::{BLOCKS_MAX, DirIndex, DirInode, FoundName};
pub(crate) use record::SLOT;
pub(crate) use salvage::{SalvagedBlock, salvage};

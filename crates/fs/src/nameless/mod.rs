//! Contents on a nameless-write device (Zhang et al., "De-indirection for Flash-based SSDs with Nameless
//! Writes", FAST 2012): the device chooses the place of each block of contents, and the extents of a
//! file hold the physical addresses.
//!
//! Metadata is a medium of virtual blocks in DRAM ([`VirtualBlocks`]). New contents are written to free
//! blocks of this medium first, which are the write buffer. A sync *places* them: they are written to
//! the device, and the extents change to the addresses that it returns. A write to a placed block brings
//! the block back into the buffer, because a nameless block is never overwritten.
//!
//! A sync then writes all changed metadata blocks and flushes the device, which makes these blocks
//! durable together. After a crash the file system is therefore exactly as of its last sync.
//!
//! `docs/reference/nameless-fs.md` is the manual.
//!
//! | file | subject |
//! |---|---|
//! | `device` | interface of the device |
//! | `owner` | the device of a layer or a volume |
//! | `address` | physical addresses in extents |
//! | `virtual_blocks` | the medium of metadata |
//! | `placed` | state: buffered files, freed blocks, capacity |
//! | `contents` | differences of operations on contents |
//! | `place` | from the buffer to the device |
//! | `fetch` | from the device to the buffer |
//! | `commit` | syncs |
//! | `migrate` | blocks that the device has moved |
//! | `claim` | recovery |

mod address;
mod claim;
mod commit;
mod contents;
mod device;
mod fetch;
mod migrate;
mod owner;
mod place;
mod placed;
mod virtual_blocks;

pub(crate) use address::{PLACED, is_placed};
pub use device::{ContentDevice, VirtualBlock};
pub use owner::{DeviceAccess, DeviceOwner};
pub use placed::PlacedContents;
pub use virtual_blocks::VirtualBlocks;

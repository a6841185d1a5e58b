//! Inodes: 256 bytes each in the inode table, and the state of those in use in DRAM.

mod allocator;
mod cache;
mod node;
mod raw;

pub(crate) use allocator::InodeAllocator;
pub(crate) use cache::NodeCache;
pub(crate) use node::{Node, NodeGuard, NodeState};
pub(crate) use raw::{FAST_SYMLINK_MAX, Inode};

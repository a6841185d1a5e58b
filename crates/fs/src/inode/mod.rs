//! Inodes: 256 bytes each in the inode table, and the state of those in use in DRAM.

mod cache;
mod node;
mod numbers;
mod raw;

pub(crate) use cache::Cache;
pub(crate) use node::{Guard, Node, State};
pub(crate) use numbers::Numbers;
pub(crate) use raw::{INLINE_TARGET, Inode};

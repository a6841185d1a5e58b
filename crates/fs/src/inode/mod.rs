//! Inodes: 256 bytes in the inode table, and what is kept of one in DRAM while it is used.

mod cache;
mod node;
mod numbers;
mod raw;

pub(crate) use cache::Cache;
pub(crate) use node::{Guard, Node, State};
pub(crate) use numbers::Numbers;
pub(crate) use raw::{INLINE_TARGET, Inode};

//! Requests and replies of the FUSE protocol, version 7.38 and later (linux/fuse.h).

pub(crate) mod abi;
mod arguments;
mod attributes;

pub(crate) use arguments::{Arguments, Malformed};
pub use attributes::{Entry, FileAttr, Timestamp};

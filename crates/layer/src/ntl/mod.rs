//! NTL: address mapping for an SSD that consists of byte-addressable memory only (Kwon, "Address
//! Translation Layer for Byte-Addressable Non-Volatile Memory-Based Solid State Drives", IEEE
//! Access 2019).
//!
//! Pages lie on chips that work independently. A [`Mapping`] selects the chip: by the page number
//! (static), any chip at the first write (dynamic), or one chip for a whole block. A first write is
//! *clean*. An update is *dirty*: it overwrites the page in place, or goes to a log of clean pages
//! and is copied to its home location when the log is merged. Rounds of parallel writes are counted
//! as in the paper.
//!
//! `docs/reference/ntl.md` is the manual, with a worked example.

mod buffer;
mod checkpoint;
mod config;
mod discard;
mod durable;
mod header;
mod layer;
mod layout;
mod log;
mod mapping;
mod merge;
mod page_bitmap;
mod params;
mod placement;
mod read;
mod recover;
mod rounds;
mod space;
mod stats;
#[cfg(test)]
mod tests;
mod verify;
mod view;
mod write;

pub use config::{LogBuffer, LogKind, MergeUnit, NtlConfig, Protect};
pub use layer::Ntl;
pub use mapping::{Mapping, MappingKind, Mappings};
pub use placement::ChipPlacement;

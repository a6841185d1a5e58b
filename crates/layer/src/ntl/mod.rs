//! NTL: address mapping for an SSD made of byte-addressable memory alone (Kwon, "Address Translation Layer for
//! Byte-Addressable Non-Volatile Memory-Based Solid State Drives", IEEE Access 2019).
//!
//! Pages lie on chips that work on their own. A [`Mapping`] says on which: by the page's number (static), on
//! any chip at its first write (dynamic), or a whole block on one chip. A first write is *clean*, an update is
//! *dirty*: it overwrites the page where it lies, or goes to a log whose pages are clean, and comes
//! home when the log is merged. Rounds of parallel writes are counted as the paper does.
//!
//! `docs/ntl.md` is the manual, with an example worked through by hand.

mod bits;
mod buffer;
mod config;
mod discard;
mod durable;
mod head;
mod layer;
mod layout;
mod log;
mod mapping;
mod merge;
mod params;
mod placement;
mod read;
mod recover;
mod rounds;
mod saved;
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
pub use placement::Placement;

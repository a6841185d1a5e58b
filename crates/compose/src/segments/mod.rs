//! A log of segments in an object store, with a map in durable memory.
//!
//! Chunks that are written collect in a segment in DRAM. A full segment is put into the store as one
//! immutable object. A flush puts what has collected, waits until the store has it, and commits the
//! map (`crate::table`): the entry of a chunk names its object, its place in it, and its checksum,
//! which every read verifies. An object without live chunks is deleted after the commit of the map that no
//! longer names it. Cleaning copies the live chunks of the emptiest objects into new ones.
//!
//! The design is a log-structured block store (Rosenblum and Ousterhout, SOSP 1991), as disks on
//! object storage use it (Hajkazemi et al., "Beating the I/O bottleneck: a case for log-structured
//! virtual disks", EuroSys 2022).

mod check;
mod clean;
mod config;
mod deferral;
mod entry;
mod layer;
mod load;
mod open;
mod requests;
mod space;
#[cfg(test)]
mod tests;

pub use config::SegmentsConfig;
pub use layer::Segments;

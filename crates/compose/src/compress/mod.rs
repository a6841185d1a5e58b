//! Compression and checksums of chunks, which are stored out of place.
//!
//! A buffer in DRAM collects writes. A chunk leaves it at a flush, or when the buffer is full: it is
//! compressed and written to a free run of sectors, and a commit of the table (`crate::table`)
//! replaces its entry. The old run is free after this commit. An entry has the digest of the
//! contents, which every read verifies.
//!
//! Free runs are known in DRAM only, from the table. If no run is long enough for a chunk, runs in
//! use are moved together.

mod buffer;
mod check;
mod codec;
mod compact;
mod config;
mod entry;
mod layer;
mod requests;
mod space;
mod store;
#[cfg(test)]
mod tests;

pub use config::{Algorithm, CompressConfig};
pub use layer::Compress;

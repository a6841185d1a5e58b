//! Thin provisioning: a device of any size, whose chunks are allocated at the first write.
//!
//! The table at the start of the device (`crate::table`) maps chunks of the layer to chunks of the
//! device. A write to a mapped chunk goes through in place. The first write to a chunk takes a free
//! chunk of the device and writes all of it, with zeros around the data, and a flush commits the
//! table. A chunk that a discard has freed is used again only after a commit.
//!
//! Snapshots can follow: an entry has free bits for a mark of shared chunks, which a write copies
//! first, and a superblock states the number of tables. A snapshot would be a second table in
//! chunks of the device, and a start would count the entries that name a chunk.

mod check;
mod config;
mod layer;
mod space;
#[cfg(test)]
mod tests;

pub use config::ThinConfig;
pub use layer::Thin;

//! Layers that map, cache and place blocks on media.
//!
//! [`hfsl`] fuses PCM and NAND (Li et al. 2016). [`flash`] is its NAND side, which other
//! page-mapped layers can share: block pools, garbage collection, wear leveling. [`cache`] is a
//! write cache of a disk: its directory and its eviction policies. [`ntl`] maps the pages of an SSD
//! that consists of byte-addressable memory only (Kwon 2019). These three use PCM through
//! [`frit_wear::Leveled`], which levels its wear. [`ftl`] is an SSD of NAND alone, and [`ssc`] a cache of
//! NAND that [`flashtier`] puts before a disk; [`ssc_block`] is that cache without a manager.
//! [`flashcache`] caches a disk on any SSD; [`nameless`] is NAND whose pages
//! are named by the device. [`zns`] is NAND with zones.
//!
//! The other modules are parts that the layers share: bounds and division of requests (`spans`),
//! refused writes (`health`), the header in PCM and its state, records with their fences
//! and marks, and the comparison of records with the summary of a clean shutdown (`halt`).
//!
//! It is not: a simulator. A layer is ordinary synchronous code over media that obey their rules.
//! The sink that receives its commands decides how long they take.

pub mod cache;
mod fences;
pub mod flash;
pub mod flashcache;
pub mod flashtier;
pub mod ftl;
mod halt;
mod header;
mod health;
pub mod hfsl;
mod marks;
pub mod nameless;
pub mod nameless_block;
pub mod ntl;
mod numbers;
mod payload;
pub mod planted;
mod record;
mod residence;
mod spans;
pub mod ssc;
pub mod ssc_block;
mod summary;
#[cfg(test)]
mod testing;
mod tokens;
mod words;
pub mod zns;

pub use cache::{Cache, CacheConfig};
pub use flashcache::{Flashcache, FlashcacheConfig};
pub use flashtier::{Flashtier, FlashtierConfig};
pub use ftl::{Ftl, FtlConfig};
pub use hfsl::{FusionMethod, Hfsl, HfslConfig};
pub use nameless::{Nameless, NamelessConfig};
pub use nameless_block::{NamelessBlock, NamelessBlockConfig};
pub use ntl::{Ntl, NtlConfig};
pub use ssc_block::{SscBlock, SscBlockConfig};
pub use zns::{Zns, ZnsConfig};

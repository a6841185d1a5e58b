//! Layers that map, cache and place blocks on media.
//!
//! [`hfsl`] fuses PCM and NAND (Li et al. 2016). [`flash`] is its NAND side, which other
//! page-mapped layers can share: block pools, garbage collection, wear leveling. [`wear`] levels
//! the wear of PCM below any layer. [`cache`] is a write cache of a disk: its directory and its
//! eviction policies. [`ntl`] maps the pages of an SSD that consists of byte-addressable memory
//! only (Kwon 2019).
//!
//! It is not: a simulator. A layer is ordinary synchronous code over media that obey their rules.
//! The sink that receives its commands decides how long they take.

pub mod cache;
mod fences;
pub mod flash;
mod header;
pub mod hfsl;
pub mod ntl;
mod record;
mod summary;
pub mod wear;

pub use cache::{Cache, CacheConfig};
pub use hfsl::{FusionMethod, Hfsl, HfslConfig};
pub use ntl::{Ntl, NtlConfig};

/// Bounds of a token that a layer stores, see [`frit_core::Sink::Tok`].
pub trait Token: Copy + Default + Send {}
impl<T: Copy + Default + Send> Token for T {}

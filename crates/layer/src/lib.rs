//! Layers: what maps, caches and places blocks over media.
//!
//! [`hfsl`] fuses PCM and NAND (Li et al. 2016); [`flash`] is the NAND side that it and later
//! page-mapped layers share: block pools, garbage collection, wear leveling. [`wear`] levels the wear of PCM
//! below whatever stands on it. [`cache`] holds the write cache of a disk: its directory and its eviction policies.
//! [`ntl`] maps the pages of an SSD made of byte-addressable memory alone (Kwon 2019).
//!
//! It is not: a simulator. A layer is ordinary synchronous code over media that obey their rules;
//! time is the affair of the sink that it emits into.

pub mod cache;
mod fences;
pub mod flash;
mod head;
pub mod hfsl;
mod named;
pub mod ntl;
mod record;
mod summary;
pub mod wear;

pub use cache::{Cache, CacheConfig};
pub use hfsl::{FusionMethod, Hfsl, HfslConfig};
pub use ntl::{Ntl, NtlConfig};

/// What a stored token has to be: see [`frit_core::Sink::Tok`].
pub trait Token: Copy + Default + Send {}
impl<T: Copy + Default + Send> Token for T {}

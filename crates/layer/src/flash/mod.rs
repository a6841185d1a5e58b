//! NAND side of a page-mapped layer: block pools, streams, garbage collection, wear leveling.
//!
//! A [`Flash`] owns one or more NAND devices, the reverse map (PPN → LPN) and the valid counts. It allocates
//! pages, records invalid ones and collects garbage. The forward map belongs to the layer above,
//! which passes it as [`ForwardMap`] so that the entries of moved pages can be updated.

mod adopt;
pub(crate) mod alloc;
mod blocks;
mod collect;
pub mod gc;
pub mod leveling;
mod space;

pub use blocks::{BlockTable, BlockUse};
pub use gc::{Gc, GcPolicy};
pub use leveling::{WearLeveling, WearPolicy};
pub use space::{Flash, FlashConfig, FlashStats, ForwardMap, MovedPage, NandStream};

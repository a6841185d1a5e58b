//! NAND side of a page-mapped layer: block pools, streams, garbage collection, wear leveling.
//!
//! A [`Flash`] owns one or more NAND devices, the reverse map (PPN → LPN) and the valid counts. It allocates
//! pages, records invalid ones and collects garbage. The forward map belongs to the layer above,
//! which passes it as [`ForwardMap`] so that the entries of moved pages can be updated.

mod adopt;
pub(crate) mod alloc;
mod blocks;
mod capacity;
mod collect;
mod dynamic_slc;
pub(crate) mod gather;
pub mod gc;
mod keys;
pub mod leveling;
pub mod pacing;
mod placed;
mod precondition;
mod reads;
mod slc_cache;
mod space;
mod unit_order;

pub use blocks::{BlockTable, BlockUse};
pub(crate) use capacity::{nominal_capacity, page_capacity};
pub(crate) use dynamic_slc::DynamicSlc;
pub use gc::{Gc, GcPolicy};
pub(crate) use keys::FlashKeys;
pub use leveling::{WearLeveling, WearPolicy};
pub use pacing::{Pacing, PacingPolicy};
pub(crate) use placed::{Copied, PlacedPage};
pub use slc_cache::SlcFull;
pub use space::{Flash, FlashConfig, FlashStats, ForwardMap, MovedPage, NandStream};
pub(crate) use space::{HANDLES_MAX, SpareNeeds};
pub use unit_order::UnitOrder;

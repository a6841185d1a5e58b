//! The NAND side of a page-mapped layer: block pools, streams, garbage collection, wear leveling.
//!
//! One [`Flash`] owns a NAND medium, the reverse map (PPN → LPN) and the valid counts. It allocates
//! pages, takes note of invalid ones and cleans; the forward map belongs to the layer above, which
//! hands it in as [`ForwardMap`] so that a moved page can be found again.

mod adopt;
pub(crate) mod alloc;
mod blocks;
mod clean;
pub mod gc;
mod space;
pub mod wear;

pub use blocks::{BlockState, Blocks};
pub use gc::{Gc, GcPolicy};
pub use space::{Flash, FlashConfig, FlashStats, ForwardMap, Moved, Stream};
pub use wear::{Wear, WearPolicy};

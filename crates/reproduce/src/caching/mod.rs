//! Write caches before a disk, compared: what a cell of a study runs, and what it finds.
//!
//! The view `disk-only` is the method of the HALO paper: the cache's commands to the disk, one after the other
//! ([`DiskTime`]); the others are ordinary runs of `frit-replay`, where everything takes time.

mod cell;
mod sink;
mod wear;

pub(crate) use cell::pcm_chips;
pub use cell::{Cell, Found, Metric};
pub use sink::{DiskTime, DiskWork};
pub(crate) use wear::wear;

/// What was found, by workload and cell.
pub(crate) type Cells = crate::pool::Pool<Found>;

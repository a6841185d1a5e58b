//! Write caches before a disk, compared: what a cell of a study runs, and what it finds.
//!
//! The view `disk-only` is the method of the HALO paper: the cache's commands to the disk, one after the other
//! ([`DiskTime`]); the others are ordinary runs of `frit-replay`, where everything takes time.

mod cell;
mod pool;
mod sink;
mod wear;

pub use cell::{Cell, Found, Metric};
pub(crate) use pool::Cells;
pub use sink::{DiskTime, DiskWork};
pub(crate) use wear::wear;

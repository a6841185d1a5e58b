//! Comparison of write caches in front of a disk: the cells of a study and their results.
//!
//! The view `disk-only` follows the method of the HALO paper: the cache's commands to the disk are
//! served one after the other ([`DiskTime`]). The other views are ordinary runs of `frit-replay`,
//! where all media take time.

mod cell;
mod sink;
mod wear;

pub(crate) use cell::pcm_chips;
pub use cell::{Cell, Found, Metric};
pub use sink::{DiskTime, DiskWork};
pub(crate) use wear::wear;

/// Results by workload and cell.
pub(crate) type Cells = crate::pool::Pool<Found>;

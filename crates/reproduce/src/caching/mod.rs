//! Comparison of write caches in front of a disk: the cells of a study and their results.
//!
//! The view `disk-only` follows the method of the HALO paper: the cache's commands to the disk are
//! served one after the other ([`DiskTimer`]). The other views are ordinary runs of `frit-replay`,
//! where all media take time.

mod cache_run;
mod disk_timer;
mod wear;

pub use cache_run::{CacheMetric, CacheRun, CacheRunResult};
pub(crate) use cache_run::{CheckedRun, pcm_chips};
pub use disk_timer::{DiskTimer, DiskWork};
pub(crate) use wear::{stack_life_rate, wear};

/// Results by workload and cell.
pub(crate) type CacheRunResults = crate::pool::JobPool<CheckedRun>;

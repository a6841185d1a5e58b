//! Disk drives in virtual time: zoned geometry, arm, platter, electronics, cache and queue.
//!
//! A [`DiskSpec`] contains all parameters of a drive; it comes from a profile or from DiskSim's
//! parameter files ([`diskspecs`]). A [`Drive`] adds the state: [`Drive::service`] returns the time
//! at which a request that begins now is done, given the positions of the arm and the platter and
//! the contents of the cache; a [`DriveQueue`] chooses the request that begins next. Times are
//! whole nanoseconds, and nothing is random. `docs/reference/disk.md` is the manual.

mod cache;
pub mod characteristics;
mod destage;
mod device;
mod dirty;
pub mod diskspecs;
mod drive;
pub mod geometry;
mod layout;
mod mechanism;
mod profile;
mod queue;
mod read;
mod schedule;
pub mod score;
mod seek;
mod solid_state;
mod spec;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod write;

pub use device::{Disk, DiskConfig, DriveModel, HAZARD_BYTES};
pub use drive::{CacheResult, Drive, DriveRequest, DriveRequestKind, ServiceResult};
pub use profile::{DiskProfile, DriveConfig};
pub use queue::{DriveJob, DriveQueue};
pub use seek::{CYLINDERS_MAX, SeekCurve};
pub use solid_state::SolidStateDrive;
pub use spec::{
    Background, Bus, CacheSpec, DiskSpec, DriveScheduler, ExtraDisconnect, MAX_WAIT, Mechanics,
    OverheadAfter, Overheads, Positioning, ReadAhead, WriteBack,
};

//! Disk drives: geometry with zones, arm, platter, electronics, cache and queue, in virtual time.
//!
//! A [`DiskSpec`] says all that a drive is; it comes from a profile, or from DiskSim's parameter files
//! ([`diskspecs`]). A [`Drive`] is one at work: [`Drive::service`] says when a request that begins now is
//! done, given where the arm and the platter are and what the cache holds; a [`Queue`] chooses which
//! request begins. Time is whole nanoseconds, and nothing is random. `docs/disk.md` is the manual.

mod cache;
mod destage;
mod device;
pub mod diskspecs;
mod drive;
pub mod figures;
pub mod geometry;
mod layout;
mod mechanism;
mod profile;
mod queue;
mod read;
mod schedule;
pub mod score;
mod seek;
mod spec;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod write;

pub use device::{Disk, DiskConfig, ORDER_BYTES};
pub use drive::{Drive, Hit, Kind, Request, Service};
pub use profile::{DiskProfile, DriveConfig};
pub use queue::{Job, Queue};
pub use schedule::Scheduler;
pub use seek::{CYLINDERS_MAX, SeekCurve};
pub use spec::{
    After, Background, Bus, CacheSpec, DiskSpec, ExtraDisconnect, MAX_WAIT, Mechanics, Overheads,
    Positioning, ReadAhead, WriteBack,
};

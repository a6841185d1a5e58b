//! Volumes served to other programs: NBD, FUSE, control, metrics.
//!
//! A [`Device`] shares one [`Backend`] (a volume, for example) among any number of clients. Each
//! protocol is a thin adapter in front of it. [`nbd`] implements the Network Block Device protocol
//! over Unix and TCP sockets.
//!
//! [`hints`] gives hints to the writes of all protocols, by rules.
//!
//! [`fuse::file_system`] serves a file system, rather than a volume, through FUSE.
//!
//! This crate stores no data. It contains neither mapping tables nor media.

pub mod backend;
pub mod ctl;
pub mod device;
pub mod fuse;
pub mod hints;
mod log;
pub mod metrics;
pub mod nameless;
pub mod nbd;
pub mod pace;
pub mod record;
mod resource_limits;
mod tcp;
pub mod testing;
#[cfg(feature = "ublk")]
pub mod ublk;
mod unix;
mod volume;

pub use backend::{Backend, ChannelState, ReplyTime};
pub use device::{Device, DeviceExtents, DeviceGuard, DeviceOptions, Failure, FailureKind};
pub use log::Logger;
pub use record::TraceRecorder;

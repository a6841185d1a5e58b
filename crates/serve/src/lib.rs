//! Volumes served to other programs: NBD, FUSE, control, metrics.
//!
//! A [`Device`] is a volume, or anything else that is a [`Backend`], which any number of clients share;
//! each protocol is a thin room in front of it. [`nbd`] speaks the Network Block Device protocol over
//! Unix and TCP sockets.
//!
//! [`mount`] carries a file system, rather than a volume, to programs.
//!
//! It is not: a place where data lies. Nothing here knows a map or a medium.

pub mod backend;
pub mod ctl;
pub mod device;
pub mod fuse;
mod guard;
mod log;
pub mod metrics;
pub mod mount;
pub mod nbd;
pub mod pace;
pub mod record;
pub mod testing;
#[cfg(feature = "ublk")]
pub mod ublk;
mod unix;
mod volume;

pub use backend::{Backend, Done};
pub use device::{Device, DeviceOptions, Failure, FailureKind};
pub use log::Log;
pub use record::Recorder;

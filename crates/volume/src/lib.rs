//! A volume: a directory that holds the media of a stack and persists between the programs that
//! open it.
//!
//! [`Volume::create`] makes a volume from a stack, [`Volume::open`] opens it and recovers it after
//! a crash or a power loss, and [`Volume::close`] marks it clean. An open volume is an array of
//! bytes: [`Volume::read`], [`Volume::write`], [`Volume::discard`], [`Volume::flush`].
//! `docs/guide/volumes.md` is the manual; `docs/reference/format.md` documents the on-media format.
//!
//! This crate is neither a layer (layers map data to media) nor a server.

pub mod access;
mod backing;
mod create;
mod data_loss;
mod error;
mod grow;
mod image;
mod inspect;
pub mod lock;
mod object_stores;
mod open;
mod open_report;
pub mod planted;
mod sizing;
pub mod superblock;
mod volume;

pub use create::{CreateOptions, durable_stack};
pub use error::{Error, Result};
pub use grow::{GrowReport, RawAreaMove, grow, stack_with_overrides, volume_bytes};
pub use image::{ImageSink, ImageSource, ProgressFn, TransferReport, export, import, is_blank};
pub use inspect::{Inspection, MediumStatus, inspect};
pub use open::OpenOptions;
pub use open_report::OpenReport;
pub use sizing::sized_stack;
pub use superblock::Superblock;
pub use volume::Volume;

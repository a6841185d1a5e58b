//! A volume: a directory that holds the media of a stack and outlives every program that opens it.
//!
//! [`Volume::create`] makes one from a stack, [`Volume::open`] brings it up again after whatever
//! stopped it, [`Volume::close`] leaves it clean. In between it is bytes: [`Volume::read`],
//! [`Volume::write`], [`Volume::discard`], [`Volume::flush`]. `docs/volumes.md` is the manual,
//! `docs/format.md` draws the bytes.
//!
//! It is not: a layer (those know how data lies), nor a server.

pub mod access;
mod backing;
mod create;
mod error;
mod grow;
mod image;
mod inspect;
pub mod lock;
mod lost;
mod open;
mod sized;
pub mod superblock;
mod volume;

pub use create::{CreateOptions, durable_stack};
pub use error::{Error, Result};
pub use grow::{Grown, grow, stack_with, volume_bytes};
pub use image::{ImageIn, ImageOut, Moved, Progress, export, import, is_blank};
pub use inspect::{Inspection, MediumFound, inspect};
pub use open::{OpenOptions, Recovered};
pub use sized::sized;
pub use superblock::Superblock;
pub use volume::Volume;

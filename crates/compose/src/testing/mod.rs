//! A device with a volatile cache, and a shadow of the contents of a layer above it.

mod disk;
mod shadow;

pub(crate) use disk::TestDisk;
pub(crate) use shadow::{exercise, step};

//! Faults, a power cut at every media operation, and oracles that verify the results.
//!
//! - [`block`] tortures a layer over media. It does not simulate the inside of a device and is not
//!   limited to one layer: it tortures any stack that a stack file describes.
//! - [`fs`] compares file systems with a model, cuts the power of the file system on byte-addressable
//!   memory, and damages its images.
//!
//! `docs/design/torture.md` is the manual, `docs/design/faults.md` the list of faults.

pub mod block;
pub mod fs;
mod minimize;

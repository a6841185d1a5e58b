//! Power cuts of a file system on a nameless-write device. Operations run on a recorded device over NAND.
//! Each image that a cut can leave is recovered and checked, and its tree is compared with the trees
//! that are allowed: those after the last acknowledged sync, and after each later operation.

mod device;
mod run;

pub use device::DeviceUnderTest;
pub use run::{NamelessCutReport, NamelessCuts, allocates_ahead};

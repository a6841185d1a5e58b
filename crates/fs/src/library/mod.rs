//! Library interface: operations by path, and open files.

mod file;
mod paths;

pub use file::{File, OpenFile};
pub use paths::Paths;

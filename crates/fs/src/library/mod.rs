//! The file system as a library: paths, and files that are open.

mod file;
mod paths;

pub use file::{File, OpenFile};
pub use paths::Paths;

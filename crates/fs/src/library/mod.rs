//! Library interface: operations by path, and open files.

mod file;
mod map;
mod paths;

pub use file::{File, OpenFile};
pub use map::FileMap;
pub use paths::Paths;

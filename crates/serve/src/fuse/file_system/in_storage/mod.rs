//! Command files of a mounted file system: instructions to the processing engine (ISPFS 3.1).

mod admission;
mod contents;
mod open_command;
mod opener;
mod renames;
mod resolver;
mod views;
mod waiting_reads;

pub use contents::EngineContents;
pub(super) use open_command::CommandFiles;
pub use resolver::resolve_error;

//! Published results beside what this code does: what `frit reproduce` runs.
mod error;
pub mod theory;
pub use error::{Error, Result};

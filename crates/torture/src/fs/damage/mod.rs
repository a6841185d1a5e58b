//! Damage of a file system's medium: what a check, reading and a repair have to make of it.

mod image;
mod judge;
pub mod seal;

pub use image::{Piece, Populated, populate};
pub use judge::{Judge, Verdict, exercise};

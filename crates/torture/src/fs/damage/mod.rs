//! Damage of a file system's medium: what a check, reading and a repair have to make of it.

mod doors;
mod harm;
mod image;
mod judge;
pub mod seal;

pub use doors::{Door, Doors, Outcome};
pub use harm::{Harm, Harmer};
pub use image::{How, Piece, Populated, populate, populate_as};
pub use judge::{Judge, Verdict, exercise};

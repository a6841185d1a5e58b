//! Damage to a file system's medium, and the required results of checks, reads and repairs.

mod doors;
mod harm;
mod image;
mod judge;
pub mod seal;

pub use doors::{Door, Doors, Outcome};
pub use harm::{Harm, Harmer};
pub use image::{How, Piece, Populated, populate, populate_as};
pub use judge::{Judge, Verdict, exercise};

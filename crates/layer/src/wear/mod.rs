//! Wear leveling of PCM: data moves between stripes, so that what is written often does not wear the same
//! cells.
//!
//! A [`Leveler`] is arithmetic: it maps logical stripes to physical ones, and says which stripe to copy next.
//! It is one file in `levelers/`, and one line in [`Levelers`]. [`Leveled`] puts one under the calls of a
//! [`Pcm`](frit_media::Pcm) and makes its moves, safe against a stop anywhere; [`sim`] counts what it would wear.
//! `docs/wear.md` is the manual.
//!
//! All levelers have two things in common, on which safety rests: **every change is one copy of a stripe to a
//! place where nothing lives**, and the state of a region is **one number that only grows**, from which start,
//! gap and keys follow. So the number, a word that PCM writes atomically, is all that a move has to make
//! durable.

mod config;
mod curve;
mod feistel;
mod gaps;
mod keys;
mod leveled;
mod levelers;
pub mod life;
mod shape;
pub mod sim;

pub use config::WearConfig;
pub use curve::Curve3;
pub use feistel::Feistel;
pub use keys::WearKeys;
pub use leveled::{Leveled, WearRecovery};
pub use levelers::{Leveler, LevelerKind, Levelers, Place, Step};
pub use shape::Shape;

#[cfg(test)]
mod tests;

//! Wear leveling of PCM: data moves between stripes, so that frequent writes do not always wear the
//! same cells.
//!
//! A [`Leveler`] is pure arithmetic: it maps logical stripes to physical ones and returns the next
//! stripe to copy. It is one file in `levelers/`, and one line in [`Levelers`]. [`Leveled`] applies
//! one under the interface of a [`Pcm`](frit_media::Pcm) and makes its moves, such that a crash or
//! a power loss at any point is safe. [`sim`] counts the wear that it would cause.
//! `docs/reference/wear.md` is the manual.
//!
//! All levelers have two properties in common, on which crash safety rests: **every change is one
//! copy of a stripe to a stripe that holds no data**, and the state of a region is **one number
//! that only grows**, from which start, gap and keys follow. A move therefore only has to make the
//! number durable, which is a word that PCM writes atomically.
//!
//! It is not: a layer. A layer stores its data in a [`Leveled`] device in place of a `Pcm`.

mod config;
mod curve;
mod feistel;
mod gaps;
mod keys;
mod leveled;
mod levelers;
pub mod life;
mod numbers;
pub mod planted;
mod shape;
pub mod sim;

pub use config::WearConfig;
pub use curve::Curve3;
pub use feistel::Feistel;
pub use keys::{PcmWearKeys, WearKeys};
pub use leveled::{Leveled, WearRecovery};
pub use levelers::{Leveler, LevelerKind, Levelers, StripeLocation, StripeMove};
pub use numbers::{LogicalStripe, PhysicalStripe, RegionId};
pub use shape::Shape;

#[cfg(test)]
mod tests;

//! Damage to a file system's medium, and the required results of checks, reads and repairs.

mod access_paths;
pub mod checksums;
mod image;
mod injector;
mod judge;

pub use access_paths::{AccessChecker, AccessOutcome, AccessPath};
pub use image::{ImageOptions, MetadataRange, PopulatedImage, populate, populate_as};
pub use injector::{DamageInjector, DamageKind};
pub use judge::{DamageJudge, DamageVerdict, exercise};

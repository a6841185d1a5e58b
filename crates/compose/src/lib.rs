//! Composition of layers: a layer in the role of a device below another one, and the small layers
//! that are made for composition.
//!
//! [`NestedLayer`] gives a layer the interface of a device ([`frit_core::BlockDevice`]). The
//! composers each serve requests from one or more devices: [`mod@concat`], [`stripe`], [`mirror`],
//! [`thin`], [`compress`], [`segments`], [`delay`], [`host_link`], [`dram_cache`],
//! [`flaky`], [`record`]. A composer implements [`Composer`], and
//! [`Composed`] gives it the interfaces of a layer. [`tree::Tree`] gives the parameters of all layers
//! of a stack paths.
//!
//! It is not: a place for the design of a stack. `frit-stack` reads which layer is below which.

pub mod composed;
pub mod compress;
pub mod concat;
mod deferral;
pub mod delay;
pub mod devices;
pub mod dram_cache;
pub mod flaky;
pub mod host_link;
mod locked;
pub mod mirror;
pub mod nested;
mod parts;
pub mod planted;
pub mod record;
pub mod segments;
pub mod sizing;
pub mod slot;
pub mod stripe;
mod table;
#[cfg(test)]
mod testing;
pub mod thin;
pub mod tree;

pub use composed::{Base, Composed, Composer};
pub use devices::Devices;
pub use nested::NestedLayer;
pub use slot::Slot;
pub use tree::Tree;

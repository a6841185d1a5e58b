//! Nameless writes: a device that chooses the places of blocks and returns their addresses (Zhang et al.,
//! FAST 2012), in the split design of the OpenSSD prototype (Saxena et al., "Getting Real: Lessons in
//! Transitioning Research Simulations into Hardware Systems", FAST 2013, section 3.4).
//!
//! [`HostFtl`] is the device with its interface, [`frit_core::NamelessDevice`]. [`Nameless`] is a block
//! volume over it: a map from logical pages to physical addresses stands for a file system, so that
//! traces run. It uses the device as a file system does. Contents are written without a name, the map is
//! metadata in virtual blocks, and migrations change its entries.
//!
//! `docs/reference/nameless.md` is the manual.
//!
//! | file | subject |
//! |---|---|
//! | `config`, `params` | user configuration; its list |
//! | `host_ftl` | the device |
//! | `layer` | state of the volume, and its block interface |
//! | `owner_map` | the map from logical pages to physical addresses |
//! | `read`, `write`, `discard` | reads; request queues; discards |
//! | `release` | migrations, and blocks that are no longer needed |
//! | `save` | the map in virtual blocks; flushes |
//! | `durable`, `check` | recovery and shutdown; consistency check |
//! | `precondition`, `view` | preconditioned volumes; metrics and residence |

mod check;
mod config;
mod discard;
mod durable;
mod host_ftl;
mod layer;
mod owner_map;
mod params;
mod precondition;
mod read;
mod release;
mod save;
#[cfg(test)]
mod tests;
mod view;
mod write;

pub use config::{NamelessConfig, NamelessRecovery};
pub use host_ftl::{DeviceBlocks, HostFtl};
pub use layer::Nameless;
pub(crate) use layer::waiting_limit;

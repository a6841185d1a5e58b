//! What the hardware is: rules, wear, bytes, data sheets, and the cost of a command.
//!
//! A medium ([`Nand`], [`Pcm`], [`Dram`]) takes a command at once: it checks its rules, moves the
//! bytes in its [`store`], counts, and emits the command into the caller's sink, which alone knows
//! time. What a command costs on an idle device is in [`timing`]; the numbers come from [`profile`]s.
//!
//! It is not: a queue, a scheduler or a translation layer. `docs/media.md` is the manual.

pub mod checksum;
pub mod disk;
mod dram;
pub mod hardware;
mod header;
pub mod memory;
pub mod nand;
pub mod pcm;
pub mod profile;
pub mod store;
mod stripe;
#[cfg(test)]
mod testing;
pub mod timing;

pub use disk::{Disk, DiskConfig};
pub use dram::{Dram, DramConfig};
pub use hardware::{Device, Hardware};
pub use nand::{Expected, Nand, NandConfig, NandFaults, NandGeometry, PlaneOps, SPARE_RECORD_BYTES, Spare};
pub use pcm::{Partition, Pcm, PcmConfig, PcmGeometry};
pub use profile::{MediumConfig, MediumSpec, Profile};
pub use store::{AnyStore, CustomStore, FileStore, MemoryStore, MmapStore, NoStore, Store};
pub use timing::{Curve, DramTiming, Model, NandTiming, PcmTiming, Phases};

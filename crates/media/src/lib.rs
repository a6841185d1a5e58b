//! Hardware models: rules, wear, contents, data sheets, and the cost of each command.
//!
//! A medium ([`Nand`], [`Pcm`], [`Dram`]) executes a command at once: it checks the rules of the
//! device, moves the bytes in its [`store`], counts the command, and emits it into the caller's
//! sink. Only the sink has a clock. [`timing`] computes the cost of a command on an idle device;
//! [`profile`]s contain the numbers.
//!
//! This crate contains no queue, no scheduler and no translation layer. `docs/reference/media.md`
//! is the manual.

pub mod checksum;
pub mod disk;
mod dram;
pub mod hardware;
mod header;
pub mod memory;
pub mod nand;
pub mod object;
pub mod pcm;
pub mod planted;
pub mod profile;
pub mod store;
mod stripe;
#[cfg(test)]
mod testing;
pub mod timing;

pub use disk::{Disk, DiskConfig};
pub use dram::{Dram, DramConfig};
pub use hardware::{Device, Hardware, NandLayout, NandPlace};
pub use nand::{
    CellKind, ExpectedPage, Nand, NandArray, NandCells, NandConfig, NandFaults, NandGeometry, NandSuspend,
    PageOrder, PageState, PageTimes, PlaneOps, SPARE_RECORD_BYTES, SlcArea, SlcMode, Spare, SuspendOps,
    SuspendTimes, Transfer,
};
pub use object::{ObjectConfig, ObjectMedium};
pub use pcm::{Partition, Pcm, PcmConfig, PcmGeometry};
pub use profile::{MediumConfig, MediumSpec, Profile};
pub use store::{
    AnyStore, CustomStore, DirectFile, DirectStore, FileAccess, FileStore, MemoryStore, MmapStore, NoStore,
    SigbusGuard, Store, prefetch_value,
};
pub use timing::{
    CommandCycles, DramTiming, LatencyCurve, NandTiming, ObjectTiming, PcmTiming, Phases, TimingModel,
};

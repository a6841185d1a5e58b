//! A zoned device: zones of erase blocks that are written in order and reset as a whole (NVMe Zoned
//! Namespace Command Set Specification 1.1; Bjørling et al., "ZNS: Avoiding the Block Interface Tax for
//! Flash-based SSDs", USENIX ATC 2021).
//!
//! A zone is striped over erase blocks, so the place of a page follows from its number, and the device
//! has no map of pages and no garbage collection. Each open zone has a write buffer. A program unit that
//! is not full at a flush, or when its zone is closed, is saved in a log of program units, and so is the
//! table of zones.
//!
//! `docs/reference/zns.md` is the manual.
//!
//! | file | subject |
//! |---|---|
//! | `config`, `params` | user configuration |
//! | `sizes` | numbers that follow from the geometry |
//! | `zone`, `buffer` | a zone; its write buffer |
//! | `layer`, `requests` | state of the layer, and its block interface |
//! | `write`, `read` | writes at the write pointer; reads |
//! | `manage`, `commands` | open, close, finish and reset, with their limits; commands of clients |
//! | `blocks`, `replace` | pool of erase blocks; replacement of blocks of a zone |
//! | `log`, `table` | the log of saved program units; the table of zones |
//! | `flush`, `durable`, `check` | flushes; durability interface; consistency check |
//! | `scan`, `recover` | contents of the NAND at a start; recovery |
//! | `view` | counters and metrics |

mod blocks;
mod buffer;
mod check;
mod commands;
mod config;
mod durable;
mod flush;
mod layer;
mod log;
mod manage;
mod params;
mod read;
mod recover;
mod replace;
mod requests;
mod scan;
mod sizes;
mod table;
#[cfg(test)]
mod tests;
mod view;
mod write;
mod zone;

pub use config::{ZnsConfig, ZnsRecovery};
pub use layer::Zns;

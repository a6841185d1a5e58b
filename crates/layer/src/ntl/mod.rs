//! NTL: address mapping for an SSD that consists of byte-addressable memory only (Kwon, "Address
//! Translation Layer for Byte-Addressable Non-Volatile Memory-Based Solid State Drives", IEEE
//! Access 2019).
//!
//! Pages lie on chips that work independently. A [`MappingPolicy`] selects the chip: by the page
//! number (static), any chip at the first write (dynamic), or one chip for a whole block. A first
//! write is *clean*. An update is *dirty*: it overwrites the page in place, or goes to a log of
//! clean pages and is copied to its home location when the log is merged. Rounds of parallel writes
//! are counted as in the paper.
//!
//! `docs/reference/ntl.md` is the manual, with a worked example.
//!
//! Files that other layers have under the same names:
//!
//! | file | subject |
//! |---|---|
//! | `config`, `params` | user configuration; parameters that change while the layer runs |
//! | `layout` | areas in the memory |
//! | `layer` | state of the layer, and its block interface |
//! | `read`, `write`, `discard` | reads, writes and flushes, discards |
//! | `stats`, `view` | counters; metrics and residence |
//! | `space`, `marks` | pages and records in the memory, and their fences; marks and tails |
//! | `header` | header in the memory, and the state of use |
//! | `halt`, `recover` | clean shutdown and its summary; recovery from the records |
//! | `durable`, `check` | durability interface; consistency check and repair |
//! | `precondition` | preconditioning: every page is written once |
//!
//! Files of NTL only:
//!
//! | file | subject |
//! |---|---|
//! | `mapping`, `placement` | home locations of pages; choice of the chip of a first write |
//! | `log`, `merge`, `buffer` | log of updates; its merge; the buffer before it |
//! | `rounds` | parallel writes, counted as in the paper |
//! | `checkpoint` | tables that an unprotected layer saves at a clean shutdown |
//! | `page_bitmap` | a bit for each page |

mod buffer;
mod check;
mod checkpoint;
mod config;
mod discard;
mod durable;
mod halt;
mod header;
mod layer;
mod layout;
mod log;
mod mapping;
mod marks;
mod merge;
mod page_bitmap;
mod params;
mod placement;
mod precondition;
mod read;
mod recover;
mod rounds;
mod space;
mod stats;
#[cfg(test)]
mod tests;
mod view;
mod write;

pub use config::{LogBuffer, LogKind, MergeUnit, NtlConfig, Protect};
pub use layer::Ntl;
pub use mapping::{MappingKind, MappingPolicy, Mappings};
pub use placement::ChipPlacement;
pub use rounds::{RoundFlag, RoundScope};

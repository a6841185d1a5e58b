//! HFSL: a host-side layer that fuses PCM and NAND by software-defined methods and policies.
//!
//! Source: Li et al., *A user-visible solid-state storage system with software-defined fusion methods
//! for PCM and NAND flash*, J. Syst. Archit. 2016. Sections are named where they are implemented;
//! `docs/reference/hfsl.md` lists what the paper leaves open and the reading that is implemented.
//!
//! Files that other layers have under the same names:
//!
//! | file | subject |
//! |---|---|
//! | `config`, `params` | user configuration; parameters that change while the layer runs |
//! | `layout` | sizes of the volume, and the areas in PCM |
//! | `layer` | state of the layer, and its block interface |
//! | `read`, `stats`, `view` | reads from either medium; counters; metrics and residence |
//! | `header` | header in PCM, state of use, sequence numbers |
//! | `halt`, `recover` | clean shutdown; recovery from the contents of the media |
//! | `durable`, `check` | durability interface; consistency check |
//! | `precondition` | preconditioning: full volumes and the steady state |
//!
//! Files of HFSL only:
//!
//! | file | subject |
//! |---|---|
//! | `entry`, `mapping`, `flush_map` | map entry; mapping table; map as of the last flush |
//! | `pcm` | sub-page slots, descriptors, regions |
//! | `route`, `placement`, `heat` | choice of the medium of a write, and its policies |
//! | `to_pcm`, `to_nand` | writes of a page to PCM and to NAND |
//! | `destage`, `buffer` | destaging of pages from PCM to NAND, and its policies |
//! | `read_buffer` | the DRAM read buffer |
//! | `atomic`, `redo` | atomic updates of the pages (below 4 KiB) of one 4 KiB block; redo records |
//! | `repair` | repair of map entries that a check found |
//! | `raw` | access by physical address |

mod atomic;
pub mod buffer;
mod check;
mod config;
mod destage;
mod durable;
mod entry;
mod flush_map;
mod halt;
mod header;
pub mod heat;
mod layer;
mod layout;
mod mapping;
mod params;
mod pcm;
pub mod placement;
mod precondition;
mod raw;
mod read;
mod read_buffer;
mod recover;
mod redo;
mod repair;
mod route;
mod stats;
mod to_nand;
mod to_pcm;
mod view;

#[cfg(test)]
pub(crate) mod tests;

pub use config::{FusionMethod, HfslConfig, MapPersist, SswCompare};
pub use entry::{MapEntry, PageLocation};
pub use layer::Hfsl;

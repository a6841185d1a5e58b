//! A disk behind an SSD, cached by a set-associative manager after Flashcache (Srinivasan, Facebook,
//! 2010–2013: `doc/flashcache-doc.txt` and `doc/flashcache-sa-guide.txt` of its sources).
//!
//! The SSD is any block device. The host has the map of the cached blocks, and keeps it on the SSD in
//! metadata blocks, which are written when a block becomes dirty or clean. After a crash only dirty
//! blocks are recovered.
//!
//! `docs/reference/flashcache.md` is the manual.
//!
//! | file | subject |
//! |---|---|
//! | `config`, `params` | user configuration; parameters that change while the layer runs |
//! | `layout`, `sector` | places on the SSD; contents of a header and of a metadata sector |
//! | `sets` | the map: sets of slots, flags, order of replacement |
//! | `layer` | state of the layer, and its block interface |
//! | `read`, `write` | reads; writes and discards |
//! | `clean` | writeback of dirty blocks, and their change to clean |
//! | `metadata` | writes of metadata, commits, flushes |
//! | `durable`, `recover`, `check` | durability interface and shutdown; recovery; check of the metadata |
//! | `precondition`, `view` | preconditioned volumes; metrics and residence |

mod check;
mod clean;
mod config;
mod durable;
mod layer;
mod layout;
mod metadata;
mod params;
mod precondition;
mod read;
mod recover;
mod sector;
mod sets;
#[cfg(test)]
mod tests;
mod view;
mod write;

pub use config::{FlashcacheConfig, FlashcacheMode, SetPolicy};
pub use layer::Flashcache;

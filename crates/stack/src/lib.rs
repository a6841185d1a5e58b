//! Reads and checks a stack in TOML, and composes the layer and its media.
//!
//! A file has media (`[media.<name>]`), layers (a table each, such as `[hfsl]`) and an engine
//! (`[engine]`). [`Stack::load`] reads the file and applies overrides in the form of `--set`. All
//! errors are reported at once, each with its line ([`StackError`]). [`Stack::build`] composes the
//! layer and its media for any sink, with or without stored bytes.
//!
//! The crate does not define defaults or rules of media and layers; the media and layers do.
//! `docs/reference/stacks.md` is the manual.

mod arrays;
mod build;
mod builtin;
mod canonical;
mod decode;
mod engine;
mod error;
mod keys;
pub mod layers;
mod load;
mod media;
mod namespaces;
mod objects;
mod order;
mod read;
mod recordings;
mod roles;
mod set;
mod sizing;
mod stack;
mod stores;
mod summary;
mod tree;

pub use build::BuiltStack;
pub use builtin::{Builtin, builtins};
pub use canonical::StackIdentity;
pub use engine::{EngineConfig, EngineKind};
pub use error::{Problem, Result, StackError};
pub use frit_compose::record;
pub use media::StackMedium;
pub use namespaces::Namespace;
pub use sizing::sized;
pub use stack::{Below, Layer, Stack};
pub use stores::{Bytes, StoreOpener};
pub use summary::{EngineSummary, LayerSummary, MediumSummary, ParameterSummary, StackSummary, ValueSummary};

//! A TOML description, checked as a whole, and the stack that it composes.
//!
//! A file has media (`[media.<name>]`), layers (a table each, such as `[hfsl]`) and an engine
//! (`[engine]`). [`Stack::load`] reads it, with overrides as `--set` gives them; everything that is
//! wrong is reported at once, each with its line ([`StackError`]). [`Stack::build`] makes the layer with
//! its media, for any sink, with or without bytes.
//!
//! It is not: a place for defaults or rules of media and layers; those are theirs. `docs/stacks.md`
//! is the manual.

mod build;
mod builtin;
mod canonical;
mod decode;
mod engine;
mod error;
pub mod layers;
mod media;
mod read;
mod roles;
mod set;
mod stack;
mod summary;
mod tree;

pub use build::{Built, Bytes, Opener};
pub use builtin::{Builtin, builtins};
pub use canonical::Identity;
pub use engine::{EngineConfig, EngineKind};
pub use error::{Problem, Result, StackError};
pub use media::Medium;
pub use stack::{Layer, Stack};
pub use summary::{EngineSummary, LayerSummary, MediumSummary, ParameterSummary, Summary, ValueSummary};

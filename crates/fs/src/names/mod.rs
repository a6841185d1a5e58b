//! Operations on names: lookup, creation, removal and renaming.

mod adopt;
mod command;
mod create;
mod enable;
mod link;
mod lookup;
mod remove;
mod rename;
pub(crate) mod target;

pub(crate) use lookup::LOOKUP_RETRIES_MAX;

//! Torture of block layers: faults, a power cut at every media operation, and oracles that verify
//! the results.
//!
//! A run of a layer is recorded once, over stores that log every write with its command
//! ([`access_log`], [`recording_sink`]). The recording is an order of durability ([`graph`]), which
//! is cut everywhere ([`cut`]). Each cut gives an image of the media ([`crash_image`]), which is
//! recovered, read, checked, recovered again and used ([`oracle`]). A [`campaign`] does this for many
//! workloads.

pub mod access_log;
mod at_rest;
pub mod campaign;
pub mod case;
pub mod command_set;
pub mod crash_image;
pub mod cut;
mod damage;
pub mod fault;
pub mod graph;
pub mod history;
mod host_errors;
pub mod medium;
pub mod mirror_sources;
pub mod nand_layout;
pub mod options;
pub mod oracle;
pub mod page_cache;
mod power_cuts;
pub mod recording;
pub mod recording_sink;
pub mod replay;
pub mod report;
pub mod self_describing;
mod shrink;
pub mod small_stack;
pub mod target;
pub mod violation;
mod wear;
pub(crate) mod work_item;
pub mod workload;
pub mod zoned;

//! Control of a volume while it is served, over a Unix socket: the management software of the HFSL
//! paper (section 2.6).
//!
//! A request ([`wire`]) arrives at the socket ([`ControlServer`]), is authorized by the user of the
//! client ([`Rights`]), and is answered by a [`ControlTarget`], the served device. A change of
//! several parameters is atomic ([`apply`]) and is appended to the volume's log of changes
//! ([`ChangeLog`]).

mod apply;
mod bytes;
mod cache_commands;
mod change_log;
mod client;
mod control_target;
mod device_commands;
mod hint_change;
mod isp;
mod nameless_commands;
mod param_key;
mod rights;
mod server;
mod socket;
pub mod wire;
mod zoned_commands;

pub use apply::apply;
pub use bytes::{peek, poke};
pub use change_log::{ChangeAuthor, ChangeLog};
pub use client::{Client, ClientError};
pub use control_target::{ControlTarget, DeviceTarget, VolumeInfo, params};
pub use hint_change::{HintChange, apply_saved};
pub use isp::{Queries, RESULT_BYTES_MAX};
pub use param_key::full_key;
pub use rights::{PeerCredentials, Rights, raw_names};
pub use server::{ControlOptions, ControlServer};
pub(crate) use socket::listen;
pub use wire::{
    ControlOperation, HintList, ListedRange, Param, ParamChange, RawMedium, RefusalKind, Refused, Setting,
    Success,
};
pub use zoned_commands::zones;

/// Name of the control socket in a volume's directory.
pub const SOCKET: &str = "ctl.sock";

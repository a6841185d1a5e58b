//! Control of a volume while it is served, over a Unix socket: the management software of the HFSL
//! paper (section 2.6).
//!
//! A request ([`wire`]) arrives at the socket ([`Server`]), is authorized by the user of the client
//! ([`Rights`]), and is answered by a [`Panel`], the served device. A change of several parameters
//! is atomic ([`apply`]) and is appended to the volume's log of changes ([`Changes`]).

mod apply;
mod changes;
mod client;
mod panel;
mod rights;
mod server;
mod socket;
pub mod wire;

pub use apply::apply;
pub use changes::{Changes, Who};
pub use client::{Client, ClientError};
pub use panel::{About, DevicePanel, Panel, params};
pub use rights::{Caller, Rights};
pub use server::{Options, Server};
pub use wire::{Change, Do, Done, Param, Refusal, Refused, Setting};

/// Name of the control socket in a volume's directory.
pub const SOCKET: &str = "ctl.sock";

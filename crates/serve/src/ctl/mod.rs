//! Control while clients run: the management software of the HFSL paper (section 2.6), over a Unix
//! socket.
//!
//! A request ([`wire`]) comes in over the socket ([`Server`]), is allowed or not by who asks
//! ([`Rights`]), and is answered by a [`Panel`]: the served device. A change of several parameters is
//! made as a whole ([`apply`]) and written to the volume's list of changes ([`Changes`]).

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

/// The name of the control socket in a volume's directory.
pub const SOCKET: &str = "ctl.sock";

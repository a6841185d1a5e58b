//! The server side of the Network Block Device protocol.
//!
//! [`Connection`] is the protocol without a socket: it consumes and produces bytes. [`NbdServer`]
//! adds sockets and threads. `docs/guide/serve.md` describes the flags announced to clients and the
//! guarantee behind each.

mod adaptive_spin;
mod address;
mod connection;
mod execute;
mod export;
pub mod fuzz;
mod handshake;
mod input;
mod listen;
mod output;
mod paced;
mod reply;
mod reply_writer;
mod request;
mod server;
mod status;
mod stream;
#[cfg(test)]
mod tests;
pub mod wire;
mod workers;

pub use address::Address;
pub use connection::{Advance, Connection, Next};
pub use export::{Export, Exports};
pub use handshake::{Context, Negotiated};
pub use output::Output;
pub use request::{InvalidRequest, Limits, NbdCommand, NbdRequest};
pub use server::{NbdServer, ServerOptions};

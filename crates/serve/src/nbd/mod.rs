//! The Network Block Device protocol, as servers speak it.
//!
//! [`Connection`] is the protocol without a socket: it is fed bytes and yields bytes. [`Server`] puts
//! sockets and threads around it. What is announced to clients, and what each flag promises, is in
//! `docs/serve.md`.

mod address;
mod connection;
mod execute;
mod export;
pub mod fuzz;
mod handshake;
mod input;
mod listen;
mod outlet;
mod output;
mod paced;
mod patience;
mod reply;
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
pub use export::Export;
pub use handshake::{Agreed, Context};
pub use output::Output;
pub use request::{Command, Limits, Request, Wrong};
pub use server::{Server, ServerOptions};

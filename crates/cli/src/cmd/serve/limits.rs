//! Limits on what NBD clients may take: connections, memory, time.

use frit_core::size;
use frit_serve::nbd::ServerOptions;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::time::Duration;

/// File descriptors that a server uses beside those of its NBD clients.
const DESCRIPTORS_BESIDE: u64 = 192;

/// The flags.
#[derive(clap::Args, Debug)]
pub(super) struct LimitArgs {
    /// NBD connections at a time. When all are taken, a new client gets the place of one that has not chosen
    /// an export yet, or of one that has been idle (see --evict-idle).
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u16).range(1..=4096))]
    connections: u16,
    /// Memory that large requests of all NBD clients may take together, beyond about 330 KiB a connection;
    /// where it is used up, requests are carried out in pieces.
    #[arg(long, value_name = "BYTES", default_value = "128M", value_parser = size::parse)]
    buffers: u64,
    /// Seconds that an NBD client has to choose an export.
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=86400))]
    handshake_timeout: u32,
    /// Seconds that an NBD client has to send the rest of a request that it has begun, and to take replies; one
    /// more for each 64 KiB. Between requests it may be silent for ever.
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=86400))]
    client_timeout: u32,
    /// Seconds after which an idle NBD connection makes room for a new one when all are taken, longest idle first, from
    /// the client with most connections (0: never).
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = clap::value_parser!(u32).range(0..=31_536_000))]
    evict_idle: u32,
}

impl LimitArgs {
    /// The options of a server; so many descriptors are made possible.
    pub(super) fn options(&self) -> ServerOptions {
        let seconds = |s: u32| Duration::from_secs(s.into());
        allow_descriptors(u64::from(self.connections) + DESCRIPTORS_BESIDE);
        ServerOptions {
            connections_max: usize::from(self.connections),
            buffers_max: usize::try_from(self.buffers).unwrap_or(usize::MAX),
            handshake_max: seconds(self.handshake_timeout),
            request_max: seconds(self.client_timeout),
            idle_evict: (self.evict_idle > 0).then(|| seconds(self.evict_idle)),
            ..ServerOptions::default()
        }
    }
}

/// Raises the limit on open files as far as the system lets it; a client for whom there is no descriptor is
/// told of by the server.
fn allow_descriptors(needed: u64) {
    let limit = getrlimit(Resource::Nofile);
    let most = limit.maximum.unwrap_or(u64::MAX);
    if limit.current.is_some_and(|now| now < needed) {
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(needed.min(most)), ..limit });
    }
}

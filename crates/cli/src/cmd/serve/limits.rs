//! Limits on the resources of NBD clients: connections, memory, time.

use frit_core::size;
use frit_serve::nbd::ServerOptions;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::time::Duration;

/// Number of file descriptors that a server uses beside those of its NBD clients.
const DESCRIPTORS_BESIDE: u64 = 192;

/// Command-line options of the limits.
#[derive(clap::Args, Debug)]
pub(super) struct LimitArgs {
    /// Maximum number of NBD connections. When all are in use, a new client replaces one that has
    /// not chosen an export yet, or one that has been idle (see --evict-idle).
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u16).range(1..=4096))]
    connections: u16,
    /// Memory limit of large requests of all NBD clients together, beyond about 330 KiB a
    /// connection; above it, requests are executed in pieces.
    #[arg(long, value_name = "BYTES", default_value = "128M", value_parser = size::parse)]
    buffers: u64,
    /// Seconds until an NBD client must have chosen an export.
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=86400))]
    handshake_timeout: u32,
    /// Seconds until an NBD client must have sent the rest of a request, or taken a reply; one more
    /// for each 64 KiB. Between requests there is no limit.
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=86400))]
    client_timeout: u32,
    /// Seconds after which an idle NBD connection may be closed for a new one when all are in use:
    /// longest idle first, from the client with most connections (0: never).
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = clap::value_parser!(u32).range(0..=31_536_000))]
    evict_idle: u32,
}

impl LimitArgs {
    /// Returns the options of a server, after raising the limit on open files accordingly.
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

/// Raises the limit on open files as far as the system permits. The server reports a client for
/// which no descriptor is available.
fn allow_descriptors(needed: u64) {
    let limit = getrlimit(Resource::Nofile);
    let most = limit.maximum.unwrap_or(u64::MAX);
    if limit.current.is_some_and(|now| now < needed) {
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(needed.min(most)), ..limit });
    }
}

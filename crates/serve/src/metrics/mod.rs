//! What a server shows: one value ([`Stat`]) for tables and JSON, and the same as metrics.

mod http;
mod latency;
mod prometheus;
mod stat;

pub use http::Server;
pub use prometheus::text;
pub use stat::*;

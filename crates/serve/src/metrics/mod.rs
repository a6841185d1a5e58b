//! Metrics of a server: one snapshot ([`Stat`]) for tables and JSON, and its OpenMetrics form.

mod http;
mod latency;
mod prometheus;
mod stat;

pub use http::MetricsServer;
pub use prometheus::text;
pub use stat::*;

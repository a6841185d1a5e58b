//! Metrics of a server: one snapshot ([`Stat`]) for tables and JSON, and its OpenMetrics form.

mod address;
mod http;
mod latency;
mod prometheus;
mod request;
mod socket;
mod stat;

pub use address::MetricsAddress;
pub use http::{MetricsOptions, MetricsServer};
pub use prometheus::text;
pub use request::MetricsHost;
pub use stat::*;

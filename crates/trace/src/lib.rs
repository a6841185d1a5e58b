//! Workloads: block traces in the formats people have them in, generators, statistics.
//!
//! [`Workload::open`] takes a path, `-`, or `gen:NAME,key=value,…` and delivers [`Request`]s in batches,
//! streaming, in constant memory. The format is told from the content ([`Reading`] says how, and what
//! had to be assumed), compression and tar are seen through, what cannot be understood is counted and
//! shown ([`Problems`]). [`Scan`] reads a workload once for its statistics and its identity; [`Fit`] fits it to a volume.
//!
//! It is not: a replayer. Nothing here knows a layer, a medium or an engine.

pub mod devices;
pub mod error;
pub mod fit;
pub mod formats;
pub mod generate;
pub mod identity;
mod input;
pub mod options;
mod pages;
pub mod problems;
pub mod reading;
pub mod recognise;
pub mod request;
pub mod scan;
mod stream;
mod text;
pub mod workload;
pub mod write;

pub use devices::Layout;
pub use error::{Error, Result};
pub use fit::Fit;
pub use formats::csv::Columns;
pub use formats::{FORMATS, Format};
pub use identity::{Identity, Kind};
pub use options::{Devices, Event, Options, ReadDigit, SizeUnit, TimeUnit};
pub use problems::{Malformed, Problems};
pub use reading::{Fact, How, Reading};
pub use request::{ReqOp, Request};
pub use scan::Scan;
pub use workload::Workload;

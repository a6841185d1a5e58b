//! Workloads: block traces in common formats, generators, and statistics.
//!
//! [`Workload::open`] takes a path, `-`, or `gen:NAME,key=value,…` and delivers [`Request`]s in
//! batches, as a stream in constant memory. The format is recognised from the content; [`Reading`]
//! records how, and what had to be assumed. Compression and tar are transparent. Lines that cannot
//! be parsed are counted and shown ([`Problems`]). [`Scan`] reads a workload once for its
//! statistics and its identity; [`Fit`] fits it to a volume.
//!
//! The crate does not replay workloads, and does not depend on layers, media or engines.

pub mod command;
pub mod devices;
pub mod error;
pub mod fit;
pub mod formats;
pub mod generate;
pub mod identity;
mod input;
pub mod measured;
pub mod options;
mod pages;
pub mod problems;
pub mod reading;
pub mod recognise;
pub mod request;
pub mod scan;
mod source;
mod stream;
mod text;
pub mod workload;
pub mod write;

pub use command::{CommandSet, DeviceCommand};
pub use devices::DeviceLayout;
pub use error::{Error, Result};
pub use fit::Fit;
pub use formats::{FORMATS, TraceFormat};
pub use identity::{WorkloadIdentity, WorkloadKind};
pub use measured::{MeasuredRequest, MeasuredTrace};
pub use options::{
    BlktraceEvent, Columns, DeviceMapping, DeviceRange, Options, ReadDigit, SizeUnit, TimeUnit,
};
pub use problems::{MalformedLine, Problems};
pub use reading::{Fact, FactSource, Reading};
pub use request::{ReqOp, Request, SectorCut, requests_for};
pub use scan::Scan;
pub use workload::Workload;

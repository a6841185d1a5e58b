//! Source of the requests of a workload: a trace or a generator.

use crate::generate::{GENERATOR_PREFIX, Generator};
use crate::identity::{WorkloadIdentity, WorkloadKind};
use crate::stream::TraceStream;
use crate::{DeviceMapping, Error, Options, Reading, Request, Result};
use std::path::Path;

/// Workload specification of standard input.
pub const STDIN: &str = "-";

pub(crate) enum RequestSource {
    Trace(Box<TraceStream>),
    Generated(Box<Generator>),
}

impl RequestSource {
    pub(crate) fn open(spec: &str, options: &Options, hash: bool) -> Result<RequestSource> {
        Ok(match spec.strip_prefix(GENERATOR_PREFIX) {
            Some(g) => RequestSource::Generated(Box::new(Generator::parse(g)?)),
            None => RequestSource::Trace(Box::new(TraceStream::open(spec, options, hash)?)),
        })
    }

    pub(crate) fn fill(&mut self, out: &mut Vec<Request>) -> Result<bool> {
        match self {
            RequestSource::Trace(s) => s.fill(out),
            RequestSource::Generated(g) => Ok(g.fill(out)),
        }
    }

    pub(crate) fn identity(&self, spec: &str, sha256: Option<String>) -> WorkloadIdentity {
        match self {
            RequestSource::Trace(_) => {
                let file = Path::new(spec).file_name().map(|n| n.to_string_lossy().into_owned());
                let name =
                    if spec == STDIN { "standard input".into() } else { file.unwrap_or_else(|| spec.into()) };
                WorkloadIdentity { name, kind: WorkloadKind::Real, sha256, generator: None, version: None }
            }
            RequestSource::Generated(g) => WorkloadIdentity {
                name: g.name().into(),
                kind: WorkloadKind::Generated,
                sha256: None,
                generator: Some(g.canonical()),
                version: Some(crate::generate::VERSION),
            },
        }
    }

    pub(crate) fn devices(&self) -> &[String] {
        match self {
            RequestSource::Trace(s) => s.devices(),
            RequestSource::Generated(_) => &[],
        }
    }

    pub(crate) fn reading(&self) -> Reading {
        match self {
            RequestSource::Trace(s) => s.reading(),
            RequestSource::Generated(g) => g.reading(),
        }
    }
}

/// Checks, at the end of a trace, that the requested device occurred.
pub(crate) fn check_only(source: &RequestSource, devices: &DeviceMapping, spec: &str) -> Result<()> {
    match devices {
        DeviceMapping::Only(name) if !source.devices().iter().any(|d| d == name) => Err(Error::Devices {
            name: source.identity(spec, None).name,
            why: format!("no request goes to a device '{name}'; devices: {}", source.devices().join(", ")),
        }),
        _ => Ok(()),
    }
}

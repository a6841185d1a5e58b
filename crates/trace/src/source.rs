//! Source of the requests of a workload: a trace or a generator.

use crate::generate::{GENERATOR_PREFIX, Generator};
use crate::identity::{WorkloadIdentity, WorkloadKind};
use crate::stream::TraceStream;
use crate::{DeviceMapping, Error, Options, Problems, Reading, Request, Result, SectorCut};
use std::path::Path;

/// Workload specification of standard input.
pub const STDIN: &str = "-";

pub(crate) struct RequestSource {
    pub(crate) kind: SourceKind,
    /// Requests that begin or end inside a sector are widened.
    whole_sectors: bool,
    /// Number of requests that were widened by the option.
    widened: u64,
}

pub(crate) enum SourceKind {
    Trace(Box<TraceStream>),
    Generated(Box<Generator>),
}

impl RequestSource {
    pub(crate) fn open(spec: &str, options: &Options, hash: bool) -> Result<RequestSource> {
        let kind = match spec.strip_prefix(GENERATOR_PREFIX) {
            Some(g) => SourceKind::Generated(Box::new(Generator::parse(g)?)),
            None => SourceKind::Trace(Box::new(TraceStream::open(spec, options, hash)?)),
        };
        Ok(RequestSource::of(kind, options))
    }

    pub(crate) fn of(kind: SourceKind, options: &Options) -> RequestSource {
        RequestSource { kind, whole_sectors: options.whole_sectors, widened: 0 }
    }

    pub(crate) fn fill(&mut self, out: &mut Vec<Request>) -> Result<bool> {
        let more = match &mut self.kind {
            SourceKind::Trace(s) => s.fill(out)?,
            SourceKind::Generated(g) => g.fill(out),
        };
        if self.whole_sectors {
            for r in out.iter_mut().filter(|r| !r.is_whole()) {
                r.cut = SectorCut::NONE;
                self.widened += 1;
            }
        }
        Ok(more)
    }

    /// Returns the problems so far.
    pub(crate) fn problems(&self) -> Problems {
        let mut problems = match &self.kind {
            SourceKind::Trace(s) => s.problems().clone(),
            SourceKind::Generated(_) => Problems::default(),
        };
        problems.widened += self.widened;
        problems
    }

    pub(crate) fn identity(&self, spec: &str, sha256: Option<String>) -> WorkloadIdentity {
        match &self.kind {
            SourceKind::Trace(_) => {
                let file = Path::new(spec).file_name().map(|n| n.to_string_lossy().into_owned());
                let name =
                    if spec == STDIN { "standard input".into() } else { file.unwrap_or_else(|| spec.into()) };
                WorkloadIdentity { name, kind: WorkloadKind::Real, sha256, generator: None, version: None }
            }
            SourceKind::Generated(g) => WorkloadIdentity {
                name: g.name().into(),
                kind: WorkloadKind::Generated,
                sha256: None,
                generator: Some(g.canonical()),
                version: Some(crate::generate::VERSION),
            },
        }
    }

    pub(crate) fn devices(&self) -> &[String] {
        match &self.kind {
            SourceKind::Trace(s) => s.devices(),
            SourceKind::Generated(_) => &[],
        }
    }

    pub(crate) fn reading(&self) -> Reading {
        match &self.kind {
            SourceKind::Trace(s) => s.reading(),
            SourceKind::Generated(g) => g.reading(),
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

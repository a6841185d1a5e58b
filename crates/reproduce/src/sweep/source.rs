//! Sources of workloads: recordings in a directory, named files, bundled recordings, generators.

use super::Chunks;
use super::packed_workload::PackedReader;
use crate::builtin::BUNDLED;
use crate::describe::WorkloadSpec;
use crate::{Error, Result};
use frit_trace::identity::WorkloadKind;
use frit_trace::workload::GENERATOR_PREFIX;
use frit_trace::{Options, Scan, Workload};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Locations of recordings.
#[derive(Clone, Default, Debug)]
pub struct Traces {
    /// Base directory of the paths in sweeps; `None`: only bundled recordings are available.
    pub dir: Option<PathBuf>,
    /// Files given for a workload, by name.
    pub named: BTreeMap<String, PathBuf>,
}

/// Result of looking for a workload.
#[derive(Debug)]
pub enum WorkloadLookup {
    /// The workload is available.
    Available(Box<AvailableWorkload>),
    /// The workload is missing, with the reason.
    Missing(String),
}

/// An available workload.
#[derive(Debug)]
pub struct AvailableWorkload {
    spec: String,
    options: Options,
    scan: Option<Scan>,
    /// Recorded or generated.
    pub kind: WorkloadKind,
    /// Identity in reports: the file's hash or the generator's full specification.
    pub identity: String,
    /// Temporary directory that holds a bundled recording.
    _dir: Option<tempfile::TempDir>,
}

impl Traces {
    /// Looks for a workload. A recording is read once, for its hash and devices.
    ///
    /// # Errors
    /// A recording exists and cannot be read; a generator is invalid.
    pub fn find(&self, w: &WorkloadSpec, limit: Option<u64>) -> Result<WorkloadLookup> {
        let mut options = Options { limit, whole_pages: w.whole_pages, ..Options::default() };
        options.time_unit = w.time_unit.as_deref().map(str::parse).transpose()?;
        options.size_unit = w.size_unit.as_deref().map(str::parse).transpose()?;
        if let Some(generator) = &w.generator {
            return Ok(WorkloadLookup::Available(Box::new(AvailableWorkload::generated(
                generator, options,
            )?)));
        }
        if let Some(path) = self.named.get(&w.name) {
            // A file of the user may be in another format: its units are detected again.
            let options = Options { limit, whole_pages: w.whole_pages, ..Options::default() };
            return Ok(WorkloadLookup::Available(Box::new(AvailableWorkload::recorded(
                path, options, None,
            )?)));
        }
        if let Some(name) = &w.bundled {
            return unpack(name, options);
        }
        let file = w.file.as_deref().unwrap_or_default();
        let Some(dir) = &self.dir else {
            return Ok(WorkloadLookup::Missing(format!("no directory of traces for {file}")));
        };
        let path = dir.join(file);
        if !path.is_file() {
            return Ok(WorkloadLookup::Missing(format!("{} is not there", path.display())));
        }
        Ok(WorkloadLookup::Available(Box::new(AvailableWorkload::recorded(&path, options, None)?)))
    }
}

/// Unpacks a bundled recording into a temporary directory.
fn unpack(name: &str, options: Options) -> Result<WorkloadLookup> {
    let Some(b) = BUNDLED.iter().find(|b| b.name == name) else {
        return Ok(WorkloadLookup::Missing(format!("{name} does not come with frit")));
    };
    let failed = |source| Error::File { path: name.to_owned(), source };
    let dir = tempfile::tempdir().map_err(failed)?;
    let path = dir.path().join(name);
    frit_core::files::write(&path, b.bytes).map_err(failed)?;
    Ok(WorkloadLookup::Available(Box::new(AvailableWorkload::recorded(&path, options, Some(dir))?)))
}

impl AvailableWorkload {
    fn generated(generator: &str, options: Options) -> Result<AvailableWorkload> {
        let spec = format!("{GENERATOR_PREFIX}{generator}");
        let identity = Workload::open(&spec, &options)?.identity();
        let canonical = identity.generator.unwrap_or(identity.name);
        Ok(AvailableWorkload {
            spec,
            options,
            scan: None,
            kind: WorkloadKind::Generated,
            identity: canonical,
            _dir: None,
        })
    }

    fn recorded(path: &Path, options: Options, dir: Option<tempfile::TempDir>) -> Result<AvailableWorkload> {
        let spec = path.display().to_string();
        let scan = Scan::of(&spec, &options)?;
        let hash = scan.identity.sha256.clone().unwrap_or_default();
        let identity = format!("{}, sha256 {}", scan.identity.name, hash.get(..16).unwrap_or(&hash));
        Ok(AvailableWorkload {
            spec,
            options,
            scan: Some(scan),
            kind: WorkloadKind::Real,
            identity,
            _dir: dir,
        })
    }

    /// Returns `true` if some requests are marked as metadata.
    #[must_use]
    pub fn has_metadata(&self) -> bool {
        self.scan.as_ref().is_some_and(|s| s.metadata > 0)
    }

    /// Opens the unchanged requests.
    ///
    /// # Errors
    /// The input can no longer be read.
    pub fn open(&self) -> Result<Workload> {
        Ok(match &self.scan {
            Some(scan) => Workload::open_scanned(&self.spec, &self.options, scan)?,
            None => Workload::open(&self.spec, &self.options)?,
        })
    }

    /// Opens the requests in a packed address space, with or without the host's hints.
    ///
    /// # Errors
    /// The input can no longer be read.
    pub fn packed(&self, chunks: &Chunks, hints: bool) -> Result<Workload> {
        let reader = PackedReader::new(self.open()?, chunks.clone(), hints);
        Ok(Workload::from_reader("packed", Box::new(reader), &Options::default())?)
    }
}

//! A run from the caller's point of view: a stack is built, and a workload is run over it.

use crate::error::{Error, Result};
use crate::options::{RunOptions, WarmUpRequests};
use crate::report::{Report, StackId, WrappedAddresses};
use crate::request_log::RequestLog;
use crate::runner::{ProgressFn, Runner};
use frit_core::{HintRange, SECTOR_BYTES, Sink};
use frit_engine::{Event, InOrder};
use frit_stack::{Bytes, EngineKind, Stack};
use frit_trace::fit::CHUNK_BYTES;
use frit_trace::{Fit, Options, Scan, Workload};

/// A stack that is built and preconditioned, on its engine.
pub struct Session(Box<Runner>);

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session")
            .field("engine", &self.0.engine_name())
            .field("sectors", &self.sectors())
            .finish()
    }
}

impl Session {
    /// Builds a stack with its engine, and brings the volume into the initial state of
    /// `options.warm`.
    ///
    /// # Errors
    /// A stack that cannot be built or prepared.
    pub fn new(stack: &Stack, options: &RunOptions) -> Result<Session> {
        let config = stack.engine_config();
        let bytes = if options.verify { Bytes::Memory } else { Bytes::None };
        let built = stack.build(&bytes).map_err(Box::new)?;
        let (sink, names) = match config.kind {
            EngineKind::InOrder => (Sink::new(InOrder::new(&built.hardware)), ("in-order", None)),
            EngineKind::Event => {
                let engine = Event::new(&built.hardware, config.scheduler.clone());
                (Sink::new(engine), ("event", Some(config.scheduler_name())))
            }
        };
        Ok(Session(Box::new(Runner::new(sink, names, built, stack_id(stack), options)?)))
    }

    /// Returns the capacity of the volume, in sectors, to which a workload has to be fitted.
    #[must_use]
    pub fn sectors(&self) -> u64 {
        self.0.sectors()
    }

    /// Gives hints to the writes of ranges, in addition to the hints of the workload. A write whose
    /// pages have different hints is passed to the layer in parts.
    pub fn set_hints(&mut self, ranges: &[HintRange]) {
        self.0.set_hints(ranges);
    }

    /// Records the measured requests that the layers `record` of the stack receive, in their files.
    /// A file replaces an existing one at the end of the measurement.
    ///
    /// # Errors
    /// A file that cannot be created. Later errors of a file are in [`Report::records`].
    pub fn record_layers(&mut self) -> Result<()> {
        self.0.record_layers()
    }

    /// Runs requests that are not measured: all of the workload, or at most `limit`. Returns their
    /// number.
    ///
    /// # Errors
    /// A workload or a stack that fails.
    pub fn warm(
        &mut self,
        workload: &mut Workload,
        limit: Option<u64>,
        watch: ProgressFn<'_>,
    ) -> Result<u64> {
        self.0.warm(workload, limit, watch)
    }

    /// Prepares the session for another workload. Must be called between two workloads.
    pub fn next_workload(&mut self) {
        self.0.next_workload();
    }

    /// Notes the address space of a trace that is folded onto the volume, for the report.
    fn note_wrapped(&mut self, wrapped: Option<WrappedAddresses>) {
        self.0.wrapped = wrapped;
    }

    /// Runs the rest of the workload, verifies the contents if the option is set, and returns the
    /// report.
    ///
    /// # Errors
    /// A workload or a stack that fails, and a workload without remaining requests. Mismatches are
    /// not errors: they are in [`Report::verification`].
    pub fn measure(self, workload: &mut Workload, watch: ProgressFn<'_>) -> Result<Report> {
        self.measure_logged(workload, watch, None)
    }

    /// Like [`Session::measure`], and writes the times of each request to a log.
    ///
    /// # Errors
    /// As for [`Session::measure`]. Errors of the log are reported by [`RequestLog::commit`].
    pub fn measure_logged(
        self,
        workload: &mut Workload,
        watch: ProgressFn<'_>,
        log: Option<&mut RequestLog>,
    ) -> Result<Report> {
        self.0.measure(workload, watch, log)
    }
}

fn stack_id(stack: &Stack) -> StackId {
    let id = stack.identity();
    StackId { name: id.name, sha256: id.sha256, toml: id.text, volume_bytes: 0 }
}

/// Runs a workload, which must have been fitted to the volume, over a stack.
///
/// A warm-up by a number of requests is taken from the start of the workload. [`WarmUpRequests::Whole`] and
/// [`WarmUpRequests::Share`] need the workload twice, or its length, and are refused: see [`Job`].
///
/// # Errors
/// A stack that cannot be built or fails, a workload that fails.
pub fn run(stack: &Stack, workload: &mut Workload, options: &RunOptions) -> Result<Report> {
    let mut session = Session::new(stack, options)?;
    match options.warm.warm_up_requests {
        WarmUpRequests::None => {}
        WarmUpRequests::Requests(n) => {
            session.warm(workload, Some(n), &mut |_| {})?;
        }
        WarmUpRequests::Whole => return Err(Error::ReadOnce { name: workload.identity().name }),
        WarmUpRequests::Share(_) => {
            return Err(Error::UnknownLength { name: workload.identity().name });
        }
    }
    session.measure(workload, &mut |_| {})
}

/// A workload, given by its specification, that can be run over several stacks.
#[derive(Debug)]
pub struct Job {
    spec: String,
    options: Options,
    fit: Fit,
    scan: Option<Scan>,
    hints: Vec<HintRange>,
    records: bool,
}

/// Progress of a job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum JobProgress {
    /// Number of requests read so far in the scan of the workload for its identity and size.
    Scanned(u64),
    /// Number of requests served in the warm-up.
    Warmed(u64),
    /// Number of requests served in the measured part.
    Served(u64),
}

impl Job {
    /// Opens a workload: a path, `-`, or `gen:NAME,key=value,…`. A trace file is read once, for its
    /// hash and its size.
    ///
    /// # Errors
    /// A workload that cannot be read.
    pub fn open(spec: &str, options: &Options, fit: Fit, watch: &mut dyn FnMut(JobProgress)) -> Result<Job> {
        let file = spec != "-" && !spec.starts_with(frit_trace::workload::GENERATOR_PREFIX);
        let scan = match file {
            true => Some(Scan::with_progress(spec, options, |n| watch(JobProgress::Scanned(n)))?),
            // Opened here only to report an invalid specification before a stack is built.
            false if spec != "-" => Workload::open(spec, options).map(|_| None)?,
            false => None,
        };
        Ok(Job { spec: spec.into(), options: options.clone(), fit, scan, hints: Vec::new(), records: false })
    }

    /// Gives hints to the writes of ranges in every run: see [`Session::set_hints`].
    #[must_use]
    pub fn with_hints(mut self, ranges: &[HintRange]) -> Job {
        self.hints = ranges.to_vec();
        self
    }

    /// Makes the recordings that a stack asks for in every run: see [`Session::record_layers`].
    #[must_use]
    pub fn with_records(self) -> Job {
        Job { records: true, ..self }
    }

    /// Returns the results of one pass over the trace; `None` for generators and standard input.
    #[must_use]
    pub fn scan(&self) -> Option<&Scan> {
        self.scan.as_ref()
    }

    /// Returns the number of requests, if it is known.
    #[must_use]
    pub fn requests(&self) -> Option<u64> {
        self.scan.as_ref().map(|s| s.requests)
    }

    /// Checks that the workload can be fitted to a volume of the given capacity in sectors.
    ///
    /// # Errors
    /// A trace that is too large. A generator that is too large is only detected during the run.
    pub fn check(&self, sectors: u64) -> Result<()> {
        if self.spec == "-" { Ok(()) } else { self.workload(sectors).map(drop) }
    }

    /// Runs the workload over a stack.
    ///
    /// # Errors
    /// As for [`run`]; a trace that does not fit the volume; a warm-up with a share of standard
    /// input, or with a second pass over it.
    pub fn run(
        &self,
        stack: &Stack,
        options: &RunOptions,
        watch: &mut dyn FnMut(JobProgress),
    ) -> Result<Report> {
        self.run_logged(stack, options, watch, None)
    }

    /// Like [`Job::run`], and writes the times of each measured request to a log.
    ///
    /// # Errors
    /// As for [`Job::run`]. Errors of the log are reported by [`RequestLog::commit`].
    pub fn run_logged(
        &self,
        stack: &Stack,
        options: &RunOptions,
        watch: &mut dyn FnMut(JobProgress),
        log: Option<&mut RequestLog>,
    ) -> Result<Report> {
        self.check_warm_up(options.warm.warm_up_requests)?;
        let mut session = Session::new(stack, options)?;
        session.set_hints(&self.hints);
        if self.records {
            session.record_layers()?;
        }
        let mut workload = self.workload(session.sectors())?;
        let warm_up_requests = match options.warm.warm_up_requests {
            WarmUpRequests::None => None,
            WarmUpRequests::Requests(n) => Some(n),
            WarmUpRequests::Share(share) => Some((self.length()? as f64 * share).round() as u64),
            WarmUpRequests::Whole => {
                session.warm(&mut workload, None, &mut |n| watch(JobProgress::Warmed(n)))?;
                session.next_workload();
                workload = self.workload(session.sectors())?;
                None
            }
        };
        if warm_up_requests.is_some() {
            session.warm(&mut workload, warm_up_requests, &mut |n| watch(JobProgress::Warmed(n)))?;
        }
        session.note_wrapped(self.wrapped(session.sectors()));
        session.measure_logged(&mut workload, &mut |n| watch(JobProgress::Served(n)), log)
    }

    /// Returns the address space of a trace that is folded onto a volume of the given capacity.
    fn wrapped(&self, sectors: u64) -> Option<WrappedAddresses> {
        let scan = self.scan.as_ref().filter(|s| self.fit == Fit::Wrap && s.end_sector > sectors)?;
        Some(WrappedAddresses {
            address_bytes: scan.end_sector.saturating_mul(SECTOR_BYTES),
            touched_bytes: scan.chunks * CHUNK_BYTES,
        })
    }

    fn workload(&self, sectors: u64) -> Result<Workload> {
        let workload = match &self.scan {
            Some(scan) => Workload::open_scanned(&self.spec, &self.options, scan)?,
            None => Workload::open(&self.spec, &self.options)?,
        };
        Ok(workload.fit(self.fit, sectors, self.scan.as_ref())?)
    }

    /// Checks that the workload can be read as often as the warm-up requires, before a stack is
    /// built and filled.
    fn check_warm_up(&self, warm_up: WarmUpRequests) -> Result<()> {
        if self.spec != "-" {
            return Ok(());
        }
        match warm_up {
            WarmUpRequests::None | WarmUpRequests::Requests(_) => Ok(()),
            WarmUpRequests::Whole => Err(Error::ReadOnce { name: "standard input".into() }),
            WarmUpRequests::Share(_) => self.length().map(drop),
        }
    }

    /// Returns the number of requests. Those of a generator have to be counted.
    fn length(&self) -> Result<u64> {
        if let Some(n) = self.requests() {
            return Ok(n);
        }
        if self.spec == "-" {
            return Err(Error::UnknownLength { name: "standard input".into() });
        }
        let (mut n, mut batch) = (0, Vec::new());
        let mut workload = Workload::open(&self.spec, &self.options)?;
        while workload.fill(&mut batch)? {
            n += batch.len() as u64;
        }
        Ok(n)
    }
}

/// Returns the capacity of a stack's volume, in sectors.
///
/// # Errors
/// A stack that cannot be built.
pub fn sectors(stack: &Stack) -> Result<u64> {
    let built = stack.build(&Bytes::None).map_err(Box::new)?;
    Ok(built.layer.info().sectors)
}

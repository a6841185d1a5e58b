//! [`Runner`]: executes the phases of a run (preconditioning, warm-up, measured workload) on a layer
//! and an engine that its caller has built, and makes the report of what it measured.

use crate::error::{Error, Result};
use crate::hinted::HintedRanges;
use crate::host::{ReplayHost, RequestBatch, describe_request};
use crate::layer_trace::LayerTraces;
use crate::options::{InitialState, RunOptions};
use crate::report::{Report, ReportInputs, RunId, Snapshot, StackId, WorkloadId, WrappedAddresses, build};
use crate::request_log::RequestLog;
use crate::request_stats::{WriteSize, WrittenMap};
use crate::steady::{CumulativeCounts, RequestRounds};
use crate::verify::{ReadBack, Verifier};
use frit_core::{HintRange, MediumKind, Nanos, Op, Sink, StackDevice, StackView};
use frit_engine::{DeviceUsage, Driver, DriverCounters, LoopMode, SinkUsage};
use frit_media::Hardware;
use frit_stack::BuiltStack;
use frit_stack::record::RecordPort;
use frit_trace::Workload;
use std::time::{Duration, Instant};

/// Maximum number of bins of channel use over time.
const CHANNEL_BINS_MAX: usize = 240;
/// Maximum number of requests between two calls of a progress function.
const PROGRESS_REQUESTS_MAX: u64 = 1 << 15;
/// Number of outstanding requests when `--verify` reads everything back.
const READ_BACK_DEPTH: u32 = 16;

/// Callback for progress; its argument is the number of requests served so far in the phase of the
/// run.
pub type ProgressFn<'a> = &'a mut dyn FnMut(u64);

/// A layer on an engine, with the state of a run.
pub(crate) struct Runner {
    sink: Sink,
    layer: Box<dyn StackDevice>,
    hardware: Hardware,
    /// The places where the stack asks for a recording, and the recordings that are made.
    records: Vec<RecordPort>,
    traces: LayerTraces,
    stack: StackId,
    /// Names of the engine and its scheduler.
    names: (&'static str, Option<&'static str>),
    options: RunOptions,
    verifier: Option<Verifier>,
    written: WrittenMap,
    batch: RequestBatch,
    warmed: u64,
    /// Address space of a trace that is folded onto the volume.
    pub(crate) wrapped: Option<WrappedAddresses>,
    /// Ranges with hints.
    hinted: Option<HintedRanges>,
    /// Page size of the layer. The layer maps NAND pages, so one program command writes one page.
    page_bytes: u64,
}

/// Results of a phase of a run: the warm-up, or the measurement.
struct PhaseResult {
    counters: DriverCounters,
    latencies: frit_engine::LatencyByClass,
    issued: crate::host::WorkloadCounts,
    commands: Vec<crate::report::CommandReport>,
    write_sizes: Vec<WriteSize>,
    /// Time from the first to the latest arrival, as recorded.
    arrivals: Nanos,
    rounds: RequestRounds,
    wall: Duration,
    workload_time: Duration,
}

impl Runner {
    /// Creates a runner and preconditions the layer.
    pub(crate) fn new(
        sink: Sink,
        names: (&'static str, Option<&'static str>),
        built: BuiltStack,
        mut stack: StackId,
        options: &RunOptions,
    ) -> Result<Runner> {
        let BuiltStack { mut layer, hardware, records } = built;
        if let Some(how) = options.warm.start.precondition(options.seed) {
            let what =
                if options.warm.start == InitialState::Steady { "--warm steady" } else { "--warm fill" };
            layer.precondition(how).map_err(|e| failed(&stack.name, what, e))?;
        }
        let info = layer.info();
        let keeps_discards = layer.keeps_discards();
        stack.volume_bytes = info.sectors * frit_core::SECTOR_BYTES;
        let verifier = options.verify.then(|| Verifier::new(options.seed, info.sectors, keeps_discards));
        Ok(Runner {
            sink,
            layer,
            hardware,
            records,
            traces: LayerTraces::default(),
            stack,
            names,
            options: *options,
            verifier,
            written: WrittenMap::new(info.sectors),
            batch: RequestBatch::default(),
            warmed: 0,
            wrapped: None,
            hinted: None,
            page_bytes: u64::from(info.page_bytes),
        })
    }

    /// Returns the name of the engine.
    pub(crate) fn engine_name(&self) -> &'static str {
        self.names.0
    }

    /// Returns the capacity of the volume, in sectors.
    pub(crate) fn sectors(&self) -> u64 {
        self.layer.info().sectors
    }

    /// Records the measured requests that layers of the stack receive.
    pub(crate) fn record_layers(&mut self) -> Result<()> {
        self.traces = LayerTraces::create(&self.records)?;
        Ok(())
    }

    /// Gives hints to the writes of ranges.
    pub(crate) fn set_hints(&mut self, ranges: &[HintRange]) {
        self.hinted = HintedRanges::new(ranges, self.layer.info().page_bytes);
    }

    /// Runs requests that are not measured: all, or at most `limit`.
    pub(crate) fn warm(
        &mut self,
        workload: &mut Workload,
        limit: Option<u64>,
        watch: ProgressFn<'_>,
    ) -> Result<u64> {
        let served = self.run_phase(workload, limit, watch, None)?.issued.requests;
        self.warmed += served;
        Ok(served)
    }

    /// Prepares for another workload: requests that were read ahead from the last one are dropped.
    pub(crate) fn next_workload(&mut self) {
        self.batch = RequestBatch::default();
    }

    /// Runs the rest of the workload, measures it, and verifies the contents if the option is set.
    pub(crate) fn measure(
        mut self,
        workload: &mut Workload,
        watch: ProgressFn<'_>,
        mut log: Option<&mut RequestLog>,
    ) -> Result<Report> {
        // Virtual time continues after the warm-up, but its usage must not be part of the report.
        let now = self.sink.now();
        self.sink.reset_usage(now);
        if let Some(usage) = self.sink.usage_mut() {
            usage.enable_series(CHANNEL_BINS_MAX);
        }
        let before = self.snapshot();
        // A stack of one layer has no requests between layers.
        if before.visible.layers.len() > 1
            && let Some(usage) = self.sink.usage_mut()
        {
            usage.enable_links(&self.hardware);
        }
        if let Some(log) = &mut log {
            log.begin_run(&self.stack.name, &workload.identity().name, now);
        }
        if let Some(hinted) = &mut self.hinted {
            hinted.reset();
        }
        self.traces.begin(now);
        let phase = self.run_phase(workload, None, watch, log)?;
        if phase.issued.requests == 0 && self.warmed > 0 {
            let name = workload.identity().name;
            return Err(Error::WorkloadExhausted { name, requests: self.warmed });
        }
        // The tables of all layers take memory.
        let mut info = self.layer.info();
        self.layer.each_layer_below(&mut |_, below, _| {
            info.dram_bytes += below.dram_bytes;
            info.durable_map_bytes += below.durable_map_bytes;
        });
        let unused = DeviceUsage::new(&self.hardware);
        let mut report = build(ReportInputs {
            stack: self.stack.clone(),
            workload: WorkloadId {
                identity: workload.identity(),
                reading: workload.reading(),
                problems: workload.problems(),
            },
            run: self.run_id(&phase.counters),
            issued: phase.issued,
            commands: phase.commands,
            write_sizes: phase.write_sizes,
            arrivals: phase.arrivals,
            percentiles: self.options.percentiles,
            latencies: &phase.latencies,
            counters: phase.counters,
            before: &before,
            after: self.snapshot(),
            usage: self.sink.usage().unwrap_or(&unused),
            hardware: &self.hardware,
            info,
            steady: phase.rounds.judge(),
            wall_ns: phase.wall.as_nanos() as u64,
            workload_wall_ns: phase.workload_time.as_nanos() as u64,
            verifying: self.verifier.is_some(),
        });
        report.hints = self.hinted.as_ref().map(HintedRanges::report);
        // Reading everything back is not part of the recordings.
        report.records = self.traces.finish();
        report.verification = self.read_back()?;
        report.findings = crate::findings::of_run(&report);
        Ok(report)
    }

    fn snapshot(&self) -> Snapshot {
        let mut visible = StackView::default();
        self.layer.visible(&mut visible);
        Snapshot { visible, engine: self.sink.metrics() }
    }

    fn run_id(&self, counters: &DriverCounters) -> RunId {
        let (mode, queue_depth, speed) = match self.options.mode {
            LoopMode::Closed { depth } => ("closed", Some(depth), None),
            LoopMode::Open { speed, depth } => ("open", depth, Some(speed)),
        };
        RunId {
            engine: self.names.0.into(),
            scheduler: self.names.1.map(str::to_owned),
            mode,
            queue_depth,
            speed,
            seed: self.options.seed,
            warm: self.options.warm.to_string(),
            warm_requests: self.warmed,
            unordered: counters.out_of_order,
            wrapped: self.wrapped,
        }
    }

    /// Runs requests from the current position of the workload until its end, or until `limit`
    /// requests were served, and waits for all of them.
    fn run_phase(
        &mut self,
        workload: &mut Workload,
        limit: Option<u64>,
        watch: ProgressFn<'_>,
        log: Option<&mut RequestLog>,
    ) -> Result<PhaseResult> {
        let mut driver =
            Driver::new(self.options.mode).map_err(|e| failed(&self.stack.name, "the driver", e))?;
        let base = self.sink.now();
        let mut rounds = RequestRounds::new();
        let has_nand = self.hardware.devices().iter().any(|d| d.kind == MediumKind::Nand);
        let start = Instant::now();
        let limit = limit.unwrap_or(u64::MAX);
        let verifier = self.verifier.as_mut();
        let mut host =
            ReplayHost::new(&mut *self.layer, workload, &mut self.batch, verifier, &mut self.written);
        host.log = log;
        host.hinted = self.hinted.as_mut();
        let ran = (|| {
            let mut served = 0;
            while served < limit {
                // A round can be longer than one call of the driver.
                let round = rounds.requests_to_round_end(served);
                let count = round.min(PROGRESS_REQUESTS_MAX).min(limit - served);
                let done = driver.run(&mut self.sink, &mut host, Some(count))?;
                served += done;
                if done == round {
                    let time_ns = self.sink.now().since(base).0;
                    let programmed_bytes = self.sink.usage().map_or(0, programmed) * self.page_bytes;
                    // Without NAND there is no write amplification of NAND, so steady state is
                    // judged by throughput alone.
                    let written_bytes = if has_nand { host.issued.written_bytes } else { 0 };
                    rounds.end(CumulativeCounts {
                        requests: served,
                        written_bytes,
                        programmed_bytes,
                        time_ns,
                    });
                }
                watch(served);
                if done < count {
                    break;
                }
            }
            driver.finish(&mut self.sink, &mut host)
        })();
        // The software time of a report excludes reading or generating the workload.
        let wall = start.elapsed().saturating_sub(host.workload_time);
        let counters = match ran {
            Ok(counters) => counters,
            Err(source) => return Err(explain(&self.stack.name, self.warmed, &mut host, source)),
        };
        let (latencies, issued, workload_time) = (host.latencies, host.issued, host.workload_time);
        let (write_sizes, commands) = (host.write_sizes.sizes(), host.commands.report());
        let arrivals = host.arrivals.map_or(Nanos::ZERO, |(first, latest)| latest.since(first));
        Ok(PhaseResult {
            counters,
            latencies,
            issued,
            commands,
            write_sizes,
            arrivals,
            rounds,
            wall,
            workload_time,
        })
    }

    /// Reads everything back, halts, boots, and reads everything back again.
    fn read_back(&mut self) -> Result<Option<crate::verify::Verification>> {
        let Some(verifier) = self.verifier.as_mut() else { return Ok(None) };
        let mut driver = Driver::new(LoopMode::Closed { depth: READ_BACK_DEPTH })
            .map_err(|e| failed(&self.stack.name, "the driver", e))?;
        let mut host = ReadBack::new(&mut *self.layer, verifier);
        let done = driver
            .run(&mut self.sink, &mut host, None)
            .and_then(|_| driver.finish(&mut self.sink, &mut host));
        if let Err(e) = done {
            return Err(failed(&self.stack.name, host.step_name(), e));
        }
        Ok(Some(verifier.outcome().clone()))
    }
}

/// Returns the number of NAND pages programmed so far, copybacks included.
fn programmed(usage: &DeviceUsage) -> u64 {
    let writes = |op| matches!(op, Op::NandProgram | Op::NandCopyback);
    debug_assert!(Op::NandProgram.medium() == MediumKind::Nand);
    usage.commands().filter(|(op, _, _)| writes(*op)).map(|(_, _, t)| t.commands).sum()
}

fn failed(stack: &str, what: &str, source: frit_core::Error) -> Error {
    Error::Stack { stack: stack.into(), what: what.into(), source: source.into() }
}

/// Attributes an error to the workload, a request or background work.
fn explain(stack: &str, warmed: u64, host: &mut ReplayHost<'_>, source: frit_core::Error) -> Error {
    // If the workload failed, `source` is only a placeholder: see `ReplayHost::refill`.
    if let Some(e) = host.failure.take() {
        return e.into();
    }
    match host.last() {
        Some(r) if !host.background_failed => Error::Request {
            stack: stack.into(),
            number: warmed + host.issued.requests,
            what: describe_request(&r),
            source: source.into(),
        },
        _ => failed(stack, "background work", source),
    }
}

//! Interface of a served volume for control and metrics.

use super::apply;
use super::hint_change::{self, HintChange};
use super::isp::Queries;
use super::wire::{
    CacheAnswer, CacheOperation, HintList, IspAnswer, NamelessAnswer, NamelessOperation, Param, ParamChange,
    RawMedium, RefusalKind, Refused, Setting, ZonedAnswer, ZonedOperation,
};
use crate::device::{Device, Failure, OpCounters};
use crate::hints::{HintCount, HintCounters, HintFile, HintSource};
use crate::metrics::{HintStat, LatencyStat, OpStat, ServerStat, Stat, VolumeStat};
use crate::pace::PaceMeter;
use frit_core::{HintKind, ParamInfo};
use parking_lot::Mutex;
use serde_json::Value;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

/// A served volume, as seen by control and metrics. Each call is allowed at any time, and is short
/// except for that of the processing engine: it takes the device lock between two requests.
pub trait ControlTarget: Send + Sync {
    /// Returns the parameters.
    fn params(&self) -> Vec<Param>;

    /// Changes parameters, either all of them or none.
    ///
    /// # Errors
    /// The first invalid setting, with the reason.
    fn change(&self, settings: &[Setting]) -> Result<Vec<ParamChange>, Refused>;

    /// Returns the current metrics.
    fn stat(&self) -> Stat;

    /// Changes the hints of writes, either all of them or none. Returns the hints in effect, and
    /// the changes for the log.
    ///
    /// # Errors
    /// The first invalid change, with the reason.
    fn hint(&self, change: &HintChange) -> Result<(HintList, Vec<ParamChange>), Refused>;

    /// Reads bytes of the volume, or of a medium for a caller with one of these names.
    ///
    /// # Errors
    /// See [`peek`](super::peek).
    fn peek(&self, callers: &[String], at: u64, len: u32, raw: Option<RawMedium>)
    -> Result<Vec<u8>, Refused>;

    /// Writes bytes durably and returns their number.
    ///
    /// # Errors
    /// See [`poke`](super::poke).
    fn poke(&self, callers: &[String], at: u64, data: &str, raw: Option<RawMedium>) -> Result<u64, Refused>;

    /// Executes a command of a solid-state cache.
    ///
    /// # Errors
    /// The volume is not a solid-state cache; see [`frit_core::CacheAccess::execute`].
    fn cache(&self, command: &CacheOperation) -> Result<CacheAnswer, Refused>;

    /// Executes a command of a nameless-write device.
    ///
    /// # Errors
    /// The volume is not a nameless-write device; see [`frit_core::NamelessDevice`].
    fn nameless(&self, command: &NamelessOperation) -> Result<NamelessAnswer, Refused>;

    /// Executes a command of a zoned device.
    ///
    /// # Errors
    /// The volume is not a zoned device; see [`frit_core::ZoneAccess`].
    fn zoned(&self, command: &ZonedOperation) -> Result<ZonedAnswer, Refused>;

    /// Executes an instruction of the processing engine, which ends early when `gone` returns `true`.
    /// Other requests come between its reads.
    ///
    /// # Errors
    /// See [`Queries::execute`].
    fn isp(&self, instruction: &Value, gone: &dyn Fn() -> bool) -> Result<IspAnswer, Refused>;
}

/// Returns parameters with their values from the stack as defaults.
#[must_use]
pub fn params(now: Vec<ParamInfo>, defaults: &[ParamInfo]) -> Vec<Param> {
    let default = |key: &str| defaults.iter().find(|p| p.key == key).map(|p| p.value.clone());
    let one = |p: ParamInfo| Param {
        default: default(&p.key),
        key: p.key.into_owned(),
        value: p.value,
        live: p.live,
        help: p.help.into(),
    };
    now.into_iter().map(one).collect()
}

/// Implementation of [`ControlTarget`] for a served device.
#[derive(Debug)]
pub struct DeviceTarget {
    device: Arc<Device>,
    about: VolumeInfo,
    since: Instant,
    /// Held while hints change, so that the file and the device agree.
    hints: Mutex<()>,
    queries: Queries,
}

/// Properties of a served volume that its device does not contain.
#[derive(Clone, Default, Debug)]
pub struct VolumeInfo {
    /// Directory of the volume.
    pub volume: PathBuf,
    /// Name of the stack.
    pub stack: String,
    /// Parameters of the layer with their initial values.
    pub defaults: Vec<ParamInfo>,
    /// Descriptions of the addresses at which the volume is served.
    pub exports: Vec<String>,
    /// Name spaces of the volume, with their bytes.
    pub namespaces: Vec<(String, Range<u64>)>,
    /// Measurement of pacing, for paced devices.
    pub pace: Option<Arc<PaceMeter>>,
}

impl DeviceTarget {
    /// Creates the control interface of a device.
    #[must_use]
    pub fn new(device: Arc<Device>, about: VolumeInfo) -> DeviceTarget {
        let queries = Queries::new(&device);
        DeviceTarget { device, about, since: Instant::now(), hints: Mutex::default(), queries }
    }
}

impl ControlTarget for DeviceTarget {
    fn params(&self) -> Vec<Param> {
        let now = self.device.with(|b| b.params()).unwrap_or_default();
        params(now, &self.about.defaults)
    }

    fn change(&self, settings: &[Setting]) -> Result<Vec<ParamChange>, Refused> {
        let failed = |e: Failure| Refused::new(RefusalKind::Failed, e.to_string());
        self.device.with(|backend| apply(backend, settings)).map_err(failed)?
    }

    fn stat(&self) -> Stat {
        let (view, channels) = self.device.with(|b| (b.visible(), b.channels())).unwrap_or_default();
        let counters = self.device.counters();
        let mut stat = Stat {
            volume: VolumeStat {
                path: self.about.volume.display().to_string(),
                stack: self.about.stack.clone(),
                bytes: self.device.bytes(),
                page_bytes: self.device.page_bytes(),
                refuses: self.device.read_only(),
            },
            server: Some(self.server()),
            channels: channels.into_iter().map(Into::into).collect(),
            requests: counters.by_kind().into_iter().map(|(op, t)| op_stat(op, t)).collect(),
            hints: hint_stats(&counters.hints),
            ..Stat::default()
        };
        stat.show(&view, counters.write.bytes);
        stat
    }

    fn hint(&self, change: &HintChange) -> Result<(HintList, Vec<ParamChange>), Refused> {
        let _changing = self.hints.lock();
        hint_change::apply_live(&self.device, &HintFile::of(&self.about.volume), change)
    }

    fn peek(
        &self,
        callers: &[String],
        at: u64,
        len: u32,
        raw: Option<RawMedium>,
    ) -> Result<Vec<u8>, Refused> {
        super::peek(&self.device, callers, at, len, raw)
    }

    fn poke(&self, callers: &[String], at: u64, data: &str, raw: Option<RawMedium>) -> Result<u64, Refused> {
        super::poke(&self.device, callers, at, data, raw)
    }

    fn cache(&self, command: &CacheOperation) -> Result<CacheAnswer, Refused> {
        super::cache_commands::execute(&self.device, command)
    }

    fn nameless(&self, command: &NamelessOperation) -> Result<NamelessAnswer, Refused> {
        super::nameless_commands::execute(&self.device, command)
    }

    fn zoned(&self, command: &ZonedOperation) -> Result<ZonedAnswer, Refused> {
        super::zoned_commands::execute(&self.device, command)
    }

    fn isp(&self, instruction: &Value, gone: &dyn Fn() -> bool) -> Result<IspAnswer, Refused> {
        self.queries.execute(&self.about.namespaces, instruction, gone)
    }
}

impl DeviceTarget {
    fn server(&self) -> ServerStat {
        let clients = self.device.clients();
        ServerStat {
            pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION").into(),
            uptime_s: self.since.elapsed().as_secs_f64(),
            connections: clients.open(),
            connections_accepted: clients.accepted(),
            connections_refused: clients.refused(),
            connections_dropped: clients.dropped(),
            exports: self.about.exports.clone(),
            pace: self.about.pace.as_ref().map(|meter| meter.stat()),
        }
    }
}

/// Returns the counters of marked writes that are not zero.
fn hint_stats(counters: &HintCounters) -> Vec<HintStat> {
    let counted = counters.iter().filter(|c| c.2 != HintCount::default());
    let stat = |(by, hint, n): (HintSource, HintKind, HintCount)| HintStat {
        by: <&str>::from(by).into(),
        hint: hint.to_string(),
        requests: n.requests,
        bytes: n.bytes,
    };
    counted.map(stat).collect()
}

fn op_stat(op: &str, tally: &OpCounters) -> OpStat {
    OpStat {
        op: op.into(),
        requests: tally.requests,
        bytes: tally.bytes,
        errors: tally.errors,
        latency: LatencyStat::from(&tally.service_ns),
    }
}

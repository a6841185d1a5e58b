//! Interface of a served volume for control and metrics.

use super::apply;
use super::wire::{Change, Param, Refusal, Refused, Setting};
use crate::device::{Device, Failure, Tally};
use crate::metrics::{LatencyStat, OpStat, ServerStat, Stat, VolumeStat};
use crate::pace::Meter;
use frit_core::ParamInfo;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

/// A served volume, as seen by control and metrics. Each call is short and allowed at any time: it
/// takes the device lock between two requests.
pub trait Panel: Send + Sync {
    /// Returns the parameters.
    fn params(&self) -> Vec<Param>;

    /// Changes parameters, either all of them or none.
    ///
    /// # Errors
    /// The first invalid setting, with the reason.
    fn change(&self, settings: &[Setting]) -> Result<Vec<Change>, Refused>;

    /// Returns the current metrics.
    fn stat(&self) -> Stat;
}

/// Returns parameters with their values from the stack as defaults.
#[must_use]
pub fn params(now: Vec<ParamInfo>, defaults: &[ParamInfo]) -> Vec<Param> {
    let default = |key: &str| defaults.iter().find(|p| p.key == key).map(|p| p.value.clone());
    let one = |p: ParamInfo| Param {
        key: p.key.into(),
        default: default(p.key),
        value: p.value,
        live: p.live,
        help: p.help.into(),
    };
    now.into_iter().map(one).collect()
}

/// Implementation of [`Panel`] for a served device.
#[derive(Debug)]
pub struct DevicePanel {
    device: Arc<Device>,
    about: About,
    since: Instant,
}

/// Properties of a served volume that its device does not contain.
#[derive(Clone, Default, Debug)]
pub struct About {
    /// Directory of the volume.
    pub volume: PathBuf,
    /// Name of the stack.
    pub stack: String,
    /// Parameters of the layer with their initial values.
    pub defaults: Vec<ParamInfo>,
    /// Descriptions of the addresses at which the volume is served.
    pub exports: Vec<String>,
    /// Measurement of pacing, for paced devices.
    pub pace: Option<Arc<Meter>>,
}

impl DevicePanel {
    /// Creates the control interface of a device.
    #[must_use]
    pub fn new(device: Arc<Device>, about: About) -> DevicePanel {
        DevicePanel { device, about, since: Instant::now() }
    }
}

impl Panel for DevicePanel {
    fn params(&self) -> Vec<Param> {
        let now = self.device.with(|b| b.params()).unwrap_or_default();
        params(now, &self.about.defaults)
    }

    fn change(&self, settings: &[Setting]) -> Result<Vec<Change>, Refused> {
        let failed = |e: Failure| Refused::new(Refusal::Failed, e.to_string());
        self.device.with(|backend| apply(backend, settings)).map_err(failed)?
    }

    fn stat(&self) -> Stat {
        let view = self.device.with(|b| b.visible()).unwrap_or_default();
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
            requests: counters.by_kind().into_iter().map(|(op, t)| op_stat(op, t)).collect(),
            ..Stat::default()
        };
        stat.show(&view, counters.write.bytes);
        stat
    }
}

impl DevicePanel {
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

fn op_stat(op: &str, tally: &Tally) -> OpStat {
    OpStat {
        op: op.into(),
        requests: tally.requests,
        bytes: tally.bytes,
        errors: tally.errors,
        latency: LatencyStat::from(&tally.service_ns),
    }
}

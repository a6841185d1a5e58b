//! Frontends of a served volume beside NBD (FUSE, ublk, control, metrics), and the pacing of its
//! replies.

use frit_core::{ParamInfo, Sink};
use frit_engine::InOrder;
use frit_serve::ctl::{self, ControlTarget, DeviceTarget, Rights, VolumeInfo};
use frit_serve::pace::{PaceMeter, PaceStat, PacedBackend};
use frit_serve::{Backend, Device, Logger, fuse, metrics};
use frit_stack::record::RecordPort;
use frit_stack::{Bytes, Namespace, Stack};
use frit_volume::access::is_reachable;
use frit_volume::{OpenOptions, OpenReport, Volume};
use miette::{IntoDiagnostic, Result, WrapErr, miette};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Time limit for users of the FUSE file when the server stops.
const UNMOUNT_TIMEOUT: Duration = Duration::from_secs(5);

/// Command-line options of the frontends.
#[derive(clap::Args, Debug)]
pub(super) struct FrontendArgs {
    /// Mount the volume as one raw file, MOUNTPOINT/volume, through FUSE. `frit attach` does this
    /// and makes a block device of the file.
    #[arg(long, value_name = "MOUNTPOINT")]
    fuse: Option<PathBuf>,
    /// Make a block device, /dev/ublkbN, through ublk. Experimental: never run on a kernel. Needs a
    /// frit built with the feature `ublk`, and Linux 6.0 or newer.
    #[arg(long)]
    ublk: bool,
    /// Pace of replies: as fast as possible, or with the latency of the modelled device.
    #[arg(long, value_enum, default_value_t = ReplyPace::None)]
    pace: ReplyPace,
    /// Serve metrics for Prometheus and as JSON at this address: a port of 127.0.0.1 (0: any),
    /// ADDRESS:PORT, or unix:PATH.
    #[arg(long, value_name = "ADDRESS")]
    metrics: Option<metrics::MetricsAddress>,
    /// Name, or NAME:PORT, under which clients reach the metrics, beside their address and localhost;
    /// may be repeated.
    #[arg(long, value_name = "NAME", requires = "metrics")]
    metrics_host: Vec<metrics::MetricsHost>,
    /// Serve /visible of the metrics to everybody, not only to the owner and root. A socket at
    /// unix:PATH is then open to all users.
    #[arg(long, requires = "metrics")]
    metrics_read_all: bool,
    /// Control socket for frit ctl ('none': no socket). [default: VOLUME/ctl.sock]
    #[arg(long, value_name = "PATH")]
    ctl: Option<PathBuf>,
    /// Let every user run frit ctl get, stat and top; only the owner and root can change
    /// parameters.
    #[arg(long)]
    ctl_read_all: bool,
}

/// Pace of replies.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum ReplyPace {
    /// As fast as possible.
    None,
    /// With the latency of the modelled device.
    Model,
}

/// A volume that is ready to be served.
pub(super) struct OpenedVolume {
    pub(super) backend: Box<dyn Backend>,
    pub(super) meter: Option<Arc<PaceMeter>>,
    pub(super) recovered: OpenReport,
    pub(super) records: Vec<RecordPort>,
    pub(super) namespaces: Vec<Namespace>,
    stack: String,
    defaults: Vec<ParamInfo>,
}

/// The running frontends.
#[derive(Debug)]
pub(super) struct Frontends {
    // In the order in which they stop: control and metrics stay available until the end.
    fuse: Option<fuse::BlockExport>,
    #[cfg(feature = "ublk")]
    ublk: Option<frit_serve::ublk::UblkDisk>,
    metrics: Option<metrics::MetricsServer>,
    ctl: Option<ctl::ControlServer>,
    meter: Option<Arc<PaceMeter>>,
}

impl FrontendArgs {
    /// Returns `true` if a frontend other than NBD gives access to the data.
    pub(super) fn any(&self) -> bool {
        self.fuse.is_some() || self.ublk
    }

    /// Opens the volume.
    pub(super) fn open(&self, dir: &Path, options: &OpenOptions) -> Result<OpenedVolume> {
        if self.ublk && cfg!(not(feature = "ublk")) {
            return Err(miette!(
                help = "cargo build --release -p frit-cli --features ublk (it needs libclang; experimental, never run on a kernel), or frit \
                        attach, which needs no ublk",
                "this frit was built without ublk"
            ));
        }
        match self.pace {
            ReplyPace::None => {
                let volume = Volume::open(dir, options)?;
                OpenedVolume::of(volume, None, |volume, _| Box::new(volume))
            }
            ReplyPace::Model => {
                let mut modelled = None;
                let volume = Volume::open_with(dir, options, |hardware| {
                    modelled = Some(hardware.clone());
                    Sink::new(InOrder::new(hardware))
                })?;
                let meter = Arc::new(PaceMeter::default());
                let hardware = modelled.unwrap_or_default();
                OpenedVolume::of(volume, Some(meter), |volume, meter| {
                    Box::new(PacedBackend::new(volume, hardware, meter.unwrap_or_default()))
                })
            }
        }
    }

    /// Starts the requested frontends, and adds their addresses to `served`.
    pub(super) fn start(
        &self,
        dir: &Path,
        device: &Arc<Device>,
        opened: VolumeInfo,
        served: &mut Vec<String>,
    ) -> Result<Frontends> {
        let log = device.log().clone();
        let meter = opened.pace.clone();
        let fuse = self
            .fuse
            .as_ref()
            .map(|at| fuse::BlockExport::start(device, at))
            .transpose()
            .into_diagnostic()?;
        served.extend(fuse.iter().map(|f| f.mountpoint().join(fuse::FILE_NAME).display().to_string()));
        #[cfg(feature = "ublk")]
        let ublk =
            self.ublk.then(|| frit_serve::ublk::UblkDisk::start(device)).transpose().into_diagnostic()?;
        #[cfg(feature = "ublk")]
        if let Some(disk) = &ublk {
            log.write_line(format_args!("ublk is experimental: it was never run on a kernel"));
            served.push(disk.path().display().to_string());
        }
        let mut about = opened;
        about.exports.clone_from(served);
        let raw_callers = about.defaults.iter().any(|p| p.key == "raw_access" && p.value != "[]");
        let target: Arc<dyn ControlTarget> = Arc::new(DeviceTarget::new(Arc::clone(device), about));
        let ctl = self.control(dir, &target, raw_callers, &log)?;
        let metrics = self.metrics(&target, &log)?;
        served.extend(metrics.iter().map(metrics::MetricsServer::location));
        Ok(Frontends {
            fuse,
            #[cfg(feature = "ublk")]
            ublk,
            metrics,
            ctl,
            meter,
        })
    }

    fn metrics(
        &self,
        target: &Arc<dyn ControlTarget>,
        log: &Logger,
    ) -> Result<Option<metrics::MetricsServer>> {
        let Some(address) = &self.metrics else { return Ok(None) };
        let options = metrics::MetricsOptions {
            address: address.clone(),
            hosts: self.metrics_host.clone(),
            read_all: self.metrics_read_all,
        };
        let server = metrics::MetricsServer::start(options, target, log).into_diagnostic();
        server.map(Some).wrap_err_with(|| format!("cannot listen for metrics at {address}"))
    }

    fn control(
        &self,
        dir: &Path,
        target: &Arc<dyn ControlTarget>,
        raw_callers: bool,
        log: &Logger,
    ) -> Result<Option<ctl::ControlServer>> {
        let socket = match &self.ctl {
            Some(none) if none.as_os_str() == "none" => return Ok(None),
            Some(path) => path.clone(),
            None => dir.join(ctl::SOCKET),
        };
        let options = ctl::ControlOptions {
            socket,
            volume: dir.into(),
            rights: Rights { raw_callers, ..Rights::of_this_process(self.ctl_read_all) },
        };
        let server = ctl::ControlServer::start(&options, Arc::clone(target), log.clone());
        let hint = || {
            let at = options.socket.display();
            format!("cannot listen for frit ctl at {at}; --ctl PATH takes another, --ctl none does without")
        };
        let server = server.map(Some).into_diagnostic().wrap_err_with(hint)?;
        if options.rights.admits_others() && !is_reachable(&options.socket) {
            let at = options.socket.display();
            log.write_line(format_args!(
                "other users cannot reach {at}: chmod o+x for the directories above it lets them, or --ctl PATH"
            ));
        }
        Ok(server)
    }
}

impl OpenedVolume {
    fn of(
        volume: Volume,
        meter: Option<Arc<PaceMeter>>,
        backend: impl FnOnce(Volume, Option<Arc<PaceMeter>>) -> Box<dyn Backend>,
    ) -> Result<OpenedVolume> {
        Ok(OpenedVolume {
            stack: volume.stack().name().into(),
            namespaces: volume.stack().namespaces().to_vec(),
            defaults: defaults(volume.stack())?,
            recovered: volume.recovery().clone(),
            records: volume.record_ports().to_vec(),
            backend: backend(volume, meter.clone()),
            meter,
        })
    }

    /// Returns the description of the volume for the control interface.
    pub(super) fn about(&self, dir: &Path) -> VolumeInfo {
        VolumeInfo {
            volume: dir.canonicalize().unwrap_or_else(|_| dir.into()),
            stack: self.stack.clone(),
            defaults: self.defaults.clone(),
            exports: Vec::new(),
            namespaces: self.namespaces.iter().map(|n| (n.name.clone(), n.range.clone())).collect(),
            pace: self.meter.clone(),
        }
    }
}

impl Frontends {
    /// Returns `true` if the FUSE file is the only export of the data and was unmounted from
    /// outside.
    pub(super) fn is_over(&self) -> bool {
        #[cfg(feature = "ublk")]
        if self.ublk.is_some() {
            return false;
        }
        self.fuse.as_ref().is_some_and(fuse::BlockExport::has_ended)
    }

    /// Stops all frontends. Returns messages about anomalies.
    pub(super) fn stop(mut self) -> Vec<String> {
        let mut odd = Vec::new();
        if let Some(Err(e)) = self.fuse.take().map(|f| f.stop(UNMOUNT_TIMEOUT)) {
            odd.push(e.to_string());
        }
        #[cfg(feature = "ublk")]
        odd.extend(self.ublk.take().and_then(|u| u.stop().err()).map(|e| e.to_string()));
        drop((self.metrics.take(), self.ctl.take()));
        odd.extend(self.meter.iter().flat_map(|m| m.stat()).map(|p| paced(&p)));
        odd
    }
}

/// Returns the layer's parameters as the stack sets them.
pub(crate) fn defaults(stack: &Stack) -> Result<Vec<ParamInfo>> {
    Ok(stack.build(&Bytes::None)?.layer.params().list())
}

/// Returns the pacing accuracy of one operation, in a line.
fn paced(p: &PaceStat) -> String {
    let us = |ns: u64| ns as f64 / 1e3;
    format!(
        "paced {} {}: p50 {:.1} µs ({:+.1} % of the model's {:.1}), p99 {:.1} µs ({:+.1} % of {:.1})",
        p.replies,
        p.op,
        us(p.p50_ns),
        p.p50_error * 100.0,
        us(p.model_p50_ns),
        us(p.p99_ns),
        p.p99_error * 100.0,
        us(p.model_p99_ns)
    )
}

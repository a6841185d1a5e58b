//! `frit serve`: serves a volume to other programs until a signal ends it.

mod exports;
mod frontends;
mod hints;
mod limits;

use crate::output::{print, print_stderr};
use frit_core::{files, paths, size};
use frit_serve::ctl::VolumeInfo;
use frit_serve::nbd::{Address, NbdServer, ServerOptions};
use frit_serve::{Device, DeviceOptions, Logger, TraceRecorder};
use frit_stack::Namespace;
use frit_stack::record::RecordPort;
use frit_volume::{OpenOptions, OpenReport};
pub(crate) use frontends::defaults;
use frontends::{FrontendArgs, Frontends, OpenedVolume};
use hints::HintArgs;
use limits::LimitArgs;
use miette::{IntoDiagnostic, Result, WrapErr, bail};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Time limit for clients to accept their last replies when the server stops.
const REPLY_TIMEOUT: Duration = Duration::from_secs(10);
/// Interval of polling for a signal.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Serve a volume to other programs.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "It runs in the foreground and prints one line when clients can connect. SIGTERM, SIGINT or SIGHUP ends it: the \
requests that clients have sent are completed, and the volume is closed cleanly; a second signal ends it at once, and the \
next start recovers the volume.

Examples:
  frit serve vol --nbd unix:/run/vol.sock
  frit serve vol --nbd tcp:127.0.0.1:10809 --export scratch --read-only
  frit serve vol --nbd unix:vol.sock --record clients.csv.zst
  frit serve vol --fuse /mnt/vol --metrics 9100
  frit serve vol --nbd unix:vol.sock --pace model       with latencies of the device
  frit serve vol --nbd unix:vol.sock --detect-metadata  metadata of ext4, XFS and btrfs is hinted

While it runs, `frit ctl VOLUME` shows its state and changes parameters. See docs/guide/control.md and \
docs/guide/fuse.md."
)]
pub(crate) struct Args {
    /// Volume: a directory that frit create made.
    volume: PathBuf,
    /// Address for NBD clients: unix:PATH or tcp:HOST:PORT (port 0: any). Can be given again.
    #[arg(long, value_name = "ADDRESS")]
    nbd: Vec<Address>,
    /// Name of the export; also the default export. A volume with name spaces has an export for each.
    #[arg(long, value_name = "NAME", default_value = "", value_parser = export_name)]
    export: String,
    /// Serve the volume read-only, and do not change it.
    #[arg(long)]
    read_only: bool,
    /// Allow TCP connections from other machines. There is no password and no encryption.
    #[arg(long)]
    allow_remote: bool,
    #[command(flatten)]
    limits: LimitArgs,
    /// Record the requests of clients as a trace that frit run --trace replays (.zst and .gz
    /// compress).
    #[arg(long, value_name = "FILE")]
    record: Option<String>,
    /// Write the process ID to a file while clients can connect.
    #[arg(long, value_name = "FILE")]
    pidfile: Option<PathBuf>,
    #[command(flatten)]
    hints: HintArgs,
    #[command(flatten)]
    frontends: FrontendArgs,
}

/// Checks the length of an export name, which the protocol limits.
fn export_name(name: &str) -> Result<String, String> {
    match name.len() {
        0..=255 => Ok(name.into()),
        n => Err(format!("the name has {n} bytes; at most 255 are possible")),
    }
}

pub(crate) fn run(args: &Args) -> Result<()> {
    if args.nbd.is_empty() && !args.frontends.any() {
        bail!("no client could connect: give --nbd unix:PATH, --nbd tcp:HOST:PORT or --fuse MOUNTPOINT");
    }
    // From here on signals are queued, however long opening takes.
    let mut signals = Signals::new(stop_signals()).into_diagnostic()?;
    second_signal_exits()?;
    let recorder = args.record.as_deref().map(recorder).transpose()?;
    let opened = open(args)?;
    let about = opened.about(&args.volume);
    let namespaces = opened.namespaces;
    let meter = opened.meter.clone();
    let hints = args.hints.options(&args.volume)?;
    let layer_recorders = record_layers(&opened.records)?;
    let options =
        DeviceOptions { read_only: args.read_only, recorder, layer_recorders, meter, hints, log: log() };
    let device = Device::new(opened.backend, options);
    let served = serve(args, &device, &namespaces, about, &mut signals);
    // The volume is closed in every case.
    let closed = device.close().into_diagnostic().wrap_err("the volume could not be closed in order");
    served.and(closed)
}

/// Starts all frontends, prints their addresses, waits for a signal, and stops them.
fn serve(
    args: &Args,
    device: &Arc<Device>,
    namespaces: &[Namespace],
    about: VolumeInfo,
    signals: &mut Signals,
) -> Result<()> {
    let exports = exports::of(args, device, namespaces)?;
    let maintenance = device.maintain().into_diagnostic()?;
    let options = ServerOptions {
        addresses: args.nbd.clone(),
        allow_remote: args.allow_remote,
        ..args.limits.options()
    };
    let nbd = NbdServer::start(exports.clone(), options).into_diagnostic()?;
    let pidfile = args.pidfile.as_deref().map(PidFile::write).transpose()?;
    let names = || exports.all().iter().map(|export| export.name());
    let mut uris: Vec<String> =
        nbd.addresses().iter().flat_map(|a| names().map(|name| a.uri(name))).collect();
    let frontends = args.frontends.start(&args.volume, device, about, &mut uris)?;
    let how = if device.read_only().is_some() { ", read-only" } else { "" };
    let size = size::format(device.bytes());
    print(&format!("{} ({size}{how}) at {}\n", args.volume.display(), uris.join(" and ")))?;
    wait(args, &frontends, signals);
    drop(pidfile);
    // The terminal may be closed; the volume is closed all the same.
    for line in frontends.stop() {
        let _ = print_stderr(&format!("frit serve: {line}\n"));
    }
    let cut_off = nbd.stop(REPLY_TIMEOUT);
    if cut_off > 0 {
        let _ = print_stderr(&format!("{cut_off} clients did not take their replies and were cut off\n"));
    }
    drop(maintenance);
    Ok(())
}

/// Returns on a signal, or when the only export was a FUSE file and it was unmounted.
fn wait(args: &Args, frontends: &Frontends, signals: &mut Signals) {
    while signals.pending().next().is_none() && !(args.nbd.is_empty() && frontends.is_over()) {
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Returns the signals that stop a server cleanly: SIGINT, SIGTERM, and SIGHUP unless it is ignored
/// (`nohup`).
pub(crate) fn stop_signals() -> Vec<i32> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    let hangs_up = ignored >> (SIGHUP - 1) & 1 == 0;
    [SIGINT, SIGTERM].into_iter().chain(hangs_up.then_some(SIGHUP)).collect()
}

/// Lets a second SIGINT or SIGTERM end the program at once. SIGHUP is excluded: when a terminal is
/// closed, both the kernel and the shell send it.
pub(crate) fn second_signal_exits() -> Result<()> {
    let once = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        let exit = 128 + signal;
        signal_hook::flag::register_conditional_shutdown(signal, exit, Arc::clone(&once))
            .into_diagnostic()?;
        signal_hook::flag::register(signal, Arc::clone(&once)).into_diagnostic()?;
    }
    Ok(())
}

fn recorder(path: &str) -> Result<TraceRecorder> {
    if Path::new(path).exists() {
        bail!("{path} exists; choose another name for --record");
    }
    TraceRecorder::create(path).into_diagnostic()
}

/// Begins the recordings that the stack asks for. The volume is served without one whose file cannot
/// be created: the file of an earlier session may be there, and is not replaced.
fn record_layers(ports: &[RecordPort]) -> Result<Vec<Arc<TraceRecorder>>> {
    let mut recorders = Vec::new();
    for port in ports {
        match TraceRecorder::of_layer(port) {
            Ok(recorder) => recorders.push(recorder),
            Err(e) => print_stderr(&format!("frit serve: nothing is recorded to {}: {e}\n", port.file()))?,
        }
    }
    Ok(recorders)
}

fn open(args: &Args) -> Result<OpenedVolume> {
    let options = OpenOptions { read_only: args.read_only, crash: None };
    let opened = args.frontends.open(&args.volume, &options)?;
    super::volume::warn_exposed(&args.volume)?;
    remark(&opened.recovered)?;
    Ok(opened)
}

/// Describes the data in durable memory, and the time for a GB of it if that says something.
fn durable(bytes: u64, seconds: f64) -> String {
    let held = size::format(bytes);
    match super::volume::seconds_per_gb(seconds, bytes) {
        Some(rate) => format!("{held} in durable memory, {rate:.2} s a GB of it"),
        None => format!("{held} in durable memory"),
    }
}

/// Prints the result of the recovery, if there was anything to recover.
fn remark(found: &OpenReport) -> Result<()> {
    for note in &found.access_notes {
        print_stderr(&format!("{note}\n"))?;
    }
    let lost: usize = found.recovery.layers().map(|(_, r)| r.lost.len()).sum();
    let mut line = if found.recovery.clean {
        "the volume had been closed in order".to_owned()
    } else {
        let what = if found.power_loss { "machine" } else { "program" };
        format!("recovered in {:.3} s: the {what} had stopped without closing it", found.seconds)
    };
    if !found.recovery.clean && found.durable_bytes > 0 {
        line += &format!("; {}", durable(found.durable_bytes, found.seconds));
    }
    if lost > 0 {
        line += &format!("; {lost} pages cannot be given back (frit recover lists them)");
    }
    for what in found.recovery.layers().flat_map(|(_, r)| &r.unnamed) {
        line += &format!("; {what}");
    }
    if found.recovery.clean && !found.recovery.lost_any() {
        return Ok(());
    }
    print_stderr(&format!("{line}\n"))
}

/// Returns a log that prints the server's messages to standard error.
fn log() -> Logger {
    Logger::new(|line| {
        // There is no other place to report a failure.
        let _ = print_stderr(&format!("frit serve: {line}\n"));
    })
}

/// A file with the process ID, removed when the server stops.
struct PidFile(PathBuf);

impl PidFile {
    fn write(path: &Path) -> Result<PidFile> {
        let text = format!("{}\n", std::process::id());
        // The file is replaced, not written through: a symbolic link here may be another user's.
        files::write(path, text.as_bytes()).into_diagnostic()?;
        Ok(PidFile(path.into()))
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        // The file may have been removed by someone else.
        let _ = paths::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_for_a_gb_is_only_told_of_much_data() {
        assert_eq!(durable(3 << 10, 0.01), "3 KiB in durable memory");
        assert_eq!(
            durable(4_000_000_000, 1.0),
            format!("{} in durable memory, 0.25 s a GB of it", size::format(4_000_000_000))
        );
    }
}

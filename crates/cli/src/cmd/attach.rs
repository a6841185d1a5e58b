//! `frit attach`: makes a block device of a volume, through FUSE and a loop device.

pub(crate) mod state;
pub(crate) mod subprocess;

use crate::output::print;
use frit_core::paths::{self, OpenOptions};
use frit_serve::ctl::{Client, ControlOperation, SOCKET, Success};
use frit_serve::fuse::{FILE_NAME, loop_devices, volumes_at};
use frit_volume::access::FILE_MODE;
use miette::{IntoDiagnostic, Result, WrapErr, miette};
use state::{AttachState, mountpoint};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use subprocess::run_with_timeout;

/// Log file of a server that was started by `frit attach`, in the volume's directory.
const LOG: &str = "serve.log";
/// Interval of polling for the server to become ready.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Number of log bytes that are read after a failure.
const SAID_BYTES_MAX: u64 = 1 << 20;
/// Time limit of losetup.
const LOSETUP_TIMEOUT: Duration = Duration::from_secs(20);

/// Attach a volume as a block device, through FUSE and a loop device.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  frit attach vol                          prints the device, such as /dev/loop0
  mkfs.ext4 $(frit attach vol)
  frit attach vol -- --metrics 9100        arguments after -- are for frit serve
  frit detach vol

It needs root, /dev/fuse and loop devices. For a volume that is attached already, the same device is printed again. \
The server runs in the background and writes to VOLUME/serve.log. See docs/guide/fuse.md, also for the effects of a \
killed server.")]
pub(crate) struct Args {
    /// Volume: a directory that frit create made.
    volume: PathBuf,
    /// Mount point of the raw file; created if it is missing. [default: VOLUME/mnt]
    #[arg(long, value_name = "DIRECTORY")]
    mountpoint: Option<PathBuf>,
    /// Attach the volume read-only.
    #[arg(long)]
    read_only: bool,
    /// Seconds until the server must be ready, recovery included.
    #[arg(long, value_name = "S", default_value_t = 300)]
    timeout: u64,
    /// Further options for frit serve.
    #[arg(last = true, value_name = "SERVE OPTION")]
    serve: Vec<String>,
}

/// Runs the command.
///
/// # Errors
/// A prerequisite is missing, or a killed server has left its mount or device.
pub(crate) fn run(args: &Args) -> Result<()> {
    able()?;
    let taken = |word: &&String| word.split('=').next().is_some_and(|w| ["--fuse", "--ctl"].contains(&w));
    if let Some(word) = args.serve.iter().find(taken) {
        let help = "--mountpoint moves the file; the control socket stays in the volume";
        return Err(miette!(help = help, "{word} cannot be passed on by frit attach"));
    }
    let dir = super::volume::whole_path(&args.volume)?;
    let attached = match Client::connect(&dir.join(SOCKET)) {
        Ok(mut client) => served(&dir, &mut client)?,
        Err(_) => start(args, &dir)?,
    };
    let file = attached.mountpoint.join(FILE_NAME);
    let found = loop_devices::with_backing_file(&file).into_diagnostic()?;
    if let [first, ..] = &found[..] {
        if args.read_only && !is_read_only(&first.device) {
            let device = first.device.display();
            return Err(miette!(
                help = "frit detach it first",
                "{} is attached as {device} already, for writing",
                dir.display()
            ));
        }
        return print(&format!("{}\n", first.device.display()));
    }
    let mut losetup = Command::new("losetup");
    losetup.args(["--direct-io=on", "--show", "--find"]);
    if args.read_only {
        losetup.arg("--read-only");
    }
    let device = run_with_timeout(losetup.arg(&file), LOSETUP_TIMEOUT)
        .wrap_err("the volume is served, but no loop device could be made")?;
    let device = PathBuf::from(device.trim());
    print(&format!("{}\n", device.display()))?;
    AttachState { device: Some(device), ..attached }.write(&dir)
}

/// Checks that the user is root and the kernel has FUSE and loop devices.
pub(crate) fn able() -> Result<()> {
    if !rustix::process::geteuid().is_root() {
        return Err(miette!(
            help = "without root, `frit serve VOLUME --fuse DIRECTORY` serves the volume as a file, and --nbd serves it to NBD clients",
            "only root can make block devices"
        ));
    }
    let needs = [
        ("/dev/fuse", "the kernel module fuse (modprobe fuse)"),
        ("/dev/loop-control", "the kernel module loop (modprobe loop)"),
    ];
    match needs.iter().find(|(path, _)| !Path::new(path).exists()) {
        Some((path, what)) => Err(miette!("{path} is missing: attaching needs {what}")),
        None => Ok(()),
    }
}

/// Returns `true` if a block device is read-only.
fn is_read_only(device: &Path) -> bool {
    let name = device.file_name().unwrap_or_default();
    let ro = std::fs::read_to_string(Path::new("/sys/class/block").join(name).join("ro"));
    ro.is_ok_and(|ro| ro.trim() == "1")
}

/// Returns the state of a server that is already running.
fn served(dir: &Path, client: &mut Client) -> Result<AttachState> {
    let stat = match client.request(ControlOperation::Stat {}).into_diagnostic()? {
        Success::Stat(stat) => *stat,
        _ => return Err(miette!("the server of {} gave another answer than asked for", dir.display())),
    };
    let exports = stat.server.map(|s| s.exports).unwrap_or_default();
    let mounted = exports.iter().map(Path::new).find(|e| e.is_absolute() && e.ends_with(FILE_NAME));
    let Some(mountpoint) = mounted.and_then(Path::parent) else {
        return Err(miette!(
            help = "stop that server, or start it with --fuse DIRECTORY",
            "{} is served by process {} already, and not through FUSE",
            dir.display(),
            client.server()
        ));
    };
    // The recorded state is used only if the running server is the recorded one.
    let known = AttachState::read(dir).filter(|a| a.server == client.server());
    let started = known.as_ref().is_some_and(|a| a.started);
    let device = known.and_then(|a| a.device);
    Ok(AttachState { mountpoint: mountpoint.into(), server: client.server(), started, device })
}

/// Starts a server in the background, and waits until it is ready.
fn start(args: &Args, dir: &Path) -> Result<AttachState> {
    let mountpoint = mountpoint(dir, args.mountpoint.as_deref())?;
    let file = mountpoint.join(FILE_NAME);
    if volumes_at(&mountpoint).into_diagnostic()? > 0
        || !loop_devices::with_backing_file(&file).into_diagnostic()?.is_empty()
    {
        return Err(miette!(
            help = format!("frit detach {}", args.volume.display()),
            "{} was attached and its server is gone: detach it first",
            dir.display()
        ));
    }
    paths::create_dir_all(&mountpoint, 0o777)
        .into_diagnostic()
        .wrap_err_with(|| mountpoint.display().to_string())?;
    let log = dir.join(LOG);
    let open = || OpenOptions::new().append(true).create(true).mode(FILE_MODE).open(&log);
    let (out, err) = (open().into_diagnostic()?, open().into_diagnostic()?);
    let before = out.metadata().into_diagnostic()?.len();
    let mut serve = Command::new(std::env::current_exe().into_diagnostic()?);
    serve.arg("serve").arg(dir).arg("--fuse").arg(&mountpoint).args(&args.serve);
    if args.read_only {
        serve.arg("--read-only");
    }
    // A process group of its own: signals to this terminal's foreground group do not reach the
    // server.
    serve.stdin(Stdio::null()).stdout(out).stderr(err).process_group(0).current_dir("/");
    let mut child = serve.spawn().into_diagnostic()?;
    let attached = AttachState { mountpoint, server: child.id() as i32, started: true, device: None };
    // Recorded before the server is ready, so that `frit detach` can stop it in the meantime.
    attached.write(dir)?;
    let ready = wait(&mut child, dir, &attached.mountpoint, Duration::from_secs(args.timeout));
    if ready.is_err() && child.try_wait().into_diagnostic()?.is_some() {
        AttachState::remove(dir)?;
    }
    ready.wrap_err_with(|| said(&log, before))?;
    Ok(attached)
}

fn wait(child: &mut Child, dir: &Path, mountpoint: &Path, timeout: Duration) -> Result<()> {
    let end = Instant::now() + timeout;
    loop {
        if let Some(status) = child.try_wait().into_diagnostic()? {
            return Err(miette!("the server ended at once ({status})"));
        }
        let mounted = volumes_at(mountpoint).into_diagnostic()? > 0;
        if mounted && Client::connect(&dir.join(SOCKET)).is_ok() {
            return Ok(());
        }
        if Instant::now() > end {
            let seconds = timeout.as_secs();
            return Err(miette!(
                help = "it keeps running; run the command again to wait for it, or frit detach to stop it",
                "the server, process {}, is not ready after {seconds} s",
                child.id()
            ));
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Returns the last lines that a server has written to its log since offset `before`.
fn said(log: &Path, before: u64) -> String {
    let mut text = Vec::new();
    let read = File::open(log).and_then(|mut f| {
        f.seek(SeekFrom::Start(before))?;
        f.take(SAID_BYTES_MAX).read_to_end(&mut text)
    });
    let text = read.map_or(String::new(), |_| String::from_utf8_lossy(&text).into_owned());
    let lines: Vec<&str> = text.lines().collect();
    let last = lines[lines.len().saturating_sub(20)..].join("\n");
    format!("{} says:\n{last}", log.display())
}

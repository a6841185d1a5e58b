//! `frit detach`: reverses `frit attach`, also after the server was killed.

use super::attach::able;
use super::attach::state::{AttachState, mountpoint};
use super::attach::subprocess::run_with_timeout;
use crate::output::{print, print_stderr};
use frit_serve::ctl::{Client, SOCKET};
use frit_serve::fuse::{FILE_NAME, loop_devices, unmount, volumes_at};
use frit_volume::superblock::VolumeState;
use miette::{IntoDiagnostic, Result, WrapErr, miette};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

/// Interval of polling for the end of a process or device.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Time limit for releasing a loop device.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(20);

/// Release the block device that frit attach made of a volume.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  umount /mnt && frit detach vol
  frit detach vol --force      file systems on it are unmounted, even while programs use them

The loop device is released, the file unmounted, and the server stopped cleanly. Detaching twice is no error. After a server \
was killed it cleans up, reports what may be lost, and exits with 1; the next frit attach recovers the volume. \
See docs/guide/fuse.md.")]
pub(crate) struct Args {
    /// The volume.
    volume: PathBuf,
    /// Directory where the raw file is mounted, if frit serve --fuse was started by hand. [default:
    /// as attached]
    #[arg(long, value_name = "DIRECTORY")]
    mountpoint: Option<PathBuf>,
    /// Unmount file systems on the device first, even while programs use them.
    #[arg(long)]
    force: bool,
    /// Seconds until the server must have closed the volume.
    #[arg(long, value_name = "S", default_value_t = 120)]
    timeout: u64,
}

/// Runs the command.
///
/// # Errors
/// The device is mounted or in use; the server does not end.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    able()?;
    let dir = super::volume::whole_path(&args.volume)?;
    let known = AttachState::read(&dir);
    let server = Client::connect(&dir.join(SOCKET)).ok().map(|c| c.server());
    let mounted = match (&args.mountpoint, &known) {
        (None, Some(known)) => known.mountpoint.clone(),
        (given, _) => mountpoint(&dir, given.as_deref())?,
    };
    let mut did = Vec::new();
    // This is checked before the cleanup: a killed server leaves the volume dirty, or its mount.
    let gone = known.as_ref().filter(|k| server.is_none() && k.started && !is_ours(k.server, &dir));
    let devices = devices(&mounted, known.as_ref())?;
    let ended = gone.map(|known| EndedServer::of(known, &dir, !devices.is_empty()));
    for device in devices {
        release(&device, args)?;
        did.push(device.display().to_string());
    }
    let timeout = Duration::from_secs(args.timeout);
    match (server, &known) {
        (Some(pid), Some(known)) if known.started => stop(pid, timeout)?,
        // A server that is not ready yet, or no longer listens.
        (None, Some(known)) if known.started && is_ours(known.server, &dir) => stop(known.server, timeout)?,
        (Some(pid), _) => {
            print_stderr(&format!("process {pid} keeps serving it: it was not started by frit attach\n"))?;
            did.push("nothing else".into());
        }
        (None, _) => {}
    }
    // Removes the mount of a server that has ended; a running server keeps its mount.
    let goes_on = server.is_some() && !known.as_ref().is_some_and(|k| k.started);
    while !goes_on && volumes_at(&mounted).into_diagnostic()? > 0 {
        unmount(&mounted, true).into_diagnostic().wrap_err_with(|| mounted.display().to_string())?;
        did.push(mounted.display().to_string());
    }
    if known.is_some() {
        AttachState::remove(&dir)?;
    }
    match &did[..] {
        [] if known.is_none() => print(&format!("{} is not attached\n", args.volume.display())),
        [] => print(&format!("{} is detached\n", args.volume.display())),
        did => print(&format!("{} is detached: {}\n", args.volume.display(), did.join(", "))),
    }?;
    let Some(ended) = ended else { return Ok(ExitCode::SUCCESS) };
    print_stderr(&ended.told(&args.volume))?;
    Ok(if ended.may_have_lost() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// State of a server that had ended before its device was released.
struct EndedServer {
    server: i32,
    device: String,
    /// `true` if the server did not close the volume.
    killed: bool,
    /// `true` if the kernel still had the device: writes to it in the meantime failed.
    had_device: bool,
}

impl EndedServer {
    fn of(known: &AttachState, dir: &Path, had_device: bool) -> EndedServer {
        let clean = frit_volume::inspect(dir).is_ok_and(|i| i.superblock.state == VolumeState::Clean);
        let device = known.device.as_ref().map_or("the device".into(), |d| d.display().to_string());
        EndedServer { server: known.server, device, killed: !clean, had_device }
    }

    fn may_have_lost(&self) -> bool {
        self.killed || self.had_device
    }

    /// Returns a message with the data that is kept, the data that may be lost, and the remedy.
    fn told(&self, volume: &Path) -> String {
        let EndedServer { server, device, .. } = self;
        let volume = volume.display();
        let mut out = if self.killed {
            format!(
                "The server, process {server}, had ended without closing {volume}: it was killed, or crashed.\n\
                 What it had answered is kept, and what was synced on {device} also if the machine itself stopped. \
                 The volume is marked dirty; the next start recovers it, or frit recover {volume} now.\n"
            )
        } else {
            format!("The server, process {server}, had ended before; {volume} is closed in order.\n")
        };
        if self.may_have_lost() {
            out += &format!(
                "What programs wrote to {device} and did not sync may be lost: the kernel could not hand it over. \
                 Check the file system on it before it is used.\n"
            );
        }
        out
    }
}

/// Returns the loop devices over the file. After a lazy unmount the kernel reports only the last
/// part of the file's path: then the recorded device is the right one.
fn devices(mounted: &Path, known: Option<&AttachState>) -> Result<Vec<PathBuf>> {
    let file = mounted.join(FILE_NAME);
    let cut = Path::new("/").join(FILE_NAME);
    let wrote = known.and_then(|k| k.device.as_ref());
    let ours = |l: &loop_devices::LoopDevice| l.file == file || (l.file == cut && Some(&l.device) == wrote);
    let all = loop_devices::all().into_diagnostic()?;
    Ok(all.into_iter().filter(ours).map(|l| l.device).collect())
}

/// Releases a loop device, and waits until it is free.
fn release(device: &Path, args: &Args) -> Result<()> {
    let at = loop_devices::mounted(device).into_diagnostic()?;
    if !at.is_empty() && !args.force {
        let list: Vec<String> = at.iter().map(|p| p.display().to_string()).collect();
        return Err(miette!(
            help = format!("umount {}; or --force, which does it even while programs use it", list.join(" ")),
            "{} is still mounted at {}",
            device.display(),
            list.join(", ")
        ));
    }
    // Unmounts in reverse order, since a later mount may be below an earlier one.
    for path in at.iter().rev() {
        unmount(path, true).into_diagnostic().wrap_err_with(|| path.display().to_string())?;
    }
    let holders = loop_devices::holders(device).into_diagnostic()?;
    if let Some(holder) = holders.first() {
        let holder = holder.display();
        return Err(miette!("{} is part of {holder}: take it out of there first", device.display()));
    }
    run_with_timeout(Command::new("losetup").arg("--detach").arg(device), RELEASE_TIMEOUT)?;
    let end = Instant::now() + RELEASE_TIMEOUT;
    while loop_devices::all().into_diagnostic()?.iter().any(|l| l.device == device) {
        if Instant::now() > end {
            return Err(miette!(
                help = format!(
                    "fuser -v {0} lists its users; it is released when the last one closes it, then run frit detach again",
                    device.display()
                ),
                "{} is still in use",
                device.display()
            ));
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    Ok(())
}

/// Returns `true` if a recorded process still serves this volume. The command line is compared,
/// because process IDs are reused.
fn is_ours(pid: i32, dir: &Path) -> bool {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let mut words = line.split(|&b| b == 0);
    words.any(|w| w == b"serve") && words.next().is_some_and(|w| w == dir.as_os_str().as_encoded_bytes())
}

/// Asks a server to stop cleanly, and waits until it has ended.
fn stop(pid: i32, timeout: Duration) -> Result<()> {
    let Some(process) = Pid::from_raw(pid) else { return Ok(()) };
    match kill_process(process, Signal::TERM) {
        Ok(()) => {}
        Err(rustix::io::Errno::SRCH) => return Ok(()),
        Err(e) => return Err(e).into_diagnostic().wrap_err_with(|| format!("cannot stop process {pid}")),
    }
    let end = Instant::now() + timeout;
    while test_kill_process(process).is_ok() && !is_over(pid) {
        if Instant::now() > end {
            let seconds = timeout.as_secs();
            return Err(miette!(
                help = "wait for it (--timeout), or kill -9 it and run frit detach again: the next start recovers the volume",
                "the server, process {pid}, has not closed the volume after {seconds} s"
            ));
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    Ok(())
}

/// Returns `true` if a process is a zombie or does not exist.
fn is_over(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('Z') || rest.is_empty())
}

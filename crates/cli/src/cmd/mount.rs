//! `frit mount`: mounts the file system of an image.

mod background;
mod periodic_sync;

use super::image::{self, LockedImage, OverlayArgs};
use super::serve::{POLL_INTERVAL, second_signal_exits, stop_signals};
use crate::output::{print, print_stderr};
use frit_core::{paths, size};
use frit_fs::{FileSystem, Fs, Image, Pool};
use frit_serve::fuse::absolute_path;
use frit_serve::fuse::file_system::{IspAccess, Mount, MountOptions, Rings, THREADS_MAX, clear_stale};
use miette::{IntoDiagnostic, Result, WrapErr};
use periodic_sync::PeriodicSync;
use signal_hook::iterator::Signals;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Time for which programs may keep using the mount after a signal, before new users are locked
/// out.
const UNMOUNT_TIMEOUT: Duration = Duration::from_secs(2);

/// Mount the file system of an image.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  frit mount img /mnt                      returns when it is mounted; serves in the background
  frit mount img /mnt --foreground         serves in the foreground; SIGINT, SIGTERM, SIGHUP unmount
  frit mount img /mnt --read-only
  frit mount img /mnt -o noatime,suid,dev  as in mount(8); also ro, noexec, fsname=NAME, allow_other
  frit mount img /mnt --isp all            all users may give instructions to the processing engine
  frit mount /dev/shm/pool /mnt            a pool: the kernel reads and writes files itself
  frit mount vol /mnt                      a volume whose layer is a nameless-write device
  frit unmount /mnt                        or umount, or fusermount3 -u

It needs /dev/fuse, and fusermount3 unless root mounts. A stale mount of a killed frit is removed \
first. A kill loses nothing: the next mount recovers the file system. A power loss leaves an image \
on a disk in the state of the last sync, at most --sync-every seconds old; for a volume, a kill \
does as well. \
See docs/guide/mount.md.")]
pub(crate) struct Args {
    /// Image that frit mkfs made, the directory of a pool, or a volume.
    image: PathBuf,
    /// Mount point: an empty directory.
    directory: PathBuf,
    /// Stay in the foreground until it is unmounted.
    #[arg(long, short)]
    foreground: bool,
    /// Mount read-only.
    #[arg(long, short)]
    read_only: bool,
    /// Number of threads that serve requests. [default: one a processor, 2 to 16]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=THREADS_MAX as i64))]
    threads: Option<u16>,
    /// Let the kernel gather writes (writeback cache). Faster for small writes; unsynced data may
    /// be lost when frit is killed.
    #[arg(long)]
    writeback: bool,
    /// Requests through io_uring, which take a third of the time: auto uses it if the kernel permits it
    /// (Linux 6.14; echo Y > /sys/module/fuse/parameters/enable_uring).
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = IoUring::Auto)]
    io_uring: IoUring,
    /// Users that may give instructions to the processing engine through command files (.isp).
    #[arg(long, value_name = "USERS", value_enum, default_value_t = Isp::Owner)]
    isp: Isp,
    /// Interval of syncs of a changed image on a disk: the most that a power loss can lose. 0: sync
    /// only when programs ask for it, and when much has changed.
    #[arg(long, value_name = "SECONDS", default_value_t = 5.0, value_parser = seconds)]
    sync_every: f64,
    /// Budget of memory for in-storage processing (.isp), such as 512M. [default: a quarter of the memory of
    /// the machine, or of the limit of the control group]
    #[arg(long, value_name = "BYTES", value_parser = isp_memory)]
    isp_memory: Option<u64>,
    #[command(flatten)]
    changes: OverlayArgs,
    /// Mount options, separated by commas. Can be given again.
    #[arg(short, value_name = "OPTIONS")]
    options: Vec<String>,
    /// Log file of the background process.
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
}

/// Use of io_uring for requests.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum IoUring {
    /// If the kernel permits it.
    Auto,
    /// Always: without it, nothing is mounted.
    On,
    /// Never.
    Off,
}

impl IoUring {
    /// Returns the word of the command line.
    fn word(self) -> &'static str {
        match self {
            IoUring::Auto => "auto",
            IoUring::On => "on",
            IoUring::Off => "off",
        }
    }
}

impl From<IoUring> for Rings {
    fn from(given: IoUring) -> Rings {
        match given {
            IoUring::Auto => Rings::Auto,
            IoUring::On => Rings::On,
            IoUring::Off => Rings::Off,
        }
    }
}

/// Users that may give instructions.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Isp {
    /// None.
    Off,
    /// The user that mounts, and root.
    Owner,
    /// All users that may use the mount.
    All,
}

impl Isp {
    /// Returns the word of the command line.
    fn word(self) -> &'static str {
        match self {
            Isp::Off => "off",
            Isp::Owner => "owner",
            Isp::All => "all",
        }
    }
}

impl From<Isp> for IspAccess {
    fn from(given: Isp) -> IspAccess {
        match given {
            Isp::Off => IspAccess::Off,
            Isp::Owner => IspAccess::Owner,
            Isp::All => IspAccess::All,
        }
    }
}

impl Args {
    fn options(&self) -> Result<MountOptions> {
        let mut options =
            MountOptions::new(paths::canonical(&self.image).as_ref().unwrap_or(&self.image).display());
        for words in &self.options {
            options.add(words).into_diagnostic()?;
        }
        options.read_only |= self.read_only;
        options.writeback = self.writeback;
        options.rings = self.io_uring.into();
        options.isp = self.isp.into();
        options.isp_memory = self.isp_memory;
        if let Some(threads) = self.threads {
            options.threads = usize::from(threads);
        }
        Ok(options)
    }

    /// Returns absolute paths of the image and the directory.
    fn absolute(&self) -> Result<(PathBuf, PathBuf)> {
        let image = paths::canonical(&self.image).into_diagnostic();
        let image = image.wrap_err_with(|| format!("cannot open {}", self.image.display()))?;
        Ok((image, absolute_path(&self.directory).into_diagnostic()?))
    }
}

/// Parses a number of seconds, from 0 to a day.
fn seconds(word: &str) -> Result<f64, String> {
    let seconds: f64 = word.parse().map_err(|e| format!("{e}"))?;
    if (0.0..=86_400.0).contains(&seconds) { Ok(seconds) } else { Err("0 to 86400 seconds".into()) }
}

/// Least budget of memory for in-storage processing: an instruction with a regular expression needs some.
const ISP_MEMORY_MIN: u64 = 256 << 20;

/// Parses a budget of memory for in-storage processing.
fn isp_memory(word: &str) -> Result<u64, String> {
    let bytes = size::parse(word)?;
    if bytes >= ISP_MEMORY_MIN {
        Ok(bytes)
    } else {
        Err(format!("at least {}", size::format(ISP_MEMORY_MIN)))
    }
}

/// Runs the command.
///
/// # Errors
/// The image cannot be mounted.
pub(crate) fn run(args: &Args) -> Result<()> {
    // Wrong options are reported here, before a background process starts.
    let options = args.options()?;
    if args.foreground { serve(args, &options) } else { background::start(args) }
}

/// Mounts, prints one line, and serves until it is unmounted.
fn serve(args: &Args, options: &MountOptions) -> Result<()> {
    // Open files of a pool, and processes that have command files open, are open files of the server.
    image::raise_open_file_limit();
    // From here on signals are queued, however long opening takes.
    let mut signals = Signals::new(stop_signals()).into_diagnostic()?;
    second_signal_exits()?;
    // Before anything asks its file system.
    image::end_killed_server(&image::image_path(&args.image))?;
    clear(args)?;
    if image::is_volume(&args.image) {
        let files = Arc::new(image::open_on_volume(&args.image, options.read_only)?);
        clear(args)?;
        let size = size::format(contents_bytes(&files)?);
        return serve_files(
            args,
            options,
            files,
            &format!("contents of {size} on a nameless-write device"),
            &mut signals,
        );
    }
    let pool = image::open_pool(&args.image)?;
    let image = image::image_path(&args.image);
    let locked = LockedImage::open(&image)?;
    image::warn_exposed(&image, pool.as_ref().map(|_| args.image.as_path()))?;
    let mut options = options.clone();
    if let Some(pool) = &pool {
        options.passthrough = true;
        hint(pool)?;
    }
    // The lock of a killed server is released only when it has ended, which may be after the first
    // check.
    clear(args)?;
    let files = Arc::new(image::open(&image, pool, options.read_only, &args.changes)?);
    if !options.read_only {
        reserve(&files, &image)?;
    }
    let size = match options.passthrough {
        true => "a pool".to_string(),
        false => size::format(locked.bytes()?),
    };
    serve_files(args, &options, files, &size, &mut signals)
}

/// Returns the space for contents of a file system.
fn contents_bytes(files: &Fs<Image>) -> Result<u64> {
    let usage = files.usage().into_diagnostic()?;
    Ok(usage.blocks * u64::from(usage.block_bytes))
}

/// Mounts an open file system, prints one line with its size, and serves until it is unmounted.
fn serve_files(
    args: &Args,
    options: &MountOptions,
    files: Arc<Fs<Image>>,
    size: &str,
    signals: &mut Signals,
) -> Result<()> {
    let ended = serve_open(args, options, &files, size, signals);
    // The image is closed cleanly in every case: changes that are not synced would stay in memory.
    let closed = image::close(files);
    ended.and(closed)
}

fn serve_open(
    args: &Args,
    options: &MountOptions,
    files: &Arc<Fs<Image>>,
    size: &str,
    signals: &mut Signals,
) -> Result<()> {
    let mount = Mount::start(files, &args.directory, options).into_diagnostic()?;
    if let Some(why) = mount.passthrough_inactive_reason() {
        print_stderr(&format!(
            "frit mount: {}: no passthrough ({why}): reads and writes are FUSE requests\n",
            args.directory.display()
        ))?;
    }
    let how = if options.read_only { ", read-only" } else { "" };
    print(&format!("{} ({size}{how}) at {}\n", args.image.display(), mount.mountpoint().display()))?;
    let syncing = PeriodicSync::start(files, Duration::from_secs_f64(args.sync_every));
    wait(&mount, signals)?;
    drop(syncing);
    mount.join().into_diagnostic().wrap_err("the connection to the kernel broke")
}

/// Unmounts the stale mount of a killed server at the directory, and reports it.
fn clear(args: &Args) -> Result<()> {
    if clear_stale(&args.directory).into_diagnostic()? {
        let at = args.directory.display();
        print_stderr(&format!("frit mount: {at}: unmounted a stale mount of a killed frit\n"))?;
    }
    Ok(())
}

/// Reserves disk space for syncs. Too little space is reported but no error: changes that a failed
/// sync has left must stay accessible.
fn reserve(files: &Fs<Image>, image: &Path) -> Result<()> {
    let Err(error) = files.medium().reserve() else { return Ok(()) };
    print_stderr(&format!(
        "frit mount: {error}; {} is synced when there is space; until then changes are only in memory\n",
        image.display()
    ))
}

/// Prints a hint if the configuration of a pool is slow.
pub(super) fn hint(pool: &Pool) -> Result<()> {
    pool.backing_fs().hint().map_or(Ok(()), |hint| print_stderr(&format!("frit: {hint}\n")))
}

/// Returns when the file system is unmounted and no program uses it any more. A signal unmounts it.
fn wait(mount: &Mount, signals: &mut Signals) -> Result<()> {
    while !mount.has_ended() {
        if signals.pending().next().is_some() && mount.unmount(UNMOUNT_TIMEOUT).into_diagnostic()? {
            let at = mount.mountpoint().display();
            // The terminal may be closed; the image is closed all the same.
            let _ = print_stderr(&format!(
                "frit mount: {at} is unmounted; files that programs still have open are served until they \
                 are closed; a second signal ends it at once\n"
            ));
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    Ok(())
}

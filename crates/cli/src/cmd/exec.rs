//! `frit exec`: runs a program with direct access to the files of a mount.

mod library;

use crate::output::print_stderr;
use frit_direct::environment::{DEVICES, REPORT};
use frit_direct::image_of;
use frit_direct::segment::path_of;
use frit_serve::fuse::file_system::all_mounted;
use miette::{IntoDiagnostic, Result, miette};
use std::convert::Infallible;
use std::ffi::{CStr, OsStr, OsString};
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::channel;
use std::time::Duration;

/// Maximum time for a mount to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);

/// Run a program that reads and writes files of a mount in the memory of their image.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  frit exec -- fio --name=a --directory=/mnt --rw=randread --size=256M --bs=4k
  frit exec --mount /mnt -- sqlite3 /mnt/a.db
  frit exec --check                        which mounts it is possible for, or why not

The program and its children open files through the mount, which checks permissions as always. \
They then read and write file data with loads and stores in the image. Everything else goes \
through the mount. The image has to be on tmpfs or DAX, and the user must be allowed to write it. \
Static and set-user-ID programs run as without frit exec. The exit code is that of the program, \
127 if it is not found, and 126 if it cannot be run. See docs/guide/exec.md.")]
pub(crate) struct Args {
    /// Directory in a mount; without it, all mounts of frit. Can be given again.
    #[arg(long, value_name = "DIRECTORY")]
    mount: Vec<PathBuf>,
    /// Only show for which mounts direct access is possible.
    #[arg(long, conflicts_with = "program")]
    check: bool,
    /// At the end of each process, show how many of its reads and writes went through the mount.
    #[arg(long)]
    report: bool,
    /// Program and its arguments, all behind its name.
    #[arg(trailing_var_arg = true, required_unless_present = "check")]
    program: Vec<OsString>,
}

/// A mount, with its image or the reason why direct access is not possible.
struct Candidate {
    directory: PathBuf,
    device: u64,
    image: Result<PathBuf, String>,
}

/// Runs the command. It is replaced by the program.
///
/// # Errors
/// There is no mount, or the program cannot be run.
pub(crate) fn run(args: &Args) -> Result<Infallible> {
    let directories = match args.mount.is_empty() {
        true => all_mounted().into_diagnostic()?,
        false => args.mount.clone(),
    };
    let mut mounts = Vec::new();
    for directory in directories {
        match candidate_in_time(&directory) {
            Ok(mount) => mounts.push(mount),
            // A mount of somebody else is none of this program's business, unless it was named.
            Err(_) if args.mount.is_empty() && !args.check => {}
            Err(e) if args.mount.is_empty() => {
                print_stderr(&format!("{}: {e}; left out\n", directory.display()))?;
            }
            Err(e) => return Err(miette!("{}: {e}", directory.display())),
        }
    }
    if mounts.is_empty() {
        return Err(miette!("no file system of frit is mounted: frit mount mounts one"));
    }
    let is_possible = mounts.iter().any(|mount| mount.image.is_ok());
    for mount in &mounts {
        if args.check || !args.mount.is_empty() || !is_possible {
            report(mount, args.check)?;
        }
    }
    if args.check {
        std::process::exit(i32::from(!is_possible));
    }
    exec(args, &mounts)
}

/// Examines a mount, whose server may be stopped.
fn candidate_in_time(directory: &Path) -> Result<Candidate, String> {
    let (to, from) = channel();
    let directory = directory.to_owned();
    std::thread::spawn(move || to.send(candidate(&directory)));
    from.recv_timeout(ANSWER_TIMEOUT)
        .unwrap_or_else(|_| Err("the server of this mount does not answer".into()))
}

fn candidate(directory: &Path) -> Result<Candidate, String> {
    let inside = File::open(directory).map_err(|e| match e.kind() {
        ErrorKind::NotConnected => {
            "the server of this mount has ended; frit unmount --lazy removes the mount, then mount the image again".into()
        }
        _ => e.to_string(),
    })?;
    let device = inside.metadata().map_err(|e| e.to_string())?.dev();
    let image = image_of(&inside).map_err(|e| format!("not a mount of this version of frit ({e})"))?;
    let image = image.and_then(|image| match File::options().read(true).write(true).open(&image) {
        _ if frit_direct::LIBRARY.is_empty() => Err("direct access needs Linux on x86-64".into()),
        Ok(_) => check_shared(&image).map(|()| image),
        Err(e) => Err(format!("{}: {e}; direct access needs permission to write the image", image.display())),
    });
    Ok(Candidate { directory: directory.to_owned(), device, image })
}

/// Checks the permissions of the memory that a mount shares with programs, which it has since the first of them.
fn check_shared(image: &Path) -> Result<(), String> {
    let path = path_of(image);
    match File::options().read(true).write(true).open(&path) {
        Err(e) if e.kind() == ErrorKind::PermissionDenied => Err(format!(
            "{}: {e}; it has the permissions that the image had before: mount the image again",
            path.display()
        )),
        _ => Ok(()),
    }
}

fn report(mount: &Candidate, all: bool) -> Result<()> {
    let directory = mount.directory.display();
    match &mount.image {
        Ok(image) if all => print_stderr(&format!("{directory}: direct access to {}\n", image.display())),
        Ok(_) => Ok(()),
        Err(why) => print_stderr(&format!("{directory}: no direct access: {why}\n")),
    }
}

fn exec(args: &Args, mounts: &[Candidate]) -> Result<Infallible> {
    let Some((name, arguments)) = args.program.split_first() else {
        return Err(miette!("no program is given"));
    };
    let mut command = Command::new(name);
    command.args(arguments);
    let devices: Vec<String> = mounts
        .iter()
        .filter(|mount| mount.image.is_ok())
        .map(|mount| format!("{:x}", mount.device))
        .collect();
    if !devices.is_empty() {
        let library = library::install()?;
        let others = std::env::var_os("LD_PRELOAD").filter(|others| !others.is_empty());
        let mut preload = library.into_os_string();
        if let Some(others) = others {
            preload.push(OsStr::new(":"));
            preload.push(others);
        }
        command.env("LD_PRELOAD", preload).env(variable(DEVICES), devices.join(","));
        if args.report {
            command.env(variable(REPORT), "1");
        }
    }
    let e = command.exec();
    // As in env(1).
    let code = if e.kind() == ErrorKind::NotFound { 127 } else { 126 };
    print_stderr(&format!("Error: cannot run {}: {e}\n", name.display()))?;
    std::process::exit(code)
}

/// Returns the name of an environment variable.
fn variable(name: &CStr) -> &OsStr {
    OsStr::from_bytes(name.to_bytes())
}

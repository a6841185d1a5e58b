//! A mount that is served by a background process.

use super::Args;
use crate::output::{print, print_stderr};
use frit_core::paths::OpenOptions;
use miette::{IntoDiagnostic, Result, WrapErr, miette};
use rustix::fs::MemfdFlags;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// Starts this program again in the background, and returns when it has mounted the file system.
pub(super) fn start(args: &Args) -> Result<()> {
    let (image, directory) = args.absolute()?;
    let (log, before) = log(args)?;
    let mut mount = Command::new(std::env::current_exe().into_diagnostic()?);
    mount.arg("mount").arg(image).arg(directory).arg("--foreground");
    for (given, word) in [(args.read_only, "--read-only"), (args.writeback, "--writeback")] {
        mount.args(given.then_some(word));
    }
    mount.arg(format!("--sync-every={}", args.sync_every)).args(args.changes.words()?);
    mount.args(args.threads.map(|n| format!("--threads={n}")));
    mount.arg(format!("--io-uring={}", args.io_uring.word())).arg(format!("--isp={}", args.isp.word()));
    mount.args(args.isp_memory.map(|bytes| format!("--isp-memory={bytes}")));
    mount.args(args.options.iter().flat_map(|words| ["-o", words.as_str()]));
    // A process group of its own: signals to this terminal's foreground group do not reach the
    // mount.
    mount.process_group(0).current_dir("/").stdin(Stdio::null()).stdout(Stdio::piped());
    mount.stderr(log.try_clone().into_diagnostic()?);
    let mut child = mount.spawn().into_diagnostic()?;
    let mut line = String::new();
    if let Some(out) = child.stdout.take() {
        BufReader::new(out).read_line(&mut line).into_diagnostic()?;
    }
    // The background process prints one line after mounting, and none on failure.
    print_stderr(&said(&log, before)?)?;
    if !line.is_empty() {
        return print(&line);
    }
    let status = child.wait().into_diagnostic()?;
    std::process::exit(status.code().filter(|&code| code != 0).unwrap_or(1));
}

/// Opens the log of the background process, and returns its present length. Without `--log` it is
/// in memory, and /proc/PID/fd/2 shows it.
fn log(args: &Args) -> Result<(File, u64)> {
    let Some(path) = &args.log else {
        let memory = rustix::fs::memfd_create("frit mount", MemfdFlags::CLOEXEC).into_diagnostic()?;
        return Ok((memory.into(), 0));
    };
    let file = OpenOptions::new().read(true).append(true).create(true).open(path);
    let file = file.into_diagnostic().wrap_err_with(|| format!("cannot write {}", path.display()))?;
    let before = file.metadata().into_diagnostic()?.len();
    Ok((file, before))
}

/// Returns the text that was logged since offset `before`.
fn said(log: &File, before: u64) -> Result<String> {
    let end = log.metadata().into_diagnostic()?.len();
    let mut bytes = vec![0; end.saturating_sub(before) as usize];
    log.read_exact_at(&mut bytes, before).map_err(|e| miette!("cannot read the log of the mount: {e}"))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

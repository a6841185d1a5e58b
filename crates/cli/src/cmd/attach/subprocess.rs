//! Execution of programs with a time limit.

use miette::{IntoDiagnostic, Result, WrapErr, miette};
use std::io::Read;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Interval of polling for the end of the program.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Runs a program with little output, and returns its standard output.
///
/// # Errors
/// The program does not exist, fails, or runs longer than `timeout`: then it is killed.
pub(crate) fn run_with_timeout(command: &mut Command, timeout: Duration) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().into_diagnostic().wrap_err_with(|| format!("cannot run {name}"))?;
    let end = Instant::now() + timeout;
    let status = loop {
        match child.try_wait().into_diagnostic()? {
            Some(status) => break status,
            None if Instant::now() > end => {
                child.kill().into_diagnostic()?;
                return Err(miette!("{name} did not end within {} s", timeout.as_secs()));
            }
            None => std::thread::sleep(POLL_INTERVAL),
        }
    };
    let mut said = String::new();
    let mut read = |from: Option<&mut dyn Read>| match from {
        Some(from) => from.read_to_string(&mut said).map(drop),
        None => Ok(()),
    };
    if status.success() {
        read(child.stdout.as_mut().map(|o| o as &mut dyn Read)).into_diagnostic()?;
        return Ok(said);
    }
    read(child.stderr.as_mut().map(|e| e as &mut dyn Read)).into_diagnostic()?;
    Err(miette!("{}", if said.trim().is_empty() { format!("{name}: {status}") } else { said.trim().into() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_say_what_they_say_or_fail() {
        let run = |script: &str, ms| {
            run_with_timeout(Command::new("sh").args(["-c", script]), Duration::from_millis(ms))
        };
        assert_eq!(run("echo yes", 10_000).unwrap(), "yes\n");
        assert!(run("echo no >&2; exit 3", 10_000).unwrap_err().to_string().contains("no"));
        assert!(run("exit 3", 10_000).unwrap_err().to_string().contains('3'));
        let late = run("exec sleep 100", 50).unwrap_err().to_string();
        assert!(late.contains("did not end"), "{late}");
        assert!(run_with_timeout(&mut Command::new("/no/such/program"), Duration::ZERO).is_err());
    }
}

//! Hints by the process that sent a request.

use super::ProcessRule;
use frit_core::Hints;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Time for which the name of a process is kept: it changes when the process executes another
/// program, and its number can be used again.
const NAME_LIFETIME: Duration = Duration::from_secs(1);
/// Maximum number of processes whose hints are kept.
const PROCESSES_MAX: usize = 1024;

/// Rules by the names of processes, with the hints of the processes seen last.
#[derive(Debug)]
pub(crate) struct ProcessHints {
    rules: Vec<ProcessRule>,
    known: Mutex<HashMap<u32, (Instant, Hints)>>,
}

impl ProcessHints {
    /// Creates the table; `None` without rules.
    pub(crate) fn new(rules: Vec<ProcessRule>) -> Option<ProcessHints> {
        (!rules.is_empty()).then(|| ProcessHints { rules, known: Mutex::default() })
    }

    /// Returns the hints of a process, or of a thread. Requests without a process, of the kernel
    /// itself, have number 0 and no hints.
    pub(crate) fn of(&self, pid: u32) -> Hints {
        if pid == 0 {
            return Hints::NONE;
        }
        let mut known = self.known.lock();
        let now = Instant::now();
        if let Some((since, hints)) = known.get(&pid)
            && now.duration_since(*since) < NAME_LIFETIME
        {
            return *hints;
        }
        if known.len() >= PROCESSES_MAX {
            known.clear();
        }
        let hints = self.read(pid);
        known.insert(pid, (now, hints));
        hints
    }

    fn read(&self, pid: u32) -> Hints {
        // A process that has ended has no name, and no hints.
        let Ok(name) = std::fs::read(format!("/proc/{pid}/comm")) else { return Hints::NONE };
        let name = name.strip_suffix(b"\n").unwrap_or(&name);
        let rules = self.rules.iter().filter(|rule| rule.name.as_bytes() == name);
        rules.fold(Hints::NONE, |all, rule| all.with(rule.kind.hints()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_the_hints_of_its_name() {
        assert!(ProcessHints::new(Vec::new()).is_none());
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let rules = ["sleep=hot", "sleep=metadata", "other=cold"].map(|r| r.parse().unwrap());
        let hints = ProcessHints::new(rules.to_vec()).unwrap();
        // The child has the name of this program until it executes `sleep`.
        let until = Instant::now() + Duration::from_secs(10);
        while hints.read(child.id()) == Hints::NONE && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(hints.of(child.id()), Hints::HOT.with(Hints::METADATA));
        assert_eq!(hints.of(std::process::id()), Hints::NONE);
        assert_eq!(hints.of(0), Hints::NONE);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(hints.of(u32::MAX), Hints::NONE, "there is no such process");
    }
}

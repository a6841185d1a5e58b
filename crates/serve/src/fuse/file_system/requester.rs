//! What requests of FUSE do not contain of the thread that sends them: its supplementary groups,
//! capabilities and limits, and its process. The thread waits for the answer, so they do not change
//! meanwhile.

use frit_fs::{Caller, Overrides};
use frit_fuse::Request;
use std::path::PathBuf;
use std::sync::OnceLock;

/// Bits of capabilities (linux/capability.h).
const CAP_DAC_OVERRIDE: u64 = 1 << 1;
const CAP_DAC_READ_SEARCH: u64 = 1 << 2;
const CAP_FSETID: u64 = 1 << 4;

/// Rights of the sender of a request.
#[derive(Debug)]
pub(super) struct Credentials {
    /// The sender, for checks of permissions by the file system.
    pub(super) caller: Caller,
    /// The files that the sender writes keep their set-ID bits (CAP_FSETID).
    pub(super) keeps_set_ids: bool,
}

/// Returns the rights of the sender of a request. Without an entry in /proc, there are no supplementary
/// groups and no capabilities. Those of a process in another user namespace are not valid here.
pub(super) fn credentials(request: &Request) -> Credentials {
    let status = status(request.pid());
    let capabilities = match capabilities_in(&status) {
        0 => 0,
        some if is_in_own_user_namespace(request.pid()) => some,
        _ => 0,
    };
    let has = |capability: u64| capabilities & capability != 0;
    let overrides = match () {
        () if has(CAP_DAC_OVERRIDE) => Overrides::All,
        () if has(CAP_DAC_READ_SEARCH) => Overrides::ReadSearch,
        () => Overrides::None,
    };
    let groups = groups_in(&status);
    let caller = Caller { uid: request.uid(), gid: request.gid(), groups, checked: true, overrides };
    Credentials { caller, keeps_set_ids: has(CAP_FSETID) }
}

/// Returns the sender of a request, for checks of permissions by the file system.
pub(super) fn caller_with_groups(request: &Request) -> Caller {
    credentials(request).caller
}

/// Returns the limit of the sizes of files that a thread writes (RLIMIT_FSIZE), in bytes. `None` if there
/// is none, or without an entry in /proc.
pub(super) fn file_bytes_max(thread: u32) -> Option<u64> {
    file_bytes_in(&std::fs::read_to_string(format!("/proc/{thread}/limits")).unwrap_or_default())
}

/// Returns `false` also for a process whose namespace this one may not see.
fn is_in_own_user_namespace(thread: u32) -> bool {
    static OWN: OnceLock<Option<PathBuf>> = OnceLock::new();
    let namespace = |process: &str| std::fs::read_link(format!("/proc/{process}/ns/user")).ok();
    let own = OWN.get_or_init(|| namespace("self"));
    own.is_some() && *own == namespace(&thread.to_string())
}

/// Returns the process of the thread that sent a request, or `None` without an entry in /proc.
pub(super) fn process(request: &Request) -> Option<u32> {
    process_in(&status(request.pid()))
}

/// Returns `true` if a thread has a signal that ends it or that it handles, or is in another PID namespace.
/// Signals of job control, of children and of the C library are none of these.
pub(super) fn has_signal(thread: u32) -> bool {
    let status = status(thread);
    status.is_empty() || has_signal_in(&status)
}

/// Signals that do not end a wait: SIGCHLD, SIGCONT, SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU, SIGURG, SIGWINCH
/// (signal(7)), and the two of glibc (nptl(7)). Signal `n` is bit `n - 1`.
const QUIET: u64 = {
    let (mut bits, mut i) = (0, 0);
    let signals = [17, 18, 19, 20, 21, 22, 23, 28, 32, 33];
    while i < signals.len() {
        bits |= 1 << (signals[i] - 1);
        i += 1;
    }
    bits
};

fn has_signal_in(status: &str) -> bool {
    let set =
        |name| field(status, name).and_then(|set| u64::from_str_radix(set.trim(), 16).ok()).unwrap_or(0);
    let pending = set("SigPnd:") | set("ShdPnd:");
    pending & !set("SigBlk:") & !set("SigIgn:") & !QUIET != 0
}

fn status(thread: u32) -> String {
    std::fs::read_to_string(format!("/proc/{thread}/status")).unwrap_or_default()
}

/// Returns a field of the status of a thread (proc(5)).
fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    status.lines().find_map(|line| line.strip_prefix(name))
}

fn groups_in(status: &str) -> Vec<u32> {
    let groups = field(status, "Groups:").unwrap_or_default();
    groups.split_whitespace().filter_map(|group| group.parse().ok()).collect()
}

/// Returns the effective capabilities.
fn capabilities_in(status: &str) -> u64 {
    field(status, "CapEff:").and_then(|set| u64::from_str_radix(set.trim(), 16).ok()).unwrap_or(0)
}

/// Returns the soft limit of the size of files, which is the first number of its line (proc(5)).
fn file_bytes_in(limits: &str) -> Option<u64> {
    field(limits, "Max file size")?.split_whitespace().next()?.parse().ok()
}

fn process_in(status: &str) -> Option<u32> {
    field(status, "Tgid:")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_numbers_in_one_line() {
        assert_eq!(groups_in("Name:\tx\nUid:\t0\t0\t0\t0\nGroups:\t4 24 1000 \nNStgid:\t1\n"), [4, 24, 1000]);
        assert!(groups_in("Groups:\t\n").is_empty() && groups_in("").is_empty());
        let own: Vec<u32> =
            rustix::process::getgroups().unwrap().into_iter().map(rustix::process::Gid::as_raw).collect();
        assert_eq!(groups_in(&status(std::process::id())), own);
        assert!(status(u32::MAX).is_empty());
    }

    #[test]
    fn capabilities_and_limits_are_read() {
        assert_eq!(capabilities_in("CapPrm:\t1\nCapEff:\t0000000000000016\n"), 0x16);
        assert_eq!((capabilities_in(""), capabilities_in("CapEff:\tx\n")), (0, 0));
        let limits = |value| {
            let head = "Limit                     Soft Limit           Hard Limit           Units     \n";
            format!("{head}Max file size             {value:<21}unlimited            bytes     \n")
        };
        assert_eq!(file_bytes_in(&limits("unlimited")), None);
        assert_eq!((file_bytes_in(&limits("1024")), file_bytes_in("")), (Some(1024), None));
        let own = rustix::process::getrlimit(rustix::process::Resource::Fsize).current;
        assert_eq!(file_bytes_max(std::process::id()), own);
        assert!(is_in_own_user_namespace(std::process::id()) && !is_in_own_user_namespace(0));
    }

    #[test]
    fn signals_that_end_a_wait_are_told_from_others() {
        let of = |pending: u64, blocked: u64, ignored: u64| {
            let sets = [("SigPnd", pending), ("ShdPnd", 0), ("SigBlk", blocked), ("SigIgn", ignored)];
            let lines: Vec<_> = sets.iter().map(|(name, set)| format!("{name}:\t{set:016x}\n")).collect();
            has_signal_in(&lines.concat())
        };
        let bit = |signal: u32| 1u64 << (signal - 1);
        assert!(!of(0, 0, 0));
        for signal in [2, 9, 14, 15, 34] {
            assert!(of(bit(signal), 0, 0), "{signal}");
            assert!(!of(bit(signal), bit(signal), 0) && !of(bit(signal), 0, bit(signal)), "{signal}");
        }
        for signal in [17, 18, 28, 33] {
            assert!(!of(bit(signal), 0, 0), "{signal}");
        }
        assert!(has_signal_in("ShdPnd:\t0000000000000100\n"), "SIGKILL of the process");
        assert!(!has_signal(std::process::id()) && has_signal(u32::MAX));
    }

    #[test]
    fn a_thread_has_its_process() {
        let thread = rustix::thread::gettid().as_raw_nonzero().get() as u32;
        assert_eq!(process_in(&status(thread)), Some(std::process::id()));
        assert_eq!(process_in(""), None);
    }
}

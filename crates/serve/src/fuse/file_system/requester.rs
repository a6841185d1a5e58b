//! What requests of FUSE do not contain of the thread that sends them: its supplementary groups,
//! capabilities and limits, and its process. The thread waits for the answer, so they do not change
//! meanwhile.

use frit_fs::{Caller, Error, Overrides, Result};
use frit_fuse::Request;
use std::path::PathBuf;
use std::sync::OnceLock;

/// Bits of capabilities (linux/capability.h).
const CAP_DAC_OVERRIDE: u64 = 1 << 1;
const CAP_DAC_READ_SEARCH: u64 = 1 << 2;
const CAP_FSETID: u64 = 1 << 4;

/// Rights of the sender of a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Credentials {
    /// The sender, for checks of permissions by the file system.
    pub(super) caller: Caller,
    /// The files that the sender writes keep their set-ID bits (CAP_FSETID).
    pub(super) keeps_set_ids: bool,
    /// Effective capabilities, whether they are valid here or not.
    capabilities: u64,
    /// User namespace. `None` if this process may not see it.
    namespace: Option<PathBuf>,
}

impl Credentials {
    /// Returns `true` if all rights are known to be the same: what one may do, the other may do as well.
    pub(super) fn are_known_to_equal(&self, other: &Credentials) -> bool {
        self.namespace.is_some() && self == other
    }

    /// Returns `true` for a member of a group.
    pub(super) fn is_in_group(&self, gid: u32) -> bool {
        self.caller.gid == gid || self.caller.groups.contains(&gid)
    }
}

/// Sender of a request whose process is known.
#[derive(Debug)]
pub(super) struct Sender {
    pub(super) rights: Credentials,
    /// Thread group: the process of the thread.
    pub(super) process: u32,
}

/// Returns the rights of the sender of a request. Without an entry in /proc, there are no supplementary
/// groups and no capabilities. Those of a process in another user namespace are not valid here.
pub(super) fn credentials(request: &Request) -> Credentials {
    credentials_in(request, &status(request.pid()))
}

/// Returns the sender of a request with its process.
///
/// # Errors
/// The process is not in /proc of this one (another PID namespace, or hidden), or acts with the rights of
/// somebody else at the moment (a personality of io_uring, a stacked file system, a server of NFS).
pub(super) fn sender(request: &Request) -> Result<Sender> {
    let status = status(request.pid());
    match process_in(&status) {
        Some(process) if is_of(request, &status) => {
            Ok(Sender { rights: credentials_in(request, &status), process })
        }
        _ => Err(Error::NotPermitted),
    }
}

fn credentials_in(request: &Request, status: &str) -> Credentials {
    // A status of another thread, or of other rights than those of the request, says nothing.
    let status = if is_of(request, status) { status } else { "" };
    let namespace = namespace_of(&request.pid().to_string());
    let capabilities = capabilities_in(status);
    let is_valid = capabilities != 0 && namespace.is_some() && namespace == *own_namespace();
    let has = |capability: u64| is_valid && capabilities & capability != 0;
    let overrides = match () {
        () if has(CAP_DAC_OVERRIDE) => Overrides::All,
        () if has(CAP_DAC_READ_SEARCH) => Overrides::ReadSearch,
        () => Overrides::None,
    };
    let groups = groups_in(status);
    let caller = Caller { uid: request.uid(), gid: request.gid(), groups, checked: true, overrides };
    Credentials { caller, keeps_set_ids: has(CAP_FSETID), capabilities, namespace }
}

/// Returns `true` if a status has the user and the group of a request: those for accesses to files.
fn is_of(request: &Request, status: &str) -> bool {
    let is = |name, id| file_id_in(status, name) == Some(id);
    is("Uid:", request.uid()) && is("Gid:", request.gid())
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

/// User namespace of this process.
fn own_namespace() -> &'static Option<PathBuf> {
    static OWN: OnceLock<Option<PathBuf>> = OnceLock::new();
    OWN.get_or_init(|| namespace_of("self"))
}

/// Returns the user namespace of a process or thread, or `None` if this process may not see it.
fn namespace_of(process: &str) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/{process}/ns/user")).ok()
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

/// Returns the ID that counts for files, the last of the four in the line of `Uid:` or `Gid:`.
fn file_id_in(status: &str, name: &str) -> Option<u32> {
    field(status, name)?.split_whitespace().nth(3)?.parse().ok()
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
        assert!(own_namespace().is_some() && namespace_of("0").is_none());
    }

    #[test]
    fn the_ids_for_files_are_the_last_ones() {
        let status = "Uid:\t1000\t0\t0\t7\nGid:\t1000\t1000\t1000\t1000\n";
        assert_eq!((file_id_in(status, "Uid:"), file_id_in(status, "Gid:")), (Some(7), Some(1000)));
        assert_eq!((file_id_in("Uid:\t1\t2\n", "Uid:"), file_id_in("", "Uid:")), (None, None));
    }

    #[test]
    fn only_rights_that_are_seen_are_equal() {
        let caller = Caller { uid: 7, gid: 7, groups: vec![1], checked: true, overrides: Overrides::None };
        let rights =
            Credentials { caller, keeps_set_ids: false, capabilities: 0, namespace: Some("a".into()) };
        assert!(rights.are_known_to_equal(&rights.clone()));
        let unseen = Credentials { namespace: None, ..rights.clone() };
        assert!(!unseen.are_known_to_equal(&unseen.clone()) && !unseen.are_known_to_equal(&rights));
        let capable = Credentials { capabilities: 1, ..rights.clone() };
        let elsewhere = Credentials { namespace: Some("b".into()), ..rights.clone() };
        let mut member = rights.clone();
        member.caller.groups.push(2);
        for other in [capable, elsewhere, member.clone()] {
            assert!(!rights.are_known_to_equal(&other), "{other:?}");
        }
        assert!(member.is_in_group(2) && member.is_in_group(7) && !rights.is_in_group(2));
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

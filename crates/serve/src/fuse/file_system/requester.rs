//! What requests of FUSE do not contain of the thread that sends them: its supplementary groups, and its
//! process. The thread waits for the answer, so they do not change meanwhile.

use frit_fs::Caller;
use frit_fuse::Request;

/// Returns the sender of a request with its supplementary groups, for checks of permissions by the file
/// system. Without an entry in /proc, there are no groups.
pub(super) fn caller_with_groups(request: &Request) -> Caller {
    let groups = groups_in(&status(request.pid()));
    Caller { uid: request.uid(), gid: request.gid(), groups, checked: true }
}

/// Returns the process of the thread that sent a request, or `None` without an entry in /proc.
pub(super) fn process(request: &Request) -> Option<u32> {
    process_in(&status(request.pid()))
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
    fn a_thread_has_its_process() {
        let thread = rustix::thread::gettid().as_raw_nonzero().get() as u32;
        assert_eq!(process_in(&status(thread)), Some(std::process::id()));
        assert_eq!(process_in(""), None);
    }
}

//! Supplementary groups of a process, which requests of FUSE do not contain.

/// Returns the supplementary groups of the thread that sent a request. It waits for the answer, so they
/// do not change meanwhile. Without an entry in /proc, there are none.
pub(in crate::fuse::file_system) fn of_process(pid: u32) -> Vec<u32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    groups_in(&status)
}

fn groups_in(status: &str) -> Vec<u32> {
    let line = status.lines().find_map(|line| line.strip_prefix("Groups:"));
    line.unwrap_or_default().split_whitespace().filter_map(|group| group.parse().ok()).collect()
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
        assert_eq!(of_process(std::process::id()), own);
        assert!(of_process(u32::MAX).is_empty());
    }
}

//! Memory that the machine and the control groups of the process allow.

use std::path::{Path, PathBuf};

/// Part of this memory that an engine uses, as its divisor. The rest is for the server itself, which can have the
/// changes of an image in memory, and for other programs.
const SHARE: u64 = 4;

/// Returns the default budget of an engine in bytes: a quarter of the memory of the machine, or of the smallest limit
/// of the control groups of the process.
pub(crate) fn budget() -> u64 {
    let limit = control_groups(Path::new("/"));
    limit.map_or_else(machine, |limit| limit.min(machine())) / SHARE
}

/// Bytes of the memory of the machine.
fn machine() -> u64 {
    let info = rustix::system::sysinfo();
    info.totalram.saturating_mul(info.mem_unit.into())
}

/// Smallest limit in bytes of the control groups of this process and those around them, in both versions of control
/// groups (cgroups(7)), or `None` without a limit. `root` is the directory with `proc` and `sys`.
fn control_groups(root: &Path) -> Option<u64> {
    // Paths can have any bytes.
    let read = |path: &str| std::fs::read(root.join(path)).unwrap_or_default();
    let read = |path: &str| String::from_utf8_lossy(&read(path)).into_owned();
    let (groups, mounts) = (read("proc/self/cgroup"), read("proc/self/mountinfo"));
    let hierarchies = mounts.lines().filter_map(Hierarchy::parse);
    hierarchies.filter_map(|hierarchy| hierarchy.limit(root, &groups)).min()
}

/// Mounted hierarchy of control groups with limits of memory.
struct Hierarchy {
    /// Directory in the hierarchy that is mounted, which is not its root in a container.
    mounted: PathBuf,
    place: PathBuf,
    version: Version,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

impl Hierarchy {
    /// Reads a line of `mountinfo` (proc_pid_mountinfo(5)).
    fn parse(line: &str) -> Option<Self> {
        let (mount, file_system) = line.split_once(" - ")?;
        let mut words = file_system.split(' ');
        let (kind, options) = (words.next()?, words.nth(1).unwrap_or_default());
        let version = match kind {
            "cgroup2" => Version::Two,
            "cgroup" if options.split(',').any(|option| option == "memory") => Version::One,
            _ => return None,
        };
        let mut words = mount.split(' ').skip(3);
        Some(Self { mounted: words.next()?.into(), place: words.next()?.into(), version })
    }

    /// Path of the group of this process in the hierarchy, from its root.
    fn group(&self, groups: &str) -> Option<PathBuf> {
        groups.lines().find_map(|line| {
            let (_, rest) = line.split_once(':')?;
            let (controllers, path) = rest.split_once(':')?;
            let is_this = match self.version {
                Version::Two => controllers.is_empty(),
                Version::One => controllers.split(',').any(|controller| controller == "memory"),
            };
            is_this.then(|| path.into())
        })
    }

    /// Smallest limit of the group and of those around it.
    fn limit(&self, root: &Path, groups: &str) -> Option<u64> {
        let group = self.group(groups)?;
        // A group outside of the mounted part is not visible, but the part has a limit as well.
        let below = group.strip_prefix(&self.mounted).unwrap_or(Path::new(""));
        let top = root.join(self.place.strip_prefix("/").unwrap_or(&self.place));
        let files: &[&str] = match self.version {
            Version::One => &["memory.limit_in_bytes"],
            Version::Two => &["memory.max", "memory.high"],
        };
        let directories = below.ancestors().map(|path| top.join(path));
        // A group without a limit has "max", or in version 1 a number beyond any memory.
        let limits = directories.flat_map(|directory| files.iter().map(move |file| directory.join(file)));
        limits.filter_map(|file| std::fs::read_to_string(file).ok()?.trim().parse().ok()).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Files below a directory.
    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        root
    }

    const MOUNTS: &str = "22 1 0:20 / /proc rw shared:1 - proc proc rw\n\
         29 22 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n";

    #[test]
    fn the_smallest_limit_of_all_groups_counts() {
        let groups = ("proc/self/cgroup", "0::/a/b/c\n");
        let mounts = ("proc/self/mountinfo", MOUNTS);
        let limit = |files: &[(&str, &str)]| {
            let all: Vec<_> = [groups, mounts].into_iter().chain(files.iter().copied()).collect();
            control_groups(tree(&all).path())
        };
        assert_eq!(limit(&[]), None);
        assert_eq!(limit(&[("sys/fs/cgroup/a/b/c/memory.max", "max\n")]), None);
        let own = ("sys/fs/cgroup/a/b/c/memory.max", "3000000\n");
        assert_eq!(limit(&[own]), Some(3_000_000));
        assert_eq!(limit(&[own, ("sys/fs/cgroup/a/b/c/memory.high", "2500000\n")]), Some(2_500_000));
        // A limit of a group around it, and none of one beside it.
        assert_eq!(limit(&[own, ("sys/fs/cgroup/a/memory.max", "2000000\n")]), Some(2_000_000));
        assert_eq!(limit(&[own, ("sys/fs/cgroup/x/memory.max", "1000\n")]), Some(3_000_000));
    }

    #[test]
    fn both_versions_are_read() {
        let root = tree(&[
            ("proc/self/cgroup", "4:memory:/jobs/7\n1:cpu,cpuacct:/\n0::/\n"),
            (
                "proc/self/mountinfo",
                "30 1 0:25 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n\
                 31 1 0:26 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
                 32 1 0:27 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
            ),
            ("sys/fs/cgroup/cpu/jobs/7/memory.limit_in_bytes", "1\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("sys/fs/cgroup/memory/jobs/memory.limit_in_bytes", "700000\n"),
            ("sys/fs/cgroup/memory/jobs/7/memory.limit_in_bytes", "800000\n"),
        ]);
        assert_eq!(control_groups(root.path()), Some(700_000));
    }

    #[test]
    fn a_container_sees_the_limit_of_its_part() {
        // The mount begins with the group of the container, whose path is that of the machine.
        let mounts = "29 22 0:26 /pods/5 /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        for (group, expected) in [("0::/pods/5/app\n", 5000), ("0::/pods/5\n", 6000), ("0::/other\n", 6000)] {
            let root = tree(&[
                ("proc/self/cgroup", group),
                ("proc/self/mountinfo", mounts),
                ("sys/fs/cgroup/memory.max", "6000\n"),
                ("sys/fs/cgroup/app/memory.max", "5000\n"),
            ]);
            assert_eq!(control_groups(root.path()), Some(expected), "{group}");
        }
    }

    #[test]
    fn the_budget_of_this_machine_is_at_most_a_quarter() {
        let budget = budget();
        assert!(budget > 0 && budget <= machine() / 4, "{budget}");
    }
}

//! Identity of the process that writes, to recognize one that has ended.

use std::path::Path;

/// Returns the identity of this process: boot, namespace of process numbers, number, start time.
pub(crate) fn identity() -> String {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let pid = std::process::id();
    format!("{}/{}/{pid}/{}", boot.trim(), namespace(), started(pid).unwrap_or_default())
}

fn namespace() -> String {
    let link = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    link.display().to_string().replace('/', "")
}

/// Returns the time at which a process started, in ticks since the boot (proc(5), field 22).
fn started(pid: u32) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of the program, field 2, is in parentheses and can contain anything.
    stat.rsplit_once(") ")?.1.split(' ').nth(19).map(str::to_owned)
}

/// Returns `true` if the process of an identity has certainly ended. The processes of another machine
/// or of another namespace cannot be seen from here.
pub(crate) fn has_ended(identity: &str) -> bool {
    let parts: Vec<&str> = identity.split('/').collect();
    let own = self::identity();
    let own: Vec<&str> = own.split('/').collect();
    let &[boot, space, pid, start] = &parts[..] else { return false };
    if boot.is_empty() || space.is_empty() || own[..2] != [boot, space] {
        return false;
    }
    let Ok(pid) = pid.parse::<u32>() else { return false };
    !Path::new(&format!("/proc/{pid}")).exists() || started(pid).is_some_and(|now| now != start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_runs_is_told_from_one_that_has_ended() {
        let own = identity();
        assert!(!has_ended(&own), "{own}");
        let parts: Vec<&str> = own.split('/').collect();
        let with = |i: usize, text: &str| {
            let mut parts = parts.clone();
            parts[i] = text;
            parts.join("/")
        };
        assert!(has_ended(&with(2, "999999999")), "no such process");
        assert!(has_ended(&with(3, "1")), "the number was given to another process");
        assert!(!has_ended(&with(0, "another-boot")) && !has_ended(&with(1, "another")) && !has_ended(""));
    }
}

//! Rules that a server starts with.

use frit_core::{HintKind, HintRange};
use std::str::FromStr;

/// Rules that a server starts with.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct HintOptions {
    /// Ranges with a hint.
    pub ranges: Vec<HintRange>,
    /// Recognize metadata of file systems in what clients write.
    pub detect_metadata: bool,
    /// Names of processes with a hint, for protocols that know the process of a request.
    pub processes: Vec<ProcessRule>,
}

/// A rule: every write of a process has a hint.
///
/// Text form: `NAME=HINT`, such as `postgres=hot`. The name is that of `/proc/PID/comm`, at most 15
/// bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProcessRule {
    /// Name of the process.
    pub name: String,
    /// Hint of its writes.
    pub kind: HintKind,
}

impl ProcessRule {
    /// Maximum length of a name that the kernel keeps (`TASK_COMM_LEN` without its NUL).
    const NAME_BYTES_MAX: usize = 15;
}

impl FromStr for ProcessRule {
    type Err = String;

    fn from_str(text: &str) -> Result<ProcessRule, String> {
        // A name may contain `=`.
        let Some((name, kind)) = text.rsplit_once('=').filter(|(name, _)| !name.is_empty()) else {
            return Err(format!("'{text}' is not NAME=HINT, such as postgres=hot"));
        };
        if name.len() > ProcessRule::NAME_BYTES_MAX {
            return Err(format!(
                "'{name}' has {} bytes; the kernel keeps the first {} of a process name (/proc/PID/comm)",
                name.len(),
                ProcessRule::NAME_BYTES_MAX
            ));
        }
        Ok(ProcessRule { name: name.into(), kind: HintKind::parse(kind)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_rules_parse() {
        let rule: ProcessRule = "a=b=cold".parse().unwrap();
        assert_eq!((&rule.name[..], rule.kind), ("a=b", HintKind::Cold));
        for bad in ["postgres", "=hot", "x=warm", "a-name-that-is-too-long=hot"] {
            assert!(bad.parse::<ProcessRule>().is_err(), "{bad}");
        }
    }
}

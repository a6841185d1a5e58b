//! The machine that runs a measurement, and values of several rounds on it.

mod spread;
mod tmpfs;

pub use spread::Spread;
pub(super) use tmpfs::{memory_missing, new_file, tmpfs};

use frit_core::size;
use serde::Serialize;
use std::fs;

/// Description of the machine that runs a measurement.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ThisMachine {
    /// Model of the processor, or its architecture.
    pub processor: String,
    /// Number of processors that the program may use.
    pub processors: usize,
    /// Memory in bytes; `None` if the system does not tell it.
    pub memory_bytes: Option<u64>,
    /// Operating system, and version of its kernel.
    pub system: String,
    /// Mean number of runnable tasks in the minute before the measurement.
    pub load: Option<f64>,
    /// `true` for a build with debug assertions, whose times are no results.
    pub debug_build: bool,
}

/// Returns the text behind a key of a file in `/proc`.
pub(super) fn proc_value(text: &str, key: &str) -> Option<String> {
    let value = |line: &str| Some(line.strip_prefix(key)?.trim().strip_prefix(':')?.trim().to_owned());
    text.lines().find_map(value)
}

/// Returns a size of `/proc/meminfo` in bytes.
fn memory_size(key: &str) -> Option<u64> {
    let text = proc_value(&fs::read_to_string("/proc/meminfo").ok()?, key)?;
    Some(text.strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
}

impl ThisMachine {
    /// Describes the machine, with its load at this moment.
    pub(super) fn now() -> ThisMachine {
        let read = |path: &str| fs::read_to_string(path).ok();
        let model = read("/proc/cpuinfo").and_then(|text| proc_value(&text, "model name"));
        let system = |path: &str| read(path).map(|text| text.trim().to_owned());
        let version = system("/proc/sys/kernel/osrelease").map_or(String::new(), |v| format!(" {v}"));
        ThisMachine {
            processor: model.unwrap_or_else(|| std::env::consts::ARCH.to_owned()),
            processors: std::thread::available_parallelism().map_or(1, usize::from),
            memory_bytes: memory_size("MemTotal"),
            system: system("/proc/sys/kernel/ostype").unwrap_or_else(|| std::env::consts::OS.to_owned())
                + &version,
            load: read("/proc/loadavg").and_then(|text| text.split(' ').next()?.parse().ok()),
            debug_build: cfg!(debug_assertions),
        }
    }

    /// Returns the description as a sentence, with the name of the machine in tables.
    pub(super) fn words(&self, name: &str) -> String {
        let plural = if self.processors == 1 { "" } else { "s" };
        let memory = self
            .memory_bytes
            .map_or(String::new(), |bytes| format!(", {} of memory", size::format(bytes >> 20 << 20)));
        let load = self.load.map_or(String::new(), |load| {
            format!(", {load:.1} runnable tasks on average in the minute before the measurement")
        });
        let debug = if self.debug_build { " It is a debug build: its times are no results." } else { "" };
        format!(
            "{name}: {}, {} processor{plural}{memory}, {}{load}.{debug}",
            self.processor, self.processors, self.system
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_proc_are_found_by_their_keys() {
        let text = "processor\t: 0\nmodel name\t: A Processor: 3\nMemTotal:       24684 kB\n";
        assert_eq!(proc_value(text, "model name").unwrap(), "A Processor: 3");
        assert_eq!(proc_value(text, "MemTotal").unwrap(), "24684 kB");
        assert_eq!((proc_value(text, "model"), proc_value(text, "flags")), (None, None));
    }

    #[test]
    fn the_description_names_processors_system_and_load() {
        let machine = ThisMachine {
            processor: "A Processor".into(),
            processors: 2,
            memory_bytes: Some(8 << 30),
            system: "Linux 6.1".into(),
            load: Some(0.25),
            debug_build: true,
        };
        let words = machine.words("this machine");
        let start = "this machine: A Processor, 2 processors, 8 GiB of memory, Linux 6.1, 0.2 runnable tasks";
        assert!(words.starts_with(start) && words.contains("debug build"), "{words}");
        let one =
            ThisMachine { processors: 1, memory_bytes: None, load: None, debug_build: false, ..machine };
        assert_eq!(one.words("m"), "m: A Processor, 1 processor, Linux 6.1.");
        assert!(ThisMachine::now().processors > 0);
    }
}

//! The processors for which the kernel has queues.

use super::affinity::ProcessorSet;
use std::io;

/// File with the numbers of the processors that this machine can have, now or later.
const POSSIBLE: &str = "/sys/devices/system/cpu/possible";

/// Queues of the kernel, by the way they are served.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Processors {
    /// Processors on which this process may run: their queues have threads of their own.
    pub(crate) own: Vec<u16>,
    /// All others: one thread serves their queues. They have no requests while no program runs
    /// there.
    pub(crate) others: Vec<u16>,
}

impl Processors {
    /// Returns the queues of this machine.
    ///
    /// # Errors
    /// The kernel's list cannot be read.
    pub(crate) fn of_machine() -> io::Result<Processors> {
        let list = std::fs::read_to_string(POSSIBLE)?;
        let count = count_in(&list).ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidData, format!("{POSSIBLE}: unexpected '{}'", list.trim()))
        })?;
        let set = ProcessorSet::of_process();
        let (own, others) = (0..count).partition(|&i| set.contains(usize::from(i)));
        Ok(Processors { own, others })
    }
}

/// Returns the number of processors of a list such as `0-3,8`: the kernel numbers queues up to the
/// largest.
fn count_in(list: &str) -> Option<u16> {
    let last = |range: &str| range.rsplit('-').next()?.trim().parse::<u16>().ok();
    list.trim().split(',').map(last).collect::<Option<Vec<_>>>()?.into_iter().max()?.checked_add(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_processor_is_counted() {
        assert_eq!(count_in("0\n"), Some(1));
        assert_eq!(count_in("0-1\n"), Some(2));
        assert_eq!(count_in("0-3,8-11\n"), Some(12));
        assert_eq!(count_in("0-65535"), None);
        assert_eq!(count_in(""), None);
        assert_eq!(count_in("none"), None);
    }
}

//! Partitions: named ranges of a device that do not overlap. They are allocated once, in order of
//! address.

use super::Pcm;
use frit_core::{Error, Result, size};

/// A range of a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Partition {
    /// Address of the first byte.
    pub start: u64,
    /// Length in bytes.
    pub bytes: u64,
}

impl Partition {
    /// End of the range: the address after the last byte.
    #[must_use]
    pub fn end(self) -> u64 {
        self.start + self.bytes
    }
}

impl Pcm {
    /// Allocates a partition of `bytes` in the free space, at a multiple of `align`. The same calls
    /// in the same order return the same partitions, so that a volume that is opened again gets its
    /// own partitions.
    ///
    /// # Errors
    /// A name that is in use, a size of zero, or a size larger than the free space; the message
    /// names all partitions.
    pub fn add_partition(&mut self, name: &'static str, bytes: u64, align: u64) -> Result<Partition> {
        self.add_partition_within(self.bytes, name, bytes, align)
    }

    /// Allocates a partition like [`Pcm::add_partition`], within the first `size` bytes. A wear leveler
    /// that offers fewer bytes than the device uses this.
    ///
    /// # Errors
    /// The errors of [`Pcm::add_partition`].
    pub fn add_partition_within(
        &mut self,
        size: u64,
        name: &'static str,
        bytes: u64,
        align: u64,
    ) -> Result<Partition> {
        if let Some(p) = self.partition(name) {
            let why = format!("exists already, {} at {}", size::format(p.bytes), p.start);
            return Err(Error::param("partition", name, why));
        }
        if bytes == 0 || align == 0 {
            return Err(Error::param(
                name,
                bytes,
                "a partition and its alignment have to be larger than zero",
            ));
        }
        let from = self.partitioned_bytes();
        let start = from.checked_next_multiple_of(align).unwrap_or(u64::MAX);
        match start.checked_add(bytes) {
            Some(end) if end <= size.min(self.bytes) => {}
            _ => return Err(self.no_space(size.min(self.bytes), name, bytes)),
        }
        let p = Partition { start, bytes };
        self.partitions.push((name, p));
        Ok(p)
    }

    fn no_space(&self, of: u64, name: &str, bytes: u64) -> Error {
        let taken: Vec<String> =
            self.partitions.iter().map(|(n, p)| format!("{n} {}", size::format(p.bytes))).collect();
        let taken = if taken.is_empty() { "nothing".into() } else { taken.join(", ") };
        Error::NoSpace {
            what: format!(
                "partition '{name}' of {} does not fit PCM '{}' of {}, which holds {taken}; make the PCM larger \
                 or the partitions smaller",
                size::format(bytes),
                self.config.name,
                size::format(of)
            ),
        }
    }

    /// End of the allocated space: all bytes from this address on are free.
    #[must_use]
    pub fn partitioned_bytes(&self) -> u64 {
        self.partitions.last().map_or(0, |(_, p)| p.end())
    }

    /// Returns the partition with the given name.
    #[must_use]
    pub fn partition(&self, name: &str) -> Option<Partition> {
        self.partitions.iter().find(|(n, _)| *n == name).map(|(_, p)| *p)
    }

    /// All partitions, in order of address.
    #[must_use]
    pub fn partitions(&self) -> &[(&'static str, Partition)] {
        &self.partitions
    }
}

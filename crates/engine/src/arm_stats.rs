//! Statistics of a disk's arm: distances between consecutive requests in the order of service.

use frit_core::{Cmd, Nanos, Op, SECTOR_BYTES};

/// Number of distance buckets: one for zero, and one for each power of two.
const BUCKETS: usize = 65;

/// Number and service time of the reads and writes of a disk, and the distances between them.
///
/// A distance is measured from the end of a request to the first sector of the next one, in sectors
/// of 512 bytes, in either direction; it is zero for a request that continues the previous one. The
/// mean is the *average inter-request LBN distance* of the HALO paper (section V.A, Figure 8),
/// which does not state from which sector it is measured. The paper uses the order in which
/// requests were issued to the disk; here it is the order of service, which is the same for a FIFO
/// disk.
#[derive(Clone, PartialEq, Debug)]
pub struct ArmStats {
    accesses: u64,
    served: Nanos,
    /// The sector after the last request.
    next: Option<u64>,
    distances: u64,
    sum: u128,
    buckets: [u64; BUCKETS],
}

impl Default for ArmStats {
    fn default() -> ArmStats {
        ArmStats { accesses: 0, served: Nanos::ZERO, next: None, distances: 0, sum: 0, buckets: [0; BUCKETS] }
    }
}

impl ArmStats {
    /// Counts the next command in the order of service.
    pub(crate) fn command(&mut self, cmd: &Cmd, took: Nanos) {
        if cmd.op == Op::DiskFlush {
            return;
        }
        self.accesses += 1;
        self.served += took;
        let first = cmd.addr / SECTOR_BYTES;
        let behind = first + u64::from(cmd.len) / SECTOR_BYTES;
        let Some(next) = self.next.replace(behind) else { return };
        let distance = first.abs_diff(next);
        self.distances += 1;
        self.sum += u128::from(distance);
        self.buckets[(u64::BITS - distance.leading_zeros()) as usize] += 1;
    }

    /// Resets all counters, and keeps the position of the arm.
    pub(crate) fn reset(&mut self) {
        *self = ArmStats { next: self.next, ..ArmStats::default() };
    }

    /// Number of reads and writes.
    #[must_use]
    pub fn accesses(&self) -> u64 {
        self.accesses
    }

    /// Mean service time of a read or write, from its start in the drive to its end, in
    /// nanoseconds; `None` if there were none.
    #[must_use]
    pub fn served_mean(&self) -> Option<f64> {
        (self.accesses > 0).then(|| self.served.0 as f64 / self.accesses as f64)
    }

    /// Mean distance in sectors; `None` before the second request.
    #[must_use]
    pub fn distance_mean(&self) -> Option<f64> {
        (self.distances > 0).then(|| self.sum as f64 / self.distances as f64)
    }

    /// Returns the histogram of the distances: for each bucket that is not empty, the largest
    /// distance in sectors (0, 1, 3, 7, …) and the count.
    pub fn distances(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let largest = |i: usize| if i == 0 { 0 } else { u64::MAX >> (64 - i) };
        self.buckets.iter().enumerate().filter(|(_, n)| **n > 0).map(move |(i, &n)| (largest(i), n))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use frit_core::{Cause, UnitId};

    fn cmd(op: Op, sector: u64, sectors: u32) -> Cmd {
        let len = sectors * SECTOR_BYTES as u32;
        Cmd { addr: sector * SECTOR_BYTES, len, hazard: 0, unit: UnitId(0), op, cause: Cause::Host }
    }

    #[test]
    fn distances_are_from_behind_one_request_to_the_next() {
        let mut a = ArmStats::default();
        assert_eq!((a.distance_mean(), a.served_mean()), (None, None));
        a.command(&cmd(Op::DiskRead, 100, 8), Nanos(10));
        assert_eq!(a.distance_mean(), None);
        a.command(&cmd(Op::DiskWrite, 108, 8), Nanos(20)); // continues: 0
        a.command(&cmd(Op::DiskFlush, 0, 0), Nanos(1000)); // does not move the arm
        a.command(&cmd(Op::DiskRead, 117, 1), Nanos(30)); // 1
        a.command(&cmd(Op::DiskRead, 110, 2), Nanos(40)); // back: 8
        a.command(&cmd(Op::DiskRead, 119, 1), Nanos(50)); // 7
        assert_eq!((a.accesses(), a.served_mean(), a.distance_mean()), (5, Some(30.0), Some(4.0)));
        assert_eq!(a.distances().collect::<Vec<_>>(), [(0, 1), (1, 1), (7, 1), (15, 1)]);
        a.reset();
        assert_eq!((a.accesses(), a.distance_mean()), (0, None));
        a.command(&cmd(Op::DiskRead, 121, 1), Nanos(1)); // the one before the reset was at 119
        assert_eq!(a.distance_mean(), Some(1.0));
    }
}

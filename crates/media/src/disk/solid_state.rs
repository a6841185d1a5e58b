//! Drives without a mechanism: solid-state drives and RAM disks.

use crate::timing::Phases;
use frit_core::{Cmd, Error, Nanos, Op, Result, SECTOR_BYTES};

/// Largest number of units of a drive.
const UNITS_MAX: u32 = 1024;

/// A drive whose units work in parallel and share a link to the host.
///
/// Consecutive ranges of `interleave_bytes` are on consecutive units. The time of a command does not
/// depend on the commands before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SolidStateDrive {
    /// Number of units, each of which executes one command at a time.
    pub units: u32,
    /// Consecutive bytes on one unit.
    pub interleave_bytes: u32,
    /// Time of a read on its unit, without its transfer.
    pub t_read: Nanos,
    /// Time of a write on its unit, without its transfer.
    pub t_write: Nanos,
    /// Time of a flush on each unit.
    pub t_flush: Nanos,
    /// Transfer time of a read over the link, in picoseconds per byte.
    pub read_ps_per_byte: u64,
    /// Transfer time of a write over the link, in picoseconds per byte.
    pub write_ps_per_byte: u64,
}

impl SolidStateDrive {
    /// Checks the values that the others do not limit.
    ///
    /// # Errors
    /// The first value that is wrong, and the values that are allowed.
    pub fn check(&self) -> Result<()> {
        if self.units == 0 || self.units > UNITS_MAX {
            return Err(Error::param("units", self.units, "has to be 1 to 1024"));
        }
        let (bytes, sector) = (self.interleave_bytes, SECTOR_BYTES as u32);
        if !bytes.is_power_of_two() || bytes < sector || u64::from(bytes) > super::HAZARD_BYTES {
            let why = "has to be a power of two from 512 to 1 MiB";
            return Err(Error::param("interleave_bytes", bytes, why));
        }
        Ok(())
    }

    /// Returns the unit of an address, counted from 0.
    #[inline]
    #[must_use]
    pub fn unit_of(&self, addr: u64) -> u16 {
        (addr / u64::from(self.interleave_bytes) % u64::from(self.units)) as u16
    }

    /// Returns the phases of a command of a disk.
    #[inline]
    #[must_use]
    pub fn phases(&self, cmd: &Cmd) -> Phases {
        let transfer = |ps: u64| Nanos((u64::from(cmd.len) * ps + 500) / 1000);
        match cmd.op {
            Op::DiskRead => {
                Phases { array: self.t_read, bus_out: transfer(self.read_ps_per_byte), ..Phases::default() }
            }
            Op::DiskWrite => {
                Phases { bus_in: transfer(self.write_ps_per_byte), array: self.t_write, ..Phases::default() }
            }
            _ => Phases { array: self.t_flush, ..Phases::default() },
        }
    }
}

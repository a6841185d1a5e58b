//! How long a command takes on an idle device, split into the phases that occupy its bus and its
//! cells. The engine adds up waiting; nothing here knows a queue.

use crate::disk::{Drive, Request};
use frit_core::{Cmd, Nanos, Op};
use serde::{Deserialize, Serialize};

/// The phases of a command: data in over the channel, cells at work, data out over the channel.
/// The unit is busy throughout, the channel only in the bus phases.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Phases {
    /// Channel busy before the cells work.
    pub bus_in: Nanos,
    /// Cells (the unit) at work, channel free.
    pub array: Nanos,
    /// Channel busy after the cells worked.
    pub bus_out: Nanos,
}

impl Phases {
    /// The time of the command when nobody else is there.
    #[must_use]
    pub fn total(self) -> Nanos {
        self.bus_in + self.array + self.bus_out
    }
}

/// How long a bus carries bytes, rounded to nanoseconds.
#[inline]
fn bus(bytes: u32, ps_per_byte: u64) -> Nanos {
    Nanos((u64::from(bytes) * ps_per_byte + 500) / 1000)
}

/// Times of a NAND part, as its data sheet names them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct NandTiming {
    /// tR: a page from the cells to the page register.
    pub t_read: Nanos,
    /// tPROG: the page register to the cells.
    pub t_prog: Nanos,
    /// tBERS: a block.
    pub t_erase: Nanos,
    /// The bus: picoseconds a byte.
    pub bus_ps_per_byte: u64,
}

impl NandTiming {
    fn bus(&self, bytes: u32) -> Nanos {
        bus(bytes, self.bus_ps_per_byte)
    }

    /// Phases of a NAND command. A copyback is a read and a program without the bus.
    #[inline]
    #[must_use]
    pub fn phases(&self, cmd: &Cmd) -> Phases {
        let none = Phases::default();
        match cmd.op {
            Op::NandRead => Phases { array: self.t_read, bus_out: self.bus(cmd.len), ..none },
            Op::NandProgram => Phases { bus_in: self.bus(cmd.len), array: self.t_prog, ..none },
            Op::NandErase => Phases { array: self.t_erase, ..none },
            _ => Phases { array: self.t_read + self.t_prog, ..none },
        }
    }
}

/// Latency by access size, from measured points.
///
/// Between two points the line between them; above the largest, whole accesses of the largest size
/// and one for the rest; below the smallest, the line from it through the origin, which cannot turn
/// negative (the straight line through Table 7's writes does, below 17 B), and no less than for
/// `floor_bytes`, the smallest access that the part makes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Curve {
    points: Vec<(u32, Nanos)>,
    floor_bytes: u32,
}

impl Curve {
    /// From points (bytes, latency), strictly rising in bytes, and the smallest access in bytes.
    ///
    /// # Errors
    /// No points, a size of zero, or sizes that do not rise.
    pub fn new(points: Vec<(u32, Nanos)>, floor_bytes: u32) -> Result<Curve, String> {
        if points.is_empty() || points[0].0 == 0 || floor_bytes == 0 {
            return Err("a latency curve needs at least one point, and sizes above zero".into());
        }
        if points.windows(2).any(|w| w[0].0 >= w[1].0) {
            return Err("the sizes of a latency curve have to rise".into());
        }
        Ok(Curve { points, floor_bytes })
    }

    /// The latency of an access of `bytes`.
    #[must_use]
    pub fn at(&self, bytes: u32) -> Nanos {
        let (largest, t) = self.points[self.points.len() - 1];
        let whole = u64::from(bytes / largest) * t.0;
        match bytes % largest {
            0 => Nanos(whole),
            rest => Nanos(whole + self.below(rest)),
        }
    }

    fn below(&self, bytes: u32) -> u64 {
        let bytes = bytes.max(self.floor_bytes);
        let mut prev = (0u32, 0u64);
        for &(size, t) in &self.points {
            if bytes == size {
                return t.0;
            }
            if bytes < size {
                let (run, rise) = (u64::from(size - prev.0), t.0 as i128 - i128::from(prev.1));
                let step = i128::from(bytes - prev.0) * rise / i128::from(run);
                return (i128::from(prev.1) + step) as u64;
            }
            prev = (size, t.0);
        }
        prev.1
    }
}

/// Times of a byte-addressable durable memory. Published figures mostly include the transfer, so that
/// the bus phases are zero; where groups of chips share a channel, the transfer is told apart.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PcmTiming {
    /// Read latency by size.
    pub read: Curve,
    /// Write latency by size (over cells in any state: a *dirty* write).
    pub write: Curve,
    /// Write latency by size over refreshed cells (a *clean* write); as `write` when not given.
    pub write_clean: Option<Curve>,
    /// Refresh of one refresh unit.
    pub refresh: Nanos,
    /// The bus of a channel: picoseconds a byte, beside the latencies above. 0: they include it.
    pub bus_ps_per_byte: u64,
    /// A fence.
    pub fence: Nanos,
}

impl PcmTiming {
    /// Phases of a PCM command.
    #[inline]
    #[must_use]
    pub fn phases(&self, cmd: &Cmd) -> Phases {
        let array = match cmd.op {
            Op::PcmRead => self.read.at(cmd.len),
            Op::PcmWrite => self.write.at(cmd.len),
            Op::PcmWriteClean => self.write_clean.as_ref().unwrap_or(&self.write).at(cmd.len),
            Op::PcmRefresh => self.refresh,
            _ => self.fence,
        };
        let mut phases = Phases { array, ..Phases::default() };
        if self.bus_ps_per_byte > 0 {
            let bus = bus(cmd.len, self.bus_ps_per_byte);
            match cmd.op {
                Op::PcmRead => phases.bus_out = bus,
                Op::PcmWrite | Op::PcmWriteClean => phases.bus_in = bus,
                _ => {}
            }
        }
        phases
    }
}

/// Times of a DRAM buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DramTiming {
    /// Latency of any access.
    pub latency: Nanos,
    /// Transfer: picoseconds a byte.
    pub ps_per_byte: u64,
}

impl DramTiming {
    /// Phases of a DRAM command.
    #[inline]
    #[must_use]
    pub fn phases(&self, cmd: &Cmd) -> Phases {
        let move_ns = (u64::from(cmd.len) * self.ps_per_byte).div_ceil(1000);
        Phases { array: self.latency + Nanos(move_ns), ..Phases::default() }
    }
}

/// The timing of one device.
#[derive(Clone, Debug)]
pub enum Model {
    /// NAND flash.
    Nand(NandTiming),
    /// PCM and its kin.
    Pcm(PcmTiming),
    /// Volatile memory.
    Dram(DramTiming),
    /// A disk at work.
    Disk(Box<Drive>),
}

impl Model {
    /// Phases of a command. `&mut` because the cost of some devices depends on what they did last (a
    /// disk's arm); `begin` is when service would start.
    #[inline]
    pub fn phases(&mut self, cmd: &Cmd, begin: Nanos) -> Phases {
        match self {
            Model::Nand(t) => t.phases(cmd),
            Model::Pcm(t) => t.phases(cmd),
            Model::Dram(t) => t.phases(cmd),
            Model::Disk(drive) => disk_phases(drive, cmd, begin),
        }
    }
}

/// Phases of a disk command: the drive has its own bus, and the unit is what the host waits for. What a
/// drive does behind an acknowledgement (reading on, writing behind) it knows itself.
fn disk_phases(drive: &mut Drive, cmd: &Cmd, begin: Nanos) -> Phases {
    let done = match Request::of(cmd) {
        Some(request) => drive.service(&request, begin).done,
        None => drive.flush(begin),
    };
    Phases { array: done.since(begin), ..Phases::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curve_meets_its_points_and_never_turns_negative() {
        // HFSL paper, Table 7, writes.
        let us = Nanos::from_us;
        let c = Curve::new(vec![(128, us(20.7)), (256, us(45.9)), (512, us(93.5))], 16).unwrap();
        assert_eq!(c.at(128), us(20.7));
        assert_eq!(c.at(512), us(93.5));
        assert_eq!(c.at(384), us(69.7));
        assert_eq!(c.at(64), us(10.35));
        assert_eq!(c.at(1), c.at(16));
        assert_eq!(c.at(2048), us(374.0));
        assert_eq!(c.at(512 + 128), us(114.2));
        let mut last = Nanos::ZERO;
        for n in 1..2000 {
            assert!(c.at(n) >= last && c.at(n) > Nanos::ZERO, "{n}");
            last = c.at(n);
        }
    }

    #[test]
    fn curve_refuses_what_is_no_curve() {
        assert!(Curve::new(vec![], 1).is_err());
        assert!(Curve::new(vec![(4, Nanos(1)), (4, Nanos(2))], 1).is_err());
        assert!(Curve::new(vec![(0, Nanos(1))], 1).is_err());
    }
}

//! Cost of a command on an idle device, split into the phases that occupy its bus and its cells.
//! The engine adds the queueing time; this module has no queues.

use crate::disk::{Drive, DriveRequest, SolidStateDrive};
use crate::nand::{NandCells, NandSuspend};
use frit_core::{Cmd, Nanos, Op};
use serde::{Deserialize, Serialize};
use std::hint::select_unpredictable;

/// The phases of a command: transfer in over the channel, operation of the cells, transfer out over
/// the channel. The unit is busy in all phases, the channel only in the bus phases.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Phases {
    /// Time of the transfer in: the channel is busy before the cells operate.
    pub bus_in: Nanos,
    /// Time of the operation of the cells (the unit): the channel is free.
    pub array: Nanos,
    /// Time of the transfer out: the channel is busy after the cells have operated.
    pub bus_out: Nanos,
}

impl Phases {
    /// Duration of the command on an idle device.
    #[must_use]
    pub fn total(self) -> Nanos {
        self.bus_in + self.array + self.bus_out
    }
}

/// Returns the transfer time of `bytes` on a bus, rounded to nanoseconds.
#[inline]
fn bus(bytes: u32, ps_per_byte: u64) -> Nanos {
    Nanos((u64::from(bytes) * ps_per_byte + 500) / 1000)
}

/// Timing of a NAND part, in the terms of its data sheet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct NandTiming {
    /// tR: transfer of a page from the cells to the page register.
    pub t_read: Nanos,
    /// tPROG: transfer of a page from the page register to the cells.
    pub t_prog: Nanos,
    /// tBERS: erase of a block.
    pub t_erase: Nanos,
    /// Transfer time of the bus, in picoseconds per byte.
    pub bus_ps_per_byte: u64,
    /// Time of the bus for the command and address cycles of a command; zero if the other times
    /// include it.
    #[serde(default)]
    pub t_command: CommandCycles,
    /// Time of the bus for the cycles of each further plane of a multi-plane command.
    #[serde(default)]
    pub t_plane: CommandCycles,
    /// tCBSY: time from the start of the cells of a program until the data of the next page of the block can
    /// be transferred, if the device has cache programs (ONFI 5.1, section 5.19: page cache program).
    #[serde(default)]
    pub t_cache_busy: Option<Nanos>,
}

/// Time of the bus for command and address cycles, by operation.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct CommandCycles {
    /// Of a read.
    pub read: Nanos,
    /// Of a program.
    pub program: Nanos,
    /// Of an erase.
    pub erase: Nanos,
}

impl CommandCycles {
    /// Returns the cycles of operations that are all equal.
    #[must_use]
    pub const fn all(time: Nanos) -> CommandCycles {
        CommandCycles { read: time, program: time, erase: time }
    }

    /// Returns the time of the cycles of an operation. A copyback is a read and a program.
    #[inline]
    #[must_use]
    pub fn of(&self, op: Op) -> Nanos {
        // Selections instead of branches: operations alternate, so a processor cannot predict them.
        let either = |one, time: Nanos, other: Nanos| select_unpredictable(op == one, time, other);
        let other = either(Op::NandCopyback, self.read + self.program, self.read);
        either(Op::NandProgram, self.program, either(Op::NandErase, self.erase, other))
    }
}

impl NandTiming {
    fn bus(&self, bytes: u32) -> Nanos {
        bus(bytes, self.bus_ps_per_byte)
    }

    /// Returns the phases of a NAND command. A copyback is a read and a program without transfers
    /// of data. A read of the page register is one bus phase, its command cycles included.
    #[inline]
    #[must_use]
    pub fn phases(&self, cmd: &Cmd) -> Phases {
        // Selections instead of branches: operations alternate, so a processor cannot predict them.
        let only = |op, time: Nanos| select_unpredictable(cmd.op == op, time, Nanos::ZERO);
        let data = self.bus(cmd.len);
        let either = |op, time: Nanos, other: Nanos| select_unpredictable(cmd.op == op, time, other);
        let copyback = self.t_read + self.t_prog;
        let array = either(Op::NandErase, self.t_erase, copyback);
        let array = either(Op::NandRead, self.t_read, either(Op::NandProgram, self.t_prog, array));
        let register = cmd.op == Op::NandRegisterRead;
        let cycles = self.t_command.of(cmd.op);
        let command = cycles + only(Op::NandProgram, data);
        let bus_out = only(Op::NandRead, data);
        Phases {
            bus_in: select_unpredictable(register, Nanos::ZERO, command),
            array: select_unpredictable(register, Nanos::ZERO, array),
            bus_out: select_unpredictable(register, cycles + data, bus_out),
        }
    }
}

/// Latency as a function of the access size, from measured points.
///
/// - Between two points: linear interpolation.
/// - Above the largest size: as many accesses of the largest size as fit, and one access for the
///   rest.
/// - Below the smallest size: the line through the smallest point and the origin, which cannot
///   become negative (the straight line through the writes of Table 7 does, below 17 B), and at
///   least the latency of `floor_bytes`, the smallest access that the part makes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LatencyCurve {
    points: Vec<(u32, Nanos)>,
    floor_bytes: u32,
}

impl LatencyCurve {
    /// Creates a curve from points (bytes, latency), strictly ascending in bytes, and the smallest
    /// access in bytes.
    ///
    /// # Errors
    /// No points, a size of zero, or sizes that are not ascending.
    pub fn new(points: Vec<(u32, Nanos)>, floor_bytes: u32) -> Result<LatencyCurve, String> {
        if points.is_empty() || points[0].0 == 0 || floor_bytes == 0 {
            return Err("a latency curve needs at least one point, and sizes above zero".into());
        }
        if points.windows(2).any(|w| w[0].0 >= w[1].0) {
            return Err("the sizes of a latency curve must be strictly ascending".into());
        }
        Ok(LatencyCurve { points, floor_bytes })
    }

    /// Returns the latency of an access of `bytes`.
    #[must_use]
    pub fn at(&self, bytes: u32) -> Nanos {
        let (largest, t) = self.points[self.points.len() - 1];
        let whole = u64::from(bytes / largest) * t.0;
        match bytes % largest {
            0 => Nanos(whole),
            rest => Nanos(whole + self.interpolate(rest)),
        }
    }

    fn interpolate(&self, bytes: u32) -> u64 {
        let bytes = bytes.max(self.floor_bytes);
        let mut prev = (0u32, 0u64);
        for &(size, t) in &self.points {
            if bytes == size {
                return t.0;
            }
            if bytes < size {
                // Signed: the latency may fall between two points, since only the sizes are checked
                // here.
                let (run, rise) = (u64::from(size - prev.0), t.0 as i128 - i128::from(prev.1));
                let step = i128::from(bytes - prev.0) * rise / i128::from(run);
                return (i128::from(prev.1) + step) as u64;
            }
            prev = (size, t.0);
        }
        prev.1
    }
}

/// Timing of a byte-addressable persistent memory. Published latencies mostly include the transfer,
/// so the bus phases are zero; where groups of chips share a channel, the transfer is separate.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PcmTiming {
    /// Read latency by size.
    pub read: LatencyCurve,
    /// Write latency by size over cells in any state (a *dirty* write).
    pub write: LatencyCurve,
    /// Write latency by size over refreshed cells (a *clean* write); `write` if `None`.
    pub write_clean: Option<LatencyCurve>,
    /// Duration of a refresh of one refresh unit.
    pub refresh: Nanos,
    /// Transfer time of a channel in picoseconds per byte, in addition to the latencies above; 0 if
    /// the latencies include it.
    pub bus_ps_per_byte: u64,
    /// Duration of a fence.
    pub fence: Nanos,
}

impl PcmTiming {
    /// Returns the phases of a PCM command.
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

/// Timing of a DRAM buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DramTiming {
    /// Latency of any access.
    pub latency: Nanos,
    /// Transfer time in picoseconds per byte.
    pub ps_per_byte: u64,
}

impl DramTiming {
    /// Returns the phases of a DRAM command.
    #[inline]
    #[must_use]
    pub fn phases(&self, cmd: &Cmd) -> Phases {
        let move_ns = (u64::from(cmd.len) * self.ps_per_byte).div_ceil(1000);
        Phases { array: self.latency + Nanos(move_ns), ..Phases::default() }
    }
}

/// Timing of an object store that is reached over a network: several connections, each with one
/// request at a time, share a link.
///
/// A transfer occupies the link for its bytes at the bandwidth of the link, and its connection for
/// its bytes at the bandwidth of a connection. The link is granted to one transfer after the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ObjectTiming {
    /// Time of a put, without the transfer of its bytes.
    pub t_put: Nanos,
    /// Time to the first byte of a get; time of a list and of a flush.
    pub t_get: Nanos,
    /// Time of a delete.
    pub t_delete: Nanos,
    /// Transfer time of a connection, in picoseconds per byte; at least that of the link.
    pub connection_ps_per_byte: u64,
    /// Transfer time of the link, in picoseconds per byte.
    pub link_ps_per_byte: u64,
}

impl ObjectTiming {
    /// Returns the phases of a command of an object store.
    #[inline]
    #[must_use]
    pub fn phases(&self, cmd: &Cmd) -> Phases {
        let link = bus(cmd.len, self.link_ps_per_byte);
        let rest = bus(cmd.len, self.connection_ps_per_byte).since(link);
        match cmd.op {
            Op::ObjectPut => Phases { bus_in: link, array: self.t_put + rest, bus_out: Nanos::ZERO },
            Op::ObjectGet => Phases { bus_in: Nanos::ZERO, array: self.t_get + rest, bus_out: link },
            Op::ObjectDelete => Phases { array: self.t_delete, ..Phases::default() },
            _ => Phases { array: self.t_get, ..Phases::default() },
        }
    }
}

/// Timing model of one device.
#[derive(Clone, Debug)]
pub enum TimingModel {
    /// NAND flash.
    Nand(NandTiming),
    /// NAND flash with latencies by type of page, or with suspensions.
    NandCells(Box<(NandTiming, NandCells)>),
    /// PCM and other byte-addressable persistent memories.
    Pcm(PcmTiming),
    /// Volatile memory.
    Dram(DramTiming),
    /// A disk drive with its current state.
    Disk(Box<Drive>),
    /// A drive without a mechanism.
    SolidState(SolidStateDrive),
    /// An object store.
    Object(ObjectTiming),
}

impl TimingModel {
    /// Returns `true` if a fence takes no time. Such a fence only orders commands, and the order is
    /// in the tokens: it keeps no unit busy.
    #[must_use]
    pub fn has_free_fence(&self) -> bool {
        matches!(self, TimingModel::Pcm(timing) if timing.fence == Nanos::ZERO)
    }

    /// Returns the rules by which reads suspend other operations, if they do.
    #[must_use]
    pub fn suspend(&self) -> Option<NandSuspend> {
        match self {
            TimingModel::NandCells(both) => both.1.suspend,
            _ => None,
        }
    }

    /// Returns tCBSY, if the device has cache programs.
    #[must_use]
    pub fn cache_busy(&self) -> Option<Nanos> {
        match self {
            TimingModel::Nand(timing) => timing.t_cache_busy,
            TimingModel::NandCells(both) => both.0.t_cache_busy,
            _ => None,
        }
    }

    /// Returns the phases of a command to a further plane of a multi-plane command, from those of the
    /// same command alone.
    #[must_use]
    pub fn further_plane(&self, cmd: &Cmd, alone: Phases) -> Phases {
        let timing = match self {
            TimingModel::Nand(timing) => timing,
            TimingModel::NandCells(both) => &both.0,
            _ => return alone,
        };
        let bus_in = alone.bus_in.since(timing.t_command.of(cmd.op)) + timing.t_plane.of(cmd.op);
        Phases { bus_in, ..alone }
    }

    /// Returns the phases of a command that starts at `begin`. Takes `&mut self` because the cost
    /// of a disk command depends on the commands before it (the position of the arm).
    #[inline]
    pub fn phases(&mut self, cmd: &Cmd, begin: Nanos) -> Phases {
        match self {
            TimingModel::Nand(t) => t.phases(cmd),
            TimingModel::NandCells(both) => both.1.phases(&both.0, cmd),
            TimingModel::Pcm(t) => t.phases(cmd),
            TimingModel::Dram(t) => t.phases(cmd),
            TimingModel::Disk(drive) => disk_phases(drive, cmd, begin),
            TimingModel::SolidState(t) => t.phases(cmd),
            TimingModel::Object(t) => t.phases(cmd),
        }
    }
}

/// Returns the phases of a disk command. The drive has a bus of its own, so the whole service time
/// counts as time of the unit. The drive itself accounts for the work that it does after an
/// acknowledgement (read-ahead, destaging).
fn disk_phases(drive: &mut Drive, cmd: &Cmd, begin: Nanos) -> Phases {
    let done = match DriveRequest::of(cmd) {
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
        // Writes of Table 7 of the HFSL paper.
        let us = Nanos::from_us;
        let c = LatencyCurve::new(vec![(128, us(20.7)), (256, us(45.9)), (512, us(93.5))], 16).unwrap();
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
        assert!(LatencyCurve::new(vec![], 1).is_err());
        assert!(LatencyCurve::new(vec![(4, Nanos(1)), (4, Nanos(2))], 1).is_err());
        assert!(LatencyCurve::new(vec![(0, Nanos(1))], 1).is_err());
    }
}

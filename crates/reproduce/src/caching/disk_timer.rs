//! Time of disk commands that are served one after the other.

use frit_core::{Cmd, CommandObserver, MediumKind, Nanos, Op, SECTOR_BYTES, Tok, UnitId};
use frit_media::{Hardware, TimingModel};

/// Work of the disk.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct DiskWork {
    /// Time from the first command to the end of the last.
    pub time: Nanos,
    /// Number of reads and writes.
    pub commands: u64,
    /// Number of sectors read and written.
    pub sectors: u64,
    /// Sum of the distances from the end of a command to the start of the next, in sectors.
    pub distance: u64,
    /// Number of writes.
    pub writes: u64,
    /// Number of sectors written.
    pub write_sectors: u64,
}

/// Observer for the replay of the HALO paper (section V) in one pass: the cache's commands to the disk
/// are served in their order, closed loop, one at a time. PCM takes no time.
#[derive(Debug)]
pub struct DiskTimer {
    /// Timing models; `None` if commands are only counted.
    models: Option<Vec<TimingModel>>,
    device_of: Vec<usize>,
    /// Sector after the last command.
    behind: Option<u64>,
    /// Work so far.
    pub work: DiskWork,
}

impl DiskTimer {
    /// Returns a timer for these devices, at time zero.
    #[must_use]
    pub fn new(hardware: &Hardware) -> DiskTimer {
        let units = (0..hardware.units()).map(|u| hardware.device_of(UnitId(u as u16)));
        DiskTimer {
            models: Some(hardware.models()),
            device_of: units.collect(),
            behind: None,
            work: DiskWork::default(),
        }
    }

    /// Returns a timer without time, which only counts.
    #[must_use]
    pub fn counting() -> DiskTimer {
        DiskTimer { models: None, device_of: Vec::new(), behind: None, work: DiskWork::default() }
    }
}

impl CommandObserver for DiskTimer {
    fn command(&mut self, cmd: &Cmd, _: Tok, _: Tok) {
        if cmd.op.medium() != MediumKind::Disk {
            return;
        }
        let w = &mut self.work;
        if let Some(models) = &mut self.models {
            w.time += models[self.device_of[cmd.unit.idx()]].phases(cmd, w.time).total();
        }
        if cmd.op == Op::DiskFlush {
            return;
        }
        let (first, sectors) = (cmd.addr / SECTOR_BYTES, u64::from(cmd.len) / SECTOR_BYTES);
        // The start position of the arm is unknown, so the first command adds no distance.
        w.distance += self.behind.map_or(0, |b| b.abs_diff(first));
        self.behind = Some(first + sectors);
        w.commands += 1;
        w.sectors += sectors;
        if cmd.op == Op::DiskWrite {
            w.writes += 1;
            w.write_sectors += sectors;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use frit_core::Cause;
    use frit_media::disk::DiskProfile;
    use frit_media::{Device, DramTiming};

    #[test]
    fn only_the_disk_takes_time_and_distances_are_from_end_to_start() {
        let mut hw = Hardware::new();
        let dram = TimingModel::Dram(DramTiming { latency: Nanos(50), ps_per_byte: 100 });
        hw.add(Device {
            name: "m".into(),
            kind: MediumKind::Dram,
            model: dram,
            unit_channel: vec![0],
            nand: None,
        })
        .unwrap();
        let spec = DiskProfile::builtin("st3500320as-2008").unwrap().spec().unwrap();
        let drive = frit_media::disk::Drive::new(&spec).unwrap();
        let model = TimingModel::Disk(Box::new(drive));
        hw.add(Device { name: "d".into(), kind: MediumKind::Disk, model, unit_channel: vec![0], nand: None })
            .unwrap();
        let mut timer = DiskTimer::new(&hw);
        let cmd = |op, unit, sector: u64, len| Cmd {
            addr: sector * 512,
            len,
            hazard: 0,
            unit: UnitId(unit),
            op,
            cause: Cause::Host,
        };
        timer.command(&cmd(Op::PcmWrite, 0, 0, 4096), Tok::DONE, Tok::DONE);
        assert_eq!(timer.work, DiskWork::default());
        timer.command(&cmd(Op::DiskRead, 1, 100, 4096), Tok::DONE, Tok::DONE);
        let first = timer.work.time;
        assert!(first > Nanos::ZERO);
        timer.command(&cmd(Op::DiskWrite, 1, 8, 1024), Tok::DONE, Tok::DONE);
        let w = timer.work;
        assert!(w.time > first);
        assert_eq!((w.commands, w.sectors, w.distance), (2, 10, 100));
        assert_eq!((w.writes, w.write_sectors), (1, 2));
    }
}

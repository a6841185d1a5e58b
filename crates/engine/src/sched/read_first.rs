//! Read-first scheduling: a request waits for a read, and a read is short compared with a program
//! or an erase.

use super::{Scheduler, number, unknown};
use crate::event::{CmdId, Queues};
use frit_core::visible::Metric;
use frit_core::{ParamInfo, Params, Result, UnitId};

/// The oldest read that no hazard blocks precedes the programs and erases that wait at its unit. If there
/// is no read, the oldest command that no hazard blocks is started. Running commands are not
/// interrupted.
///
/// Commands of in-storage processing ([`Cause::Isp`](frit_core::Cause::Isp)) start only if no other
/// command can, as with [`HostFirst`](super::HostFirst).
///
/// Against starvation of programs, the oldest program or erase is started after `max-overtakes`
/// reads in a row have overtaken it.
#[derive(Clone, Debug)]
pub struct ReadFirst {
    max_overtakes: u32,
    window: u32,
    /// For each unit, the number of reads that overtook since the last program or erase.
    overtakes: Vec<u32>,
    total: u64,
}

impl Default for ReadFirst {
    /// Default parameters. The bound of 16 reads of 60 to 80 µs delays a program by a few of its
    /// own durations; the window is twice a deep queue of one unit.
    fn default() -> Self {
        ReadFirst { max_overtakes: 16, window: 128, overtakes: Vec::new(), total: 0 }
    }
}

impl Scheduler for ReadFirst {
    fn attach(&mut self, queues: &Queues) {
        self.overtakes = vec![0; queues.units()];
    }

    fn pick(&mut self, queues: &Queues, unit: UnitId) -> Option<CmdId> {
        let overtakes = &mut self.overtakes[unit.idx()];
        let (mut oldest, mut processing) = (None, None);
        // The first command found that is not a read is the oldest; a read behind it overtakes it.
        for w in queues.sent(unit).take(self.window as usize) {
            if (oldest.is_some() && !w.cmd.op.is_read()) || queues.blocked(w.id) {
                continue;
            }
            if w.cmd.cause.yields_to_host() && !queues.is_followed_by_host(w.id) {
                processing.get_or_insert(w.id);
                continue;
            }
            if !w.cmd.op.is_read() {
                oldest = Some(w.id);
                if *overtakes >= self.max_overtakes {
                    break;
                }
                continue;
            }
            if oldest.is_some() {
                *overtakes += 1;
                self.total += 1;
            }
            return Some(w.id);
        }
        if oldest.is_some() {
            *overtakes = 0;
        }
        oldest.or(processing)
    }

    fn pick_read(&mut self, queues: &Queues, unit: UnitId) -> Option<CmdId> {
        let mut sent = queues.sent(unit).take(self.window as usize);
        sent.find(|w| queues.may_suspend(w.id) && !w.cmd.cause.yields_to_host()).map(|w| w.id)
    }

    /// A read that waits has the unit after the current program.
    fn pick_cached(&mut self, queues: &Queues, unit: UnitId) -> Option<CmdId> {
        let sent = queues.sent(unit).take(self.window as usize);
        let mut free = sent.filter(|w| !queues.blocked(w.id));
        let first = free.next()?;
        let reads = first.cmd.op.is_read() || free.any(|w| w.cmd.op.is_read());
        (!reads).then_some(first.id)
    }

    fn params(&mut self) -> &mut dyn Params {
        self
    }

    fn metrics(&self) -> Vec<Metric> {
        vec![Metric {
            name: "reads_overtaken",
            value: self.total as f64,
            unit: "commands",
            help: "reads that overtook a program or an erase that could have started",
        }]
    }
}

impl Params for ReadFirst {
    fn list(&self) -> Vec<ParamInfo> {
        vec![
            ParamInfo {
                key: "max-overtakes".into(),
                help: "maximum number of consecutive reads that overtake a waiting program or erase; 0: none",
                value: self.max_overtakes.to_string(),
                live: true,
            },
            ParamInfo {
                key: "window".into(),
                help: "number of ready commands of a unit that are considered, from the oldest; at least 1",
                value: self.window.to_string(),
                live: true,
            },
        ]
    }

    fn set(&mut self, key: &str, value: &str) -> Result<()> {
        match key {
            "max-overtakes" => self.max_overtakes = number(key, value, 0..=u64::from(u32::MAX))? as u32,
            "window" => self.window = number(key, value, 1..=u64::from(u32::MAX))? as u32,
            _ => return Err(unknown(key, value, self)),
        }
        Ok(())
    }
}

//! Scheduling by cause: in-storage processing has the time that the host leaves.

use super::{Scheduler, unknown};
use crate::event::{CmdId, Queues};
use frit_core::visible::Metric;
use frit_core::{ParamInfo, Params, Result, UnitId};

/// Commands of in-storage processing ([`Cause::Isp`](frit_core::Cause::Isp)) start only when no other
/// command can start on their unit. Otherwise the oldest command that no hazard blocks is started.
/// Running commands are not interrupted, so another command waits for one command of in-storage
/// processing at most.
///
/// A command of in-storage processing that blocks another command by a hazard has the rank of that
/// command. Under a load that never leaves a unit idle, in-storage processing does not advance.
#[derive(Clone, Copy, Default, Debug)]
pub struct HostFirst {
    overtakes: u64,
}

impl HostFirst {
    /// Returns the first of the commands of a unit by rank for which `may_start` is `true`.
    fn first(&mut self, queues: &Queues, unit: UnitId, may_start: impl Fn(CmdId) -> bool) -> Option<CmdId> {
        let mut waiting = None;
        for w in queues.sent(unit).filter(|w| may_start(w.id)) {
            if w.cmd.cause.yields_to_host() && !queues.is_followed_by_host(w.id) {
                waiting.get_or_insert(w.id);
                continue;
            }
            self.overtakes += u64::from(waiting.is_some());
            return Some(w.id);
        }
        waiting
    }
}

impl Scheduler for HostFirst {
    fn pick(&mut self, queues: &Queues, unit: UnitId) -> Option<CmdId> {
        self.first(queues, unit, |id| !queues.blocked(id))
    }

    fn pick_read(&mut self, queues: &Queues, unit: UnitId) -> Option<CmdId> {
        self.first(queues, unit, |id| queues.may_suspend(id))
            .filter(|&id| !queues.cmd(id).cause.yields_to_host())
    }

    fn pick_cached(&mut self, queues: &Queues, unit: UnitId) -> Option<CmdId> {
        self.first(queues, unit, |id| !queues.blocked(id))
    }

    fn params(&mut self) -> &mut dyn Params {
        self
    }

    fn metrics(&self) -> Vec<Metric> {
        vec![Metric {
            name: "isp_overtaken",
            value: self.overtakes as f64,
            unit: "commands",
            help: "commands that overtook a command of in-storage processing that could have started",
        }]
    }
}

impl Params for HostFirst {
    fn list(&self) -> Vec<ParamInfo> {
        Vec::new()
    }

    fn set(&mut self, key: &str, value: &str) -> Result<()> {
        Err(unknown(key, value, self))
    }
}

//! Scheduling of whole NAND chips, as in MQSim.

use super::{ChipDispatch, Scheduler, unknown};
use crate::event::{CmdId, Queues};
use frit_core::{Error, ParamInfo, Params, Result, UnitId};

/// A chip takes commands when it is idle: reads before programs, and these before erases, those of the
/// host before others. Pages that are ready leave the chips of a channel before commands enter. Commands
/// of several planes are executed together from anywhere in the queue.
///
/// No hazard is observed, so pages of a block are programmed out of order, as in MQSim. Other media
/// execute their commands in the order in which they are ready.
#[derive(Clone, Copy, Debug)]
pub struct OutOfOrder {
    interleave_dies: bool,
    gc_first: bool,
}

impl Default for OutOfOrder {
    fn default() -> Self {
        OutOfOrder { interleave_dies: true, gc_first: false }
    }
}

impl Scheduler for OutOfOrder {
    fn chips(&self) -> Option<ChipDispatch> {
        Some(ChipDispatch { interleave_dies: self.interleave_dies, gc_first: self.gc_first })
    }

    fn pick(&mut self, queues: &Queues, unit: UnitId) -> Option<CmdId> {
        queues.sent(unit).map(|w| w.id).find(|&id| !queues.blocked(id))
    }

    fn params(&mut self) -> &mut dyn Params {
        self
    }
}

impl Params for OutOfOrder {
    fn list(&self) -> Vec<ParamInfo> {
        vec![
            ParamInfo {
                key: "interleave-dies".into(),
                help: "an idle chip takes commands for all its dies together; otherwise for one of them, as \
                       MQSim since 2018",
                value: self.interleave_dies.to_string(),
                live: false,
            },
            ParamInfo {
                key: "gc-first".into(),
                help: "commands of garbage collection precede those of the host, until the victim is copied",
                value: self.gc_first.to_string(),
                live: false,
            },
        ]
    }

    fn set(&mut self, key: &str, value: &str) -> Result<()> {
        let switch = match key {
            "interleave-dies" => &mut self.interleave_dies,
            "gc-first" => &mut self.gc_first,
            _ => return Err(unknown(key, value, self)),
        };
        *switch = value.trim().parse().map_err(|_| Error::param(key, value, "has to be true or false"))?;
        Ok(())
    }
}

//! First in, first out: the order of a device without a scheduler, and of the in-order engine.

use super::{Scheduler, unknown};
use crate::event::{CmdId, Queues};
use frit_core::{ParamInfo, Params, Result, UnitId};

/// Each unit executes its commands in the order of emission. A command that waits for its `after`
/// blocks those behind it.
#[derive(Clone, Copy, Default, Debug)]
pub struct Fifo;

impl Scheduler for Fifo {
    #[inline]
    fn pick(&mut self, queues: &Queues, unit: UnitId) -> Option<CmdId> {
        queues.oldest(unit)
    }

    fn pick_read(&mut self, queues: &Queues, unit: UnitId) -> Option<CmdId> {
        queues.oldest(unit).filter(|&id| queues.may_suspend(id))
    }

    fn pick_cached(&mut self, queues: &Queues, unit: UnitId) -> Option<CmdId> {
        queues.oldest(unit)
    }

    fn params(&mut self) -> &mut dyn Params {
        self
    }
}

impl Params for Fifo {
    fn list(&self) -> Vec<ParamInfo> {
        Vec::new()
    }

    fn set(&mut self, key: &str, value: &str) -> Result<()> {
        Err(unknown(key, value, self))
    }
}

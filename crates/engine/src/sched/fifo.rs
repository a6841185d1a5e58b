//! First in, first out: what a device without a scheduler does, and what the eager engine computes.

use super::{Scheduler, unknown};
use crate::event::{CmdId, Queues};
use frit_core::{ParamInfo, Params, Result, UnitId};

/// Each unit carries its commands out in the order in which they were given. One that waits for
/// something holds back those behind it.
#[derive(Clone, Copy, Default, Debug)]
pub struct Fifo;

impl Scheduler for Fifo {
    #[inline]
    fn pick(&mut self, queues: &Queues, unit: UnitId) -> Option<CmdId> {
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

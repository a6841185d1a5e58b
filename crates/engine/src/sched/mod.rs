//! Schedulers of the event engine: they decide when commands are sent to the device, and which of
//! the commands that wait at a unit is started next. Disks do not use them: a drive has its own
//! order.
//!
//! To add a scheduler, add a file here, a `mod` line and a line in [`AnyScheduler`]. Its name in a
//! stack file is that of the variant in kebab case.

mod fifo;
mod hfsl;
mod host_first;
mod out_of_order;
mod read_first;

pub use fifo::Fifo;
pub use hfsl::Hfsl;
pub use host_first::HostFirst;
pub use out_of_order::OutOfOrder;
pub use read_first::ReadFirst;

use crate::event::{CmdId, Queues};
use enum_dispatch::enum_dispatch;
use frit_core::visible::Metric;
use frit_core::{Error, Params, Result, UnitId};
use std::ops::RangeInclusive;
use strum::{EnumString, IntoStaticStr, VariantNames};

/// Decides when commands are sent to the device, and in which order a unit executes them.
///
/// The engine calls `ready` in an order that respects hazards, and never starts a command that
/// would violate one: such a choice is counted ([`Event::metrics`](crate::Event::metrics)) and
/// replaced.
#[enum_dispatch]
pub trait Scheduler: Send {
    /// Initializes the scheduler for the devices; called once, before any command.
    fn attach(&mut self, queues: &Queues) {
        let _ = queues;
    }

    /// Returns how chips of NAND take commands, if these have queues of their own and the scheduler is for
    /// other media only. By default, each unit has a queue.
    fn chips(&self) -> Option<ChipDispatch> {
        None
    }

    /// Handles a command that is ready to be sent to the device. By default it is sent at once.
    fn ready(&mut self, queues: &mut Queues, id: CmdId) {
        queues.send(id);
    }

    /// Returns the command that an idle unit starts next: one of those sent to it, or `None` to
    /// leave it idle. The engine asks again when another command is sent.
    fn pick(&mut self, queues: &Queues, unit: UnitId) -> Option<CmdId>;

    /// Returns the read that a unit executes in a suspension of its program or erase: one of those
    /// for which [`Queues::may_suspend`] is `true`. By default, the first command sent, if it is one.
    fn pick_read(&mut self, queues: &Queues, unit: UnitId) -> Option<CmdId> {
        queues.sent(unit).next().map(|w| w.id).filter(|&id| queues.may_suspend(id))
    }

    /// Returns the program whose data a unit takes while it programs another page of the block, or another
    /// command for none. By default, the first command sent.
    fn pick_cached(&mut self, queues: &Queues, unit: UnitId) -> Option<CmdId> {
        queues.sent(unit).next().map(|w| w.id)
    }

    /// Handles a command that the device has finished. By default the host is notified at once.
    fn finished(&mut self, queues: &mut Queues, id: CmdId) {
        queues.complete(id);
    }

    /// Handles the expiry of a timer that the scheduler has set.
    fn timer(&mut self, queues: &mut Queues, token: u32) {
        let _ = (queues, token);
    }

    /// Parameters, readable and changeable at run time.
    fn params(&mut self) -> &mut dyn Params;

    /// Metrics of the scheduler.
    fn metrics(&self) -> Vec<Metric> {
        Vec::new()
    }
}

/// The schedulers by name: `"read-first".parse::<AnyScheduler>()`; the names are in
/// `AnyScheduler::VARIANTS`.
#[enum_dispatch(Scheduler)]
#[derive(Clone, Debug, EnumString, VariantNames, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum AnyScheduler {
    /// In order of emission.
    Fifo,
    /// Reads overtake programs and erases of other blocks.
    ReadFirst,
    /// Batches as in HFSL.
    Hfsl,
    /// Queues of chips, as in MQSim.
    OutOfOrder,
    /// In-storage processing yields to all other commands.
    HostFirst,
}

/// Rules by which chips of NAND take commands from queues of their own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChipDispatch {
    /// A chip takes commands for all its dies together, and not for one of them.
    pub interleave_dies: bool,
    /// Commands of garbage collection precede those of the host.
    pub gc_first: bool,
}

impl AnyScheduler {
    /// Returns the scheduler with this name and its default parameters.
    ///
    /// # Errors
    /// An unknown name; the message lists the schedulers.
    pub fn named(name: &str) -> Result<AnyScheduler> {
        name.parse().map_err(|_| {
            let why = format!("no such scheduler; there are {}", AnyScheduler::VARIANTS.join(", "));
            Error::param("scheduler", name, why)
        })
    }
}

/// Parses a whole number within a range.
fn number(key: &str, value: &str, range: RangeInclusive<u64>) -> Result<u64> {
    match value.trim().replace('_', "").parse() {
        Ok(n) if range.contains(&n) => Ok(n),
        _ => {
            let why = format!("a whole number from {} to {} is needed", range.start(), range.end());
            Err(Error::param(key, value, why))
        }
    }
}

/// Returns the error for a parameter that a scheduler does not have.
fn unknown(key: &str, value: &str, params: &dyn Params) -> Error {
    let list = params.list();
    let known: Vec<&str> = list.iter().map(|p| &*p.key).collect();
    let why = match known.as_slice() {
        [] => "this scheduler has no parameters".to_string(),
        known => format!("no such parameter of this scheduler; there are {}", known.join(", ")),
    };
    Error::param(key, value, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedulers_are_found_by_name() {
        assert_eq!(AnyScheduler::VARIANTS, ["fifo", "read-first", "hfsl", "out-of-order", "host-first"]);
        for name in AnyScheduler::VARIANTS {
            let s = AnyScheduler::named(name).unwrap();
            assert_eq!(<&str>::from(&s), *name);
        }
        let e = AnyScheduler::named("elevator").unwrap_err().to_string();
        assert!(e.contains("fifo, read-first, hfsl, out-of-order, host-first"), "{e}");
    }

    #[test]
    fn every_parameter_reads_back_and_refuses_nonsense() {
        for name in AnyScheduler::VARIANTS {
            let mut s = AnyScheduler::named(name).unwrap();
            for p in s.params().list() {
                s.params().set(&p.key, &p.value).unwrap();
                assert_eq!(s.params().get(&p.key).unwrap(), p.value, "{name}");
                let e = s.params().set(&p.key, "nonsense").unwrap_err().to_string();
                assert!(e.contains(&*p.key) && e.contains("nonsense"), "{e}");
                assert_eq!(s.params().get(&p.key).unwrap(), p.value, "a refused value changed {}", p.key);
            }
            assert!(s.params().set("no-such-key", "1").is_err());
        }
    }
}

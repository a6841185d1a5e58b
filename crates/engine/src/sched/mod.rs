//! Schedulers of the event engine: which command goes to the device, and which of those that wait at
//! a unit is next. Disks are not theirs: a drive has its own order.
//!
//! A scheduler is one file here, one `mod` line and one line of [`AnyScheduler`]; its name in a stack
//! file is the variant's in kebab case.

mod fifo;
mod hfsl;
mod read_first;

pub use fifo::Fifo;
pub use hfsl::Hfsl;
pub use read_first::ReadFirst;

use crate::event::{CmdId, Queues};
use enum_dispatch::enum_dispatch;
use frit_core::visible::Metric;
use frit_core::{Error, Params, Result, UnitId};
use std::ops::RangeInclusive;
use strum::{EnumString, IntoStaticStr, VariantNames};

/// Decides when commands go to the device, and in which order a unit carries them out.
///
/// The engine calls `ready` in an order that respects hazards, and starts nothing that would break
/// one: a choice that would is counted ([`Event::metrics`](crate::Event::metrics)) and replaced.
#[enum_dispatch]
pub trait Scheduler {
    /// Called once, before any command, with the devices at hand.
    fn attach(&mut self, queues: &Queues) {
        let _ = queues;
    }

    /// A command waits for nothing but the device. By default it goes there at once.
    fn ready(&mut self, queues: &mut Queues, id: CmdId) {
        queues.send(id);
    }

    /// What a unit that is free carries out next: one of the commands sent to it, or none
    /// for now. It is asked again when another is sent.
    fn pick(&mut self, queues: &Queues, unit: UnitId) -> Option<CmdId>;

    /// The device is done with a command. By default the host knows at once.
    fn finished(&mut self, queues: &mut Queues, id: CmdId) {
        queues.complete(id);
    }

    /// A timer that it has set goes off.
    fn timer(&mut self, queues: &mut Queues, token: u32) {
        let _ = (queues, token);
    }

    /// Its parameters, readable and changeable while it runs.
    fn params(&mut self) -> &mut dyn Params;

    /// Figures of its own.
    fn metrics(&self) -> Vec<Metric> {
        Vec::new()
    }
}

/// The schedulers by name: `"read-first".parse::<AnyScheduler>()`, names in
/// `AnyScheduler::VARIANTS`.
#[enum_dispatch(Scheduler)]
#[derive(Clone, Debug, EnumString, VariantNames, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum AnyScheduler {
    /// In order of emission.
    Fifo,
    /// Reads overtake programs and erases of other blocks.
    ReadFirst,
    /// The batches of HFSL.
    Hfsl,
}

impl AnyScheduler {
    /// The scheduler of this name, with its default parameters.
    ///
    /// # Errors
    /// An unknown name; the message lists those there are.
    pub fn named(name: &str) -> Result<AnyScheduler> {
        name.parse().map_err(|_| {
            let why = format!("no such scheduler; there are {}", AnyScheduler::VARIANTS.join(", "));
            Error::param("scheduler", name, why)
        })
    }
}

/// Reads a whole number within a range.
fn number(key: &str, value: &str, range: RangeInclusive<u64>) -> Result<u64> {
    match value.trim().replace('_', "").parse() {
        Ok(n) if range.contains(&n) => Ok(n),
        _ => {
            let why = format!("a whole number from {} to {} is needed", range.start(), range.end());
            Err(Error::param(key, value, why))
        }
    }
}

/// The error of a parameter that a scheduler does not have.
fn unknown(key: &str, value: &str, params: &dyn Params) -> Error {
    let known: Vec<&str> = params.list().iter().map(|p| p.key).collect();
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
        assert_eq!(AnyScheduler::VARIANTS, ["fifo", "read-first", "hfsl"]);
        for name in AnyScheduler::VARIANTS {
            let s = AnyScheduler::named(name).unwrap();
            assert_eq!(<&str>::from(&s), *name);
        }
        let e = AnyScheduler::named("elevator").unwrap_err().to_string();
        assert!(e.contains("fifo, read-first, hfsl"), "{e}");
    }

    #[test]
    fn every_parameter_reads_back_and_refuses_nonsense() {
        for name in AnyScheduler::VARIANTS {
            let mut s = AnyScheduler::named(name).unwrap();
            for p in s.params().list() {
                s.params().set(p.key, &p.value).unwrap();
                assert_eq!(s.params().get(p.key).unwrap(), p.value, "{name}");
                let e = s.params().set(p.key, "nonsense").unwrap_err().to_string();
                assert!(e.contains(p.key) && e.contains("nonsense"), "{e}");
                assert_eq!(s.params().get(p.key).unwrap(), p.value, "a refused value changed {}", p.key);
            }
            assert!(s.params().set("no-such-key", "1").is_err());
        }
    }
}

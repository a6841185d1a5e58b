//! The keys of NAND cells: latencies by type of page, and suspension.

use super::{MediumConfig, Picos};
use crate::nand::{CellKind, NandCells, NandSuspend, PageTimes, SuspendOps, SuspendTimes};
use frit_core::{Error, Nanos, Result};
use serde::de::{self, Deserialize, Deserializer};
use serde::ser::{Serialize, Serializer};

/// Default of `max_suspends` and of `max_suspend_reads`.
const MAX_SUSPENDS: u32 = 16;
const MAX_SUSPEND_READS: u32 = 64;

/// Latency of a page: one time, or one for each type of page, LSB first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PageLatency {
    /// The latency of all pages.
    One(Picos),
    /// The latency of each type of page.
    ByType(Vec<Picos>),
}

impl PageLatency {
    /// Returns the latency of all pages.
    ///
    /// # Errors
    /// The problem, if there is one latency for each type.
    pub(super) fn one(&self, key: &str) -> Result<Picos> {
        match self {
            PageLatency::One(t) => Ok(*t),
            PageLatency::ByType(_) => Err(Error::param(key, self, "has to be one time")),
        }
    }

    /// Returns the latencies, LSB first.
    pub(super) fn times(&self) -> Vec<Picos> {
        match self {
            PageLatency::One(t) => vec![*t],
            PageLatency::ByType(times) => times.clone(),
        }
    }

    /// Returns the latency of each type of page.
    fn by_type(&self, key: &str, kind: CellKind) -> Result<Vec<Nanos>> {
        let times = match self {
            PageLatency::One(t) => vec![*t; kind.types()],
            PageLatency::ByType(times) => times.clone(),
        };
        let (name, types): (&str, usize) = (kind.into(), kind.types());
        if times.len() != types {
            let why =
                format!("has {} times; cells of kind `{name}` have {types} types of pages", times.len());
            return Err(Error::param(key, self, why));
        }
        if times.iter().any(|t| t.nanos() == Nanos::ZERO) {
            return Err(Error::param(key, self, "each time has to be at least 1 ns"));
        }
        Ok(times.into_iter().map(Picos::nanos).collect())
    }

    /// Returns the mean over the types of pages.
    fn mean(&self) -> Picos {
        match self {
            PageLatency::One(t) => *t,
            PageLatency::ByType(times) => {
                let sum: u64 = times.iter().map(|t| t.0).sum();
                Picos(sum / (times.len() as u64).max(1))
            }
        }
    }
}

impl std::fmt::Display for PageLatency {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            PageLatency::One(t) => t.fmt(f),
            PageLatency::ByType(times) => {
                let times: Vec<String> = times.iter().map(ToString::to_string).collect();
                write!(f, "{}", times.join(", "))
            }
        }
    }
}

impl Serialize for PageLatency {
    fn serialize<S: Serializer>(&self, s: S) -> std::result::Result<S::Ok, S::Error> {
        match self {
            PageLatency::One(t) => t.serialize(s),
            PageLatency::ByType(times) => times.serialize(s),
        }
    }
}

impl<'de> Deserialize<'de> for PageLatency {
    fn deserialize<D: Deserializer<'de>>(d: D) -> std::result::Result<PageLatency, D::Error> {
        struct V;
        impl<'de> de::Visitor<'de> for V {
            type Value = PageLatency;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(
                    "a time with its unit, such as \"75.5 us\", or a list of times, one for each type of page",
                )
            }
            fn visit_str<E: de::Error>(self, v: &str) -> std::result::Result<PageLatency, E> {
                Picos::parse(v).map(PageLatency::One).map_err(E::custom)
            }
            fn visit_seq<A: de::SeqAccess<'de>>(
                self,
                mut seq: A,
            ) -> std::result::Result<PageLatency, A::Error> {
                let mut times = Vec::new();
                while let Some(t) = seq.next_element()? {
                    times.push(t);
                }
                Ok(PageLatency::ByType(times))
            }
        }
        d.deserialize_any(V)
    }
}

impl MediumConfig {
    /// Returns the latency of a page of any type: the mean if the types differ.
    pub(super) fn mean_latency(value: Option<&PageLatency>) -> Option<Picos> {
        value.map(PageLatency::mean)
    }

    /// Returns the latencies by type of page, and the rules of suspension, if the keys give them.
    pub(super) fn nand_cells(&self, pages_per_block: u32) -> Result<Option<NandCells>> {
        let suspend = self.nand_suspend()?;
        let (Some(t_read), Some(t_prog)) = (&self.t_read, &self.t_prog) else { return Ok(None) };
        let Some(kind) = self.cell else {
            for (key, value) in [("t_read", t_read), ("t_prog", t_prog)] {
                if matches!(value, PageLatency::ByType(_)) {
                    let why =
                        "has a time for each type of page, so `cell` has to be \"mlc\", \"tlc\" or \"qlc\"";
                    return Err(Error::param(key, value, why));
                }
            }
            if let Some(order) = self.page_order {
                let why = "is an order of types of pages, so `cell` has to be given";
                return Err(Error::param("page_order", <&str>::from(order), why));
            }
            return Ok(suspend.map(NandCells::suspending));
        };
        let read = t_read.by_type("t_read", kind)?;
        let program = t_prog.by_type("t_prog", kind)?;
        let times = read.into_iter().zip(program).map(|(read, program)| PageTimes { read, program });
        let times: Vec<PageTimes> = times.collect();
        if times.iter().all(|t| *t == times[0]) {
            return Ok(suspend.map(NandCells::suspending));
        }
        let order = self.page_order.unwrap_or_default();
        Ok(Some(NandCells::typed(kind, order, &times, pages_per_block, suspend)))
    }

    /// Returns the latencies of blocks with one bit a cell, if the keys give them.
    pub(super) fn slc_times(&self) -> Result<Option<PageTimes>> {
        let (key, given) = match (self.t_read_slc, self.t_prog_slc) {
            (None, None) => return Ok(None),
            (Some(read), None) => ("t_prog_slc", read),
            (None, Some(program)) => ("t_read_slc", program),
            (Some(_), Some(program)) if self.cell.is_none() => {
                let why = "needs `cell`, which tells how many bits a cell holds otherwise";
                return Err(Error::param("t_prog_slc", program, why));
            }
            (Some(read), Some(program)) => {
                let times = PageTimes { read: read.nanos(), program: program.nanos() };
                for (key, value, time) in
                    [("t_read_slc", read, times.read), ("t_prog_slc", program, times.program)]
                {
                    if time == Nanos::ZERO {
                        return Err(Error::param(key, value, "has to be at least 1 ns"));
                    }
                }
                return Ok(Some(times));
            }
        };
        let why = format!("is needed beside the other latency with one bit a cell, which is {given}");
        Err(Error::param(key, "(not given)", why))
    }

    /// Returns the endurance of a block with one bit a cell: that with all bits unless it is given.
    pub(super) fn slc_endurance(&self, endurance: u32) -> Result<u32> {
        let Some(given) = self.endurance_slc else { return Ok(endurance) };
        let why = "has to be at least `endurance`, in erases";
        let valid = u32::try_from(given).ok().filter(|&e| e >= endurance);
        valid.ok_or_else(|| Error::param("endurance_slc", given, why))
    }

    fn nand_suspend(&self) -> Result<Option<NandSuspend>> {
        let Some(ops) = self.suspend else { return self.no_suspension_keys().map(|()| None) };
        if ops == SuspendOps::None {
            return Ok(None);
        }
        let needed = |key, value: Option<Picos>| {
            let why = "is needed, because `suspend` names this operation";
            value.map(Picos::nanos).ok_or_else(|| Error::param(key, "(not given)", why))
        };
        let min = |value: Option<Picos>| value.map_or(Nanos::ZERO, Picos::nanos);
        let program = match ops {
            SuspendOps::ProgramErase => Some(SuspendTimes {
                suspend: needed("t_suspend_program", self.t_suspend_program)?,
                min_remaining: min(self.suspend_min_program),
            }),
            _ => None,
        };
        let erase = SuspendTimes {
            suspend: needed("t_suspend_erase", self.t_suspend_erase)?,
            min_remaining: min(self.suspend_min_erase),
        };
        Ok(Some(NandSuspend {
            program,
            erase,
            resume: min(self.t_resume),
            max_suspends: at_least_one("max_suspends", self.max_suspends, MAX_SUSPENDS)?,
            max_reads: at_least_one("max_suspend_reads", self.max_suspend_reads, MAX_SUSPEND_READS)?,
        }))
    }

    /// Refuses keys of the suspension if `suspend` is not given: they would have no effect.
    fn no_suspension_keys(&self) -> Result<()> {
        const KEYS: [&str; 7] = [
            "t_suspend_program",
            "t_suspend_erase",
            "t_resume",
            "suspend_min_program",
            "suspend_min_erase",
            "max_suspends",
            "max_suspend_reads",
        ];
        match self.given_keys().into_iter().find(|(k, _)| KEYS.contains(&k.name)) {
            Some((key, value)) => {
                let why = "has no effect without `suspend`, which has to be \"erase\" or \"program-erase\"";
                Err(Error::param(key.name, value, why))
            }
            None => Ok(()),
        }
    }
}

fn at_least_one(key: &str, value: Option<u32>, default: u32) -> Result<u32> {
    match value {
        Some(0) => Err(Error::param(key, 0, "has to be at least 1; `suspend = \"none\"` suspends nothing")),
        value => Ok(value.unwrap_or(default)),
    }
}

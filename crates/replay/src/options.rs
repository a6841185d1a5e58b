//! Options for running a workload over a stack.

use frit_core::Precondition;
use frit_engine::LoopMode;
use std::str::FromStr;

/// Options for running a workload over a stack.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RunOptions {
    /// Closed loop with a queue depth, or open loop by arrival times.
    pub mode: LoopMode,
    /// Preparation of the volume before the measurement.
    pub warm: WarmUp,
    /// Seed of the random choices of [`Precondition::Steady`] and of the contents that
    /// [`RunOptions::verify`] writes.
    pub seed: u64,
    /// Media store bytes, and every byte that is read is checked.
    pub verify: bool,
    /// Percentiles of latency that the report has.
    pub percentiles: Percentiles,
}

impl Default for RunOptions {
    /// Queue depth 1 on a new volume, without bytes.
    fn default() -> Self {
        RunOptions {
            mode: LoopMode::Closed { depth: 1 },
            warm: WarmUp::default(),
            seed: 1,
            verify: false,
            percentiles: Percentiles::default(),
        }
    }
}

/// Percentiles of latency that a report has: at most eight, in ascending order.
///
/// Text form: numbers above 0 and below 100, joined by commas.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Percentiles {
    values: [f64; Percentiles::COUNT_MAX],
    count: usize,
}

impl Percentiles {
    /// Maximum number of percentiles: more columns do not fit a terminal.
    pub const COUNT_MAX: usize = 8;

    /// Returns the percentiles.
    #[must_use]
    pub fn values(&self) -> &[f64] {
        &self.values[..self.count]
    }

    fn of(given: &[f64]) -> Percentiles {
        let mut values = [0.0; Percentiles::COUNT_MAX];
        values[..given.len()].copy_from_slice(given);
        Percentiles { values, count: given.len() }
    }
}

impl Default for Percentiles {
    fn default() -> Percentiles {
        Percentiles::of(&[50.0, 99.0, 99.9])
    }
}

impl FromStr for Percentiles {
    type Err = String;

    fn from_str(text: &str) -> Result<Percentiles, String> {
        let one = |part: &str| match part.trim().trim_start_matches('p').parse::<f64>() {
            Ok(p) if p > 0.0 && p < 100.0 => Ok(p),
            _ => Err(format!("'{part}' is not a percentile; use numbers above 0 and below 100: 50,90,99.9")),
        };
        let mut values = text.split(',').map(one).collect::<Result<Vec<f64>, String>>()?;
        values.sort_by(f64::total_cmp);
        values.dedup();
        if values.len() > Percentiles::COUNT_MAX {
            return Err(format!("at most {} percentiles are shown", Percentiles::COUNT_MAX));
        }
        Ok(Percentiles::of(&values))
    }
}

/// Initial state of a volume.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum InitialState {
    /// New: the volume was never written.
    #[default]
    New,
    /// Filled: every page was written once, in order.
    Fill,
    /// Filled in part: so many percent of the pages, from the first one on, were written once.
    FillPart(u8),
    /// Steady: the state after long random overwriting.
    Steady,
}

impl InitialState {
    /// Returns the preconditioning for the layer.
    pub(crate) fn precondition(self, seed: u64) -> Option<Precondition> {
        match self {
            InitialState::New => None,
            InitialState::Fill => Some(Precondition::Fill),
            InitialState::FillPart(percent) => Some(Precondition::FillPart { percent }),
            InitialState::Steady => Some(Precondition::Steady { seed }),
        }
    }
}

/// Part of the workload that is run before the measurement.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub enum WarmUpRequests {
    /// No part of the workload.
    #[default]
    None,
    /// The whole workload; then it is run again from its start and measured.
    Whole,
    /// This number of requests from the start; the rest is measured.
    Requests(u64),
    /// This share of the requests (0 to 1) from the start; the rest is measured.
    Share(f64),
}

/// Preparation of a volume before the measurement: an initial state, then requests that are not
/// measured.
///
/// Text form: parts joined by `+`, each of them `none`, `fill`, `fill:N%`, `steady`, `trace`,
/// `trace:N`, `trace:N%`, `N` or `N%`.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct WarmUp {
    /// Initial state of the volume.
    pub start: InitialState,
    /// Part of the workload that is run but not measured.
    pub warm_up_requests: WarmUpRequests,
}

impl FromStr for WarmUp {
    type Err = String;

    fn from_str(text: &str) -> Result<WarmUp, String> {
        let mut warm = WarmUp::default();
        for part in text.split(['+', ',']).map(str::trim) {
            let start = match part {
                "none" => continue,
                "fill" => Some(InitialState::Fill),
                "steady" => Some(InitialState::Steady),
                _ => match part.strip_prefix("fill:") {
                    Some(share) => Some(InitialState::FillPart(fill_percent(share)?)),
                    None => None,
                },
            };
            match start {
                Some(s) if warm.start == InitialState::New => warm.start = s,
                None if warm.warm_up_requests == WarmUpRequests::None => {
                    warm.warm_up_requests = warm_up_requests(part)?;
                }
                _ => {
                    return Err(format!(
                        "'{text}' is ambiguous; use one of fill and steady, one of trace and N"
                    ));
                }
            }
        }
        Ok(warm)
    }
}

fn fill_percent(share: &str) -> Result<u8, String> {
    let percent = share.strip_suffix('%').and_then(|p| p.trim().parse().ok());
    percent
        .filter(|p| (1..100).contains(p))
        .ok_or_else(|| format!("'fill:{share}': the share is a whole number from 1% to 99%"))
}

fn warm_up_requests(part: &str) -> Result<WarmUpRequests, String> {
    let bad = || {
        format!(
            "'{part}' is not a warm-up; use none, fill, fill:50%, steady, trace, a number of requests (5000) or a share of them (10%), or two joined by + (fill+10%)"
        )
    };
    let amount = match part.strip_prefix("trace") {
        Some("") => return Ok(WarmUpRequests::Whole),
        Some(rest) => rest.strip_prefix(':').ok_or_else(bad)?,
        None => part,
    };
    match amount.strip_suffix('%') {
        Some(percent) => match percent.trim().parse::<f64>() {
            Ok(p) if (0.0..100.0).contains(&p) => Ok(WarmUpRequests::Share(p / 100.0)),
            _ => Err(format!("'{part}': a share is from 0% to less than 100%")),
        },
        None => amount.replace('_', "").parse().map(WarmUpRequests::Requests).map_err(|_| bad()),
    }
}

impl std::fmt::Display for WarmUp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let start = match self.start {
            InitialState::New => None,
            InitialState::Fill => Some("fill".to_owned()),
            InitialState::FillPart(percent) => Some(format!("fill:{percent}%")),
            InitialState::Steady => Some("steady".to_owned()),
        };
        let warm_up_requests = match self.warm_up_requests {
            WarmUpRequests::None => None,
            WarmUpRequests::Whole => Some("trace".to_owned()),
            WarmUpRequests::Requests(n) => Some(format!("trace:{n}")),
            WarmUpRequests::Share(s) => Some(format!("trace:{}%", s * 100.0)),
        };
        let parts: Vec<String> = start.into_iter().chain(warm_up_requests).collect();
        f.write_str(if parts.is_empty() { "none" } else { "" })?;
        f.write_str(&parts.join("+"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_parse_in_order() {
        let p: Percentiles = "99.9,50, p90,50".parse().unwrap();
        assert_eq!(p.values(), [50.0, 90.0, 99.9]);
        for bad in ["", "0", "100", "-1", "NaN", "50;90", "1,2,3,4,5,6,7,8,9"] {
            assert!(bad.parse::<Percentiles>().is_err(), "{bad}");
        }
    }

    #[test]
    fn warm_ups_parse_and_print() {
        for (text, start, warm_up_requests) in [
            ("none", InitialState::New, WarmUpRequests::None),
            ("fill", InitialState::Fill, WarmUpRequests::None),
            ("fill:85%", InitialState::FillPart(85), WarmUpRequests::None),
            ("steady+trace", InitialState::Steady, WarmUpRequests::Whole),
            ("trace:5000", InitialState::New, WarmUpRequests::Requests(5000)),
            ("fill+trace:10%", InitialState::Fill, WarmUpRequests::Share(0.1)),
        ] {
            let w: WarmUp = text.parse().unwrap();
            assert_eq!(w, WarmUp { start, warm_up_requests });
            assert_eq!(w.to_string(), text);
        }
        assert_eq!(
            "7_000".parse(),
            Ok(WarmUp { start: InitialState::New, warm_up_requests: WarmUpRequests::Requests(7000) })
        );
        assert_eq!(
            "2.5%".parse(),
            Ok(WarmUp { start: InitialState::New, warm_up_requests: WarmUpRequests::Share(0.025) })
        );
        for bad in [
            "",
            "full",
            "100%",
            "-1%",
            "fill+steady",
            "trace+10%",
            "tracer",
            "fill fill",
            "fill:100%",
            "fill:x",
            "NaN%",
        ] {
            assert!(bad.parse::<WarmUp>().is_err(), "{bad}");
        }
    }
}

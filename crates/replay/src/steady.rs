//! Detection of steady state by the rule of SNIA's *Solid State Storage Performance Test
//! Specification* 2.0.2 (2020), applied to rounds of the run.
//!
//! The rule: over a window of five rounds, the range of a metric is at most 20 % of its mean, and
//! the straight line fitted to it by least squares changes by at most 10 % of the mean over the
//! window. frit applies the rule to two metrics, write amplification and throughput, and requires
//! that both hold from some round on *to the end of the run*: a new volume shows five flat rounds
//! before cleaning begins, which the rule alone would accept as steady.

use serde::Serialize;

/// Number of rounds of a window.
pub const WINDOW: usize = 5;
/// Maximum range of a metric over a window, as a share of its mean.
pub const RANGE_MAX: f64 = 0.20;
/// Maximum change of the fitted line over a window, as a share of the mean.
pub const SLOPE_MAX: f64 = 0.10;

/// Number of requests of the shortest round.
const ROUND_REQUESTS_MIN: u64 = 1024;
/// Number of rounds at which pairs of rounds are joined: a long run has 16 to 31 rounds, whatever
/// its length.
const JOIN_ROUNDS: usize = 32;

/// Cumulative sums since the start of the run, at the end of a round.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub(crate) struct CumulativeCounts {
    pub(crate) requests: u64,
    pub(crate) written_bytes: u64,
    pub(crate) programmed_bytes: u64,
    pub(crate) time_ns: u64,
}

/// Collects rounds of equal numbers of requests.
#[derive(Debug)]
pub(crate) struct RequestRounds {
    size: u64,
    sums: Vec<CumulativeCounts>,
}

impl RequestRounds {
    pub(crate) fn new() -> RequestRounds {
        RequestRounds { size: ROUND_REQUESTS_MIN, sums: vec![CumulativeCounts::default()] }
    }

    /// Returns the number of requests until the end of the current round, after `requests` were
    /// served.
    pub(crate) fn requests_to_round_end(&self, requests: u64) -> u64 {
        self.size - requests % self.size
    }

    /// Records the end of a round.
    pub(crate) fn end(&mut self, sums: CumulativeCounts) {
        self.sums.push(sums);
        if self.sums.len() > JOIN_ROUNDS {
            // The sums are cumulative, so dropping every second one joins pairs of rounds.
            self.sums = self.sums.iter().step_by(2).copied().collect();
            self.size *= 2;
        }
    }

    pub(crate) fn judge(&self) -> SteadyState {
        let rounds: Vec<Round> = self.sums.windows(2).map(|w| Round::between(&w[0], &w[1])).collect();
        let holds = |end: usize| Window::from_rounds(&rounds[end + 1 - WINDOW..=end]).holds();
        let last = rounds.len().checked_sub(1).filter(|&last| last + 1 >= WINDOW);
        let Some(last) = last else {
            return SteadyState {
                verdict: SteadyVerdict::TooShort,
                round: None,
                requests_a_round: self.size,
                window: None,
                rounds,
            };
        };
        // The search goes backwards from the end, because the rule must hold up to the end of the
        // run.
        let first = (WINDOW - 1..=last).rev().take_while(|&end| holds(end)).last();
        SteadyState {
            verdict: if first.is_some() { SteadyVerdict::Reached } else { SteadyVerdict::NotReached },
            round: first.map(|f| f as u32 + 1),
            requests_a_round: self.size,
            window: Some(Window::from_rounds(&rounds[last + 1 - WINDOW..=last])),
            rounds,
        }
    }
}

/// Result of the test for steady state.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SteadyVerdict {
    /// Steady from some round on to the end of the run.
    Reached,
    /// Not steady at the end of the run.
    NotReached,
    /// The run has fewer than five rounds of 1024 requests.
    TooShort,
}

/// A round of the run.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Round {
    /// NAND bytes programmed divided by bytes that the host wrote; `None` if the host did not
    /// write.
    pub write_amplification: Option<f64>,
    /// Requests per second of virtual time; `None` if no time passed.
    pub requests_per_s: Option<f64>,
}

impl Round {
    fn between(a: &CumulativeCounts, b: &CumulativeCounts) -> Round {
        let ratio = |n: u64, d: u64| (d > 0).then(|| n as f64 / d as f64);
        Round {
            write_amplification: ratio(
                b.programmed_bytes - a.programmed_bytes,
                b.written_bytes - a.written_bytes,
            ),
            requests_per_s: ratio(b.requests - a.requests, b.time_ns - a.time_ns).map(|r| r * 1e9),
        }
    }
}

/// Test of one metric over a window.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Test {
    /// Mean of the metric.
    pub mean: f64,
    /// Range (maximum minus minimum), as a share of the mean; at most 0.20 in steady state.
    pub range: f64,
    /// Change of the fitted line over the window, as a share of the mean; at most 0.10 in steady
    /// state.
    pub slope: f64,
}

impl Test {
    /// Tests values; returns `None` if a round has no value.
    fn of(values: &[Option<f64>]) -> Option<Test> {
        let y: Vec<f64> = values.iter().copied().collect::<Option<_>>()?;
        let n = y.len() as f64;
        let mean = y.iter().sum::<f64>() / n;
        let (low, high) = y.iter().fold((f64::MAX, f64::MIN), |(l, h), &v| (l.min(v), h.max(v)));
        let mid = (n - 1.0) / 2.0;
        let (xy, xx) = y.iter().enumerate().fold((0.0, 0.0), |(xy, xx), (i, v)| {
            let x = i as f64 - mid;
            (xy + x * (v - mean), xx + x * x)
        });
        // A metric that is zero in every round is steady.
        let share = |v: f64| if mean == 0.0 { 0.0 } else { v / mean };
        Some(Test { mean, range: share(high - low), slope: share((xy / xx * (n - 1.0)).abs()) })
    }

    fn holds(&self) -> bool {
        self.range <= RANGE_MAX && self.slope <= SLOPE_MAX
    }
}

/// Both metrics over five rounds.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Window {
    /// Write amplification; `None` if the host did not write in some round.
    pub write_amplification: Option<Test>,
    /// Requests per second.
    pub requests_per_s: Option<Test>,
    /// `true` if the host wrote in any of the rounds.
    pub writes: bool,
}

impl Window {
    fn from_rounds(rounds: &[Round]) -> Window {
        let of = |f: fn(&Round) -> Option<f64>| Test::of(&rounds.iter().map(f).collect::<Vec<_>>());
        Window {
            write_amplification: of(|r| r.write_amplification),
            requests_per_s: of(|r| r.requests_per_s),
            writes: rounds.iter().any(|r| r.write_amplification.is_some()),
        }
    }

    /// Returns `true` if both metrics are within the limits. A window without writes is judged by
    /// throughput alone; one with writes in only some of the rounds is not steady.
    fn holds(&self) -> bool {
        let holds = |t: Option<Test>| t.is_some_and(|t| t.holds());
        holds(self.requests_per_s) && (!self.writes || holds(self.write_amplification))
    }
}

/// Steady state of a run, and the metrics on which the verdict is based.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SteadyState {
    /// Result of the test.
    pub verdict: SteadyVerdict,
    /// Round (from 1) at the end of which the rule held for the first time and from which on it
    /// held to the end.
    pub round: Option<u32>,
    /// Number of requests in a round.
    pub requests_a_round: u64,
    /// Metrics over the last five rounds.
    pub window: Option<Window>,
    /// All complete rounds.
    pub rounds: Vec<Round>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the steady state of rounds with the given write amplifications and throughputs.
    fn judged(figures: impl IntoIterator<Item = (f64, f64)>) -> SteadyState {
        let (mut rounds, mut sums) = (RequestRounds::new(), CumulativeCounts::default());
        for (wa, rate) in figures {
            let n = rounds.requests_to_round_end(sums.requests);
            sums.requests += n;
            sums.written_bytes += 1_000_000;
            sums.programmed_bytes += (wa * 1e6).round() as u64;
            sums.time_ns += (n as f64 / rate * 1e9).round() as u64;
            rounds.end(sums);
        }
        rounds.judge()
    }

    #[test]
    fn flat_rounds_are_steady_from_the_fifth_on() {
        let s = judged(vec![(2.0, 1000.0); 10]);
        assert_eq!((s.verdict, s.round), (SteadyVerdict::Reached, Some(5)));
        assert_eq!(judged(vec![(2.0, 1000.0); 4]).verdict, SteadyVerdict::TooShort);
    }

    #[test]
    fn the_limits_are_those_of_the_rule() {
        // Range: 0.20 of the mean is allowed, in both metrics; the fitted lines are flat.
        let zigzag = |low: f64, high: f64| [high, low, low, low, high].map(|v| (v, 1000.0));
        assert_eq!(judged(zigzag(0.92, 1.119)).verdict, SteadyVerdict::Reached);
        assert_eq!(judged(zigzag(0.92, 1.13)).verdict, SteadyVerdict::NotReached);
        // Slope: a line from 0.95 to 1.05 changes by 0.10.
        let line = |d: f64| (0..5).map(move |i| (2.0, 1000.0 * (1.0 - d / 2.0 + d * f64::from(i) / 4.0)));
        assert_eq!(judged(line(0.099)).verdict, SteadyVerdict::Reached);
        let s = judged(line(0.102));
        assert_eq!(s.verdict, SteadyVerdict::NotReached);
        let t = s.window.unwrap().requests_per_s.unwrap();
        assert!((t.slope - 0.102).abs() < 1e-3 && (t.range - 0.102).abs() < 1e-3);
    }

    #[test]
    fn a_cliff_after_flat_rounds_is_not_steady() {
        let new_volume = [(1.0, 1000.0); 8];
        let cliff = [(1.5, 800.0), (2.4, 500.0)];
        assert_eq!(judged(new_volume.iter().copied().chain(cliff)).verdict, SteadyVerdict::NotReached);
        let settled = new_volume.iter().copied().chain(cliff).chain(vec![(2.5, 480.0); 6]);
        let s = judged(settled);
        assert_eq!((s.verdict, s.round), (SteadyVerdict::Reached, Some(14)));
    }

    #[test]
    fn rounds_are_joined_in_pairs_and_lose_nothing() {
        let s = judged((0..300).map(|i| (2.0 + f64::from(i) * 1e-4, 1000.0)));
        assert!((16..=32).contains(&s.rounds.len()), "{}", s.rounds.len());
        assert!(s.requests_a_round.is_power_of_two() && s.requests_a_round > 1024);
        assert_eq!(s.verdict, SteadyVerdict::Reached);
    }
}

//! Scales: mapping of values to positions between 0 and 1, and ticks.

use super::numbers::ceiling;

/// A scale of an axis.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Scale {
    /// Equal distances for equal differences.
    Linear {
        /// The value at 0.
        from: f64,
        /// The value at 1.
        to: f64,
    },
    /// Equal distances for equal ratios; both ends are above zero.
    Log {
        /// The value at 0.
        from: f64,
        /// The value at 1.
        to: f64,
    },
}

impl Scale {
    /// Creates a linear scale from zero to a round value not below `most`.
    pub(super) fn up_to(most: f64) -> Scale {
        let step = step(most, 5);
        let steps = (most / step - 1e-9).ceil().max(1.0);
        Scale::Linear { from: 0.0, to: step * steps }
    }

    /// Creates a logarithmic scale over the positive values, with round ends (1, 2 or 5 times a
    /// power of ten).
    pub(super) fn log(values: impl Iterator<Item = f64>) -> Scale {
        let (low, high) = values
            .filter(|v| *v > 0.0 && v.is_finite())
            .fold((f64::MAX, f64::MIN), |(l, h), v| (l.min(v), h.max(v)));
        if low > high {
            return Scale::Log { from: 1.0, to: 10.0 };
        }
        // The largest round value not above `low` is the inverse of the smallest one not below
        // `1 / low`.
        let (from, to) = (1.0 / ceiling(1.0 / low), ceiling(high));
        Scale::Log { from, to: if to > from { to } else { from * 10.0 } }
    }

    /// Returns the position of a value, from 0 to 1; values outside the scale are at its ends.
    pub(super) fn at(&self, v: f64) -> f64 {
        let place = match *self {
            Scale::Linear { from, to } => (v - from) / (to - from),
            Scale::Log { from, to } => (v.max(from) / from).ln() / (to / from).ln(),
        };
        place.clamp(0.0, 1.0)
    }

    /// Returns both ends.
    pub(super) fn ends(&self) -> (f64, f64) {
        match *self {
            Scale::Linear { from, to } | Scale::Log { from, to } => (from, to),
        }
    }

    /// Returns about `most` round values.
    pub(super) fn ticks(&self, most: usize) -> Vec<f64> {
        match *self {
            Scale::Linear { from, to } => {
                let step = step(to - from, most);
                let first = (from / step - 1e-9).ceil();
                (0..=most + 1)
                    .map(|i| (first + i as f64) * step)
                    .take_while(|&v| v <= to + step * 1e-6)
                    .collect()
            }
            Scale::Log { from, to } => log_ticks(from, to, most),
        }
    }
}

/// Returns a round step such that at most `most` steps cover a span.
fn step(span: f64, most: usize) -> f64 {
    ceiling(span / most.max(1) as f64)
}

fn log_ticks(from: f64, to: f64, most: usize) -> Vec<f64> {
    let (low, high) = (from.log10().floor() as i32, to.log10().ceil() as i32);
    let inside = |v: &f64| *v >= from * (1.0 - 1e-9) && *v <= to * (1.0 + 1e-9);
    let with = |steps: &[f64], every: usize| -> Vec<f64> {
        let decades = (low..=high).filter(|d| d.rem_euclid(every as i32) == 0);
        decades.flat_map(|d| steps.iter().map(move |s| s * 10f64.powi(d))).filter(inside).collect()
    };
    // From the finest pattern to the coarsest: the first one with few enough ticks is used.
    let finest = [(&[1.0, 2.0, 5.0][..], 1), (&[1.0][..], 1), (&[1.0][..], 2), (&[1.0][..], 3)];
    finest.into_iter().map(|(s, e)| with(s, e)).find(|t| t.len() <= most).unwrap_or_else(|| with(&[1.0], 4))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_and_ticks_are_round() {
        assert_eq!(Scale::up_to(3.4).ends(), (0.0, 4.0));
        assert_eq!(Scale::up_to(1.0).ends(), (0.0, 1.0));
        assert_eq!(Scale::up_to(0.0).ends(), (0.0, 1.0));
        assert_eq!(Scale::up_to(4.0).ticks(5), [0.0, 1.0, 2.0, 3.0, 4.0]);
        let log = Scale::log([3_000.0, 700_000.0].into_iter());
        assert_eq!(log.ends(), (2_000.0, 1_000_000.0));
        let near = |a: &[f64], b: &[f64]| {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a / b - 1.0).abs() < 1e-9)
        };
        assert!(near(&log.ticks(5), &[1e4, 1e5, 1e6]), "{:?}", log.ticks(5));
        assert!(near(&Scale::Log { from: 1.0, to: 10.0 }.ticks(6), &[1.0, 2.0, 5.0, 10.0]));
        assert_eq!(Scale::log(std::iter::empty()).ends(), (1.0, 10.0));
        assert_eq!(Scale::log(std::iter::once(10.0)).ends(), (10.0, 100.0));
    }

    #[test]
    fn places_are_inside() {
        let s = Scale::Log { from: 1.0, to: 100.0 };
        assert_eq!([0.0, 1.0, 10.0, 100.0, 1e9].map(|v| s.at(v)), [0.0, 0.0, 0.5, 1.0, 1.0]);
        assert_eq!(Scale::up_to(4.0).at(1.0), 0.25);
    }
}

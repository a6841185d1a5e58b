//! Median and range of the values of several rounds.

use serde::Serialize;

/// Median and range of the values of several rounds.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Spread {
    /// Median: with an even number of rounds, the mean of the two in the middle.
    pub median: f64,
    /// Smallest value.
    pub least: f64,
    /// Largest value.
    pub most: f64,
}

impl Spread {
    /// Returns the median and the range of values; zeros without values.
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Spread {
        let mut all: Vec<f64> = values.into_iter().collect();
        all.sort_by(f64::total_cmp);
        let (Some(least), Some(most)) = (all.first().copied(), all.last().copied()) else {
            return Spread { median: 0.0, least: 0.0, most: 0.0 };
        };
        let middle = all.len() / 2;
        let median =
            if all.len() % 2 == 1 { all[middle] } else { f64::midpoint(all[middle - 1], all[middle]) };
        Spread { median, least, most }
    }

    /// Returns the median and the range as text, with this many decimals.
    pub(crate) fn text(&self, decimals: usize) -> String {
        format!("{:.decimals$} ({:.decimals$}–{:.decimals$})", self.median, self.least, self.most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(values: &[f64]) -> (f64, f64, f64) {
        let Spread { median, least, most } = Spread::of(values.iter().copied());
        (median, least, most)
    }

    #[test]
    fn medians_and_ranges() {
        assert_eq!(parts(&[3.0, 1.0, 2.0]), (2.0, 1.0, 3.0));
        assert_eq!(parts(&[4.0, 1.0]), (2.5, 1.0, 4.0));
        assert_eq!(parts(&[]), (0.0, 0.0, 0.0));
        assert_eq!(Spread::of([1.25, 2.0, 3.0]).text(1), "2.0 (1.2–3.0)");
    }
}

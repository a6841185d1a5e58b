//! How evenly a PCM wears, and for how long.

/// What the life rate is, for reports.
pub const RATE_HELP: &str = "1 / (max deviation / mean + 1) of writes per bank: 1 is perfect leveling";

/// The life rate of the HALO paper (section V.B): `1 / (max / mean + 1)`, where `mean` is the mean of the banks'
/// write counts and `max` the largest deviation of one from it. Read as the deviation upwards, which is what ends
/// a life: the rate is then the mean over the count of the most written bank. 1 when nothing was written.
#[must_use]
pub fn rate(banks: &[u64]) -> f64 {
    let sum: u64 = banks.iter().sum();
    let max = banks.iter().copied().max().unwrap_or(0);
    if max == 0 { 1.0 } else { sum as f64 / banks.len() as f64 / max as f64 }
}

/// How evenly a PCM wore under some writes, and how many more of the same it will take.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Life {
    /// The life rate: see [`rate`].
    pub rate: f64,
    /// Writes of the most written bank over the mean.
    pub max_over_mean: f64,
    /// What the host will have written when the first cell passes its limit, in the unit in which its writes were
    /// given: endurance over the wear of the most worn cell a host write. Nothing without wear.
    pub host_until_worn: Option<f64>,
}

impl Life {
    /// From write counts of banks, what the host wrote in that time, the wear of the most worn cell, and the
    /// writes that a cell takes.
    #[must_use]
    pub fn new(banks: &[u64], host: u64, most_worn: u64, endurance: u64) -> Life {
        let rate = rate(banks);
        let host_until_worn = (most_worn > 0).then(|| host as f64 * (endurance as f64 / most_worn as f64));
        Life { rate, max_over_mean: 1.0 / rate, host_until_worn }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_that_of_the_paper() {
        assert_eq!(rate(&[5, 5, 5]), 1.0);
        assert_eq!(rate(&[0, 0]), 1.0);
        // Mean 4, largest deviation 8: 1 / (8 / 4 + 1).
        assert!((rate(&[12, 0, 0]) - 1.0 / 3.0).abs() < 1e-12);
        let l = Life::new(&[12, 0, 0], 120, 6, 1000);
        assert!((l.max_over_mean - 3.0).abs() < 1e-12);
        assert_eq!(l.host_until_worn, Some(20_000.0));
        assert_eq!(Life::new(&[0], 0, 0, 1000).host_until_worn, None);
    }
}

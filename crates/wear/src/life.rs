//! Evenness of the wear of a PCM, and its expected lifetime.

use frit_core::convert::{to_f64, to_u64};

/// Description of the life rate, for reports.
pub const RATE_HELP: &str = "1 / (max deviation / mean + 1) of writes per bank: 1 is perfect leveling";

/// The life rate of the HALO paper (section V.B): `1 / (max / mean + 1)`, where `mean` is the mean
/// of the write counts of the banks and `max` is the largest deviation of one bank from it. Only
/// deviations upwards are considered, since they end the lifetime; the rate is then the mean
/// divided by the count of the most written bank. 1 if nothing was written.
#[must_use]
pub fn rate(banks: &[u64]) -> f64 {
    let sum: u64 = banks.iter().sum();
    let max = banks.iter().copied().max().unwrap_or(0);
    if max == 0 { 1.0 } else { to_f64(sum) / to_f64(to_u64(banks.len())) / to_f64(max) }
}

/// Evenness of wear after some writes, and the lifetime if such writes continue.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct WearLifetime {
    /// The life rate: see [`rate`].
    pub rate: f64,
    /// Write count of the most written bank divided by the mean.
    pub max_over_mean: f64,
    /// Host writes until the first cell reaches its endurance, in the unit of the host writes that
    /// were given: endurance divided by the wear of the most worn cell for each host write. `None`
    /// without wear.
    pub host_until_worn: Option<f64>,
}

impl WearLifetime {
    /// Computes the lifetime from the write counts of banks, the host writes in that time, the wear
    /// of the most worn cell, and the endurance of a cell.
    #[must_use]
    pub fn new(banks: &[u64], host: u64, most_worn: u64, endurance: u64) -> WearLifetime {
        let rate = rate(banks);
        let host_until_worn = (most_worn > 0).then(|| to_f64(host) * (to_f64(endurance) / to_f64(most_worn)));
        WearLifetime { rate, max_over_mean: 1.0 / rate, host_until_worn }
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
        let l = WearLifetime::new(&[12, 0, 0], 120, 6, 1000);
        assert!((l.max_over_mean - 3.0).abs() < 1e-12);
        assert_eq!(l.host_until_worn, Some(20_000.0));
        assert_eq!(WearLifetime::new(&[0], 0, 0, 1000).host_until_worn, None);
    }
}

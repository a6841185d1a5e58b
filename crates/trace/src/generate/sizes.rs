//! Distributions of request sizes, in units of a sector or of a byte.

use super::random::Random;
use frit_core::{SECTOR_BYTES, size};

/// Distribution of request sizes.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum SizeDistribution {
    /// All requests have the same size.
    Fixed(u32),
    /// Every multiple of a step in a range with equal probability: first, step, number of sizes.
    Even(u32, u32, u32),
    /// A table of sizes with cumulative probabilities.
    Table(Vec<(u32, f64)>),
}

impl SizeDistribution {
    /// Creates a distribution from weighted sizes in sectors.
    pub(super) fn table(weighted: &[(u32, f64)]) -> SizeDistribution {
        let sum: f64 = weighted.iter().map(|w| w.1).sum();
        let mut total = 0.0;
        let cumulative = weighted.iter().map(|&(n, w)| {
            total += w / sum;
            (n, total)
        });
        SizeDistribution::Table(cumulative.collect())
    }

    /// Creates a mixture of small and large sizes with exactly this mean, in sectors. The mean must
    /// be between the means of the small and the large sizes.
    pub(super) fn with_mean(mean: f64, small: &[(u32, f64)], large: &[(u32, f64)]) -> SizeDistribution {
        let mean_of = |t: &[(u32, f64)]| {
            t.iter().map(|&(n, w)| f64::from(n) * w).sum::<f64>() / t.iter().map(|t| t.1).sum::<f64>()
        };
        let (s, l) = (mean_of(small), mean_of(large));
        // p is the share of small sizes: p s + (1 - p) l = mean.
        let p = ((l - mean) / (l - s)).clamp(0.0, 1.0);
        let part = |t: &[(u32, f64)], p: f64| {
            let sum: f64 = t.iter().map(|t| t.1).sum();
            t.iter().map(|&(n, w)| (n, w / sum * p)).collect::<Vec<_>>()
        };
        SizeDistribution::table(&[part(small, p), part(large, 1.0 - p)].concat())
    }

    /// Parses `4K`, `4K..64K` (multiples of the first) or `4K:3/16K:1`, in units of `unit` bytes.
    pub(super) fn parse(text: &str, unit: u64) -> Result<SizeDistribution, String> {
        let sectors = |t: &str| {
            let bytes = size::parse(t)?;
            match u32::try_from(bytes / unit) {
                Ok(n) if n > 0 && bytes % unit == 0 => Ok(n),
                _ if unit == SECTOR_BYTES => {
                    Err(format!("'{t}' is not a multiple of 512 bytes between 512 and 2 TiB"))
                }
                _ => Err(format!("'{t}' is not between 1 byte and 4 GiB")),
            }
        };
        if let Some((low, high)) = text.split_once("..") {
            let (low, high) = (sectors(low)?, sectors(high)?);
            if low > high {
                return Err(format!("in '{text}' the first size is larger than the last"));
            }
            return Ok(SizeDistribution::Even(low, low, (high - low) / low + 1));
        }
        let mut weighted = Vec::new();
        for part in text.split('/') {
            let (bytes, weight) = part.split_once(':').unwrap_or((part, "1"));
            let weight: f64 = weight.parse().map_err(|_| format!("'{weight}' is not a weight"))?;
            if !(weight > 0.0 && weight.is_finite()) {
                return Err(format!("the weight {weight} is not positive"));
            }
            weighted.push((sectors(bytes)?, weight));
        }
        match weighted[..] {
            [(n, _)] => Ok(SizeDistribution::Fixed(n)),
            _ => Ok(SizeDistribution::table(&weighted)),
        }
    }

    /// Returns the mean, in sectors.
    #[cfg(test)]
    pub(super) fn mean(&self) -> f64 {
        match self {
            SizeDistribution::Fixed(n) => f64::from(*n),
            SizeDistribution::Even(first, step, count) => {
                f64::from(*first) + f64::from(*step) * f64::from(count - 1) / 2.0
            }
            SizeDistribution::Table(t) => {
                let mut before = 0.0;
                t.iter()
                    .map(|&(n, c)| {
                        let p = c - before;
                        before = c;
                        f64::from(n) * p
                    })
                    .sum()
            }
        }
    }

    /// Returns the largest size, in sectors.
    pub(super) fn max(&self) -> u32 {
        match self {
            SizeDistribution::Fixed(n) => *n,
            SizeDistribution::Even(first, step, count) => first + step * (count - 1),
            SizeDistribution::Table(t) => t.iter().map(|t| t.0).max().unwrap_or(1),
        }
    }

    /// Returns `true` if all sizes are multiples of the given number of sectors.
    pub(super) fn multiples_of(&self, sectors: u32) -> bool {
        match self {
            SizeDistribution::Fixed(n) => n % sectors == 0,
            SizeDistribution::Even(first, step, _) => first % sectors == 0 && step % sectors == 0,
            SizeDistribution::Table(t) => t.iter().all(|t| t.0 % sectors == 0),
        }
    }

    #[inline]
    pub(super) fn draw(&self, random: &mut Random) -> u32 {
        match self {
            SizeDistribution::Fixed(n) => *n,
            SizeDistribution::Even(first, step, count) => {
                first + step * random.below(u64::from(*count)) as u32
            }
            SizeDistribution::Table(t) => {
                let u = random.unit();
                t.iter().find(|t| u < t.1).or(t.last()).map_or(1, |t| t.0)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_parse_and_have_the_mean_they_say() {
        assert_eq!(SizeDistribution::parse("4K", 512), Ok(SizeDistribution::Fixed(8)));
        assert_eq!(SizeDistribution::parse("4K..16K", 512), Ok(SizeDistribution::Even(8, 8, 4)));
        assert!((SizeDistribution::parse("4K:3/16K:1", 512).unwrap().mean() - 14.0).abs() < 1e-9);
        assert!(
            (SizeDistribution::with_mean(5.82, &[(1, 1.0), (3, 1.0)], &[(16, 2.0)]).mean() - 5.82).abs()
                < 1e-9
        );
        assert_eq!(SizeDistribution::parse("100..300", 1), Ok(SizeDistribution::Even(100, 100, 3)));
        for bad in ["", "100", "4K:0", "4K:x", "16K..4K", "0", "5T"] {
            assert!(SizeDistribution::parse(bad, 512).is_err(), "{bad}");
        }
    }

    #[test]
    fn draws_stay_in_the_range() {
        let mut r = Random::new(5);
        let s = SizeDistribution::parse("4K..16K", 512).unwrap();
        let drawn: std::collections::BTreeSet<u32> = (0..1000).map(|_| s.draw(&mut r)).collect();
        assert_eq!(drawn.into_iter().collect::<Vec<_>>(), [8, 16, 24, 32]);
    }
}

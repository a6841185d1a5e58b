//! Counts of times in log-linear buckets: those of HdrHistogram (Tene) with three significant digits and
//! the unit 1 ns. Every command and request is recorded, so a record is a shift and two
//! additions. With the library, the distributions of the links of a tree took 13 ns a command, and
//! with these 11 (`make bench`, block "storeys").

/// Buckets of one power of two: an error of at most 1/1024.
const HALF: u64 = 1 << HALF_BITS;
const HALF_BITS: u32 = 10;
/// Times from here on are counted as this one: more than 4 hours.
const LONGEST_NS: u64 = 1 << 44;
const BUCKETS: usize = index(LONGEST_NS) + 1;

/// Bucket of a time. Times below 2 × [`HALF`] have a bucket each.
#[inline]
const fn index(time: u64) -> usize {
    // The highest bit that counts is bit 10; the bits below `shift` do not.
    let shift = (u64::BITS - HALF_BITS - 1) - (time | HALF).leading_zeros();
    (shift as usize * HALF as usize) + (time >> shift) as usize
}

/// Largest time of a bucket.
const fn end(index: usize) -> u64 {
    let index = index as u64;
    if index < 2 * HALF {
        return index;
    }
    let shift = index / HALF - 1;
    ((index - shift * HALF + 1) << shift) - 1
}

/// Counts of times.
#[derive(Clone, Debug)]
pub(super) struct Buckets {
    counts: Vec<u64>,
    total: u64,
}

impl Buckets {
    pub(super) fn new() -> Buckets {
        Buckets { counts: vec![0; BUCKETS], total: 0 }
    }

    #[inline]
    pub(super) fn record(&mut self, time: u64) {
        self.counts[index(time.min(LONGEST_NS))] += 1;
        self.total += 1;
    }

    pub(super) fn reset(&mut self) {
        self.counts.fill(0);
        self.total = 0;
    }

    pub(super) fn merge(&mut self, other: &Buckets) {
        self.counts.iter_mut().zip(&other.counts).for_each(|(to, from)| *to += from);
        self.total += other.total;
    }

    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// Largest time of the bucket in which the `q`-quantile lies; 0 if nothing was recorded.
    pub(super) fn quantile(&self, q: f64) -> u64 {
        let rank = ((q.min(1.0) * self.total as f64).ceil() as u64).max(1);
        let mut sum = 0;
        self.occupied()
            .find_map(|(end, count)| {
                sum += count;
                (sum >= rank).then_some(end)
            })
            .unwrap_or(0)
    }

    /// Iterates over the buckets that have times, in order: the largest time and the count.
    pub(super) fn occupied(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.counts.iter().enumerate().filter(|(_, count)| **count > 0).map(|(i, &count)| (end(i), count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use frit_core::split_mix;
    use hdrhistogram::Histogram;

    #[test]
    fn buckets_are_those_of_hdrhistogram() {
        let mut other = Histogram::<u64>::new_with_bounds(1, LONGEST_NS, 3).unwrap();
        let mut buckets = Buckets::new();
        let (mut state, mut times) = (5, vec![0, 1, 2047, 2048, 2049, 4095, 4096, LONGEST_NS, u64::MAX]);
        times.extend((0..20_000).map(|_| {
            let random = split_mix::next(&mut state);
            random >> 20 >> (random % 44)
        }));
        for (i, &time) in times.iter().enumerate() {
            buckets.record(time);
            other.saturating_record(time);
            if i % 1000 == 0 || i < 10 {
                for q in [0.001, 0.1, 0.5, 0.99, 0.999, 1.0] {
                    assert_eq!(
                        buckets.quantile(q),
                        other.value_at_quantile(q).min(end(BUCKETS - 1)),
                        "{i} {q}"
                    );
                }
            }
        }
        let all = other.iter_recorded().map(|v| (v.value_iterated_to(), v.count_since_last_iteration()));
        assert_eq!(buckets.occupied().collect::<Vec<_>>(), all.collect::<Vec<_>>());
        assert_eq!(buckets.total(), times.len() as u64);
    }

    #[test]
    fn an_end_is_in_its_bucket_and_the_next_time_is_not() {
        for i in 0..BUCKETS {
            assert_eq!((index(end(i)), index(end(i) + 1)), (i, i + 1));
        }
    }
}

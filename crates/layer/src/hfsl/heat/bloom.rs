//! Heat by Bloom filters (HFSL paper, section 2.6.1: a simple one-dimensional Bloom filter).
//!
//! A page is hot if it was written again within two windows of writes. One filter holds the pages
//! that were written, another those that were written again. Each filter has a predecessor of the
//! last window, so that pages cool down. With 16 bits and 4 hashes for each write of the window,
//! the rate of false positives of a filter is 0.24 % (Bloom 1970: (1 − e^(−4/16))^4).

use super::HeatPolicy;
use frit_core::{Lpn, split_mix};

const BITS_PER_WRITE: u64 = 16;
const HASHES: u32 = 4;
const WINDOW: u64 = 65_536;

/// Bloom filters of the current window and of the last one. They take memory from the first insertion on: most
/// detectors of a volume that is only opened or checked never see a write.
#[derive(Clone, Debug, Default)]
struct WindowedFilter {
    now: Vec<u64>,
    last: Vec<u64>,
}

impl WindowedFilter {
    fn insert(&mut self, lpn: Lpn, mask: u64) {
        if self.now.is_empty() {
            let words = ((mask + 1) / 64) as usize;
            *self = WindowedFilter { now: vec![0; words], last: vec![0; words] };
        }
        bits(lpn, mask).for_each(|(word, bit)| self.now[word] |= bit);
    }

    fn has(&self, lpn: Lpn, mask: u64) -> bool {
        if self.now.is_empty() {
            return false;
        }
        let all = |filter: &[u64]| bits(lpn, mask).all(|(word, bit)| filter[word] & bit != 0);
        all(&self.now) || all(&self.last)
    }

    fn rotate(&mut self) {
        std::mem::swap(&mut self.now, &mut self.last);
        self.now.fill(0);
    }
}

/// Detector by Bloom filters: a page is hot if it was written again in this window or the last.
#[derive(Clone, Debug)]
pub struct Bloom {
    written: WindowedFilter,
    again: WindowedFilter,
    mask: u64,
    window: u64,
    writes: u64,
    cooldowns: u64,
}

impl Default for Bloom {
    fn default() -> Self {
        let mut b = Bloom {
            written: WindowedFilter::default(),
            again: WindowedFilter::default(),
            mask: 0,
            window: 0,
            writes: 0,
            cooldowns: 0,
        };
        b.set_window(WINDOW);
        b
    }
}

/// Derives all bit positions of a page from one 64-bit hash (double hashing: Kirsch, Mitzenmacher
/// 2006).
#[inline]
fn mix(lpn: Lpn) -> (u64, u64) {
    let x = split_mix::mix(u64::from(lpn.0));
    // An odd step visits distinct bits of a filter, whose size is a power of two.
    (x, (x >> 32) | 1)
}

fn bits(lpn: Lpn, mask: u64) -> impl Iterator<Item = (usize, u64)> {
    let (a, b) = mix(lpn);
    (0..u64::from(HASHES)).map(move |i| {
        let bit = a.wrapping_add(b.wrapping_mul(i)) & mask;
        ((bit >> 6) as usize, 1u64 << (bit & 63))
    })
}

impl HeatPolicy for Bloom {
    fn record_write(&mut self, lpn: Lpn, _: u8) -> bool {
        let hot = self.written.has(lpn, self.mask);
        self.written.insert(lpn, self.mask);
        if hot {
            self.again.insert(lpn, self.mask);
        }
        self.writes += 1;
        if self.writes >= self.window {
            self.writes = 0;
            self.written.rotate();
            self.again.rotate();
            self.cooldowns += 1;
        }
        hot
    }

    fn is_hot(&self, lpn: Lpn, _: u8) -> bool {
        self.again.has(lpn, self.mask)
    }

    fn cooldowns(&self) -> u64 {
        self.cooldowns
    }

    fn set_window(&mut self, writes: u64) {
        // Limits memory: a window of more than 2^32 writes is longer than any run.
        self.window = writes.clamp(1, 1 << 32);
        let bits = (self.window * BITS_PER_WRITE).next_power_of_two().max(64);
        self.mask = bits - 1;
        self.written = WindowedFilter::default();
        self.again = WindowedFilter::default();
        self.writes = 0;
        self.cooldowns += 1;
    }

    fn dram_bytes(&self) -> u64 {
        4 * (self.mask + 1) / 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_lately_is_hot_and_cools_down() {
        let mut b = Bloom::default();
        b.set_window(100);
        assert!(!b.record_write(Lpn(1), 0));
        assert!(!b.is_hot(Lpn(1), 0), "written once");
        assert!(b.record_write(Lpn(1), 0));
        assert!(b.is_hot(Lpn(1), 0), "written again");
        for i in 0..300 {
            b.record_write(Lpn(1000 + i), 0);
        }
        assert!(!b.is_hot(Lpn(1), 0));
    }

    #[test]
    fn few_cold_pages_pass_for_hot() {
        let mut b = Bloom::default();
        b.set_window(10_000);
        for i in 0..9_999 {
            b.record_write(Lpn(i), 0);
        }
        let wrong = (100_000..200_000).filter(|&i| b.written.has(Lpn(i), b.mask)).count();
        assert!(wrong < 1_000, "{wrong} of 100000");
    }
}

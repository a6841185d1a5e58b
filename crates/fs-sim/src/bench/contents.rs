//! File contents in which every byte depends on its position and on the write that wrote it.

/// Expected contents of a file: the pass that last wrote each unit.
#[derive(Debug)]
pub(super) struct ExpectedContents {
    seed: u64,
    passes: Vec<u32>,
    pass: u32,
}

use super::UNIT;
use frit_core::split_mix::mix;

impl ExpectedContents {
    pub(super) fn new(seed: u64, bytes: u64) -> Self {
        Self { seed, passes: vec![0; (bytes / UNIT) as usize], pass: 0 }
    }

    /// Size of the file, in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.passes.len() as u64 * UNIT
    }

    /// Starts another pass of writes.
    pub(super) fn next_pass(&mut self) {
        self.pass += 1;
    }

    /// Fills a buffer with the data that this pass writes at `at`, and marks the range as written.
    pub(super) fn write(&mut self, at: u64, into: &mut [u8]) {
        let first = (at / UNIT) as usize;
        self.passes[first..first + into.len() / UNIT as usize].fill(self.pass);
        self.fill(at, into);
    }

    /// Fills a buffer with the expected contents from `at` on.
    pub(super) fn fill(&self, at: u64, into: &mut [u8]) {
        for (i, unit) in into.chunks_exact_mut(UNIT as usize).enumerate() {
            let number = at / UNIT + i as u64;
            let pass = u64::from(self.passes[number as usize]);
            let key = mix(self.seed.wrapping_add(mix(number << 32 | pass)));
            for (word, to) in unit.chunks_exact_mut(8).enumerate() {
                to.copy_from_slice(&mix(key.wrapping_add(word as u64)).to_le_bytes());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_tell_place_pass_and_seed() {
        let mut c = ExpectedContents::new(1, 8 * UNIT);
        let (mut a, mut b) = (vec![0; 2048], vec![0; 2048]);
        c.next_pass();
        c.write(1024, &mut a);
        c.fill(1024, &mut b);
        assert_eq!(a, b);
        assert_ne!(a[..1024], a[1024..]);
        c.next_pass();
        c.write(2048, &mut b);
        assert_ne!(a[1024..], b[..1024], "another pass");
        c.fill(1024, &mut b);
        assert_eq!(a[..1024], b[..1024]);
        let mut other = ExpectedContents::new(2, 8 * UNIT);
        other.next_pass();
        other.write(1024, &mut b);
        assert_ne!(a, b, "another seed");
    }
}

//! The file set: planned sizes, and the rotation in which files are picked.

use crate::generate::random::Random;
use std::collections::BTreeSet;

/// Shape of the gamma distribution of file sizes: `filesizegamma`, which filebench gives in
/// thousandths, with the default 1500.
const SIZE_GAMMA: f64 = 1.5;

/// The files of a personality, by their numbers.
///
/// filebench picks files in rotation: one position in the files that exist, and one in those that
/// do not (`fileset_pick`). All threads share them, unless `rotatefd` is set.
pub(super) struct FileSet {
    planned: Vec<u32>,
    existing: BTreeSet<u32>,
    missing: BTreeSet<u32>,
    next_existing: u32,
    next_missing: u32,
    /// Number of threads that have the file open.
    opened: Vec<u16>,
}

impl FileSet {
    /// Creates a file set. Sizes have a gamma distribution; each file exists with probability
    /// `preallocated`.
    pub(super) fn new(files: u32, mean_bytes: u32, preallocated: f64, random: &mut Random) -> FileSet {
        let planned = (0..files).map(|_| gamma_bytes(mean_bytes, random)).collect();
        let (existing, missing) = (0..files).partition(|_| random.unit() < preallocated);
        let opened = vec![0; files as usize];
        FileSet { planned, existing, missing, next_existing: 0, next_missing: 0, opened }
    }

    /// Returns the size that a file has when it is written as a whole, in bytes.
    pub(super) fn planned_bytes(&self, file: u32) -> u32 {
        self.planned[file as usize]
    }

    /// Iterates over the files that exist.
    pub(super) fn existing(&self) -> impl Iterator<Item = u32> {
        self.existing.iter().copied()
    }

    /// Returns the next file that exists; `None` if there is none.
    pub(super) fn pick(&mut self) -> Option<u32> {
        let file = next(&self.existing, self.next_existing).next()?;
        self.next_existing = file + 1;
        Some(file)
    }

    /// Opens the next file that exists.
    pub(super) fn open(&mut self) -> Option<u32> {
        let file = self.pick()?;
        self.opened[file as usize] += 1;
        Some(file)
    }

    /// Creates and opens the next file that does not exist.
    pub(super) fn create(&mut self) -> Option<u32> {
        let file = next(&self.missing, self.next_missing).next()?;
        self.next_missing = file + 1;
        self.missing.remove(&file);
        self.existing.insert(file);
        self.opened[file as usize] += 1;
        Some(file)
    }

    /// Deletes the next file that exists and is not open.
    pub(super) fn delete(&mut self) -> Option<u32> {
        let closed = |file: &u32| self.opened[*file as usize] == 0;
        let file = next(&self.existing, self.next_existing).find(closed)?;
        self.next_existing = file + 1;
        self.existing.remove(&file);
        self.missing.insert(file);
        Some(file)
    }

    /// Closes a file.
    pub(super) fn close(&mut self, file: u32) {
        self.opened[file as usize] -= 1;
    }
}

/// Iterates over files in rotation, from a position on.
fn next(files: &BTreeSet<u32>, from: u32) -> impl Iterator<Item = u32> {
    files.range(from..).chain(files.range(..from)).copied()
}

/// Draws a file size in bytes from a gamma distribution with a mean.
fn gamma_bytes(mean: u32, random: &mut Random) -> u32 {
    let bytes = random.gamma(SIZE_GAMMA) * f64::from(mean) / SIZE_GAMMA;
    // The cast saturates, far beyond the sizes that occur.
    bytes as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_the_mean_and_the_variance_of_a_gamma_distribution() {
        let set = FileSet::new(200_000, 128 << 10, 0.8, &mut Random::new(3));
        let n = set.planned.len() as f64;
        let mean = set.planned.iter().map(|&b| f64::from(b)).sum::<f64>() / n;
        let variance = set.planned.iter().map(|&b| (f64::from(b) - mean).powi(2)).sum::<f64>() / n;
        assert!((mean / 131_072.0 - 1.0).abs() < 0.01, "{mean}");
        // The variance of a gamma distribution is mean² / shape.
        assert!((variance / (131_072.0f64.powi(2) / 1.5) - 1.0).abs() < 0.03, "{variance}");
        assert!((set.existing.len() as f64 / n - 0.8).abs() < 0.01);
    }

    #[test]
    fn files_are_picked_in_rotation_and_open_files_are_not_deleted() {
        let mut set = FileSet::new(4, 4096, 1.0, &mut Random::new(1));
        assert_eq!((set.create(), set.open(), set.pick()), (None, Some(0), Some(1)));
        assert_eq!((set.delete(), set.delete(), set.delete()), (Some(2), Some(3), Some(1)));
        assert_eq!(set.delete(), None, "the only file is open");
        set.close(0);
        assert_eq!(set.delete(), Some(0));
        assert_eq!((set.pick(), set.create(), set.create()), (None, Some(0), Some(1)));
        assert_eq!((set.create(), set.create(), set.pick()), (Some(2), Some(3), Some(1)));
    }
}

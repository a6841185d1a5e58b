//! What a power cut can leave: everything that was fenced, and of the rest any subset of aligned words.

use super::bodies::Store;
use super::recorded::{Event, WORD};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// How densely cuts are drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Density {
    /// Random subsets between two fences.
    pub subsets: usize,
    /// Subsets with a single word, and without one.
    pub singles: usize,
    /// Cuts between writes, in their order.
    pub prefixes: usize,
}

impl Density {
    /// A few of each kind.
    pub const COARSE: Self = Self { subsets: 3, singles: 2, prefixes: 2 };
    /// Many.
    pub const FINE: Self = Self { subsets: 24, singles: 24, prefixes: 16 };
}

/// A word that is not durable yet.
#[derive(Clone, Copy, Debug)]
struct Pending {
    word: u64,
    value: u64,
    /// Whether a write begins with it.
    begins: bool,
}

/// Bodies as a cut finds them.
struct Found {
    store: Store,
    /// Those that were removed: a cut may bring them back.
    ghosts: Store,
}

impl Found {
    /// An image with its bodies, without those that were removed and with them.
    fn tell(&self, image: &[u8], done: usize, tell: &mut impl FnMut(&[u8], usize, &Store)) {
        tell(image, done, &self.store);
        if !self.ghosts.is_empty() {
            let mut all = self.ghosts.clone();
            all.extend(self.store.clone());
            tell(image, done, &all);
        }
    }
}

/// Tells every image of a log that starts from `base`: the bytes, how many operations had returned, and the bodies.
pub(super) fn each(
    (base, store): (Vec<u8>, Store),
    log: &[Event],
    density: Density,
    seed: u64,
    mut tell: impl FnMut(&[u8], usize, &Store),
) {
    let mut bodies = Found { store, ghosts: Store::new() };
    let mut rng = SmallRng::seed_from_u64(seed);
    let mut durable = base;
    let mut pending: Vec<Pending> = Vec::new();
    let mut done = 0;
    // A cut before the first event is what the last operation before the log left.
    bodies.tell(&durable, 0, &mut tell);
    for event in log.iter().chain([&Event::Fence]) {
        match event {
            Event::Words(first, values) => {
                pending.extend(values.iter().enumerate().map(|(i, value)| Pending {
                    word: first + i as u64,
                    value: *value,
                    begins: i == 0,
                }));
            }
            Event::Done => done += 1,
            Event::Body(of, contents) => {
                let before = match contents {
                    Some(contents) => {
                        // What was removed under this name is overwritten.
                        bodies.ghosts.remove(of);
                        bodies.store.insert(*of, contents.clone());
                        None
                    }
                    None => bodies.store.remove(of),
                };
                bodies.ghosts.extend(before.map(|contents| (*of, contents)));
                bodies.tell(&durable, done, &mut tell);
            }
            Event::Fence => {
                for subset in subsets(&pending, density, &mut rng) {
                    let undo = put(&mut durable, &pending, &subset);
                    bodies.tell(&durable, done, &mut tell);
                    for (at, value) in undo.into_iter().rev() {
                        durable[at..at + WORD as usize].copy_from_slice(&value);
                    }
                }
                put(&mut durable, &pending, &vec![true; pending.len()]);
                bodies.tell(&durable, done, &mut tell);
                pending.clear();
            }
        }
    }
}

/// Writes some of the words; what was there before.
fn put(image: &mut [u8], pending: &[Pending], chosen: &[bool]) -> Vec<(usize, [u8; WORD as usize])> {
    let mut undo = Vec::new();
    for (word, _) in pending.iter().zip(chosen).filter(|(_, chosen)| **chosen) {
        let at = (word.word * WORD) as usize;
        let mut old = [0; WORD as usize];
        old.copy_from_slice(&image[at..at + WORD as usize]);
        undo.push((at, old));
        image[at..at + WORD as usize].copy_from_slice(&word.value.to_le_bytes());
    }
    undo
}

/// Which words are there, in each cut.
fn subsets(pending: &[Pending], density: Density, rng: &mut SmallRng) -> Vec<Vec<bool>> {
    let n = pending.len();
    if n == 0 {
        return Vec::new();
    }
    if n <= 4 {
        return (0..(1u32 << n) - 1).map(|bits| (0..n).map(|i| bits >> i & 1 == 1).collect()).collect();
    }
    let mut all = Vec::new();
    for _ in 0..density.subsets {
        let share = [0.1, 0.5, 0.9][rng.random_range(0..3)];
        all.push((0..n).map(|_| rng.random_bool(share)).collect());
        // Whole lines of the processor's cache.
        let seed: u64 = rng.random();
        let line = |word: u64| (word / 8).wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(seed) >> 63 == 1;
        all.push(pending.iter().map(|word| line(word.word)).collect());
    }
    for _ in 0..density.singles {
        let one = rng.random_range(0..n);
        all.push((0..n).map(|i| i == one).collect());
        all.push((0..n).map(|i| i != one).collect());
    }
    let begins: Vec<usize> = (1..n).filter(|i| pending[*i].begins).collect();
    for _ in 0..density.prefixes.min(begins.len()) {
        let cut = begins[rng.random_range(0..begins.len())];
        all.push((0..n).map(|i| i < cut).collect());
        all.push((0..n).map(|i| i >= cut).collect());
    }
    all
}

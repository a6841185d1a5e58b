//! Images that a power cut can leave: everything that was fenced, and any subset of the other
//! aligned words.

use super::recording_medium::{MediumEvent, WORD};
use super::stored_content::ContentSnapshot;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// Number of cuts that are drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Density {
    /// Number of random subsets between two fences.
    pub subsets: usize,
    /// Number of subsets with a single word, and of subsets without one word.
    pub singles: usize,
    /// Number of cuts between writes in their order.
    pub prefixes: usize,
}

impl Density {
    /// A few cuts of each kind.
    pub const COARSE: Self = Self { subsets: 3, singles: 2, prefixes: 2 };
    /// Many cuts of each kind.
    pub const FINE: Self = Self { subsets: 24, singles: 24, prefixes: 16 };
}

/// A word that is not durable yet.
#[derive(Clone, Copy, Debug)]
struct Pending {
    word: u64,
    value: u64,
    /// `true` if it is the first word of a write.
    begins: bool,
}

/// Bodies at the time of a cut.
struct CutBodies {
    store: ContentSnapshot,
    /// Removed content files that a cut may restore.
    ghosts: ContentSnapshot,
}

impl CutBodies {
    /// Calls `tell` with an image and the remaining content files, and again with the removed ones
    /// added if there are any.
    fn tell(&self, image: &[u8], done: usize, tell: &mut impl FnMut(&[u8], usize, &ContentSnapshot)) {
        tell(image, done, &self.store);
        if !self.ghosts.is_empty() {
            let mut all = self.ghosts.clone();
            all.extend(self.store.clone());
            tell(image, done, &all);
        }
    }
}

/// Calls `tell` with every image of a log that starts from `base`: its bytes, the number of
/// operations that had returned, and the content files.
pub(super) fn for_each_image(
    (base, store): (Vec<u8>, ContentSnapshot),
    log: &[MediumEvent],
    density: Density,
    seed: u64,
    mut tell: impl FnMut(&[u8], usize, &ContentSnapshot),
) {
    let mut content_store = CutBodies { store, ghosts: ContentSnapshot::new() };
    let mut rng = SmallRng::seed_from_u64(seed);
    let mut durable = base;
    let mut pending: Vec<Pending> = Vec::new();
    let mut done = 0;
    // A cut before the first event finds the state after the last operation before the log.
    content_store.tell(&durable, 0, &mut tell);
    for event in log.iter().chain([&MediumEvent::Fence]) {
        match event {
            MediumEvent::Words(first, values) => {
                pending.extend(values.iter().enumerate().map(|(i, value)| Pending {
                    word: first + i as u64,
                    value: *value,
                    begins: i == 0,
                }));
            }
            MediumEvent::Done => done += 1,
            MediumEvent::ContentFile(of, contents) => {
                let before = match contents {
                    Some(contents) => {
                        // New contents under this ID replace a removed content file.
                        content_store.ghosts.remove(of);
                        content_store.store.insert(*of, contents.clone());
                        None
                    }
                    None => content_store.store.remove(of),
                };
                content_store.ghosts.extend(before.map(|contents| (*of, contents)));
                content_store.tell(&durable, done, &mut tell);
            }
            MediumEvent::Fence => {
                for subset in subsets(&pending, density, &mut rng) {
                    let undo = put(&mut durable, &pending, &subset);
                    content_store.tell(&durable, done, &mut tell);
                    for (at, value) in undo.into_iter().rev() {
                        durable[at..at + WORD as usize].copy_from_slice(&value);
                    }
                }
                put(&mut durable, &pending, &vec![true; pending.len()]);
                content_store.tell(&durable, done, &mut tell);
                pending.clear();
            }
        }
    }
}

/// Writes the chosen words and returns their former values.
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

/// Returns the subsets of words that persist, one for each cut.
fn subsets(pending: &[Pending], density: Density, rng: &mut SmallRng) -> Vec<Vec<bool>> {
    let n = pending.len();
    if n == 0 {
        return Vec::new();
    }
    // Up to four words: all subsets except the complete one, which the fence adds.
    if n <= 4 {
        return (0..(1u32 << n) - 1).map(|bits| (0..n).map(|i| bits >> i & 1 == 1).collect()).collect();
    }
    let mut all = Vec::new();
    for _ in 0..density.subsets {
        let share = [0.1, 0.5, 0.9][rng.random_range(0..3)];
        all.push((0..n).map(|_| rng.random_bool(share)).collect());
        // Whole cache lines of the processor.
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

//! Search compared with a comparison at every position.

use super::{Kernel, Searcher};
use proptest::prelude::*;

/// Compares every word at every position.
fn naive(words: &[Vec<u8>], hay: &[u8], starts: usize) -> Vec<Vec<usize>> {
    let at = |word: &Vec<u8>| (0..starts.min(hay.len())).filter(|at| hay[*at..].starts_with(word)).collect();
    words.iter().map(at).collect()
}

fn found(words: &[Vec<u8>], hay: &[u8], starts: usize, kernel: Kernel) -> Vec<Vec<usize>> {
    let mut found = vec![Vec::new(); words.len()];
    Searcher::with_kernel(words, kernel).search(hay, starts, |word, at| found[word].push(at));
    found
}

fn words() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let small = proptest::collection::vec(proptest::sample::select(&b"ab\0"[..]), 1..6);
    let any = proptest::collection::vec(any::<u8>(), 1..40);
    let long = (proptest::sample::select(&b"ab"[..]), 1_usize..=256).prop_map(|(byte, len)| vec![byte; len]);
    proptest::collection::vec(prop_oneof![6 => small, 2 => any, 1 => long], 1..20)
}

fn hay() -> impl Strategy<Value = Vec<u8>> {
    let small = proptest::collection::vec(proptest::sample::select(&b"ab\0"[..]), 0..1500);
    let long = (proptest::sample::select(&b"ab"[..]), 0_usize..2000).prop_map(|(byte, len)| vec![byte; len]);
    prop_oneof![4 => small, 1 => proptest::collection::vec(any::<u8>(), 0..9000), 1 => long]
}

proptest! {
    #[test]
    fn all_kernels_find_what_a_comparison_at_every_position_finds(
        words in words(), mut hay in hay(), starts in 0_usize..3000, plant in any::<proptest::sample::Index>(),
        place in any::<proptest::sample::Index>(),
    ) {
        // Also words that a random text does not have.
        let word = &words[plant.index(words.len())];
        if hay.len() >= word.len() {
            let at = place.index(hay.len() - word.len() + 1);
            hay[at..at + word.len()].copy_from_slice(word);
        }
        let expected = naive(&words, &hay, starts);
        for kernel in Kernel::available() {
            prop_assert_eq!(&found(&words, &hay, starts, kernel), &expected, "{:?}", kernel);
        }
    }
}

#[test]
fn occurrences_overlap() {
    for kernel in Kernel::available() {
        assert_eq!(found(&[b"aa".to_vec()], b"aaaa", 4, kernel), [[0, 1, 2]], "{kernel:?}");
    }
}

#[test]
fn every_length_around_a_block_is_searched_to_its_end() {
    for len in 0..400 {
        let mut hay = vec![b'.'; len];
        hay.extend_from_slice(b"end");
        for kernel in Kernel::available() {
            assert_eq!(found(&[b"end".to_vec()], &hay, hay.len(), kernel), [[len]], "{kernel:?}, {len}");
        }
    }
}

//! Counts and positions of words, compared with a comparison at every position.

use crate::support::{Setting, data, setting};
use frit_isp::{Answer, Command, Status, WordAnswer, Words};
use proptest::prelude::*;

fn naive(words: &[Vec<u8>], data: &[u8], base: usize, positions: usize) -> Vec<WordAnswer> {
    let answer = |word: &Vec<u8>| {
        let all: Vec<_> = (0..data.len()).filter(|at| data[*at..].starts_with(word)).collect();
        let first = all.iter().take(positions).map(|at| (base + at) as u64).collect();
        WordAnswer { word: word.clone(), count: all.len() as u64, positions: first }
    };
    words.iter().map(answer).collect()
}

fn words() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let word = prop_oneof![
        4 => proptest::collection::vec(proptest::sample::select(&b"ab \n\0"[..]), 1..6),
        1 => proptest::collection::vec(proptest::sample::select(&b"a\0"[..]), 1..=256),
    ];
    proptest::collection::vec(word, 1..=12)
}

proptest! {
    #[test]
    fn words_are_found_as_by_a_comparison_at_every_position(
        data in data(), words in words(), positions in 0_usize..20, setting in setting(),
    ) {
        let range = setting.range(&data);
        let expected = naive(&words, &data[range.clone()], range.start, positions);
        let Answer::Words(answer) = setting.answer(&data, Command::Words(Words { words, positions })) else {
            panic!("another answer");
        };
        prop_assert_eq!(answer.words, expected);
    }

    #[test]
    fn positions_beyond_the_memory_are_cut_and_counts_are_not(
        data in data(), words in words(), memory in 0_usize..800, setting in setting(),
    ) {
        let range = setting.range(&data);
        let kept = memory / 8 / words.len();
        let expected = naive(&words, &data[range.clone()], range.start, kept);
        let cut = expected.iter().any(|word| word.count > kept as u64);
        let command = Command::Words(Words { words, positions: usize::MAX });
        let outcome = setting.outcome(&data, command, memory);
        let Ok(Answer::Words(answer)) = &outcome.result else { panic!("{outcome:?}") };
        prop_assert_eq!(&answer.words, &expected);
        prop_assert_eq!(outcome.truncated, cut);
    }
}

#[test]
fn sixty_four_words_are_accepted_and_no_more() {
    let words: Vec<_> = (0..65_u8).map(|n| vec![n, b'x']).collect();
    let data: Vec<u8> = words.concat();
    let setting = Setting::plain();
    let command = |words: &[Vec<u8>]| Command::Words(Words { words: words.to_vec(), positions: 2 });
    let Answer::Words(answer) = setting.answer(&data, command(&words[..64])) else {
        panic!("another answer")
    };
    assert_eq!(answer.words, naive(&words[..64], &data, 0, 2));
    for wrong in [&words[..], &[], &[vec![]], &[vec![0; 257]]] {
        assert_eq!(setting.outcome(&data, command(wrong), 1 << 20).status(), Status::Invalid);
    }
}

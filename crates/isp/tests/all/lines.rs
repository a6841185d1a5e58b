//! Regular expressions and filters, compared with a search in each line.

use crate::support::{Setting, data, lines, setting};
use frit_isp::{Answer, Command, Filter, FilterAnswer, Pattern, Regex, RegexAnswer, Status};
use proptest::prelude::*;
use regex::bytes::RegexBuilder;

/// Expressions that match empty texts, ends of lines, line feeds, and begin and end of a text.
const EXPRESSIONS: [&str; 37] = [
    "a",
    "a+b",
    "^a",
    "b$",
    "^$",
    "a*",
    r"\s",
    r"a\s*b",
    r"\bab\b",
    r"\Aa",
    r"b\z",
    "[^a]",
    "(?s-u:.)b",
    r"\x00",
    r"(?R)a$",
    "b|aa",
    ".*",
    r"(?-u)[\x80-\xff]",
    "a{2,3}?",
    r"\B",
    "$",
    r"(?R)\r$",
    r"(?R)^\n?a",
    r"a\nb",
    r"a\n*b",
    r"(?s)a.*b",
    r"(?s)a.*?\s",
    r"[\n]|b+",
    r"(?:\n|a)*b$",
    r"[^b]{2}",
    r"(?s-u)^.\x00*",
    r"(?U)a+(\s|b)",
    r"(?i)B[^\x00]|\n\n",
    "a(b+)?",
    "(?:b{1,3})?$",
    "(?:a*)?",
    "(?:(?:ab?)??)+",
];

fn naive(expression: &str, data: &[u8], base: usize, positions: usize) -> RegexAnswer {
    let regex = RegexBuilder::new(expression).build().unwrap();
    let mut answer = RegexAnswer { count: 0, lines: 0, positions: Vec::new() };
    for (begin, line) in lines(data) {
        answer.lines += u64::from(regex.is_match(line));
        for found in regex.find_iter(line).filter(|found| !found.is_empty()) {
            answer.count += 1;
            if answer.positions.len() < positions {
                answer.positions.push((base + begin + found.start()) as u64);
            }
        }
    }
    answer
}

fn naive_filter(data: &[u8], limit: u64, keep: impl Fn(&[u8]) -> bool) -> FilterAnswer {
    let lines: Vec<_> = lines(data).into_iter().map(|(_, line)| line).filter(|line| keep(line)).collect();
    let lines = &lines[..lines.len().min(limit as usize)];
    let payload = lines.iter().flat_map(|line| [line, &b"\n"[..]].concat()).collect();
    FilterAnswer { lines: lines.len() as u64, payload }
}

proptest! {
    #[test]
    fn matches_are_those_of_each_line(
        data in data(), expression in proptest::sample::select(&EXPRESSIONS[..]), positions in 0_usize..20,
        setting in setting(),
    ) {
        let range = setting.range(&data);
        let expected = naive(expression, &data[range.clone()], range.start, positions);
        let command = Command::Regex(Regex { regex: expression.into(), positions });
        prop_assert_eq!(setting.answer(&data, command), Answer::Regex(expected));
    }

    #[test]
    fn a_filter_returns_the_lines_that_match(
        data in data(), expression in proptest::sample::select(&EXPRESSIONS[..]), invert: bool,
        limit in proptest::option::of(0_u64..10), setting in setting(),
    ) {
        let regex = RegexBuilder::new(expression).build().unwrap();
        let in_range = &data[setting.range(&data)];
        let expected =
            naive_filter(in_range, limit.unwrap_or(u64::MAX), |line| regex.is_match(line) != invert);
        let command = Command::Filter(Filter { pattern: Pattern::Regex(expression.into()), invert, limit });
        prop_assert_eq!(setting.answer(&data, command), Answer::Filter(expected));
    }

    #[test]
    fn a_filter_of_words_returns_the_lines_that_contain_one(
        data in data(), words in proptest::collection::vec("[ab]{1,3}|\u{e4}", 1..4), invert: bool,
        setting in setting(),
    ) {
        let words: Vec<Vec<u8>> = words.into_iter().map(String::into_bytes).collect();
        let contains = |line: &[u8]| words.iter().any(|word| line.windows(word.len()).any(|part| part == word));
        let expected = naive_filter(&data[setting.range(&data)], u64::MAX, |line| contains(line) != invert);
        let pattern = Pattern::Words(words.clone());
        let answer = setting.answer(&data, Command::Filter(Filter { pattern, invert, limit: None }));
        prop_assert_eq!(answer, Answer::Filter(expected));
    }

    #[test]
    fn lines_beyond_the_memory_are_cut_at_a_line(data in data(), memory in 0_usize..400, setting in setting()) {
        let all = naive_filter(&data[setting.range(&data)], u64::MAX, |line| line.contains(&b'a'));
        let command = Command::Filter(Filter { pattern: Pattern::Regex("a".into()), invert: false, limit: None });
        let outcome = setting.outcome(&data, command, memory);
        let Ok(Answer::Filter(answer)) = &outcome.result else { panic!("{outcome:?}") };
        prop_assert_eq!(outcome.truncated, all.payload.len() > memory);
        let fitting = lines(&all.payload).into_iter().map(|(begin, line)| begin + line.len() + 1);
        let len = fitting.take_while(|end| *end <= memory).last().unwrap_or(0);
        prop_assert_eq!(&answer.payload, &all.payload[..len]);
    }
}

#[test]
fn a_line_that_is_too_long_is_named() {
    let mut data = b"short\n".to_vec();
    data.resize(3 << 20, b'a');
    data.extend_from_slice(b"\nb\n");
    let setting = Setting { chunk_bytes: 1 << 16, part_bytes: 1 << 16, ..Setting::plain() };
    let outcome = setting.outcome(&data, Command::Regex(Regex { regex: "b".into(), positions: 1 }), 1 << 20);
    assert_eq!(outcome.status(), Status::RecordTooLong);
    assert!(outcome.result.as_ref().unwrap_err().message.contains("at byte 6 "), "{outcome:?}");
}

#[test]
fn a_line_can_have_1_mib_before_its_line_feed() {
    for (bytes, is_valid) in [(1 << 20, true), ((1 << 20) + 1, false)] {
        for end in ["", "\n", "\nb\n"] {
            let data = [vec![b'a'; bytes], end.as_bytes().to_vec()].concat();
            let setting = Setting { chunk_bytes: 1 << 16, part_bytes: 1 << 16, ..Setting::plain() };
            let csv = r#"{"select":["1"],"format":"csv","header":false,"file":"x"}"#;
            let csv = frit_isp::text::parse(csv.as_bytes()).unwrap().command;
            for command in [Command::Regex(Regex { regex: "a$".into(), positions: 1 }), csv] {
                let outcome = setting.outcome(&data, command, 4 << 20);
                let expected = if is_valid { Status::Ok } else { Status::RecordTooLong };
                assert_eq!(outcome.status(), expected, "{bytes} bytes and {end:?}");
            }
        }
    }
}

#[test]
fn wrong_expressions_are_explained() {
    for regex in ["(", "a{1,100000000}", "(a{1000}){1000}"] {
        let command = Command::Regex(Regex { regex: regex.into(), positions: 1 });
        let outcome = Setting::plain().outcome(b"a", command, 1 << 20);
        assert_eq!(outcome.status(), Status::Invalid, "{outcome:?}");
    }
}

//! Examples of the tree compared with plain references, over random files in small parts and pieces.

use super::{answer, payload, program, request, rust_example, text_example};
use crate::support::{Pieces, Setting, lines};
use frit_isp::{ByteRange, Engine, Outcome, Status};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// File of few words and numbers, with lines, holes and bytes that are no text.
fn random_file(rng: &mut StdRng, len: usize) -> Vec<u8> {
    let mut data = Vec::new();
    while data.len() < len {
        match rng.random_range(0..12) {
            0 => data.extend(vec![0; rng.random_range(1..200)]),
            1 => data.extend((0..rng.random_range(1..9)).map(|_| rng.random::<u8>())),
            2 => data.extend("αβ€😀".as_bytes()),
            3..6 => data.extend(rng.random_range(-500..500_i64).to_string().bytes()),
            6..8 => data.extend(["a", "bb", "ccc"][rng.random_range(0..3)].bytes()),
            8 => data.push(b' '),
            _ => data.push(b'\n'),
        }
    }
    data.truncate(len);
    data
}

/// Runs a program over random files and ranges with several engines, and compares each outcome.
fn compare(module: &[u8], argument: Option<&str>, check: impl Fn(&Outcome, &[u8], u64, &[u8])) {
    let mut rng = StdRng::seed_from_u64(1);
    for (threads, chunk_bytes, part_bytes) in [(1, 7, 20), (3, 64, 100), (2, 150, 1000)] {
        let setting = Setting { threads, chunk_bytes, part_bytes, ..Setting::plain() };
        let engine = setting.engine();
        for len in [0, 1, 2, part_bytes as usize, 2 * part_bytes as usize - 1, 700, 1500, 3000] {
            let data = random_file(&mut rng, len);
            let sizes = [rng.random_range(0..5), rng.random_range(1..90)];
            let mut source = Pieces::new(&*data, &sizes);
            source.slow = threads > 1;
            let offset = if rng.random() { 0 } else { rng.random_range(0..=len as u64) };
            let length = rng.random::<bool>().then(|| rng.random_range(0..=len as u64));
            let mut program = program(module);
            program.argument = argument.map(|text| text.as_bytes().to_vec());
            let mut request = request(program, Arc::new(source));
            request.instruction.range = ByteRange { offset, length };
            let end = length.map_or(len, |length| len.min((offset + length) as usize));
            let outcome = engine.run(request);
            check(&outcome, &data[offset as usize..end], offset, &data);
        }
    }
}

#[test]
fn lines_are_counted() {
    compare(&text_example("line_count.wat"), None, |outcome, range, _, _| {
        let expected = range.iter().filter(|byte| **byte == b'\n').count();
        assert_eq!(payload(outcome), format!("{expected}\n"));
    });
}

#[test]
fn lines_are_counted_by_their_first_field() {
    let Some(module) = rust_example("group_count") else { return };
    compare(&module, None, |outcome, range, _, _| {
        let mut counts = BTreeMap::new();
        for (_, line) in lines(range) {
            let field = &line[..line.iter().position(|byte| *byte == b' ').unwrap_or(line.len())];
            *counts.entry(field).or_insert(0) += 1;
        }
        let mut expected = Vec::new();
        for (field, count) in counts {
            expected.extend([field, format!(" {count}\n").as_bytes()].concat());
        }
        assert_eq!(answer(outcome).payload, expected);
    });
}

#[test]
fn the_largest_numbers_are_found() {
    let Some(module) = rust_example("top_k") else { return };
    compare(&module, Some("5"), |outcome, range, _, _| {
        let parsed = |line: &[u8]| std::str::from_utf8(line).ok()?.trim().parse::<i64>().ok();
        let mut numbers: Vec<i64> = lines(range).into_iter().filter_map(|(_, line)| parsed(line)).collect();
        numbers.sort_unstable_by(|one, other| other.cmp(one));
        let expected: String = numbers.iter().take(5).map(|number| format!("{number}\n")).collect();
        assert_eq!(payload(outcome), expected);
    });
}

#[test]
fn distinct_lines_are_estimated() {
    let Some(module) = rust_example("distinct") else { return };
    // Linear counting is nearly exact for few lines.
    compare(&module, None, |outcome, range, _, _| {
        let exact = lines(range).into_iter().map(|(_, line)| line).collect::<BTreeSet<_>>().len() as f64;
        let estimate: f64 = payload(outcome).trim().parse().unwrap();
        assert!((estimate - exact).abs() <= 1.0 + 0.03 * exact, "{estimate} of {exact}");
    });
    // Above 2.5 registers the estimate is that of HyperLogLog: four standard errors of 1.04 / sqrt(4096).
    // The file is larger than the memory of the program.
    let exact = 300_000;
    let text: String = (0..2 * exact).map(|i| format!("{}\n", i % exact)).collect();
    let engine = Engine::default();
    let mut request = request(program(&module), Arc::new(Pieces::new(text, &[])));
    request.instruction.memory_bytes = 2 << 20;
    let outcome = engine.run(request);
    let estimate: f64 = payload(&outcome).trim().parse().unwrap();
    assert!((estimate / f64::from(exact) - 1.0).abs() < 0.065, "{estimate} of {exact}");
}

#[test]
fn utf8_is_validated() {
    let Some(module) = rust_example("utf8_check") else { return };
    compare(&module, None, |outcome, range, offset, _| {
        let expected = match std::str::from_utf8(range) {
            Ok(text) => format!("valid {} {}\n", range.len(), text.chars().count()),
            Err(error) => format!("invalid {}\n", offset + error.valid_up_to() as u64),
        };
        assert_eq!(payload(outcome), expected);
    });
    // Texts without errors, in which pieces divide characters.
    let engine = Setting { threads: 1, chunk_bytes: 5, ..Setting::plain() }.engine();
    let text = "aé€😀".repeat(100);
    let outcome = super::run(&engine, program(&module), text.as_bytes());
    assert_eq!(payload(&outcome), format!("valid {} 400\n", text.len()));
    let outcome = super::run(&engine, program(&module), &text.as_bytes()[..text.len() - 1]);
    assert_eq!(payload(&outcome), format!("invalid {}\n", text.len() - 4));
}

#[test]
fn lines_are_sampled() {
    let Some(module) = rust_example("sample") else { return };
    compare(&module, Some("20 3"), |outcome, range, _, _| {
        let found = answer(outcome).payload.clone();
        let lines: BTreeSet<&[u8]> = lines(range).into_iter().map(|(_, line)| line).collect();
        let drawn: Vec<&[u8]> = found.split_inclusive(|byte| *byte == b'\n').collect();
        assert_eq!(drawn.len(), if range.is_empty() { 0 } else { 20 });
        assert!(drawn.iter().all(|line| lines.contains(&line[..line.len() - 1])), "{drawn:?} of {lines:?}");
    });
    let engine = Engine::default();
    let mut draw = program(&module);
    draw.argument = Some(b"many".to_vec());
    let outcome = super::run(&engine, draw, b"a\n");
    let (status, message) = super::failure(&outcome);
    assert!(status == Status::Program && message.contains("such as"), "{message}");
}

//! Examples of the tree compared with plain references, over random files in small parts and pieces.

use super::{answer, payload, program, request, rust_example, text_example};
use crate::support::{Pieces, Setting, lines, program as installed};
use frit_isp::{ByteRange, Engine, Outcome, Status};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::process::{Command, Stdio};
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

/// Compiles the example in C, if the compiler can.
fn c_example() -> Option<Vec<u8>> {
    if !installed("clang") || !installed("wasm-ld") {
        return None;
    }
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("program.wasm");
    let options = "--target=wasm32 -O2 -Wall -Wextra -Werror -nostdlib -Wl,--no-entry -o";
    let mut clang = Command::new("clang");
    clang.args(options.split(' ')).arg(&out).arg(super::directory().join("word_count.c"));
    let output = clang.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(std::fs::read(out).unwrap())
}

#[test]
fn a_program_in_c_counts_as_wc_does() {
    let Some(module) = c_example() else { return };
    compare(&module, None, |outcome, range, _, _| {
        let mut wc = Command::new("wc");
        let mut child =
            wc.arg("-lwc").env("LC_ALL", "C").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(range).unwrap();
        let said = child.wait_with_output().unwrap().stdout;
        let numbers = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let (found, expected) = (payload(outcome), String::from_utf8(said).unwrap());
        let (found, expected) = (numbers(&found), numbers(&expected));
        // wc does not count words of bytes that are not printed, so texts of others are compared in part.
        let plain = range.iter().all(|byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace());
        assert_eq!((&found[0], &found[2]), (&expected[0], &expected[2]));
        assert!(!plain || found == expected, "{found:?}, {expected:?}");
    });
    let text = "two words\n and  three more \t\n\nlast".repeat(50);
    let outcome = super::run(&Setting::plain().engine(), program(&module), text.as_bytes());
    assert_eq!(payload(&outcome), format!("150 {} {}\n", 50 * 5 + 1, text.len()));
}

#[test]
fn the_tutorial_ends_with_the_result_that_it_shows() {
    let page = std::fs::read_to_string(super::directory().join("../../docs/guide/isp-programs.md")).unwrap();
    let blocks: Vec<&str> =
        page.split("```rust\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert_eq!(blocks.len(), 2);
    assert!(
        page.contains("printf 'one\\nthe longest line\\nthree\\n'") && page.contains("\n17 bytes at 4\n")
    );
    let directory = tempfile::tempdir().unwrap();
    std::fs::copy(super::directory().join("frit.rs"), directory.path().join("frit.rs")).unwrap();
    for (name, source) in [("one", blocks[0].to_owned()), ("parallel", blocks.concat())] {
        let path = directory.path().join(format!("{name}.rs"));
        std::fs::write(&path, source).unwrap();
        let Some(module) = super::rust_program(&path) else { return };
        let engine = Setting { threads: 3, part_bytes: 4, ..Setting::plain() }.engine();
        let outcome = super::run(&engine, program(&module), b"one\nthe longest line\nthree\n");
        assert_eq!(payload(&outcome), "17 bytes at 4\n", "{name}");
        compare(&module, None, |outcome, range, offset, _| {
            let mut longest = (0, 0);
            for (at, line) in lines(range) {
                let len = line.len() + usize::from(range.get(at + line.len()) == Some(&b'\n'));
                if len > longest.0 {
                    longest = (len, offset as usize + at);
                }
            }
            assert_eq!(payload(outcome), format!("{} bytes at {}\n", longest.0, longest.1), "{name}");
        });
    }
}

//! Parsers of instructions: no bytes make them panic.

use crate::binary::structure;
use crate::channel::{Directory, channel};
use frit_isp::{binary, text};
use proptest::prelude::*;

const LINES: [&str; 6] = [
    r#"{"words":["a",{"hex":"00ff"}],"positions":4,"file":"a","offset":1,"length":2,"memory":9}"#,
    r#"{"regex":"a|^b$","inode":7,"fail_if_changed":true}"#,
    r#"{"select":["a.b"],"format":"csv","delimiter":";","header":false,"where":[["a","<=",5.5]],"file":"x"}"#,
    r#"{"aggregate":[{"sum":"a"}],"by":["b"],"format":"jsonl","where":[["a","missing"]],"file":"x"}"#,
    r#"{"histogram":{"field":"a","low":0,"high":1e3,"bins":10},"format":"csv","file":"x"}"#,
    r#"{"copy":{"words":["x"]},"to":"y","block":512,"at":4096,"invert":true,"limit":3,"file":"x"}"#,
];

/// Changes bytes, removes some, and repeats others.
fn mutated(original: Vec<u8>) -> impl Strategy<Value = Vec<u8>> {
    let change = (any::<prop::sample::Index>(), any::<u8>(), 0_u8..4);
    proptest::collection::vec(change, 0..6).prop_map(move |changes| {
        let mut bytes = original.clone();
        for (at, value, kind) in changes {
            let at = at.index(bytes.len().max(1));
            match kind {
                0 if at < bytes.len() => bytes[at] = value,
                1 if at < bytes.len() => _ = bytes.remove(at),
                2 => bytes.insert(at.min(bytes.len()), value),
                _ => bytes.truncate(at),
            }
        }
        bytes
    })
}

fn lines() -> impl Strategy<Value = Vec<u8>> {
    proptest::sample::select(&LINES[..]).prop_flat_map(|line| mutated(line.as_bytes().to_vec()))
}

proptest! {
    #[test]
    fn no_text_panics(line in prop_oneof![lines(), proptest::collection::vec(any::<u8>(), 0..200)]) {
        if let Err(failure) = text::parse(&line) {
            prop_assert!(!failure.message.is_empty());
        }
    }

    #[test]
    fn no_structure_panics(
        bytes in prop_oneof![
            mutated(structure(&["error", "warning"])),
            proptest::collection::vec(any::<u8>(), 4096..=4096),
        ],
        fields in proptest::collection::vec((0_usize..2700, any::<u8>()), 0..4),
    ) {
        let mut bytes = bytes;
        for (at, value) in fields {
            if let Some(byte) = bytes.get_mut(at) {
                *byte = value;
            }
        }
        if let Err(failure) = binary::parse(&bytes) {
            prop_assert!(!failure.message.is_empty());
        }
    }

    #[test]
    fn every_instruction_that_is_written_has_a_result(
        parts in proptest::collection::vec(prop_oneof![lines(), mutated(structure(&["a"]))], 1..4),
        piece in 1_usize..5000,
    ) {
        let channel = channel();
        let directory = Directory::new(&[("x", b"a,b\n1,2\n"), ("a", b"aaa")]);
        for bytes in parts.join(&b'\n').chunks(piece) {
            let mut rest = bytes;
            while !rest.is_empty() {
                match channel.write(rest, &directory) {
                    Ok(used) => rest = &rest[used..],
                    Err(_) => prop_assert!(!channel.read(1 << 20).is_empty()),
                }
            }
        }
        while !channel.read(1 << 20).is_empty() {}
    }
}

#[test]
fn the_unchanged_lines_are_valid() {
    for line in LINES {
        text::parse(line.as_bytes()).unwrap();
    }
}

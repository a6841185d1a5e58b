//! Binary form: a structure as a C program writes it, and its results.

use crate::channel::{Directory, channel};
use frit_isp::{Channel, Command, Status, Target, binary, text};

/// Structure that searches for words in `log.txt`.
pub(crate) fn structure(words: &[&str]) -> Vec<u8> {
    let mut bytes = vec![0; binary::STRUCTURE_BYTES];
    bytes[..8].copy_from_slice(&binary::MAGIC);
    bytes[8..12].copy_from_slice(&4096_u32.to_le_bytes());
    bytes[12] = 1;
    bytes[16] = words.len() as u8;
    bytes[20] = 2;
    for (index, word) in words.iter().enumerate() {
        bytes[64 + index * 32] = word.len() as u8;
        bytes[65 + index * 32..][..word.len()].copy_from_slice(word.as_bytes());
    }
    bytes[2144..2151].copy_from_slice(b"log.txt");
    bytes
}

fn number(bytes: &[u8], at: usize, len: usize) -> u64 {
    bytes[at..at + len].iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

fn directory() -> Directory {
    Directory::new(&[("log.txt", b"error aaa error warning aaaa error")])
}

#[test]
fn counts_and_positions_are_returned_in_the_structure_and_behind_it() {
    let channel: Channel = channel();
    let written = structure(&["error", "aa", "nothing"]);
    assert_eq!(channel.write(&written, &directory()), Ok(4096));
    let reply = channel.read(4096);
    let buffer = channel.read(4096);
    assert_eq!(reply.len(), 4096);
    assert_eq!(reply[..2656], written[..2656]);
    let counts: Vec<_> = (0..4).map(|n| number(&reply, 2656 + n * 8, 8)).collect();
    assert_eq!(counts, [3, 5, 0, 0]);
    let positions: Vec<_> = (0..4).map(|n| number(&reply, 3168 + n * 4, 4)).collect();
    assert_eq!(positions, [2, 2, 0, 0]);
    assert_eq!(number(&reply, 3424, 8), buffer.len() as u64);
    let positions: Vec<_> = buffer.as_chunks::<8>().0.iter().map(|at| u64::from_le_bytes(*at)).collect();
    assert_eq!(positions, [0, 10, 6, 7]);
    // Bytes that were scanned, completion, code, flags, time.
    assert!(number(&reply, 3432, 8) >= 34);
    assert_eq!((number(&reply, 3456, 4), number(&reply, 3460, 4), number(&reply, 3464, 4)), (1, 0, 0));
    assert!(number(&reply, 3472, 8) > 0);
    assert!(channel.read(1).is_empty());
}

#[test]
fn errors_are_a_code_and_a_text() {
    let channel = channel();
    let mut written = structure(&["error"]);
    written[2144] = b'b';
    channel.write(&written, &directory()).unwrap();
    let reply = channel.read(8192);
    assert_eq!((number(&reply, 3456, 4), number(&reply, 3460, 4)), (1, Status::NotFound as u64));
    let message = String::from_utf8_lossy(&reply[3520..]).into_owned();
    assert!(message.starts_with("\"bog.txt\": there is no such file\0"), "{message:?}");
}

#[test]
fn a_json_command_in_the_structure() {
    let channel = channel();
    let mut written = structure(&[]);
    written[12] = 2;
    written[20] = 0;
    let json = br#"{"checksum": "crc32c"}"#;
    written[16] = json.len() as u8;
    written[64..64 + json.len()].copy_from_slice(json);
    channel.write(&written, &directory()).unwrap();
    let reply = channel.read(4096);
    assert_eq!((number(&reply, 3456, 4), number(&reply, 3460, 4)), (1, 0));
    let line: serde_json::Value = serde_json::from_slice(&channel.read(4096)).unwrap();
    assert_eq!(line["checksum"].as_str().unwrap().len(), 8);
}

#[test]
fn every_field_that_is_wrong_is_named_by_its_byte() {
    let right = structure(&["error", "warning"]);
    let parsed = binary::parse(&right).unwrap();
    assert_eq!(parsed.file, Target::name("log.txt").unwrap());
    assert!(
        matches!(&parsed.command, Command::Words(words) if words.words.len() == 2 && words.positions == 2)
    );
    for (at, value, text) in [
        (0, b'F', "fritISP1"),
        (8, 1, "byte 8 "),
        (12, 3, "byte 12 "),
        (14, 2, "byte 14 "),
        (16, 65, "byte 16 "),
        (16, 0, "byte 16 "),
        (16, 3, "byte 128 "),
        (16, 1, "byte 96 "),
        (30, 1, "memory"),
        (32, 1, "byte 32 "),
        (63, 9, "byte 63 "),
        (64, 32, "byte 64 "),
        (64, 0, "byte 64 "),
        (70, 1, "byte 70 "),
        (2112, 1, "byte 2112"),
        (2136, 1, "byte 2136 "),
        (2144, b'/', "leading /"),
        (2144, 0, "byte 2145 "),
        (2600, 1, "byte 2600 "),
    ] {
        let mut wrong = right.clone();
        wrong[at] = value;
        let failure = binary::parse(&wrong).expect_err(&format!("byte {at}"));
        assert_eq!(failure.status, Status::Invalid);
        assert!(failure.message.contains(text), "{at}: {failure}");
    }
    // The parts for results and status are not read.
    let mut used = right.clone();
    used[2656..].fill(0xff);
    assert_eq!(binary::parse(&used).unwrap(), parsed);
    assert!(text::parse(b"{}").is_err());
}

#[test]
fn another_version_is_refused_in_the_form_of_the_known_one() {
    for version in *b"20\xff" {
        let mut written = structure(&["error"]);
        written[7] = version;
        // Another version may have another size in this field, and other fields behind.
        written[8..12].copy_from_slice(&8192_u32.to_le_bytes());
        let channel = channel();
        // The first bytes decide the form, also if they are written one by one.
        for part in [&written[..3], &written[3..7], &written[7..8], &written[8..]] {
            assert_eq!(channel.write(part, &directory()), Ok(part.len()));
        }
        let reply = channel.read(8192);
        assert_eq!(reply.len(), 4096);
        assert_eq!((&reply[..8], number(&reply, 8, 4)), (&b"fritISP1"[..], 4096));
        assert_eq!((number(&reply, 3456, 4), number(&reply, 3460, 4)), (1, Status::Invalid as u64));
        let message = String::from_utf8_lossy(&reply[3520..]).into_owned();
        assert!(message.contains("version") && message.contains("\"fritISP1\""), "{message}");
        assert!(channel.read(1).is_empty());
        // What follows is the next instruction.
        channel.write(&structure(&["error"]), &directory()).unwrap();
        assert_eq!(number(&channel.read(4096), 3460, 4), 0);
        assert_eq!(channel.read(4096).len(), 16, "the positions");
        // An incomplete structure has a result as well.
        channel.write(&written[..100], &directory()).unwrap();
        let reply = channel.read(8192);
        assert_eq!((reply.len(), &reply[..8], reply[3460]), (4096, &b"fritISP1"[..], 1));
    }
}

#[test]
fn an_instruction_has_every_key_once() {
    for text in
        [r#"{"checksum":"xxh3","checksum":"crc32c"}"#, r#"{"copy":{"words":["a"],"words":["b"]},"to":"x"}"#]
    {
        let mut written = structure(&[]);
        written[12] = 2;
        written[20] = 0;
        written[16] = text.len() as u8;
        written[64..64 + text.len()].copy_from_slice(text.as_bytes());
        let failure = binary::parse(&written).unwrap_err();
        assert!(failure.message.contains("\" twice"), "{failure}");
    }
}

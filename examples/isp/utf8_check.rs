//! Validates UTF-8: `valid BYTES CHARACTERS`, or `invalid OFFSET` with the first byte that does not
//! continue valid text.
//!
//! A character can be divided between two pieces, so the program has one instance, which sees all
//! pieces in order.

mod frit;

use frit::{CONTINUE, DONE, State, bytes, emit};

struct Check {
    /// Beginning of a character whose end was not seen.
    carry: Vec<u8>,
    characters: u64,
    bytes: u64,
    /// Offset of the first byte that is wrong.
    invalid: Option<u64>,
}

static CHECK: State<Check> = State::new(Check { carry: Vec::new(), characters: 0, bytes: 0, invalid: None });

fn count(text: &str) -> u64 {
    text.chars().count() as u64
}

impl Check {
    /// Checks bytes, and keeps a character that is not complete. Returns `false` at a wrong byte.
    fn add(&mut self, data: &[u8], at: u64) -> bool {
        match std::str::from_utf8(data) {
            Ok(text) => self.characters += count(text),
            Err(error) => {
                let (valid, rest) = data.split_at(error.valid_up_to());
                self.characters += std::str::from_utf8(valid).map_or(0, count);
                if error.error_len().is_some() {
                    self.invalid = Some(at + valid.len() as u64);
                    return false;
                }
                self.carry.extend_from_slice(rest);
            }
        }
        true
    }
}

#[unsafe(no_mangle)]
extern "C" fn scan(address: *const u8, len: usize, offset: u64) -> i32 {
    let check = CHECK.get();
    let mut data = bytes(address, len);
    check.bytes += data.len() as u64;
    let mut offset = offset;
    // The end of a character that began in the last piece: byte by byte, at most three.
    while let Some((next, rest)) = data.split_first()
        && !check.carry.is_empty()
    {
        let mut character = std::mem::take(&mut check.carry);
        let begin = offset - character.len() as u64;
        character.push(*next);
        if !check.add(&character, begin) {
            return DONE;
        }
        (data, offset) = (rest, offset + 1);
    }
    if check.add(data, offset) { CONTINUE } else { DONE }
}

#[unsafe(no_mangle)]
extern "C" fn finish() {
    let check = CHECK.get();
    if check.invalid.is_none() && !check.carry.is_empty() {
        check.invalid = Some(frit::range().end - check.carry.len() as u64);
    }
    let text = match check.invalid {
        Some(at) => format!("invalid {at}\n"),
        None => format!("valid {} {}\n", check.bytes, check.characters),
    };
    emit(text.as_bytes());
}

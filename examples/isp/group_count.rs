//! Counts lines by their first field: one line `FIELD COUNT` for each field, in the order of bytes.
//!
//! Fields end at a space or at the end of the line. Parts of the file are counted in parallel.

mod frit;

use frit::{CONTINUE, State, bytes, emit};
use std::collections::BTreeMap;

static COUNTS: State<BTreeMap<Vec<u8>, u64>> = State::new(BTreeMap::new());

#[unsafe(no_mangle)]
extern "C" fn scan_lines(address: *const u8, len: usize, _offset: u64) -> i32 {
    let counts = COUNTS.get();
    for line in bytes(address, len).split_inclusive(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let field = line.split(|byte| *byte == b' ').next().unwrap_or_default();
        match counts.get_mut(field) {
            Some(count) => *count += 1,
            None => _ = counts.insert(field.to_vec(), 1),
        }
    }
    CONTINUE
}

/// Writes the counts of a part: the length of a field, its bytes, and its count.
#[unsafe(no_mangle)]
extern "C" fn partial() {
    for (field, count) in COUNTS.get().iter() {
        emit(&(field.len() as u32).to_le_bytes());
        emit(field);
        emit(&count.to_le_bytes());
    }
}

/// Adds the counts of the next part.
#[unsafe(no_mangle)]
extern "C" fn merge(address: *const u8, len: usize) {
    let counts = COUNTS.get();
    let mut rest = bytes(address, len);
    while let Some((len, after)) = rest.split_first_chunk::<4>() {
        let (field, after) = after.split_at(u32::from_le_bytes(*len) as usize);
        let (count, after) = after.split_first_chunk::<8>().unwrap();
        *counts.entry(field.to_vec()).or_default() += u64::from_le_bytes(*count);
        rest = after;
    }
}

#[unsafe(no_mangle)]
extern "C" fn finish() {
    for (field, count) in COUNTS.get().iter() {
        emit(field);
        emit(format!(" {count}\n").as_bytes());
    }
}

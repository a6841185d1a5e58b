//! Returns the largest numbers of a file with one decimal number a line, the largest first.
//!
//! The argument is the number of numbers to return, 10 by default. Lines that are not numbers are
//! skipped. Parts of the file are processed in parallel.

mod frit;

use frit::{CONTINUE, State, bytes, emit, fail};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

struct Top {
    k: usize,
    /// The smallest of the largest numbers is at the top of the heap.
    numbers: BinaryHeap<Reverse<i64>>,
}

static TOP: State<Top> = State::new(Top { k: 10, numbers: BinaryHeap::new() });

impl Top {
    fn add(&mut self, number: i64) {
        if self.numbers.len() < self.k {
            self.numbers.push(Reverse(number));
        } else if let Some(mut least) = self.numbers.peek_mut()
            && number > least.0
        {
            *least = Reverse(number);
        }
    }
}

#[unsafe(no_mangle)]
extern "C" fn start(address: *const u8, len: usize) {
    let argument = std::str::from_utf8(bytes(address, len)).ok().and_then(|text| text.parse().ok());
    match argument {
        Some(k @ 1..=100_000) => TOP.get().k = k,
        _ => fail("the argument is the number of numbers to return, 1 to 100000"),
    }
}

#[unsafe(no_mangle)]
extern "C" fn scan_lines(address: *const u8, len: usize, _offset: u64) -> i32 {
    let top = TOP.get();
    for line in bytes(address, len).split(|byte| *byte == b'\n') {
        let number = std::str::from_utf8(line).ok().and_then(|text| text.trim().parse().ok());
        if let Some(number) = number {
            top.add(number);
        }
    }
    CONTINUE
}

#[unsafe(no_mangle)]
extern "C" fn partial() {
    for number in &TOP.get().numbers {
        emit(&number.0.to_le_bytes());
    }
}

#[unsafe(no_mangle)]
extern "C" fn merge(address: *const u8, len: usize) {
    let top = TOP.get();
    for number in bytes(address, len).as_chunks::<8>().0 {
        top.add(i64::from_le_bytes(*number));
    }
}

#[unsafe(no_mangle)]
extern "C" fn finish() {
    for Reverse(number) in std::mem::take(&mut TOP.get().numbers).into_sorted_vec() {
        emit(format!("{number}\n").as_bytes());
    }
}

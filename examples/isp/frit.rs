//! Functions of frit's processing engine for a program in Rust.
//!
//! A program is one file that has `mod frit;` and exports `scan` or `scan_lines`
//! (docs/guide/isp-programs.md). It is compiled by
//! `rustc --edition 2024 --target wasm32-unknown-unknown -O -C panic=abort -C strip=symbols --crate-type cdylib
//! FILE`.

#![allow(dead_code)]

use std::cell::UnsafeCell;

/// Continues the scan: a result of `scan` and `scan_lines`.
pub const CONTINUE: i32 = 0;
/// Ends the scan, since later bytes do not matter.
pub const DONE: i32 = 1;

#[link(wasm_import_module = "frit")]
unsafe extern "C" {
    #[link_name = "emit"]
    fn host_emit(address: *const u8, len: usize) -> i32;
    #[link_name = "fail"]
    fn host_fail(address: *const u8, len: usize);
    #[link_name = "read_at"]
    fn host_read_at(offset: u64, address: *mut u8, len: usize);
    #[link_name = "size"]
    fn host_size() -> u64;
    #[link_name = "range_start"]
    fn host_range_start() -> u64;
    #[link_name = "range_end"]
    fn host_range_end() -> u64;
}

/// Appends bytes to the result. Returns `false` if the limit of memory is reached.
pub fn emit(bytes: &[u8]) -> bool {
    // SAFETY: the engine reads the bytes of the slice.
    unsafe { host_emit(bytes.as_ptr(), bytes.len()) == 0 }
}

/// Ends the instruction with a message for the user.
pub fn fail(message: &str) -> ! {
    // SAFETY: the engine reads the bytes of the message, and does not return.
    unsafe { host_fail(message.as_ptr(), message.len()) };
    unreachable!()
}

/// Reads bytes of the file at an offset. The instruction fails if they are not all inside the file.
pub fn read_at(offset: u64, bytes: &mut [u8]) {
    // SAFETY: the engine writes the bytes of the slice.
    unsafe { host_read_at(offset, bytes.as_mut_ptr(), bytes.len()) };
}

/// Size of the file in bytes.
pub fn size() -> u64 {
    // SAFETY: the function only returns a number.
    unsafe { host_size() }
}

/// Range of the instruction.
pub fn range() -> std::ops::Range<u64> {
    // SAFETY: the functions only return numbers.
    unsafe { host_range_start()..host_range_end() }
}

/// Value that calls of the engine share. A program has one thread, and its calls are not nested.
pub struct State<T>(UnsafeCell<T>);

// SAFETY: a program has one thread.
unsafe impl<T> Sync for State<T> {}

impl<T> State<T> {
    /// Creates the value at compile time.
    pub const fn new(value: T) -> Self {
        Self(UnsafeCell::new(value))
    }

    /// Access to the value. A function of a program calls it once.
    #[allow(clippy::mut_from_ref)]
    pub fn get(&self) -> &mut T {
        // SAFETY: a program has one thread, and a function calls this once.
        unsafe { &mut *self.0.get() }
    }
}

static BUFFER: State<Vec<u8>> = State::new(Vec::new());

/// Memory for the next bytes from the engine, which calls this before each call with bytes.
#[unsafe(no_mangle)]
pub extern "C" fn buffer(len: usize) -> *mut u8 {
    let buffer = BUFFER.get();
    if buffer.len() < len {
        buffer.resize(len, 0);
    }
    buffer.as_mut_ptr()
}

/// Bytes that the engine passed to a call.
pub fn bytes<'a>(address: *const u8, len: usize) -> &'a [u8] {
    // SAFETY: the engine wrote these bytes into the buffer, which is unchanged during the call.
    unsafe { std::slice::from_raw_parts(address, len) }
}

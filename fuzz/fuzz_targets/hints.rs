//! Writes of any client, past the detector of file-system metadata. `frit_serve::hints::detect::fuzz` has
//! the form of the input and the assertions.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| frit_serve::hints::detect::fuzz::session(bytes));

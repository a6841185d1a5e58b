//! Text of a stack file. A wrong text is refused with a message, without a panic. The canonical text of
//! a valid one has the same identity when it is read again.

#![no_main]

use frit_stack::Stack;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match Stack::parse("fuzz", text, &[]) {
        Ok(stack) => {
            let canonical = stack.identity();
            let again = Stack::parse("fuzz", &canonical.text, &[]).expect("the canonical text is a stack");
            assert_eq!(again.identity().sha256, canonical.sha256);
        }
        Err(e) => {
            assert!(!e.to_string().is_empty());
            assert!((1..=20).contains(&e.problems().len()), "{} problems are told of", e.problems().len());
        }
    }
});

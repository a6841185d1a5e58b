//! Modules with random changes: each ends with a status, and the engine goes on.

use super::{answer, program, request, run, text_example};
use crate::support::{Pieces, Setting};
use frit_isp::{Program, Status};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::collections::BTreeMap;
use std::sync::Arc;

fn mutate(rng: &mut StdRng, module: &mut Vec<u8>) {
    // Most changes of lengths make a module invalid, so they are rare.
    if rng.random_range(0..10) == 0 {
        let at = rng.random_range(8..module.len());
        if rng.random() {
            module.remove(at);
        } else {
            module.insert(at, rng.random());
        }
    }
    for _ in 0..rng.random_range(1..3) {
        // The code is at the end.
        let at = rng.random_range(module.len() / 2..module.len());
        match rng.random_range(0..3) {
            0 => module[at] = rng.random(),
            1 => module[at] ^= 1 << rng.random_range(0..8),
            _ => module[at] = module[at].wrapping_add(1),
        }
    }
}

#[test]
fn mutated_modules_end_with_a_status() {
    let engine = Setting { threads: 2, ..Setting::plain() }.engine();
    let text = b"12\n-3\nabc\n".repeat(30);
    let examples =
        ["line_count.wat", "failing/grows.wat", "failing/reads_behind_the_file.wat", "failing/loops.wat"];
    let examples = examples.map(text_example);
    let mut rng = StdRng::seed_from_u64(7);
    let mut seen = BTreeMap::new();
    for round in 0..240 {
        let mut module = examples[round % examples.len()].clone();
        mutate(&mut rng, &mut module);
        let limited = Program { fuel: Some(100_000), time_ms: Some(200), ..program(&module) };
        let mut request = request(limited, Arc::new(Pieces::new(&*text, &[40, 7])));
        request.instruction.memory_bytes = 1 << 20;
        let outcome = engine.run(request);
        if let Err(failure) = &outcome.result {
            assert!(!failure.message.is_empty());
            assert_ne!(failure.status, Status::Internal, "round {round}: {}", failure.message);
        }
        *seen.entry(outcome.status() as u32).or_insert(0) += 1;
    }
    // The changes reach the compiled code as well, and not only the check of modules.
    for status in [Status::Ok, Status::BadModule, Status::Trap, Status::OutOfFuel, Status::OutOfMemory] {
        assert!(seen.contains_key(&(status as u32)), "{status:?}: {seen:?}");
    }
    assert_eq!(answer(&run(&engine, program(&examples[0]), &text)).payload, b"90\n");
}

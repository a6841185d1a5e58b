//! Programs that loop, take memory, or access what is not theirs: each ends with its status.

use super::{answer, assembled, failure, payload, program, request, run, rust_example, text_example};
use crate::support::{Pieces, Setting};
use frit_isp::{Engine, EngineOptions, Program, ProgramLimits, Status};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Program whose function `scan` has this body, with the functions of the engine.
fn scanning(body: &str) -> Vec<u8> {
    // The limit of a message is 500 bytes, and the next character has two.
    let long = "a".repeat(499);
    assembled(&format!(
        r#"(module
            (import "frit" "emit" (func $emit (param i32 i32) (result i32)))
            (import "frit" "fail" (func $fail (param i32 i32)))
            (import "frit" "read_at" (func $read_at (param i64 i32 i32)))
            (memory (export "memory") 1)
            (data (i32.const 0) "no\nway")
            (data (i32.const 4096) "{long}\u{{e4}}b")
            (table $table 1 funcref)
            (type $void (func))
            (func $deep (call $deep) (call $deep))
            (func (export "buffer") (param i32) (result i32) (i32.const 1024))
            (func (export "scan") (param $at i32) (param $len i32) (param $offset i64) (result i32) {body}))"#
    ))
}

fn limited(module: &[u8], fuel: Option<u64>, time_ms: u64) -> Program {
    Program { fuel, time_ms: Some(time_ms), ..program(module) }
}

#[test]
fn failing_examples_end_and_the_engine_goes_on() {
    let count = text_example("line_count.wat");
    for threads in [1, 3] {
        let engine = Setting { threads, ..Setting::plain() }.engine();
        for (name, fuel, status, words) in [
            ("loops", None, Status::OutOfTime, "50 ms of processor time"),
            ("loops", Some(1_000_000), Status::OutOfFuel, "1000000 units of fuel"),
            ("grows", None, Status::OutOfMemory, "the limit is 16777216"),
            ("grows", Some(1_000_000), Status::OutOfMemory, "asks for 16842752"),
            ("reads_out_of_range", None, Status::Trap, "in scan at byte 0: it accessed memory out of bounds"),
            ("reads_behind_the_file", None, Status::Trap, "2 bytes at 999, in a file of 1000 bytes"),
        ] {
            let module = text_example(&format!("failing/{name}.wat"));
            let began = Instant::now();
            let outcome = run(&engine, limited(&module, fuel, 50), &[b'\n'; 1000]);
            let (found, message) = failure(&outcome);
            assert!(found == status && message.contains(words), "{name}: {found:?}, {message}");
            assert!(began.elapsed() < Duration::from_secs(20), "{name}: {:?}", began.elapsed());
            assert_eq!(payload(&run(&engine, program(&count), &[b'\n'; 1000])), "1000\n", "after {name}");
        }
    }
}

#[test]
fn each_trap_has_its_reason() {
    let engine = Setting::plain().engine();
    for (body, status, words) in [
        ("unreachable", Status::Trap, "executed \"unreachable\""),
        ("(i32.div_u (i32.const 1) (i32.const 0))", Status::Trap, "divided by zero"),
        ("(i32.trunc_f64_s (f64.const 1e99))", Status::Trap, "overflow"),
        ("(call $deep) (i32.const 0)", Status::Trap, "more stack"),
        ("(call_indirect (type $void) (i32.const 0)) (i32.const 0)", Status::Trap, "uninitialized"),
        ("(call_indirect (type $void) (i32.const 9)) (i32.const 0)", Status::Trap, "out of bounds table"),
        ("(i32.const 7)", Status::Trap, "returned 7 from scan at byte 0; 0 continues"),
        (
            "(call $emit (i32.const 65530) (i32.const 7))",
            Status::Trap,
            "emit with 7 bytes at 65530 of its memory of 65536",
        ),
        ("(call $emit (i32.const -1) (i32.const -1))", Status::Trap, "emit"),
        (
            "(call $fail (i32.const 0) (i32.const 6)) (i32.const 0)",
            Status::Program,
            "the program failed: no way",
        ),
        ("(call $fail (i32.const 0) (i32.const -6)) (i32.const 0)", Status::Trap, "called fail"),
        (
            "(call $read_at (i64.const 0) (i32.const 65535) (i32.const 2)) (i32.const 0)",
            Status::Trap,
            "read_at with 2",
        ),
        (
            "(call $read_at (i64.const -1) (i32.const 0) (i32.const 2)) (i32.const 0)",
            Status::Trap,
            "in a file of 100",
        ),
        ("(table.grow $table (ref.null func) (i32.const 99999))", Status::OutOfMemory, "a table of 100000"),
    ] {
        let outcome = run(&engine, program(&scanning(body)), &[0; 100]);
        let (found, message) = failure(&outcome);
        assert!(found == status && message.contains(words), "{body}: {found:?}, {message}");
        assert!(!message.contains('\n'), "{message}");
    }
    let (_, message) = failure(&run(
        &engine,
        program(&scanning("(call $fail (i32.const 4096) (i32.const 502)) (i32.const 0)")),
        &[0; 100],
    ));
    assert!(message.ends_with(&format!(" {}", "a".repeat(499))), "{message}");
    // A buffer behind the memory.
    let module = assembled(
        r#"(module (memory (export "memory") 1) (func (export "buffer") (param i32) (result i32) (i32.const 65500))
            (func (export "scan") (param i32 i32 i64) (result i32) (i32.const 0)))"#,
    );
    let (status, message) = failure(&run(&engine, program(&module), &[0; 100]));
    assert!(status == Status::Trap && message.contains("65500 from buffer(64)"), "{message}");
    // A loop before the first call.
    let module = assembled(
        r#"(module (memory (export "memory") 1) (func (export "buffer") (param i32) (result i32) (i32.const 0))
            (func $f (loop $l (br $l))) (start $f)
            (func (export "scan") (param i32 i32 i64) (result i32) (i32.const 0)))"#,
    );
    assert_eq!(failure(&run(&engine, limited(&module, None, 20), &[0; 100])).0, Status::OutOfTime);
    assert_eq!(failure(&run(&engine, limited(&module, None, 20), &[])).0, Status::OutOfTime);
}

#[test]
fn results_are_cut_at_the_limit_of_memory() {
    let engine = Setting::plain().engine();
    let module = scanning("(call $emit (i32.const 1024) (local.get $len)) drop (i32.const 0)");
    let mut request = request(program(&module), Arc::new(Pieces::new(vec![b'x'; 70_000], &[])));
    request.instruction.memory_bytes = 1 << 16;
    let outcome = engine.run(request);
    // Pieces of 64 bytes fit exactly.
    assert!(outcome.truncated && answer(&outcome).payload == vec![b'x'; 1 << 16]);
    let outcome = run(&engine, program(&module), &[b'x'; 5000]);
    assert!(!outcome.truncated && answer(&outcome).payload == vec![b'x'; 5000]);
}

#[test]
fn a_memory_that_begins_too_large_is_refused() {
    let engine = Setting::plain().engine();
    let mut request = request(program(&scanning("(i32.const 0)")), Arc::new(Pieces::new(*b"a", &[])));
    request.instruction.memory_bytes = 65_535;
    let (status, message) = failure(&engine.run(request));
    assert!(status == Status::OutOfMemory && message.contains("65536"), "{message}");
}

#[test]
fn fuel_is_the_same_in_each_run() {
    let engine = Setting { threads: 1, ..Setting::plain() }.engine();
    let module = scanning("(local.get $len) drop (i32.const 0)");
    let used = |fuel| answer(&run(&engine, limited(&module, Some(fuel), 10_000), &[0; 1000])).fuel_used;
    let fuel = used(1_000_000).unwrap();
    assert!(fuel > 16 && fuel < 1000, "{fuel}");
    assert_eq!(used(fuel), Some(fuel));
    let outcome = run(&engine, limited(&module, Some(fuel / 2), 10_000), &[0; 1000]);
    assert_eq!(failure(&outcome).0, Status::OutOfFuel);
    assert_eq!(answer(&run(&engine, program(&module), &[0; 1000])).fuel_used, None);
}

#[test]
fn an_engine_can_have_lower_limits() {
    let programs = ProgramLimits {
        module_bytes_max: 1000,
        memory_bytes_max: 1 << 24,
        fuel_max: 10_000,
        fuel_required: true,
        time_default: Duration::from_millis(100),
        time_max: Duration::from_millis(200),
    };
    let engine = Engine::new(EngineOptions { programs, ..EngineOptions::default() });
    let module = scanning("(i32.const 0)");
    let looping = text_example("failing/loops.wat");
    let refused = |program, memory: usize| {
        let mut request = request(program, Arc::new(Pieces::new(*b"a", &[])));
        request.instruction.memory_bytes = memory;
        failure(&engine.run(request))
    };
    for (found, key) in [
        (refused(limited(&module, Some(10_001), 1), 1 << 20), "\"fuel\" is 10001"),
        (refused(limited(&module, None, 201), 1 << 20), "\"time_ms\" is 201"),
        (refused(program(&module), (1 << 24) + 1), "\"memory\" is 16777217"),
    ] {
        assert!(found.0 == Status::Invalid && found.1.contains(key), "{found:?}");
    }
    assert_eq!(refused(program(&looping), 1 << 20).0, Status::OutOfFuel);
    assert_eq!(run(&engine, program(&module), b"a").status(), Status::Ok);
    let large = assembled(&format!("(module (memory 1) (data (i32.const 0) \"{}\"))", "x".repeat(1000)));
    let found = refused(program(&large), 1 << 20);
    assert!(found.0 == Status::BadModule && found.1.contains("at most 1000"), "{found:?}");
}

#[test]
fn an_argument_needs_a_function() {
    let Some(module) = rust_example("group_count") else { return };
    let engine = Setting::plain().engine();
    let mut with_argument = program(&module);
    with_argument.argument = Some(b"x".to_vec());
    let (status, message) = failure(&run(&engine, with_argument, b"a"));
    assert!(status == Status::Invalid && message.contains("takes no \"argument\""), "{message}");
}

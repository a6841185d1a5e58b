//! Modules that are not programs, and the cache of those that are.

use super::{answer, assembled, failure, payload, program, run, text_example};
use crate::support::Setting;
use frit_isp::{Command, Module, Status, Target, text};

const SCAN: &str = r#"(func (export "scan") (param i32 i32 i64) (result i32) (i32.const 0))"#;
const REST: &str =
    r#"(memory (export "memory") 1) (func (export "buffer") (param i32) (result i32) (i32.const 0))"#;

#[test]
fn a_wrong_module_is_named_with_its_fault() {
    let engine = Setting::plain().engine();
    let valid = assembled(&format!("(module {REST} {SCAN})"));
    let mut cases = vec![
        (vec![], "the file is not a valid module of WebAssembly: it is empty"),
        (b"\0asm\x01\0\0".to_vec(), "not a valid module"),
        (
            b"\x7fELF".repeat(9),
            "the file is not a valid module of WebAssembly: it begins with 7f 45 4c 46, and not with 00 61 73 6d",
        ),
        (b"\0as".to_vec(), "it begins with 00 61 73, and not"),
        (b"(module)".to_vec(), "the module is text"),
        (valid[..valid.len() - 1].to_vec(), "not a valid module"),
    ];
    for (body, words) in [
        ("", "does not export its memory"),
        (r#"(memory (export "memory") 1)"#, "does not export the function \"buffer\", (i32) -> i32"),
        (
            r#"(memory (export "memory") 1) (func (export "buffer"))"#,
            "\"buffer\" is not a function (i32) -> i32",
        ),
        (REST, "exactly one of the functions \"scan\" and \"scan_lines\""),
        (r#"(global (export "scan") i32 (i32.const 0)) "#, "does not export its memory"),
    ] {
        cases.push((assembled(&format!("(module {body})")), words));
    }
    for (body, words) in [
        (r#"(func (export "scan_lines") (param i32 i32 i64) (result i32) (i32.const 0))"#, "exactly one"),
        (r#"(func (export "partial"))"#, "only one of the functions \"partial\" and \"merge\""),
        (r#"(func (export "finish") (param i32))"#, "\"finish\" is not a function ()"),
        (r#"(func (export "start"))"#, "\"start\" is not a function (i32, i32)"),
    ] {
        cases.push((assembled(&format!("(module {REST} {SCAN} {body})")), words));
    }
    for (import, words) in [
        (
            r#"(import "wasi_snapshot_preview1" "fd_write" (func))"#,
            "\"fd_write\" of \"wasi_snapshot_preview1\"",
        ),
        (r#"(import "frit" "clock" (func))"#, "a program can import emit, fail, range_end, range_start"),
        (r#"(import "frit" "emit" (func))"#, "\"emit\" is not a function (i32, i32) -> i32"),
        (r#"(import "frit" "size" (global i64))"#, "\"size\" is not a function () -> i64"),
    ] {
        cases.push((assembled(&format!("(module {import} {REST} {SCAN})")), words));
    }
    // Features that are off: 64-bit memories, two memories, threads.
    for memory in ["(memory i64 1)", "(memory 1) (memory 1)", "(memory 1 1 shared)"] {
        cases.push((assembled(&format!("(module {memory})")), "not a valid module"));
    }
    for (module, words) in cases {
        let (status, message) = failure(&run(&engine, program(&module), b"a\n"));
        assert!(status == Status::BadModule && message.contains(words), "{words}: {status:?}, {message}");
        assert!(!message.contains('\n'), "{message}");
    }
    assert_eq!(payload(&run(&engine, program(&valid), b"a\n")), "");
}

#[test]
fn a_module_whose_compilation_takes_long_is_refused() {
    let engine = Setting::plain().engine();
    for (body, words) in [
        (
            format!("(func {})", "(drop (i32.const 1))".repeat(22_000)),
            "the squares of the lengths of its functions",
        ),
        (format!("(func {})", "(local i32)".repeat(1001)), "1001 variables"),
        ("(func)".repeat(4001), "4003 functions"),
        (
            format!("(func {} {})", "(loop ".repeat(1001), ")".repeat(1001)),
            "the squares of the numbers of loops",
        ),
        (
            format!("(func {0}{1} {2}{1})", "(loop ".repeat(600), ")".repeat(600), "(block ".repeat(600))
                .repeat(3),
            "a function with 600 loops",
        ),
        // One after the other, with variables.
        (
            format!("(func (local {}) {})", "i64 ".repeat(900), "(loop (br_if 0 (i32.const 0)))".repeat(600)),
            "a function with 600 loops and 900 variables",
        ),
        (
            format!("(func (local {}) {})", "i64 ".repeat(900), "(block)".repeat(1200)),
            "a function with 1201 blocks and 900 variables",
        ),
        // Parameters of functions and values of blocks are as variables.
        (
            format!(
                "(type $t (func (param {0}) (result {0}))) (func (type $t) {1} {2} )",
                "i64 ".repeat(100),
                (0..100).map(|i| format!("local.get {i} ")).collect::<String>(),
                "(block (type $t)) ".repeat(3400),
            ),
            "a function with 3401 blocks and 300 variables and values of blocks",
        ),
        (format!("(type (func (param {})))", "i64 ".repeat(101)), "has 101 parameters and 0 results"),
        (
            format!("(type $t (func (param {0}) (result {0})))", "i64 ".repeat(100))
                + &"(func (type $t) unreachable)".repeat(501),
            "in a function with 200 of them; pass values in memory",
        ),
        (
            format!("(type $t (func (result {}))) (func $f (type $t) unreachable)", "i64 ".repeat(100))
                + &format!("(func {})", format!("call $f {}", "drop ".repeat(100)).repeat(25)).repeat(201),
            "in a function with 2500 of them",
        ),
    ] {
        let module = assembled(&format!("(module {REST} {SCAN} {body})"));
        let (status, message) = failure(&run(&engine, program(&module), b"a\n"));
        assert!(status == Status::BadModule && message.contains(words), "{words}: {status:?}, {message}");
    }
}

#[test]
fn a_module_is_compiled_once() {
    let engine = Setting::plain().engine();
    let compiled = |module: &[u8], fuel| {
        let mut program = program(module);
        program.fuel = fuel;
        answer(&run(&engine, program, b"1\n")).compiled
    };
    let module = text_example("line_count.wat");
    assert!(compiled(&module, None) && !compiled(&module, None));
    // Code that counts fuel is compiled separately.
    assert!(compiled(&module, Some(1 << 30)) && !compiled(&module, Some(1 << 30)));
    // More modules than the cache holds, all different by a custom section.
    for number in 0..20 {
        assert!(compiled(&[&module[..], &[0, 2, 1, number]].concat(), None));
    }
    assert!(compiled(&module, None), "the module is still cached");
}

#[test]
fn the_json_form_names_a_file_or_bytes() {
    let parsed = |line: &str| text::parse(line.as_bytes()).map(|instruction| instruction.command);
    let line = r#"{"program": "bin/a.wasm", "argument": "7", "fuel": 5, "time_ms": 6, "file": "f"}"#;
    let Ok(Command::Program(found)) = parsed(line) else { panic!("{:?}", parsed(line)) };
    assert_eq!(found.module, Module::File(Target::name("bin/a.wasm").unwrap()));
    assert_eq!((found.argument, found.fuel, found.time_ms), (Some(b"7".to_vec()), Some(5), Some(6)));
    let line = r#"{"program": {"hex": "0061736d"}, "argument": {"hex": "ff"}, "file": "f"}"#;
    let Ok(Command::Program(found)) = parsed(line) else { panic!("{:?}", parsed(line)) };
    assert_eq!((found.module, found.argument), (Module::Bytes(b"\0asm".to_vec()), Some(vec![0xff])));
    for (line, words) in [
        (r#"{"program": "../a.wasm", "file": "f"}"#, "is not below the directory"),
        (r#"{"program": 5, "file": "f"}"#, "\"program\" is 5; it must be a string, or bytes"),
        (r#"{"program": "a", "argument": 5, "file": "f"}"#, "\"argument\" is 5"),
        (r#"{"program": "a", "time_ms": -1, "file": "f"}"#, "\"time_ms\" is -1"),
        (r#"{"program": "a", "words": ["b"], "file": "f"}"#, "exactly one of the keys"),
    ] {
        let failure = parsed(line).unwrap_err();
        assert!(failure.status == Status::Invalid && failure.message.contains(words), "{failure}");
    }
}

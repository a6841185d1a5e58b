//! An engine that was built without programs.

use crate::support::Pieces;
use frit_isp::{Command, Engine, Instruction, Module, Program, Request, Status, Target};
use std::sync::Arc;

#[test]
fn a_program_is_refused_and_other_instructions_are_executed() {
    let engine = Engine::default();
    let source = Arc::new(Pieces::new("one word\n", &[]));
    let run = |command: Command| {
        let instruction = Instruction::new(command, Target::Inode(1));
        engine.run(Request { instruction, source: source.clone(), module: None, destination: None })
    };
    let outcome = run(Command::Program(Program::new(Module::Bytes(b"\0asm".to_vec()))));
    assert_eq!(outcome.status(), Status::Unsupported, "{outcome:?}");
    let words = frit_isp::text::parse(br#"{"words":["word"],"file":"f"}"#).unwrap().command;
    assert_eq!(run(words).status(), Status::Ok);
}

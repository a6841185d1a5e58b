//! Many users with many instructions: each has a share of the memory and of the processors.

use crate::support::{Pieces, Setting, until_free};
use frit_isp::{
    Command, Engine, EngineOptions, Module, Outcome, Program, Request, Source, SourceError, Status, Ticket,
    User, text,
};
use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::thread::ThreadId;
use std::time::Duration;

/// Time within which an instruction ends on any machine, unless it waits for endless ones.
const SOON: Duration = Duration::from_secs(60);

const MIB: u64 = 1 << 20;

/// A file without an end, whose lines all match.
struct Endless;

impl Source for Endless {
    fn len(&self) -> u64 {
        u64::MAX
    }

    fn read(&self, _: u64, len: usize, each: &mut dyn FnMut(&[u8])) -> Result<(), SourceError> {
        each(&b"a line\n".repeat(len / 7 + 1)[..len]);
        Ok(())
    }

    fn version(&self) -> u64 {
        0
    }
}

fn parsed(json: &str) -> Command {
    text::parse(json.as_bytes()).unwrap().command
}

fn looping() -> Command {
    let module =
        wat::parse_file(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/isp/failing/loops.wat"))
            .unwrap();
    Command::Program(Program { time_ms: Some(600_000), ..Program::new(Module::Bytes(module)) })
}

fn counting() -> Command {
    let module = wat::parse_file(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/isp/line_count.wat"));
    Command::Program(Program::new(Module::Bytes(module.unwrap())))
}

fn request(source: Arc<dyn Source>, command: Command) -> Request {
    let mut instruction = Setting::plain().instruction(command, 1 << 30);
    instruction.memory_bytes = 1 << 30;
    Request { instruction, source, module: None, destination: None }
}

fn soon(ticket: &Ticket) -> Arc<Outcome> {
    ticket.wait_for(SOON).unwrap_or_else(|| panic!("it waits for others"))
}

#[test]
fn many_instructions_of_ten_users_leave_memory_and_threads_to_another() {
    const BUDGET: u64 = 256 * MIB;
    let engine =
        Engine::new(EngineOptions { threads: 2, memory_bytes_max: BUDGET, ..EngineOptions::default() });
    let lines: Arc<dyn Source> = Arc::new(Pieces::new(
        b"a line of sixty-four bytes, which matches, and more of it ......\n".repeat(1 << 19),
        &[],
    ));
    let filter = || parsed(r#"{"filter": {"regex": "line"}, "file": "x"}"#);
    let many: Vec<_> = (0..64 * 10)
        .map(|number| {
            let (user, source) = (User(number % 10), Arc::clone(&lines));
            match number / 10 % 3 {
                0 => engine.submit_for(user, request(source, filter())),
                1 => engine.submit_for(user, request(source, looping())),
                _ => engine.submit_for(
                    user,
                    request(Arc::new(Endless), parsed(r#"{"words": ["a line"], "file": "x"}"#)),
                ),
            }
        })
        .collect();
    for round in 0..3 {
        std::thread::sleep(Duration::from_millis(300));
        assert!(engine.memory_bytes() <= BUDGET / 2, "{} bytes", engine.memory_bytes());
        let other = User(100 + round);
        let text: Arc<dyn Source> = Arc::new(Pieces::new(b"a line\n".repeat(100_000), &[]));
        for command in [parsed(r#"{"words": ["a line"], "file": "x"}"#), filter(), counting()] {
            let ticket = engine.submit_for(other, request(Arc::clone(&text), command));
            assert_eq!(soon(&ticket).status(), Status::Ok, "{:?}", ticket.wait().result);
        }
    }
    // Whatever has ended has results, or says that there is no memory.
    let ended: Vec<_> = many.iter().filter_map(Ticket::try_wait).collect();
    assert!(ended.iter().all(|outcome| matches!(outcome.status(), Status::Ok | Status::Busy)));
    many.iter().for_each(Ticket::cancel);
    many.iter().for_each(|ticket| drop(soon(ticket)));
    drop((ended, many));
    until_free(&engine, 0);
}

#[test]
fn a_user_with_many_programs_gets_no_more_time_than_one_with_a_single_one() {
    let engine = Engine::new(EngineOptions { threads: 1, ..EngineOptions::default() });
    let text: Arc<dyn Source> = Arc::new(Pieces::new(vec![b'a'; 1000], &[]));
    let submit = |user: u32| engine.submit_for(User(user), request(Arc::clone(&text), looping()));
    let many: Vec<_> = (0..20).map(|_| submit(0)).collect();
    // All their threads are busy.
    std::thread::sleep(Duration::from_millis(500));
    let single = submit(1);
    std::thread::sleep(Duration::from_secs(5));
    many.iter().chain([&single]).for_each(Ticket::cancel);
    let time = |ticket: &Ticket| soon(ticket).work.cpu_ns;
    let (many, single) = (many.iter().map(time).sum::<u64>(), time(&single));
    // Of the last five seconds, half are the due of each. With a share for each thread, it would be a tenth.
    assert!(single * 4 >= many, "{single} ns beside {many} ns");
}

#[test]
fn endless_programs_of_any_number_of_users_leave_a_thread_to_another() {
    const USERS: u32 = 100;
    const EACH: u32 = 2;
    let engine =
        Engine::new(EngineOptions { threads: 1, memory_bytes_max: 1 << 30, ..EngineOptions::default() });
    let text: Arc<dyn Source> = Arc::new(Pieces::new(vec![b'a'; 1000], &[]));
    let submit = |user: u32, command| engine.submit_for(User(user), request(Arc::clone(&text), command));
    let mut many: Vec<_> = (0..USERS / 2 * EACH).map(|number| submit(number / EACH, looping())).collect();
    // It is given while others begin.
    let early = submit(USERS, counting());
    many.extend((USERS / 2 * EACH..USERS * EACH).map(|number| submit(number / EACH, looping())));
    assert_eq!(soon(&early).status(), Status::Ok, "{:?}", early.wait().result);
    for user in USERS + 1..USERS + 4 {
        let ticket = submit(user, counting());
        assert_eq!(soon(&ticket).status(), Status::Ok, "{:?}", ticket.wait().result);
    }
    many.iter().for_each(Ticket::cancel);
    many.iter().for_each(|ticket| drop(soon(ticket)));
}

/// Data that note the threads that ask for their length.
struct Watched(Mutex<HashSet<ThreadId>>);

impl Source for Watched {
    fn len(&self) -> u64 {
        self.0.lock().unwrap().insert(std::thread::current().id());
        10
    }

    fn read(&self, _: u64, len: usize, each: &mut dyn FnMut(&[u8])) -> Result<(), SourceError> {
        each(&vec![b'a'; len]);
        Ok(())
    }

    fn version(&self) -> u64 {
        0
    }
}

#[test]
fn an_expression_that_takes_long_to_compile_does_not_hold_up_its_giver() {
    let engine = Engine::default();
    let conditions: Vec<_> = (0..20).map(|number| format!(r#"["a", "matches", "{number}"]"#)).collect();
    let conditions = conditions.join(",");
    for (is_quick, json) in [
        (true, r#"{"regex": "a+[bc]", "file": "x"}"#.to_owned()),
        (false, r#"{"regex": "(\\w{50}){2}", "file": "x"}"#.to_owned()),
        (false, r#"{"filter": {"regex": "(\\w{50}){2}"}, "file": "x"}"#.to_owned()),
        (false, format!(r#"{{"select": ["a"], "format": "jsonl", "where": [{conditions}], "file": "x"}}"#)),
    ] {
        let source = Arc::new(Watched(Mutex::default()));
        let outcome = engine.run(request(Arc::<Watched>::clone(&source), parsed(&json)));
        assert_eq!(outcome.status(), Status::Ok, "{json}");
        let threads = source.0.lock().unwrap();
        assert_eq!(threads.contains(&std::thread::current().id()), is_quick, "{json}");
    }
}

#[test]
fn many_large_expressions_are_refused_and_hold_nothing() {
    let engine = Engine::new(EngineOptions { memory_bytes_max: 128 * MIB, ..EngineOptions::default() });
    // Each has some megabytes.
    let conditions: Vec<_> =
        (0..200).map(|number| format!(r#"["a", "matches", "\\w{{40}}{number}"]"#)).collect();
    let json = format!(
        r#"{{"select": ["a"], "format": "jsonl", "where": [{}], "file": "x"}}"#,
        conditions.join(",")
    );
    let source: Arc<dyn Source> = Arc::new(Pieces::new(*b"{}\n", &[]));
    let ticket = engine.submit(request(source, parsed(&json)));
    assert_eq!(soon(&ticket).status(), Status::Busy);
    drop(ticket);
    until_free(&engine, 0);
}

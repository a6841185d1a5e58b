//! Copies, compared with a filter of lines and blocks.

use crate::support::{Pieces, Setting, Written, data, setting};
use frit_isp::{
    Answer, Command, Copy, CopyAnswer, Destination, Engine, EngineOptions, Outcome, Pattern, RecordUnit,
    Request, Source, SourceError, Status, Target,
};
use parking_lot::Mutex;
use proptest::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

fn copy(unit: RecordUnit, invert: bool, limit: Option<u64>, at: u64) -> Copy {
    let to = Target::name("copy").unwrap();
    Copy { pattern: Pattern::Words(vec![b"ab".to_vec()]), invert, limit, unit, to, at }
}

fn run(
    setting: &Setting,
    data: &[u8],
    copy: Copy,
    memory: usize,
    destination: Arc<dyn Destination>,
) -> Arc<Outcome> {
    let instruction = setting.instruction(Command::Copy(copy), memory);
    let source = setting.source(data);
    setting.engine().run(Request { instruction, source, module: None, destination: Some(destination) })
}

proptest! {
    #[test]
    fn a_copy_has_the_records_that_match(
        data in data(), size in proptest::option::of(1_usize..200), invert: bool,
        limit in proptest::option::of(0_u64..10), at in 0_u64..50, memory in 0_usize..2000, setting in setting(),
    ) {
        let range = &data[setting.range(&data)];
        let records: Vec<&[u8]> = match size {
            Some(size) => range.chunks(size).collect(),
            None => range.split_inclusive(|byte| *byte == b'\n').collect(),
        };
        let matches = |record: &&&[u8]| record.windows(2).any(|part| part == b"ab") != invert;
        let limited = limit.unwrap_or(u64::MAX) as usize;
        let expected: Vec<_> = records.iter().filter(matches).take(limited).copied().collect();
        let unit = size.map_or(RecordUnit::Lines, RecordUnit::Blocks);
        let written = Arc::new(Written::default());
        let copy = copy(unit, invert, limit, at);
        let outcome = run(&setting, &data, copy, memory, Arc::<Written>::clone(&written));
        let bytes = expected.concat();
        let answer = CopyAnswer { records: expected.len() as u64, bytes: bytes.len() as u64 };
        prop_assert_eq!(&outcome.result, &Ok(Answer::Copy(answer)));
        let written = written.0.lock();
        prop_assert_eq!(written.get(at as usize..).unwrap_or_default(), &bytes);
    }
}

/// Source that is locked during its reads, and target whose writes find out whether it is.
struct Locked {
    data: Vec<u8>,
    lock: Mutex<()>,
    writes: AtomicU64,
}

impl Source for Locked {
    fn len(&self) -> u64 {
        self.data.len() as u64
    }

    fn read(&self, at: u64, len: usize, each: &mut dyn FnMut(&[u8])) -> Result<(), SourceError> {
        let _held = self.lock.lock();
        self.data.read(at, len, each)
    }

    fn version(&self) -> u64 {
        0
    }
}

impl Destination for Locked {
    fn write(&self, _: u64, _: &[u8]) -> Result<(), SourceError> {
        self.writes.fetch_add(1, Ordering::SeqCst);
        // Only one thread reads.
        let is_free = self.lock.try_lock().is_some();
        if is_free { Ok(()) } else { Err(SourceError("the source is locked".into())) }
    }
}

#[test]
fn a_write_holds_no_lock_of_the_source() {
    for (unit, pattern) in [
        (RecordUnit::Lines, Pattern::Words(vec![b"ab".to_vec()])),
        (RecordUnit::Lines, Pattern::Regex("ab".into())),
        (RecordUnit::Blocks(1000), Pattern::Words(vec![b"ab".to_vec()])),
    ] {
        let copy = Copy { pattern, ..copy(unit, false, None, 0) };
        let engine = Engine::new(EngineOptions { threads: 1, ..EngineOptions::default() });
        let data = b"ab\n".repeat(1 << 20);
        let locked = Arc::new(Locked { data, lock: Mutex::default(), writes: AtomicU64::new(0) });
        let (source, destination) = (Arc::<Locked>::clone(&locked), Some(Arc::<Locked>::clone(&locked) as _));
        let instruction = Setting::plain().instruction(Command::Copy(copy), 1 << 20);
        let outcome = engine.run(Request { instruction, source, module: None, destination });
        assert_eq!(outcome.status(), Status::Ok, "{:?}", outcome.result);
        assert!(locked.writes.load(Ordering::SeqCst) > 1);
    }
}

#[test]
fn a_copy_to_its_source_is_refused() {
    let setting = Setting::plain();
    let mut instruction =
        setting.instruction(Command::Copy(copy(RecordUnit::Lines, false, None, 0)), 1 << 20);
    instruction.file = Target::name("copy").unwrap();
    let source = Arc::new(Pieces::new(*b"ab", &[]));
    let destination: Option<Arc<dyn Destination>> = Some(Arc::<Written>::default());
    let outcome = setting.engine().run(Request { instruction, source, module: None, destination });
    assert_eq!(outcome.status(), Status::Invalid);
}

#[test]
fn a_destination_that_fails_is_named() {
    struct Full;
    impl Destination for Full {
        fn write(&self, _: u64, _: &[u8]) -> Result<(), SourceError> {
            Err(SourceError("no space left".into()))
        }
    }
    let copy = copy(RecordUnit::Lines, false, None, 7);
    let outcome = run(&Setting::plain(), b"ab\n", copy, 1 << 20, Arc::new(Full));
    let failure = outcome.result.clone().unwrap_err();
    assert_eq!(failure.status, Status::Io);
    assert!(failure.message.contains("byte 7") && failure.message.contains("no space left"), "{failure}");
}

/// File of a limited size.
struct Small(Written);

impl Destination for Small {
    fn write(&self, at: u64, data: &[u8]) -> Result<(), SourceError> {
        self.0.write(at, data)
    }

    fn bytes_max(&self) -> u64 {
        100
    }
}

#[test]
fn a_copy_beyond_the_largest_file_is_not_valid() {
    let run = |at, destination: Arc<dyn Destination>| {
        let copy = copy(RecordUnit::Lines, false, None, at);
        run(&Setting::plain(), b"ab\nab\n", copy, 1 << 20, destination).result.clone()
    };
    let small = || -> Arc<dyn Destination> { Arc::new(Small(Written::default())) };
    assert!(run(94, small()).is_ok());
    for at in [95, 101, u64::MAX] {
        let failure = run(at, small()).unwrap_err();
        assert_eq!(failure.status, Status::Invalid, "{failure}");
        assert!(failure.message.contains("has at most 100 bytes"), "{failure}");
    }
    // Files have positions of 63 bits.
    let failure = run(1 << 63, Arc::new(Written::default())).unwrap_err();
    assert_eq!(failure.status, Status::Invalid, "{failure}");
}

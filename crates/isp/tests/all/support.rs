//! Sources of random pieces, small engines, and instructions on them.

use frit_isp::{
    Answer, ByteRange, Command, Destination, Engine, EngineOptions, Foreground, Instruction, Outcome,
    Request, Source, SourceError, Target,
};
use parking_lot::Mutex;
use proptest::prelude::*;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// File in memory, which is read in pieces of given sizes. Its holes are stored as zeros.
pub(crate) struct Pieces {
    pub(crate) data: Vec<u8>,
    /// Sizes of the pieces, which repeat. Some are zero.
    sizes: Vec<usize>,
    pub(crate) version: AtomicU64,
    /// Number of reads after which the version changes.
    pub(crate) change_after: u64,
    pub(crate) reads: AtomicU64,
    /// `true` if reads take some time, so that several threads scan parts at once.
    pub(crate) slow: bool,
    /// Byte at which reads fail.
    pub(crate) broken_at: Option<u64>,
}

impl Pieces {
    pub(crate) fn new(data: impl Into<Vec<u8>>, sizes: &[usize]) -> Self {
        let sizes = if sizes.iter().sum::<usize>() == 0 { vec![usize::MAX] } else { sizes.to_vec() };
        Self {
            data: data.into(),
            sizes,
            version: AtomicU64::new(0),
            change_after: u64::MAX,
            reads: AtomicU64::new(0),
            slow: false,
            broken_at: None,
        }
    }
}

impl Source for Pieces {
    fn len(&self) -> u64 {
        self.data.len() as u64
    }

    fn read(&self, at: u64, len: usize, each: &mut dyn FnMut(&[u8])) -> Result<(), SourceError> {
        if self.broken_at.is_some_and(|broken| (at..at + len as u64).contains(&broken)) {
            return Err(SourceError("the medium is broken".into()));
        }
        if self.slow {
            // The threads would else be slower to start than the first one to scan all parts.
            std::thread::sleep(Duration::from_micros(at.wrapping_mul(0x9e37_79b9) % 30));
        }
        let mut rest = &self.data[at as usize..at as usize + len];
        for size in self.sizes.iter().cycle() {
            let (piece, others) = rest.split_at(rest.len().min(*size));
            each(piece);
            rest = others;
            if rest.is_empty() {
                break;
            }
        }
        if self.reads.fetch_add(1, Ordering::SeqCst) == self.change_after {
            self.version.fetch_add(1, Ordering::SeqCst);
        }
        Ok(())
    }

    fn version(&self) -> u64 {
        self.version.load(Ordering::SeqCst)
    }
}

/// File in memory that is written.
#[derive(Default)]
pub(crate) struct Written(pub(crate) Mutex<Vec<u8>>);

impl Destination for Written {
    fn write(&self, at: u64, data: &[u8]) -> Result<(), SourceError> {
        let mut bytes = self.0.lock();
        let end = at as usize + data.len();
        if bytes.len() < end {
            bytes.resize(end, 0);
        }
        bytes[at as usize..end].copy_from_slice(data);
        Ok(())
    }
}

/// Conditions of a test: an engine, pieces, a range, and a limit of memory.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    pub(crate) threads: usize,
    pub(crate) chunk_bytes: usize,
    pub(crate) part_bytes: u64,
    pub(crate) sizes: Vec<usize>,
    pub(crate) offset: u64,
    pub(crate) length: Option<u64>,
    /// Maximum length of a line. It is at least that of a chunk.
    pub(crate) line_bytes: usize,
}

/// Length of lines that no test exceeds.
const LONG_LINES: usize = 1 << 20;

/// Settings with small parts, chunks and pieces, so that everything spans their borders.
pub(crate) fn setting() -> impl Strategy<Value = Setting> {
    let sizes = proptest::collection::vec(prop_oneof![0_usize..4, 1_usize..100], 0..6);
    let range = (prop_oneof![Just(0), 0_u64..300], proptest::option::of(0_u64..900));
    (1_usize..=4, 1_usize..150, 1_u64..300, sizes, range).prop_map(
        |(threads, chunk_bytes, part_bytes, sizes, (offset, length))| Setting {
            threads,
            chunk_bytes,
            part_bytes,
            sizes,
            offset,
            length,
            line_bytes: LONG_LINES,
        },
    )
}

impl Setting {
    pub(crate) fn plain() -> Self {
        Self {
            threads: 2,
            chunk_bytes: 64,
            part_bytes: 128,
            sizes: vec![],
            offset: 0,
            length: None,
            line_bytes: LONG_LINES,
        }
    }

    pub(crate) fn engine(&self) -> Engine {
        Engine::new(EngineOptions {
            threads: self.threads,
            chunk_bytes: self.chunk_bytes,
            foreground_chunk_bytes: self.chunk_bytes,
            part_bytes: self.part_bytes,
            // With one thread, short ranges are scanned by the thread of the test.
            inline_bytes: if self.threads == 1 { 256 } else { 0 },
            record_bytes_max: self.line_bytes,
            memory_bytes_max: 1 << 32,
            niceness: None,
            foreground: Arc::new(Foreground::new(Duration::from_millis(1))),
            programs: frit_isp::ProgramLimits::default(),
        })
    }

    /// Bytes of the data in the range of the setting.
    pub(crate) fn range(&self, data: &[u8]) -> Range<usize> {
        let start = data.len().min(self.offset as usize);
        let length = self.length.unwrap_or(u64::MAX) as usize;
        start..start.saturating_add(length).min(data.len())
    }

    pub(crate) fn instruction(&self, command: Command, memory_bytes: usize) -> Instruction {
        let mut instruction = Instruction::new(command, Target::Inode(1));
        instruction.range = ByteRange { offset: self.offset, length: self.length };
        instruction.memory_bytes = memory_bytes;
        instruction
    }

    pub(crate) fn source(&self, data: &[u8]) -> Arc<Pieces> {
        let mut source = Pieces::new(data, &self.sizes);
        source.slow = self.threads > 1;
        Arc::new(source)
    }

    pub(crate) fn outcome(&self, data: &[u8], command: Command, memory_bytes: usize) -> Arc<Outcome> {
        let instruction = self.instruction(command, memory_bytes);
        let source = self.source(data);
        self.engine().run(Request { instruction, source, module: None, destination: None })
    }

    /// Results of an instruction that is executed with enough memory.
    pub(crate) fn answer(&self, data: &[u8], command: Command) -> Answer {
        let outcome = self.outcome(data, command, 1 << 24);
        assert!(!outcome.truncated && !outcome.changed);
        outcome.result.clone().unwrap()
    }
}

/// Texts of few letters, with lines and holes.
pub(crate) fn data() -> impl Strategy<Value = Vec<u8>> {
    let letters = proptest::collection::vec(proptest::sample::select(&b"aab \n\r"[..]), 0..60);
    let hole = (1_usize..300).prop_map(|len| vec![0; len]);
    let any = proptest::collection::vec(any::<u8>(), 0..40);
    let pieces = proptest::collection::vec(prop_oneof![6 => letters, 1 => hole, 1 => any], 0..20);
    pieces.prop_map(|pieces| pieces.concat())
}

/// Lines without their line feeds, as `grep` divides a text.
pub(crate) fn lines(data: &[u8]) -> Vec<(usize, &[u8])> {
    let mut lines = Vec::new();
    let mut begin = 0;
    while begin < data.len() {
        let end = data[begin..].iter().position(|byte| *byte == b'\n').map_or(data.len(), |at| begin + at);
        lines.push((begin, &data[begin..end]));
        begin = end + 1;
    }
    lines
}

/// Path of a program, or a message that the test is skipped.
pub(crate) fn program(name: &str) -> bool {
    let found = std::process::Command::new(name).arg("--version").output().is_ok();
    if !found {
        eprintln!("skipped: no {name}");
    }
    found
}

/// Waits until instructions have at most so many bytes of the memory of an engine: a thread can hold a job for a moment
/// after its end.
pub(crate) fn until_free(engine: &Engine, bytes: u64) {
    let began = std::time::Instant::now();
    while engine.memory_bytes() > bytes {
        assert!(began.elapsed() < Duration::from_secs(60), "{} bytes in use", engine.memory_bytes());
        std::thread::sleep(Duration::from_millis(1));
    }
}

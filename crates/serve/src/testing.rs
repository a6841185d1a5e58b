//! An in-memory backend for tests, fuzzing and benchmarks of the protocols alone.

use crate::{Backend, ReplyTime};
use frit_core::{Error, Hints, MediumKind, ParamInfo, Result, StackView};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Page size of the memory, in bytes.
const PAGE: usize = 4096;

/// An in-memory backend that tracks allocated pages and injects failures on request.
#[derive(Debug)]
pub struct MemoryBackend {
    bytes: Vec<u8>,
    allocated: Vec<bool>,
    knobs: Arc<Knobs>,
}

/// Controls that a test changes while the memory is served.
#[derive(Debug, Default)]
pub struct Knobs {
    /// All reads and writes fail with an I/O error.
    pub broken: AtomicBool,
    /// Number of the page whose reads fail as damaged; 0: none.
    pub damaged_page: AtomicU64,
    /// Duration of a flush, in µs.
    pub flush_us: AtomicU64,
    /// Delay of replies, in µs; must be set before serving.
    pub pace_us: AtomicU64,
    /// Number of completed flushes.
    pub flushes: AtomicU64,
    /// Number of completed writes.
    pub writes: AtomicU64,
    /// Number of writes completed before the last flush began.
    pub writes_flushed: AtomicU64,
    /// Number of steps of background work left to do.
    pub work: AtomicU64,
    /// The next write panics after it has written its first byte.
    pub panics: AtomicBool,
    /// The backend was closed in order.
    pub closed: AtomicBool,
}

impl MemoryBackend {
    /// Creates a memory of zeros without allocated pages. `bytes` is a multiple of 512.
    #[must_use]
    pub fn new(bytes: usize) -> MemoryBackend {
        let pages = bytes.div_ceil(PAGE);
        MemoryBackend { bytes: vec![0; bytes], allocated: vec![false; pages], knobs: Arc::default() }
    }

    /// Returns the controls of this memory.
    #[must_use]
    pub fn knobs(&self) -> Arc<Knobs> {
        Arc::clone(&self.knobs)
    }

    fn range(&self, at: u64, len: u64) -> Result<std::ops::Range<usize>> {
        if self.knobs.broken.load(Ordering::Relaxed) {
            let source = std::io::Error::from(std::io::ErrorKind::NotConnected);
            return Err(Error::Io { what: format!("injected failure at byte {at} of the memory"), source });
        }
        let page = self.knobs.damaged_page.load(Ordering::Relaxed) * PAGE as u64;
        if page > 0 && at < page + PAGE as u64 && page < at + len {
            let what = "injected damage".into();
            return Err(Error::Corrupt { medium: MediumKind::Dram, at: page, what });
        }
        Ok(at as usize..(at + len) as usize)
    }

    fn done(&self) -> ReplyTime {
        match self.knobs.pace_us.load(Ordering::Relaxed) {
            0 => ReplyTime::NOW,
            us => ReplyTime { not_before: Some(Instant::now() + Duration::from_micros(us)) },
        }
    }

    /// Sets the allocation state of a range. Allocation extends to every page that the range
    /// touches, deallocation only to pages that lie wholly inside it.
    fn mark(&mut self, at: u64, len: u64, allocated: bool) {
        let (from, to) = if allocated {
            (at as usize / PAGE, (at + len).div_ceil(PAGE as u64) as usize)
        } else {
            ((at as usize).div_ceil(PAGE), (at + len) as usize / PAGE)
        };
        if from < to {
            self.allocated[from..to].fill(allocated);
        }
    }
}

#[allow(clippy::panic, reason = "a test asked for it")]
fn injected_panic() {
    panic!("injected panic");
}

impl Backend for MemoryBackend {
    fn bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn page_bytes(&self) -> u32 {
        PAGE as u32
    }

    fn read_only(&self) -> Option<String> {
        None
    }

    fn paced(&self) -> bool {
        self.knobs.pace_us.load(Ordering::Relaxed) > 0
    }

    fn read(&mut self, at: u64, into: &mut [u8]) -> Result<ReplyTime> {
        let range = self.range(at, into.len() as u64)?;
        into.copy_from_slice(&self.bytes[range]);
        Ok(self.done())
    }

    fn write(&mut self, at: u64, data: &[u8], _: Hints) -> Result<ReplyTime> {
        let range = self.range(at, data.len() as u64)?;
        if self.knobs.panics.swap(false, Ordering::Relaxed) {
            self.bytes[range.start] = data[0];
            injected_panic();
        }
        self.bytes[range].copy_from_slice(data);
        self.mark(at, data.len() as u64, true);
        self.knobs.writes.fetch_add(1, Ordering::Relaxed);
        Ok(self.done())
    }

    fn write_zeroes(&mut self, at: u64, len: u64, keep_allocated: bool) -> Result<ReplyTime> {
        let range = self.range(at, len)?;
        self.bytes[range].fill(0);
        self.mark(at, len, keep_allocated);
        self.knobs.writes.fetch_add(1, Ordering::Relaxed);
        Ok(self.done())
    }

    fn discard(&mut self, at: u64, len: u64) -> Result<ReplyTime> {
        self.write_zeroes(at, len, false)
    }

    fn flush(&mut self) -> Result<ReplyTime> {
        self.range(0, 0)?;
        // Read before the delay: writes that complete during the flush are not covered by it.
        let covered = self.knobs.writes.load(Ordering::Relaxed);
        match self.knobs.flush_us.load(Ordering::Relaxed) {
            0 => {}
            us => std::thread::sleep(Duration::from_micros(us)),
        }
        self.knobs.flushes.fetch_add(1, Ordering::Relaxed);
        self.knobs.writes_flushed.store(covered, Ordering::Relaxed);
        Ok(self.done())
    }

    fn extents(&self, at: u64, len: u64, each: &mut dyn FnMut(u64, Option<MediumKind>)) -> Result<()> {
        let (mut pos, end) = (at, at + len);
        while pos < end {
            let page = pos as usize / PAGE;
            let next = ((page + 1) * PAGE) as u64;
            each(next.min(end) - pos, self.allocated[page].then_some(MediumKind::Dram));
            pos = next;
        }
        Ok(())
    }

    fn step(&mut self, _: u32) -> Result<bool> {
        self.range(0, 0)?;
        let left = self.knobs.work.load(Ordering::Relaxed).saturating_sub(1);
        self.knobs.work.store(left, Ordering::Relaxed);
        Ok(left > 0)
    }

    fn visible(&self) -> StackView {
        StackView::default()
    }

    fn params(&mut self) -> Vec<ParamInfo> {
        Vec::new()
    }

    fn set_params(&mut self, settings: &[(&str, &str)]) -> Result<()> {
        settings
            .first()
            .map_or(Ok(()), |(key, value)| Err(Error::param(key, value, "memory has no parameters")))
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.knobs.closed.store(true, Ordering::Relaxed);
        Ok(())
    }
}

//! Extents of a device as data of the processing engine.

use super::changes::WatchedRanges;
use super::{Device, Failure};
use frit_core::SECTOR_BYTES;
use frit_isp::{Foreground, ForegroundGuard, Source, SourceError};
use parking_lot::Mutex;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Longest wait of the engine for requests before each chunk. Requests that wait for a slow medium
/// come one after the other, and a chunk has to follow them at some time.
const PATIENCE: Duration = Duration::from_millis(10);

/// Queries in execution, and the gate at which the engine waits for requests.
#[derive(Debug)]
pub(super) struct QueryGate {
    queries: AtomicUsize,
    foreground: Arc<Foreground>,
}

impl Default for QueryGate {
    fn default() -> Self {
        Self { queries: AtomicUsize::new(0), foreground: Arc::new(Foreground::new(PATIENCE)) }
    }
}

impl QueryGate {
    /// Begins a request for which the engine waits; `None` if there is no query.
    pub(super) fn enter(&self) -> Option<ForegroundGuard> {
        (self.queries.load(Ordering::Acquire) > 0).then(|| self.foreground.enter())
    }
}

/// Extents of a device, one after the other, as data of the processing engine.
#[derive(Debug)]
pub struct DeviceExtents {
    device: Arc<Device>,
    /// Extents that are not empty.
    extents: Vec<PlacedExtent>,
    len: u64,
    watched: Arc<WatchedRanges>,
    /// Buffers of reads that have ended.
    buffers: Mutex<Vec<Vec<u8>>>,
}

/// Extent, and the position of its first byte in the data.
#[derive(Debug)]
struct PlacedExtent {
    at: u64,
    range: Range<u64>,
}

impl DeviceExtents {
    /// Watches extents of a device from now on, and gives access to their bytes.
    ///
    /// # Errors
    /// A message about the first extent that ends outside of the device, or that makes the data too long.
    pub fn new(device: &Arc<Device>, ranges: &[Range<u64>]) -> Result<DeviceExtents, String> {
        let (mut extents, mut len) = (Vec::<PlacedExtent>::new(), 0u64);
        for range in ranges.iter().filter(|range| !range.is_empty()) {
            if range.end > device.bytes() {
                return Err(format!("bytes {range:?} are outside of {} bytes", device.bytes()));
            }
            let next = len.checked_add(range.end - range.start);
            match extents.last_mut() {
                // Extents of a file are often neighbours, and one read is faster than two.
                Some(last) if last.range.end == range.start => last.range.end = range.end,
                _ => extents.push(PlacedExtent { at: len, range: range.clone() }),
            }
            len = next.ok_or("the extents have 2^64 bytes or more in total")?;
        }
        device.queries.queries.fetch_add(1, Ordering::AcqRel);
        let watched = extents.iter().map(|extent| extent.range.clone()).collect();
        let watched = device.lock_in_background().state.changes.watch(watched);
        Ok(DeviceExtents { device: Arc::clone(device), extents, len, watched, buffers: Mutex::default() })
    }

    /// Returns the address of a byte of the data.
    #[must_use]
    pub fn address(&self, position: u64) -> u64 {
        let extent = &self.extents[self.extent_of(position)];
        extent.range.start + (position - extent.at)
    }

    /// Returns the number of the extent that has a byte of the data.
    fn extent_of(&self, position: u64) -> usize {
        self.extents.partition_point(|extent| extent.at <= position).saturating_sub(1)
    }

    /// Reads bytes of one extent. The lock is held for one read of whole sectors.
    fn read_piece(&self, bytes: &Range<u64>, buffer: &mut Vec<u8>) -> Result<Range<usize>, Failure> {
        let from = bytes.start - bytes.start % SECTOR_BYTES;
        let sectors = (bytes.end.next_multiple_of(SECTOR_BYTES) - from) as usize;
        if buffer.len() < sectors {
            buffer.resize(sectors, 0);
        }
        let done = self.device.lock_in_background().read_in_storage(from, &mut buffer[..sectors])?;
        if let Some(due) = done.not_before {
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            self.device.replied(due);
        }
        let first = (bytes.start - from) as usize;
        Ok(first..first + (bytes.end - bytes.start) as usize)
    }
}

impl Drop for DeviceExtents {
    fn drop(&mut self) {
        self.device.lock_in_background().state.changes.unwatch(&self.watched);
        self.device.queries.queries.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Source for DeviceExtents {
    fn len(&self) -> u64 {
        self.len
    }

    fn read(&self, at: u64, len: usize, each: &mut dyn FnMut(&[u8])) -> Result<(), SourceError> {
        let end = at.checked_add(len as u64).filter(|end| *end <= self.len);
        let end = end.ok_or_else(|| SourceError(format!("bytes {at}+{len} are behind the end")))?;
        let mut buffer = self.buffers.lock().pop().unwrap_or_default();
        let (mut at, mut number) = (at, self.extent_of(at));
        let mut read = Ok(());
        while at < end && read.is_ok() {
            let PlacedExtent { at: begin, range } = &self.extents[number];
            let from = range.start + (at - begin);
            let bytes = from..range.end.min(from + (end - at));
            read = self.read_piece(&bytes, &mut buffer).map(|piece| each(&buffer[piece]));
            at += bytes.end - bytes.start;
            number += 1;
        }
        self.buffers.lock().push(buffer);
        read.map_err(|failure| SourceError(failure.to_string()))
    }

    fn version(&self) -> u64 {
        self.watched.version()
    }
}

impl Device {
    /// Gate at which the processing engine waits for requests of clients.
    pub(crate) fn foreground(&self) -> Arc<Foreground> {
        Arc::clone(&self.queries.foreground)
    }
}

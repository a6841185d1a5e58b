//! Characteristics of a workload that explain the effect of thresholds and page sizes.

use super::Chunks;
use crate::Result;
use frit_core::Hints;
use frit_trace::{ReqOp, Workload};
use serde::Serialize;
use std::collections::{BTreeMap, HashSet};

/// Counts of the writes of one size, or of several.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct WriteCounts {
    /// Number of writes.
    pub writes: u64,
    /// Number of writes marked as metadata.
    pub metadata: u64,
    /// Number of page accesses of the writes.
    pub parts: u64,
    /// Number of page accesses that cover only a part of the page.
    pub partial: u64,
}

/// Characteristics of a workload, from one pass over it, for one page size.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct WorkloadStats {
    /// Page size in bytes.
    pub page_bytes: u64,
    /// Number of requests.
    pub requests: u64,
    /// Number of reads.
    pub reads: u64,
    /// Number of bytes read.
    pub read_bytes: u64,
    /// Number of bytes written.
    pub write_bytes: u64,
    /// Writes by size in bytes.
    pub sizes: BTreeMap<u64, WriteCounts>,
    /// Number of pages written at least once.
    pub written_pages: u64,
    /// Number of pages that writes of at most a page write at least once.
    pub small_pages: u64,
    /// Number of those pages, and of pages written by requests marked as metadata.
    pub small_or_marked_pages: u64,
    /// Number of page reads, with repetition.
    pub read_parts: u64,
    /// Number of page reads from pages that had not been written before.
    pub read_unwritten: u64,
    /// Chunks that are read or written.
    pub chunks: Chunks,
}

impl WorkloadStats {
    /// Reads a workload and returns its characteristics.
    ///
    /// # Errors
    /// The workload cannot be read.
    pub fn of(workload: &mut Workload, page_bytes: u64, chunk_bytes: u64) -> Result<WorkloadStats> {
        let mut f = WorkloadStats { page_bytes, ..WorkloadStats::default() };
        let (mut written, mut small, mut marked, mut chunks) =
            (HashSet::new(), HashSet::new(), HashSet::new(), HashSet::new());
        let mut batch = Vec::new();
        while workload.fill(&mut batch)? {
            for r in &batch {
                f.requests += 1;
                if !matches!(r.op, ReqOp::Read | ReqOp::Write) || r.sectors == 0 {
                    continue;
                }
                let (start, bytes) = (r.sector.bytes(), r.bytes());
                chunks.extend(start / chunk_bytes..=(start + bytes - 1) / chunk_bytes);
                let pages = start / page_bytes..=(start + bytes - 1) / page_bytes;
                match r.op {
                    ReqOp::Write => {
                        f.write(start, bytes, r.hints.has(Hints::METADATA));
                        let metadata = r.hints.has(Hints::METADATA);
                        if bytes <= page_bytes {
                            small.extend(pages.clone());
                        }
                        if metadata {
                            marked.extend(pages.clone());
                        }
                        written.extend(pages);
                    }
                    ReqOp::Read => {
                        f.reads += 1;
                        f.read_bytes += bytes;
                        f.read_parts += pages.end() - pages.start() + 1;
                        f.read_unwritten += pages.filter(|p| !written.contains(p)).count() as u64;
                    }
                    ReqOp::Discard | ReqOp::Flush | ReqOp::Command(_) => {}
                }
            }
        }
        (f.written_pages, f.small_pages) = (written.len() as u64, small.len() as u64);
        f.small_or_marked_pages = small.union(&marked).count() as u64;
        f.chunks = Chunks::new(chunks, chunk_bytes);
        Ok(f)
    }

    fn write(&mut self, start: u64, bytes: u64, metadata: bool) {
        let (page, end) = (self.page_bytes, start + bytes);
        let parts = (end - 1) / page - start / page + 1;
        // Only the first and the last page can be partial; they may be the same.
        let partial = match parts {
            1 => u64::from(bytes < page),
            _ => u64::from(!start.is_multiple_of(page)) + u64::from(!end.is_multiple_of(page)),
        };
        self.write_bytes += bytes;
        let row = self.sizes.entry(bytes).or_default();
        row.writes += 1;
        row.metadata += u64::from(metadata);
        row.parts += parts;
        row.partial += partial;
    }

    /// Returns the sum of the writes of at most this many bytes.
    #[must_use]
    pub fn up_to(&self, bytes: u64) -> WriteCounts {
        self.sizes.range(..=bytes).fold(WriteCounts::default(), |a, (_, b)| a.plus(*b))
    }

    /// Returns the sum of all writes.
    #[must_use]
    pub fn all(&self) -> WriteCounts {
        self.up_to(u64::MAX)
    }

    /// Returns the share of writes of at most this many bytes; 0 without writes.
    #[must_use]
    pub fn share_up_to(&self, bytes: u64) -> f64 {
        share(self.up_to(bytes).writes, self.all().writes)
    }

    /// Returns the size of the smallest write, in bytes.
    #[must_use]
    pub fn smallest(&self) -> Option<u64> {
        self.sizes.keys().next().copied()
    }

    /// Returns the mean size of a write, in bytes.
    #[must_use]
    pub fn mean_write(&self) -> f64 {
        share(self.write_bytes, self.all().writes)
    }

    /// Returns the mean size of a read, in bytes.
    #[must_use]
    pub fn mean_read(&self) -> f64 {
        share(self.read_bytes, self.reads)
    }

    /// Returns the share of writes among reads and writes.
    #[must_use]
    pub fn write_ratio(&self) -> f64 {
        let writes = self.all().writes;
        share(writes, writes + self.reads)
    }
}

impl WriteCounts {
    fn plus(self, b: WriteCounts) -> WriteCounts {
        WriteCounts {
            writes: self.writes + b.writes,
            metadata: self.metadata + b.metadata,
            parts: self.parts + b.parts,
            partial: self.partial + b.partial,
        }
    }
}

/// Returns `n` divided by `of`; 0 if `of` is 0.
pub(crate) fn share(n: u64, of: u64) -> f64 {
    if of == 0 { 0.0 } else { n as f64 / of as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use frit_trace::Options;

    fn facts(csv: &'static str) -> WorkloadStats {
        let mut w = Workload::from_reader("t", Box::new(csv.as_bytes()), &Options::default()).unwrap();
        WorkloadStats::of(&mut w, 2048, 65_536).unwrap()
    }

    #[test]
    fn pages_are_counted_as_requests_cut_them() {
        let f = facts(
            "time_us,op,sector,sectors,flags\n\
             0,W,0,4,\n1,W,1,4,M\n2,W,4,1,\n3,W,2,8,\n4,R,0,4,\n5,R,400,1,\n6,F,0,0,\n",
        );
        // 2 KB in one page; 2 KB over two pages; 512 B; 4 KB over three pages, two of them partial.
        assert_eq!(f.up_to(512), WriteCounts { writes: 1, metadata: 0, parts: 1, partial: 1 });
        assert_eq!(f.up_to(2048), WriteCounts { writes: 3, metadata: 1, parts: 4, partial: 3 });
        assert_eq!(f.all(), WriteCounts { writes: 4, metadata: 1, parts: 7, partial: 5 });
        assert_eq!((f.written_pages, f.small_pages, f.small_or_marked_pages), (3, 2, 2));
        assert_eq!(f.chunks.bytes(), 2 * 65_536);
        assert_eq!((f.reads, f.read_parts, f.read_unwritten), (2, 2, 1));
        assert_eq!((f.requests, f.smallest()), (7, Some(512)));
        assert!((f.share_up_to(512) - 0.25).abs() < 1e-12);
    }
}

//! A workload with a packed address space, with or without the host's hints.

use frit_core::{Hints, SECTOR_BYTES};
use frit_trace::{ReqOp, Request, Workload};
use std::io::{self, Read, Write as _};
use std::sync::Arc;

/// Chunks of an address space that are read or written, in order of address. In the packed space,
/// the first is at 0 and each of the others follows the one before. Adjacent chunks stay adjacent:
/// no request is split, unlike packing in order of first access (`frit run --compact`), which
/// splits requests at the ends of chunks and so creates small writes.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Chunks {
    numbers: Arc<[u64]>,
    sectors: u64,
}

impl Chunks {
    /// Returns the chunks with these numbers; each has `bytes` bytes.
    pub(super) fn new(numbers: impl IntoIterator<Item = u64>, bytes: u64) -> Chunks {
        let mut numbers: Vec<u64> = numbers.into_iter().collect();
        numbers.sort_unstable();
        Chunks { numbers: numbers.into(), sectors: (bytes / SECTOR_BYTES).max(1) }
    }

    /// Returns the size of all chunks, in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.numbers.len() as u64 * self.sectors * SECTOR_BYTES
    }

    /// Returns the packed address of a sector. A sector outside all chunks, of a discard, maps to
    /// the start of the next chunk.
    fn place(&self, sector: u64) -> u64 {
        let (chunk, within) = (sector / self.sectors, sector % self.sectors);
        match self.numbers.binary_search(&chunk) {
            Ok(rank) => rank as u64 * self.sectors + within,
            Err(rank) => rank as u64 * self.sectors,
        }
    }

    /// Returns the packed first sector and length of a request; `None` for a discard of sectors
    /// that are never read or written.
    fn pack(&self, r: &Request) -> Option<(u64, u64)> {
        if r.op == ReqOp::Flush {
            return Some((0, 0));
        }
        let start = self.place(r.sector.0);
        // The last sector of a read or write is in a chunk; the end of a discard may be between
        // two.
        let length = match r.op {
            ReqOp::Discard => self.place(r.end()) - start,
            _ => u64::from(r.sectors),
        };
        (length > 0).then_some((start, length))
    }
}

/// Encodes a packed workload as frit's own recorded CSV, so that it can be read again as a
/// workload.
pub(super) struct PackedReader {
    workload: Workload,
    chunks: Chunks,
    hints: bool,
    batch: Vec<Request>,
    text: Vec<u8>,
    at: usize,
}

impl PackedReader {
    pub(super) fn new(workload: Workload, chunks: Chunks, hints: bool) -> PackedReader {
        let text = b"time_us,op,sector,sectors,flags\n".to_vec();
        PackedReader { workload, chunks, hints, batch: Vec::new(), text, at: 0 }
    }

    fn refill(&mut self) -> io::Result<bool> {
        self.text.clear();
        self.at = 0;
        if !self.workload.fill(&mut self.batch).map_err(io::Error::other)? {
            return Ok(false);
        }
        for r in &self.batch {
            let Some((start, sectors)) = self.chunks.pack(r) else { continue };
            let op = match r.op {
                ReqOp::Read => 'R',
                ReqOp::Write => 'W',
                ReqOp::Discard => 'D',
                ReqOp::Flush => 'F',
                ReqOp::Command(command) => {
                    let why =
                        format!("a sweep has no command {}; use a trace of reads and writes", command.name());
                    return Err(io::Error::other(why));
                }
            };
            // Of all hints, only metadata affects the placement of a write.
            let mark = if self.hints && r.hints.has(Hints::METADATA) { "M" } else { "" };
            let fua = if r.hints.has(Hints::FUA) { "F" } else { "" };
            writeln!(self.text, "{},{op},{start},{sectors},{mark}{fua}", r.at.0 / 1000)?;
        }
        Ok(true)
    }
}

impl Read for PackedReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.at == self.text.len() {
            if !self.refill()? {
                return Ok(0);
            }
        }
        let n = into.len().min(self.text.len() - self.at);
        into[..n].copy_from_slice(&self.text[self.at..self.at + n]);
        self.at += n;
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use frit_trace::Options;

    /// Chunks have 8 sectors; 1, 2 and 5 are accessed.
    const CSV: &str =
        "time_us,op,sector,sectors,flags\n0,W,8,16,M\n1,R,22,2,\n2,W,41,7,\n3,D,0,48,\n4,D,24,8,\n5,F,0,0,\n";

    fn packed(hints: bool) -> Vec<(ReqOp, u64, u32, bool)> {
        let open = |text: &'static str| {
            Workload::from_reader("t", Box::new(text.as_bytes()), &Options::default()).unwrap()
        };
        let chunks = Chunks::new([5, 1, 2], 4096);
        assert_eq!(chunks.bytes(), 3 * 4096);
        let reader = PackedReader::new(open(CSV), chunks, hints);
        let again = Workload::from_reader("p", Box::new(reader), &Options::default()).unwrap();
        again
            .map(|r| r.unwrap())
            .map(|r| (r.op, r.sector.0, r.sectors, r.hints.has(Hints::METADATA)))
            .collect()
    }

    #[test]
    fn requests_are_moved_and_never_cut() {
        use ReqOp::{Discard, Flush, Read, Write};
        let moved = [
            (Write, 0, 16, true),
            (Read, 14, 2, false),
            (Write, 17, 7, false),
            // All three chunks; the chunk that is never accessed is omitted.
            (Discard, 0, 24, false),
            (Flush, 0, 0, false),
        ];
        assert_eq!(packed(true), moved);
        assert!(packed(false).iter().all(|r| !r.3), "marks are taken away");
    }
}

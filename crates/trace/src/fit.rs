//! Fitting of a workload to a volume that may be smaller than the workload's address space.

use crate::request::restore_cut;
use crate::{Error, ReqOp, Request, Result, Scan};
use frit_core::{SECTOR_BYTES, Sector, size};
use std::collections::HashMap;

/// Default chunk size of [`Fit::Compact`]: 1 MiB. It is larger than any common page, block or
/// stripe unit, and small compared with the footprint of a trace.
pub const CHUNK_BYTES: u64 = 1 << 20;

/// Method of fitting a workload to a volume.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Fit {
    /// Addresses are not changed; an address past the end of the volume is an error.
    #[default]
    Strict,
    /// Addresses are taken modulo the volume. A request across the end of the volume is split.
    Wrap,
    /// Only the chunks that are touched are kept, packed in order of first touch. Inside a chunk,
    /// order, adjacency and alignment are preserved. A request across chunks that are no longer
    /// adjacent is split. A discard of chunks that were never touched is dropped.
    Compact {
        /// Size of a chunk in bytes; a multiple of 512.
        chunk: u64,
    },
}

/// Applies a [`Fit`] to batches of requests.
pub(crate) struct Fitter {
    name: String,
    capacity: u64,
    how: FitState,
    scratch: Vec<Request>,
    changes: FitChanges,
}

/// Counts of requests that a [`Fit`] changed in number.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
struct FitChanges {
    /// Requests of the workload.
    before: u64,
    /// Requests after the fit.
    after: u64,
    /// Requests that became several requests.
    split: u64,
    /// Discards without a touched chunk, which were dropped.
    dropped: u64,
}

impl FitChanges {
    /// Counts one request that became `parts` requests.
    fn count(&mut self, parts: usize) {
        self.before += 1;
        self.after += parts as u64;
        self.split += u64::from(parts > 1);
        self.dropped += u64::from(parts == 0);
    }
}

enum FitState {
    Strict,
    Wrap,
    Compact(Packer),
}

impl Fitter {
    /// Creates a fitter for a volume of `capacity` sectors. With a scan, a trace that is too large
    /// is refused immediately.
    pub(crate) fn new(name: &str, fit: Fit, capacity: u64, scan: Option<&Scan>) -> Result<Fitter> {
        if capacity == 0 {
            return Err(Error::spec("volume", "its capacity is 0 sectors"));
        }
        let how = match fit {
            Fit::Strict => FitState::Strict,
            Fit::Wrap => FitState::Wrap,
            Fit::Compact { chunk } => {
                if chunk == 0 || chunk % SECTOR_BYTES != 0 || chunk / SECTOR_BYTES > capacity {
                    let why = format!(
                        "use a multiple of 512 up to the volume's {}",
                        size::format(capacity * SECTOR_BYTES)
                    );
                    return Err(Error::spec(format!("chunk of {chunk} bytes"), why));
                }
                FitState::Compact(Packer::new(chunk / SECTOR_BYTES, capacity))
            }
        };
        if let Some(scan) = scan {
            let (name, volume) = (name.to_owned(), capacity * SECTOR_BYTES);
            // A scan counts chunks of the default size only, so another chunk size is checked
            // during the run.
            let compact = scan.chunks * CHUNK_BYTES;
            match fit {
                Fit::Strict if scan.end_sector > capacity => {
                    let trace = scan.end_sector.saturating_mul(SECTOR_BYTES);
                    return Err(Error::TooLarge { name, trace, volume, compact });
                }
                // The volume has whole chunks only.
                Fit::Compact { chunk: CHUNK_BYTES } if scan.chunks > volume / CHUNK_BYTES => {
                    let needed = Some(scan.chunks);
                    return Err(Error::CompactFull { name, needed, chunk: CHUNK_BYTES, volume });
                }
                _ => {}
            }
        }
        let changes = FitChanges::default();
        Ok(Fitter { name: name.into(), capacity, how, scratch: Vec::new(), changes })
    }

    /// Fits one batch of requests in place.
    pub(crate) fn apply(&mut self, requests: &mut Vec<Request>) -> Result<()> {
        let capacity = self.capacity;
        match &mut self.how {
            FitState::Strict => match requests.iter().find(|r| r.end() > capacity) {
                None => Ok(()),
                Some(r) => Err(Error::Outside {
                    name: self.name.clone(),
                    at: r.offset(),
                    bytes: r.bytes(),
                    volume: capacity * SECTOR_BYTES,
                }),
            },
            FitState::Wrap => {
                if requests.iter().any(|r| r.end() > capacity) {
                    self.scratch.clear();
                    for r in requests.iter() {
                        if r.end() > capacity {
                            stays(r, &self.name, "use a larger volume, without --wrap")?;
                        }
                        let before = self.scratch.len();
                        wrap(*r, capacity, &mut self.scratch);
                        self.changes.count(self.scratch.len() - before);
                    }
                    std::mem::swap(requests, &mut self.scratch);
                } else {
                    self.changes.before += requests.len() as u64;
                    self.changes.after += requests.len() as u64;
                }
                Ok(())
            }
            FitState::Compact(packer) => {
                self.scratch.clear();
                for r in requests.iter() {
                    stays(r, &self.name, "use a larger volume, without --compact")?;
                    let before = self.scratch.len();
                    if packer.pack(*r, &mut self.scratch).is_none() {
                        let (chunk, volume) = (packer.chunk * SECTOR_BYTES, capacity * SECTOR_BYTES);
                        let name = self.name.clone();
                        return Err(Error::CompactFull { name, needed: None, chunk, volume });
                    }
                    self.changes.count(self.scratch.len() - before);
                }
                std::mem::swap(requests, &mut self.scratch);
                Ok(())
            }
        }
    }

    /// Returns a sentence about the changed number of requests so far, if it changed.
    pub(crate) fn remark(&self) -> Option<String> {
        let FitChanges { before, after, split, dropped } = self.changes;
        if split == 0 && dropped == 0 {
            return None;
        }
        let how = match &self.how {
            FitState::Strict => return None,
            FitState::Wrap => "--wrap splits requests at the end of the volume".to_owned(),
            FitState::Compact(packer) => format!(
                "--compact splits requests between chunks of {} that are no longer adjacent, and leaves out \
                 discards of chunks that were never touched",
                size::format(packer.chunk * SECTOR_BYTES)
            ),
        };
        Some(format!(
            "{before} requests of the workload became {after} requests ({split} split, {dropped} left out): {how}"
        ))
    }
}

/// Refuses a command, which cannot be moved to other addresses.
fn stays(r: &Request, name: &str, remedy: &'static str) -> Result<()> {
    match r.op {
        ReqOp::Command(command) => Err(Error::CommandMoved {
            name: name.into(),
            command: command.name(),
            sector: r.sector.0,
            remedy,
        }),
        _ => Ok(()),
    }
}

fn wrap(r: Request, capacity: u64, out: &mut Vec<Request>) {
    if r.sectors == 0 {
        out.push(r);
        return;
    }
    let (mut at, mut left) = (r.sector.0 % capacity, u64::from(r.sectors));
    // A second pass over the volume would only repeat the first.
    left = left.min(capacity);
    let first = out.len();
    while left > 0 {
        let n = left.min(capacity - at);
        out.push(Request { sector: Sector(at), sectors: n as u32, ..r });
        left -= n;
        at = 0;
    }
    restore_cut(&mut out[first..], r.cut);
}

/// Chunks below this number use a table, the others a hash map: 4 Mi chunks are 4 TiB at 1 MiB.
const DENSE: u64 = 4 << 20;
/// Entry of the table for a chunk that was not touched yet.
const NONE: u32 = u32::MAX;

/// Assigns new positions to touched chunks, in order of first touch.
struct Packer {
    chunk: u64,
    chunks_max: u32,
    used: u32,
    dense: Vec<u32>,
    sparse: HashMap<u64, u32>,
}

impl Packer {
    fn new(chunk: u64, capacity: u64) -> Packer {
        let chunks_max = u32::try_from(capacity / chunk).unwrap_or(NONE).min(NONE - 1);
        Packer { chunk, chunks_max, used: 0, dense: Vec::new(), sparse: HashMap::new() }
    }

    fn get(&self, chunk: u64) -> Option<u32> {
        if chunk < DENSE {
            self.dense.get(chunk as usize).copied().filter(|&c| c != NONE)
        } else {
            self.sparse.get(&chunk).copied()
        }
    }

    fn place(&mut self, chunk: u64) -> Option<u32> {
        if let Some(c) = self.get(chunk) {
            return Some(c);
        }
        if self.used == self.chunks_max {
            return None;
        }
        let new = self.used;
        self.used += 1;
        if chunk < DENSE {
            if self.dense.len() <= chunk as usize {
                self.dense.resize(chunk as usize + 1, NONE);
            }
            self.dense[chunk as usize] = new;
        } else {
            self.sparse.insert(chunk, new);
        }
        Some(new)
    }

    /// Packs one request into `out`. Returns `None` if the volume is full.
    fn pack(&mut self, r: Request, out: &mut Vec<Request>) -> Option<()> {
        if r.sectors == 0 {
            out.push(r);
            return Some(());
        }
        let first = out.len();
        let (mut at, end) = (r.sector.0, r.end());
        while at < end {
            let chunk = at / self.chunk;
            let stop = end.min((chunk + 1).saturating_mul(self.chunk));
            // A discard does not allocate a chunk: a chunk that was never touched
            // needs none.
            let place = if r.op == ReqOp::Discard { self.get(chunk) } else { Some(self.place(chunk)?) };
            if let Some(place) = place {
                let to = u64::from(place) * self.chunk + at % self.chunk;
                let n = (stop - at) as u32;
                // Chunks that are adjacent after packing are joined again, so that a request is not
                // split needlessly.
                match out[first..].last_mut() {
                    Some(before) if before.end() == to => before.sectors += n,
                    _ => out.push(Request { sector: Sector(to), sectors: n, ..r }),
                }
            }
            at = stop;
        }
        restore_cut(&mut out[first..], r.cut);
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SectorCut;
    use frit_core::{Hints, Nanos};
    use proptest::prelude::*;

    fn req(op: ReqOp, sector: u64, sectors: u32) -> Request {
        Request {
            at: Nanos(1),
            sector: Sector(sector),
            sectors,
            device: 0,
            op,
            hints: Hints::FUA,
            cut: SectorCut::NONE,
        }
    }

    fn fit(fit: Fit, capacity: u64, rs: &[Request]) -> Result<Vec<(u64, u32)>> {
        let mut v = rs.to_vec();
        Fitter::new("t", fit, capacity, None)?.apply(&mut v)?;
        Ok(v.iter().map(|r| (r.sector.0, r.sectors)).collect())
    }

    #[test]
    fn strict_names_both_sizes_and_the_ways_out() {
        let e = fit(Fit::Strict, 100, &[req(ReqOp::Read, 96, 8)]).unwrap_err().to_string();
        for part in ["byte 49152", "of 4 KiB", "volume of 50 KiB", "--wrap", "--compact", "larger volume"] {
            assert!(e.contains(part), "{part}: {e}");
        }
        assert!(fit(Fit::Strict, 104, &[req(ReqOp::Read, 96, 8)]).is_ok());
    }

    #[test]
    fn wrapping_splits_at_the_end() {
        assert_eq!(fit(Fit::Wrap, 100, &[req(ReqOp::Write, 296, 8)]).unwrap(), [(96, 4), (0, 4)]);
        assert_eq!(fit(Fit::Wrap, 100, &[req(ReqOp::Write, 150, 8)]).unwrap(), [(50, 8)]);
        assert_eq!(fit(Fit::Wrap, 10, &[req(ReqOp::Write, 5, 37)]).unwrap(), [(5, 5), (0, 5)]);
    }

    #[test]
    fn packing_keeps_neighbours_together() {
        let chunk = Fit::Compact { chunk: 4096 };
        let w = |s, n| req(ReqOp::Write, s, n);
        // Chunks 100 and 101, touched by one request, stay together; chunk 50 is third; a request
        // across chunks 49 and 50 is split.
        let got = fit(chunk, 64, &[w(804, 8), w(401, 2), w(398, 4), w(800, 1)]).unwrap();
        assert_eq!(got, [(4, 8), (17, 2), (30, 2), (16, 2), (0, 1)]);
        assert_eq!(fit(chunk, 64, &[req(ReqOp::Discard, 0, 64)]).unwrap(), []);
        let e = fit(chunk, 16, &[w(0, 1), w(80, 1), w(800, 1)]).unwrap_err().to_string();
        assert!(e.contains("more than 2 chunks of 4 KiB"), "{e}");
        assert!(fit(Fit::Compact { chunk: 100 }, 16, &[]).is_err());
    }

    #[test]
    fn a_changed_number_of_requests_is_told() {
        let told = |how: Fit, capacity: u64, rs: &[Request]| {
            let mut fitter = Fitter::new("t", how, capacity, None).unwrap();
            for r in rs {
                fitter.apply(&mut vec![*r]).unwrap();
            }
            fitter.remark()
        };
        let w = |s, n| req(ReqOp::Write, s, n);
        let chunk = Fit::Compact { chunk: 4096 };
        assert_eq!(told(chunk, 64, &[w(0, 8), w(8, 8), w(4, 8)]), None);
        let some = told(chunk, 64, &[w(0, 8), w(16, 8), w(4, 16), req(ReqOp::Discard, 800, 8)]).unwrap();
        assert!(
            some.starts_with("4 requests of the workload became 5 requests (1 split, 1 left out)"),
            "{some}"
        );
        assert!(some.contains("chunks of 4 KiB"), "{some}");
        assert_eq!(told(Fit::Wrap, 100, &[w(150, 8), w(0, 100)]), None);
        let some = told(Fit::Wrap, 100, &[w(0, 8), w(296, 8)]).unwrap();
        assert!(
            some.starts_with("2 requests of the workload became 3 requests (1 split, 0 left out)"),
            "{some}"
        );
        assert_eq!(told(Fit::Strict, 100, &[w(0, 8)]), None);
    }

    #[test]
    fn requests_of_bytes_keep_their_ends() {
        let r = req(ReqOp::Write, 0, 1).with_bytes(398 * 512 + 100, 3 * 512);
        for (how, want) in [
            (Fit::Wrap, vec![(98 * 512 + 100, 924), (0, 612)]),
            (Fit::Compact { chunk: 4096 }, vec![(6 * 512 + 100, 924), (8 * 512, 612)]),
        ] {
            let mut v = vec![r];
            Fitter::new("t", how, 100, None).unwrap().apply(&mut v).unwrap();
            // Chunks that stay together are not split.
            let got: Vec<(u64, u64)> = v.iter().map(|r| (r.offset(), r.bytes())).collect();
            let joined = vec![(want[0].0, 1536)];
            assert!(got == want || got == joined, "{how:?}: {got:?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_fitted_lies_inside_and_keeps_its_size(
            rs in proptest::collection::vec((0u64..1 << 40, 1u32..5000), 1..50),
            capacity in 5000u64..100_000,
        ) {
            let rs: Vec<Request> = rs.iter().map(|&(s, n)| req(ReqOp::Write, s, n)).collect();
            let total: u64 = rs.iter().map(|r| u64::from(r.sectors)).sum();
            for how in [Fit::Wrap, Fit::Compact { chunk: 4096 }] {
                if let Ok(v) = fit(how, capacity, &rs) {
                    prop_assert!(v.iter().all(|&(s, n)| n > 0 && s + u64::from(n) <= capacity));
                    prop_assert_eq!(v.iter().map(|&(_, n)| u64::from(n)).sum::<u64>(), total);
                }
            }
        }
    }
}

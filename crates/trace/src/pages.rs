//! Conversion of sizes to whole pages, for traces whose driver added a sector to requests:
//! BIOTracer traces have many requests of 9, 17 or 25 sectors from an aligned start.

use crate::reading::{FactSource, Reading};
use crate::request::{SECTOR_LIMIT, SectorCut};
use crate::{ReqOp, Request};

/// Number of sectors in a page of 4 KiB.
const PAGE: u64 = 8;
/// A hint is given if at least one request in this number has an added sector: a twentieth (our
/// choice).
const HINT_SHARE: u64 = 20;

/// Converts sizes to whole pages, or counts the requests that seem to have an added sector.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct PageRounder {
    /// Requests are changed.
    round: bool,
    requests: u64,
    /// Requests with one sector more than whole pages, from the start of a page.
    added: u64,
    /// Other requests that were not whole pages and were widened.
    widened: u64,
}

/// Returns `true` if a request has whole pages from a page boundary, and one sector more.
#[inline]
fn has_added_sector(r: &Request) -> bool {
    let sectors = u64::from(r.sectors);
    // `&` instead of `&&` avoids branches: this runs for every request.
    r.sector.0.is_multiple_of(PAGE) & (sectors % PAGE == 1) & (sectors > PAGE)
}

impl PageRounder {
    pub(crate) fn new(round: bool) -> PageRounder {
        PageRounder { round, ..PageRounder::default() }
    }

    /// Counts requests, and converts them if the option is set.
    pub(crate) fn apply(&mut self, requests: &mut [Request]) {
        self.requests += requests.len() as u64;
        if !self.round {
            self.added += requests.iter().filter(|r| has_added_sector(r)).count() as u64;
            return;
        }
        // A command has the blocks that it names.
        let moves = |r: &&mut Request| r.sectors > 0 && !matches!(r.op, ReqOp::Command(_));
        for r in requests.iter_mut().filter(moves) {
            if has_added_sector(r) && r.is_whole() {
                r.sectors -= 1;
                self.added += 1;
            } else if !(r.sector.0 | u64::from(r.sectors)).is_multiple_of(PAGE) || !r.is_whole() {
                widen(r);
                self.widened += 1;
            }
        }
    }

    /// Adds the conversion, or a hint that it is possible, to the reading of a trace.
    pub(crate) fn add_to(&self, reading: &mut Reading) {
        let PageRounder { requests, added, widened, .. } = self;
        if self.round {
            let value = format!(
                "whole pages of 4 KiB: of {requests} requests {added} lost an added sector, {widened} were widened"
            );
            reading.fact("sizes", value, FactSource::Stated);
        } else if *added > 0 && added * HINT_SHARE >= *requests {
            let why = format!(
                "{added} of {requests} requests have one sector more than whole pages, as drivers add; \
                 --whole-pages removes it"
            );
            reading.fact("sizes", "as the trace has them", FactSource::Assumed(why));
        }
    }
}

/// Widens a request to whole pages, as far as the limits of addresses and sizes allow.
fn widen(r: &mut Request) {
    let end = r.end().next_multiple_of(PAGE).min(SECTOR_LIMIT / PAGE * PAGE).max(r.end());
    r.sector.0 -= r.sector.0 % PAGE;
    let most = u64::from(u32::MAX) / PAGE * PAGE;
    r.sectors = (end - r.sector.0).min(most) as u32;
    r.cut = SectorCut::NONE;
}

#[cfg(test)]
mod tests {
    use super::*;
    use frit_core::{Hints, Nanos, Sector};

    fn request(sector: u64, sectors: u32) -> Request {
        let op = if sectors == 0 { ReqOp::Flush } else { ReqOp::Write };
        Request {
            at: Nanos(0),
            sector: Sector(sector),
            sectors,
            device: 0,
            op,
            hints: Hints::NONE,
            cut: SectorCut::NONE,
        }
    }

    #[test]
    fn a_sector_that_was_added_goes_and_the_rest_is_widened() {
        let mut pages = PageRounder::new(true);
        let mut all = [
            (0, 8, 0, 8),
            (8, 9, 8, 8),
            (16, 25, 16, 24),
            // A single sector is less than a page, not a page and one sector more; an unaligned
            // start does not indicate an added sector.
            (8, 1, 8, 8),
            (9, 9, 8, 16),
            (9, 7, 8, 8),
            (8, 10, 8, 16),
            (0, 0, 0, 0),
            (SECTOR_LIMIT - 3, 3, SECTOR_LIMIT - 7, 7),
            (4, u32::MAX, 0, u32::MAX - 7),
        ]
        .map(|(sector, sectors, at, len)| (request(sector, sectors), request(at, len)));
        for (r, want) in &mut all {
            pages.apply(std::slice::from_mut(r));
            assert_eq!(r.sector, want.sector);
            assert_eq!(r.sectors, want.sectors, "{want:?}");
            assert!(r.end() <= SECTOR_LIMIT);
        }
        let mut reading = Reading::default();
        pages.add_to(&mut reading);
        let told = reading.get("sizes").unwrap().to_string();
        assert_eq!(
            told,
            "sizes: whole pages of 4 KiB: of 10 requests 2 lost an added sector, 6 were widened (stated)"
        );
    }

    #[test]
    fn many_odd_sizes_are_hinted_at_and_few_are_not() {
        let told = |odd: usize| {
            let mut pages = PageRounder::default();
            let mut all = vec![request(8, 8); 100 - odd];
            all.resize(100, request(8, 17));
            let before = all.clone();
            pages.apply(&mut all);
            assert_eq!(all, before);
            let mut reading = Reading::default();
            pages.add_to(&mut reading);
            reading.get("sizes").map(ToString::to_string)
        };
        assert!(told(5).unwrap().contains("5 of 100 requests"));
        assert_eq!((told(4), told(0)), (None, None));
    }
}

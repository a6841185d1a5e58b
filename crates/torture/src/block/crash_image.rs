//! Builds the media image that a cut leaves.

use crate::block::cut::{Cut, PersistedWords, TornState};
use crate::block::graph::{Effect, Graph, WrittenRange};
use crate::block::medium::{SharedMedium, TortureMedium};
use crate::block::nand_layout::NandLayout;
use frit_core::split_mix::mix;
use frit_media::nand::SPARE_RECORD_BYTES;
use std::sync::MutexGuard;

/// Granularity at which a cut tears writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TearGranularity {
    /// Bytes of PCM that persist or are lost as a unit: 8 or 64. On a disk the unit is the sector.
    pub word_bytes: u64,
    /// An interrupted program of an odd page also damages the page before it (multi-level cells
    /// store two bits).
    pub paired_pages: bool,
}

impl Default for TearGranularity {
    fn default() -> Self {
        TearGranularity { word_bytes: 8, paired_pages: false }
    }
}

/// Builds crash images of one recorded run. It is fastest when the cuts come in rising order of the
/// first command that each leaves open.
#[derive(Debug)]
pub struct ImageBuilder<'a> {
    graph: &'a Graph,
    media: &'a [SharedMedium],
    tearing: TearGranularity,
    /// Number of leading commands that are already part of the base.
    rolled: usize,
}

/// Returns the index of the first command that the cut does not make certain, or the number of
/// commands if it makes all of them certain.
#[must_use]
pub fn first_uncertain(graph: &Graph, cut: &Cut) -> usize {
    (0..graph.len()).find(|&n| !graph.is_certain(n, &cut.set)).unwrap_or(graph.len())
}

impl<'a> ImageBuilder<'a> {
    /// Creates an applier over media whose base is the contents before the run.
    #[must_use]
    pub fn new(graph: &'a Graph, media: &'a [SharedMedium], tearing: TearGranularity) -> ImageBuilder<'a> {
        let applier = ImageBuilder { graph, media, tearing, rolled: 0 };
        let mut locked = applier.lock();
        for m in &mut locked {
            m.undo();
        }
        // Writes that precede every recorded command are part of each image, so they join the base.
        for p in &graph.early {
            applier.put(&mut locked, p, p.at, p.len);
        }
        for m in &mut locked {
            m.commit();
        }
        drop(locked);
        applier
    }

    fn lock(&self) -> Vec<MutexGuard<'a, TortureMedium>> {
        self.media.iter().map(SharedMedium::lock).collect()
    }

    fn put(&self, media: &mut [MutexGuard<'a, TortureMedium>], p: &WrittenRange, at: u64, len: u32) {
        let from = p.from + (at - p.at) as u32;
        media[p.medium as usize].put(at, &self.graph.bytes[from as usize..(from + len) as usize]);
    }

    fn whole(&self, media: &mut [MutexGuard<'a, TortureMedium>], node: usize) {
        for p in &self.graph.nodes[node].pieces {
            self.put(media, p, p.at, p.len);
        }
    }

    /// Builds the image of a cut and returns a hash of its contents: equal hashes mean equal
    /// images. Cuts must come in rising order of their first open command.
    pub fn apply(&mut self, cut: &Cut, open: usize) -> u64 {
        let mut media = self.lock();
        for m in &mut media {
            m.undo();
        }
        // Every cut from here on has the commands before `open`. They join the base once, and are
        // not applied again for each cut.
        if open > self.rolled {
            for n in self.rolled..open {
                self.whole(&mut media, n);
            }
            for m in &mut media {
                m.commit();
            }
            self.rolled = open;
        }
        let chosen = self.choose_words(cut);
        let mut next = 0;
        let mut hash = mix(self.rolled as u64);
        for n in self.rolled..self.graph.len() {
            if self.graph.is_certain(n, &cut.set) {
                self.whole(&mut media, n);
                // A fence changes no bytes, so it does not distinguish images.
                if !self.graph.nodes[n].pieces.is_empty() {
                    hash = mix(hash ^ n as u64);
                }
            }
            // The words are put in the order of the log: where two writes overlap, the later one
            // wins.
            while let Some(&(node, piece, at, len)) = chosen.get(next).filter(|c| c.0 == n) {
                let p = self.graph.nodes[node].pieces[piece];
                self.put(&mut media, &p, at, len);
                hash = mix(hash ^ at ^ (n as u64) << 32);
                next += 1;
            }
        }
        for &(n, torn) in &cut.torn {
            let seed = mix(cut.seed ^ u64::from(n));
            self.tear(&mut media, n as usize, torn, seed);
            hash = mix(hash ^ seed ^ torn as u64);
        }
        hash
    }

    /// Chooses the words that persist of the writes that the cut leaves uncertain: node, piece,
    /// address, length.
    fn choose_words(&self, cut: &Cut) -> Vec<(usize, usize, u64, u32)> {
        let mut open = Vec::new();
        for n in self.rolled..self.graph.len() {
            let node = &self.graph.nodes[n];
            if node.effect != Effect::Write
                || self.graph.is_certain(n, &cut.set)
                || !node.before.within(&cut.set)
            {
                continue;
            }
            let word = self.tearing.word_bytes.max(node.word_bytes);
            for (i, p) in node.pieces.iter().enumerate() {
                let end = p.at + u64::from(p.len);
                let mut at = p.at;
                while at < end {
                    let to = ((at / word + 1) * word).min(end);
                    open.push((n, i, at, (to - at) as u32));
                    at = to;
                }
            }
        }
        let total = open.len().max(1) as u64;
        let keep = |i: usize, at: u64| match cut.words {
            PersistedWords::None => false,
            PersistedWords::All => true,
            PersistedWords::Some(chance) => mix(cut.seed ^ at ^ (i as u64) << 32) as u8 <= chance,
            PersistedWords::One(k) => i as u64 == u64::from(k) % total,
            PersistedWords::AllBut(k) => i as u64 != u64::from(k) % total,
            PersistedWords::Mask(m) => i < 64 && m >> i & 1 == 1,
        };
        open.into_iter().enumerate().filter(|(i, (_, _, at, _))| keep(*i, *at)).map(|(_, w)| w).collect()
    }

    fn tear(&self, media: &mut [MutexGuard<'a, TortureMedium>], n: usize, torn: TornState, seed: u64) {
        let node = &self.graph.nodes[n];
        let Some(plan) = media.get(usize::from(node.medium)).and_then(|m| m.nand) else { return };
        let run = if torn.is_of_program() { plan.program_pages } else { 1 };
        // A program with flipped bits reached the page; the bits are flipped below.
        if torn == TornState::Flipped || torn.is_of_program() && (run > 1 || plan.record_copies > 1) {
            self.whole(media, n);
        }
        let Some(m) = media.get_mut(usize::from(node.medium)) else { return };
        tear_page(m, &plan, node.addr, torn, seed);
        // Each of the pages that one command programs has codewords of its own.
        for page in node.addr + 1..node.addr + run {
            let seed = mix(seed ^ page);
            let torn = match seed % 4 {
                0 => TornState::Unreadable,
                1 => TornState::Flipped,
                2 => TornState::LooksErased,
                // This page is complete.
                _ => continue,
            };
            tear_page(m, &plan, page, torn, seed);
        }
        // The two pages of a pair share their cells, so an interrupted program of the odd page
        // damages the even one.
        let odd = node.addr % plan.pages_per_block / run % 2 == 1;
        if self.tearing.paired_pages && torn.is_of_program() && odd {
            for page in node.addr - run..node.addr {
                m.poke(page * plan.page_bytes, |b| garbage(b, seed ^ 2), plan.page_bytes as usize);
            }
        }
    }
}

/// Fills a range with pseudo-random bytes.
fn garbage(bytes: &mut [u8], seed: u64) {
    for (i, x) in bytes.iter_mut().enumerate() {
        *x = mix(seed ^ i as u64) as u8;
    }
}

/// Puts a page, or the block that begins with it, into a state that an interrupted program or erase
/// leaves.
fn tear_page(m: &mut TortureMedium, plan: &NandLayout, page: u64, torn: TornState, seed: u64) {
    let (data_at, page_bytes) = (page * plan.page_bytes, plan.page_bytes as usize);
    match torn {
        TornState::Unreadable => {
            m.poke(data_at, |b| garbage(b, seed), page_bytes);
            // Of two copies of the record, the second one may be complete.
            let copies = if mix(seed ^ 3).is_multiple_of(4) { 1 } else { plan.record_copies };
            for copy in 0..copies {
                m.poke(plan.record_at(page, copy), |b| garbage(b, seed ^ (1 + copy)), SPARE_RECORD_BYTES);
            }
        }
        TornState::Flipped => {
            let bits = 1 + mix(seed) % 5;
            let flip = |b: &mut [u8]| {
                for i in 0..bits {
                    let bit = mix(seed ^ i) as usize % (b.len() * 8);
                    b[bit / 8] ^= 1 << (bit % 8);
                }
            };
            m.poke(data_at, flip, page_bytes);
        }
        TornState::LooksErased => {
            let part = mix(seed) as usize % page_bytes;
            m.poke(data_at, |b| garbage(&mut b[..part], seed), page_bytes);
            for copy in 0..plan.record_copies {
                m.poke(plan.record_at(page, copy), |b| b.fill(0), SPARE_RECORD_BYTES);
            }
            // Cells that only look erased spoil what is programmed over them until the next
            // erase.
            m.mark_falsely_erased(page);
        }
        TornState::Weak | TornState::Part | TornState::AllLookErased => {
            for p in page..page + plan.pages_per_block {
                m.mark_falsely_erased(p);
                match (torn, mix(seed ^ p) % 3) {
                    (TornState::AllLookErased, _) | (TornState::Part, 0) => {
                        for copy in 0..plan.record_copies {
                            m.poke(plan.record_at(p, copy), |b| b.fill(0), SPARE_RECORD_BYTES);
                        }
                    }
                    (TornState::Part, 1) => {
                        for copy in 0..plan.record_copies {
                            let seed = seed ^ p ^ copy << 32;
                            m.poke(plan.record_at(p, copy), |b| garbage(b, seed), SPARE_RECORD_BYTES);
                        }
                    }
                    _ => m.poke(p * plan.page_bytes, |b| b[0] ^= 0x10, page_bytes),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::access_log::AccessLog;
    use crate::block::command_set::CommandSet;
    use crate::block::recording_sink::{recorded, recording_sink, start_recording};
    use crate::block::target::MediumShape;
    use frit_core::{Cause, Cmd, MediumKind, Op, Sink, UnitId};
    use std::sync::Arc;

    const LAYOUT: NandLayout =
        NandLayout { page_bytes: 512, pages_per_block: 2, pages: 4, program_pages: 1, record_copies: 1 };

    fn shape(unit: u16) -> MediumShape {
        MediumShape {
            of_top: true,
            name: format!("nand-{unit}"),
            kind: MediumKind::Nand,
            nand: Some(LAYOUT),
            line_bytes: 0,
            word_bytes: 8,
            data_bytes: LAYOUT.records_at(),
            verified: true,
            units: unit..unit + 1,
        }
    }

    #[test]
    fn a_torn_program_damages_the_medium_that_executes_it() {
        let access_log = Arc::new(AccessLog::default());
        let mut sink = recording_sink(access_log.clone(), None, 0..0);
        start_recording(&mut sink);
        let start = Sink::start(&sink);
        let (op, cause) = (Op::NandProgram, Cause::Host);
        sink.emit(Cmd { addr: 1, len: 512, hazard: 0, unit: UnitId(1), op, cause }, start);
        let graph = Graph::new(&recorded(sink), access_log.take(), &[shape(0), shape(1)]);
        let media = [0, 1].map(|number| SharedMedium::new(TortureMedium::new(number, Some(LAYOUT))));
        for medium in &media {
            drop(medium.open(LAYOUT.states_at()));
        }
        let torn = vec![(0, TornState::Unreadable)];
        let cut = Cut { set: CommandSet::new(1), torn, words: PersistedWords::None, seed: 7 };
        ImageBuilder::new(&graph, &media, TearGranularity::default()).apply(&cut, 0);
        let damaged = |medium: &SharedMedium| medium.lock().bytes().iter().any(|&b| b != 0);
        assert!(!damaged(&media[0]) && damaged(&media[1]));
    }
    /// The pages of a program unit have codewords of their own, so some may be complete, and others
    /// not, after one interrupted program.
    #[test]
    fn a_torn_program_of_several_pages_tears_each_in_its_own_way() {
        const UNITS: NandLayout = NandLayout { program_pages: 4, pages_per_block: 4, ..LAYOUT };
        let access_log = Arc::new(AccessLog::default());
        let mut sink = recording_sink(access_log.clone(), None, 0..0);
        start_recording(&mut sink);
        let start = Sink::start(&sink);
        let (op, cause) = (Op::NandProgram, Cause::Host);
        sink.emit(Cmd { addr: 0, len: 2048, hazard: 0, unit: UnitId(0), op, cause }, start);
        access_log.write(0, 0, &[9; 2048]);
        let graph =
            Graph::new(&recorded(sink), access_log.take(), &[MediumShape { nand: Some(UNITS), ..shape(0) }]);
        let medium = SharedMedium::new(TortureMedium::new(0, Some(UNITS)));
        drop(medium.open(UNITS.states_at()));
        let media = [medium];
        let mut complete = std::collections::HashSet::new();
        for seed in 0..512 {
            let torn = vec![(0, TornState::Unreadable)];
            let cut = Cut { set: CommandSet::new(1), torn, words: PersistedWords::None, seed };
            ImageBuilder::new(&graph, &media, TearGranularity::default()).apply(&cut, 0);
            let image = media[0].lock();
            complete.insert([0, 1, 2, 3].map(|page| image.bytes()[page * 512..][..512] == [9; 512]));
        }
        assert!(complete.iter().all(|pages| !pages[0]), "the first page has the state of the cut");
        assert_eq!(complete.len(), 8, "{complete:?}");
    }
}

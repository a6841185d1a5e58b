//! The NAND space itself: what it owns, how it starts, what it shows.

use super::{BlockState, Blocks, Gc, GcPolicy, Wear, WearPolicy};
use crate::Token;
use frit_core::planted::{Bug, is};
use frit_core::{BlockId, Cause, Error, Lpn, Ppn, Result, Sink, Target, UnitState};
use frit_media::memory::table32;
use frit_media::{Expected, Nand, Store};
use std::collections::VecDeque;

/// Free blocks of a unit that only cleaning may take: one for the block that it fills, one for a
/// program that fails meanwhile.
pub(super) const RESERVE: usize = 2;

/// Streams of a unit. Each writes a block of its own, so that data of different lifetime is kept
/// apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stream {
    /// Host data.
    Host = 0,
    /// Host data that is known to be cold.
    Cold = 1,
    /// Pages that cleaning moves.
    Gc = 2,
}

pub(super) const STREAMS: usize = 3;

/// The reserve, with one block more where stops have to be survived: each may cost a page of the block
/// that cleaning fills, and with that the page that a victim's last one needs.
fn reserve(lasting: bool) -> usize {
    RESERVE + usize::from(lasting)
}

/// Emptied blocks of a unit that wait for a flush together, at most: each flush syncs files twice.
const HELD_MAX: usize = 4;

/// How the space is cleaned and leveled.
#[derive(Clone, Debug)]
pub struct FlashConfig {
    /// Which block to clean.
    pub gc: Gc,
    /// Which free block to use.
    pub wear: Wear,
    /// Cleaning goes along with writes once a unit has this many free blocks or fewer (at least 3).
    pub low_blocks: usize,
    /// Cleaning in idle time goes on until a unit has this many free blocks.
    pub high_blocks: usize,
    /// Moves pages by copyback, inside the plane, instead of over the bus and through ECC.
    pub copyback: bool,
}

/// What cleaning did. Commands are counted by the medium; these are events that are no commands.
#[derive(Clone, Copy, Default, Debug)]
pub struct FlashStats {
    /// Victims cleaned and erased.
    pub victims: u64,
    /// Valid pages that victims held when they were chosen.
    pub victim_valid: u64,
    /// Times a write had to wait for cleaning since its unit had no block to spare.
    pub forced: u64,
    /// Blocks moved for wear leveling.
    pub relocated: u64,
    /// Blocks retired after a failed program or erase.
    pub retired: u64,
    /// Pages whose program failed and was repeated elsewhere.
    pub program_retries: u64,
}

/// A page that cleaning has moved.
#[derive(Clone, Copy, Debug)]
pub struct Moved<T> {
    /// The logical page.
    pub lpn: Lpn,
    /// Where it lies now.
    pub to: Ppn,
    /// The sequence number in its spare area.
    pub seq: u64,
    /// When its program is done.
    pub done: T,
}

/// The map from logical to physical pages, which the layer above owns.
pub trait ForwardMap<T: Token> {
    /// A page was moved. Returns when the map says so durably.
    ///
    /// # Errors
    /// A medium of the map that fails.
    fn moved<S: Sink<Tok = T>>(&mut self, sink: &mut S, page: Moved<T>) -> Result<T>;

    /// These pages (LPN + 1, 0 for none) will be moved soon: a map larger than the processor's cache
    /// fetches their entries together, instead of waiting for one after the other.
    fn prepare(&self, _pages: &[u32]) {}

    /// The low bits of the sequence number that a page has to have.
    fn tag(&self, lpn: Lpn) -> u16;

    /// A page that was to be moved cannot be read: it is given up.
    fn lost(&mut self, lpn: Lpn, why: &Error);

    /// Makes the map outlive the machine: what was given up before may then be erased.
    ///
    /// # Errors
    /// A medium of the map that fails.
    fn outlive<S: Sink<Tok = T>>(&mut self, sink: &mut S) -> Result<()>;
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Open {
    pub(super) block: u32,
    pub(super) next: u32,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Victim<T> {
    pub(super) block: u32,
    /// The next page to look at.
    pub(super) cursor: u32,
    /// Valid pages when it was chosen, and pages gained by cleaning it.
    pub(super) valid: u32,
    pub(super) gain: u32,
    /// Why it is cleaned.
    pub(super) cause: Cause,
    /// Retire it instead of erasing it.
    pub(super) doomed: bool,
    /// When all that was moved out of it is durable.
    pub(super) done: T,
}

#[derive(Clone, Debug)]
pub(super) struct Unit<T> {
    pub(super) free: VecDeque<u32>,
    pub(super) open: [Option<Open>; STREAMS],
    /// Blocks that a stop left begun beyond one a stream: they are filled on before a free one is taken.
    pub(super) begun: Vec<Open>,
    pub(super) victim: Option<Victim<T>>,
    pub(super) doomed: Vec<u32>,
    /// Blocks that are erased after the next flush.
    pub(super) emptied: Vec<Victim<T>>,
    /// Pages that cleaning owes, times the victim's gain.
    pub(super) debt: u32,
    pub(super) valid_pages: u32,
    pub(super) usable_blocks: u32,
}

/// A NAND medium with its pools, reverse map and cleaning. `T` is the sink's token.
#[derive(Debug)]
pub struct Flash<T, N: Store> {
    pub(super) nand: Nand<N>,
    pub(super) config: FlashConfig,
    pub(super) blocks: Blocks,
    pub(super) units: Vec<Unit<T>>,
    /// PPN → LPN + 1 for valid pages, 0 for all others: zero pages of the kernel need no filling.
    pub(super) reverse: Vec<u32>,
    pub(super) seq: u64,
    /// Valid pages that a unit takes at most.
    pub(super) share: u32,
    pub(super) stats: FlashStats,
    pub(super) scratch: Vec<u8>,
    pub(super) read_only: Option<String>,
    /// The unit whose turn it is to be cleaned in idle time, and whether any may want to be.
    pub(super) turn: u32,
    pub(super) restless: bool,
    /// When all that was given up in a block since its erase is durable elsewhere; empty where the map
    /// is not kept with each write.
    pub(super) freed: Vec<T>,
    /// When entries name all pages that were programmed. Where the map is kept with each write a new block is begun
    /// after it: a stop leaves at most one block a stream with pages that no entry names, and cleaning room to go on.
    pub(super) named: T,
    /// Time at which the header says for certain that the layer is in use: no page is programmed and no block is
    /// erased before, since a recovery behind a header that says "halted" looks for neither.
    pub(crate) in_use: T,
    /// Time at which all erases so far are done.
    pub(crate) erased: T,
    /// Blocks are emptied first and erased after the next flush.
    pub(super) holds_back: bool,
    /// Free blocks of a unit that only cleaning may take.
    pub(super) reserve: usize,
}

impl<T: Token, N: Store> Flash<T, N> {
    /// An empty space over an erased medium. `share` is how many valid pages a unit will hold at
    /// most.
    #[must_use]
    pub fn new(nand: Nand<N>, config: FlashConfig, share: u32) -> Flash<T, N> {
        let g = nand.geometry();
        let scratch = if N::HOLDS { vec![0; g.page_bytes as usize] } else { Vec::new() };
        let reverse = table32(g.pages() as usize);
        let mut flash = Flash {
            blocks: Blocks::new(g.units(), g.blocks_per_unit(), g.pages_per_block),
            units: Vec::new(),
            reverse,
            seq: 0,
            share,
            stats: FlashStats::default(),
            scratch,
            read_only: None,
            turn: 0,
            restless: true,
            freed: Vec::new(),
            named: T::default(),
            in_use: T::default(),
            erased: T::default(),
            holds_back: false,
            reserve: RESERVE,
            nand,
            config,
        };
        flash.reset();
        flash
    }

    /// An erase waits for what was given up in the block to be durable elsewhere; with `hold_back` also
    /// for the next flush.
    pub(crate) fn keep_order(&mut self, hold_back: bool) {
        self.freed = vec![T::default(); self.blocks.count() as usize];
        self.holds_back = hold_back;
        self.reserve = reserve(true);
        self.config.low_blocks = self.config.low_blocks.max(self.reserve + 1);
        self.config.high_blocks = self.config.high_blocks.max(self.config.low_blocks);
        if hold_back {
            // Cleaning starts earlier, so that several blocks wait for one flush.
            let ahead = (self.blocks.blocks_per_unit() as usize / 32).min(HELD_MAX);
            self.config.low_blocks += ahead;
            self.config.high_blocks += ahead;
        }
    }

    /// Forgets all pages: every block that is not bad is free.
    pub(crate) fn reset(&mut self) {
        let g = *self.nand.geometry();
        self.blocks = Blocks::new(g.units(), g.blocks_per_unit(), g.pages_per_block);
        self.reverse.fill(0);
        self.freed.fill(T::default());
        (self.named, self.in_use, self.erased) = (T::default(), T::default(), T::default());
        self.restless = true;
        self.units.clear();
        for unit in 0..g.units() {
            let mut free = VecDeque::new();
            for b in self.blocks.of_unit(unit) {
                if self.nand.is_bad(BlockId(b)) {
                    self.blocks.block[b as usize].state = BlockState::Bad;
                } else {
                    free.push_back(b);
                }
            }
            self.units.push(Unit {
                usable_blocks: free.len() as u32,
                free,
                open: [None; STREAMS],
                begun: Vec::new(),
                victim: None,
                doomed: Vec::new(),
                emptied: Vec::new(),
                debt: 0,
                valid_pages: 0,
            });
        }
        self.config.gc.reset(&self.blocks);
    }

    /// Fewest usable pages of any unit, less what cleaning needs for itself: what over-provisioning
    /// is counted from. `lasting`: the space has to go on after stops.
    #[must_use]
    pub fn usable_pages_per_unit(nand: &Nand<N>, lasting: bool) -> u32 {
        let g = nand.geometry();
        let spare = (reserve(lasting) + STREAMS) as u32;
        (0..g.units())
            .map(|u| {
                let blocks = u * g.blocks_per_unit()..(u + 1) * g.blocks_per_unit();
                let good = blocks.filter(|&b| !nand.is_bad(BlockId(b))).count() as u32;
                good.saturating_sub(spare) * g.pages_per_block
            })
            .min()
            .unwrap_or(0)
    }

    /// The medium.
    #[must_use]
    pub fn nand(&self) -> &Nand<N> {
        &self.nand
    }

    /// The medium, for faults and preconditioning.
    pub fn nand_mut(&mut self) -> &mut Nand<N> {
        &mut self.nand
    }

    /// The state of blocks.
    #[must_use]
    pub fn blocks(&self) -> &Blocks {
        &self.blocks
    }

    /// What cleaning did.
    #[must_use]
    pub fn stats(&self) -> FlashStats {
        self.stats
    }

    /// DRAM for the reverse map and the block tables, in bytes.
    #[must_use]
    pub fn dram_bytes(&self) -> u64 {
        // A block: its row, the medium's row, and greedy's two links, 8 bytes each.
        self.reverse.len() as u64 * 4 + u64::from(self.blocks.count()) * 24
    }

    /// Valid pages in all units.
    #[must_use]
    pub fn valid_pages(&self) -> u64 {
        self.units.iter().map(|u| u64::from(u.valid_pages)).sum()
    }

    /// Free blocks in all units.
    #[must_use]
    pub fn free_blocks(&self) -> u64 {
        self.units.iter().map(|u| u.free.len() as u64).sum()
    }

    /// The unit in which a page that has none yet is written: its home by static striping, or the
    /// next idle one when the home is busy. Only units below their share are taken.
    pub(crate) fn first_unit<S: Sink<Tok = T>>(&self, sink: &S, lpn: Lpn) -> u32 {
        let n = self.units.len() as u32;
        let home = lpn.0 % n;
        let room = |u: u32| self.units[u as usize].valid_pages < self.share;
        let idle = |u: u32| matches!(sink.unit(self.nand.unit_id(u)), UnitState::Idle);
        if room(home) && idle(home) {
            return home;
        }
        let others = || (home..n).chain(0..home);
        others().find(|&u| room(u) && idle(u)).or_else(|| others().find(|&u| room(u))).unwrap_or(home)
    }

    /// Reads part of a valid page, which has to be the version that `tag` says.
    #[inline]
    pub(crate) fn read<S: Sink<Tok = T>>(
        &mut self,
        sink: &mut S,
        ppn: Ppn,
        offset: u32,
        into: Target<'_>,
        tag: u16,
        cause: Cause,
    ) -> Result<T> {
        let expect = self.expected(ppn, || tag);
        let after = sink.start();
        self.nand.read_of(sink, ppn, offset, into, expect, cause, after)
    }

    /// What a valid page has to be, where there are bytes to compare.
    #[inline]
    pub(super) fn expected(&self, ppn: Ppn, tag: impl Fn() -> u16) -> Option<Expected> {
        (N::HOLDS && !is(Bug::OwnerUnchecked))
            .then(|| Expected { lpn: self.reverse[ppn.idx()].wrapping_sub(1), tag: tag() })
    }

    /// The next sequence number: every page version in every medium has one. Its low 16 bits are never
    /// zero, which is the tag of a page that was never written.
    #[inline]
    pub(crate) fn next_seq(&mut self) -> u64 {
        self.seq += 1;
        if self.seq as u16 == 0 {
            self.seq += 1;
        }
        self.seq
    }

    /// An entry names a page that was programmed, once `done`.
    #[inline]
    pub(crate) fn note_named<S: Sink<Tok = T>>(&mut self, sink: &mut S, done: T) {
        if !self.freed.is_empty() {
            self.named = sink.join(self.named, done);
        }
    }

    /// Whether a page is the first of its block, where that has to wait for [`Flash::named`].
    #[inline]
    pub(super) fn begins(&self, ppn: Ppn) -> bool {
        !self.freed.is_empty() && self.nand.geometry().page_in_block(ppn) == 0
    }

    /// The sequence number given last.
    #[inline]
    pub(crate) fn last_seq(&self) -> u64 {
        self.seq
    }

    /// These pages will become invalid soon: fetches what taking note of it needs.
    pub(crate) fn expect(&self, pages: impl Iterator<Item = Ppn>) {
        let rows = pages.map(|ppn| {
            let block = self.nand.geometry().block_of(ppn);
            self.reverse[ppn.idx()] ^ u32::from(self.blocks.valid(block.0))
        });
        std::hint::black_box(rows.fold(0, |a, r| a ^ r));
    }

    /// This page will be read soon: fetches what that needs.
    #[inline]
    pub(crate) fn read_soon(&self, ppn: Ppn) {
        std::hint::black_box(self.reverse[ppn.idx()]);
        self.nand.expect(ppn);
    }

    /// Takes note that a page is no longer the current one, once `done`.
    #[inline]
    pub(crate) fn give_up<S: Sink<Tok = T>>(&mut self, sink: &mut S, ppn: Ppn, done: T) {
        if !self.freed.is_empty() {
            let block = self.nand.geometry().block_of(ppn).idx();
            self.freed[block] = sink.join(self.freed[block], done);
        }
        self.invalidate(ppn);
    }

    /// Takes note that a page is no longer the current one.
    #[inline]
    pub(crate) fn invalidate(&mut self, ppn: Ppn) {
        debug_assert_ne!(self.reverse[ppn.idx()], 0, "page {} is not valid", ppn.0);
        self.reverse[ppn.idx()] = 0;
        let block = self.nand.geometry().block_of(ppn).0;
        let row = &mut self.blocks.block[block as usize];
        row.valid -= 1;
        row.touched = self.blocks.clock;
        let sealed = row.state == BlockState::Sealed;
        self.units[self.blocks.unit_of(block) as usize].valid_pages -= 1;
        if sealed {
            self.config.gc.invalidated(block, &self.blocks);
        }
    }

    /// The logical page that lies at a physical one.
    #[must_use]
    pub fn lpn_of(&self, ppn: Ppn) -> Option<Lpn> {
        match self.reverse[ppn.idx()] {
            0 => None,
            n => Some(Lpn(n - 1)),
        }
    }

    /// Refuses writes once a unit has too few blocks left.
    pub(super) fn degrade(&mut self, unit: u32) {
        let u = &self.units[unit as usize];
        // With fewer, all invalid pages may lie in open blocks, and cleaning finds no victim.
        let need = self.share.div_ceil(self.blocks.pages_per_block()) + (self.reserve + STREAMS) as u32;
        if u.usable_blocks < need {
            let has = u.usable_blocks;
            self.refuse_writes(format!(
                "unit {unit} of NAND has {has} usable blocks and needs {need}: too many went bad"
            ));
        }
    }

    /// Refuses writes from now on, for the first reason that is given.
    pub(crate) fn refuse_writes(&mut self, why: String) {
        self.read_only.get_or_insert(why);
    }

    /// Whether writes are refused, and why.
    ///
    /// # Errors
    /// `ReadOnly` when they are.
    #[inline]
    pub fn writable(&self) -> Result<()> {
        match &self.read_only {
            Some(why) => Err(Error::ReadOnly { why: why.clone() }),
            None => Ok(()),
        }
    }

    /// Changes the cleaning policy; the new one starts from the blocks as they are.
    pub(crate) fn set_gc(&mut self, mut gc: Gc) {
        gc.reset(&self.blocks);
        let mut sealed: Vec<u32> =
            (0..self.blocks.count()).filter(|&b| self.blocks.state(b) == BlockState::Sealed).collect();
        sealed.sort_by_key(|&b| std::cmp::Reverse(self.blocks.age(b)));
        for b in sealed {
            gc.sealed(b, &self.blocks);
        }
        self.config.gc = gc;
        self.restless = true;
    }

    /// Changes the wear-leveling policy.
    pub(crate) fn set_wear(&mut self, wear: Wear, threshold: u32) {
        self.config.wear = wear;
        self.config.wear.set_threshold(threshold);
    }

    /// How the space is cleaned and leveled.
    #[must_use]
    pub fn config(&self) -> &FlashConfig {
        &self.config
    }

    pub(crate) fn config_mut(&mut self) -> &mut FlashConfig {
        self.restless = true;
        &mut self.config
    }
}

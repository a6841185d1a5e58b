//! The NAND space: its state, initialisation, and accessors.

use super::dynamic_slc::DynamicSlc;
use super::gather::Gather;
use super::pacing::{PaceAccount, Pacing, PacingPolicy};
use super::slc_cache::{SlcCache, SlcFull};
use super::unit_order::UnitOrder;
use super::{BlockTable, BlockUse, Gc, GcPolicy, WearLeveling, WearPolicy};
use crate::health::Health;
use crate::planted::FlashBug;
use frit_core::convert::{count_u32, low_u16, to_u64, to_usize};
use frit_core::planted::is_planted;
use frit_core::{BlockId, Cause, Error, Lpn, Nanos, Ppn, Result, Sink, Tok};
use frit_media::memory::table32;
use frit_media::{ExpectedPage, NandArray, Spare, prefetch_value};
use std::collections::VecDeque;

/// Free blocks of a unit reserved for garbage collection: one for the block that it fills, one in
/// case a program fails in it.
pub(super) const RESERVE: usize = 2;

/// Write streams of a unit. Each writes to its own block, so that data of different lifetime is
/// kept apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NandStream {
    /// Host data.
    Host,
    /// Host data that is classified as cold.
    Cold,
    /// Pages moved by garbage collection.
    Gc,
    /// Host data in the cache with one bit a cell.
    Slc,
    /// Host data with a placement handle, from 1 on; that without one is in [`NandStream::Host`].
    Handle(u8),
    /// Pages of such data that garbage collection moves, if it keeps them apart.
    GcOf(u8),
}

impl NandStream {
    /// Returns the number of the stream as an index into a table with one row for each.
    #[inline]
    pub(super) const fn idx(self) -> usize {
        match self {
            NandStream::Host => 0,
            NandStream::Cold => 1,
            NandStream::Gc => 2,
            NandStream::Slc => 3,
            NandStream::Handle(n) => 3 + n as usize,
            NandStream::GcOf(n) => 3 + HANDLES_MAX + n as usize,
        }
    }

    /// Placement handle of the data; 0 for none.
    pub(super) const fn handle(self) -> u8 {
        match self {
            NandStream::Handle(n) | NandStream::GcOf(n) => n,
            _ => 0,
        }
    }

    /// Stream of garbage collection for data with a handle.
    pub(super) const fn gc_of(handle: u8) -> NandStream {
        if handle == 0 { NandStream::Gc } else { NandStream::GcOf(handle) }
    }

    /// Returns `true` for a stream of garbage collection.
    pub(super) const fn is_gc(self) -> bool {
        matches!(self, NandStream::Gc | NandStream::GcOf(_))
    }
}

/// Streams that every layer has.
const STREAMS: usize = 3;
/// Largest number of placement handles, beside data without one.
pub(crate) const HANDLES_MAX: usize = 3;
/// All streams.
pub(super) const OPEN_BLOCKS: usize = STREAMS + 1 + 2 * HANDLES_MAX;

/// Blocks of a unit that a layer needs beside those of its data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SpareNeeds {
    /// Crashes must be survived.
    pub(crate) lasting: bool,
    /// Open blocks for placement handles.
    pub(crate) handles: usize,
}

impl From<bool> for SpareNeeds {
    fn from(lasting: bool) -> SpareNeeds {
        SpareNeeds { lasting, handles: 0 }
    }
}

/// Size of the reserve. Where crashes must be survived it has one more block: each crash may cost a
/// page of the block that garbage collection fills, which could be the page needed for the last
/// page of a victim.
fn reserve(lasting: bool) -> usize {
    RESERVE + usize::from(lasting)
}

/// Largest number of empty blocks of a unit that wait for one flush: each flush syncs files twice.
const HELD_MAX: usize = 4;

/// Configuration of garbage collection and wear leveling.
#[derive(Clone, Debug)]
pub struct FlashConfig {
    /// Garbage-collection policy.
    pub gc: Gc,
    /// Wear-leveling policy.
    pub wear: WearLeveling,
    /// Pacing of the copies of garbage collection.
    pub pacing: Pacing,
    /// Writes pay for garbage collection when a unit has this many free blocks or fewer (at least
    /// 3).
    pub low_blocks: usize,
    /// Idle-time garbage collection runs until a unit has this many free blocks.
    pub high_blocks: usize,
    /// Garbage collection moves pages by copyback, inside the plane, instead of over the bus and
    /// through ECC.
    pub copyback: bool,
    /// Open blocks of a unit for placement handles.
    pub handles: usize,
    /// Garbage collection keeps data of different placement handles apart.
    pub isolated: bool,
    /// Rule for writes while the cache with one bit a cell is full.
    pub slc_full: SlcFull,
    /// Time without requests after which the cache with one bit a cell is emptied; `None` for never.
    pub slc_idle: Option<Nanos>,
}

/// Counters of garbage collection. The medium counts commands; these are events that are not
/// commands.
#[derive(Clone, Copy, Default, Debug)]
pub struct FlashStats {
    /// Victims chosen.
    pub victims: u64,
    /// Valid pages in victims when they were chosen.
    pub victim_valid: u64,
    /// Victims that a write had to wait for, since its unit had no spare block.
    pub forced: u64,
    /// Flushes that a unit made to erase the blocks that it held back until a flush.
    pub space_flushes: u64,
    /// Number of blocks moved for wear leveling.
    pub relocated: u64,
    /// Number of blocks retired after a failed program or erase.
    pub retired: u64,
    /// Pages programmed again elsewhere after a program failure.
    pub program_retries: u64,
    /// Host pages written into the cache with one bit a cell.
    pub slc_written: u64,
    /// Host pages written past it, because it was full.
    pub slc_bypassed: u64,
    /// Blocks of the cache that were emptied.
    pub slc_folds: u64,
    /// Pages moved out of them.
    pub slc_folded: u64,
    /// Blocks that were emptied while a write waited.
    pub slc_forced: u64,
    /// Free blocks that an erase moved into a dynamic cache, or out of it.
    pub slc_mode_changes: u64,
}

/// Page moved by garbage collection.
#[derive(Clone, Copy, Debug)]
pub struct MovedPage {
    /// Logical page.
    pub lpn: Lpn,
    /// Old physical page.
    pub from: Ppn,
    /// New physical page.
    pub to: Ppn,
    /// Sequence number in its spare area.
    pub seq: u64,
    /// Token that completes when the page is programmed.
    pub done: Tok,
}

/// Map from logical to physical pages, owned by the layer above.
pub trait ForwardMap {
    /// Updates the map for a moved page. Returns a token that completes when the change is durable.
    ///
    /// # Errors
    /// A medium of the map fails.
    fn moved(&mut self, sink: &mut Sink, page: MovedPage) -> Result<Tok>;

    /// Prefetches the entries of pages (LPN + 1, 0 for none) that will be moved soon. A map larger
    /// than the processor's cache loads them together, rather than one after the other.
    fn prepare(&self, _pages: &[u32]) {}

    /// Low bits of the sequence number that the current version of a page has.
    fn tag(&self, lpn: Lpn) -> u16;

    /// Returns `false` if the map does not know the version of a page, which then counts as the one in
    /// its spare area.
    fn knows_version(&self, _lpn: Lpn) -> bool {
        true
    }

    /// Marks a page as lost: it was to be moved, and is unreadable.
    fn lost(&mut self, lpn: Lpn, why: &Error);

    /// Marks a page as lost, as [`ForwardMap::lost`], for a map that needs its physical page.
    fn lost_at(&mut self, lpn: Lpn, _from: Ppn, why: &Error) {
        self.lost(lpn, why);
    }

    /// Returns a token for which a copy of the page waits, beside the page itself: a copy must not be
    /// durable before what the contents of the page require.
    fn copy_after(&self, _lpn: Lpn) -> Tok {
        Tok::default()
    }

    /// Returns `true` if the record of a lost page must stay where it is, so that a recovery does not
    /// take an older version for the newest one. Its block is then retired instead of erased.
    fn retires_lost(&self) -> bool {
        false
    }

    /// Returns `true` if a page keeps its sequence number when garbage collection moves it, so that a
    /// recovery knows two pages with the same contents. Otherwise the copy is a newer version.
    fn keeps_versions(&self) -> bool {
        false
    }

    /// Makes the map durable against a power loss. Pages invalidated before may then be erased.
    ///
    /// # Errors
    /// A medium of the map fails.
    fn make_durable(&mut self, sink: &mut Sink) -> Result<()>;
}

#[derive(Clone, Copy, Debug)]
/// Block that a stream writes to, and its next page.
pub(super) struct OpenBlock {
    pub(super) block: u32,
    pub(super) next: u32,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct GcVictim {
    pub(super) block: u32,
    /// Next page to examine.
    pub(super) cursor: u32,
    /// Valid pages when it was chosen.
    pub(super) valid: u32,
    /// Pages gained by collecting it.
    pub(super) gain: u32,
    /// Reason of the collection, for the media's counters.
    pub(super) cause: Cause,
    /// The block is retired instead of erased.
    pub(super) retiring: bool,
    /// Token that completes when all pages moved out of it are durable.
    pub(super) done: Tok,
}

#[derive(Clone, Debug)]
pub(super) struct Unit {
    pub(super) free: VecDeque<u32>,
    pub(super) open: [Option<OpenBlock>; OPEN_BLOCKS],
    /// Partly written blocks left by a crash, beyond one for each stream. They are filled before a
    /// free block is taken.
    pub(super) partial_blocks: Vec<OpenBlock>,
    pub(super) victim: Option<GcVictim>,
    pub(super) retiring: Vec<u32>,
    /// Empty blocks that are erased after the next flush.
    pub(super) awaiting_flush: Vec<GcVictim>,
    /// Copies that garbage collection owes.
    pub(super) pace: PaceAccount,
    pub(super) valid_pages: u32,
    pub(super) usable_blocks: u32,
    /// Pages that garbage collection has read, on devices that program several at once.
    pub(super) gather: Gather,
    pub(super) slc: SlcCache,
    /// Time at which all erases of the unit so far are done.
    pub(super) erased: Tok,
}

/// NAND devices with their free pools, reverse map and garbage collection.
#[derive(Debug)]
pub struct Flash {
    pub(super) nand: NandArray,
    pub(super) config: FlashConfig,
    pub(super) blocks: BlockTable,
    pub(super) units: Vec<Unit>,
    /// PPN → LPN + 1 for valid pages, 0 for all others: memory that the kernel provides as zeros
    /// needs no initialisation.
    pub(super) reverse: Vec<u32>,
    pub(super) seq: u64,
    /// Largest number of valid pages in a unit.
    pub(super) share: u32,
    pub(super) stats: FlashStats,
    pub(super) scratch: Vec<u8>,
    /// Pages of a program unit: 1 unless the device programs several with one command.
    pub(super) unit_pages: u32,
    /// Spare areas of the last program unit.
    pub(super) unit_spares: Vec<Spare>,
    /// Pages that garbage collection reads with one command; kept to reuse its memory.
    pub(super) run: Vec<Ppn>,
    pub(crate) health: Health,
    /// Unit that is examined first in idle time.
    pub(super) next_idle_unit: u32,
    /// `false` after a search of all units found no work for idle time.
    pub(super) idle_work_pending: bool,
    /// For each block, a token that completes when all pages invalidated since its erase are
    /// durable elsewhere. Empty unless the map is written with each write.
    pub(super) freed: Vec<Tok>,
    /// Token that completes when entries name all programmed pages. Where the map is written with
    /// each write, the first page of a new block waits for it. A crash then leaves at most one
    /// block for each stream with pages that no entry names, so garbage collection has free blocks
    /// to continue with.
    pub(crate) named: Tok,
    /// Time at which the header durably says that the layer is in use. No page is programmed and no
    /// block is erased before, because recovery after a halt looks for neither.
    pub(crate) in_use: Tok,
    /// Time at which all erases so far are done.
    pub(crate) erased: Tok,
    /// The first page of a block waits for the earlier erases of its unit. After a crash, the blocks that
    /// were free when the last block was begun are then erased. Otherwise each of them can still hold old
    /// pages whose new versions are lost, and a recovery finds no page to write its mark into.
    pub(super) begins_after_erases: bool,
    /// Time of the last request, or of a later moment at which units still executed commands.
    pub(super) last_request: Nanos,
    /// The time without requests has been long enough, and no request has come since.
    pub(super) in_idle_time: bool,
    /// Placement handle of the data in each block; empty unless garbage collection keeps them apart.
    pub(super) handle_of: Vec<u8>,
    /// Units in the order in which writes are striped over them; empty for that of their numbers.
    order: Vec<u32>,
    /// Size of the cache with one bit a cell, if it takes blocks of the common pool.
    pub(super) dynamic_slc: Option<DynamicSlc>,
    /// Writes go past the cache with one bit a cell.
    pub(super) past_cache: bool,
    /// Empty blocks are held back, and erased after the next flush.
    pub(super) erase_after_flush: bool,
    /// Free blocks of a unit reserved for garbage collection.
    pub(super) reserve: usize,
    /// Blocks by which garbage collection starts earlier than configured, so that several victims
    /// wait for one flush.
    ahead: usize,
}

impl Flash {
    /// Returns `true` if the media keep the bytes that are written.
    #[inline]
    pub(crate) fn stores_bytes(&self) -> bool {
        self.nand.stores_bytes()
    }

    /// Creates an empty space over erased devices. `share` is the largest number of valid pages
    /// in a unit.
    #[must_use]
    pub fn new(nand: NandArray, config: FlashConfig, share: u32) -> Flash {
        let g = nand.geometry();
        let scratch = if nand.stores_bytes() { vec![0; to_usize(g.page_bytes)] } else { Vec::new() };
        let reverse = table32(to_usize(g.pages()));
        let mut flash = Flash {
            blocks: BlockTable::new(g),
            units: Vec::new(),
            reverse,
            seq: 0,
            share,
            stats: FlashStats::default(),
            scratch,
            unit_pages: g.program_pages,
            unit_spares: Vec::new(),
            run: Vec::new(),
            health: Health::default(),
            next_idle_unit: 0,
            idle_work_pending: true,
            freed: Vec::new(),
            named: Tok::default(),
            in_use: Tok::default(),
            erased: Tok::default(),
            begins_after_erases: false,
            last_request: Nanos::ZERO,
            in_idle_time: false,
            handle_of: vec![0; if config.isolated { to_usize(g.blocks()) } else { 0 }],
            order: Vec::new(),
            dynamic_slc: None,
            past_cache: false,
            erase_after_flush: false,
            reserve: RESERVE,
            ahead: 0,
            nand,
            config,
        };
        flash.reset();
        flash
    }

    /// Makes each erase wait until the pages invalidated in the block are durable elsewhere and,
    /// with `hold_back`, also for the next flush.
    pub(crate) fn enforce_erase_order(&mut self, hold_back: bool) {
        self.freed = vec![Tok::default(); to_usize(self.blocks.count())];
        self.erase_after_flush = hold_back;
        self.reserve = reserve(true);
        if hold_back {
            self.ahead = (to_usize(self.blocks.blocks_per_unit()) / 32).min(HELD_MAX);
        }
        self.set_thresholds(self.config.low_blocks, self.config.high_blocks);
    }

    /// Sets the numbers of free blocks at which garbage collection starts and stops. Both are
    /// raised to what the reserve and the held blocks need.
    pub(crate) fn set_thresholds(&mut self, low_blocks: usize, high_blocks: usize) {
        // Garbage collection must start before only the reserve is left, and as early as writes can be
        // ahead of it.
        let low = low_blocks.max(self.reserve + self.config.pacing.burst_blocks().max(1));
        self.config.low_blocks = low + self.ahead;
        self.config.high_blocks = high_blocks.max(low) + self.ahead;
    }

    /// Forgets all pages: every block that is not bad becomes free.
    pub(crate) fn reset(&mut self) {
        let g = *self.nand.geometry();
        self.blocks = BlockTable::new(&g);
        self.adopt_modes();
        self.reverse.fill(0);
        self.freed.fill(Tok::default());
        self.handle_of.fill(0);
        (self.named, self.in_use, self.erased) = (Tok::default(), Tok::default(), Tok::default());
        // The tables are read from the media again; `adopted` refuses writes if blocks are missing.
        self.health = Health::default();
        self.idle_work_pending = true;
        self.units.clear();
        for unit in 0..g.units() {
            let (mut free, mut slc) = (VecDeque::new(), SlcCache::default());
            for b in self.blocks.of_unit(unit) {
                if self.nand.is_bad(BlockId(b)) {
                    self.blocks.set_state(b, BlockUse::Bad);
                } else if self.blocks.is_slc(b) {
                    slc.free.push_back(b);
                } else {
                    free.push_back(b);
                }
            }
            self.units.push(Unit {
                usable_blocks: count_u32(free.len() + if g.slc.dynamic { slc.free.len() } else { 0 }),
                free,
                open: [None; OPEN_BLOCKS],
                partial_blocks: Vec::new(),
                victim: None,
                retiring: Vec::new(),
                awaiting_flush: Vec::new(),
                pace: PaceAccount::default(),
                valid_pages: 0,
                gather: Gather::default(),
                erased: Tok::default(),
                slc,
            });
        }
        self.config.gc.reset(&self.blocks);
    }

    /// Smallest number of usable pages of any unit, less the needs of garbage collection: the base
    /// of over-provisioning. With `lasting`, the reserve for crashes is included.
    pub(crate) fn usable_pages_per_unit(nand: &NandArray, needs: impl Into<SpareNeeds>) -> u32 {
        let g = nand.geometry();
        let spare = Self::spare_blocks(needs.into());
        (0..g.units())
            .map(|u| {
                let blocks = u * g.blocks_per_unit() + g.slc.blocks..(u + 1) * g.blocks_per_unit();
                let good = count_u32(blocks.filter(|&b| !nand.is_bad(BlockId(b))).count());
                good.saturating_sub(spare) * g.pages_per_block
            })
            .min()
            .unwrap_or(0)
    }

    /// Number of pages of a unit without bad blocks, less the needs of garbage collection.
    pub(crate) fn nominal_pages_per_unit(g: &frit_media::NandGeometry, needs: impl Into<SpareNeeds>) -> u32 {
        let spare = g.slc.blocks + Self::spare_blocks(needs.into());
        g.blocks_per_unit().saturating_sub(spare) * g.pages_per_block
    }

    /// Makes the space refuse writes if a unit has too few usable blocks.
    pub(crate) fn refuse_if_too_small(&mut self) {
        (0..count_u32(self.units.len())).for_each(|unit| self.degrade(unit));
    }

    /// Blocks of a unit that hold no pages of the capacity: the reserve, and the open blocks.
    fn spare_blocks(needs: SpareNeeds) -> u32 {
        count_u32(reserve(needs.lasting) + STREAMS + needs.handles)
    }

    /// The NAND devices.
    #[must_use]
    pub fn nand(&self) -> &NandArray {
        &self.nand
    }

    /// The NAND devices, for fault injection and preconditioning.
    pub fn nand_mut(&mut self) -> &mut NandArray {
        &mut self.nand
    }

    /// State of the blocks.
    #[must_use]
    pub fn blocks(&self) -> &BlockTable {
        &self.blocks
    }

    /// Counters of garbage collection.
    #[must_use]
    pub fn stats(&self) -> FlashStats {
        self.stats
    }

    /// DRAM for the reverse map and the block tables, in bytes.
    #[must_use]
    pub fn dram_bytes(&self) -> u64 {
        // For each block: its row, the medium's row, and the two links of the greedy policy, 8
        // bytes each.
        to_u64(self.reverse.len()) * 4 + u64::from(self.blocks.count()) * 24
    }

    /// Number of valid pages in all units.
    #[must_use]
    pub fn valid_pages(&self) -> u64 {
        self.units.iter().map(|u| u64::from(u.valid_pages)).sum()
    }

    /// Number of free blocks in all units.
    #[must_use]
    pub fn free_blocks(&self) -> u64 {
        self.units.iter().map(|u| to_u64(u.free.len())).sum()
    }

    /// Unit for a page that is not in NAND yet: its home unit by static striping, or the next idle
    /// unit if that one is busy. Only units below their share are considered.
    pub(crate) fn first_unit(&self, sink: &Sink, lpn: Lpn) -> u32 {
        let n = count_u32(self.units.len());
        let first = lpn.0 % n;
        let room = |u: u32| self.has_room(u);
        let idle = |u: u32| sink.is_idle(self.nand.unit_id(u));
        let home = self.unit_at(first);
        if room(home) && idle(home) {
            return home;
        }
        let others = || (first..n).chain(0..first).map(|at| self.unit_at(at));
        others().find(|&u| room(u) && idle(u)).or_else(|| others().find(|&u| room(u))).unwrap_or(home)
    }

    /// Stripes writes over the units in this order.
    pub(crate) fn stripe_over(&mut self, order: UnitOrder) {
        let units = order.units(self.nand.geometry());
        self.order = if order == UnitOrder::default() { Vec::new() } else { units };
    }

    /// Unit at a position of the order of writes.
    #[inline]
    pub(super) fn unit_at(&self, at: u32) -> u32 {
        self.order.get(to_usize(at)).copied().unwrap_or(at)
    }

    /// Returns `true` if a unit is below its share of the valid pages.
    pub(crate) fn has_room(&self, unit: u32) -> bool {
        self.units[to_usize(unit)].valid_pages < self.share
    }

    /// Unit for a page in turn: the given one modulo the number of units, or the next one below its
    /// share.
    pub(crate) fn unit_in_turn(&self, turn: u32) -> u32 {
        let n = count_u32(self.units.len());
        let first = turn % n;
        let mut all = (first..n).chain(0..first).map(|at| self.unit_at(at));
        all.find(|&u| self.has_room(u)).unwrap_or_else(|| self.unit_at(first))
    }

    /// ExpectedPage owner of a valid page, if the medium holds bytes to compare with.
    #[inline]
    pub(super) fn expected(&self, ppn: Ppn, tag: impl Fn() -> u16) -> Option<ExpectedPage> {
        (self.stores_bytes() && !is_planted(FlashBug::OwnerUnchecked))
            .then(|| ExpectedPage { lpn: self.reverse[ppn.idx()].wrapping_sub(1), tag: tag() })
    }

    /// Returns the next sequence number. Every page version in every medium has its own. The low 16
    /// bits are never zero, which is the tag of a page that was never written.
    #[inline]
    pub(crate) fn next_seq(&mut self) -> u64 {
        self.seq += 1;
        if low_u16(self.seq) == 0 {
            self.seq += 1;
        }
        self.seq
    }

    /// Skips numbers so that the next `n` ones are consecutive, although some numbers are left out
    /// ([`Flash::next_seq`]).
    pub(super) fn align_seq(&mut self, n: u32) {
        let low = u32::from(low_u16(self.seq));
        if low + n > u32::from(u16::MAX) {
            self.seq += u64::from(u32::from(u16::MAX) + 1 - low);
        }
    }

    /// Records that an entry names a programmed page after `done`.
    #[inline]
    pub(crate) fn record_named(&mut self, sink: &mut Sink, done: Tok) {
        if !self.freed.is_empty() {
            self.named = sink.join(self.named, done);
        }
    }

    /// Makes the first page of a block wait for the earlier erases of its unit.
    pub(crate) fn begin_after_erases(&mut self) {
        self.begins_after_erases = true;
    }

    /// Notes an erase.
    pub(super) fn note_erased(&mut self, sink: &mut Sink, unit: u32, done: Tok) {
        self.erased = sink.join(self.erased, done);
        if self.begins_after_erases {
            let unit = &mut self.units[to_usize(unit)];
            unit.erased = sink.join(unit.erased, done);
        }
    }

    /// Returns `true` if a page is the first of its block and must wait for [`Flash::named`].
    #[inline]
    pub(super) fn begins(&self, ppn: Ppn) -> bool {
        !self.freed.is_empty() && self.nand.geometry().page_in_block(ppn) == 0
    }

    /// Last sequence number that was assigned.
    #[inline]
    pub(crate) fn last_seq(&self) -> u64 {
        self.seq
    }

    /// Prefetches what the invalidation of these pages needs.
    pub(crate) fn prefetch(&self, pages: impl Iterator<Item = Ppn>) {
        let rows = pages.map(|ppn| {
            let block = self.nand.geometry().block_of(ppn);
            self.reverse[ppn.idx()] ^ u32::from(self.blocks.valid(block.0))
        });
        std::hint::black_box(rows.fold(0, |a, r| a ^ r));
    }

    /// Prefetches what a read of this page needs.
    #[inline]
    pub(crate) fn prefetch_read(&self, ppn: Ppn) {
        prefetch_value(&self.reverse[ppn.idx()]);
        self.nand.prefetch(ppn);
    }

    /// Invalidates a page that is replaced after `done`.
    #[inline]
    pub(crate) fn invalidate_after(&mut self, sink: &mut Sink, ppn: Ppn, done: Tok) {
        if !self.freed.is_empty() {
            let block = self.nand.geometry().block_of(ppn).idx();
            self.freed[block] = sink.join(self.freed[block], done);
        }
        self.invalidate(ppn);
    }

    /// Invalidates a page, which is no longer the current version.
    #[inline]
    pub(crate) fn invalidate(&mut self, ppn: Ppn) {
        debug_assert_ne!(self.reverse[ppn.idx()], 0, "page {} is not valid", ppn.0);
        self.reverse[ppn.idx()] = 0;
        let block = self.nand.geometry().block_of(ppn).0;
        let row = &mut self.blocks.block[to_usize(block)];
        row.valid -= 1;
        row.touched = self.blocks.clock;
        let sealed = row.state == BlockUse::Sealed;
        self.units[to_usize(self.blocks.unit_of(block))].valid_pages -= 1;
        if sealed {
            self.config.gc.invalidated(block, &self.blocks);
        }
    }

    /// Logical page stored at a physical one.
    #[must_use]
    pub fn lpn_of(&self, ppn: Ppn) -> Option<Lpn> {
        match self.reverse[ppn.idx()] {
            0 => None,
            n => Some(Lpn(n - 1)),
        }
    }

    /// Makes the space refuse writes if a unit has too few usable blocks.
    pub(super) fn degrade(&mut self, unit: u32) {
        let u = &self.units[to_usize(unit)];
        // With fewer blocks all invalid pages may be in open blocks, and garbage collection finds
        // no victim.
        let open = STREAMS + self.config.handles;
        let need = self.share.div_ceil(self.blocks.pages_per_block()) + count_u32(self.reserve + open);
        if u.usable_blocks < need {
            let has = u.usable_blocks;
            self.health.refuse(format!(
                "{} has {has} usable blocks and needs {need}: too many went bad",
                self.nand.unit_name(unit)
            ));
        }
    }

    /// Checks that writes are accepted.
    ///
    /// # Errors
    /// `ReadOnly`, with the reason, if writes are refused.
    #[inline]
    pub fn writable(&self) -> Result<()> {
        self.health.writable()
    }

    /// Changes the garbage-collection policy. The new policy starts from the current state of the
    /// blocks.
    pub(crate) fn set_gc(&mut self, mut gc: Gc) {
        gc.reset(&self.blocks);
        let mut sealed: Vec<u32> =
            (0..self.blocks.count()).filter(|&b| self.blocks.state(b) == BlockUse::Sealed).collect();
        // In the order in which they were last written or invalidated: FIFO depends on the order.
        sealed.sort_by_key(|&b| std::cmp::Reverse(self.blocks.age(b)));
        for b in sealed {
            gc.sealed(b, &self.blocks);
        }
        self.config.gc = gc;
        self.idle_work_pending = true;
    }

    /// Changes the pacing policy. The thresholds have to be set again.
    pub(crate) fn set_pacing(&mut self, pacing: Pacing) {
        self.config.pacing = pacing;
        self.units.iter_mut().for_each(|u| u.pace = PaceAccount::default());
    }

    /// Changes the wear-leveling policy.
    pub(crate) fn set_wear(&mut self, wear: WearLeveling, threshold: u32) {
        self.config.wear = wear;
        self.config.wear.set_threshold(threshold);
    }

    /// Configuration of garbage collection and wear leveling.
    #[must_use]
    pub fn config(&self) -> &FlashConfig {
        &self.config
    }

    pub(crate) fn config_mut(&mut self) -> &mut FlashConfig {
        self.idle_work_pending = true;
        &mut self.config
    }
}

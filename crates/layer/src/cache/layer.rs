//! The layer [`Cache`]: its state, and its block interface.

use super::config::CacheConfig;
use super::deferred_io::DeferredIo;
use super::directory::Directory;
use super::disk_health::DiskHealth;
use super::in_flight::InFlight;
use super::layout::CacheLayout;
use super::policy::{CacheAccess, EvictionPolicy, Policy, PolicySetup, Victim};
use super::space::CachePcm;
use super::stats::CacheStats;
use super::streams::Streams;
use super::{BLOCK_BYTES, BLOCK_LEN};
use crate::header::HeaderNote;
use crate::health::Health;
use crate::numbers::{BucketId, CacheSlot, Lbn};
use frit_core::bounds::check_sectors;
use frit_core::convert::size_in_memory;
use frit_core::{
    BlockDevice, BlockLayer, BlockingMedium, Buffer, Deferred, Error, Hints, Info, Params, Progress,
    ReadTarget, RequestIntent, Result, SECTOR_BYTES, Sector, Sink, StackView, Tok, WriteData,
};
use frit_media::Pcm;
use frit_wear::{Leveled, WearKeys};
use std::sync::Arc;

/// A disk with a write cache in PCM. `D` is the disk: a medium, or a layer. Both hold bytes, or neither
/// does.
pub struct Cache<D: ?Sized> {
    pub(super) config: CacheConfig,
    pub(super) space: CachePcm,
    pub(super) disk: Box<D>,
    pub(super) dir: Directory,
    pub(super) policy: Policy,
    pub(super) in_flight: InFlight,
    pub(super) streams: Streams,
    /// Number of requests so far, the time base of policies.
    pub(super) clock: u32,
    /// Block accesses so far.
    pub(super) accesses: u64,
    /// Slots whose blocks this request wrote to other slots.
    pub(super) replaced: Vec<CacheSlot>,
    /// Completion of writes of the host, or of copies of them, that the disk has acknowledged but
    /// not flushed. The next flush of the disk has to wait for it.
    pub(super) unflushed: Option<Tok>,
    /// Completion of all flushes of the disk so far.
    pub(super) flushed: Tok,
    /// The bucket after the one that was cleaned last.
    pub(super) clean_hand: BucketId,
    pub(super) health: Health,
    pub(super) disk_health: DiskHealth,
    pub(super) deferred_io: DeferredIo,
    pub(super) usage: HeaderNote,
    pub(super) stats: CacheStats,
    /// Buffer in which a block is assembled. It is empty if the media hold no bytes.
    pub(super) block: Vec<u8>,
    /// Buffer of the blocks that the next write to the disk carries.
    pub(super) run: Vec<u8>,
    pub(super) chosen: Vec<Victim>,
}

impl<D: BlockDevice + ?Sized> Cache<D> {
    /// Returns `true` if the media keep the bytes that are written.
    #[inline]
    pub(super) fn stores_bytes(&self) -> bool {
        self.space.pcm.stores_bytes()
    }

    /// Creates a cache over new media. `next_use` is the future access sequence, for a policy that
    /// needs it.
    ///
    /// # Errors
    /// Returns an error that names a parameter that is invalid with these media, and its valid
    /// values.
    pub fn new(
        config: CacheConfig,
        pcm: Pcm,
        disk: Box<D>,
        next_use: Option<&Arc<[u64]>>,
    ) -> Result<Cache<D>> {
        config.validate()?;
        let pcm = Leveled::new(pcm, config.wear.config()?).map_err(WearKeys::in_table)?;
        let layout = CacheLayout::new(pcm.bytes(), config.cache_bytes, config.record_copies)?;
        let blocks = disk.bytes() / BLOCK_BYTES;
        let disk_blocks = u32::try_from(blocks).ok().filter(|&b| b > 0 && b < u32::MAX).ok_or_else(|| {
            Error::param("bytes", disk.bytes(), "of the disk have to be 4 KiB to less than 16 TiB")
        })?;
        let setup = PolicySetup { slots: layout.slots, disk_blocks, config: &config.policy, next_use };
        let stores_bytes = pcm.stores_bytes();
        let held = |n: usize| if stores_bytes { vec![0; n] } else { Vec::new() };
        Ok(Cache {
            policy: Policy::new(&setup)?,
            dir: Directory::new(disk_blocks, layout.slots)?,
            streams: Streams::new(config.bypass_streams),
            space: CachePcm::new(pcm, layout),
            disk,
            in_flight: InFlight::default(),
            clock: 0,
            accesses: 0,
            replaced: Vec::new(),
            unflushed: None,
            flushed: Tok::default(),
            clean_hand: BucketId(0),
            health: Health::default(),
            disk_health: DiskHealth::default(),
            deferred_io: DeferredIo::default(),
            usage: HeaderNote::default(),
            stats: CacheStats::default(),
            block: held(size_in_memory(BLOCK_BYTES)),
            run: Vec::new(),
            chosen: Vec::new(),
            config,
        })
    }

    /// Returns the current configuration.
    #[must_use]
    pub fn config(&self) -> &CacheConfig {
        &self.config
    }

    /// Returns the directory of the cached blocks.
    #[must_use]
    pub fn directory(&self) -> &Directory {
        &self.dir
    }

    /// Returns the capacity in bytes: all whole blocks of the disk.
    pub(super) fn bytes(&self) -> u64 {
        u64::from(self.dir.disk_blocks()) * BLOCK_BYTES
    }

    /// Checks that a range lies inside the volume, and returns the address of its first byte.
    pub(super) fn check_range(&self, at: Sector, bytes: u64) -> Result<u64> {
        check_sectors(at, bytes, self.bytes())
    }

    /// Advances the request clock at the start of a request.
    pub(super) fn tick(&mut self) {
        self.clock = self.clock.wrapping_add(1);
    }

    /// Counts an access to a block and returns it in the form that policies take.
    #[inline]
    pub(super) fn access(&mut self, lbn: Lbn, write: bool) -> CacheAccess {
        let at = self.accesses;
        self.accesses += 1;
        CacheAccess { lbn, write, at, clock: self.clock }
    }

    /// Handles the failure of a request: cancels its deferred accesses and stops writes if
    /// necessary.
    fn ended(&mut self, e: Error) -> Error {
        self.cancel_deferred();
        self.refuse_after(e)
    }

    /// Returns the DRAM of the layer, in bytes.
    pub(super) fn dram_bytes(&self) -> u64 {
        let d = self.dir.bytes();
        d.blocks + d.buckets + self.policy.dram_bytes() + self.space.dram_bytes()
    }
}

impl<D: BlockDevice + ?Sized> BlockLayer for Cache<D> {
    fn info(&self) -> Info {
        Info {
            name: "cache",
            sectors: self.bytes() / SECTOR_BYTES,
            page_bytes: BLOCK_LEN,
            dram_bytes: self.dram_bytes(),
            durable_map_bytes: self.space.layout.meta_bytes(),
        }
    }

    fn prefetch(&self, next: &[(Sector, u32)]) {
        let block = |at: &Sector| {
            let lbn = at.0.saturating_mul(SECTOR_BYTES) / BLOCK_BYTES;
            Lbn::of_u64(lbn.min(u64::from(self.dir.disk_blocks()) - 1))
        };
        for (at, _) in next {
            self.dir.prefetch(block(at));
        }
        for (at, _) in next {
            match self.dir.get(block(at)) {
                Some(slot) => {
                    self.dir.prefetch_slot(slot);
                    self.policy.prefetch(slot);
                }
                None => {
                    self.dir.prefetch_chain(block(at));
                    self.policy.prefetch_miss(block(at));
                }
            }
        }
    }

    fn read(&mut self, sink: &mut Sink, at: Sector, into: ReadTarget<'_>, hints: Hints) -> Result<()> {
        let at = self.check_range(at, u64::from(into.len()))?;
        self.tick();
        self.read_range(sink, at, into, hints.read_cause()).inspect_err(|_| self.cancel_deferred())
    }

    fn write(&mut self, sink: &mut Sink, at: Sector, data: WriteData<'_>, _: Hints) -> Result<()> {
        let at = self.check_range(at, u64::from(data.len()))?;
        self.begin_use(sink).map_err(|e| self.ended(e))?;
        self.tick();
        self.write_range(sink, at, data).map_err(|e| self.ended(e))
    }

    fn flush(&mut self, sink: &mut Sink) -> Result<()> {
        self.flush_all(sink).map_err(|e| self.ended(e))
    }

    fn discard(&mut self, sink: &mut Sink, at: Sector, sectors: u64) -> Result<()> {
        let bytes = sectors.saturating_mul(SECTOR_BYTES);
        let at = self.check_range(at, bytes)?;
        self.begin_use(sink).map_err(|e| self.ended(e))?;
        self.tick();
        self.discard_range(sink, at, bytes).map_err(|e| self.ended(e))
    }

    /// The layers of the disk have their turn when the cache has nothing to do.
    fn step(&mut self, sink: &mut Sink, budget: u32) -> Result<Progress> {
        match self.background(sink, budget).map_err(|e| self.refuse_after(e))? {
            Progress::Busy(tok) => Ok(Progress::Busy(tok)),
            waiting => Ok(waiting.or(self.disk.step(sink, budget)?)),
        }
    }

    fn defer(&mut self, on: bool) -> bool {
        self.set_deferring(on)
    }

    fn would_block(&self, what: RequestIntent, at: Sector, sectors: u64) -> bool {
        self.would_block_on(what, at, sectors)
    }

    fn deferred(&mut self) -> Option<Deferred> {
        self.take_deferred()
    }

    fn job(&mut self, sink: &mut Sink) -> Result<Option<Deferred>> {
        self.next_job(sink).map_err(|e| self.refuse_after(e))
    }

    fn settle(
        &mut self,
        sink: &mut Sink,
        of: &Deferred,
        outcome: Result<()>,
        buffer: &mut Buffer<'_>,
    ) -> Result<()> {
        self.settle_deferred(sink, of.id, outcome, buffer).map_err(|e| self.refuse_after(e))
    }

    fn waits(&self) -> bool {
        self.disk.waits()
    }

    fn each_shared(&mut self, each: &mut dyn FnMut(&Arc<dyn BlockingMedium>)) {
        self.disk.each_shared(each);
    }

    fn visible(&self, view: &mut StackView) {
        self.show(view);
    }

    fn params(&mut self) -> &mut dyn Params {
        self
    }

    fn each_layer_below(&mut self, each: &mut dyn FnMut(&str, &Info, &mut dyn Params)) {
        self.disk.each_layer(each);
    }
}

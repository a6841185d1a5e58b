//! The layer: its state, puts, commits, and the interface of a composer.

use super::config::{KIND, SegmentsConfig, SegmentsShape};
use super::deferral::Gets;
use super::entry::Entry;
use super::open::OpenSegment;
use super::space::{DEAD, Segment, Space};
use crate::composed::{Base, Composer};
use crate::devices::Devices;
use crate::planted::SegmentsBug;
use crate::table::{self, Table};
use frit_core::convert::to_f64;
use frit_core::planted::is_planted;
use frit_core::visible::Metric;
use frit_core::{
    BlockDevice, Cause, CheckCounts, CheckScope, CrashKind, DeferredPart, DurabilityPoint, Error, Finding,
    MediumKind, ObjectDevice, ObjectId, Precondition, Progress, ReadTarget, Recovery, Result, Sink,
    StackView, Tok, WriteData, WriteGuarantee,
};
use std::collections::VecDeque;
use std::ops::Range;

/// A log of segments in an object store, with its map on the only device.
pub struct Segments {
    pub(super) base: Base<SegmentsConfig>,
    pub(super) store: Box<dyn ObjectDevice>,
    pub(super) shape: SegmentsShape,
    pub(super) entries: Vec<Entry>,
    pub(super) table: Table,
    pub(super) space: Space,
    /// The segment of the host's writes.
    pub(super) host: OpenSegment,
    /// The segment of the chunks that cleaning moves.
    pub(super) moved: OpenSegment,
    /// Epoch of this opening; 0 before the store was claimed.
    pub(super) epoch: u32,
    /// `true` from the claim of the store until it is given back at a shutdown.
    claimed: bool,
    /// Number of the next object.
    pub(super) next_number: u32,
    /// The last puts, whose segments are still in DRAM: the oldest first.
    puts: VecDeque<(ObjectId, Tok)>,
    /// The last flush of the store, and the puts since then.
    unflushed: Tok,
    /// `true` if objects were put since the last flush of the store.
    put_since_flush: bool,
    pub(super) scratch: Vec<u8>,
    /// Writes come without bytes: a simulation.
    pub(super) without_bytes: bool,
    pub(super) stats: Stats,
    pub(super) gets: Gets,
}

/// Counts of work.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Stats {
    /// Objects put.
    pub(super) puts: u64,
    /// Chunks that the host wrote.
    pub(super) written: u64,
    /// Chunks that cleaning moved.
    pub(super) moved: u64,
    /// Objects deleted.
    pub(super) deleted: u64,
}

/// Writes the entries of a table sector.
pub(super) fn fill_from(entries: &[Entry]) -> impl Fn(u32, &mut [u8]) + '_ {
    table::fill_from(&KIND, entries, Entry::encode)
}

impl Segments {
    /// Joins a store of objects, and the device of the map, which is the only one of `map`.
    ///
    /// # Errors
    /// A chunk or a size that does not fit them.
    pub fn new(config: SegmentsConfig, map: Devices, store: Box<dyn ObjectDevice>) -> Result<Segments> {
        let shape = SegmentsShape::new(&config, map.only().bytes(), store.object_bytes(), store.objects())?;
        Ok(Segments {
            entries: vec![Entry::default(); shape.offered as usize],
            table: Table::new(KIND, shape.volume, shape.layout),
            space: Space::default(),
            host: OpenSegment::new(ObjectId { epoch: 0, number: 1 }),
            moved: OpenSegment::new(ObjectId { epoch: 0, number: 2 }),
            epoch: 0,
            claimed: false,
            next_number: 3,
            puts: VecDeque::new(),
            unflushed: Tok::default(),
            put_since_flush: false,
            scratch: Vec::new(),
            without_bytes: false,
            stats: Stats::default(),
            gets: Gets::default(),
            base: Base::new(config, map),
            store,
            shape,
        })
    }

    /// Bytes of a chunk.
    #[inline]
    pub(super) fn chunk_len(&self) -> usize {
        self.shape.volume.chunk as usize
    }

    fn next_id(&mut self) -> ObjectId {
        let number = self.next_number;
        self.next_number += 1;
        ObjectId { epoch: self.epoch, number }
    }

    /// Forgets the contents of DRAM, and takes the epoch of a new opening.
    pub(super) fn begin_epoch(&mut self, epoch: u32) {
        self.epoch = epoch;
        self.claimed = true;
        self.next_number = 1;
        self.puts.clear();
        self.put_since_flush = false;
        let (host, moved) = (self.next_id(), self.next_id());
        self.host.restart(host, Tok::default());
        self.moved.restart(moved, Tok::default());
    }

    /// Keeps the contents of DRAM, and takes the epoch of a new opening.
    pub(super) fn continue_in(&mut self, epoch: u32) {
        self.epoch = epoch;
        self.claimed = true;
        let ids = [self.next_id(), self.next_id()];
        for (open, id) in [&mut self.host, &mut self.moved].into_iter().zip(ids) {
            open.id = id;
            for &owner in open.owners.iter().filter(|&&owner| owner != DEAD) {
                self.entries[owner as usize].object = id;
            }
        }
    }

    /// Claims the store, if a simulation begins without a format, or the layer goes on after a shutdown.
    ///
    /// # Errors
    /// A map that refuses writes, or a failure of the store.
    pub(super) fn writable(&mut self, sink: &mut Sink) -> Result<()> {
        self.table.writable()?;
        if !self.claimed {
            let epoch = self.store.claim(sink, self.epoch)?;
            self.continue_in(epoch);
        }
        Ok(())
    }

    /// Returns the open segment with this name.
    pub(super) fn open_segment(&self, id: ObjectId) -> Option<&OpenSegment> {
        [&self.host, &self.moved].into_iter().find(|s| s.id == id)
    }

    /// Returns what a read of an object waits for: its put, if it can still be under way.
    pub(super) fn put_of(&self, sink: &mut Sink, id: ObjectId, after: Tok) -> Tok {
        match self.puts.iter().find(|(put, _)| *put == id) {
            Some((_, tok)) => sink.join(after, *tok),
            None => after,
        }
    }

    /// Puts the host's segment, or that of cleaning, and starts a new one.
    pub(super) fn put(&mut self, sink: &mut Sink, cause: Cause) -> Result<()> {
        let chunk = self.chunk_len();
        let id = self.next_id();
        let segment = if cause == Cause::Host { &mut self.host } else { &mut self.moved };
        if segment.is_dead() {
            // No entry names it, so its places can be used again.
            let (same, ready) = (segment.id, segment.ready);
            segment.restart(same, ready);
            return Ok(());
        }
        let after = segment.written;
        let done = self.store.put(sink, segment.id, segment.data(chunk), cause, after)?;
        self.unflushed = sink.join(self.unflushed, done);
        self.put_since_flush = true;
        self.puts.push_back((segment.id, done));
        let owners = std::mem::take(&mut segment.owners);
        let put = segment.id;
        let oldest = if self.puts.len() > self.base.config.buffers as usize {
            self.puts.pop_front().map(|(_, tok)| tok)
        } else {
            None
        };
        segment.restart(id, oldest.unwrap_or_default());
        self.space.insert(put, Segment::new(owners));
        self.stats.puts += 1;
        Ok(())
    }

    /// Puts what is in DRAM, waits until the store has it, makes the map durable, and deletes the
    /// objects that it no longer names.
    pub(super) fn commit(&mut self, sink: &mut Sink, after: Tok) -> Result<Tok> {
        self.table.writable()?;
        if !is_planted(SegmentsBug::OpenSegmentNotPut) {
            self.put(sink, Cause::Host)?;
            self.put(sink, Cause::Gc)?;
        }
        let puts = sink.join(after, self.unflushed);
        let mut stored = puts;
        if self.put_since_flush {
            stored = self.store.flush(sink, Cause::Host, puts)?;
            self.unflushed = stored;
            self.put_since_flush = false;
        }
        if is_planted(SegmentsBug::MapBeforeObjects) {
            stored = after;
        }
        let done =
            self.table.commit(sink, self.base.devices.get_mut(0), stored, &fill_from(&self.entries))?;
        let garbage = self.space.take_garbage();
        let deletable = if is_planted(SegmentsBug::DeletedBeforeCommit) { sink.start() } else { done };
        self.delete(sink, garbage, deletable);
        Ok(done)
    }

    /// Deletes objects. One that the store does not delete now waits for the next commit.
    pub(super) fn delete(&mut self, sink: &mut Sink, ids: Vec<ObjectId>, after: Tok) {
        for id in ids {
            match self.store.delete(sink, id, Cause::Gc, after) {
                Ok(_) => self.stats.deleted += 1,
                Err(_) => self.space.insert(id, Segment::default()),
            }
        }
    }

    /// Replaces an entry. The former place of the chunk is dead.
    pub(super) fn replace(&mut self, chunk: u32, entry: Entry) {
        let old = std::mem::replace(&mut self.entries[chunk as usize], entry);
        self.kill(&old);
        self.table.change(u64::from(chunk));
    }

    fn kill(&mut self, old: &Entry) {
        if !old.is_mapped() {
            return;
        }
        match [&mut self.host, &mut self.moved].into_iter().find(|s| s.id == old.object) {
            Some(open) => open.kill(old.index),
            None => self.space.kill(old.object, old.index),
        }
    }

    /// Returns the error of an access to a chunk whose entry is lost.
    pub(super) fn lost(&self, chunk: u32) -> Error {
        self.table.lost_entry(chunk.into())
    }
}

impl Composer for Segments {
    const NAME: &'static str = "segments";
    const DEFERS_READS: bool = true;
    type Config = SegmentsConfig;

    fn base(&self) -> &Base<SegmentsConfig> {
        &self.base
    }

    fn base_mut(&mut self) -> &mut Base<SegmentsConfig> {
        &mut self.base
    }

    fn bytes(&self) -> u64 {
        self.shape.volume.size
    }

    fn page_bytes(&self) -> u32 {
        self.shape.volume.chunk as u32
    }

    fn durable_map_bytes(&self) -> u64 {
        self.shape.layout.bytes()
    }

    fn dram_bytes(&self) -> u64 {
        // An entry of the map, and the owner of a place; the segments in DRAM.
        let chunks = self.entries.len() as u64 * (size_of::<Entry>() + size_of::<u32>()) as u64;
        chunks + u64::from(self.base.config.buffers + 2) * u64::from(self.store.object_bytes())
    }

    fn read(&mut self, sink: &mut Sink, at: u64, into: ReadTarget<'_>, after: Tok) -> Result<Tok> {
        self.read_range(sink, at, into, after)
    }

    fn write(&mut self, sink: &mut Sink, at: u64, data: WriteData<'_>, after: Tok) -> Result<Tok> {
        self.writable(sink)?;
        self.without_bytes = data.bytes().is_none();
        self.write_range(sink, at, data, after)
    }

    fn zero(&mut self, sink: &mut Sink, at: u64, len: u64, after: Tok) -> Result<Tok> {
        self.writable(sink)?;
        self.zero_range(sink, at, len, after)
    }

    fn flush(&mut self, sink: &mut Sink, after: Tok) -> Result<Tok> {
        self.writable(sink)?;
        self.make_room(sink, after)?;
        self.commit(sink, after)
    }

    fn place(&self, at: u64) -> (u64, Option<MediumKind>) {
        let chunk = at / self.shape.volume.chunk;
        let hole = self.entries[chunk as usize].is_hole();
        ((chunk + 1) * self.shape.volume.chunk, (!hole).then_some(MediumKind::Object))
    }

    fn write_guarantee(&self) -> WriteGuarantee {
        WriteGuarantee { durable_at: DurabilityPoint::OnFlush, ..WriteGuarantee::default() }
    }

    fn format(&mut self, sink: &mut Sink) -> Result<()> {
        self.format_store(sink)?;
        self.table.format(sink, self.base.devices.get_mut(0), &fill_from(&self.entries)).map(|_| ())
    }

    fn load(&mut self, sink: &mut Sink, _: CrashKind) -> Result<Recovery> {
        self.load_map(sink)
    }

    fn save(&mut self, sink: &mut Sink) -> Result<()> {
        self.writable(sink)?;
        let start = sink.start();
        self.make_room(sink, start)?;
        let done = self.commit(sink, start)?;
        let saved = self.table.save(sink, self.base.devices.get_mut(0), done, &fill_from(&self.entries))?;
        sink.ack(saved);
        self.store.release(sink)?;
        self.claimed = false;
        Ok(())
    }

    fn precondition(&mut self, _: Precondition) -> Result<()> {
        let why =
            "pages of a preconditioned volume hold zeros, which take no space here; write the volume first";
        Err(Error::param("warm", "fill", why))
    }

    fn check(
        &mut self,
        sink: &mut Sink,
        scope: CheckScope,
        found: &mut dyn FnMut(Finding),
    ) -> Result<CheckCounts> {
        self.run_check(sink, scope, found)
    }

    /// Reads of objects are deferred, and those of the map's device are not.
    fn share(&mut self) -> bool {
        self.share_store()
    }

    fn begin_deferral(&mut self, buffer: Range<usize>) {
        self.begin_gets(buffer);
    }

    fn end_deferral(&mut self) -> Vec<DeferredPart> {
        self.gets.end()
    }

    fn verify(&self, at: u64, bytes: &[u8]) -> bool {
        self.has_checksums_of(at, bytes)
    }

    fn waits(&self) -> bool {
        self.store.reader().is_some() || self.base.devices.wait()
    }

    fn step(&mut self, sink: &mut Sink, _: u32) -> Result<Progress> {
        self.clean_when_idle(sink)
    }

    fn refuses(&self) -> Option<String> {
        let own = self.table.refuses().map(str::to_owned);
        own.or_else(|| self.base.devices.refuses()).or_else(|| self.store.refuses())
    }

    fn visible(&self, view: &mut StackView) {
        self.base.devices.visible(view);
        self.store.visible(view);
    }

    fn metrics(&self) -> Vec<Metric> {
        let metric = Metric::count;
        let (s, chunk) = (&self.stats, self.shape.volume.chunk);
        let live = self.space.live() * chunk;
        vec![
            metric("live", live, "bytes", "bytes of the live chunks in objects"),
            metric("objects", self.space.objects(), "objects", "objects in the store"),
            metric("garbage", self.space.garbage() as u64, "objects", "objects to delete at the next commit"),
            metric("puts", s.puts, "objects", "objects put"),
            metric("deleted", s.deleted, "objects", "objects deleted"),
            metric("moved", s.moved * chunk, "bytes", "bytes of chunks that cleaning moved"),
            Metric {
                name: "cleaning_wa",
                value: if s.written == 0 { 1.0 } else { 1.0 + to_f64(s.moved) / to_f64(s.written) },
                unit: "",
                help: "chunks put into objects for each chunk written",
            },
        ]
    }
}

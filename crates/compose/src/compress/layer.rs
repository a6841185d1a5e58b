//! The layer: its state, commits, and the interface of a composer.

use super::buffer::ChunkBuffer;
use super::codec::Codec;
use super::config::{CompressConfig, CompressShape, ENTRY_BYTES, KIND};
use super::entry::Entry;
use super::space::RunSpace;
use crate::composed::{Base, Composer};
use crate::devices::Devices;
use crate::table::{self, Loaded, Table};
use frit_core::BlockDevice;
use frit_core::convert::to_f64;
use frit_core::visible::Metric;
use frit_core::{
    CheckCounts, CheckScope, CrashKind, DurabilityPoint, Error, Finding, MediumKind, Precondition,
    ReadTarget, Recovery, Result, SECTOR_BYTES, Sink, Tok, WriteData, WriteGuarantee,
};

/// A device whose chunks are compressed and have checksums.
pub struct Compress {
    pub(super) base: Base<CompressConfig>,
    pub(super) shape: CompressShape,
    pub(super) entries: Vec<Entry>,
    pub(super) space: RunSpace,
    pub(super) table: Table,
    pub(super) buffer: ChunkBuffer,
    pub(super) codec: Codec,
    /// The commit that freed runs last. A write to a free run waits for it.
    pub(super) freed_by: Tok,
    /// The stored form of a chunk, with zeros up to the end of its last sector.
    pub(super) stored: Vec<u8>,
    pub(super) usage: Usage,
    /// Writes come without bytes: a simulation, in which only lengths are stored.
    pub(super) without_bytes: bool,
}

/// Sums over the stored chunks, and counts of work.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Usage {
    /// Number of stored chunks.
    pub(super) chunks: u64,
    /// Bytes of their stored forms, without the rest of their last sectors.
    pub(super) stored: u64,
    /// Sectors of their runs.
    pub(super) sectors: u64,
    /// Runs that were moved.
    pub(super) moved: u64,
}

impl Usage {
    pub(super) fn add(&mut self, e: &Entry) {
        self.chunks += u64::from(e.sectors > 0);
        self.stored += u64::from(e.stored);
        self.sectors += u64::from(e.sectors);
    }

    pub(super) fn remove(&mut self, e: &Entry) {
        self.chunks -= u64::from(e.sectors > 0);
        self.stored -= u64::from(e.stored);
        self.sectors -= u64::from(e.sectors);
    }
}

/// Writes the entries of a table sector.
pub(super) fn fill_from(entries: &[Entry]) -> impl Fn(u32, &mut [u8]) + '_ {
    table::fill_from(&KIND, entries, Entry::encode)
}

impl Compress {
    /// Compresses the contents of a device, which is the only one of `devices`.
    ///
    /// # Errors
    /// A chunk or a size that does not fit the device.
    pub fn new(config: CompressConfig, devices: Devices) -> Result<Compress> {
        let shape = CompressShape::new(&config, devices.get(0).bytes())?;
        Ok(Compress {
            entries: vec![Entry::default(); shape.offered as usize],
            space: RunSpace::new(shape.runs.0, shape.runs.1),
            table: Table::new(KIND, shape.volume, shape.layout),
            buffer: ChunkBuffer::new(config.buffer_chunks),
            codec: Codec::default(),
            freed_by: Tok::default(),
            stored: Vec::new(),
            usage: Usage::default(),
            without_bytes: false,
            base: Base::new(config, devices),
            shape,
        })
    }

    /// Makes the entries durable, and frees the runs that they have freed.
    pub(super) fn commit(&mut self, sink: &mut Sink, after: Tok) -> Result<Tok> {
        let done = self.table.commit(sink, self.base.devices.get_mut(0), after, &fill_from(&self.entries))?;
        self.committed(sink, done);
        Ok(done)
    }

    /// Takes note of a commit of the table.
    fn committed(&mut self, sink: &mut Sink, done: Tok) {
        if self.space.waits() {
            self.space.committed();
            self.freed_by = sink.join(self.freed_by, done);
        }
    }

    /// Replaces an entry. The old run is free after the next commit.
    pub(super) fn replace(&mut self, chunk: u32, entry: Entry) {
        let old = std::mem::replace(&mut self.entries[chunk as usize], entry);
        self.usage.remove(&old);
        self.usage.add(&entry);
        if old.sectors > 0 && !self.in_exchange(&old) {
            self.space.free_later(old.first, u64::from(old.sectors));
        }
        self.table.change(u64::from(chunk));
    }

    /// Returns `true` for a chunk in the area through which overlapping runs are moved.
    pub(super) fn in_exchange(&self, e: &Entry) -> bool {
        e.sectors > 0 && e.first < self.shape.runs.0
    }

    /// Returns the error of an access to a chunk whose entry is lost.
    pub(super) fn lost(&self, chunk: u32) -> Error {
        self.table.lost_entry(chunk.into())
    }

    /// Takes the entries of the table, and finds the runs that they name. Returns the result, and a
    /// chunk whose run overlaps another one.
    fn take_table(&mut self, sink: &mut Sink) -> Result<Option<(Recovery, Option<usize>)>> {
        let per = KIND.entries_per_sector();
        let (entries, shape) = (&mut self.entries, self.shape);
        let loaded = self.table.load(sink, self.base.devices.get_mut(0), &mut |i, payload| {
            let first = i as usize * per;
            let end = (first + per).min(entries.len());
            let Some(payload) = payload else { return entries[first..end].fill(Entry::LOST) };
            let (read, _) = payload.as_chunks::<ENTRY_BYTES>();
            for (into, b) in entries[first..end].iter_mut().zip(read) {
                let e = Entry::decode(b);
                let within = e.first >= shape.exchange && e.first + u64::from(e.sectors) <= shape.runs.1;
                *into = if e.sectors == 0 || within { e } else { Entry::LOST };
            }
        })?;
        let Loaded::Read { unequal, bytes } = loaded else { return Ok(None) };
        self.space = RunSpace::new(shape.runs.0, shape.runs.1);
        self.usage = Usage::default();
        let mut twice = None;
        for (i, e) in self.entries.iter().enumerate().filter(|(_, e)| e.sectors > 0) {
            self.usage.add(e);
            let exchange = e.first < shape.runs.0;
            if !exchange && !self.space.take_at(e.first, u64::from(e.sectors)) {
                twice.get_or_insert(i);
            }
        }
        let clean = unequal == 0;
        let recovery = Recovery { clean, pages: self.usage.chunks, bytes_read: bytes, ..Recovery::default() };
        Ok(Some((recovery, twice)))
    }
}

impl Composer for Compress {
    const NAME: &'static str = "compress";
    type Config = CompressConfig;

    fn base(&self) -> &Base<CompressConfig> {
        &self.base
    }

    fn base_mut(&mut self) -> &mut Base<CompressConfig> {
        &mut self.base
    }

    fn bytes(&self) -> u64 {
        self.shape.volume.size
    }

    fn durable_map_bytes(&self) -> u64 {
        self.shape.layout.bytes()
    }

    fn dram_bytes(&self) -> u64 {
        let buffer = u64::from(self.base.config.buffer_chunks) * self.shape.volume.chunk;
        self.entries.len() as u64 * size_of::<Entry>() as u64 + buffer
    }

    fn read(&mut self, sink: &mut Sink, at: u64, into: ReadTarget<'_>, after: Tok) -> Result<Tok> {
        self.read_range(sink, at, into, after)
    }

    fn write(&mut self, sink: &mut Sink, at: u64, data: WriteData<'_>, after: Tok) -> Result<Tok> {
        self.table.writable()?;
        self.without_bytes = data.bytes().is_none();
        self.write_range(sink, at, data, after)
    }

    fn zero(&mut self, sink: &mut Sink, at: u64, len: u64, after: Tok) -> Result<Tok> {
        self.table.writable()?;
        self.zero_range(sink, at, len, after)
    }

    fn flush(&mut self, sink: &mut Sink, after: Tok) -> Result<Tok> {
        self.table.writable()?;
        self.store_all(sink, after)?;
        self.commit(sink, after)
    }

    fn place(&self, at: u64) -> (u64, Option<MediumKind>) {
        let (chunk, bytes) = (self.chunk_of(at), self.shape.volume.chunk);
        let end = (u64::from(chunk) + 1) * bytes;
        let e = &self.entries[chunk as usize];
        if e.is_hole() && !self.buffer.is_dirty(chunk) {
            return (end, None);
        }
        // Contents that are only in DRAM will be on the device.
        let (_, place) = self.base.devices.get(0).place(e.first.max(self.shape.exchange) * SECTOR_BYTES);
        (end, place.or(Some(MediumKind::Disk)))
    }

    fn write_guarantee(&self) -> WriteGuarantee {
        WriteGuarantee { durable_at: DurabilityPoint::OnFlush, ..WriteGuarantee::default() }
    }

    fn format(&mut self, sink: &mut Sink) -> Result<()> {
        self.entries.fill(Entry::default());
        self.space = RunSpace::new(self.shape.runs.0, self.shape.runs.1);
        self.buffer.clear();
        self.usage = Usage::default();
        self.table.format(sink, self.base.devices.get_mut(0), &fill_from(&self.entries)).map(|_| ())
    }

    fn load(&mut self, sink: &mut Sink, _: CrashKind) -> Result<Recovery> {
        let Some((mut recovery, twice)) = self.take_table(sink)? else {
            return Ok(Recovery { clean: true, ..Recovery::default() });
        };
        self.buffer.clear();
        let settled = self.table.settle(sink, self.base.devices.get_mut(0), &fill_from(&self.entries))?;
        self.freed_by = settled;
        if let Some(chunk) = twice {
            self.table.refuse(format!("the run of chunk {chunk} overlaps another one: check the volume"));
        }
        if let Some(first) = self.entries.iter().position(Entry::is_lost) {
            let lost = self.entries.iter().filter(|e| e.is_lost()).count();
            recovery.unnamed.push(format!("{lost} chunks of compress: {}", self.lost(first as u32)));
            self.table.refuse("entries of its table are lost, and a write could overwrite their data");
        }
        if self.table.writable().is_ok() {
            match self.empty_exchange(sink) {
                // The run stays readable where it is.
                Err(Error::ReadOnly { why }) => self.table.refuse(why),
                emptied => emptied?,
            }
        }
        Ok(recovery)
    }

    fn save(&mut self, sink: &mut Sink) -> Result<()> {
        self.table.writable()?;
        let start = sink.start();
        self.store_all(sink, start)?;
        let done = self.table.save(sink, self.base.devices.get_mut(0), start, &fill_from(&self.entries))?;
        self.committed(sink, done);
        sink.ack(done);
        Ok(())
    }

    fn precondition(&mut self, _: Precondition) -> Result<()> {
        // Pages of a preconditioned volume hold zeros, which take no space here.
        let why = "a preconditioned volume holds zeros, which compress to nothing; write the volume first";
        Err(Error::param("warm", "fill", why))
    }

    fn check(
        &mut self,
        sink: &mut Sink,
        scope: CheckScope,
        found: &mut dyn FnMut(Finding),
    ) -> Result<CheckCounts> {
        Ok(self.run_check(sink, scope, found))
    }

    fn refuses(&self) -> Option<String> {
        self.table.refuses().map(str::to_owned).or_else(|| self.base.devices.refuses())
    }

    fn metrics(&self) -> Vec<Metric> {
        let u = &self.usage;
        let bytes = |name, value: u64, help| Metric { name, value: to_f64(value), unit: "bytes", help };
        let share = |name, value, help| Metric { name, value, unit: "", help };
        let logical = u.chunks * self.shape.volume.chunk;
        let (free, longest) = (self.space.free(), self.space.longest());
        let ratio = if u.sectors == 0 { 1.0 } else { to_f64(logical) / to_f64(u.sectors * SECTOR_BYTES) };
        let fragmentation = if free == 0 { 0.0 } else { 1.0 - to_f64(longest) / to_f64(free) };
        vec![
            bytes("logical", logical, "bytes of the chunks that hold data"),
            bytes("stored", u.stored, "bytes of their stored forms"),
            bytes("allocated", u.sectors * SECTOR_BYTES, "bytes of the sectors of their runs"),
            bytes("free", self.space.sectors() * SECTOR_BYTES, "bytes of free sectors"),
            share("ratio", ratio, "logical bytes for each allocated byte"),
            share("fragmentation", fragmentation, "share of the free sectors outside the longest free run"),
            Metric {
                name: "moved",
                value: to_f64(u.moved),
                unit: "runs",
                help: "runs moved to join free ones",
            },
        ]
    }
}

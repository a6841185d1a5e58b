//! The layer: requests, allocation and commits.

use super::config::{ENTRY_BYTES, KIND, ThinConfig, ThinShape};
use super::space::ChunkSpace;
use crate::composed::{Base, Composer};
use crate::devices::Devices;
use crate::planted::ThinBug;
use crate::table::{self, Loaded, Table};
use frit_core::BlockDevice;
use frit_core::convert::to_f64;
use frit_core::planted::is_planted;
use frit_core::visible::Metric;
use frit_core::{
    Cause, CheckCounts, CheckScope, CrashKind, DurabilityPoint, Error, Finding, MediumKind, Precondition,
    ReadTarget, Recovery, Result, Sink, Tok, WriteData, WriteGuarantee, size,
};

/// Entry of a chunk that was never written or was discarded.
pub(super) const NONE: u32 = 0;
/// Entry of a chunk whose table sector is lost.
pub(super) const LOST: u32 = u32::MAX;

/// A device of any size over a smaller one.
pub struct Thin {
    pub(super) base: Base<ThinConfig>,
    pub(super) shape: ThinShape,
    /// Binary logarithm of the size of a chunk.
    shift: u32,
    /// For each chunk, the number of its chunk on the device plus 1; [`NONE`]; [`LOST`].
    pub(super) map: Vec<u32>,
    pub(super) space: ChunkSpace,
    pub(super) table: Table,
    /// Chunks that were mapped since the last commit.
    new: Vec<u32>,
    /// The commit that freed chunks last. A write to a free chunk waits for it.
    freed_by: Tok,
    /// A chunk of zeros around the data of its first write.
    padded: Vec<u8>,
}

/// Writes the entries of a table sector.
pub(super) fn fill_from(map: &[u32]) -> impl Fn(u32, &mut [u8]) + '_ {
    table::fill_from(&KIND, map, |&mapped, into| into.copy_from_slice(&u64::from(mapped).to_le_bytes()))
}

impl Thin {
    /// Provisions a device, which is the only one of `devices`.
    ///
    /// # Errors
    /// A chunk or a size that does not fit the device.
    pub fn new(config: ThinConfig, devices: Devices) -> Result<Thin> {
        let shape = ThinShape::new(&config, devices.get(0).bytes())?;
        Ok(Thin {
            shift: config.chunk.trailing_zeros(),
            map: vec![NONE; shape.offered as usize],
            space: ChunkSpace::new(shape.stored),
            table: Table::new(KIND, shape.volume, shape.layout),
            new: Vec::new(),
            freed_by: Tok::default(),
            padded: Vec::new(),
            base: Base::new(config, devices),
            shape,
        })
    }

    /// Returns the number of the chunk of a byte.
    #[inline]
    fn chunk_of(&self, at: u64) -> usize {
        (at >> self.shift) as usize
    }

    /// Returns the address on the device of a byte of a mapped chunk.
    #[inline]
    fn address(&self, mapped: u32, at: u64) -> u64 {
        let within = at & (self.shape.volume.chunk - 1);
        self.shape.volume.data_at + (u64::from(mapped - 1) << self.shift) + within
    }

    /// Returns the length of the run from a byte on whose chunks have the same kind of entry, and
    /// are adjacent on the device, at most `most`.
    #[inline]
    fn run(&self, at: u64, most: u64) -> u64 {
        let chunk = self.shape.volume.chunk;
        let mut len = chunk - (at & (chunk - 1));
        let mut i = self.chunk_of(at);
        let step = u32::from(self.map[i] != NONE);
        while len < most && self.map[i] != LOST && self.map[i + 1] == self.map[i] + step {
            i += 1;
            len += chunk;
        }
        len.min(most)
    }

    /// Returns the error of an access to a chunk whose entry is lost.
    fn lost(&self, at: u64) -> Error {
        self.table.lost_entry(self.chunk_of(at) as u64)
    }

    /// Makes changes durable, and frees the chunks that they have freed.
    fn commit(&mut self, sink: &mut Sink, after: Tok) -> Result<Tok> {
        let done = self.table.commit(sink, self.base.devices.get_mut(0), after, &fill_from(&self.map))?;
        self.committed(sink, done);
        Ok(done)
    }

    /// Takes note of a commit of the table.
    fn committed(&mut self, sink: &mut Sink, done: Tok) {
        self.new.clear();
        if self.space.freed() > 0 {
            self.space.committed();
            self.freed_by = sink.join(self.freed_by, done);
        }
    }

    /// Takes a free chunk. Returns it and the token that its write waits for.
    fn allocate(&mut self, sink: &mut Sink, after: Tok) -> Result<(u32, Tok)> {
        if self.space.free() == 0 && self.space.freed() > 0 {
            self.commit(sink, after)?;
        }
        let Some(chunk) = self.space.take() else { return Err(self.full()) };
        let ordered = !is_planted(ThinBug::ReuseNotOrdered);
        Ok((chunk, if ordered { sink.join(after, self.freed_by) } else { after }))
    }

    /// Returns a token that is done after `after` and after the commit that freed the chunks which are
    /// in use again: until then, the durable table may name them as the chunks of other addresses.
    /// This concerns each write of such a chunk and not only its first one, since the device orders
    /// two writes to one place only if it keeps them in one place.
    fn after_freeing(&self, sink: &mut Sink, after: Tok) -> Tok {
        let ordered = !is_planted(ThinBug::ReuseNotOrdered) && !is_planted(ThinBug::ReuseOrderedOnce);
        if ordered { sink.join(after, self.freed_by) } else { after }
    }

    fn full(&self) -> Error {
        let bytes = |chunks: u64| size::format(chunks * self.shape.volume.chunk);
        let what = format!(
            "all {} chunks of {} of the device are allocated: {} of the {} that thin offers; discard what is \
             not needed (fstrim), or enlarge the device",
            self.shape.stored,
            bytes(1),
            bytes(self.shape.stored),
            size::format(self.shape.volume.size)
        );
        Error::NoSpace { what }
    }

    /// Writes a part of a chunk that is not mapped, or all of it.
    fn write_new(&mut self, sink: &mut Sink, at: u64, data: WriteData<'_>, after: Tok) -> Result<Tok> {
        let i = self.chunk_of(at);
        let (chunk, ready) = self.allocate(sink, after)?;
        let mapped = chunk + 1;
        let whole =
            u64::from(data.len()) == self.shape.volume.chunk || is_planted(ThinBug::NewChunkNotZeroed);
        let (to, data) = if whole {
            (self.address(mapped, at), data)
        } else if let Some(bytes) = data.bytes() {
            let within = (at & (self.shape.volume.chunk - 1)) as usize;
            self.padded.clear();
            self.padded.resize(self.shape.volume.chunk as usize, 0);
            self.padded[within..within + bytes.len()].copy_from_slice(bytes);
            (self.address(mapped, 0), WriteData::Bytes(&self.padded))
        } else {
            (self.address(mapped, 0), WriteData::Len(self.shape.volume.chunk as u32))
        };
        match self.base.devices.get_mut(0).write(sink, to, data, Cause::Host, ready) {
            Ok(done) => {
                self.map[i] = mapped;
                self.table.change(i as u64);
                self.new.push(i as u32);
                Ok(done)
            }
            Err(e) => {
                self.space.give_back(chunk);
                Err(e)
            }
        }
    }

    /// Unmaps a whole chunk.
    fn unmap(&mut self, i: usize) {
        let mapped = std::mem::replace(&mut self.map[i], NONE);
        self.space.free_later(mapped - 1);
        if !is_planted(ThinBug::DiscardForgotten) {
            self.table.change(i as u64);
        }
    }

    /// Takes the entries of the table, and finds the chunks that they name.
    /// Returns the result, and a chunk whose place another one has.
    fn take_table(&mut self, sink: &mut Sink) -> Result<Option<(Recovery, Option<usize>)>> {
        let per = KIND.entries_per_sector();
        let stored = self.shape.stored;
        let (map, space) = (&mut self.map, &mut ChunkSpace::new(stored));
        let mut twice = None;
        let loaded = self.table.load(sink, self.base.devices.get_mut(0), &mut |i, payload| {
            let first = i as usize * per;
            let end = (first + per).min(map.len());
            let Some(payload) = payload else { return map[first..end].fill(LOST) };
            for (at, b) in (first..end).zip(payload.chunks_exact(ENTRY_BYTES)) {
                let entry = u64::from_le_bytes(b.try_into().unwrap_or([0xff; ENTRY_BYTES]));
                map[at] = match entry {
                    0 => NONE,
                    n if n <= stored => {
                        let chunk = (n - 1) as u32;
                        if !space.take_one(chunk) {
                            twice.get_or_insert(at);
                        }
                        chunk + 1
                    }
                    _ => LOST,
                };
            }
        })?;
        let Loaded::Read { unequal, bytes } = loaded else { return Ok(None) };
        self.space = space.clone();
        let mapped = stored - self.space.free();
        let recovery =
            Recovery { clean: unequal == 0, pages: mapped, bytes_read: bytes, ..Recovery::default() };
        Ok(Some((recovery, twice)))
    }

    /// Returns an error for a read of chunks whose writes a failed flush may have lost: their place
    /// may hold the former contents of other chunks.
    fn check_new(&self, at: u64, len: u64) -> Result<()> {
        let Some(why) = self.table.refuses() else { return Ok(()) };
        let (first, last) = (self.chunk_of(at) as u32, self.chunk_of(at + len - 1) as u32);
        // A chunk that was discarded since then reads as zeros.
        let kept = |i: u32| !matches!(self.map[i as usize], NONE | LOST);
        match self.new.iter().find(|&&i| i >= first && i <= last && kept(i)) {
            None => Ok(()),
            Some(i) => {
                let what = format!("chunk {i} of thin was allocated, and {why}");
                Err(Error::Corrupt {
                    medium: MediumKind::Disk,
                    at: self.address(self.map[*i as usize], 0),
                    what,
                })
            }
        }
    }
}

impl Composer for Thin {
    const NAME: &'static str = "thin";
    const DEFERS_READS: bool = true;
    type Config = ThinConfig;

    fn base(&self) -> &Base<ThinConfig> {
        &self.base
    }

    fn base_mut(&mut self) -> &mut Base<ThinConfig> {
        &mut self.base
    }

    fn bytes(&self) -> u64 {
        self.shape.volume.size
    }

    fn durable_map_bytes(&self) -> u64 {
        self.shape.layout.bytes()
    }

    fn dram_bytes(&self) -> u64 {
        self.map.len() as u64 * size_of::<u32>() as u64 + self.shape.stored.div_ceil(8)
    }

    fn read(&mut self, sink: &mut Sink, at: u64, mut into: ReadTarget<'_>, after: Tok) -> Result<Tok> {
        let (mut done, mut from, len) = (after, 0, into.len());
        self.check_new(at, u64::from(len.max(1)))?;
        while from < len {
            let pos = at + u64::from(from);
            let n = self.run(pos, u64::from(len - from)) as u32;
            match self.map[self.chunk_of(pos)] {
                NONE => into.part(from, n).zero(),
                LOST => return Err(self.lost(pos)),
                mapped => {
                    let (to, part) = (self.address(mapped, pos), into.part(from, n));
                    let tok = self.base.devices.get_mut(0).read(sink, to, part, Cause::Host, after)?;
                    done = sink.join(done, tok);
                }
            }
            from += n;
        }
        Ok(done)
    }

    fn write(&mut self, sink: &mut Sink, at: u64, data: WriteData<'_>, after: Tok) -> Result<Tok> {
        self.table.writable()?;
        let after = self.after_freeing(sink, after);
        let (mut done, mut from, len) = (after, 0, data.len());
        let chunk = self.shape.volume.chunk;
        while from < len {
            let pos = at + u64::from(from);
            let rest = u64::from(len - from);
            let (n, tok) = match self.map[self.chunk_of(pos)] {
                NONE => {
                    let n = (chunk - (pos & (chunk - 1))).min(rest) as u32;
                    (n, self.write_new(sink, pos, data.part(from, n), after)?)
                }
                LOST => return Err(self.lost(pos)),
                mapped => {
                    let n = self.run(pos, rest) as u32;
                    let (to, part) = (self.address(mapped, pos), data.part(from, n));
                    (n, self.base.devices.get_mut(0).write(sink, to, part, Cause::Host, after)?)
                }
            };
            done = sink.join(done, tok);
            from += n;
        }
        Ok(done)
    }

    fn zero(&mut self, sink: &mut Sink, at: u64, len: u64, after: Tok) -> Result<Tok> {
        self.table.writable()?;
        let after = self.after_freeing(sink, after);
        let (mut done, mut pos, end) = (after, at, at + len);
        let chunk = self.shape.volume.chunk;
        while pos < end {
            let n = (chunk - (pos & (chunk - 1))).min(end - pos);
            let i = self.chunk_of(pos);
            match self.map[i] {
                NONE => {}
                LOST => return Err(self.lost(pos)),
                _ if n == chunk => self.unmap(i),
                mapped => {
                    let to = self.address(mapped, pos);
                    let tok = self.base.devices.get_mut(0).zero(sink, to, n, Cause::Host, after)?;
                    done = sink.join(done, tok);
                }
            }
            pos += n;
        }
        Ok(done)
    }

    fn flush(&mut self, sink: &mut Sink, after: Tok) -> Result<Tok> {
        self.commit(sink, after)
    }

    fn place(&self, at: u64) -> (u64, Option<MediumKind>) {
        // The run is that of one chunk: a layer above asks for each of its blocks, and a search for the end of a
        // long run each time takes time that grows with the square of the volume.
        let chunk = self.chunk_of(at);
        let end = ((chunk as u64 + 1) << self.shift).min(self.shape.volume.size);
        match self.map[chunk] {
            NONE => (end, None),
            LOST => (end, Some(MediumKind::Disk)),
            mapped => {
                let to = self.address(mapped, at);
                let (device_end, place) = self.base.devices.get(0).place(to);
                (end.min(at + (device_end - to)), place)
            }
        }
    }

    fn write_guarantee(&self) -> WriteGuarantee {
        let atomic_bytes =
            self.base.devices.weakest_guarantee().atomic_bytes.min(self.base.config.chunk as u32);
        WriteGuarantee { durable_at: DurabilityPoint::OnFlush, atomic_bytes, ..WriteGuarantee::default() }
    }

    fn format(&mut self, sink: &mut Sink) -> Result<()> {
        self.map.fill(NONE);
        self.space = ChunkSpace::new(self.shape.stored);
        self.new.clear();
        self.table.format(sink, self.base.devices.get_mut(0), &fill_from(&self.map)).map(|_| ())
    }

    fn load(&mut self, sink: &mut Sink, _: CrashKind) -> Result<Recovery> {
        let Some((mut recovery, twice)) = self.take_table(sink)? else {
            return Ok(Recovery { clean: true, ..Recovery::default() });
        };
        self.new.clear();
        let settled = self.table.settle(sink, self.base.devices.get_mut(0), &fill_from(&self.map))?;
        self.freed_by = settled;
        if let Some(chunk) = twice {
            self.table.refuse(format!("chunk {chunk} and another one have the same place: check the volume"));
        }
        if let Some(first) = self.map.iter().position(|&m| m == LOST) {
            let lost = self.map.iter().filter(|&&m| m == LOST).count();
            let at = first as u64 * self.shape.volume.chunk;
            recovery.unnamed.push(format!("{lost} chunks of thin: {}", self.lost(at)));
            self.table.refuse("entries of its table are lost, and a write could overwrite their data");
        }
        Ok(recovery)
    }

    fn save(&mut self, sink: &mut Sink) -> Result<()> {
        let start = sink.start();
        let done = self.table.save(sink, self.base.devices.get_mut(0), start, &fill_from(&self.map))?;
        self.committed(sink, done);
        sink.ack(done);
        Ok(())
    }

    fn precondition(&mut self, how: Precondition) -> Result<()> {
        self.base.devices.precondition(how)?;
        if self.space.free() < self.shape.offered {
            return Err(self.full());
        }
        for i in 0..self.map.len() {
            if let (NONE, Some(chunk)) = (self.map[i], self.space.take()) {
                self.map[i] = chunk + 1;
                self.table.change(i as u64);
            }
        }
        Ok(())
    }

    fn check(
        &mut self,
        sink: &mut Sink,
        _: CheckScope,
        found: &mut dyn FnMut(Finding),
    ) -> Result<CheckCounts> {
        Ok(self.run_check(sink, found))
    }

    fn refuses(&self) -> Option<String> {
        self.table.refuses().map(str::to_owned).or_else(|| self.base.devices.refuses())
    }

    fn metrics(&self) -> Vec<Metric> {
        let (free, freed) = (self.space.free(), self.space.freed());
        let chunks = |name, value, help| Metric { name, value: to_f64(value), unit: "chunks", help };
        let low = to_f64(free + freed) < self.base.config.low_water * to_f64(self.shape.stored);
        vec![
            chunks("allocated", self.shape.stored - free - freed, "chunks of the device with data"),
            chunks("free", free, "chunks of the device that can be allocated"),
            chunks("freed", freed, "discarded chunks that wait for a commit of the table"),
            chunks("offered", self.shape.offered, "chunks that the layer offers"),
            Metric {
                name: "low_space",
                value: f64::from(u8::from(low)),
                unit: "",
                help: "1 if the share of free chunks is below low_water",
            },
        ]
    }
}

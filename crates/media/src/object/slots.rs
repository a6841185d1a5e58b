//! Objects in slots of a flat store.
//!
//! Layout of the store: the slots, a table of one record for each slot, two copies of the claim
//! state, and the header of the device. A slot contains the bytes of an object and a checksum of each
//! 4 KiB of them. The record of an object is written after its bytes. `docs/reference/format.md` has
//! the offsets.
//!
//! The table is kept in DRAM and is read back when the store is opened.

use super::{OBJECT_ALIGN, ObjectConfig};
use crate::checksum::{crc32c, crc32c_append};
use crate::header::{self, HEADER_BYTES, HeaderBytes};
use crate::{AnyStore, Store};
use frit_core::{Error, MediumKind, ObjectId, Result};
use std::collections::{BTreeMap, VecDeque};

const MAGIC: &[u8; 8] = b"fritOBJS";
const VERSION: u32 = 1;
const STATE_MAGIC: u32 = u32::from_le_bytes(*b"fOST");
const RECORD_MAGIC: u32 = u32::from_le_bytes(*b"fOBJ");

/// Alignment of the parts of the store.
const BLOCK: u64 = 4096;
/// Size of an object's record, and of a copy of the state, in bytes.
const RECORD_BYTES: usize = 64;
/// Bytes of an object that one checksum covers.
const CHUNK: usize = OBJECT_ALIGN as usize;
/// Size of a checksum in bytes.
const SUM_BYTES: u64 = 4;
/// Records that are read together when the store is opened.
const READ_RECORDS: usize = 1024;

type Record = [u8; RECORD_BYTES];

/// Offsets of the parts of the store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct SlotLayout {
    objects: u32,
    object_bytes: u32,
}

impl SlotLayout {
    pub(super) fn new(config: &ObjectConfig) -> SlotLayout {
        SlotLayout { objects: config.objects, object_bytes: config.object_bytes }
    }

    fn slot_bytes(self) -> u64 {
        let sums = u64::from(self.object_bytes) / CHUNK as u64 * SUM_BYTES;
        u64::from(self.object_bytes) + sums.next_multiple_of(BLOCK)
    }

    /// Offset of the bytes of an object.
    fn data_at(self, slot: u32) -> u64 {
        u64::from(slot) * self.slot_bytes()
    }

    /// Offset of the checksum of a chunk.
    fn sum_at(self, slot: u32, chunk: u32) -> u64 {
        self.data_at(slot) + u64::from(self.object_bytes) + u64::from(chunk) * SUM_BYTES
    }

    /// Size of all slots, and offset of the table of records.
    pub(super) fn data_bytes(self) -> u64 {
        self.data_at(self.objects)
    }

    fn record_at(self, slot: u32) -> u64 {
        self.data_bytes() + u64::from(slot) * RECORD_BYTES as u64
    }

    /// Offset of a copy of the claim state. Each copy has a block of its own.
    fn state_at(self, copy: u32) -> u64 {
        self.record_at(self.objects).next_multiple_of(BLOCK) + u64::from(copy) * BLOCK
    }

    fn header_at(self) -> u64 {
        self.state_at(2)
    }

    pub(super) fn store_bytes(self) -> u64 {
        self.header_at() + HEADER_BYTES as u64
    }
}

/// Fills in the checksum of a record.
fn sealed(mut record: Record) -> Record {
    let crc = crc32c(&record[..RECORD_BYTES - 4]);
    record[RECORD_BYTES - 4..].copy_from_slice(&crc.to_le_bytes());
    record
}

fn word(record: &Record, at: usize) -> u32 {
    u32::from_le_bytes([record[at], record[at + 1], record[at + 2], record[at + 3]])
}

/// Returns a record of four numbers.
fn record(numbers: [u32; 4]) -> Record {
    let mut r = [0; RECORD_BYTES];
    for (at, n) in numbers.into_iter().enumerate() {
        r[4 * at..4 * at + 4].copy_from_slice(&n.to_le_bytes());
    }
    sealed(r)
}

/// Returns the numbers of a record, or `None` if it is empty, torn or damaged.
fn numbers(r: &Record, magic: u32) -> Option<[u32; 4]> {
    (word(r, 0) == magic && sealed(*r) == *r).then(|| [0, 4, 8, 12].map(|at| word(r, at)))
}

/// The checksum of a chunk covers its place, so that the bytes of an earlier object of the slot are
/// not taken for those of this one.
fn chunk_sum(data: &[u8], id: ObjectId, chunk: u32) -> u32 {
    let place = [id.epoch, id.number, chunk].map(u32::to_le_bytes);
    crc32c_append(crc32c(data), place.as_flattened())
}

/// An object in a slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct StoredObject {
    pub(super) slot: u32,
    pub(super) len: u32,
}

/// Objects in slots of a flat store.
#[derive(Debug)]
pub(super) struct Slots {
    name: String,
    layout: SlotLayout,
    store: AnyStore,
    objects: BTreeMap<ObjectId, StoredObject>,
    /// No slot from this one on is in use.
    fresh: u32,
    /// Free slots below `fresh`.
    free: VecDeque<u32>,
    /// Slots of deleted objects. They are free after the next flush: until then a power loss can
    /// bring the object back, which must not have the bytes of another one.
    deleted: Vec<u32>,
    epoch: u32,
    /// Number of state records written so far; the copies are written in turn.
    states: u32,
    /// Reason for which writes are refused: a sync failed, so the host may have dropped bytes.
    failed: Option<String>,
    /// A chunk that is read for a part of it.
    chunk: Vec<u8>,
}

impl Slots {
    /// Returns `true` if the store keeps the bytes that are written.
    #[inline]
    #[must_use]
    pub(super) fn stores_bytes(&self) -> bool {
        self.store.stores_bytes()
    }

    /// Opens the objects in a store. A blank store has none.
    pub(super) fn open(config: &ObjectConfig, store: AnyStore) -> std::result::Result<Slots, String> {
        let mut slots = Slots {
            name: config.name.clone(),
            layout: SlotLayout::new(config),
            store,
            objects: BTreeMap::new(),
            fresh: 0,
            free: VecDeque::new(),
            deleted: Vec::new(),
            epoch: 0,
            states: 0,
            failed: None,
            chunk: Vec::new(),
        };
        if !slots.stores_bytes() {
            return Ok(slots);
        }
        let (have, need) = (slots.store.len(), config.store_bytes());
        if have < need {
            let name = &config.name;
            return Err(format!("the store of the object store '{name}' has {have} bytes and needs {need}"));
        }
        let expected = slots.header();
        if slots.store.is_blank() {
            let header = header::finish_header(expected, config.serial);
            slots.store.write(slots.layout.header_at(), &header).map_err(|e| e.to_string())?;
            return Ok(slots);
        }
        let what = "object store of this size";
        header::verify_header(&slots.store, slots.layout.header_at(), expected, config.serial, what)
            .map_err(|e| format!("object store '{}': {e}", config.name))?;
        slots.read_state().and_then(|()| slots.read_table()).map_err(|e| e.to_string())?;
        Ok(slots)
    }

    /// Magic (8), version (4), bytes of an object (4), objects (4), zeros (28), serial number (8),
    /// zeros (4), CRC32C (4).
    fn header(&self) -> HeaderBytes {
        let mut h = [0; HEADER_BYTES];
        h[..8].copy_from_slice(MAGIC);
        h[8..12].copy_from_slice(&VERSION.to_le_bytes());
        h[12..16].copy_from_slice(&self.layout.object_bytes.to_le_bytes());
        h[16..20].copy_from_slice(&self.layout.objects.to_le_bytes());
        h
    }

    fn read_state(&mut self) -> Result<()> {
        for copy in 0..2 {
            let mut r = [0; RECORD_BYTES];
            self.store.read(self.layout.state_at(copy), &mut r)?;
            if let Some([_, states, epoch, _]) = numbers(&r, STATE_MAGIC)
                && states > self.states
            {
                (self.states, self.epoch) = (states, epoch);
            }
        }
        Ok(())
    }

    fn read_table(&mut self) -> Result<()> {
        let mut used = Vec::new();
        let mut records = vec![0; READ_RECORDS * RECORD_BYTES];
        for first in (0..self.layout.objects).step_by(READ_RECORDS) {
            let n = READ_RECORDS.min((self.layout.objects - first) as usize);
            let bytes = &mut records[..n * RECORD_BYTES];
            self.store.read(self.layout.record_at(first), bytes)?;
            for (slot, r) in (first..).zip(bytes.as_chunks::<RECORD_BYTES>().0) {
                let Some([_, epoch, number, len]) = numbers(r, RECORD_MAGIC) else { continue };
                if len == 0 || len > self.layout.object_bytes {
                    continue;
                }
                self.objects.insert(ObjectId { epoch, number }, StoredObject { slot, len });
                // An epoch of an object is claimed, even if both copies of the state are damaged.
                self.epoch = self.epoch.max(epoch);
                used.push(slot);
            }
        }
        self.fresh = used.last().map_or(0, |&last| last + 1);
        let mut used = used.into_iter().peekable();
        self.free = (0..self.fresh).filter(|slot| used.next_if_eq(slot).is_none()).collect();
        Ok(())
    }

    pub(super) fn epoch(&self) -> u32 {
        self.epoch
    }

    pub(super) fn store_mut(&mut self) -> &mut AnyStore {
        &mut self.store
    }

    pub(super) fn refuses(&self) -> Option<String> {
        self.failed.clone()
    }

    fn writable(&self) -> Result<()> {
        self.failed.as_ref().map_or(Ok(()), |why| Err(Error::ReadOnly { why: why.clone() }))
    }

    /// Address of the first byte of the slot of an object, for its commands.
    pub(super) fn address(&self, slot: u32) -> u64 {
        self.layout.data_at(slot)
    }

    /// Address of the copy of the state that is written next.
    pub(super) fn state_address(&self) -> u64 {
        self.layout.state_at(self.states % 2)
    }

    pub(super) fn find(&self, id: ObjectId) -> Option<StoredObject> {
        self.objects.get(&id).copied()
    }

    pub(super) fn list(&self) -> Vec<(ObjectId, u32)> {
        self.objects.iter().map(|(&id, o)| (id, o.len)).collect()
    }

    /// Returns `true` if a put needs a flush first: only slots of deleted objects are left.
    pub(super) fn needs_flush(&self) -> bool {
        self.free.is_empty() && self.fresh == self.layout.objects && !self.deleted.is_empty()
    }

    /// Returns the slot that the next put takes.
    ///
    /// # Errors
    /// No slot is free, or writes are refused.
    pub(super) fn next_slot(&self) -> Result<u32> {
        self.writable()?;
        let fresh = (self.fresh < self.layout.objects).then_some(self.fresh);
        self.free.front().copied().or(fresh).ok_or_else(|| Error::NoSpace {
            what: format!(
                "the object store '{}' holds the {} objects that it has space for; give it more `objects`",
                self.name, self.layout.objects
            ),
        })
    }

    /// Writes an object into the slot of [`Slots::next_slot`].
    pub(super) fn put(&mut self, id: ObjectId, slot: u32, len: u32, data: Option<&[u8]>) -> Result<()> {
        if self.free.pop_front().is_none() {
            self.fresh += 1;
        }
        if let Some(data) = data.filter(|_| self.stores_bytes())
            && let Err(e) = self.write_object(id, slot, data)
        {
            // Some of the bytes may be written, so the slot is used like that of a deleted object.
            self.deleted.push(slot);
            return Err(e);
        }
        self.objects.insert(id, StoredObject { slot, len });
        Ok(())
    }

    fn write_object(&mut self, id: ObjectId, slot: u32, data: &[u8]) -> Result<()> {
        let sums = data.chunks(CHUNK).zip(0..).flat_map(|(chunk, i)| chunk_sum(chunk, id, i).to_le_bytes());
        let sums: Vec<u8> = sums.collect();
        self.store.write(self.layout.data_at(slot), data)?;
        self.store.write(self.layout.sum_at(slot, 0), &sums)?;
        let record = record([RECORD_MAGIC, id.epoch, id.number, data.len() as u32]);
        self.store.write(self.layout.record_at(slot), &record)
    }

    /// Reads bytes of an object, and checks the chunks that contain them.
    pub(super) fn read(
        &mut self,
        id: ObjectId,
        object: StoredObject,
        at: u32,
        into: &mut [u8],
    ) -> Result<()> {
        if !self.stores_bytes() {
            into.fill(0);
            return Ok(());
        }
        let (mut at, mut rest) = (at as usize, into);
        while !rest.is_empty() {
            let (chunk, skip) = (at / CHUNK, at % CHUNK);
            let whole = CHUNK.min(object.len as usize - chunk * CHUNK);
            let n = rest.len().min(whole - skip);
            let (part, next) = rest.split_at_mut(n);
            if n == whole {
                self.store.read(self.layout.data_at(object.slot) + at as u64, part)?;
                self.check_chunk(id, object, chunk as u32, part)?;
            } else {
                let mut bytes = std::mem::take(&mut self.chunk);
                bytes.resize(whole, 0);
                self.store.read(self.layout.data_at(object.slot) + (chunk * CHUNK) as u64, &mut bytes)?;
                self.check_chunk(id, object, chunk as u32, &bytes)?;
                part.copy_from_slice(&bytes[skip..skip + n]);
                self.chunk = bytes;
            }
            (at, rest) = (at + n, next);
        }
        Ok(())
    }

    fn check_chunk(&self, id: ObjectId, object: StoredObject, chunk: u32, bytes: &[u8]) -> Result<()> {
        let mut sum = [0; SUM_BYTES as usize];
        self.store.read(self.layout.sum_at(object.slot, chunk), &mut sum)?;
        if u32::from_le_bytes(sum) == chunk_sum(bytes, id, chunk) {
            return Ok(());
        }
        Err(Error::Corrupt {
            medium: MediumKind::Object,
            at: self.layout.data_at(object.slot) + u64::from(chunk) * CHUNK as u64,
            what: format!(
                "object {id} of '{}' differs from what was written, at its byte {}",
                self.name,
                chunk as usize * CHUNK
            ),
        })
    }

    /// Deletes an object that exists.
    pub(super) fn delete(&mut self, id: ObjectId, object: StoredObject) -> Result<()> {
        self.writable()?;
        if self.stores_bytes() {
            self.store.write(self.layout.record_at(object.slot), &[0; RECORD_BYTES])?;
        }
        self.objects.remove(&id);
        self.deleted.push(object.slot);
        Ok(())
    }

    /// Makes all changes durable.
    pub(super) fn sync(&mut self) -> Result<()> {
        self.writable()?;
        if let Err(e) = self.store.sync() {
            self.failed = Some(format!("a sync of the object store '{}' failed: {e}", self.name));
            return Err(e);
        }
        self.free.extend(self.deleted.drain(..));
        Ok(())
    }

    /// Writes the state: the epoch, and `true` if it is released.
    pub(super) fn write_state(&mut self, epoch: u32, released: bool) -> Result<()> {
        self.writable()?;
        if self.stores_bytes() {
            let record = record([STATE_MAGIC, self.states + 1, epoch, u32::from(released)]);
            self.store.write(self.state_address(), &record)?;
        }
        self.states += 1;
        self.epoch = epoch;
        Ok(())
    }
}

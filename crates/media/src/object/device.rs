//! The device: its requests as commands, its counts, and its objects.

use super::slots::Slots;
use super::{ObjectBacking, ObjectConfig, RemoteObjects};
use crate::{AnyStore, Device, Hardware, TimingModel};
use frit_core::visible::{MediumView, Wear};
use frit_core::{
    Cause, Cmd, Counts, Error, MediumKind, ObjectDevice, ObjectId, ObjectReader, Op, ReadTarget, Result,
    Sink, StackView, Tok, UnitId, UnitState, WriteData,
};
use std::sync::Arc;

/// Names that one list request returns (Amazon S3 API, `ListObjectsV2`: `max-keys`).
const LIST_NAMES: usize = 1000;
/// Size of the object that a claim or a release writes, in bytes.
const STATE_BYTES: u32 = 64;
/// Hazard of commands that concern no object: no slot has this number.
const NO_SLOT: u32 = u32::MAX;

/// Objects of a device.
#[derive(Debug)]
enum Objects {
    Slots(Box<Slots>),
    Remote(Box<dyn RemoteObjects>),
}

/// An object store.
#[derive(Debug)]
pub struct ObjectMedium {
    config: ObjectConfig,
    first_unit: UnitId,
    /// Connection that is tried first for the next request.
    next: u16,
    counts: Counts,
    objects: Objects,
    /// Epoch that this device claimed.
    claimed: Option<u32>,
    /// Done when the claim is durable.
    ready: Tok,
    /// Done when all puts and deletes since the last flush are done.
    unflushed: Tok,
}

impl ObjectMedium {
    /// Opens an object store and registers its connections, which are its units, with `hw`. They
    /// share one channel, the link. On a blank flat store the object store is new; otherwise it has
    /// the objects that the store contains.
    ///
    /// # Errors
    /// An impossible configuration, a flat store that is too small or contains another device, or
    /// more units than a stack can have.
    pub fn new(
        config: ObjectConfig,
        backing: ObjectBacking,
        hw: &mut Hardware,
    ) -> std::result::Result<Self, String> {
        config.check().map_err(|e| e.to_string())?;
        let objects = match backing {
            ObjectBacking::Flat(store) => Objects::Slots(Box::new(Slots::open(&config, store)?)),
            ObjectBacking::Remote(remote) => Objects::Remote(remote),
        };
        let first_unit = hw.add(Device {
            name: config.name.clone(),
            kind: MediumKind::Object,
            model: TimingModel::Object(config.timing),
            unit_channel: vec![0; config.connections as usize],
            nand: None,
        })?;
        Ok(ObjectMedium {
            config,
            first_unit,
            next: 0,
            counts: Counts::default(),
            objects,
            claimed: None,
            ready: Tok::default(),
            unflushed: Tok::default(),
        })
    }

    /// Configuration of the store.
    #[must_use]
    pub fn config(&self) -> &ObjectConfig {
        &self.config
    }

    /// Command counts by operation and cause.
    #[must_use]
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Returns `true` if the bytes of objects are kept.
    fn stores_bytes(&self) -> bool {
        match &self.objects {
            Objects::Slots(slots) => slots.stores_bytes(),
            Objects::Remote(_) => true,
        }
    }

    /// Mutable access to the flat store that bypasses the device; `None` if the objects are not in
    /// a flat store.
    pub fn store_mut(&mut self) -> Option<&mut AnyStore> {
        match &mut self.objects {
            Objects::Slots(slots) => Some(slots.store_mut()),
            Objects::Remote(_) => None,
        }
    }

    /// Geometry and counts.
    #[must_use]
    pub fn view(&self) -> MediumView {
        let c = &self.config;
        MediumView {
            layer: String::new(),
            name: c.name.clone(),
            kind: MediumKind::Object,
            bytes: c.bytes(),
            channels: 1,
            first_unit: self.first_unit,
            units: c.connections,
            geometry: vec![("objects", c.objects.into()), ("object_bytes", c.object_bytes.into())],
            counts: self.counts.clone(),
            wear: Wear { per: "object".into(), ..Wear::default() },
        }
    }

    /// Returns an idle connection, or the one that is idle first. Connections are tried in turn.
    fn connection(&mut self, sink: &Sink) -> UnitId {
        let all = self.config.connections as u16;
        let unit = |i: u16| UnitId(self.first_unit.0 + (self.next + i) % all);
        let free_at = |u: UnitId| match sink.unit(u) {
            UnitState::Idle => None,
            UnitState::BusyUntil(t) => Some(t),
        };
        let mut best = (free_at(unit(0)), unit(0));
        for u in (1..all).map(unit) {
            if best.0.is_none() {
                break;
            }
            best = best.min((free_at(u), u));
        }
        self.next = (best.1.0 - self.first_unit.0 + 1) % all;
        best.1
    }

    fn emit(&mut self, sink: &mut Sink, op: Op, place: Place, len: u32, cause: Cause, after: Tok) -> Tok {
        self.counts.add(op, cause, len);
        let unit = self.connection(sink);
        sink.emit(Cmd { addr: place.address, len, hazard: place.hazard, unit, op, cause }, after)
    }

    fn claimed(&self) -> Result<u32> {
        self.claimed.ok_or_else(|| rule(0, "a write before the store was claimed"))
    }

    /// Emits a flush and makes all changes durable.
    fn flush_all(&mut self, sink: &mut Sink, cause: Cause, after: Tok) -> Result<Tok> {
        let after = sink.join(after, self.unflushed);
        let tok = self.emit(sink, Op::ObjectFlush, Place::NONE, 0, cause, after);
        match &mut self.objects {
            Objects::Slots(slots) => slots.sync()?,
            Objects::Remote(remote) => remote.flush()?,
        }
        self.unflushed = Tok::default();
        Ok(tok)
    }

    /// Writes the state of the claim and makes it durable.
    fn write_state(&mut self, sink: &mut Sink, epoch: u32, released: bool) -> Result<()> {
        let Objects::Slots(slots) = &self.objects else { return Ok(()) };
        let place = Place { address: slots.state_address(), hazard: NO_SLOT };
        let after = sink.join(self.ready, self.unflushed);
        let tok = self.emit(sink, Op::ObjectPut, place, STATE_BYTES, Cause::Meta, after);
        if let Objects::Slots(slots) = &mut self.objects {
            slots.write_state(epoch, released)?;
        }
        self.ready = self.flush_all(sink, Cause::Meta, tok)?;
        Ok(())
    }
}

/// Address and hazard of a command.
#[derive(Clone, Copy)]
struct Place {
    address: u64,
    hazard: u32,
}

impl Place {
    const NONE: Place = Place { address: 0, hazard: NO_SLOT };

    /// Place of an object in a store that is not flat: its name.
    fn of_name(id: ObjectId) -> Place {
        Place { address: u64::from(id.epoch) << 32 | u64::from(id.number), hazard: id.number }
    }
}

fn rule(at: u64, what: &'static str) -> Error {
    Error::Rule { medium: MediumKind::Object, at, what }
}

fn missing(name: &str, id: ObjectId) -> Error {
    Error::Medium { what: format!("the object store '{name}' has no object {id}") }
}

impl ObjectDevice for ObjectMedium {
    fn object_bytes(&self) -> u32 {
        self.config.object_bytes
    }

    fn objects(&self) -> u64 {
        self.config.objects.into()
    }

    fn put(
        &mut self,
        sink: &mut Sink,
        id: ObjectId,
        data: WriteData<'_>,
        cause: Cause,
        after: Tok,
    ) -> Result<Tok> {
        let (epoch, len) = (self.claimed()?, data.len());
        let at = Place::of_name(id).address;
        if id.epoch != epoch {
            return Err(rule(at, "a name of an epoch that is not claimed"));
        }
        if len == 0 || len > self.config.object_bytes {
            return Err(rule(at, "an object has at least one byte, and at most object_bytes"));
        }
        if self.stores_bytes() && data.bytes().is_none() {
            return Err(rule(at, "a put without bytes to a store that holds bytes"));
        }
        let mut after = sink.join(after, self.ready);
        let place = match &self.objects {
            Objects::Remote(_) => Place::of_name(id),
            Objects::Slots(slots) => {
                if slots.find(id).is_some() {
                    return Err(rule(at, "the name of an object that exists"));
                }
                if slots.needs_flush() {
                    after = self.flush_all(sink, Cause::Meta, after)?;
                }
                let Objects::Slots(slots) = &self.objects else { return Ok(after) };
                let slot = slots.next_slot()?;
                Place { address: slots.address(slot), hazard: slot }
            }
        };
        let tok = self.emit(sink, Op::ObjectPut, place, len, cause, after);
        match &mut self.objects {
            Objects::Slots(slots) => slots.put(id, place.hazard, len, data.bytes())?,
            Objects::Remote(remote) => remote.put(id, data.bytes().unwrap_or_default())?,
        }
        self.unflushed = sink.join(self.unflushed, tok);
        Ok(tok)
    }

    fn get(
        &mut self,
        sink: &mut Sink,
        id: ObjectId,
        at: u32,
        mut into: ReadTarget<'_>,
        cause: Cause,
        after: Tok,
    ) -> Result<Tok> {
        let len = into.len();
        let mut found = None;
        let place = match &self.objects {
            Objects::Remote(_) => Place::of_name(id),
            Objects::Slots(slots) => {
                let object = slots.find(id).ok_or_else(|| missing(&self.config.name, id))?;
                if at.checked_add(len).is_none_or(|end| end > object.len) {
                    return Err(rule(Place::of_name(id).address, "a get reaches past the end of the object"));
                }
                found = Some(object);
                Place { address: slots.address(object.slot) + u64::from(at), hazard: object.slot }
            }
        };
        let after = sink.join(after, self.ready);
        let tok = self.emit(sink, Op::ObjectGet, place, len, cause, after);
        if let Some(into) = into.bytes() {
            match &mut self.objects {
                Objects::Slots(slots) => {
                    let object = found.ok_or_else(|| missing(&self.config.name, id))?;
                    slots.read(id, object, at, into)?;
                }
                Objects::Remote(remote) => remote.get(id, at, into)?,
            }
        }
        Ok(tok)
    }

    fn delete(&mut self, sink: &mut Sink, id: ObjectId, cause: Cause, after: Tok) -> Result<Tok> {
        self.claimed()?;
        let mut found = None;
        let place = match &self.objects {
            Objects::Remote(_) => Place::of_name(id),
            Objects::Slots(slots) => {
                let Some(object) = slots.find(id) else { return Ok(after) };
                found = Some(object);
                Place { address: slots.address(object.slot), hazard: object.slot }
            }
        };
        let after = sink.join(after, self.ready);
        let tok = self.emit(sink, Op::ObjectDelete, place, 0, cause, after);
        match &mut self.objects {
            Objects::Slots(slots) => found.map_or(Ok(()), |object| slots.delete(id, object))?,
            Objects::Remote(remote) => remote.delete(id)?,
        }
        self.unflushed = sink.join(self.unflushed, tok);
        Ok(tok)
    }

    fn flush(&mut self, sink: &mut Sink, cause: Cause, after: Tok) -> Result<Tok> {
        self.claimed()?;
        self.flush_all(sink, cause, after)
    }

    fn list(&mut self, sink: &mut Sink) -> Result<Vec<(ObjectId, u32)>> {
        let found = match &mut self.objects {
            Objects::Slots(slots) => slots.list(),
            Objects::Remote(remote) => remote.list()?,
        };
        // The next names are requested when the last ones are known.
        for _ in 0..found.len().div_ceil(LIST_NAMES).max(1) {
            self.ready = self.emit(sink, Op::ObjectList, Place::NONE, 0, Cause::Meta, self.ready);
        }
        Ok(found)
    }

    fn claim(&mut self, sink: &mut Sink, epoch: u32) -> Result<u32> {
        self.ready = self.emit(sink, Op::ObjectList, Place::NONE, 0, Cause::Meta, self.ready);
        let claimed = match &mut self.objects {
            Objects::Remote(remote) => {
                let claimed = remote.claim(epoch)?;
                let place = Place { address: 0, hazard: NO_SLOT };
                self.ready = self.emit(sink, Op::ObjectPut, place, STATE_BYTES, Cause::Meta, self.ready);
                claimed
            }
            Objects::Slots(slots) => {
                let above = slots.epoch().max(epoch);
                let next = above.checked_add(1).ok_or_else(|| Error::NoSpace {
                    what: format!("the object store '{}' has used all of its epochs", self.config.name),
                })?;
                self.write_state(sink, next, false)?;
                next
            }
        };
        self.claimed = Some(claimed);
        Ok(claimed)
    }

    fn release(&mut self, sink: &mut Sink) -> Result<()> {
        let epoch = self.claimed()?;
        match &mut self.objects {
            Objects::Slots(_) => self.write_state(sink, epoch, true)?,
            Objects::Remote(remote) => {
                remote.release()?;
                self.emit(sink, Op::ObjectPut, Place::NONE, STATE_BYTES, Cause::Meta, self.ready);
            }
        }
        self.claimed = None;
        Ok(())
    }

    fn reader(&self) -> Option<Arc<dyn ObjectReader>> {
        match &self.objects {
            Objects::Slots(_) => None,
            Objects::Remote(remote) => remote.reader(),
        }
    }

    fn visible(&self, view: &mut StackView) {
        view.media.push(self.view());
    }

    fn refuses(&self) -> Option<String> {
        match &self.objects {
            Objects::Slots(slots) => slots.refuses(),
            Objects::Remote(remote) => remote.refuses(),
        }
    }
}

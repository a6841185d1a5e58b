//! Tests of object stores: contents compared with a map, reopening, torn records, errors, commands.

use super::slots::Slots;
use super::*;
use crate::store::LentStore;
use crate::testing::{recorded, recording_sink};
use crate::{AnyStore, Hardware, MemoryStore, NoStore, Store};
use frit_core::{
    Cause, MediumKind, Nanos, ObjectDevice, ObjectId, Op, ReadTarget, Sink, StackView, Tok, WriteData,
};
use proptest::prelude::*;
use std::collections::BTreeMap;

const MIB: u64 = 1 << 20;

fn config(objects: u32) -> ObjectConfig {
    ObjectConfig {
        name: "remote".into(),
        object_bytes: 16 << 10,
        objects,
        connections: 2,
        timing: ObjectTiming {
            t_put: Nanos(2000),
            t_get: Nanos(1000),
            t_delete: Nanos(500),
            connection_ps_per_byte: 2000,
            link_ps_per_byte: 1000,
        },
        serial: 7,
    }
}

fn id(epoch: u32, number: u32) -> ObjectId {
    ObjectId { epoch, number }
}

/// Contents of an object, which name it.
fn contents(id: ObjectId, len: usize) -> Vec<u8> {
    (0..len).map(|i| (i / 7) as u8 ^ id.number as u8 ^ (id.epoch as u8) << 4).collect()
}

fn on(store: impl Into<AnyStore>, objects: u32) -> ObjectMedium {
    ObjectMedium::new(config(objects), ObjectBacking::Flat(store.into()), &mut Hardware::new()).unwrap()
}

fn open(store: &LentStore<MemoryStore>, objects: u32) -> ObjectMedium {
    on(store, objects)
}

fn blank(objects: u32) -> MemoryStore {
    MemoryStore::new(config(objects).store_bytes())
}

fn memory(objects: u32) -> LentStore<MemoryStore> {
    LentStore::new(blank(objects))
}

fn sink() -> Sink {
    Sink::untimed()
}

fn put(d: &mut ObjectMedium, id: ObjectId, len: usize) -> Result<Tok> {
    d.put(&mut sink(), id, WriteData::Bytes(&contents(id, len)), Cause::Host, Tok::DONE)
}

fn get(d: &mut ObjectMedium, id: ObjectId, at: u32, len: usize) -> Result<Vec<u8>> {
    let mut into = vec![0; len];
    d.get(&mut sink(), id, at, ReadTarget::Bytes(&mut into), Cause::Host, Tok::DONE)?;
    Ok(into)
}

fn list(d: &mut ObjectMedium) -> Vec<(ObjectId, u32)> {
    ObjectDevice::list(d, &mut sink()).unwrap()
}

fn delete(d: &mut ObjectMedium, id: ObjectId) {
    d.delete(&mut sink(), id, Cause::Gc, Tok::DONE).unwrap();
}

fn flush(d: &mut ObjectMedium) {
    d.flush(&mut sink(), Cause::Host, Tok::DONE).unwrap();
}

fn claim(d: &mut ObjectMedium) -> u32 {
    d.claim(&mut sink(), 0).unwrap()
}

#[test]
fn objects_come_back_in_parts_and_after_a_reopening() {
    let store = memory(8);
    let mut d = open(&store, 8);
    assert_eq!(claim(&mut d), 1);
    put(&mut d, id(1, 1), 16384).unwrap();
    put(&mut d, id(1, 2), 5000).unwrap();
    flush(&mut d);
    let mut d = open(&store, 8);
    assert_eq!(list(&mut d), [(id(1, 1), 16384), (id(1, 2), 5000)]);
    for (at, len) in [(0, 16384), (0, 1), (4095, 2), (4096, 4096), (12000, 4384), (100, 10000)] {
        assert_eq!(get(&mut d, id(1, 1), at, len).unwrap(), contents(id(1, 1), 16384)[at as usize..][..len]);
    }
    assert_eq!(get(&mut d, id(1, 2), 4090, 910).unwrap(), contents(id(1, 2), 5000)[4090..]);
    assert_eq!(claim(&mut d), 2);
    d.release(&mut sink()).unwrap();
    // A higher epoch of the layer counts as claimed.
    assert_eq!(open(&store, 8).claim(&mut sink(), 9).unwrap(), 10);
}

#[test]
fn wrong_requests_are_refused_and_neither_counted_nor_emitted() {
    let store = memory(2);
    let mut d = open(&store, 2);
    assert!(put(&mut d, id(1, 1), 10).unwrap_err().to_string().contains("before the store was claimed"));
    claim(&mut d);
    put(&mut d, id(1, 1), 10).unwrap();
    let before = d.counts().clone();
    let text = |r: Result<Tok>| r.unwrap_err().to_string();
    assert!(text(put(&mut d, id(1, 1), 10)).contains("the name of an object that exists"));
    assert!(text(put(&mut d, id(2, 1), 10)).contains("an epoch that is not claimed"));
    assert!(text(put(&mut d, id(1, 2), 16385)).contains("at most object_bytes"));
    assert!(text(put(&mut d, id(1, 2), 0)).contains("at least one byte"));
    assert!(
        text(d.put(&mut sink(), id(1, 2), WriteData::Len(9), Cause::Host, Tok::DONE))
            .contains("without bytes")
    );
    assert!(text(get(&mut d, id(1, 1), 1, 10).map(|_| Tok::DONE)).contains("past the end of the object"));
    assert!(
        text(get(&mut d, id(1, 1), u32::MAX, 10).map(|_| Tok::DONE)).contains("past the end of the object")
    );
    let error = text(get(&mut d, id(3, 4), 0, 1).map(|_| Tok::DONE));
    assert_eq!(error, "the object store 'remote' has no object 3-4");
    d.delete(&mut sink(), id(3, 4), Cause::Gc, Tok::DONE).unwrap();
    assert_eq!(d.counts(), &before);
    put(&mut d, id(1, 2), 10).unwrap();
    let error = text(put(&mut d, id(1, 3), 10));
    assert!(error.contains("no space") && error.contains("'remote' holds the 2 objects"), "{error}");
}

#[test]
fn a_slot_is_used_again_only_after_a_flush_of_its_delete() {
    let store = memory(2);
    let mut d = open(&store, 2);
    claim(&mut d);
    put(&mut d, id(1, 1), 9000).unwrap();
    put(&mut d, id(1, 2), 9000).unwrap();
    delete(&mut d, id(1, 1));
    assert!(get(&mut d, id(1, 1), 0, 1).is_err());
    let flushes = d.counts().of(Op::ObjectFlush).commands;
    // The store is full but for the deleted object, so the put flushes.
    put(&mut d, id(1, 3), 100).unwrap();
    assert_eq!(d.counts().of(Op::ObjectFlush).commands, flushes + 1);
    assert_eq!(get(&mut d, id(1, 3), 0, 100).unwrap(), contents(id(1, 3), 100));
    assert_eq!(list(&mut d), [(id(1, 2), 9000), (id(1, 3), 100)]);
    assert_eq!(list(&mut open(&store, 2)), [(id(1, 2), 9000), (id(1, 3), 100)]);
}

#[test]
fn the_store_of_another_device_is_refused() {
    let store = memory(4);
    drop(open(&store, 4));
    let refused = |c: ObjectConfig, store: &LentStore<MemoryStore>| {
        ObjectMedium::new(c, ObjectBacking::Flat(store.into()), &mut Hardware::new()).unwrap_err()
    };
    assert!(refused(ObjectConfig { serial: 8, ..config(4) }, &store).contains("belongs to another volume"));
    let e = refused(ObjectConfig { object_bytes: 8192, objects: 5, ..config(4) }, &store);
    assert!(e.contains("no object store of this size") || e.contains("object store of this size"), "{e}");
    assert!(refused(config(5), &store).contains("needs"), "too small");
}

/// A store that keeps the order of its writes.
#[derive(Debug)]
struct Logged(MemoryStore, Vec<(u64, Vec<u8>)>, bool);

impl Store for Logged {
    fn len(&self) -> u64 {
        self.0.len()
    }
    fn is_blank(&self) -> bool {
        self.0.is_blank()
    }
    fn read(&self, at: u64, into: &mut [u8]) -> Result<()> {
        self.0.read(at, into)
    }
    fn write(&mut self, at: u64, data: &[u8]) -> Result<()> {
        self.1.push((at, data.to_vec()));
        self.0.write(at, data)
    }
    fn sync(&mut self) -> Result<()> {
        if self.2 {
            return Err(Error::Io { what: "sync".into(), source: std::io::ErrorKind::StorageFull.into() });
        }
        Ok(())
    }
}

#[test]
fn a_torn_put_is_missing_or_refused_by_name() {
    let logged = LentStore::new(Logged(blank(4), Vec::new(), false));
    let mut d = on(&logged, 4);
    d.claim(&mut sink(), 0).unwrap();
    let before = logged.get().1.len();
    put(&mut d, id(1, 1), 10_000).unwrap();
    let writes = logged.get().1.clone();
    let (done, torn) = writes.split_at(before);
    assert_eq!(torn.len(), 3, "bytes, checksums, record");
    let sectors: Vec<(u64, &[u8])> = torn
        .iter()
        .flat_map(|(at, data)| {
            let part = move |(i, p)| (at + 512 * i as u64, p);
            data.chunks(512).enumerate().map(part)
        })
        .collect();
    for lost in 0..=sectors.len() {
        // All but one sector, or only those before it.
        for after in [true, false] {
            let store = memory(4);
            for (at, data) in done {
                store.get().write(*at, data).unwrap();
            }
            for (i, (at, data)) in sectors.iter().enumerate() {
                if i < lost || (after && i > lost) {
                    store.get().write(*at, data).unwrap();
                }
            }
            let mut d = open(&store, 4);
            let whole = lost == sectors.len();
            match get(&mut d, id(1, 1), 0, 10_000) {
                Ok(bytes) => assert!(whole && bytes == contents(id(1, 1), 10_000), "sector {lost}"),
                Err(e) if list(&mut d).is_empty() => {
                    assert!(!whole && e.to_string().contains("has no object 1-1"));
                }
                Err(e) => assert!(!whole && e.to_string().contains("object 1-1 of 'remote'"), "{e}"),
            }
            assert_eq!(claim(&mut d), 2, "the epoch of a torn put is used up");
        }
    }
}

#[test]
fn bytes_of_an_earlier_object_of_the_slot_are_not_taken_for_those_of_a_later_one() {
    let store = memory(1);
    let mut d = open(&store, 1);
    claim(&mut d);
    put(&mut d, id(1, 1), 8192).unwrap();
    flush(&mut d);
    let mut old = vec![0; config(1).data_bytes() as usize];
    d.store_mut().unwrap().read(0, &mut old).unwrap();
    delete(&mut d, id(1, 1));
    put(&mut d, id(1, 2), 8192).unwrap();
    // The bytes and the checksums of the second object are lost, its record is not.
    d.store_mut().unwrap().write(0, &old).unwrap();
    assert!(get(&mut d, id(1, 2), 0, 8192).unwrap_err().to_string().contains("object 1-2"));
}

#[test]
fn a_torn_state_leaves_the_epoch_before() {
    let logged = LentStore::new(Logged(blank(1), Vec::new(), false));
    let mut slots = Slots::open(&config(1), (&logged).into()).unwrap();
    for epoch in 1..6 {
        slots.write_state(epoch, false).unwrap();
        let mut torn = Slots::open(&config(1), blank(1).into()).unwrap();
        let writes = logged.get().1.clone();
        for (at, data) in &writes[..writes.len() - 1] {
            torn.store_mut().write(*at, data).unwrap();
        }
        let (at, data) = &writes[writes.len() - 1];
        torn.store_mut().write(*at, &data[..20]).unwrap();
        let store = std::mem::replace(torn.store_mut(), NoStore.into());
        assert_eq!(Slots::open(&config(1), store).unwrap().epoch(), epoch - 1);
    }
}

#[test]
fn after_a_failed_sync_writes_are_refused_and_reads_continue() {
    let logged = LentStore::new(Logged(blank(4), Vec::new(), false));
    let mut d = on(&logged, 4);
    d.claim(&mut sink(), 0).unwrap();
    put(&mut d, id(1, 1), 100).unwrap();
    logged.get().2 = true;
    assert!(d.flush(&mut sink(), Cause::Host, Tok::DONE).is_err());
    logged.get().2 = false;
    let refused = |r: Result<Tok>| {
        let text = r.unwrap_err().to_string();
        assert!(text.contains("read-only: a sync of the object store 'remote' failed"), "{text}");
    };
    refused(d.flush(&mut sink(), Cause::Host, Tok::DONE));
    refused(put(&mut d, id(1, 2), 100));
    refused(d.delete(&mut sink(), id(1, 1), Cause::Gc, Tok::DONE));
    assert!(ObjectDevice::refuses(&d).is_some());
    assert_eq!(get(&mut d, id(1, 1), 0, 100).unwrap(), contents(id(1, 1), 100));
}

#[test]
fn commands_have_the_order_of_durability() {
    let mut sink = recording_sink();
    let mut d = on(NoStore, 4);
    d.claim(&mut sink, 0).unwrap();
    let a = d.put(&mut sink, id(1, 1), WriteData::Len(4096), Cause::Host, Tok::DONE).unwrap();
    let b = d.put(&mut sink, id(1, 2), WriteData::Len(8192), Cause::Gc, a).unwrap();
    let get = d.get(&mut sink, id(1, 1), 0, ReadTarget::Len(100), Cause::Host, Tok::DONE).unwrap();
    let gone = d.delete(&mut sink, id(1, 1), Cause::Gc, get).unwrap();
    let flush = d.flush(&mut sink, Cause::Host, Tok::DONE).unwrap();
    let ops: Vec<Op> = recorded(&sink).iter().map(|c| c.0.op).collect();
    use Op::{ObjectDelete, ObjectFlush, ObjectGet, ObjectList, ObjectPut};
    let claim = [ObjectList, ObjectPut, ObjectFlush];
    assert_eq!(ops, [&claim[..], &[ObjectPut, ObjectPut, ObjectGet, ObjectDelete, ObjectFlush]].concat());
    // The claim is durable before the first put, and the flush waits for all puts and deletes.
    let claimed = 1 << 2;
    assert_eq!(recorded(&sink)[2].1, 1 << 1);
    assert_eq!((recorded(&sink)[3].1, recorded(&sink)[4].1), (claimed, claimed | a.number()));
    assert_eq!(recorded(&sink)[7].1, (a.number() | b.number() | gone.number()));
    let after = d.put(&mut sink, id(1, 3), WriteData::Len(1), Cause::Host, flush).unwrap();
    d.flush(&mut sink, Cause::Host, Tok::DONE).unwrap();
    assert_eq!(recorded(&sink)[9].1, after.number(), "earlier puts are durable already");
    // Puts and deletes of a slot have one hazard, and connections take turns.
    assert_eq!(recorded(&sink)[3].0.hazard, recorded(&sink)[6].0.hazard);
    assert_ne!(recorded(&sink)[3].0.hazard, recorded(&sink)[4].0.hazard);
    assert_ne!(recorded(&sink)[3].0.unit, recorded(&sink)[4].0.unit);
    let mut view = StackView::default();
    ObjectDevice::visible(&d, &mut view);
    let m = view.medium(MediumKind::Object).unwrap();
    assert_eq!((m.units, m.bytes), (2, 64 << 10));
    assert_eq!(m.counts.get(ObjectPut, Cause::Gc).bytes, 8192);
}

#[test]
fn impossible_configurations_are_refused() {
    let error = |c: ObjectConfig| c.check().unwrap_err().to_string();
    assert!(error(ObjectConfig { object_bytes: 5000, ..config(1) }).contains("multiple of 4K"));
    assert!(error(config(0)).contains("objects = 0"));
    assert!(error(ObjectConfig { connections: 1025, ..config(1) }).contains("1 to 1024"));
    let mut slow_link = config(1);
    slow_link.timing.link_ps_per_byte = 3000;
    assert!(error(slow_link).contains("at most link_mb_per_s"));
}

/// A step of the comparison with a map.
#[derive(Clone, Debug)]
enum Step {
    Put(u32),
    Get(usize, u32, u32),
    Delete(usize),
    Flush,
    Reopen,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1..=16384u32).prop_map(Step::Put),
        3 => (any::<usize>(), any::<u32>(), any::<u32>()).prop_map(|(i, at, len)| Step::Get(i, at, len)),
        3 => any::<usize>().prop_map(Step::Delete),
        1 => Just(Step::Flush),
        1 => Just(Step::Reopen),
    ]
}

proptest! {
    #[test]
    fn it_behaves_as_a_map(steps in proptest::collection::vec(step(), 1..80)) {
        let mut model: BTreeMap<ObjectId, Vec<u8>> = BTreeMap::new();
        let store = memory(6);
        let mut d = open(&store, 6);
        let mut epoch = claim(&mut d);
        let mut number = 0;
        let nth = |model: &BTreeMap<ObjectId, Vec<u8>>, i: usize| {
            let i = i.checked_rem(model.len())?;
            model.keys().nth(i).copied()
        };
        for step in steps {
            match step {
                Step::Put(len) => {
                    number += 1;
                    let id = id(epoch, number);
                    let done = put(&mut d, id, len as usize);
                    prop_assert_eq!(done.is_ok(), model.len() < 6);
                    if done.is_ok() {
                        model.insert(id, contents(id, len as usize));
                    }
                }
                Step::Get(i, at, len) => {
                    let Some(id) = nth(&model, i) else { continue };
                    let bytes = &model[&id];
                    let at = at as usize % bytes.len();
                    let len = len as usize % (bytes.len() - at + 1);
                    prop_assert_eq!(&get(&mut d, id, at as u32, len).unwrap(), &bytes[at..at + len]);
                }
                Step::Delete(i) => {
                    let Some(id) = nth(&model, i) else { continue };
                    delete(&mut d, id);
                    model.remove(&id);
                }
                Step::Flush => flush(&mut d),
                Step::Reopen => {
                    d = open(&store, 6);
                    let next = claim(&mut d);
                    prop_assert!(next == epoch + 1);
                    (epoch, number) = (next, 0);
                }
            }
            let sizes: Vec<_> = model.iter().map(|(&id, b)| (id, b.len() as u32)).collect();
            prop_assert_eq!(list(&mut d), sizes);
        }
    }
}

#[test]
fn a_store_without_bytes_has_the_space_that_it_states() {
    let mut d = ObjectMedium::new(
        ObjectConfig { object_bytes: 1 << 30, ..config(3) },
        ObjectBacking::Flat(NoStore.into()),
        &mut Hardware::new(),
    )
    .unwrap();
    d.claim(&mut sink(), 0).unwrap();
    for n in 0..3 {
        d.put(&mut sink(), id(1, n), WriteData::Len(1 << 30), Cause::Host, Tok::DONE).unwrap();
    }
    assert!(d.put(&mut sink(), id(1, 3), WriteData::Len(1), Cause::Host, Tok::DONE).is_err());
    assert_eq!(d.counts().of(Op::ObjectPut).bytes, 3072 * MIB + 64);
}

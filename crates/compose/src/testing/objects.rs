//! A store of objects in memory, of which a power loss drops or tears what was not flushed.

use super::LosesPower;
use frit_core::{
    Cause, Error, ObjectDevice, ObjectId, ObjectReader, ReadTarget, Result, Sink, StackView, Tok, WriteData,
};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};

/// State of a [`TestObjects`].
#[derive(Default)]
pub(crate) struct ObjectsState {
    /// The objects as reads see them.
    pub(crate) objects: BTreeMap<ObjectId, Vec<u8>>,
    durable: BTreeMap<ObjectId, Vec<u8>>,
    /// Names that were ever used.
    used: BTreeSet<ObjectId>,
    epoch: u32,
    /// Puts fail.
    pub(crate) puts_fail: bool,
    /// Flushes fail.
    pub(crate) flushes_fail: bool,
    /// Deletions fail.
    pub(crate) deletes_fail: bool,
    /// Numbers of puts and reads so far.
    pub(crate) puts: u64,
    pub(crate) gets: u64,
    pub(crate) deferred_gets: u64,
    /// The next deferred read fails.
    pub(crate) next_get_fails: bool,
    /// Largest number of objects so far.
    pub(crate) most: usize,
}

/// A store whose state outlives the layer above it.
#[derive(Clone)]
pub(crate) struct TestObjects {
    state: Arc<Mutex<ObjectsState>>,
    object_bytes: u32,
    objects: u64,
    /// Epoch of this handle.
    claimed: u32,
}

impl TestObjects {
    pub(crate) fn new(object_bytes: u32, objects: u64) -> TestObjects {
        TestObjects { state: Arc::default(), object_bytes, objects, claimed: 0 }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, ObjectsState> {
        self.state.lock().unwrap()
    }

    fn writer(&self) -> Result<MutexGuard<'_, ObjectsState>> {
        let state = self.lock();
        match state.epoch == self.claimed {
            true => Ok(state),
            false => Err(Error::ReadOnly { why: "another writer has taken over".into() }),
        }
    }
}

fn failure(of: &str) -> Error {
    Error::Medium { what: format!("planned failure of a {of}") }
}

impl LosesPower for TestObjects {
    fn lose_power(&self, keep: &mut dyn FnMut() -> bool) {
        let mut state = self.lock();
        let ids: BTreeSet<ObjectId> = state.objects.keys().chain(state.durable.keys()).copied().collect();
        for id in ids {
            match (state.durable.contains_key(&id), state.objects.get(&id).cloned()) {
                (false, Some(mut object)) if keep() => {
                    // A torn put: the object ends early, or its end is zeros.
                    let half = object.len() / 2;
                    match (keep(), keep()) {
                        (true, _) => {}
                        (false, true) => object.truncate(half),
                        (false, false) => object[half..].fill(0),
                    }
                    state.durable.insert(id, object);
                }
                (true, None) if keep() => {
                    state.durable.remove(&id);
                }
                _ => {}
            }
        }
        state.objects = state.durable.clone();
    }
}

impl fmt::Debug for TestObjects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TestObjects")
    }
}

impl ObjectReader for TestObjects {
    fn get(&self, id: ObjectId, at: u32, into: &mut [u8]) -> Result<()> {
        let mut state = self.lock();
        state.deferred_gets += 1;
        if std::mem::take(&mut state.next_get_fails) {
            return Err(failure("deferred get"));
        }
        let object = state.objects.get(&id).ok_or_else(|| failure("get: no such object"))?;
        into.copy_from_slice(&object[at as usize..at as usize + into.len()]);
        Ok(())
    }
}

impl ObjectDevice for TestObjects {
    fn object_bytes(&self) -> u32 {
        self.object_bytes
    }

    fn objects(&self) -> u64 {
        self.objects
    }

    fn put(&mut self, _: &mut Sink, id: ObjectId, data: WriteData<'_>, _: Cause, after: Tok) -> Result<Tok> {
        let mut state = self.writer()?;
        if state.puts_fail {
            return Err(failure("put"));
        }
        assert!(state.used.insert(id), "the name {id} was used before");
        assert!(id.epoch == self.claimed && data.len() <= self.object_bytes && !data.is_empty());
        assert!((state.objects.len() as u64) < self.objects, "the store is full");
        state.puts += 1;
        let bytes = data.bytes().map_or_else(|| vec![0; data.len() as usize], <[u8]>::to_vec);
        state.objects.insert(id, bytes);
        state.most = state.most.max(state.objects.len());
        Ok(after)
    }

    fn get(
        &mut self,
        _: &mut Sink,
        id: ObjectId,
        at: u32,
        mut into: ReadTarget<'_>,
        _: Cause,
        after: Tok,
    ) -> Result<Tok> {
        let mut state = self.lock();
        state.gets += 1;
        let len = into.len() as usize;
        let object = state.objects.get(&id).ok_or_else(|| failure("get: no such object"))?;
        let part = object.get(at as usize..at as usize + len).ok_or_else(|| failure("get: past the end"))?;
        if let Some(into) = into.bytes() {
            into.copy_from_slice(part);
        }
        Ok(after)
    }

    fn delete(&mut self, _: &mut Sink, id: ObjectId, _: Cause, after: Tok) -> Result<Tok> {
        let mut state = self.writer()?;
        if state.deletes_fail {
            return Err(failure("deletion"));
        }
        state.objects.remove(&id);
        Ok(after)
    }

    fn flush(&mut self, _: &mut Sink, _: Cause, after: Tok) -> Result<Tok> {
        let mut state = self.writer()?;
        if state.flushes_fail {
            return Err(failure("flush"));
        }
        state.durable = state.objects.clone();
        Ok(after)
    }

    fn list(&mut self, _: &mut Sink) -> Result<Vec<(ObjectId, u32)>> {
        Ok(self.lock().objects.iter().map(|(id, b)| (*id, b.len() as u32)).collect())
    }

    fn claim(&mut self, _: &mut Sink, epoch: u32) -> Result<u32> {
        let mut state = self.lock();
        state.epoch = state.epoch.max(epoch) + 1;
        let epoch = state.epoch;
        drop(state);
        self.claimed = epoch;
        Ok(epoch)
    }

    fn release(&mut self, _: &mut Sink) -> Result<()> {
        self.writer().map(|_| ())
    }

    fn reader(&self) -> Option<Arc<dyn ObjectReader>> {
        Some(Arc::new(self.clone()))
    }

    fn visible(&self, _: &mut StackView) {}
}

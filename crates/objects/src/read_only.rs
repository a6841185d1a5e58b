//! A store that is opened for reading: its changes stay in memory.

use crate::live::LiveObjects;
use frit_core::{Error, ObjectId, Result};
use frit_media::object::RemoteObjects;
use std::collections::{BTreeMap, BTreeSet};

/// Objects of a store, with changes that stay in memory. A recovery can run on it, and the store
/// does not change: no claim is made, so a writer is not disturbed.
#[derive(Debug)]
pub struct ReadOnlyObjects {
    store: LiveObjects,
    written: BTreeMap<ObjectId, Box<[u8]>>,
    deleted: BTreeSet<ObjectId>,
}

impl ReadOnlyObjects {
    /// Creates a view of a store.
    #[must_use]
    pub fn new(store: LiveObjects) -> ReadOnlyObjects {
        ReadOnlyObjects { store, written: BTreeMap::new(), deleted: BTreeSet::new() }
    }
}

fn missing(id: ObjectId) -> Error {
    Error::Medium { what: format!("object {id} does not exist, or the range is past its end") }
}

impl RemoteObjects for ReadOnlyObjects {
    fn put(&mut self, id: ObjectId, data: &[u8]) -> Result<()> {
        self.written.insert(id, data.into());
        Ok(())
    }

    fn get(&mut self, id: ObjectId, at: u32, into: &mut [u8]) -> Result<()> {
        if self.deleted.contains(&id) {
            return Err(missing(id));
        }
        let Some(data) = self.written.get(&id) else { return self.store.get(id, at, into) };
        let part = data.get(at as usize..(at as usize).saturating_add(into.len()));
        into.copy_from_slice(part.ok_or_else(|| missing(id))?);
        Ok(())
    }

    fn delete(&mut self, id: ObjectId) -> Result<()> {
        self.written.remove(&id);
        self.deleted.insert(id);
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }

    fn list(&mut self) -> Result<Vec<(ObjectId, u32)>> {
        let mut found: BTreeMap<ObjectId, u32> = self.store.list()?.into_iter().collect();
        found.extend(self.written.iter().map(|(&id, data)| (id, data.len() as u32)));
        Ok(found.into_iter().filter(|(id, _)| !self.deleted.contains(id)).collect())
    }

    fn claim(&mut self, epoch: u32) -> Result<u32> {
        let highest = self.list()?.into_iter().map(|(id, _)| id.epoch).max().unwrap_or(0);
        Ok(highest.max(epoch) + 1)
    }

    fn release(&mut self) -> Result<()> {
        Ok(())
    }

    fn refuses(&self) -> Option<String> {
        None
    }
}

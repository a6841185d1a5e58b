//! The start: the map is read, the store is claimed, and objects that the map does not name are
//! deleted.

use super::config::{ENTRY_BYTES, KIND};
use super::entry::Entry;
use super::layer::{Segments, Stats, fill_from};
use super::space::{DEAD, Segment, Space};
use crate::table::Loaded;
use frit_core::{Error, ObjectId, Recovery, Result, Sink};
use std::collections::BTreeMap;

/// What the map says about the store.
#[derive(Default)]
struct Found {
    /// Chunks whose objects are missing, by object.
    missing: BTreeMap<ObjectId, u32>,
    /// Objects that no entry names.
    orphans: Vec<ObjectId>,
    /// A chunk whose place belongs to another one too.
    twice: Option<u32>,
    pages: u64,
}

impl Segments {
    /// Claims an empty store.
    ///
    /// # Errors
    /// A store with objects, or a failure of it.
    pub(super) fn format_store(&mut self, sink: &mut Sink) -> Result<()> {
        let epoch = self.store.claim(sink, 0)?;
        let objects = self.store.list(sink)?.len();
        if objects > 0 {
            let what = format!(
                "the store has {objects} objects of another volume; give this volume an empty store, or a \
                 prefix of its own"
            );
            return Err(Error::Medium { what });
        }
        self.entries.fill(Entry::default());
        self.space = Space::default();
        self.stats = Stats::default();
        self.begin_epoch(epoch);
        Ok(())
    }

    /// Reads the map, and compares it with the objects of the store.
    pub(super) fn load_map(&mut self, sink: &mut Sink) -> Result<Recovery> {
        let per = KIND.entries_per_sector();
        let entries = &mut self.entries;
        let loaded = self.table.load(sink, self.base.devices.get_mut(0), &mut |i, payload| {
            let first = i as usize * per;
            let end = (first + per).min(entries.len());
            let Some(payload) = payload else { return entries[first..end].fill(Entry::LOST) };
            let (read, _) = payload.as_chunks::<ENTRY_BYTES>();
            entries[first..end].iter_mut().zip(read).for_each(|(into, b)| *into = Entry::decode(b));
        })?;
        let newest = self.entries.iter().filter(|e| e.is_mapped()).map(|e| e.object.epoch).max();
        let epoch = self.store.claim(sink, newest.unwrap_or(0).max(self.epoch))?;
        let Loaded::Read { unequal, bytes } = loaded else {
            // Without bytes, the state in DRAM goes on.
            self.continue_in(epoch);
            return Ok(Recovery { clean: true, ..Recovery::default() });
        };
        self.begin_epoch(epoch);
        let found = self.find_objects(sink)?;
        let settled = self.table.settle(sink, self.base.devices.get_mut(0), &fill_from(&self.entries))?;
        let mut recovery = Recovery {
            clean: unequal == 0 && found.orphans.is_empty(),
            pages: found.pages,
            bytes_read: bytes,
            ..Recovery::default()
        };
        if let Some(chunk) = found.twice {
            self.table
                .refuse(format!("the place of chunk {chunk} belongs to another one too: check the volume"));
        }
        if let Some(first) = self.entries.iter().position(Entry::is_lost) {
            let lost = self.entries.iter().filter(|e| e.is_lost()).count();
            recovery.unnamed.push(format!("{lost} chunks of segments: {}", self.lost(first as u32)));
            self.table.refuse("entries of its map are lost, and cleaning could delete their objects");
        }
        for (id, chunks) in &found.missing {
            recovery.unnamed.push(format!(
                "{chunks} chunks of segments: object {id} is missing in the store, or too short"
            ));
        }
        // The objects of lost entries are among those that no entry names.
        if self.table.writable().is_ok() {
            self.delete(sink, found.orphans, settled);
        }
        Ok(recovery)
    }

    /// Compares the entries with the objects of the store.
    fn find_objects(&mut self, sink: &mut Sink) -> Result<Found> {
        let listed: BTreeMap<ObjectId, u32> = self.store.list(sink)?.into_iter().collect();
        let chunk = self.shape.volume.chunk as u32;
        let mut found = Found::default();
        let mut owners: BTreeMap<ObjectId, Vec<u32>> = BTreeMap::new();
        for (i, e) in (0..).zip(&self.entries).filter(|(_, e)| e.is_mapped()) {
            found.pages += 1;
            let places = listed.get(&e.object).map_or(0, |size| size / chunk);
            if u32::from(e.index) >= places {
                *found.missing.entry(e.object).or_default() += 1;
                continue;
            }
            let of = owners.entry(e.object).or_insert_with(|| vec![DEAD; places as usize]);
            let owner = &mut of[usize::from(e.index)];
            if *owner != DEAD {
                found.twice.get_or_insert(i);
            }
            *owner = i;
        }
        let known = |id: &ObjectId| owners.contains_key(id) || found.missing.contains_key(id);
        found.orphans = listed.keys().filter(|id| !known(id)).copied().collect();
        self.space = Space::default();
        for (id, of) in owners {
            self.space.insert(id, Segment::new(of));
        }
        Ok(found)
    }
}

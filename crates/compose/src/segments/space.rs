//! Objects in the store, and their live chunks.

use frit_core::ObjectId;
use std::collections::BTreeMap;

/// Owner of a place in an object whose chunk is dead.
pub(super) const DEAD: u32 = u32::MAX;

/// An object with live chunks.
#[derive(Clone, Debug, Default)]
pub(super) struct Segment {
    /// The chunk at each place; [`DEAD`] if it has a newer place.
    pub(super) owners: Vec<u32>,
    /// Number of live chunks.
    pub(super) live: u32,
    /// `true` if a chunk could not be read: the object is not cleaned.
    pub(super) unreadable: bool,
}

impl Segment {
    /// Counts the live chunks of these owners.
    pub(super) fn new(owners: Vec<u32>) -> Segment {
        let live = owners.iter().filter(|&&o| o != DEAD).count() as u32;
        Segment { owners, live, unreadable: false }
    }
}

/// The objects in the store.
#[derive(Debug, Default)]
pub(super) struct Space {
    segments: BTreeMap<ObjectId, Segment>,
    /// Objects without live chunks, which the durable map may name until the next commit.
    garbage: Vec<ObjectId>,
}

impl Space {
    /// Adds an object.
    pub(super) fn insert(&mut self, id: ObjectId, segment: Segment) {
        if segment.live == 0 {
            self.garbage.push(id);
        } else {
            self.segments.insert(id, segment);
        }
    }

    /// Returns an object with live chunks.
    pub(super) fn get(&self, id: ObjectId) -> Option<&Segment> {
        self.segments.get(&id)
    }

    /// Makes a chunk dead.
    pub(super) fn kill(&mut self, id: ObjectId, index: u16) {
        let Some(segment) = self.segments.get_mut(&id) else { return };
        let owner = &mut segment.owners[usize::from(index)];
        if std::mem::replace(owner, DEAD) != DEAD {
            segment.live -= 1;
            if segment.live == 0 {
                self.segments.remove(&id);
                self.garbage.push(id);
            }
        }
    }

    /// Excludes an object from cleaning.
    pub(super) fn set_unreadable(&mut self, id: ObjectId) {
        if let Some(segment) = self.segments.get_mut(&id) {
            segment.unreadable = true;
        }
    }

    /// Number of objects in the store, with those that wait for their deletion.
    pub(super) fn objects(&self) -> u64 {
        (self.segments.len() + self.garbage.len()) as u64
    }

    /// Number of objects that wait for their deletion.
    pub(super) fn garbage(&self) -> usize {
        self.garbage.len()
    }

    /// Returns `true` for an object that waits for its deletion.
    pub(super) fn is_garbage(&self, id: ObjectId) -> bool {
        self.garbage.contains(&id)
    }

    /// Takes the objects that wait for their deletion.
    pub(super) fn take_garbage(&mut self) -> Vec<ObjectId> {
        std::mem::take(&mut self.garbage)
    }

    /// Iterates over the objects with live chunks.
    pub(super) fn iter(&self) -> impl Iterator<Item = (ObjectId, &Segment)> {
        self.segments.iter().map(|(id, segment)| (*id, segment))
    }

    /// Returns the objects with the fewest live chunks, so many that their cleaning wins the space of
    /// `won` chunks, and more while at most `most_moved` chunks are live. `space` returns the space in
    /// chunks that the cleaning of an object wins, and `None` for an object that is not cleaned. Returns
    /// `None` if there are not so many.
    pub(super) fn victims(
        &self,
        won: u32,
        most_moved: u64,
        space: impl Fn(&Segment) -> Option<u32>,
    ) -> Option<Vec<ObjectId>> {
        let mut all: Vec<(u32, ObjectId, u32)> = self
            .iter()
            .filter(|(_, s)| !s.unreadable)
            .filter_map(|(id, s)| Some((s.live, id, space(s)?)))
            .collect();
        all.sort_unstable();
        let (mut live, mut free, mut victims) = (0u64, 0u64, Vec::new());
        for (n, id, space) in all {
            if free >= u64::from(won) && live + u64::from(n) > most_moved {
                break;
            }
            live += u64::from(n);
            free += u64::from(space);
            victims.push(id);
        }
        (free >= u64::from(won)).then_some(victims)
    }

    /// Number of live chunks in all objects.
    pub(super) fn live(&self) -> u64 {
        self.segments.values().map(|s| u64::from(s.live)).sum()
    }
}

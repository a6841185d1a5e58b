//! A segment in DRAM that collects chunks.

use super::space::DEAD;
use frit_core::{ObjectId, Tok, WriteData};

/// A segment that was not put yet.
#[derive(Debug)]
pub(super) struct OpenSegment {
    pub(super) id: ObjectId,
    /// The chunk at each place; [`DEAD`] if it has a newer place.
    pub(super) owners: Vec<u32>,
    /// The contents; empty in a simulation without bytes.
    bytes: Vec<u8>,
    /// The put of an earlier segment, whose memory this one uses.
    pub(super) ready: Tok,
    /// What the contents wait for.
    pub(super) written: Tok,
}

impl OpenSegment {
    pub(super) fn new(id: ObjectId) -> OpenSegment {
        let (ready, written) = (Tok::default(), Tok::default());
        OpenSegment { id, owners: Vec::new(), bytes: Vec::new(), ready, written }
    }

    /// Starts an empty segment in the same memory.
    pub(super) fn restart(&mut self, id: ObjectId, ready: Tok) {
        self.id = id;
        self.owners.clear();
        self.bytes.clear();
        self.ready = ready;
        self.written = ready;
    }

    /// Adds a chunk at the next place.
    pub(super) fn push(&mut self, owner: u32, chunk: usize, with_bytes: bool) -> u16 {
        self.owners.push(owner);
        if with_bytes {
            self.bytes.resize(self.owners.len() * chunk, 0);
        }
        (self.owners.len() - 1) as u16
    }

    /// Returns the contents of a place; none in a simulation without bytes.
    pub(super) fn contents(&self, index: u16, chunk: usize) -> &[u8] {
        self.bytes.get(usize::from(index) * chunk..).map_or(&[], |b| &b[..chunk.min(b.len())])
    }

    /// Returns the contents of a place; none in a simulation without bytes.
    pub(super) fn contents_mut(&mut self, index: u16, chunk: usize) -> &mut [u8] {
        match self.bytes.get_mut(usize::from(index) * chunk..) {
            Some(b) => {
                let n = chunk.min(b.len());
                &mut b[..n]
            }
            None => &mut [],
        }
    }

    /// Makes a chunk dead.
    pub(super) fn kill(&mut self, index: u16) {
        self.owners[usize::from(index)] = DEAD;
    }

    /// Returns `true` if no chunk is live.
    pub(super) fn is_dead(&self) -> bool {
        self.owners.iter().all(|&o| o == DEAD)
    }

    /// Returns what a put writes.
    pub(super) fn data(&self, chunk: usize) -> WriteData<'_> {
        if self.bytes.is_empty() {
            WriteData::Len((self.owners.len() * chunk) as u32)
        } else {
            WriteData::Bytes(&self.bytes)
        }
    }
}

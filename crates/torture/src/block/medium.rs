//! The store of one medium, with faults and power cuts.
//!
//! Every medium of a tortured stack uses this store. It records accesses (a [`AccessLog`]) and restores
//! its base (images are deltas over a base). It keeps cell states that bytes do not show (a page
//! that looks erased and is not), hashes the bytes that are read, and fails on demand
//! ([`Fault`]).

use crate::block::access_log::AccessLog;
use crate::block::fault::Fault;
use crate::block::nand_layout::NandLayout;
use frit_core::split_mix::mix;
use frit_core::{Error, Result, SyncGate};
use frit_media::CustomStore;
use frit_media::nand::SPARE_RECORD_BYTES;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes that are copied back as a unit when an image is undone.
const CHUNK: usize = 1 << 10;

/// A medium of a tortured stack.
#[derive(Debug)]
pub struct TortureMedium {
    /// Number of the medium, in the order in which the stack opens its stores.
    pub number: u8,
    /// Layout of the store, if the medium is NAND.
    pub nand: Option<NandLayout>,
    /// Writes can be lost until a sync.
    pub volatile: bool,
    /// A failed sync loses the writes since the last one, as in the page cache of an operating
    /// system.
    pub loses_unsynced: bool,
    /// Recorder of the accesses.
    pub access_log: Option<Arc<AccessLog>>,
    /// Fault to inject.
    pub fault: Option<Fault>,
    bytes: Vec<u8>,
    base: Vec<u8>,
    /// NAND pages that look erased although they were programmed or partly erased. Data that is
    /// programmed there without an erase is corrupted.
    worn: Vec<bool>,
    base_worn: Vec<bool>,
    touched: Vec<bool>,
    chunks: Vec<u32>,
    blank: bool,
    hash: u64,
    hashing: bool,
    read_bytes: u64,
}

impl TortureMedium {
    /// Creates a blank medium.
    #[must_use]
    pub fn new(number: u8, nand: Option<NandLayout>) -> TortureMedium {
        TortureMedium {
            number,
            nand,
            volatile: false,
            loses_unsynced: false,
            access_log: None,
            fault: None,
            bytes: Vec::new(),
            base: Vec::new(),
            worn: Vec::new(),
            base_worn: Vec::new(),
            touched: Vec::new(),
            chunks: Vec::new(),
            blank: true,
            hash: 0,
            hashing: false,
            read_bytes: 0,
        }
    }

    /// Sets the size of a blank medium.
    fn size(&mut self, len: u64) {
        let n = len as usize;
        self.bytes = vec![0; n];
        self.base = vec![0; n];
        self.touched = vec![false; n.div_ceil(CHUNK)];
        let pages = self.nand.map_or(0, |p| p.pages as usize);
        self.worn = vec![false; pages];
        self.base_worn = vec![false; pages];
    }

    /// Returns all bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Copies the contents of another medium of the same shape, and makes them the base.
    pub fn copy_from(&mut self, other: &TortureMedium) {
        self.bytes.clone_from(&other.bytes);
        self.base.clone_from(&other.bytes);
        self.worn.clone_from(&other.worn);
        self.base_worn.clone_from(&other.worn);
        self.touched = vec![false; other.touched.len()];
        self.chunks.clear();
        self.blank = other.blank;
    }

    /// Restores the base.
    pub fn undo(&mut self) {
        for c in self.chunks.drain(..) {
            let from = c as usize * CHUNK;
            let to = (from + CHUNK).min(self.bytes.len());
            self.bytes[from..to].copy_from_slice(&self.base[from..to]);
            self.touched[c as usize] = false;
        }
        self.worn.copy_from_slice(&self.base_worn);
    }

    /// Makes the current contents the base.
    pub fn commit(&mut self) {
        for c in self.chunks.drain(..) {
            let from = c as usize * CHUNK;
            let to = (from + CHUNK).min(self.bytes.len());
            self.base[from..to].copy_from_slice(&self.bytes[from..to]);
            self.touched[c as usize] = false;
        }
        self.base_worn.copy_from_slice(&self.worn);
    }

    fn touch(&mut self, at: usize, len: usize) {
        for c in at / CHUNK..(at + len).div_ceil(CHUNK) {
            if !self.touched[c] {
                self.touched[c] = true;
                self.chunks.push(c as u32);
            }
        }
    }

    /// Writes bytes, with the effects of worn NAND cells.
    pub fn put(&mut self, at: u64, data: &[u8]) {
        let (from, len) = (at as usize, data.len());
        if len == 0 {
            return;
        }
        self.touch(from, len);
        self.bytes[from..from + len].copy_from_slice(data);
        let Some(plan) = self.nand else { return };
        for number in plan.records_in(at, len as u64) {
            let (page, copy) = (number % plan.pages, number / plan.pages);
            let record = (plan.record_at(page, copy) - at) as usize;
            // A spare record of zeros is an erased page.
            if data[record..record + SPARE_RECORD_BYTES].iter().all(|&b| b == 0) {
                self.worn[page as usize] = false;
            }
        }
        // Data that is programmed over cells that only look erased comes out corrupted.
        if at < plan.records_at() && self.worn[(at / plan.page_bytes) as usize] {
            let spoiled = from + mix(at) as usize % len;
            self.bytes[spoiled] ^= 0x55;
        }
    }

    /// Changes bytes without recording and without cell effects.
    pub fn poke(&mut self, at: u64, change: impl FnOnce(&mut [u8]), len: usize) {
        let from = at as usize;
        self.touch(from, len);
        change(&mut self.bytes[from..from + len]);
    }

    /// Marks a NAND page as one that looks erased but is not.
    pub fn mark_falsely_erased(&mut self, page: u64) {
        self.worn[page as usize] = true;
    }

    /// Starts a hash of all bytes that are read.
    pub fn start_hash(&mut self) {
        self.hash = u64::from(self.number);
        self.hashing = true;
        self.read_bytes = 0;
    }

    /// Returns the hash of the bytes that were read, and their number.
    pub fn stop_hash(&mut self) -> (u64, u64) {
        self.hashing = false;
        (self.hash, self.read_bytes)
    }

    fn note_read(&mut self, at: u64, len: usize) {
        let mut h = mix(self.hash ^ at ^ (len as u64) << 40);
        let bytes = &self.bytes[at as usize..at as usize + len];
        let (words, rest) = bytes.as_chunks::<8>();
        for w in words {
            h = (h ^ u64::from_le_bytes(*w)).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
        }
        for &b in rest {
            h = mix(h ^ u64::from(b));
        }
        self.hash = h;
        self.read_bytes += len as u64;
    }

    fn read(&mut self, at: u64, into: &mut [u8]) -> Result<()> {
        self.inside(at, into.len())?;
        if self.hashing {
            self.note_read(at, into.len());
        }
        into.copy_from_slice(&self.bytes[at as usize..at as usize + into.len()]);
        if let (Some(access_log), Some(nand)) = (&self.access_log, &self.nand)
            && at < nand.records_at()
        {
            access_log.read_page(self.number, at, into.len());
        }
        match &mut self.fault {
            Some(t) => t.read(self.number, at, into),
            None => Ok(()),
        }
    }

    fn write(&mut self, at: u64, data: &[u8]) -> Result<()> {
        self.inside(at, data.len())?;
        self.blank = false;
        if let Some(t) = &mut self.fault {
            t.remember(at, &self.bytes[at as usize..at as usize + data.len()]);
            let verdict = t.write(self.number, self.nand.as_ref(), at, data);
            for (at, bytes) in verdict.lands {
                // A write that is misplaced beyond the end of the store is dropped.
                if at + bytes.len() as u64 <= self.bytes.len() as u64 {
                    self.put(at, &bytes);
                }
            }
            return verdict.result;
        }
        if let Some(access_log) = &self.access_log {
            access_log.write(self.number, at, data);
        }
        self.put(at, data);
        Ok(())
    }

    fn sync(&mut self) -> Result<()> {
        if let Some(t) = &mut self.fault
            && let Err(e) = t.sync(self.number)
        {
            // The base holds the contents as of the last sync, so `undo` drops the writes since
            // then.
            if self.loses_unsynced {
                self.undo();
            }
            return Err(e);
        }
        if self.loses_unsynced {
            self.commit();
        }
        if let Some(access_log) = &self.access_log {
            access_log.sync(self.number);
        }
        Ok(())
    }

    /// Returns `true` if another caller syncs before this one, and its sync fails.
    fn tells_another(&self) -> bool {
        self.fault.as_ref().is_some_and(|fault| fault.tells_another(self.number))
    }

    fn inside(&self, at: u64, len: usize) -> Result<()> {
        if at.checked_add(len as u64).is_some_and(|end| end <= self.bytes.len() as u64) {
            return Ok(());
        }
        Err(Error::Io {
            what: format!("{len} bytes at {at} of a store of {} bytes", self.bytes.len()),
            source: std::io::ErrorKind::UnexpectedEof.into(),
        })
    }
}

/// A medium that the stack and the harness share.
#[derive(Clone, Debug)]
pub struct SharedMedium(Arc<Mutex<TortureMedium>>);

/// The store of a shared medium. Each opening has a gate of its own, as a file has.
#[derive(Debug)]
struct OpenMedium {
    medium: SharedMedium,
    gate: SyncGate,
}

impl OpenMedium {
    fn sync_once(&self) -> Result<()> {
        let done = self.gate.sync(|| self.medium.lock().sync().map_err(std::io::Error::other));
        done.map_err(|source| Error::Io { what: "cannot sync a medium".into(), source })
    }
}

impl SharedMedium {
    /// Creates a shared medium.
    #[must_use]
    pub fn new(medium: TortureMedium) -> SharedMedium {
        SharedMedium(Arc::new(Mutex::new(medium)))
    }

    /// Locks the medium.
    pub fn lock(&self) -> MutexGuard<'_, TortureMedium> {
        // A layer that panicked with the lock held leaves bytes, and these are to be examined.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens the medium as a store for a stack. A blank medium takes the size that the stack
    /// requests.
    #[must_use]
    pub fn open(&self, len: u64) -> Box<dyn CustomStore> {
        let mut m = self.lock();
        if m.bytes.is_empty() {
            m.size(len);
        }
        Box::new(OpenMedium { medium: self.clone(), gate: SyncGate::default() })
    }
}

impl CustomStore for OpenMedium {
    fn len(&self) -> u64 {
        self.medium.lock().bytes.len() as u64
    }

    fn is_blank(&self) -> bool {
        self.medium.lock().blank
    }

    fn read(&self, at: u64, into: &mut [u8]) -> Result<()> {
        self.medium.lock().read(at, into)
    }

    fn write(&mut self, at: u64, data: &[u8]) -> Result<()> {
        self.medium.lock().write(at, data)
    }

    fn sync(&mut self) -> Result<()> {
        if self.medium.lock().tells_another() {
            // The failure is told to the other caller, and to this one only by the gate.
            drop(self.sync_once());
        }
        self.sync_once()
    }

    fn sync_gate(&self) -> Option<&SyncGate> {
        Some(&self.gate)
    }

    fn volatile(&self) -> bool {
        self.medium.lock().volatile
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: NandLayout =
        NandLayout { page_bytes: 512, pages_per_block: 2, pages: 4, program_pages: 1, record_copies: 1 };

    fn medium() -> TortureMedium {
        let mut m = TortureMedium::new(0, Some(PLAN));
        m.size(4096);
        m
    }

    #[test]
    fn images_are_undone_and_committed() {
        let mut m = medium();
        m.put(10, &[1; 2000]);
        m.undo();
        assert!(m.bytes().iter().all(|&b| b == 0));
        m.put(10, &[1; 2000]);
        m.commit();
        m.put(0, &[7]);
        m.undo();
        assert_eq!((m.bytes()[0], m.bytes()[10], m.bytes()[2009], m.bytes()[2010]), (0, 1, 1, 0));
    }

    #[test]
    fn a_page_that_only_looks_erased_spoils_what_is_programmed_until_it_is_erased() {
        let mut m = medium();
        m.mark_falsely_erased(1);
        m.put(512, &[9; 512]);
        assert!(m.bytes()[512..1024].iter().any(|&b| b != 9));
        m.put(PLAN.record_at(0, 0), &[0; 48]);
        m.put(512, &[9; 512]);
        assert!(m.bytes()[512..1024].iter().all(|&b| b == 9));
    }

    #[test]
    fn the_hash_tells_what_was_read() {
        let mut m = medium();
        let hash = |m: &mut TortureMedium, at: u64| {
            let mut b = [0; 100];
            m.start_hash();
            m.read(at, &mut b).unwrap();
            m.stop_hash()
        };
        let a = hash(&mut m, 0);
        assert_eq!(a, hash(&mut m, 0));
        assert_ne!(a, hash(&mut m, 1));
        m.put(50, &[1]);
        assert_ne!(a, hash(&mut m, 0));
        assert_eq!(a.1, 100);
    }
}

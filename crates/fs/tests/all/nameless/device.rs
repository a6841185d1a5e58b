//! A nameless-write device in memory that executes what it is told: it moves blocks whenever a test says
//! so, reuses pages at once, and keeps after a crash what the contract promises and nothing more.

use frit_core::{Claimed, Error, MediumKind, Migration, OwnedBlock, PhysicalAddress, Result};
use frit_fs::{ContentDevice, VirtualBlock};
use rand::rngs::StdRng;
use rand::seq::IteratorRandom;
use rand::{Rng, SeedableRng};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};

pub(super) const BLOCK: usize = 4096;
/// Number of blocks of a request queue.
const QUEUE: usize = 4;

fn corrupt(block: OwnedBlock) -> Error {
    let what = format!("{block:?} is not at its address");
    Error::Corrupt { medium: MediumKind::Nand, at: u64::from(block.at.page), what }
}

/// A page that was programmed.
#[derive(Clone, Debug)]
struct Page {
    owner: u32,
    version: u32,
    data: Vec<u8>,
}

#[derive(Debug)]
struct State {
    pages: BTreeMap<u32, Page>,
    /// Number of pages in all.
    size: u32,
    capacity: u64,
    version: u32,
    /// Highest version that a flush has made durable.
    flushed: u32,
    moves: VecDeque<Migration>,
    virtual_blocks: Vec<Option<Arc<[u8]>>>,
    durable: Vec<Option<Arc<[u8]>>>,
    /// Blocks that were claimed since the last crash, during a recovery.
    claimed: Option<Vec<u32>>,
    random: StdRng,
    /// The next flush fails.
    fail_flush: bool,
    /// Number of operations that found a block at no address.
    strays: u32,
}

/// A handle of the device, which the file system and the test share.
#[derive(Clone, Debug)]
pub(super) struct FakeDevice(Arc<Mutex<State>>);

impl FakeDevice {
    pub(super) fn new(capacity: u64, virtual_blocks: u32, seed: u64) -> Self {
        Self(Arc::new(Mutex::new(State {
            pages: BTreeMap::new(),
            size: (capacity + capacity / 16) as u32 + 64,
            capacity,
            // Versions wrap around in the tests.
            version: u32::MAX - 500,
            flushed: u32::MAX - 500,
            moves: VecDeque::new(),
            virtual_blocks: vec![None; virtual_blocks as usize],
            durable: vec![None; virtual_blocks as usize],
            claimed: None,
            random: StdRng::seed_from_u64(seed),
            fail_flush: false,
            strays: 0,
        })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    /// Moves `count` blocks to other pages.
    pub(super) fn migrate(&self, count: usize) {
        let mut state = self.state();
        for _ in 0..count {
            state.migrate();
        }
    }

    /// Loses what no flush has made durable.
    pub(super) fn crash(&self) {
        let mut state = self.state();
        state.virtual_blocks = state.durable.clone();
        state.moves.clear();
        let (flushed, version) = (state.flushed, state.version);
        let State { pages, random, .. } = &mut *state;
        pages.retain(|_, page| {
            let age = page.version.wrapping_sub(flushed);
            let is_new = age != 0 && age <= version.wrapping_sub(flushed);
            !is_new || random.random()
        });
        state.claimed = Some(Vec::new());
    }

    /// Number of moves that are not acknowledged.
    pub(super) fn pending(&self) -> usize {
        self.state().moves.len()
    }

    /// Number of pages, in use or not.
    pub(super) fn pages_in_all(&self) -> usize {
        self.state().size as usize
    }

    /// Lets the next flush fail.
    pub(super) fn fail_next_flush(&self) {
        self.state().fail_flush = true;
    }

    /// Number of blocks that hold contents.
    pub(super) fn stored(&self) -> usize {
        self.state().pages.len()
    }

    /// Number of operations on blocks that were at no address.
    pub(super) fn strays(&self) -> u32 {
        self.state().strays
    }

    /// Damages a block with this byte pattern at its begin. Returns `true` if there is one.
    pub(super) fn damage(&self, pattern: &[u8]) -> bool {
        let mut state = self.state();
        let found = state.pages.values_mut().find(|page| page.data.starts_with(pattern));
        found.map(|page| page.owner ^= 1).is_some()
    }
}

impl State {
    /// Returns the page of a block, which may have moved.
    fn find(&self, block: OwnedBlock) -> Option<u32> {
        let mut page = block.at.page;
        let is_here = |page: u32| {
            self.pages.get(&page).is_some_and(|p| (p.owner, p.version) == (block.owner, block.at.version))
        };
        for moved in &self.moves {
            let to = moved.to?;
            if moved.from == page && to.version == block.at.version {
                page = to.page;
            }
        }
        is_here(page).then_some(page)
    }

    fn free_page(&mut self) -> Option<u32> {
        let (pages, size) = (&self.pages, self.size);
        (0..size).filter(|page| !pages.contains_key(page)).choose(&mut self.random)
    }

    fn migrate(&mut self) {
        let Some(from) = self.pages.keys().copied().choose(&mut self.random) else { return };
        let Some(to) = self.free_page() else { return };
        let Some(page) = self.pages.remove(&from) else { return };
        let (owner, version) = (page.owner, page.version);
        self.pages.insert(to, page);
        self.moves.push_back(Migration { owner, from, to: Some(PhysicalAddress { page: to, version }) });
    }

    fn next_version(&mut self) -> u32 {
        self.version = self.version.wrapping_add(1).max(1);
        self.version
    }

    fn check_claims(&self) -> Result<()> {
        match self.claimed {
            None => Ok(()),
            Some(_) => Err(Error::param("resume", "", "the owner has to claim its blocks first")),
        }
    }

    /// Writes a queue to consecutive pages.
    fn write_queue(&mut self, owner: u32, data: &[u8], placed: &mut Vec<PhysicalAddress>) -> Result<()> {
        let count = (data.len() / BLOCK) as u32;
        if self.pages.len() as u64 + u64::from(count) > self.capacity + self.capacity / 32 {
            return Err(Error::NoSpace { what: "all pages are in use".into() });
        }
        let free = |first: u32| (first..first + count).all(|page| !self.pages.contains_key(&page));
        let first = (0..self.size - count).filter(|&first| free(first)).choose(&mut self.random.clone());
        let _: u8 = self.random.random();
        let mut one = first;
        for part in data.chunks(BLOCK) {
            let Some(page) = one.or_else(|| self.free_page()) else {
                return Err(Error::NoSpace { what: "all pages are in use".into() });
            };
            one = one.map(|page| page + 1);
            let version = self.next_version();
            self.pages.insert(page, Page { owner, version, data: part.to_vec() });
            placed.push(PhysicalAddress { page, version });
        }
        Ok(())
    }
}

impl ContentDevice for FakeDevice {
    fn capacity(&self) -> u64 {
        self.state().capacity
    }

    fn pages(&self) -> u64 {
        u64::from(self.state().size)
    }

    fn virtual_blocks(&self) -> u32 {
        self.state().virtual_blocks.len() as u32
    }

    fn write(&mut self, owner: u32, data: &[u8], placed: &mut Vec<PhysicalAddress>) -> Result<()> {
        let mut state = self.state();
        state.check_claims()?;
        data.chunks(QUEUE * BLOCK).try_for_each(|queue| state.write_queue(owner, queue, placed))
    }

    fn read(&mut self, blocks: &[OwnedBlock], offset: u32, into: &mut [u8]) -> Result<()> {
        let mut state = self.state();
        let mut all = Vec::new();
        for block in blocks {
            let Some(page) = state.find(*block) else {
                state.strays += 1;
                return Err(corrupt(*block));
            };
            all.extend_from_slice(&state.pages[&page].data);
        }
        into.copy_from_slice(&all[offset as usize..][..into.len()]);
        Ok(())
    }

    fn free(&mut self, block: OwnedBlock) -> Result<()> {
        let mut state = self.state();
        match state.find(block) {
            Some(page) => drop(state.pages.remove(&page)),
            None => state.strays += 1,
        }
        Ok(())
    }

    fn write_virtual(&mut self, blocks: &[VirtualBlock]) -> Result<()> {
        let mut state = self.state();
        state.check_claims()?;
        for (block, data) in blocks {
            state.virtual_blocks[*block as usize] = Some(Arc::from(&**data));
        }
        Ok(())
    }

    fn read_virtual(&mut self, block: u32, into: &mut [u8]) -> Result<()> {
        match &self.state().virtual_blocks[block as usize] {
            Some(data) => into.copy_from_slice(data),
            None => into.fill(0),
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        let mut state = self.state();
        state.check_claims()?;
        if std::mem::take(&mut state.fail_flush) {
            return Err(Error::Medium { what: "a program failed".into() });
        }
        state.durable = state.virtual_blocks.clone();
        state.flushed = state.version;
        Ok(())
    }

    fn pending_migrations(&mut self) -> Result<usize> {
        Ok(self.state().moves.len())
    }

    fn migrations(&mut self, most: usize, into: &mut Vec<Migration>) -> Result<()> {
        into.extend(self.state().moves.iter().take(most));
        Ok(())
    }

    fn acknowledge(&mut self, count: usize) -> Result<()> {
        self.state().moves.drain(..count);
        Ok(())
    }

    fn claim(&mut self, block: OwnedBlock) -> Result<Claimed> {
        let mut state = self.state();
        let owned = |page: &Page| (page.owner, page.version) == (block.owner, block.at.version);
        let Some(page) = state.pages.iter().find(|(_, page)| owned(page)).map(|(page, _)| *page) else {
            state.strays += 1;
            return Ok(Claimed::Lost("no page has it".into()));
        };
        if let Some(claimed) = &mut state.claimed {
            claimed.push(page);
        }
        Ok(Claimed::At(PhysicalAddress { page, ..block.at }))
    }

    fn resume(&mut self) -> Result<()> {
        let mut state = self.state();
        if let Some(claimed) = state.claimed.take() {
            state.pages.retain(|page, _| claimed.contains(page));
        }
        Ok(())
    }

    fn step(&mut self, budget: u32) -> Result<bool> {
        self.migrate(budget as usize);
        Ok(budget > 0)
    }

    fn close(&mut self) -> Result<()> {
        self.flush()
    }

    fn verify(&mut self, block: OwnedBlock, _: bool) -> Result<()> {
        match self.state().find(block) {
            Some(_) => Ok(()),
            None => Err(corrupt(block)),
        }
    }
}

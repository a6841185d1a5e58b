//! A disk behind a page cache, for an image in an ordinary file: what was not synced may be there after a power cut of
//! the machine or not, sector by sector.

use frit_fs::Disk;
use rand::Rng;
use rand::rngs::SmallRng;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes that a disk writes whole.
const SECTOR: usize = 512;

/// The two files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Which {
    Image,
    Log,
}

/// What happened to the disk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Event {
    /// Bytes were written.
    Write(Which, u64, Vec<u8>),
    /// What was written to a file outlives the machine.
    Sync(Which),
    /// The log's name, or that it has none, outlives the machine.
    Names,
    /// The log was removed.
    Removed,
    /// A sync took the state: as many operations had returned, and another one was under way or not.
    Began(usize, bool),
    /// What the last sync took outlives the machine.
    Ended,
    /// A sync has returned that was asked for after so many operations.
    Synced(usize),
}

/// What outlives the machine, or what the page cache shows.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct Files {
    pub(super) image: Vec<u8>,
    /// `None`: there is no such file.
    pub(super) log: Option<Vec<u8>>,
}

impl Files {
    fn write(&mut self, which: Which, at: u64, data: &[u8]) {
        let end = at as usize + data.len();
        let file = match which {
            Which::Image => &mut self.image,
            Which::Log => self.log.get_or_insert_default(),
        };
        if file.len() < end {
            file.resize(end, 0);
        }
        file[at as usize..end].copy_from_slice(data);
    }
}

/// Called while a sync is at work, before each of its accesses.
type During = Box<dyn FnMut() + Send>;

#[derive(Default)]
struct Inner {
    files: Files,
    log: Vec<Event>,
    /// Operations that have returned, and whether one is under way.
    returned: (usize, bool),
    /// Whether a sync is at work.
    syncing: bool,
}

/// The disk.
#[derive(Default)]
pub(super) struct Simulated {
    inner: Mutex<Inner>,
    during: Mutex<Option<During>>,
}

impl std::fmt::Debug for Simulated {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Simulated").finish_non_exhaustive()
    }
}

impl Simulated {
    pub(super) fn new(files: Files) -> Self {
        Self { inner: Mutex::new(Inner { files, ..Inner::default() }), during: Mutex::new(None) }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, event: Event) {
        self.inner().log.push(event);
    }

    /// From here on what happens is remembered; what is there is what outlives the machine.
    pub(super) fn start(&self) -> Files {
        let mut inner = self.inner();
        inner.log.clear();
        inner.files.clone()
    }

    /// What happened since the start.
    pub(super) fn log(&self) -> Vec<Event> {
        std::mem::take(&mut self.inner().log)
    }

    /// An operation begins.
    pub(super) fn begin(&self) {
        self.inner().returned.1 = true;
    }

    /// It has returned.
    pub(super) fn done(&self) {
        let mut inner = self.inner();
        inner.returned = (inner.returned.0 + 1, false);
    }

    /// How many operations have returned.
    pub(super) fn returned(&self) -> usize {
        self.inner().returned.0
    }

    /// A sync has returned that was asked for after so many operations.
    pub(super) fn synced(&self, returned: usize) {
        self.push(Event::Synced(returned));
    }

    /// A sync begins with what is there now.
    pub(super) fn took(&self) {
        let mut inner = self.inner();
        let (returned, more) = inner.returned;
        inner.syncing = true;
        inner.log.push(Event::Began(returned, more));
    }

    /// What is called while a sync is at work.
    pub(super) fn during(&self, during: Option<During>) {
        *self.during.lock().unwrap_or_else(PoisonError::into_inner) = during;
    }

    /// Something happens between two accesses of a sync. Not within itself.
    fn meanwhile(&self) {
        let taken = self.during.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(mut during) = taken {
            during();
            self.during(Some(during));
        }
    }
}

impl Disk for Simulated {
    fn bytes(&self) -> u64 {
        self.inner().files.image.len() as u64
    }

    fn read_image(&self, at: u64, into: &mut [u8]) {
        into.copy_from_slice(&self.inner().files.image[at as usize..at as usize + into.len()]);
    }

    fn write_image(&self, at: u64, data: &[u8]) -> frit_fs::Result<()> {
        self.meanwhile();
        let mut inner = self.inner();
        inner.files.write(Which::Image, at, data);
        inner.log.push(Event::Write(Which::Image, at, data.to_vec()));
        Ok(())
    }

    fn sync_image(&self) -> frit_fs::Result<()> {
        self.meanwhile();
        self.push(Event::Sync(Which::Image));
        let mut inner = self.inner();
        inner.syncing = false;
        inner.log.push(Event::Ended);
        Ok(())
    }

    fn read_log(&self, at: u64, into: &mut [u8]) -> frit_fs::Result<bool> {
        let inner = self.inner();
        let there = inner.files.log.as_ref().and_then(|log| log.get(at as usize..at as usize + into.len()));
        there.map_or(Ok(false), |bytes| {
            into.copy_from_slice(bytes);
            Ok(true)
        })
    }

    fn write_log(&self, at: u64, data: &[u8]) -> frit_fs::Result<()> {
        // The mark of a log that is done is no beginning.
        let begins = !self.inner().syncing && data.len() > 8;
        if begins {
            self.took();
        }
        self.meanwhile();
        let mut inner = self.inner();
        inner.files.write(Which::Log, at, data);
        inner.log.push(Event::Write(Which::Log, at, data.to_vec()));
        Ok(())
    }

    fn sync_log(&self) -> frit_fs::Result<()> {
        self.meanwhile();
        self.push(Event::Sync(Which::Log));
        Ok(())
    }

    fn sync_names(&self) -> frit_fs::Result<()> {
        self.push(Event::Names);
        Ok(())
    }

    fn remove_log(&self) -> frit_fs::Result<()> {
        let mut inner = self.inner();
        if inner.files.log.take().is_some() {
            inner.log.push(Event::Removed);
        }
        Ok(())
    }
}

/// What outlives the machine, as events go by.
#[derive(Debug)]
pub(super) struct Platter {
    durable: Files,
    /// Writes that were not synced, in their order.
    pending: Vec<(Which, u64, Vec<u8>)>,
    /// What the log would be if its name outlived the machine: the log may have contents and no name.
    log: Option<Vec<u8>>,
    /// Whether the name as it is now is certain.
    named: bool,
}

impl Platter {
    pub(super) fn new(durable: Files) -> Self {
        Self { log: durable.log.clone(), durable, pending: Vec::new(), named: true }
    }

    /// An event goes by.
    pub(super) fn pass(&mut self, event: &Event) {
        match event {
            Event::Write(which, at, data) => {
                if *which == Which::Log && self.log.is_none() {
                    self.log = Some(Vec::new());
                    self.named = false;
                }
                self.pending.push((*which, *at, data.clone()));
            }
            Event::Sync(which) => {
                let (synced, rest) =
                    std::mem::take(&mut self.pending).into_iter().partition(|p| p.0 == *which);
                self.pending = rest;
                let synced: Vec<(Which, u64, Vec<u8>)> = synced;
                for (which, at, data) in synced {
                    self.put(which, at, &data);
                }
            }
            Event::Names => {
                self.durable.log.clone_from(&self.log);
                self.named = true;
            }
            Event::Removed => {
                self.pending.retain(|p| p.0 != Which::Log);
                self.log = None;
                self.named = false;
            }
            Event::Began(..) | Event::Ended | Event::Synced(_) => {}
        }
    }

    fn put(&mut self, which: Which, at: u64, data: &[u8]) {
        match which {
            Which::Image => self.durable.write(which, at, data),
            Which::Log => {
                let mut log = Files { image: Vec::new(), log: self.log.take() };
                log.write(which, at, data);
                self.log = log.log;
                if self.named {
                    self.durable.log.clone_from(&self.log);
                }
            }
        }
    }

    /// What a cut here can leave: of what was not synced any subset, in pieces of a sector or a page.
    pub(super) fn cut(&self, rng: &mut SmallRng) -> Files {
        let share = [0.0, 0.1, 0.5, 0.9, 1.0][rng.random_range(0..5)];
        let piece = if rng.random_bool(0.5) { SECTOR } else { 8 * SECTOR };
        // Often one file is written back before the other.
        let shares = if rng.random_bool(0.3) { [share, 1.0 - share] } else { [share, share] };
        let mut left = Files { image: self.durable.image.clone(), log: self.log.clone() };
        for (which, at, data) in &self.pending {
            for (i, bytes) in data.chunks(piece).enumerate() {
                if rng.random_bool(shares[usize::from(*which == Which::Log)]) {
                    left.write(*which, at + (i * piece) as u64, bytes);
                }
            }
        }
        if !self.named && rng.random_bool(0.5) {
            left.log.clone_from(&self.durable.log);
        }
        left
    }
}

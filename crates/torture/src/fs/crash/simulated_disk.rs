//! A disk behind a page cache, for an image in an ordinary file. After a power loss, data that was
//! not synced is kept or lost, sector by sector.

use frit_fs::Disk;
use rand::Rng;
use rand::rngs::SmallRng;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes that a disk writes atomically.
const SECTOR: usize = 512;

/// The files of a disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum DiskFile {
    Image,
    Log,
}

/// An access to the disk, or a step of a sync.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum DiskEvent {
    /// A write of bytes to a file.
    Write(DiskFile, u64, Vec<u8>),
    /// A sync of a file: everything written to it is durable.
    Sync(DiskFile),
    /// A sync of the directory: it is durable that the log exists or does not exist.
    Names,
    /// The log was removed.
    Removed,
    /// A sync began and took a snapshot: number of operations that had returned, and whether
    /// another one was in progress.
    Began(usize, bool),
    /// The snapshot of the last sync is durable.
    Ended,
    /// A sync returned that was requested after this many operations.
    Synced(usize),
}

/// Contents of the two files, either durable or in the page cache.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct DiskFiles {
    pub(super) image: Vec<u8>,
    /// Contents of the log; `None` if the file does not exist.
    pub(super) log: Option<Vec<u8>>,
}

impl DiskFiles {
    fn write(&mut self, which: DiskFile, at: u64, data: &[u8]) {
        let end = at as usize + data.len();
        let file = match which {
            DiskFile::Image => &mut self.image,
            DiskFile::Log => self.log.get_or_insert_default(),
        };
        if file.len() < end {
            file.resize(end, 0);
        }
        file[at as usize..end].copy_from_slice(data);
    }
}

/// Callback before each access of a sync.
type SyncCallback = Box<dyn FnMut() + Send>;

#[derive(Default)]
struct DiskState {
    files: DiskFiles,
    log: Vec<DiskEvent>,
    /// Number of operations that have returned, and whether one is in progress.
    returned: (usize, bool),
    /// `true` while a sync is in progress.
    syncing: bool,
}

/// The simulated disk.
#[derive(Default)]
pub(super) struct SimulatedDisk {
    inner: Mutex<DiskState>,
    during: Mutex<Option<SyncCallback>>,
}

impl std::fmt::Debug for SimulatedDisk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SimulatedDisk").finish_non_exhaustive()
    }
}

impl SimulatedDisk {
    pub(super) fn new(files: DiskFiles) -> Self {
        Self { inner: Mutex::new(DiskState { files, ..DiskState::default() }), during: Mutex::new(None) }
    }

    fn inner(&self) -> MutexGuard<'_, DiskState> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, event: DiskEvent) {
        self.inner().log.push(event);
    }

    /// Starts the recording and returns the current contents, which are durable.
    pub(super) fn start(&self) -> DiskFiles {
        let mut inner = self.inner();
        inner.log.clear();
        inner.files.clone()
    }

    /// Returns the events since the start.
    pub(super) fn log(&self) -> Vec<DiskEvent> {
        std::mem::take(&mut self.inner().log)
    }

    /// Begins an operation.
    pub(super) fn begin(&self) {
        self.inner().returned.1 = true;
    }

    /// Ends an operation.
    pub(super) fn done(&self) {
        let mut inner = self.inner();
        inner.returned = (inner.returned.0 + 1, false);
    }

    /// Returns the number of operations that have returned.
    pub(super) fn returned(&self) -> usize {
        self.inner().returned.0
    }

    /// Records the return of a sync that was requested after this many operations.
    pub(super) fn synced(&self, returned: usize) {
        self.push(DiskEvent::Synced(returned));
    }

    /// Records that a sync begins with the current state.
    pub(super) fn took(&self) {
        let mut inner = self.inner();
        let (returned, more) = inner.returned;
        inner.syncing = true;
        inner.log.push(DiskEvent::Began(returned, more));
    }

    /// Sets the callback for the time of a sync.
    pub(super) fn during(&self, during: Option<SyncCallback>) {
        *self.during.lock().unwrap_or_else(PoisonError::into_inner) = during;
    }

    /// Calls the callback between two accesses of a sync. The callback does not run within itself.
    fn meanwhile(&self) {
        let taken = self.during.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(mut during) = taken {
            during();
            self.during(Some(during));
        }
    }
}

impl Disk for SimulatedDisk {
    fn bytes(&self) -> u64 {
        self.inner().files.image.len() as u64
    }

    fn read_image(&self, at: u64, into: &mut [u8]) {
        into.copy_from_slice(&self.inner().files.image[at as usize..at as usize + into.len()]);
    }

    fn write_image(&self, at: u64, data: &[u8]) -> frit_fs::Result<()> {
        self.meanwhile();
        let mut inner = self.inner();
        inner.files.write(DiskFile::Image, at, data);
        inner.log.push(DiskEvent::Write(DiskFile::Image, at, data.to_vec()));
        Ok(())
    }

    fn sync_image(&self) -> frit_fs::Result<()> {
        self.meanwhile();
        self.push(DiskEvent::Sync(DiskFile::Image));
        // The sync of the image is the last step of a sync.
        let mut inner = self.inner();
        inner.syncing = false;
        inner.log.push(DiskEvent::Ended);
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
        // A short write marks the log as complete and does not begin a sync.
        let begins = !self.inner().syncing && data.len() > 8;
        if begins {
            self.took();
        }
        self.meanwhile();
        let mut inner = self.inner();
        inner.files.write(DiskFile::Log, at, data);
        inner.log.push(DiskEvent::Write(DiskFile::Log, at, data.to_vec()));
        Ok(())
    }

    fn sync_log(&self) -> frit_fs::Result<()> {
        self.meanwhile();
        self.push(DiskEvent::Sync(DiskFile::Log));
        Ok(())
    }

    fn sync_names(&self) -> frit_fs::Result<()> {
        self.push(DiskEvent::Names);
        Ok(())
    }

    fn remove_log(&self) -> frit_fs::Result<()> {
        let mut inner = self.inner();
        if inner.files.log.take().is_some() {
            inner.log.push(DiskEvent::Removed);
        }
        Ok(())
    }
}

/// Durable contents of the disk during the replay of its events.
#[derive(Debug)]
pub(super) struct DurableState {
    durable: DiskFiles,
    /// Writes that were not synced, in their order.
    pending: Vec<(DiskFile, u64, Vec<u8>)>,
    /// Contents of the log if its name becomes durable: a synced log may still lack a durable name.
    log: Option<Vec<u8>>,
    /// `true` if the current name of the log, or its absence, is durable.
    named: bool,
}

impl DurableState {
    pub(super) fn new(durable: DiskFiles) -> Self {
        Self { log: durable.log.clone(), durable, pending: Vec::new(), named: true }
    }

    /// Applies an event.
    pub(super) fn pass(&mut self, event: &DiskEvent) {
        match event {
            DiskEvent::Write(which, at, data) => {
                if *which == DiskFile::Log && self.log.is_none() {
                    self.log = Some(Vec::new());
                    self.named = false;
                }
                self.pending.push((*which, *at, data.clone()));
            }
            DiskEvent::Sync(which) => {
                let (synced, rest) =
                    std::mem::take(&mut self.pending).into_iter().partition(|p| p.0 == *which);
                self.pending = rest;
                let synced: Vec<(DiskFile, u64, Vec<u8>)> = synced;
                for (which, at, data) in synced {
                    self.put(which, at, &data);
                }
            }
            DiskEvent::Names => {
                self.durable.log.clone_from(&self.log);
                self.named = true;
            }
            DiskEvent::Removed => {
                self.pending.retain(|p| p.0 != DiskFile::Log);
                self.log = None;
                self.named = false;
            }
            DiskEvent::Began(..) | DiskEvent::Ended | DiskEvent::Synced(_) => {}
        }
    }

    fn put(&mut self, which: DiskFile, at: u64, data: &[u8]) {
        match which {
            DiskFile::Image => self.durable.write(which, at, data),
            DiskFile::Log => {
                let mut log = DiskFiles { image: Vec::new(), log: self.log.take() };
                log.write(which, at, data);
                self.log = log.log;
                if self.named {
                    self.durable.log.clone_from(&self.log);
                }
            }
        }
    }

    /// Returns contents that a power cut may leave: durable data, and any subset of the unsynced
    /// data in units of a sector or a page.
    pub(super) fn cut(&self, rng: &mut SmallRng) -> DiskFiles {
        let share = [0.0, 0.1, 0.5, 0.9, 1.0][rng.random_range(0..5)];
        let piece = if rng.random_bool(0.5) { SECTOR } else { 8 * SECTOR };
        // One file is often written back before the other.
        let shares = if rng.random_bool(0.3) { [share, 1.0 - share] } else { [share, share] };
        let mut left = DiskFiles { image: self.durable.image.clone(), log: self.log.clone() };
        for (which, at, data) in &self.pending {
            for (i, bytes) in data.chunks(piece).enumerate() {
                if rng.random_bool(shares[usize::from(*which == DiskFile::Log)]) {
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

//! A medium that records its contents at each fence and at the last sync.

use frit_fs::{Mapped, Medium};
use std::sync::Mutex;

/// Memory with recorded states.
pub(crate) struct RecordingMedium {
    memory: Mapped,
    /// State after a power loss at each fence since [`RecordingMedium::begin`], with no later write
    /// durable.
    fenced: Mutex<Vec<Vec<u8>>>,
    /// State at the last sync.
    synced: Mutex<Vec<u8>>,
}

impl RecordingMedium {
    pub(crate) fn new(bytes: u64) -> Self {
        Self { memory: Mapped::anonymous(bytes).unwrap(), fenced: Mutex::default(), synced: Mutex::default() }
    }

    fn image(&self) -> Vec<u8> {
        let mut image = vec![0; self.memory.bytes() as usize];
        self.memory.read(0, &mut image);
        image
    }

    /// Discards the states recorded so far.
    pub(crate) fn begin(&self) {
        self.fenced.lock().unwrap().clear();
    }

    /// Returns the state after a power loss at each fence since the beginning.
    pub(crate) fn cuts(&self) -> Vec<Mapped> {
        self.fenced.lock().unwrap().iter().map(|image| mapped(image)).collect()
    }

    /// Returns the state after a power loss now, with no write after the last fence durable.
    pub(crate) fn cut(&self) -> Mapped {
        mapped(self.fenced.lock().unwrap().last().unwrap())
    }

    /// Returns the state at the last sync, which is what survives a power loss.
    pub(crate) fn synced(&self) -> Mapped {
        mapped(&self.synced.lock().unwrap())
    }
}

fn mapped(image: &[u8]) -> Mapped {
    let medium = Mapped::anonymous(image.len() as u64).unwrap();
    medium.write_data(0, image);
    medium
}

impl Medium for RecordingMedium {
    fn bytes(&self) -> u64 {
        self.memory.bytes()
    }

    fn read(&self, at: u64, into: &mut [u8]) {
        self.memory.read(at, into);
    }

    fn write(&self, at: u64, data: &[u8]) {
        self.memory.write(at, data);
    }

    fn write_data(&self, at: u64, data: &[u8]) {
        self.memory.write_data(at, data);
    }

    fn zero(&self, at: u64, len: u64) {
        self.memory.zero(at, len);
    }

    fn fence(&self) {
        let image = self.image();
        self.fenced.lock().unwrap().push(image);
    }

    fn sync(&self) -> frit_fs::Result<()> {
        *self.synced.lock().unwrap() = self.image();
        Ok(())
    }
}

//! Periodic syncs of an image on a disk or of a volume, which limit the loss at a power failure, and
//! background work of a nameless-write device.

use crate::output::print_stderr;
use frit_fs::{FileSystem, Fs, Image, OverlayOptions};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Interval of polling for the amount of changes.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Number of commands of background work before the next check for other users.
const STEP_COMMANDS: u32 = 16;

/// A thread that syncs periodically until this is dropped.
#[derive(Debug)]
pub(super) struct PeriodicSync {
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl PeriodicSync {
    /// Syncs changes at intervals of `every` (zero: never), and at once when a quarter of the limit
    /// on unsynced changes is used: at half of it, writes have to wait for a sync.
    pub(super) fn start(files: &Arc<Fs<Image>>, every: Duration) -> Self {
        if matches!(files.medium(), Image::Mapped(_)) {
            return Self { end: None, thread: None };
        }
        let (end, ended) = channel();
        let files = Arc::clone(files);
        let much = OverlayOptions::default().bound / 4;
        let thread = std::thread::spawn(move || {
            let (mut last, mut failed) = (Instant::now(), false);
            let mut accesses = 0;
            while ended.recv_timeout(POLL_INTERVAL) == Err(RecvTimeoutError::Timeout) {
                work_while_idle(&files, &mut accesses);
                let due = !every.is_zero() && last.elapsed() >= every;
                // After a failure, the next attempt waits, however much has changed.
                let full = files.medium().unsynced() >= much
                    && (!failed || last.elapsed() >= Duration::from_secs(1));
                if !due && !full {
                    continue;
                }
                let synced = files.sync();
                if let (Err(error), false) = (&synced, failed) {
                    let _ =
                        print_stderr(&format!("frit mount: {error}; what is not synced stays in memory\n"));
                }
                failed = synced.is_err();
                last = Instant::now();
            }
        });
        Self { end: Some(end), thread: Some(thread) }
    }
}

/// Lets a nameless-write device collect garbage if no program has used it since the last call.
fn work_while_idle(files: &Fs<Image>, accesses: &mut u64) {
    let Some(placed) = files.placed_contents().filter(|_| !files.is_read_only()) else { return };
    let before = std::mem::replace(accesses, placed.accesses());
    while before == placed.accesses() {
        // A device that fails returns the error to the next program that writes.
        if !placed.step(STEP_COMMANDS).unwrap_or(false) {
            break;
        }
    }
}

impl Drop for PeriodicSync {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use frit_core::{Claimed, Error, Migration, OwnedBlock, PhysicalAddress, Result};
    use frit_fs::{Caller, ContentDevice, FormatOptions, Ino, NewInode, PlacedContents, VirtualBlock};
    use std::sync::Mutex;

    /// A device that has virtual blocks, no contents, and background work.
    #[derive(Clone, Debug)]
    struct BusyDevice {
        virtual_blocks: Arc<Mutex<Vec<Box<[u8]>>>>,
        /// Number of commands of background work that are left.
        work: Arc<Mutex<u32>>,
    }

    impl BusyDevice {
        fn left(&self) -> u32 {
            *self.work.lock().unwrap()
        }
    }

    fn none<T>() -> Result<T> {
        Err(Error::NoSpace { what: "the device has no room for contents".into() })
    }

    impl ContentDevice for BusyDevice {
        fn capacity(&self) -> u64 {
            256
        }
        fn pages(&self) -> u64 {
            512
        }
        fn virtual_blocks(&self) -> u32 {
            400
        }
        fn write(&mut self, _: u32, _: &[u8], _: &mut Vec<PhysicalAddress>) -> Result<()> {
            none()
        }
        fn read(&mut self, _: &[OwnedBlock], _: u32, _: &mut [u8]) -> Result<()> {
            none()
        }
        fn free(&mut self, _: OwnedBlock) -> Result<()> {
            none()
        }
        fn write_virtual(&mut self, blocks: &[VirtualBlock]) -> Result<()> {
            let mut all = self.virtual_blocks.lock().unwrap();
            blocks.iter().for_each(|(block, data)| all[*block as usize] = data.clone());
            Ok(())
        }
        fn read_virtual(&mut self, block: u32, into: &mut [u8]) -> Result<()> {
            into.copy_from_slice(&self.virtual_blocks.lock().unwrap()[block as usize]);
            Ok(())
        }
        fn flush(&mut self) -> Result<()> {
            Ok(())
        }
        fn pending_migrations(&mut self) -> Result<usize> {
            Ok(0)
        }
        fn migrations(&mut self, _: usize, _: &mut Vec<Migration>) -> Result<()> {
            Ok(())
        }
        fn acknowledge(&mut self, _: usize) -> Result<()> {
            Ok(())
        }
        fn claim(&mut self, _: OwnedBlock) -> Result<Claimed> {
            none()
        }
        fn resume(&mut self) -> Result<()> {
            Ok(())
        }
        fn step(&mut self, budget: u32) -> Result<bool> {
            let mut work = self.work.lock().unwrap();
            *work = work.saturating_sub(budget);
            Ok(*work > 0)
        }
        fn close(&mut self) -> Result<()> {
            Ok(())
        }
        fn verify(&mut self, _: OwnedBlock, _: bool) -> Result<()> {
            none()
        }
    }

    /// Returns a device with background work of 1000 commands, and a file system on it.
    fn busy() -> (BusyDevice, Arc<Fs<Image>>) {
        let device = BusyDevice {
            virtual_blocks: Arc::new(Mutex::new(vec![vec![0; 4096].into(); 400])),
            work: Arc::new(Mutex::new(1000)),
        };
        let placed = PlacedContents::load(Box::new(device.clone())).unwrap();
        let options = FormatOptions { placed: Some(Arc::clone(&placed)), ..FormatOptions::default() };
        let files = Arc::new(Fs::format(Image::Virtual(placed.medium()), options).unwrap());
        assert_eq!(device.left(), 1000);
        (device, files)
    }

    #[test]
    fn an_idle_device_does_its_background_work() {
        let (device, files) = busy();
        let syncing = PeriodicSync::start(&files, Duration::ZERO);
        let begun = Instant::now();
        while device.left() > 0 && begun.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(POLL_INTERVAL);
        }
        drop(syncing);
        assert_eq!(device.left(), 0);
    }

    #[test]
    fn a_device_in_use_does_no_background_work() {
        let (device, files) = busy();
        let mut accesses = files.placed_contents().unwrap().accesses();
        let file = files.create(&Caller::ROOT, Ino::ROOT, b"file", NewInode::file(0o644)).unwrap();
        files.write(file.ino, 0, b"contents").unwrap();
        assert!(files.sync().is_err(), "the device accepts no contents");
        work_while_idle(&files, &mut accesses);
        assert_eq!(device.left(), 1000);
        work_while_idle(&files, &mut accesses);
        assert_eq!(device.left(), 0);
    }
}

//! Tests of internal behaviour: full memory, failing syncs, and a failure at each step of a sync.

use super::*;
use std::sync::atomic::AtomicU32;

const BYTES: u64 = 64 * BLOCK;

/// A disk in memory with injected failures.
#[derive(Default)]
struct FailingDisk {
    image: std::sync::Mutex<Vec<u8>>,
    log: std::sync::Mutex<Vec<u8>>,
    /// Number of accesses that succeed before one fails.
    left: AtomicU32,
    synced: AtomicU32,
}

impl FailingDisk {
    fn new() -> Self {
        let image = std::sync::Mutex::new(vec![0; BYTES as usize]);
        Self { image, left: u32::MAX.into(), ..Self::default() }
    }

    fn step(&self) -> Result<()> {
        let left = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        left.map(drop).map_err(|_| Error::Image("the disk fails".into()))
    }

    fn write(file: &std::sync::Mutex<Vec<u8>>, at: u64, data: &[u8]) {
        let mut file = file.lock().unwrap();
        let end = at as usize + data.len();
        if file.len() < end {
            file.resize(end, 0);
        }
        file[at as usize..end].copy_from_slice(data);
    }
}

impl Disk for FailingDisk {
    fn bytes(&self) -> u64 {
        BYTES
    }

    fn read_image(&self, at: u64, into: &mut [u8]) {
        into.copy_from_slice(&self.image.lock().unwrap()[at as usize..][..into.len()]);
    }

    fn write_image(&self, at: u64, data: &[u8]) -> Result<()> {
        self.step()?;
        Self::write(&self.image, at, data);
        Ok(())
    }

    fn sync_image(&self) -> Result<()> {
        self.step()?;
        self.synced.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn read_log(&self, at: u64, into: &mut [u8]) -> Result<bool> {
        let log = self.log.lock().unwrap();
        let Some(bytes) = log.get(at as usize..at as usize + into.len()) else { return Ok(false) };
        into.copy_from_slice(bytes);
        Ok(true)
    }

    fn write_log(&self, at: u64, data: &[u8]) -> Result<()> {
        self.step()?;
        Self::write(&self.log, at, data);
        Ok(())
    }

    fn sync_log(&self) -> Result<()> {
        self.step()
    }

    fn sync_names(&self) -> Result<()> {
        self.step()
    }

    fn remove_log(&self) -> Result<()> {
        Ok(())
    }
}

fn page(medium: &Overlaid<FailingDisk>, page: u64) -> Vec<u8> {
    let mut bytes = vec![0; BLOCK as usize];
    medium.read(page * BLOCK, &mut bytes);
    bytes
}

#[test]
fn a_write_that_finds_memory_full_makes_a_sync_and_goes_on() {
    let medium = Overlaid::on(FailingDisk::new(), 1 << 30).unwrap();
    medium.store.room.store(3, Ordering::Relaxed);
    for i in 0..40 {
        medium.write_data((1 + i) * BLOCK + 100, &[i as u8 + 1; 2000]);
    }
    for i in 0..40 {
        assert_eq!(page(&medium, 1 + i)[100..2100], [i as u8 + 1; 2000]);
    }
    assert!(medium.disk.synced.load(Ordering::Relaxed) >= 4, "8 pages at a time");
}

#[test]
fn a_sync_that_fails_loses_nothing_and_the_next_one_has_it_all() {
    // Each access fails in turn.
    for left in 0..12 {
        let medium = Overlaid::on(FailingDisk::new(), 1 << 30).unwrap();
        medium.write_data(3 * BLOCK, &[1; 3 * BLOCK as usize]);
        medium.sync().unwrap();
        medium.write_data(3 * BLOCK + 8, &[2; 100]);
        medium.write_data(9 * BLOCK, &[3; 100]);
        medium.disk.left.store(left, Ordering::Relaxed);
        let failed = medium.sync().is_err();
        // Accesses of a sync: contents, index and header of the log, and its sync; three runs of
        // pages, and the sync of the image; the completion mark. The directory entry was synced by
        // the first sync.
        assert_eq!(failed, left < 9, "{left}");
        // Before the next sync, the same page changes again, and others change as well.
        medium.write_data(3 * BLOCK + 50, &[4; 100]);
        medium.zero(20 * BLOCK, 5 * BLOCK + 1);
        medium.disk.left.store(u32::MAX, Ordering::Relaxed);
        let expected = [&[1; 8][..], &[2; 42], &[4; 100], &[1; BLOCK as usize - 150]].concat();
        assert_eq!(page(&medium, 3), expected);
        medium.sync().unwrap();
        assert_eq!(medium.unsynced(), 0);
        let image = medium.disk.image.lock().unwrap();
        assert!(image[3 * BLOCK as usize..][..BLOCK as usize] == expected);
        assert!(image[9 * BLOCK as usize..][..100] == [3; 100]);
        assert!(log::DoubleWriteLog::is_done(&medium.disk), "{left}");
    }
}

#[test]
fn those_who_ask_at_once_share_a_sync() {
    let medium = Overlaid::on(FailingDisk::new(), 1 << 30).unwrap();
    let run = medium.run.lock();
    medium.write(BLOCK, &[1; 8]);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| medium.sync().unwrap());
        }
        while medium.syncs_requested.load(Ordering::Relaxed) < 8 {
            std::thread::yield_now();
        }
        drop(run);
    });
    assert_eq!(medium.disk.synced.load(Ordering::Relaxed), 1);
}

#[test]
fn messages_name_the_log_that_is_used() {
    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("image");
    std::fs::write(&image, [0; 4096]).unwrap();
    let open = || ImageFile::open(&image).unwrap();
    assert_eq!(open().log_name(), image.canonicalize().unwrap().with_extension("sync").display().to_string());
    // The name is taken, as by another user.
    std::fs::create_dir(image.with_extension("sync")).unwrap();
    let file = open();
    file.write_log(0, &[1; 8]).unwrap();
    let name = file.log_name();
    assert!(name.contains("image.sync-") && Path::new(&name).is_file(), "{name}");
}

//! Power losses while the mount takes over what programs wrote behind the end of a file.

use super::*;
use crate::{erased, memory};
use frit_fs::Medium;
use std::sync::Mutex;

/// A mapped file that records what would survive a power loss. Bytes that other processes write are durable only
/// after they were written back.
struct WatchedFile {
    mapped: Mapped,
    state: Mutex<Watched>,
}

#[derive(Default)]
struct Watched {
    durable: Vec<u8>,
    pending: Vec<(u64, usize)>,
    /// States after power losses: at each fence, without and with the writes since the last one.
    cuts: Vec<Vec<u8>>,
}

impl WatchedFile {
    fn note(&self, at: u64, len: usize) {
        self.state.lock().unwrap().pending.push((at, len));
    }

    fn settle(&self) {
        let mut state = self.state.lock().unwrap();
        let before = state.durable.clone();
        state.cuts.push(before);
        for (at, len) in std::mem::take(&mut state.pending) {
            let mut bytes = vec![0; len];
            self.mapped.read(at, &mut bytes);
            state.durable[at as usize..at as usize + len].copy_from_slice(&bytes);
        }
        let after = state.durable.clone();
        state.cuts.push(after);
    }
}

impl Medium for WatchedFile {
    fn bytes(&self) -> u64 {
        self.mapped.bytes()
    }

    fn read(&self, at: u64, into: &mut [u8]) {
        self.mapped.read(at, into);
    }

    fn file(&self) -> Option<PathBuf> {
        self.mapped.file()
    }

    fn write(&self, at: u64, data: &[u8]) {
        self.mapped.write(at, data);
        self.note(at, data.len());
    }

    fn write_data(&self, at: u64, data: &[u8]) {
        self.mapped.write_data(at, data);
        self.note(at, data.len());
    }

    fn zero(&self, at: u64, len: u64) {
        self.mapped.zero(at, len);
        self.note(at, len as usize);
    }

    fn write_back(&self, at: u64, len: u64) {
        self.note(at, len as usize);
    }

    fn fence(&self) {
        self.settle();
    }

    fn sync(&self) -> frit_fs::Result<()> {
        self.settle();
        Ok(())
    }
}

/// Extends a file directly, with an operation that takes it over after each part. At each power loss, the file has
/// the bytes of one of the sizes that were taken over, and all that were acknowledged.
#[test]
fn a_power_loss_leaves_the_old_size_or_the_new_one() {
    assert!(survives_power_losses());
}

pub(super) fn survives_power_losses() -> bool {
    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("img");
    File::create(&image).unwrap().set_len(1 << 20).unwrap();
    let mapped = Mapped::file(&image).unwrap();
    let state = Mutex::new(Watched { durable: vec![0; 1 << 20], ..Watched::default() });
    let medium = Arc::new(WatchedFile { mapped, state });
    let fs = Arc::new(Fs::format(erased(Arc::clone(&medium)), FormatOptions::default()).unwrap());
    let ino = fs.create(&ME, Ino::ROOT, b"a", NewInode::file(0o644)).unwrap().ino;
    fs.pin(ino).unwrap();
    fs.write(ino, 0, &[1; 3000]).unwrap();
    fs.register_client().unwrap();
    let open = |path: &PathBuf| OpenOptions::new().read(true).write(true).open(path).unwrap();
    let segment = PathBuf::from(format!("{}.direct", image.display()));
    let client = Client { image: open(&image), segment: open(&segment) };
    let mut bytes = vec![1; 3000];
    let mut seen = [0; 2];
    for round in 0..8_u64 {
        let old = bytes.len();
        fs.begin_lease(ino).unwrap();
        let mut lease = Box::new(Lease::request(old as u64));
        lease.to = old as u64 + 20_000;
        assert!(fs.grant(ino, &mut lease).unwrap() && lease.size_max > 0);
        for i in 0..3 {
            let at = bytes.len() as u64 + i * 500;
            let data = pattern(round * 10 + i, 1000 + 777 * round as usize);
            assert!(client.extend(&lease, at, &data));
            bytes.resize(at as usize, 0);
            bytes.extend(data);
        }
        medium.state.lock().unwrap().cuts.clear();
        match round % 6 {
            4 => fs.rename(&ME, (Ino::ROOT, b"a"), (Ino::ROOT, b"b"), frit_fs::RenameMode::Replace).unwrap(),
            5 => drop(fs.link(&ME, ino, Ino::ROOT, b"c").unwrap()),
            0 => fs.sync_file(ino, true).unwrap(),
            1 => fs.sync_file(ino, false).unwrap(),
            2 => fs.sync().unwrap(),
            _ => fs.revoke_lease(ino),
        }
        let cuts = std::mem::take(&mut medium.state.lock().unwrap().cuts);
        let last = cuts.len() - 1;
        for (number, cut) in cuts.into_iter().enumerate() {
            let copy = memory(cut.len() as u64);
            copy.write_data(0, &cut);
            if !frit_fs::check(&copy).unwrap().is_clean() {
                return false;
            }
            let found = contents(&Fs::open(erased(copy), FsOptions::default()).unwrap(), ino);
            let is_new = found.len() != old;
            seen[usize::from(is_new)] += 1;
            if found != bytes[..found.len().min(bytes.len())] || (is_new && found.len() != bytes.len()) {
                return false;
            }
            if number == last && !is_new {
                return false;
            }
        }
    }
    assert!(seen[0] > 0 && seen[1] > 0, "{seen:?}");
    true
}

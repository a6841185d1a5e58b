//! Growth that a killed mount did not take over.

use super::*;
use crate::erased;
use frit_direct::segment::{AppendSpace, Head};

/// A mount that was killed after a program had extended a file to 50 000 bytes, of which the mount had taken over
/// `taken`.
struct Killed {
    p: Place,
    ino: Ino,
    lease: Box<Lease>,
    client: Client,
    bytes: Vec<u8>,
}

impl Killed {
    fn new(taken: usize) -> Self {
        let p = Place::of(4 << 20);
        let (ino, client) = (p.file("a", 5000), p.client());
        let lease = p.extending(ino, 60_000);
        let bytes = [vec![1; 5000], pattern(2, 45_000)].concat();
        if taken > 5000 {
            assert!(client.extend(&lease, 5000, &bytes[5000..taken]));
            p.fs.sync_file(ino, false).unwrap();
        }
        assert!(client.extend(&lease, taken as u64, &bytes[taken..]));
        Self { p, ino, lease, client, bytes }
    }

    /// Position of a word of the record of append space.
    fn record(&self, field: usize) -> usize {
        offset_of!(Segment, appends) + self.lease.file as usize * size_of::<AppendSpace>() + field
    }

    /// Opens the image; returns the contents of the file, and whether the image is sound.
    fn open(&self) -> (Vec<u8>, bool) {
        let fs = self.p.kill();
        let found = contents(&fs, self.ino);
        assert!(!PathBuf::from(format!("{}.direct", self.p.image.display())).exists());
        // What is written next overwrites no block of the file.
        let other = fs.create(&ME, Ino::ROOT, b"next", NewInode::file(0o644)).unwrap().ino;
        let mut at = 0;
        while let Ok(len) = fs.write(other, at, &[5; 100_000]) {
            at += len as u64;
        }
        let is_kept = contents(&fs, self.ino) == found;
        fs.close().unwrap();
        (found, is_kept && frit_fs::check(&Mapped::file(&self.p.image).unwrap()).unwrap().is_clean())
    }
}

#[test]
fn the_next_open_takes_growth_over() {
    for taken in [5000, 5001, 8192, 20_000, 49_999] {
        let killed = Killed::new(taken);
        assert_eq!(killed.open(), (killed.bytes.clone(), true), "{taken} were taken over");
    }
}

#[test]
fn a_repair_and_another_kill_leave_it_to_the_next_open() {
    let killed = Killed::new(5000);
    std::mem::forget(Arc::clone(&killed.p.fs));
    let medium = Mapped::file(&killed.p.image).unwrap();
    assert!(frit_fs::repair(&medium, &frit_fs::Clock::Wall).unwrap().is_clean());
    assert_eq!(killed.open(), (killed.bytes.clone(), true));
}

#[test]
fn a_file_system_that_is_dropped_leaves_it_too() {
    let killed = Killed::new(5000);
    let Killed { p, ino, bytes, .. } = killed;
    let Place { _dir, image, fs } = p;
    drop(fs);
    let fs = Fs::open(erased(Mapped::file(&image).unwrap()), FsOptions::default()).unwrap();
    assert_eq!(contents(&fs, ino), bytes);
}

#[test]
fn a_file_without_names_is_freed() {
    let killed = Killed::new(5000);
    killed.p.fs.unlink(&ME, Ino::ROOT, b"a").unwrap();
    let fs = killed.p.kill();
    assert!(matches!(fs.attr(killed.ino), Err(Error::Stale)));
    fs.close().unwrap();
    assert!(frit_fs::check(&Mapped::file(&killed.p.image).unwrap()).unwrap().is_clean());
}

#[test]
fn a_new_format_forgets_it() {
    let killed = Killed::new(5000);
    std::mem::forget(Arc::clone(&killed.p.fs));
    let options = FormatOptions { force: true, ..FormatOptions::default() };
    let fs = Fs::format(erased(Mapped::file(&killed.p.image).unwrap()), options).unwrap();
    assert!(matches!(fs.attr(killed.ino), Err(Error::Stale)));
    drop(fs);
    assert!(!PathBuf::from(format!("{}.direct", killed.p.image.display())).exists());
}

/// After another boot of the machine, contents may be older than the size.
#[test]
fn growth_of_an_earlier_boot_is_forgotten() {
    assert!(forgets_earlier_boots());
}

pub(super) fn forgets_earlier_boots() -> bool {
    let is_old = |field: usize| {
        let killed = Killed::new(5000);
        let at = offset_of!(Segment, head) + field;
        killed.client.set(at, killed.client.word(at) ^ 1);
        killed.open() == (killed.bytes[..5000].to_vec(), true)
    };
    is_old(offset_of!(Head, boot)) && is_old(offset_of!(Head, uuid))
}

/// Records of append space that do not match the file system change nothing.
#[test]
fn damaged_records_are_refused() {
    assert!(refuses_damaged_records());
}

pub(super) fn refuses_damaged_records() -> bool {
    let fields = [
        offset_of!(AppendSpace, inode),
        offset_of!(AppendSpace, generation),
        offset_of!(AppendSpace, size),
        offset_of!(AppendSpace, at),
        offset_of!(AppendSpace, start),
        offset_of!(AppendSpace, blocks),
    ];
    let mut rng = SmallRng::seed_from_u64(3);
    for taken in [5000, 20_000] {
        for field in fields {
            for step in 0..6 {
                let killed = Killed::new(taken);
                let at = killed.record(field);
                let old = killed.client.word(at);
                let new = match step {
                    0 => u64::MAX,
                    1 => old.wrapping_sub(1),
                    2 => old + 3,
                    3 => 1,
                    4 => old | 1 << 63,
                    _ => rng.next_u64() >> rng.random_range(0..64),
                };
                killed.client.set(at, new);
                // A record of another place that is free as well cannot be recognized, and harms nobody.
                let (found, is_sound) = killed.open();
                let sizes = [taken, killed.bytes.len()];
                if !is_sound || !sizes.contains(&found.len()) || found[..taken] != killed.bytes[..taken] {
                    return false;
                }
            }
        }
    }
    true
}

/// Blocks that belong to another file are not taken.
#[test]
fn blocks_in_use_are_refused() {
    assert!(refuses_blocks_in_use());
}

pub(super) fn refuses_blocks_in_use() -> bool {
    let killed = Killed::new(5000);
    let other = killed.p.file("other", 100_000);
    let mut start = 0;
    let each = &mut |piece: &frit_fs::FileExtent| {
        start = piece.medium / BLOCK;
        false
    };
    killed.p.fs.pieces(other, 0, each).unwrap();
    killed.client.set(killed.record(offset_of!(AppendSpace, start)), start);
    killed.open() == (killed.bytes[..5000].to_vec(), true)
}

#[test]
fn impossible_sizes_are_refused() {
    for size in [0, 4999, 5000, 10 << 20, u64::MAX >> 1, u64::MAX] {
        let killed = Killed::new(5000);
        killed.client.set(Client::size_at(&killed.lease), size);
        assert_eq!(killed.open(), (killed.bytes[..5000].to_vec(), true), "{size}");
    }
}

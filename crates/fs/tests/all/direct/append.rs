//! Files that programs extend directly, before each operation of the library.

use super::*;
use crate::erased;
use frit_fs::{Seek, XattrMode};

const OLD: usize = 5000;
const NEW: usize = 50_000;

type Operation<'a> = (&'a str, Box<dyn Fn(&Place, Ino, &mut Vec<u8>) + 'a>);

fn set_size(p: &Place, ino: Ino, size: u64) {
    let changes = AttrChanges { size: Some(size), ..AttrChanges::default() };
    p.fs.set_attr(&ME, ino, &changes).unwrap();
}

/// Operations that change the contents, with their effect on the bytes of the file.
fn changes<'a>() -> Vec<Operation<'a>> {
    let allocate = |mode| {
        move |p: &Place, ino, bytes: &mut Vec<u8>| {
            p.fs.allocate(ino, mode, 40_000, 30_000).unwrap();
            match mode {
                Allocate::Extend => bytes.resize(70_000, 0),
                Allocate::Zero => {
                    bytes.resize(70_000, 0);
                    bytes[40_000..].fill(0);
                }
                Allocate::Punch | Allocate::ZeroKeep => bytes[40_000..].fill(0),
                Allocate::Keep => {}
            }
        }
    };
    vec![
        (
            "write",
            Box::new(|p, ino, bytes| {
                p.fs.write(ino, 54_000, &[9; 3000]).unwrap();
                bytes.resize(57_000, 0);
                bytes[54_000..].fill(9);
            }),
        ),
        (
            "write behind a gap",
            Box::new(|p, ino, bytes| {
                p.fs.write(ino, 60_000, &[9; 3000]).unwrap();
                bytes.resize(60_000, 0);
                bytes.resize(63_000, 9);
            }),
        ),
        (
            "append",
            Box::new(|p, ino, bytes| {
                assert_eq!(p.fs.append(ino, &[9; 3000]).unwrap(), (58_000, 3000));
                bytes.resize(58_000, 9);
            }),
        ),
        ("extend", Box::new(allocate(Allocate::Extend))),
        ("keep", Box::new(allocate(Allocate::Keep))),
        ("punch", Box::new(allocate(Allocate::Punch))),
        ("zero", Box::new(allocate(Allocate::Zero))),
        ("zero and keep", Box::new(allocate(Allocate::ZeroKeep))),
        (
            "truncate",
            Box::new(|p, ino, bytes| {
                set_size(p, ino, 30_001);
                bytes.truncate(30_001);
            }),
        ),
        (
            "truncate to more",
            Box::new(|p, ino, bytes| {
                set_size(p, ino, 90_001);
                bytes.resize(90_001, 0);
            }),
        ),
    ]
}

/// Operations that leave the contents.
fn others<'a>() -> Vec<Operation<'a>> {
    vec![
        ("none", Box::new(|_, _, _| ())),
        ("read", Box::new(|p, ino, bytes| assert_eq!(p.contents(ino), *bytes))),
        (
            "mode",
            Box::new(|p, ino, _| {
                let changes = AttrChanges { mode: Some(0o600), ..AttrChanges::default() };
                assert_eq!(p.fs.set_attr(&ME, ino, &changes).unwrap().size, (OLD + NEW) as u64);
            }),
        ),
        ("gather", Box::new(|p, ino, _| assert!(p.fs.gather(ino).unwrap().after <= 2))),
        (
            "scan",
            Box::new(|p, ino, bytes| {
                let contents = Arc::clone(&p.fs).open_contents(&ME, ino, false).unwrap();
                assert_eq!(contents.bytes().unwrap(), bytes.len() as u64);
                let mut found = Vec::new();
                contents.scan(0, bytes.len(), &mut |part| found.extend_from_slice(part)).unwrap();
                assert_eq!(found, *bytes);
            }),
        ),
        (
            "names",
            Box::new(|p, ino, bytes| {
                assert_eq!(p.fs.lookup(&ME, Ino::ROOT, b"a").unwrap().size, bytes.len() as u64);
                p.fs.link(&ME, ino, Ino::ROOT, b"b").unwrap();
                p.fs.unlink(&ME, Ino::ROOT, b"b").unwrap();
            }),
        ),
        (
            "seek",
            Box::new(|p, ino, bytes| {
                assert_eq!(p.fs.seek(ino, Seek::Data, 54_000).unwrap(), 54_000);
                assert_eq!(p.fs.seek(ino, Seek::Hole, 0).unwrap(), bytes.len() as u64);
            }),
        ),
        (
            "pieces",
            Box::new(|p, ino, bytes| {
                let mut end = 0;
                let each = &mut |piece: &frit_fs::FileExtent| {
                    end = piece.at + piece.len;
                    true
                };
                p.fs.pieces(ino, 0, each).unwrap();
                assert_eq!(end, (bytes.len() as u64).next_multiple_of(BLOCK));
            }),
        ),
        (
            "attributes",
            Box::new(|p, ino, _| p.fs.set_xattr(&ME, ino, b"user.a", b"b", XattrMode::Any).unwrap()),
        ),
        ("sync of the file", Box::new(|p, ino, _| p.fs.sync_file(ino, false).unwrap())),
        ("sync of its data", Box::new(|p, ino, _| p.fs.sync_file(ino, true).unwrap())),
        ("sync", Box::new(|p, _, _| p.fs.sync().unwrap())),
        (
            "another open",
            Box::new(|p, ino, _| {
                p.fs.pin(ino).unwrap();
                p.fs.unpin(ino).unwrap();
            }),
        ),
        (
            "close",
            Box::new(|p, ino, _| {
                p.fs.unpin(ino).unwrap();
                p.fs.pin(ino).unwrap();
            }),
        ),
    ]
}

#[test]
fn growth_is_there_for_each_operation() {
    for (name, run) in changes().into_iter().chain(others()) {
        let p = Place::new();
        let (ino, client) = (p.file("a", OLD), p.client());
        let free = p.fs.usage().unwrap().blocks_free;
        let lease = p.extending(ino, 60_000);
        assert_eq!(p.fs.usage().unwrap().blocks_free, free, "append space is free");
        let mut bytes = [vec![1; OLD], pattern(1, NEW)].concat();
        for (i, part) in bytes[OLD..].chunks(1000).enumerate() {
            assert!(client.extend(&lease, (OLD + i * 1000) as u64, part), "{name}");
        }
        let attr = p.fs.attr(ino).unwrap();
        assert_eq!((attr.size, attr.sectors), (bytes.len() as u64, 14 * 8), "{name}");
        run(&p, ino, &mut bytes);
        assert_eq!(p.fs.attr(ino).unwrap().size, bytes.len() as u64, "{name}");
        assert_eq!(p.contents(ino), bytes, "{name}");
        p.fs.unpin(ino).unwrap();
        let Place { _dir, image, fs } = p;
        Arc::into_inner(fs).unwrap().close().unwrap();
        let report = frit_fs::check(&Mapped::file(&image).unwrap()).unwrap();
        assert!(report.is_clean(), "{name}: {report:?}");
        let fs = Fs::open(erased(Mapped::file(&image).unwrap()), FsOptions::default()).unwrap();
        assert_eq!(contents(&fs, ino), bytes, "{name}");
    }
}

#[test]
fn a_sync_takes_growth_over_and_the_program_goes_on() {
    let p = Place::new();
    let (ino, client) = (p.file("a", 0), p.client());
    let lease = p.extending(ino, 30_000);
    let bytes = pattern(3, 30_000);
    for (i, part) in bytes.chunks(1777).enumerate() {
        assert!(client.extend(&lease, i as u64 * 1777, part));
        match i % 3 {
            0 => p.fs.sync_file(ino, true).unwrap(),
            1 => p.fs.sync_file(ino, false).unwrap(),
            _ => p.fs.sync().unwrap(),
        }
        assert!(client.is_valid(&lease));
        let end = ((i + 1) * 1777).min(bytes.len());
        assert_eq!(p.fs.attr(ino).unwrap().size, end as u64);
    }
    assert_eq!(p.contents(ino), bytes);
}

#[test]
fn append_space_doubles_with_the_file() {
    let p = Place::new();
    let (ino, client) = (p.file("a", 0), p.client());
    let (mut end, mut leases) = (0, Vec::new());
    while end < 4 << 20 {
        let lease = p.extending(ino, end + 1000);
        let data = pattern(end, (lease.size_max - end) as usize);
        assert!(client.extend(&lease, end, &data));
        end = lease.size_max;
        leases.push(data);
    }
    assert!(leases.len() < 12, "{} leases", leases.len());
    assert_eq!(p.contents(ino), leases.concat());
    let mut pieces = 0;
    let each = &mut |_: &frit_fs::FileExtent| {
        pieces += 1;
        true
    };
    p.fs.pieces(ino, 0, each).unwrap();
    assert!(pieces <= 2, "{pieces} pieces");
}

#[test]
fn files_that_others_may_extend_get_no_append_space() {
    let p = Place::new();
    let (ino, client) = (p.file("a", 5000), p.client());
    let denied = |to| p.lease(ino, 5000, to).unwrap().size_max == 0;
    p.fs.pin(ino).unwrap();
    assert!(denied(6000), "a second open");
    p.fs.unpin(ino).unwrap();
    assert!(!denied(6000));
    let lease = p.extending(ino, 6000);
    p.fs.pin(ino).unwrap();
    assert!(!client.is_valid(&lease), "a second open ends it");
    p.fs.unpin(ino).unwrap();
    assert!(denied(1 << 40), "far behind the end");
    p.fs.allocate(ino, Allocate::Keep, 20_000, 5000).unwrap();
    assert!(denied(6000), "blocks behind the end");
    set_size(&p, ino, 5000);
    assert!(!denied(6000), "truncation frees them");
    p.fs.forbid_growth(ino);
    assert!(denied(6000));
    p.fs.unpin(ino).unwrap();
    p.fs.pin(ino).unwrap();
    assert!(!denied(6000), "after the last close");
}

#[test]
fn sizes_that_the_kernel_does_not_know_are_told() {
    let p = Place::new();
    let (ino, client) = (p.file("a", 5000), p.client());
    assert_eq!(p.fs.grown_to(ino), None);
    let lease = p.extending(ino, 9000);
    assert!(client.extend(&lease, 5000, &[1; 2000]));
    p.fs.pin(ino).unwrap();
    assert_eq!(p.fs.grown_to(ino), Some(7000));
    set_size(&p, ino, 100);
    assert_eq!(p.fs.grown_to(ino), None);
}

/// Others find all space that is free without append space.
#[test]
fn append_space_is_returned_when_blocks_are_short() {
    let fill = |p: &Place| {
        let other = p.file("other", 0);
        let mut at = 0;
        while let Ok(len) = p.fs.write(other, at, &[5; 100_000]) {
            at += len as u64;
        }
        at
    };
    let plain = Place::of(4 << 20);
    for i in 0..4 {
        plain.file(&format!("f{i}"), 20_000);
    }
    let want = fill(&plain);
    let p = Place::of(4 << 20);
    let client = p.client();
    let files: Vec<_> = (0..4).map(|i| p.file(&format!("f{i}"), 1000)).collect();
    let leases: Vec<_> = files.iter().map(|ino| p.extending(*ino, 30_000)).collect();
    for (i, lease) in leases.iter().enumerate() {
        assert!(client.extend(lease, 1000, &pattern(i as u64, 19_000)));
    }
    assert_eq!(p.fs.usage().unwrap().blocks_free, Place::free_after(&plain, want));
    assert_eq!(fill(&p), want);
    for (i, ino) in files.iter().enumerate() {
        assert!(!client.is_valid(&leases[i]));
        assert_eq!(p.contents(*ino), [vec![1; 1000], pattern(i as u64, 19_000)].concat());
        assert_eq!(p.lease(*ino, 20_000, 50_000).unwrap().size_max, 0, "no block is free");
    }
    let fs = Arc::into_inner(p.fs).unwrap();
    fs.close().unwrap();
    assert!(frit_fs::check(&Mapped::file(&p.image).unwrap()).unwrap().is_clean());
}

impl Place {
    /// Number of free blocks before `bytes` were written.
    fn free_after(&self, bytes: u64) -> u64 {
        self.fs.usage().unwrap().blocks_free + bytes.div_ceil(BLOCK)
    }
}

/// A program that is stopped in a write to append space can write to it later, but not extend the file.
#[test]
fn a_stopped_program_extends_nothing_after_its_lease() {
    assert!(is_safe_with_a_stopped_program());
}

pub(super) fn is_safe_with_a_stopped_program() -> bool {
    let p = Place::of(4 << 20);
    let (ino, client) = (p.file("a", 1000), p.client());
    let lease = p.extending(ino, 100_000);
    client.announce(&lease);
    // Another program appends through the mount meanwhile.
    p.fs.append(ino, &[2; 1000]).unwrap();
    let space = piece(&lease, 8192, 4096).unwrap();
    // Space is short, and the stopped program writes.
    let other = p.file("other", 0);
    let mut at = 0;
    while let Ok(len) = p.fs.write(other, at, &[5; 100_000]) {
        at += len as u64;
    }
    client.image.write_all_at(&[7; 4096], space.medium + (8192 - space.at)).unwrap();
    let is_refused = client.word(Client::size_at(&lease)) & SIZE_FIXED != 0;
    let is_kept = p.contents(other).iter().all(|byte| *byte == 5);
    client.finish();
    p.fs.read(ino, 0, &mut [0; 10]).unwrap();
    let has_bytes = p.contents(ino) == [vec![1; 1000], vec![2; 1000]].concat();
    // Its blocks are free again.
    p.fs.set_attr(&ME, ino, &AttrChanges { mode: Some(0o600), ..AttrChanges::default() }).unwrap();
    let is_returned = p.fs.write(other, at, &[5; 8192]).is_ok();
    is_refused && is_kept && has_bytes && is_returned
}

/// Append space to which a stopped program writes is not given to others.
#[test]
fn append_space_in_use_is_kept() {
    assert!(keeps_space_in_use());
}

pub(super) fn keeps_space_in_use() -> bool {
    let p = Place::of(4 << 20);
    let (ino, client) = (p.file("a", 1000), p.client());
    let lease = p.extending(ino, 100_000);
    client.announce(&lease);
    let other = p.file("other", 0);
    let mut at = 0;
    while let Ok(len) = p.fs.write(other, at, &[5; 100_000]) {
        at += len as u64;
    }
    let space = piece(&lease, 8192, 4096).unwrap();
    client.image.write_all_at(&[7; 4096], space.medium + (8192 - space.at)).unwrap();
    client.finish();
    let is_kept = p.contents(other).iter().all(|byte| *byte == 5);
    is_kept && p.fs.write(other, at, &[5; 8192]).is_ok()
}

/// Sizes that no program may write are ignored.
#[test]
fn impossible_sizes_are_ignored() {
    assert!(ignores_impossible_sizes());
}

pub(super) fn ignores_impossible_sizes() -> bool {
    let p = Place::new();
    let (ino, client) = (p.file("a", 5000), p.client());
    let mut is_ignored = true;
    for size in [0, 4999, 1 << 40, u64::MAX >> 1, u64::MAX] {
        let lease = p.extending(ino, 9000);
        for size in [size, lease.size_max + 1] {
            client.set(Client::size_at(&lease), size);
            is_ignored &= p.fs.attr(ino).unwrap().size == 5000;
            p.fs.sync_file(ino, false).unwrap();
            is_ignored &= p.fs.attr(ino).unwrap().size == 5000;
        }
        p.fs.usage().unwrap();
        is_ignored &= p.contents(ino) == vec![1; 5000];
    }
    p.fs.unpin(ino).unwrap();
    Arc::into_inner(p.fs).unwrap().close().unwrap();
    is_ignored && frit_fs::check(&Mapped::file(&p.image).unwrap()).unwrap().is_clean()
}

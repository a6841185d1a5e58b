//! Reads an image as described in `docs/reference/format.md`. Only its creation uses the crate.

mod bytes;

use crate::memory;
use bytes::{Image, crc32c, crc64};
use frit_fs::{Allocate, Caller, Clock, FileSystem, FormatOptions, Fs, Ino, Medium, NewInode, XattrMode};
use std::sync::Arc;

const ROOT: &Caller = &Caller::ROOT;
const UUID: u128 = 0x0011_2233_4455_6677_8899_AABB_CCDD_EEFF;
/// Time of the clock's first reading.
const TIME: i64 = 1_600_000_000_000_000_000;
/// A name that takes three slots.
const LONG: &str = "a name of fifty bytes, which takes three of slots!";
const BYTES: u64 = 512 << 10;
/// CRC-64/NVME of the whole image. A different value means that its bytes changed. A change of the
/// format requires a new version and an update of the page; a change of block placement does not.
const GOLDEN: u64 = 0xC35F_CD9A_D59B_C00C;

/// Inode numbers in the image.
const DIR: u64 = 2;
const FILE: u64 = 3;
const SHORT: u64 = 4;
const FAR: u64 = 5;
const NAMELESS: u64 = 6;

fn make() -> Image {
    let medium = memory(BYTES);
    let options = FormatOptions {
        inodes: Some(40),
        label: "fixture".into(),
        root: (10, 20, 0o751),
        uuid: Some(UUID),
        clock: Clock::counted(TIME),
        command_files: false,
        ..FormatOptions::default()
    };
    let fs = Fs::format(Arc::clone(&medium), options).unwrap();
    let dir = fs.create(ROOT, Ino::ROOT, b"dir", NewInode::directory(0o755)).unwrap().ino;
    let file = fs.create(ROOT, dir, LONG.as_bytes(), NewInode::file(0o4640)).unwrap().ino;
    for i in 0..10 {
        fs.write(file, i * 8192, &[b'0' + i as u8; 4096]).unwrap();
    }
    fs.allocate(file, Allocate::Keep, 20 * 4096, 2 * 4096).unwrap();
    fs.create(ROOT, Ino::ROOT, b"short", NewInode::symlink(b"dir/file")).unwrap();
    fs.create(ROOT, Ino::ROOT, b"far", NewInode::symlink(&[b't'; 200])).unwrap();
    fs.set_xattr(ROOT, file, b"user.one", b"value", XattrMode::Any).unwrap();
    fs.set_xattr(ROOT, file, b"user.two", &[7; 100], XattrMode::Any).unwrap();
    fs.link(ROOT, file, Ino::ROOT, b"second").unwrap();
    let open = fs.create(ROOT, Ino::ROOT, b"open", NewInode::file(0o600)).unwrap().ino;
    fs.pin(open).unwrap();
    fs.unlink(ROOT, Ino::ROOT, b"open").unwrap();
    // Not closed, so that the image has an orphan and its last transactions.
    drop(fs);
    let mut bytes = vec![0; BYTES as usize];
    medium.read(0, &mut bytes);
    Image::new(bytes)
}

#[test]
fn the_checksums_of_this_test_are_those_of_their_definitions() {
    assert_eq!(crc32c(0, b"123456789"), 0xE306_9283);
    assert_eq!(crc64(b"123456789"), 0xAE8B_1486_0A79_9888);
}

#[test]
fn the_image_is_the_same_to_the_byte() {
    assert_eq!(crc64(&make().bytes), GOLDEN, "{:#x}", crc64(&make().bytes));
}

#[test]
fn superblock() {
    let image = make();
    assert_eq!(image.at(0, 8), b"frit-fs\0");
    assert_eq!((image.number(8, 4), image.number(12, 4)), (1, 4096));
    assert_eq!(image.at(16, 16), UUID.to_le_bytes());
    assert_eq!((image.at(32, 7), image.number(39, 8)), (&b"fixture"[..], 0));
    // Positions and sizes of the regions, each after the previous one.
    let (orphans, slots, slot, inodes) = (512, 4, 4096, 48);
    let orphans_at = 12_288;
    let journal = orphans_at + 8 * orphans;
    let table = journal + slots * slot;
    let bitmap = table + inodes * 256;
    let first = (bitmap + 512_u64).div_ceil(4096);
    let expected = [
        BYTES,
        8192,
        orphans_at,
        orphans,
        journal,
        slots,
        slot,
        table,
        inodes,
        bitmap,
        1,
        first,
        127 - first,
    ];
    for (i, value) in expected.into_iter().enumerate() {
        assert_eq!(image.word(64 + 8 * i as u64), value, "word {i}");
    }
    assert_eq!(image.word(168), TIME as u64);
    assert!(image.at(176, 328).iter().chain(image.at(512, 3584)).all(|byte| *byte == 0));
    assert_eq!(image.word(504), u64::from(crc32c(0, image.at(0, 504))));
    assert_eq!(image.at(0, 512), image.at(BYTES - 4096, 512), "the copy");
    assert!(image.at(4096, 4096).iter().all(|byte| *byte == 0), "registers");
}

#[test]
fn ledger_bitmap_and_orphans() {
    let image = make();
    let bitmap = image.word(136);
    assert_eq!(image.word(bitmap + 504), image.check(&[0], image.at(bitmap, 504)));
    let first = image.word(152);
    let used = |block: u64| image.number(bitmap + (block - first) / 8, 1) >> ((block - first) % 8) & 1 == 1;
    let mut owned: Vec<u64> = Vec::new();
    for ino in [1, DIR, FILE, FAR] {
        let at = image.inode_at(ino);
        let mut own: Vec<u64> = image.extents(ino).iter().flat_map(|e| e.3..e.3 + e.1).collect();
        own.extend(Some(image.word(at + 80)).filter(|block| *block != 0));
        let attributes = image.number(at + 88, 6);
        own.extend(attributes..attributes + image.number(at + 94, 2));
        assert_eq!(image.word(at + 32), own.len() as u64, "blocks of inode {ino}");
        owned.extend(own);
    }
    owned.sort_unstable();
    assert!((first..first + image.word(160)).filter(|block| used(*block)).eq(owned.iter().copied()));
    let counts: Vec<u64> = (0..7).map(|i| image.word(8192 + 8 * i)).collect();
    // Used blocks, used inodes, highest inode, inodes created, opens, closed flag, and an unused
    // word.
    assert_eq!(counts, [owned.len() as u64, 6, 6, 6, 1, 0, 0]);
    assert_eq!(image.word(8192 + 56), image.check(&[], image.at(8192, 56)));
    assert_eq!((image.word(12_288), image.word(12_296)), (NAMELESS, 0));
}

#[test]
fn inodes() {
    let image = make();
    for ino in 1..=6 {
        assert!(image.inode_is_sound(ino), "inode {ino}");
    }
    assert!(!image.inode_is_sound(7) && image.word(image.inode_at(7) + 8) == 0, "never used");
    let root = image.inode_at(1);
    let field = |at, len| image.number(root + at, len);
    assert_eq!((field(4, 4), field(8, 1), field(10, 2), field(12, 4)), (0, 2, 0o751, 3));
    assert_eq!((field(16, 4), field(20, 4), field(24, 8), field(96, 8)), (10, 20, 4096, 1));
    // The clock counts its readings. The first one is for the superblock and the root directory.
    assert_eq!((field(40, 8), field(64, 8)), (TIME as u64, TIME as u64));
    assert!(field(48, 8) > TIME as u64 && field(48, 8) == field(56, 8));
    let file = image.inode_at(FILE);
    let field = |at, len| image.number(file + at, len);
    assert_eq!((field(4, 4), field(8, 1), field(10, 2), field(12, 4)), (2, 1, 0o4640, 2));
    assert_eq!((field(24, 8), field(72, 8), field(96, 8)), (19 * 4096, 0, 0));
    assert_eq!(image.word(image.inode_at(DIR) + 96), 1, "where the directory is");
    assert_eq!(image.number(image.inode_at(NAMELESS) + 12, 4), 0, "links of an orphan");
    assert_eq!(image.at(image.inode_at(SHORT) + 128, 9), b"dir/file\0");
    assert_eq!(image.contents(FAR), [b't'; 200]);
    // The checksum is in the second extent slot: over number, generation and length, then the
    // bytes.
    let far = image.inode_at(FAR);
    let place = image.number(far + 4, 4) | 200 << 32;
    let check = image.check(&[FAR, place], &[b't'; 200]);
    assert_eq!((image.word(far + 144), image.word(far + 152)), (1 << 32 | check, 0));
}

#[test]
fn extents_and_contents() {
    let image = make();
    let extents = image.extents(FILE);
    let pieces: Vec<_> = extents.iter().map(|e| (e.0, e.1, e.2)).collect();
    let mut expected: Vec<_> = (0..10).map(|i| (2 * i, 1, true)).collect();
    expected.push((20, 2, false));
    assert_eq!(pieces, expected);
    let contents = image.contents(FILE);
    let byte = |i: usize| if (i / 4096).is_multiple_of(2) { b'0' + (i / 8192) as u8 } else { 0 };
    assert!(contents.len() == 19 * 4096 && contents.iter().enumerate().all(|(i, b)| *b == byte(i)));
}

#[test]
fn names() {
    let image = make();
    assert_eq!(LONG.len(), 50);
    let of = |name: &str, slot, ino, kind| (name.to_string(), slot, ino, kind);
    let root =
        [of("dir", 0, DIR, 2), of("short", 1, SHORT, 3), of("far", 2, FAR, 3), of("second", 3, FILE, 1)];
    assert_eq!(image.names(1), root);
    assert_eq!(image.names(DIR), [of(LONG, 0, FILE, 1)]);
    let count = |ino| image.word(image.inode_at(ino) + 104);
    assert_eq!((count(1), count(DIR), count(FILE)), (1 << 63 | 4, 1 << 63 | 1, 0));
}

#[test]
fn extended_attributes() {
    let image = make();
    let inode = image.inode_at(FILE);
    let (block, blocks) = (image.number(inode + 88, 6), image.number(inode + 94, 2));
    assert_eq!(blocks, 1);
    let at = block * 4096;
    let len = image.number(at + 4, 4);
    assert_eq!((len, image.word(at + 8)), (8 + 16 + 8 + 112, 2));
    assert_eq!(image.number(at, 4), image.check(&[FILE, block, len], image.at(at + 8, 8 + len)));
    let first = [&[8, 0, 0, 0, 5, 0, 0, 0][..], b"user.onevalue\0\0\0"].concat();
    assert_eq!(image.at(at + 16, 24), first);
    let second = [&[8, 0, 0, 0, 100, 0, 0, 0][..], b"user.two", &[7; 100], &[0; 4]].concat();
    assert_eq!(image.at(at + 40, 120), second);
}

/// Returns the sequence number and record words of a transaction.
fn transaction(image: &Image, slot: u64) -> (u64, Vec<u64>) {
    let at = image.word(96) + slot * image.word(112);
    let (seq, len) = (image.word(at + 8), image.number(at + 16, 4));
    assert_eq!(seq % image.word(104), slot);
    assert_eq!(image.number(at + 20, 4), u64::from(image.salt));
    assert_eq!(image.word(at), crc64(image.at(at + 8, 16 + 8 * len)), "transaction {seq}");
    (seq, (0..len).map(|i| image.word(at + 24 + 8 * i)).collect())
}

#[test]
fn journal() {
    let image = make();
    let mut all: Vec<_> = (0..image.word(104)).map(|slot| transaction(&image, slot)).collect();
    all.sort_unstable();
    assert!(all.windows(2).all(|pair| pair[0].0 + 1 == pair[1].0));
    // The last transaction removed the name `open`, so its words are those in place.
    let (_, words) = all.pop().unwrap();
    let mut places = Vec::new();
    let mut rest = &words[..];
    while let [first, behind @ ..] = rest {
        let (kind, count, place) = (first >> 62, (first >> 48 & 0x3FFF) as usize, first & 0xFFFF_FFFF_FFFF);
        assert_eq!(kind, 0, "no blocks were taken or given");
        for (i, word) in behind[..count].iter().enumerate() {
            assert_eq!(image.word((place + i as u64) * 8), *word);
        }
        places.push(place * 8);
        rest = &behind[count..];
    }
    let name = image.extents(1)[0].3 * 4096 + 4 * 32;
    assert!(places.contains(&12_288) && places.contains(&name), "{places:?}");
    // The fourth last rewrote the extended attributes: it allocated a block and freed one.
    let block = image.number(image.inode_at(FILE) + 88, 6);
    let has = |first: u64| all[0].1.windows(2).any(|pair| pair == [first, 1]);
    assert!(has(1 << 62 | block) && has(2 << 62 | (block - 1)), "{:x?}", all[0]);
}

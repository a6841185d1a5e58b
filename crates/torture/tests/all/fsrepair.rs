//! Effects and messages of a repair, for one damage of each kind.

use frit_fs::{
    AnyMedium, Caller, Clock, FileSystem, Fs, FsOptions, Geometry, Ino, InodeType, Mapped, Medium, check,
    repair,
};
use frit_torture::fs::damage::{checksums, populate};
use std::sync::Arc;

/// Repairs a damaged image. Returns the messages of the repair, and the file system.
fn repaired(damage: impl FnOnce(&mut [u8], &Geometry)) -> (String, Fs<AnyMedium>) {
    let mut image = populate().unwrap().image;
    let g = Geometry::divide(image.len() as u64, Some(32)).unwrap();
    damage(&mut image, &g);
    let medium: AnyMedium = Arc::new(Mapped::anonymous(image.len() as u64).unwrap());
    medium.write_data(0, &image);
    assert!(!check(&medium).unwrap().is_clean(), "the check finds it");
    let report = repair(&medium, &Clock::counted(1)).unwrap();
    assert!(report.is_clean() && report.repaired > 0, "{report:#?}");
    assert!(check(&medium).unwrap().is_clean());
    let again = repair(&medium, &Clock::counted(1)).unwrap();
    assert_eq!(again.repaired, 0, "{again:#?}");
    (report.repairs.join("\n"), Fs::open(medium, FsOptions::default()).unwrap())
}

fn find(fs: &dyn FileSystem, path: &str) -> frit_fs::Result<frit_fs::Attr> {
    path.split('/')
        .try_fold(fs.attr(Ino::ROOT)?, |dir, name| fs.lookup(&Caller::ROOT, dir.ino, name.as_bytes()))
}

/// Returns the inode number of a path in the undamaged image.
fn number(path: &str) -> u64 {
    let medium = Mapped::anonymous(512 << 10).unwrap();
    medium.write_data(0, &populate().unwrap().image);
    find(&Fs::open(medium, FsOptions::default()).unwrap(), path).unwrap().ino.0
}

fn at(g: &Geometry, ino: u64) -> usize {
    (g.inodes_at + (ino - 1) * 256) as usize
}

#[test]
fn without_a_root_everything_is_found_again() {
    let (dir, file) = (number("a"), number("pieces"));
    let (said, fs) = repaired(|image, g| image[at(g, 1) + 40] ^= 1);
    assert!(said.contains("inode 1 ") && said.contains("a new, empty root directory"), "{said}");
    let place = find(&fs, "lost+found").unwrap();
    assert_eq!((place.kind, place.mode), (InodeType::Directory, 0o700));
    assert_eq!(find(&fs, &format!("lost+found/#{dir}/f")).unwrap().links, 2);
    let mut bytes = [0; 100];
    let found = find(&fs, &format!("lost+found/#{file}")).unwrap().ino;
    fs.read(found, 8192, &mut bytes).unwrap();
    assert_eq!(bytes, [2; 100]);
}

#[test]
fn a_superblock_comes_from_its_copy() {
    for copy in [false, true] {
        let (said, fs) = repaired(|image, g| image[if copy { g.copy_at() as usize } else { 0 } + 9] ^= 4);
        assert!(said.contains("superblock was written anew"), "{said}");
        assert_eq!(find(&fs, "a/f").unwrap().size, 5000);
    }
}

#[test]
fn a_journal_that_cannot_be_carried_out_is_emptied() {
    let (said, fs) = repaired(|image, g| {
        let seq = |slot: &u64| {
            let at = (g.journal_at + slot * g.slot_bytes) as usize;
            u64::from_le_bytes(image[at + 8..at + 16].try_into().unwrap())
        };
        let last = (0..g.slots).max_by_key(seq).unwrap();
        let before = (last + g.slots - 1) % g.slots;
        image[(g.journal_at + before * g.slot_bytes) as usize + 30] ^= 1;
    });
    assert!(said.contains("a transaction in the journal") && said.contains("the journal emptied"), "{said}");
    assert_eq!(find(&fs, "a").unwrap().mode, 0o750);
    assert_eq!(find(&fs, "b/q").unwrap().size, 102_500);
}

#[test]
fn the_younger_of_two_inodes_loses_blocks_that_both_have() {
    let (older, younger) = (number("b/q"), number("pieces"));
    assert!(older < younger);
    let (said, fs) = repaired(|image, g| {
        // The first extent of the older inode replaces that of the younger one.
        let first = |ino| at(g, ino) + 128;
        let start = image[first(older) + 8..first(older) + 16].to_vec();
        image[first(younger) + 8..first(younger) + 16].copy_from_slice(&start);
        checksums::inode(image, g, younger);
    });
    assert!(
        said.contains(&format!("inode {younger} ")) && said.contains("has lost bytes from 0 to 4096"),
        "{said}"
    );
    let mut bytes = [1; 100];
    fs.read(Ino(younger), 0, &mut bytes).unwrap();
    assert_eq!(bytes, [0; 100], "what is lost is a hole");
    fs.read(Ino(younger), 8192, &mut bytes).unwrap();
    assert_eq!(bytes, [2; 100]);
}

#[test]
fn a_directory_stays_where_its_parent_says() {
    let (a, b, d) = (number("a"), number("b"), number("a/d"));
    for (parent, stays, goes) in [(a, "a/d", "b/h"), (b, "b/h", "a/d")] {
        let (said, fs) = repaired(|image, g| {
            // The name `h`, a hard link of `a/f`, also refers to the directory.
            let block = u64::from_le_bytes(image[at(g, b) + 136..at(g, b) + 144].try_into().unwrap());
            let slot = (0..128).find(|slot| image[block as usize * 4096 + slot * 32 + 16] == b'h').unwrap();
            let name = block as usize * 4096 + slot * 32;
            image[name..name + 8].copy_from_slice(&(d | 2 << 48 | 1 << 56).to_le_bytes());
            checksums::name(image, block, (b, 0), slot);
            image[at(g, d) + 96..at(g, d) + 104].copy_from_slice(&parent.to_le_bytes());
            checksums::inode(image, g, d);
        });
        assert!(said.contains("is a second name of a directory"), "{said}");
        assert_eq!(find(&fs, stays).unwrap().ino, Ino(d));
        assert!(find(&fs, goes).is_err());
        assert_eq!(find(&fs, "a/f").unwrap().links, 1, "{said}");
    }
}

#[test]
fn damaged_attributes_and_a_damaged_ledger() {
    let (said, fs) = repaired(|image, g| {
        image[g.ledger_at as usize] ^= 1;
        let large = at(g, number("pieces"));
        let block = u64::from_le_bytes(image[large + 88..large + 96].try_into().unwrap()) & 0xFFFF_FFFF;
        image[block as usize * 4096 + 100] ^= 1;
    });
    assert!(
        said.contains("has lost its extended attributes") && said.contains("the ledger was written"),
        "{said}"
    );
    assert_eq!(fs.xattrs(find(&fs, "pieces").unwrap().ino).unwrap(), b"");
    assert_eq!(fs.xattrs(find(&fs, "large").unwrap().ino).unwrap(), b"user.small\0");
}

#[test]
fn a_directory_gets_another_command_file() {
    let dir = number("a/d");
    for freed in [false, true] {
        let (said, fs) = repaired(|image, g| {
            let command = u64::from_le_bytes(image[at(g, dir) + 112..at(g, dir) + 120].try_into().unwrap());
            if freed {
                image[at(g, command)..at(g, command) + 16].fill(0);
            } else {
                image[at(g, dir) + 112..at(g, dir) + 120].fill(0);
                checksums::inode(image, g, dir);
            }
        });
        assert!(said.contains(&format!("inode {dir} ")) && said.contains("had no command file"), "{said}");
        assert_eq!(said.contains("which is not its command file"), freed, "{said}");
        assert_eq!(said.contains("is a command file without a directory: it was freed"), !freed, "{said}");
        assert_eq!(find(&fs, "a/d/.isp").unwrap().mode, 0o666);
        assert_eq!(find(&fs, "large/.isp").unwrap().mode, 0o620);
    }
}

#[test]
fn damaged_registers_are_cleared() {
    let (said, fs) = repaired(|image, _| image[Geometry::REGISTERS_AT as usize + 512 + 2] ^= 1);
    assert!(said.contains("set 0 of the registers of in-storage processing"), "{said}");
    let sets = frit_fs::read_registers(fs.medium()).unwrap();
    assert!(sets.iter().all(|set| *set == frit_fs::RegisterSet::default()));
}

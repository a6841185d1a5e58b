//! Operations on metadata with damage of each kind: they return an error, and no other data is
//! lost.

use crate::{AnyMedium, memory};
use frit_fs::RenameMode::{Exchange, Replace};
use frit_fs::{
    COMMAND_NAME, Caller, Clock, Error, FileSystem, FormatOptions, Fs, FsOptions, InStorage, Ino, Medium,
    NewInode, REGISTER_SETS, RegisterSet, RegisterStatus, check, read_registers, repair,
};
use std::sync::Arc;

const ROOT: &Caller = &Caller::ROOT;
const TOP: Ino = Ino::ROOT;

type TestFs = Fs<AnyMedium>;

fn fresh() -> TestFs {
    let medium = memory(4 << 20);
    Fs::format(medium, FormatOptions { uuid: Some(7), ..FormatOptions::default() }).unwrap()
}

fn again(fs: TestFs, damage: impl FnOnce(&dyn Medium)) -> TestFs {
    let medium = fs.close().unwrap();
    damage(&medium);
    Fs::open(medium, FsOptions::default()).unwrap()
}

fn flip(medium: &dyn Medium, at: u64, bit: u8) {
    let mut byte = [0];
    medium.read(at, &mut byte);
    medium.write_data(at, &[byte[0] ^ 1 << bit]);
}

fn word(medium: &dyn Medium, at: u64) -> u64 {
    let mut bytes = [0; 8];
    medium.read(at, &mut bytes);
    u64::from_le_bytes(bytes)
}

#[track_caller]
fn damaged<T: std::fmt::Debug>(answer: Result<T, Error>) {
    let error = answer.unwrap_err();
    assert!(matches!(error, Error::Damaged { .. }), "{error:?}");
}

fn names(fs: &TestFs, dir: Ino) -> (Vec<String>, Result<(), Error>) {
    let mut all = Vec::new();
    let end = fs.read_dir(dir, 2, &mut |entry| {
        all.push(String::from_utf8_lossy(entry.name).into_owned());
        true
    });
    (all, end)
}

/// Asserts that a name with an unusable inode fails in all operations, which change nothing else.
fn is_of_no_use(fs: &TestFs, dir: Ino, name: &[u8]) {
    damaged(fs.lookup(ROOT, dir, name));
    damaged(fs.unlink(ROOT, dir, name));
    damaged(fs.rmdir(ROOT, dir, name));
    damaged(fs.rename(ROOT, (dir, name), (TOP, b"moved"), Replace));
    damaged(fs.rename(ROOT, (TOP, b"sound"), (dir, name), Replace));
    damaged(fs.rename(ROOT, (TOP, b"sound"), (dir, name), Exchange));
    assert!(matches!(fs.create(ROOT, dir, name, NewInode::file(0)), Err(Error::Exists)));
    assert!(matches!(fs.rmdir(ROOT, TOP, b"d"), Err(Error::NotEmpty)));
    assert!(names(fs, dir).0.iter().any(|listed| listed.as_bytes() == name));
    assert!(names(fs, dir).1.is_ok());
}

#[test]
fn a_name_whose_inode_is_damaged_or_free_stays_until_a_repair_takes_it() {
    for free in [false, true] {
        let fs = fresh();
        let dir = fs.create(ROOT, TOP, b"d", NewInode::directory(0o755)).unwrap().ino;
        fs.create(ROOT, TOP, b"sound", NewInode::file(0o644)).unwrap();
        let lost = fs.create(ROOT, dir, b"lost", NewInode::file(0o644)).unwrap().ino;
        fs.create(ROOT, dir, b"kept", NewInode::file(0o644)).unwrap();
        let at = fs.geometry().inode_at(lost.0);
        let fs = again(fs, |medium| match free {
            true => medium.write_data(at, &[0; 16]),
            false => flip(medium, at + 50, 3),
        });
        is_of_no_use(&fs, dir, b"lost");
        if !free {
            damaged(fs.attr(lost));
            damaged(fs.read(lost, 0, &mut [0; 10]));
            damaged(fs.link(ROOT, lost, TOP, b"link"));
        }
        let medium = fs.close().unwrap();
        let report = check(&medium).unwrap();
        let told = report.problems.join("\n");
        let why = if free { "which is free" } else { "which is damaged" };
        assert!(told.contains("the name `lost` points to inode") && told.contains(why), "{told}");
        let report = repair(&medium, &Clock::counted(1)).unwrap();
        let said = report.repairs.join("\n");
        assert!(report.is_clean() && said.contains("the name `lost`"), "{said}");
        let fs = Fs::open(medium, FsOptions::default()).unwrap();
        assert_eq!(names(&fs, dir).0, ["kept"]);
        fs.unlink(ROOT, dir, b"kept").unwrap();
        fs.rmdir(ROOT, TOP, b"d").unwrap();
    }
}

#[test]
fn a_listing_tells_the_names_around_a_damaged_one_and_then_the_damage() {
    // Damage before the directory is loaded, and after.
    for late in [false, true] {
        let fs = fresh();
        let dir = fs.create(ROOT, TOP, b"d", NewInode::directory(0o755)).unwrap().ino;
        for i in 0..20 {
            fs.create(ROOT, dir, format!("{i}").as_bytes(), NewInode::file(0o644)).unwrap();
        }
        let block = word(fs.medium(), fs.geometry().inode_at(dir.0) + 136);
        let at = block * 4096 + 7 * 32 + 16;
        let fs = again(fs, |medium| {
            if !late {
                flip(medium, at, 0);
            }
        });
        if late {
            assert!(names(&fs, dir).1.is_ok());
            flip(fs.medium(), at, 0);
        }
        let (listed, end) = names(&fs, dir);
        damaged(end);
        assert!(listed.len() == 19 && !listed.contains(&"7".to_string()), "{listed:?}");
        damaged(fs.lookup(ROOT, dir, b"7"));
        assert!(fs.lookup(ROOT, dir, b"8").is_ok());
        assert!(!check(fs.medium()).unwrap().is_clean());
    }
}

/// Creates a symbolic link with a long target; returns its inode number, and the positions of its
/// inode and its block.
fn link(fs: &TestFs, name: &str, target: &[u8]) -> (Ino, u64, u64) {
    let ino = fs.create(ROOT, TOP, name.as_bytes(), NewInode::symlink(target)).unwrap().ino;
    let at = fs.geometry().inode_at(ino.0);
    (ino, at, word(fs.medium(), at + 136))
}

#[test]
fn a_target_of_a_symbolic_link_is_what_was_given_or_an_error() {
    for len in [129, 1000, 4095] {
        let fs = fresh();
        let target: Vec<u8> = (0..len).map(|i| b'a' + (i % 26) as u8).collect();
        let other: Vec<u8> = target.iter().rev().copied().collect();
        let (ino, _, block) = link(&fs, "l", &target);
        let (_, _, theirs) = link(&fs, "m", &other);
        let fs = again(fs, |_| ());
        assert_eq!(fs.read_link(ino).unwrap(), target);
        for bit in (0..len * 8).step_by(61).chain([len * 8 - 1]) {
            flip(fs.medium(), block * 4096 + bit / 8, (bit % 8) as u8);
            damaged(fs.read_link(ino));
            flip(fs.medium(), block * 4096 + bit / 8, (bit % 8) as u8);
        }
        assert!(check(fs.medium()).unwrap().is_clean());
        // A well-formed target, but of another link.
        let mut bytes = vec![0; 4096];
        fs.medium().read(theirs * 4096, &mut bytes);
        fs.medium().write_data(block * 4096, &bytes);
        damaged(fs.read_link(ino));
        let told = check(fs.medium()).unwrap().problems.join("\n");
        assert!(told.contains("the target of a symbolic link"), "{told}");
        let medium = fs.close().unwrap();
        let report = repair(&medium, &Clock::counted(1)).unwrap();
        assert!(report.is_clean() && report.repairs.join("\n").contains("`l`"), "{report:#?}");
        let fs = Fs::open(medium, FsOptions::default()).unwrap();
        assert_eq!(names(&fs, TOP).0, ["m"]);
        assert_eq!(fs.lookup(ROOT, TOP, b"m").and_then(|m| fs.read_link(m.ino)).unwrap(), other);
    }
}

#[test]
fn a_link_of_before_there_were_checks_of_targets_is_read_as_it_is() {
    let fs = fresh();
    let (ino, at, block) = link(&fs, "l", &[b't'; 1000]);
    // Two more transactions, because recovery replays the last two.
    let _ = ["x", "y"].map(|name| fs.create(ROOT, TOP, name.as_bytes(), NewInode::file(0)).unwrap());
    let salt = frit_media::checksum::crc32c(&[7_u64.to_le_bytes(), 0_u64.to_le_bytes()].concat());
    let fs = again(fs, |medium| {
        medium.write_data(at + 144, &[0; 8]);
        let mut inode = vec![0; 256];
        medium.read(at, &mut inode);
        let place = [&ino.0.to_le_bytes()[..], &inode[4..8], &[0; 4]].concat();
        let check = frit_media::checksum::crc32c_append(
            frit_media::checksum::crc32c_append(salt, &place),
            &inode[8..],
        );
        medium.write_data(at, &check.to_le_bytes());
    });
    assert_eq!(fs.read_link(ino).unwrap(), [b't'; 1000]);
    assert!(check(fs.medium()).unwrap().is_clean());
    // Damage is not detectable in such a link, as before the checksum was introduced.
    flip(fs.medium(), block * 4096, 0);
    assert!(fs.read_link(ino).is_ok());
    fs.unlink(ROOT, TOP, b"l").unwrap();
    assert!(check(&fs.close().unwrap()).unwrap().is_clean());
}

#[test]
fn a_damaged_command_file_stays_until_a_repair_creates_another() {
    for case in ["freed", "other", "own", "root", "none", "stray"] {
        let fs = fresh();
        let d = fs.create(ROOT, TOP, b"d", NewInode::directory(0o755)).unwrap().ino;
        let f = fs.create(ROOT, TOP, b"sound", NewInode::file(0o644)).unwrap().ino;
        let command = fs.lookup(ROOT, d, COMMAND_NAME).unwrap().ino;
        let geometry = *fs.geometry();
        // Two more transactions, because recovery replays the last two.
        let _ = ["x", "y"].map(|name| fs.create(ROOT, TOP, name.as_bytes(), NewInode::file(0)).unwrap());
        let refer = |medium: &dyn Medium, to: u64| {
            let at = geometry.inode_at(d.0);
            let mut inode = vec![0; 256];
            medium.read(at, &mut inode);
            inode[112..120].copy_from_slice(&to.to_le_bytes());
            let salt = frit_media::checksum::crc32c(&[7_u64.to_le_bytes(), 0_u64.to_le_bytes()].concat());
            let place = [&d.0.to_le_bytes()[..], &inode[4..8], &[0; 4]].concat();
            let check = frit_media::checksum::crc32c_append(salt, &place);
            let check = frit_media::checksum::crc32c_append(check, &inode[8..]);
            inode[..4].copy_from_slice(&check.to_le_bytes());
            medium.write_data(at, &inode);
        };
        let fs = again(fs, |medium| match case {
            "freed" => medium.write_data(geometry.inode_at(command.0), &[0; 16]),
            "other" => refer(medium, f.0),
            // Inodes that a removal has locked.
            "own" => refer(medium, d.0),
            "root" => refer(medium, TOP.0),
            "none" => refer(medium, 0),
            _ => flip(medium, geometry.inode_at(d.0) + 50, 3),
        });
        match case {
            "freed" | "other" | "own" | "root" => {
                damaged(fs.rmdir(ROOT, TOP, b"d"));
                fs.create(ROOT, TOP, b"e", NewInode::directory(0o755)).unwrap();
                damaged(fs.rename(ROOT, (TOP, b"e"), (TOP, b"d"), Replace));
                fs.rmdir(ROOT, TOP, b"e").unwrap();
            }
            "none" => assert!(matches!(fs.lookup(ROOT, d, COMMAND_NAME), Err(Error::NotFound))),
            _ => damaged(fs.lookup(ROOT, d, COMMAND_NAME)),
        }
        assert!(fs.lookup(ROOT, TOP, b"sound").is_ok());
        let medium = fs.close().unwrap();
        let told = check(&medium).unwrap().problems.join("\n");
        let expected = match case {
            "none" => "has no command file",
            "stray" => "counts 1 links, but there are 0",
            _ => "which is not its command file",
        };
        assert!(told.contains(expected), "{case}: {told}");
        let report = repair(&medium, &Clock::counted(1)).unwrap();
        assert!(report.is_clean(), "{case}: {report:#?}");
        let fs = Fs::open(medium, FsOptions::default()).unwrap();
        let left = if case == "stray" { TOP } else { d };
        fs.lookup(ROOT, left, COMMAND_NAME).unwrap();
        if left == d {
            fs.rmdir(ROOT, TOP, b"d").unwrap();
        }
        // The root, its command file, and three files.
        let usage = fs.usage().unwrap();
        assert_eq!(usage.inodes - usage.inodes_free, 5, "{case}");
        assert!(check(&fs.close().unwrap()).unwrap().is_clean());
    }
}

#[test]
fn the_registers_are_checked_and_cleared() {
    const REGISTERS: u64 = 4096;
    for command_files in [true, false] {
        let medium = memory(1 << 20);
        let format = FormatOptions { command_files, ..FormatOptions::default() };
        let fs = Fs::format(Arc::clone(&medium), format).unwrap();
        let set = RegisterSet { ino: 5, queries: vec![b"word".to_vec()], ..RegisterSet::default() };
        let held = fs.start_registers(&set);
        let other = fs.start_registers(&set);
        if command_files {
            let sets = read_registers(&medium).unwrap();
            assert_eq!((sets[0].status, sets[0].number, sets[0].ino), (RegisterStatus::Running, 1, 5));
            assert_eq!((sets[1].number, sets[1].queries.as_slice()), (2, &[b"word".to_vec()][..]));
            let done = RegisterSet { status: RegisterStatus::Complete, counts: [3, 0, 0, 0], ..set };
            fs.finish_registers(held, &done);
            fs.finish_registers(other, &done);
            assert_eq!(read_registers(&medium).unwrap()[1].counts, [3, 0, 0, 0]);
            // There are seven sets, which are used in turn: an eighth instruction has none.
            for _ in 0..REGISTER_SETS {
                fs.start_registers(&done);
            }
            let without = fs.start_registers(&done);
            fs.finish_registers(without, &done);
            assert!(read_registers(&medium).unwrap().iter().all(|set| set.status == RegisterStatus::Running));
        } else {
            assert!(read_registers(&medium).is_err());
            assert_eq!(word(&medium, REGISTERS), 0);
        }
        // A crash leaves registers of instructions in progress.
        drop(fs);
        assert!(check(&medium).unwrap().is_clean());
        for (at, bits) in [(0, 5), (8, 0), (512, 6), (512 + 3 * 512, 4)] {
            flip(&medium, REGISTERS + at, bits);
            let told = check(&medium).unwrap().problems.join("\n");
            assert!(told.contains("the registers of in-storage processing"), "{at}: {told}");
            let report = repair(&medium, &Clock::counted(1)).unwrap();
            assert!(report.is_clean() && report.repaired == 1, "{report:#?}");
            flip(&medium, REGISTERS + at, bits);
            let fs = Fs::open(Arc::clone(&medium), FsOptions::default()).unwrap();
            assert!(check(&fs.close().unwrap()).unwrap().is_clean());
        }
    }
}

/// A power loss between the words of a mount or of an instruction leaves registers that are no damage.
/// A file system that was closed has none of these.
#[test]
fn registers_that_a_power_loss_left_are_sound() {
    const REGISTERS: u64 = 4096;
    for closed in [false, true] {
        // The first word of the header is missing; a set has values, and no status.
        for (at, word) in [(0, 0_u64), (512 + 16, 5)] {
            let medium = memory(1 << 20);
            let fs = Fs::format(Arc::clone(&medium), FormatOptions::default()).unwrap();
            if closed {
                fs.close().unwrap();
            } else {
                drop(fs);
            }
            medium.write_data(REGISTERS + at, &word.to_le_bytes());
            let report = check(&medium).unwrap();
            assert_eq!((report.closed, report.is_clean()), (closed, !closed), "{at}: {report:?}");
            let sets = read_registers(&medium).unwrap();
            assert_eq!(sets, vec![RegisterSet::default(); REGISTER_SETS]);
            assert_eq!(repair(&medium, &Clock::counted(1)).unwrap().repaired, u64::from(closed));
            let fs = Fs::open(Arc::clone(&medium), FsOptions::default()).unwrap();
            assert!(check(&fs.close().unwrap()).unwrap().is_clean());
        }
    }
}

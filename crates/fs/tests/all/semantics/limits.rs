//! Limits.

use super::*;
use frit_fs::RenameMode::{Exchange, Replace};
use frit_fs::{FILE_MAX, Geometry, LINK_MAX};
use std::sync::Arc;

#[test]
fn s44_a_file_ends_before_4_pib() {
    let fs = fresh(1 << 20);
    let f = file(&fs, "f");
    assert_eq!(FILE_MAX, (4 << 50) - 1);
    assert_eq!(fs.write(f, FILE_MAX - 2, b"four").unwrap(), 2, "short at the limit");
    assert_eq!(fs.attr(f).unwrap().size, FILE_MAX);
    refused!(fs.write(f, FILE_MAX, b"x"), TooLarge);
    refused!(fs.append(f, b"x"), TooLarge);
    refused!(fs.allocate(f, frit_fs::Allocate::Keep, FILE_MAX, 1), TooLarge);
    let mut end = [0; 8];
    assert_eq!(fs.read(f, FILE_MAX - 4, &mut end).unwrap(), 4);
    assert_eq!(end[..4], *b"\0\0fo");
}

#[test]
fn s45_65000_links() {
    let fs =
        Fs::format(memory(64 << 20), FormatOptions { inodes: Some(140_000), ..FormatOptions::default() })
            .unwrap();
    let (many, full) = (directory(&fs, "many"), directory(&fs, "full"));
    let f = file(&fs, "f");
    for i in 1..LINK_MAX {
        fs.link(ROOT, f, many, format!("{i}").as_bytes()).unwrap();
    }
    refused!(fs.link(ROOT, f, TOP, b"g"), LinksFull);
    for i in 2..LINK_MAX {
        fs.create(ROOT, full, format!("{i}").as_bytes(), NewInode::directory(0)).unwrap();
    }
    assert_eq!(fs.attr(full).unwrap().links, LINK_MAX);
    refused!(fs.create(ROOT, full, b"x", NewInode::directory(0)), LinksFull);
    directory(&fs, "d");
    refused!(fs.rename(ROOT, (TOP, b"d"), (full, b"d"), Replace), LinksFull);
    fs.rename(ROOT, (TOP, b"f"), (full, b"f"), Replace).unwrap();
    refused!(fs.rename(ROOT, (TOP, b"d"), (full, b"f"), Exchange), LinksFull);
    refused!(fs.rename(ROOT, (full, b"f"), (TOP, b"d"), Exchange), LinksFull);
    fs.rename(ROOT, (TOP, b"d"), (full, b"2"), Exchange).unwrap();
    assert_clean(fs.medium());
}

#[test]
fn s46_a_medium_has_256_kib_to_1_pib() {
    assert!(Fs::format(memory(252 << 10), FormatOptions::default()).is_err());
    let fs = fresh(256 << 10);
    let f = file(&fs, "f");
    write(&fs, f, 0, &[1; 50_000]);
    assert_clean(&fs.close().unwrap());
    assert!(Geometry::divide(1 << 50, None).unwrap().sound());
    assert!(Geometry::divide((1 << 50) + 4096, None).is_err());
}

#[test]
fn s47_there_are_as_many_inodes_as_it_was_made_with() {
    let medium = memory(1 << 20);
    let fs = Fs::format(medium, FormatOptions { inodes: Some(32), ..FormatOptions::default() }).unwrap();
    assert_eq!((fs.usage().unwrap().inodes, fs.usage().unwrap().inodes_free), (32, 30));
    for i in 0..30 {
        file(&fs, &format!("{i}"));
    }
    refused!(fs.create(ROOT, TOP, b"x", NewInode::file(0)), NoInode);
    assert_eq!(frit_fs::Error::NoInode.errno(), frit_fs::Error::NoSpace.errno());
    fs.unlink(ROOT, TOP, b"7").unwrap();
    file(&fs, "x");
}

#[test]
fn s48_a_directory_has_names_as_long_as_there_is_room() {
    let fs =
        Fs::format(memory(64 << 20), FormatOptions { inodes: Some(150_000), ..FormatOptions::default() })
            .unwrap();
    let d = directory(&fs, "d");
    for i in 0..100_000 {
        fs.create(ROOT, d, format!("{i}").as_bytes(), NewInode::file(0)).unwrap();
    }
    // Names of up to 16 bytes take 32 bytes each.
    let size = fs.attr(d).unwrap().size;
    assert!((3_200_000..3_500_000).contains(&size), "{size}");
    let fs = again(fs.close().unwrap());
    assert_eq!(names(&fs, d).len(), 100_000);
    assert!(fs.lookup(ROOT, d, b"99999").is_ok());
}

#[test]
fn s49_any_number_of_open_files_can_be_without_names() {
    let of_size = |bytes| Geometry::divide(bytes, None).unwrap().orphans;
    assert_eq!((of_size(1 << 20), of_size(16 << 20), of_size(256 << 20)), (512, 1024, 4096));
    for ends in ["closed", "closed one by one", "killed", "killed, then only read"] {
        let medium = memory(1 << 20);
        let fs =
            Fs::format(medium, FormatOptions { inodes: Some(1024), ..FormatOptions::default() }).unwrap();
        let kept = file(&fs, "kept");
        let (before, inodes) = (free(&fs), fs.usage().unwrap().inodes_free);
        let all: Vec<Ino> = (0..600).map(|i| file(&fs, &format!("{i}"))).collect();
        for ino in &all {
            fs.pin(*ino).unwrap();
        }
        write(&fs, all[0], 0, &[1; 100]);
        write(&fs, all[599], 0, &[2; 100]);
        fill(&fs, "all");
        for i in 0..600 {
            let gone = fs.unlink(ROOT, TOP, format!("{i}").as_bytes());
            assert!(gone.is_ok(), "the {i}-th: {gone:?}");
        }
        fs.unlink(ROOT, TOP, b"all").unwrap();
        assert_eq!((contents(&fs, all[0]), contents(&fs, all[599])), (vec![1; 100], vec![2; 100]));
        assert_eq!(frit_fs::check(fs.medium()).unwrap().orphans, 600);
        assert_clean(fs.medium());
        let medium = Arc::clone(fs.medium());
        match ends {
            "closed" => drop(fs.close().unwrap()),
            "closed one by one" => all.iter().for_each(|ino| fs.unpin(*ino).unwrap()),
            _ => drop(fs),
        }
        let read_only = ends.ends_with("read");
        let fs = Fs::open(Arc::clone(&medium), FsOptions { read_only, ..FsOptions::default() }).unwrap();
        let report = frit_fs::check(&medium).unwrap();
        assert!(report.is_clean() && report.orphans == 0, "{ends}: {report:#?}");
        // The directory keeps the blocks that it grew by.
        let grown = fs.attr(TOP).unwrap().sectors / 8;
        assert_eq!((free(&fs) + grown, fs.usage().unwrap().inodes_free), (before + 1, inodes), "{ends}");
        assert!(fs.attr(kept).is_ok() && fs.attr(all[599]).is_err());
        if !read_only {
            // The list is usable again.
            let f = file(&fs, "f");
            fs.pin(f).unwrap();
            fs.unlink(ROOT, TOP, b"f").unwrap();
            drop(fs);
            assert_eq!(frit_fs::check(&medium).unwrap().orphans, 1);
        }
    }
}

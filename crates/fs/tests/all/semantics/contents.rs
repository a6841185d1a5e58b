//! Reads, writes and truncation.

use super::*;

#[test]
fn s16_reading_gives_what_was_written_last() {
    let fs = fresh(1 << 20);
    let f = file(&fs, "f");
    let text: Vec<u8> = (0..100_000u32).map(|i| (i * 7) as u8).collect();
    write(&fs, f, 0, &text);
    write(&fs, f, 4090, &[9; 20]);
    let mut expected = text;
    expected[4090..4110].fill(9);
    assert_eq!(contents(&fs, f), expected);
    let mut room = [0; 100];
    assert_eq!(fs.read(f, 99_990, &mut room).unwrap(), 10, "fewer bytes at the end alone");
    assert_eq!(fs.read(f, 100_000, &mut room).unwrap(), 0);
    assert_eq!(fs.read(f, u64::MAX, &mut room).unwrap(), 0);
    refused!(fs.read(TOP, 0, &mut room), IsDirectory);
}

#[test]
fn s17_holes_read_as_zeros_and_take_no_blocks() {
    if image_only("the pool determines the maximum size of files and their blocks") {
        return;
    }
    let fs = fresh(1 << 20);
    let f = file(&fs, "f");
    write(&fs, f, 1 << 50, b"far");
    let attr = fs.attr(f).unwrap();
    assert_eq!((attr.size, attr.sectors), ((1 << 50) + 3, 8));
    let mut room = [1; 5000];
    assert_eq!(fs.read(f, 77, &mut room).unwrap(), 5000);
    assert_eq!(room, [0; 5000]);
    assert_eq!(fs.read(f, (1 << 50) - 4, &mut room).unwrap(), 7);
    assert_eq!(room[..7], *b"\0\0\0\0far");
}

#[test]
fn s18_appending_is_writing_at_the_end() {
    let fs = fresh(1 << 20);
    let f = file(&fs, "f");
    resize(&fs, f, 10);
    assert_eq!(fs.append(f, b"abc").unwrap(), (13, 3));
    assert_eq!(fs.append(f, b"").unwrap(), (13, 0));
    assert_eq!(contents(&fs, f), b"\0\0\0\0\0\0\0\0\0\0abc");
}

#[test]
fn s19_bytes_that_were_cut_off_never_come_back() {
    let fs = fresh(1 << 20);
    let f = file(&fs, "f");
    write(&fs, f, 0, &[7; 20_000]);
    resize(&fs, f, 100);
    assert_eq!(fs.attr(f).unwrap().sectors, 8);
    resize(&fs, f, 10_000);
    let mut expected = vec![7; 100];
    expected.resize(10_000, 0);
    assert_eq!(contents(&fs, f), expected);
    resize(&fs, f, 50);
    write(&fs, f, 60, &[8; 10]);
    assert_eq!(contents(&fs, f), [&[7; 50][..], &[0; 10], &[8; 10]].concat());
}

#[test]
fn s20_what_a_block_held_before_is_never_seen() {
    if image_only("blocks are allocated by the pool") {
        return;
    }
    let fs = fresh(1 << 20);
    fill(&fs, "old");
    fs.unlink(ROOT, TOP, b"old").unwrap();
    let f = file(&fs, "f");
    for at in [5, 3 * BLOCK + 4095, 9 * BLOCK, 70_001, 120_000] {
        write(&fs, f, at, b"x");
    }
    fs.allocate(f, frit_fs::Allocate::Extend, 0, 200_000).unwrap();
    resize(&fs, f, 130_000);
    write(&fs, f, 180_000, b"y");
    assert!(contents(&fs, f).iter().all(|byte| [0, b'x', b'y'].contains(byte)));
    let dir = directory(&fs, "d");
    assert_eq!(names(&fs, dir).len(), 0);
    for i in 0..50 {
        fs.create(ROOT, dir, format!("{i}").as_bytes(), NewInode::symlink(b"t")).unwrap();
    }
    assert_eq!(names(&fs, dir).len(), 50);
    assert_clean(fs.medium());
}

#[test]
fn s21_a_write_that_space_runs_out_under_is_short() {
    if image_only("space for contents depends on the pool") {
        return;
    }
    let fs = fresh(1 << 20);
    let f = file(&fs, "f");
    let room = free(&fs) * BLOCK;
    assert_eq!(fs.write(f, 0, &vec![5; 2 << 20]).unwrap() as u64, room);
    let before = fs.attr(f).unwrap();
    refused!(fs.write(f, room, b"x"), NoSpace);
    refused!(fs.append(f, b"x"), NoSpace);
    assert_eq!(fs.attr(f).unwrap(), before);
    assert_eq!(contents(&fs, f), vec![5; room as usize]);
    write(&fs, f, 100, &[6; 100]);
    resize(&fs, f, 10 * BLOCK);
    assert_eq!(fs.write(f, 10 * BLOCK, &[1; 9000]).unwrap(), 9000, "what was freed is there at once");
}

#[test]
fn s22_no_space_for_a_name_leaves_all_as_it_is() {
    if image_only("a full pool leaves space for names") {
        return;
    }
    let fs = fresh(1 << 20);
    let f = file(&fs, "f");
    fill(&fs, "all");
    let mut made = 0;
    let long = |i| format!("{i:0>255}");
    while fs.create(ROOT, TOP, long(made).as_bytes(), NewInode::file(0)).is_ok() {
        made += 1;
    }
    let before = (names(&fs, TOP), fs.usage().unwrap(), fs.attr(TOP).unwrap(), fs.attr(f).unwrap());
    refused!(fs.create(ROOT, TOP, long(999).as_bytes(), NewInode::directory(0o755)), NoSpace);
    refused!(fs.create(ROOT, TOP, b"s", NewInode::symlink(&[b't'; 3000])), NoSpace);
    refused!(fs.link(ROOT, f, TOP, long(999).as_bytes()), NoSpace);
    let to = long(999);
    refused!(fs.rename(ROOT, (TOP, b"f"), (TOP, to.as_bytes()), frit_fs::RenameMode::Replace), NoSpace);
    assert_eq!((names(&fs, TOP), fs.usage().unwrap(), fs.attr(TOP).unwrap(), fs.attr(f).unwrap()), before);
    assert_clean(fs.medium());
}

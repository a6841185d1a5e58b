//! Tests of the contents of files: read and write, memory maps, and direct access.

use super::{BYTES, INODES, Mounted, code, conforms, error, sh_as};
use rustix::fs::{FallocateFlags, OFlags, SeekFrom, copy_file_range, fallocate, seek};
use rustix::io::Errno;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};

/// Returns bytes that depend on their position.
fn pattern(len: usize, seed: u32) -> Vec<u8> {
    (0..len as u32).map(|i| ((i ^ seed).wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

fn both() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true);
    options
}

/// Returns the options of a program that bypasses the page cache.
fn direct() -> OpenOptions {
    let mut options = both();
    options.custom_flags(OFlags::DIRECT.bits() as i32);
    options
}

fn contents(words: &str) {
    let Some(m) = Mounted::new(words) else { return };
    let bytes = pattern(5_000_001, 1);
    let mut file = both().open(m.path("f")).unwrap();
    file.write_all(&bytes).unwrap();
    let mut last = vec![0; 10];
    file.read_exact_at(&mut last, 4_999_991).unwrap();
    assert_eq!(last, bytes[4_999_991..]);
    assert!(fs::read(m.path("f")).unwrap() == bytes);
    file.set_len(4097).unwrap();
    file.write_all_at(b"end", 10_000).unwrap();
    let back = fs::read(m.path("f")).unwrap();
    assert_eq!(back.len(), 10_003);
    assert!(back[..4097] == bytes[..4097] && back[4097..10_000].iter().all(|&b| b == 0));
    File::create(m.path("f")).unwrap();
    assert_eq!(file.metadata().unwrap().len(), 0, "O_TRUNC");
    file.sync_all().unwrap();
    drop(file);
    m.stop();
}

#[test]
fn contents_are_what_was_written() {
    contents("");
}

#[test]
fn contents_with_a_writeback_cache() {
    contents("writeback");
}

/// The kernel has the end of a file that is open, and its only block, when programs copy it.
#[test]
fn copies_of_open_files_have_what_the_kernel_has_not_sent() {
    let Some(m) = Mounted::new("writeback") else { return };
    // Known to the kernel before, without a block.
    File::create(m.path("known")).unwrap().set_len(1 << 20).unwrap();
    assert_eq!(m.path("known").metadata().unwrap().blocks(), 0);
    for name in ["f", "known"] {
        let block = pattern(4096, 3);
        let mut bytes = vec![0; 6 << 20];
        bytes[5 << 20..][..4096].copy_from_slice(&block);
        let open = both().open(m.path(name)).unwrap();
        open.set_len(6 << 20).unwrap();
        open.write_all_at(&block, 5 << 20).unwrap();
        assert!(open.metadata().unwrap().blocks() > 0, "{name}");
        assert_eq!(seek(&open, SeekFrom::Data(0)).unwrap(), 5 << 20);
        assert_eq!(seek(&open, SeekFrom::Hole(5 << 20)).unwrap(), (5 << 20) + 4096);
        open.write_all_at(&block, 5 << 20).unwrap();
        let copies = format!(
            "cp {name} {name}.cp && cp --sparse=always {name} {name}.sparse && install {name} {name}.install && \
             tar -cSf - {name} | tar -xOf - > {name}.tar && cat {name} > {name}.cat && \
             dd if={name} of={name}.dd bs=64k conv=sparse status=none && truncate -s 6M {name}.dd && \
             python3 -c 'import shutil; shutil.copyfile(\"{name}\", \"{name}.py\")'"
        );
        assert_eq!(sh_as(0, &m.at, &format!("{copies} && echo copied")), "copied");
        for copy in ["cp", "sparse", "install", "tar", "cat", "dd", "py"] {
            let copied = fs::read(m.path(&format!("{name}.{copy}"))).unwrap();
            assert!(copied == bytes, "{name}.{copy}: {} bytes", copied.len());
        }
        drop(open);
    }
    m.stop();
}

#[test]
fn s72_the_page_cache_and_direct_access_agree() {
    agree("");
}

#[test]
fn with_a_writeback_cache_they_agree_as_well() {
    agree("writeback");
}

fn agree(words: &str) {
    let Some(m) = Mounted::new(words) else { return };
    let path = m.path("f");
    let (cached, direct) = (both().open(&path).unwrap(), direct().open(&path).unwrap());
    for round in 0..4u32 {
        let bytes = pattern(64 << 10, round);
        let (writer, reader) = if round % 2 == 0 { (&cached, &direct) } else { (&direct, &cached) };
        writer.write_all_at(&bytes, 4096).unwrap();
        let mut back = vec![0; bytes.len()];
        reader.read_exact_at(&mut back, 4096).unwrap();
        assert!(back == bytes, "round {round}");
    }
    // The hole before the end of the file, which a write through the cache has moved.
    cached.write_all_at(b"end", 812_167).unwrap();
    let mut back = vec![1; 64 << 10];
    assert_eq!(direct.read_at(&mut back, 532_480).unwrap(), back.len());
    assert!(back.iter().all(|&b| b == 0));
    assert_eq!(direct.read_at(&mut back, 786_432).unwrap(), 812_170 - 786_432);
    let copy = both().open(m.path("copy")).unwrap();
    cached.write_all_at(b"END", 1_812_167).unwrap();
    let copied = copy_file_range(&cached, Some(&mut 1_000_000), &copy, Some(&mut 0), 100_000).unwrap();
    assert_eq!(copied, 100_000);
    drop((cached, direct, copy));
    m.stop();
}

/// Pages that are filled during direct writes must not remain stale.
#[test]
fn asynchronous_direct_writes_leave_no_old_pages() {
    let Some(m) = Mounted::new("") else { return };
    conforms(&m, "asynchronous-direct-writes-beside-reads");
    conforms(&m, "turned-direct-writes-beside-reads");
    m.stop();
}

#[test]
fn s74_two_processes_append() {
    let Some(m) = Mounted::new("") else { return };
    let script = "for i in $(seq 400); do echo $0 line $i of this process >> log; done";
    let appenders: Vec<_> = ["one", "two"]
        .iter()
        .map(|name| {
            std::process::Command::new("sh").args(["-c", script, name]).current_dir(&m.at).spawn().unwrap()
        })
        .collect();
    for mut child in appenders {
        assert!(child.wait().unwrap().success());
    }
    let text = fs::read_to_string(m.path("log")).unwrap();
    for name in ["one", "two"] {
        let own: Vec<&str> = text.lines().filter(|l| l.starts_with(name)).collect();
        let expected: Vec<String> = (1..=400).map(|i| format!("{name} line {i} of this process")).collect();
        assert_eq!(own, expected);
    }
    assert_eq!(text.lines().count(), 800);
    m.stop();
}

#[test]
fn s75_an_open_file_lives_without_a_name() {
    let Some(m) = Mounted::new("") else { return };
    let file = both().open(m.path("f")).unwrap();
    file.write_all_at(b"before", 0).unwrap();
    fs::remove_file(m.path("f")).unwrap();
    // Other files use other inodes in the meantime.
    for i in 0..20 {
        fs::write(m.path(&format!("other {i}")), "other").unwrap();
    }
    file.write_all_at(b"and after", 6).unwrap();
    let mut back = String::new();
    (&file).read_to_string(&mut back).unwrap();
    assert_eq!((back.as_str(), file.metadata().unwrap().nlink()), ("beforeand after", 0));
    drop(file);
    super::soon("the inode is freed at closing", || super::inodes(&m.files) == 22);
    m.stop();
}

#[test]
fn s76_holes_are_found_made_and_copied() {
    let Some(m) = Mounted::new("") else { return };
    let file = both().open(m.path("sparse")).unwrap();
    file.write_all_at(&[1; 4096], 1 << 40).unwrap();
    let seen = file.metadata().unwrap();
    assert_eq!((seen.len(), seen.blocks()), ((1 << 40) + 4096, 8));
    assert_eq!(seek(&file, SeekFrom::Data((1 << 40) - 8192)), Ok(1 << 40));
    file.set_len(0).unwrap();
    file.write_all_at(&pattern(1 << 20, 3), 0).unwrap();
    fallocate(&file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, 8192, 4096).unwrap();
    assert_eq!(seek(&file, SeekFrom::Hole(0)), Ok(8192));
    assert_eq!(seek(&file, SeekFrom::Data(8192)), Ok(12_288));
    assert_eq!(seek(&file, SeekFrom::Data(1 << 20)), Err(Errno::NXIO));
    fallocate(&file, FallocateFlags::ZERO_RANGE, 0, 100).unwrap();
    fallocate(&file, FallocateFlags::empty(), 0, 2 << 20).unwrap();
    assert_eq!(file.metadata().unwrap().len(), 2 << 20);
    let collapse = FallocateFlags::COLLAPSE_RANGE;
    assert_eq!(fallocate(&file, collapse, 0, 4096), Err(Errno::OPNOTSUPP));
    let mut expected = pattern(1 << 20, 3);
    expected[8192..12_288].fill(0);
    expected[..100].fill(0);
    expected.resize(2 << 20, 0);
    assert!(fs::read(m.path("sparse")).unwrap() == expected);
    let copy = both().open(m.path("copy")).unwrap();
    copy.write_all_at(&[9; 50], 0).unwrap();
    let (mut from, mut to) = (1, 20);
    let bytes = copy_file_range(&file, Some(&mut from), &copy, Some(&mut to), 1 << 20).unwrap();
    assert_eq!((bytes, copy.metadata().unwrap().len()), (1 << 20, (1 << 20) + 20));
    let copied = fs::read(m.path("copy")).unwrap();
    assert!(copied[..20] == [9; 20] && copied[20..] == expected[1..=1 << 20]);
    drop((file, copy));
    m.stop();
}

#[test]
fn the_size_of_the_file_system_is_told() {
    if super::image_only("blocks are the pool's") {
        return;
    }
    let Some(m) = Mounted::new("") else { return };
    // The root directory allocates a block for its first name.
    fs::write(m.path("first"), "").unwrap();
    let before = rustix::fs::statvfs(&m.at).unwrap();
    assert_eq!((before.f_files, before.f_frsize, before.f_namemax), (INODES, 4096, 255));
    assert!((BYTES / 4096 * 9 / 10..BYTES / 4096).contains(&before.f_blocks), "{}", before.f_blocks);
    fs::write(m.path("f"), vec![1; 1 << 20]).unwrap();
    let after = rustix::fs::statvfs(&m.at).unwrap();
    assert_eq!((before.f_bfree - after.f_bfree, before.f_ffree - after.f_ffree), (256, 1));
    assert_eq!(error(File::options().write(true).open(m.path("none"))), code(Errno::NOENT));
    m.stop();
}

/// A script with memory maps in two processes and reads: all share the kernel's page cache.
const MAPS: &str = "
import mmap, os, sys
f = os.open('mapped', os.O_RDWR | os.O_CREAT | int(sys.argv[1]))
os.ftruncate(f, 1 << 16)
m = mmap.mmap(f, 1 << 16)
m[5000:5005] = b'first'
assert os.pread(os.open('mapped', os.O_RDONLY), 5, 5000) == b'first'
child = os.fork()
if child == 0:
    m[9000:9006] = b'second'
    os._exit(0)
os.waitpid(child, 0)
assert m[9000:9006] == b'second'
os.pwrite(os.open('mapped', os.O_WRONLY), b'third', 40000)
assert m[40000:40005] == b'third'
os.unlink('mapped')
m.flush()
assert os.fstat(f).st_nlink == 0
other = os.open('kept', os.O_RDWR | os.O_CREAT)
os.ftruncate(other, 4096)
n = mmap.mmap(other, 4096)
n[0:4] = b'kept'
n.flush()
print('good')
";

#[test]
fn s73_maps_are_shared_and_written() {
    for flags in [0, OFlags::DIRECT.bits()] {
        let Some(m) = Mounted::new("") else { return };
        fs::write(m._dir.path().join("maps.py"), MAPS).unwrap();
        let said = sh_as(0, &m.at, &format!("python3 ../maps.py {flags}"));
        if said.contains("python3: not found") {
            eprintln!("skipped: no python3");
            return;
        }
        assert_eq!(said, "good", "flags {flags}");
        assert_eq!(fs::read(m.path("kept")).unwrap()[..4], *b"kept");
        m.stop();
    }
}

//! Tests of passthrough: contents that the kernel accesses without the server.

use super::{Mounted, code, error, sh_as, soon};
use frit_fs::{FileSystem, Ino};
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::time::Duration;

/// Mounts with passthrough. Prints the reason and returns `None` if it is not active.
fn passing() -> Option<Mounted> {
    let m = Mounted::new("")?;
    match m.mount.as_ref().unwrap().passthrough_inactive_reason() {
        None => Some(m),
        Some(why) => {
            eprintln!("skipped: {why}");
            None
        }
    }
}

fn both(m: &Mounted, name: &str) -> File {
    File::options().create(true).truncate(false).read(true).write(true).open(m.path(name)).unwrap()
}

/// A reader of the external file sees at once the data written by a program, without a request to
/// the server.
#[test]
fn s100_what_a_program_writes_is_in_the_body() {
    let Some(m) = passing() else { return };
    let file = both(&m, "f");
    file.write_all_at(b"passed through", 0).unwrap();
    let ino = Ino(file.metadata().unwrap().ino());
    let content_file = File::from(m.files.content_file(ino).unwrap().try_clone().unwrap());
    let mut back = [0; 14];
    content_file.read_exact_at(&mut back, 0).unwrap();
    assert_eq!(&back, b"passed through");
    content_file.write_all_at(b"PASSED", 0).unwrap();
    file.read_exact_at(&mut back, 0).unwrap();
    assert_eq!(&back, b"PASSED through", "no cache intervenes");
    // Both use the same pages of the kernel, since the descriptor is that of the pool's file.
    let maps = format!("/proc/self/fd/{}", content_file.as_raw_fd());
    assert!(fs::read_link(maps).unwrap().to_string_lossy().contains("bodies"));
    drop((file, content_file));
    soon("the external file is closed", || m.files.content_file(ino).is_none());
    m.stop();
}

#[test]
fn several_open_it_in_several_ways() {
    let Some(m) = passing() else { return };
    let files: Vec<File> = (0..20).map(|_| both(&m, "f")).collect();
    files[3].write_all_at(b"three", 0).unwrap();
    let readers: Vec<File> = (0..20).map(|_| File::open(m.path("f")).unwrap()).collect();
    for file in files.iter().chain(&readers) {
        let mut back = [0; 5];
        file.read_exact_at(&mut back, 0).unwrap();
        assert_eq!(&back, b"three");
    }
    File::create(m.path("f")).unwrap();
    assert!(files.iter().all(|file| file.metadata().unwrap().len() == 0), "O_TRUNC");
    drop((files, readers));
    let again = both(&m, "f");
    again.write_all_at(b"again", 0).unwrap();
    assert_eq!(fs::read(m.path("f")).unwrap(), b"again");
    drop(again);
    m.stop();
}

/// A script that writes through a memory map without a request, even after the last close.
const MAP: &str = "
import mmap, os, time
f = os.open('m', os.O_RDWR)
before = os.stat('m').st_mtime_ns
m = mmap.mmap(f, 8192)
time.sleep(0.03)
m[0:1] = b'x'
after = os.stat('m').st_mtime_ns
assert after > before, 'not moved'
os.close(f)
time.sleep(0.03)
m[4096:4097] = b'y'
assert os.stat('m').st_mtime_ns > after, 'not moved behind close'
print('good')
";

#[test]
fn s101_a_map_that_is_written_moves_times() {
    let Some(m) = passing() else { return };
    fs::write(m.path("m"), vec![0; 8192]).unwrap();
    fs::write(m._dir.path().join("map.py"), MAP).unwrap();
    // The kernel's cached attributes are from before the write.
    let _ = fs::metadata(m.path("m")).unwrap();
    let said = sh_as(0, &m.at, "python3 ../map.py");
    assert!(said == "good" || said.contains("not found"), "{said}");
    m.stop();
}

#[test]
fn a_program_runs_from_its_body() {
    let Some(m) = passing() else { return };
    let said =
        sh_as(0, &m.at, "cp /bin/true program && ./program && cp program other && ./other && echo good");
    // The mount disables set-ID bits and device files, but not programs.
    assert_eq!(said, "good");
    let running = sh_as(0, &m.at, "cp /bin/sleep s && { ./s 2 & sleep 0.2; echo x >> s; }");
    assert!(running.contains("ext file busy"), "{running}");
    m.stop();
}

#[test]
fn a_file_without_a_name_keeps_its_body_until_it_is_closed() {
    let Some(m) = passing() else { return };
    let file = both(&m, "f");
    file.write_all_at(&[7; 100_000], 0).unwrap();
    let ino = Ino(file.metadata().unwrap().ino());
    fs::remove_file(m.path("f")).unwrap();
    file.write_all_at(&[8; 100_000], 100_000).unwrap();
    let mut back = vec![0; 200_000];
    file.read_exact_at(&mut back, 0).unwrap();
    assert!(back[..100_000] == [7; 100_000] && back[100_000..] == [8; 100_000]);
    drop(file);
    soon("the inode is freed", || m.files.attr(ino).is_err());
    assert_eq!(error(fs::metadata(m.path("f"))), code(rustix::io::Errno::NOENT));
    m.stop();
}

/// Without passthrough, the contents of the same files are transferred by requests.
#[test]
fn without_the_kernel_requests_do() {
    use frit_serve::fuse::file_system::{Mount, MountOptions};

    let Some(m) = Mounted::new("") else { return };
    let at = m._dir.path().canonicalize().unwrap().join("other");
    fs::create_dir(&at).unwrap();
    let files = std::sync::Arc::new(super::memory());
    let mount = Mount::start(&files, &at, &MountOptions::new("plain")).unwrap();
    let bytes: Vec<u8> = (0..300_000u32).map(|i| (i * 7) as u8).collect();
    fs::write(at.join("f"), &bytes).unwrap();
    assert!(fs::read(at.join("f")).unwrap() == bytes);
    let ino = Ino(fs::metadata(at.join("f")).unwrap().ino());
    assert_eq!(files.attr(ino).unwrap().size, 300_000);
    assert!(!mount.unmount(Duration::from_secs(5)).unwrap());
    mount.join().unwrap();
    m.stop();
}

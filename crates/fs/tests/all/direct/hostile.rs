//! A process that may write the image, and writes to the shared memory what the protocol does not: the server keeps
//! running, waits for no longer than it says, and believes no word. docs/design/direct.md has the argument.

use super::*;
use crate::erased;
use frit_direct::segment::{Head, SLOTS};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// Time for which the server waits for an access.
const WAIT: Duration = Duration::from_secs(1);

fn size(bytes: u64) -> AttrChanges {
    AttrChanges { size: Some(bytes), ..AttrChanges::default() }
}

/// A process that has nothing to do with the image; killed when this is dropped.
struct Bystander(Child);

impl Bystander {
    fn new() -> Bystander {
        Bystander(Command::new("sleep").arg("600").spawn().unwrap())
    }
}

impl Drop for Bystander {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Client {
    /// Writes an access to a file to a slot, for a process.
    fn forge(&self, slot: usize, file: u32, process: u32) {
        let at = offset_of!(Segment, slots) + slot * size_of::<Slot>();
        self.set(at + offset_of!(Slot, owner), Slot::owner_of(1, process));
        self.set(at + offset_of!(Slot, access), u64::from(file + 1) | 7 << 32);
    }

    fn set_slots_used(&self, used: u32) {
        let at = offset_of!(Segment, head) + offset_of!(Head, slots_used);
        self.segment.write_all_at(&used.to_ne_bytes(), at as u64).unwrap();
    }

    fn generation_at(lease: &Lease) -> usize {
        let line = offset_of!(Segment, files) + lease.file as usize * size_of::<FileState>();
        line + offset_of!(FileState, generation)
    }
}

#[test]
fn a_truncated_segment_ends_direct_access_and_not_the_server() {
    for left in [0, 5000, offset_of!(Segment, files) as u64] {
        let p = Place::new();
        let (ino, client) = (p.file("a", 100_000), p.client());
        let lease = p.lease(ino, 0, 0).unwrap();
        client.segment.set_len(left).unwrap();
        p.fs.write(ino, 0, b"through the mount").unwrap();
        let other = p.file("b", 5000);
        assert!(p.lease(ino, 0, 0).is_err() && p.lease(other, 0, 9000).is_err(), "{left} bytes are left");
        // Also with its old length, programs and the server no longer have the same memory.
        client.segment.set_len(size_of::<Segment>() as u64).unwrap();
        assert!(p.lease(ino, 0, 0).is_err() && !client.is_valid(&lease));
        p.fs.set_attr(&ME, ino, &size(17)).unwrap();
        assert_eq!(p.contents(ino), b"through the mount");
        p.fs.register_client().unwrap();
        let Place { fs, image, _dir } = p;
        Arc::into_inner(fs).unwrap().close().unwrap();
        let again = Fs::open(erased(Mapped::file(&image).unwrap()), FsOptions::default()).unwrap();
        assert_eq!(contents(&again, ino), b"through the mount");
    }
}

#[test]
fn a_number_of_slots_that_is_too_small_hides_no_access() {
    for used in [0, u32::MAX] {
        let p = Place::new();
        let (ino, client) = (p.file("a", 100_000), p.client());
        let lease = p.lease(ino, 0, 0).unwrap();
        client.forge(SLOTS - 1, lease.file, std::process::id());
        client.set_slots_used(SLOTS as u32);
        p.fs.register_client().unwrap();
        client.set_slots_used(used);
        assert!(matches!(p.fs.set_attr(&ME, ino, &size(10)), Err(Error::Busy)), "{used}");
        client.forge(SLOTS - 1, u32::MAX - 1, 0);
        p.fs.set_attr(&ME, ino, &size(10)).unwrap();
    }
}

#[test]
fn a_generation_that_a_program_wrote_is_no_lease_and_costs_no_wait() {
    let p = Place::new();
    let (ino, client) = (p.file("a", 100_000), p.client());
    let lease = p.lease(ino, 0, 0).unwrap();
    client.set(Client::generation_at(&lease), 77);
    let next = p.lease(ino, 0, 0).unwrap();
    assert!(next.generation != 77 && next.generation > lease.generation, "{}", next.generation);
    assert!(client.is_valid(&next));
    // The first wait for an access that does not end takes its time, and no other, whatever is written.
    client.forge(0, next.file, std::process::id());
    client.set_slots_used(1);
    assert!(matches!(p.fs.set_attr(&ME, ino, &size(10)), Err(Error::Busy)));
    let begun = Instant::now();
    for generation in 1..20 {
        client.set(Client::generation_at(&next), generation);
        assert!(matches!(p.fs.set_attr(&ME, ino, &size(10)), Err(Error::Busy)));
        p.fs.write(ino, 0, &[1]).unwrap();
    }
    assert!(begun.elapsed() < 3 * WAIT, "{:?}", begun.elapsed());
}

#[test]
fn a_process_without_the_segment_is_in_no_access() {
    let p = Place::new();
    let (ino, client) = (p.file("a", 100_000), p.client());
    let lease = p.lease(ino, 0, 0).unwrap();
    let bystander = Bystander::new();
    client.set_slots_used(SLOTS as u32);
    for slot in 0..SLOTS {
        client.forge(slot, lease.file, bystander.0.id());
    }
    p.fs.set_attr(&ME, ino, &size(10)).expect("the process has no access to the image");
    // Neither does it keep the image from the next mount.
    client.forge(0, lease.file, bystander.0.id());
    let again = p.kill();
    assert_eq!(contents(&again, ino), [1; 10]);
}

#[test]
fn want_of_space_waits_once_for_all_files() {
    let p = Place::of(8 << 20);
    let client = p.client();
    client.set_slots_used(16);
    for i in 0..6 {
        let ino = p.file(&format!("f{i}"), 100);
        let lease = p.extending(ino, 9000);
        client.forge(i, lease.file, std::process::id());
    }
    let other = p.file("other", 0);
    let begun = Instant::now();
    let mut at = 0;
    while let Ok(len) = p.fs.write(other, at, &[5; 65_536]) {
        at += len as u64;
    }
    assert!(at > 1 << 20 && begun.elapsed() < 3 * WAIT, "{:?}", begun.elapsed());
    (0..6).for_each(|slot| client.forge(slot, u32::MAX - 1, 0));
}

#[test]
fn a_file_of_another_user_keeps_nobody_from_an_image() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: files of another user need root");
        return;
    }
    let p = Place::new();
    p.file("a", 10);
    let Place { fs, image, _dir } = p;
    Arc::into_inner(fs).unwrap().close().unwrap();
    let planted = PathBuf::from(format!("{}.direct", image.display()));
    std::fs::write(&planted, "text").unwrap();
    std::os::unix::fs::chown(&planted, Some(65534), None).unwrap();
    let fs = Fs::open(erased(Mapped::file(&image).unwrap()), FsOptions::default()).unwrap();
    let ino = fs.lookup(&ME, Ino::ROOT, b"a").unwrap().ino;
    fs.pin(ino).unwrap();
    // Without direct access, and the message names the file.
    let error = fs.begin_lease(ino).unwrap_err().to_string();
    assert!(error.contains("img.direct"), "{error}");
    assert_eq!(std::fs::read(&planted).unwrap(), b"text");
}

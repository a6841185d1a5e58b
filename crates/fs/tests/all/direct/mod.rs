//! Direct access: a client that reads and writes the image and its shared memory as files, as programs do
//! with maps of them.

mod append;
mod hostile;
mod left;
mod planted;
mod power;

use crate::{AnyMedium, erased};
use frit_direct::messages::{EXTENTS, Extent, Lease};
use frit_direct::segment::{FileState, SIZE_FIXED, Segment, Slot};
use frit_fs::{
    Allocate, AttrChanges, Caller, DirectFiles, Error, FileSystem, FormatOptions, Fs, FsOptions, InStorage,
    Ino, Mapped, NewInode, SetTime, Time,
};
use rand::rngs::SmallRng;
use rand::{Rng, RngCore, SeedableRng};
use std::fs::{File, OpenOptions};
use std::mem::offset_of;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;

const ME: Caller = Caller::ROOT;
const BLOCK: u64 = 4096;

struct Place {
    _dir: tempfile::TempDir,
    image: PathBuf,
    fs: Arc<Fs<AnyMedium>>,
}

impl Place {
    fn new() -> Self {
        Self::of(32 << 20)
    }

    fn of(bytes: u64) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let image = dir.path().join("img");
        File::create(&image).unwrap().set_len(bytes).unwrap();
        let fs = Fs::format(erased(Mapped::file(&image).unwrap()), FormatOptions::default()).unwrap();
        Self { _dir: dir, image, fs: Arc::new(fs) }
    }

    fn file(&self, name: &str, bytes: usize) -> Ino {
        let ino = self.fs.create(&ME, Ino::ROOT, name.as_bytes(), NewInode::file(0o644)).unwrap().ino;
        self.fs.pin(ino).unwrap();
        self.fs.write(ino, 0, &vec![1; bytes]).unwrap();
        ino
    }

    /// Gets a lease, as the mount does for a program.
    fn lease(&self, ino: Ino, from: u64, to: u64) -> Result<Box<Lease>, Error> {
        self.fs.begin_lease(ino)?;
        let mut lease = Box::new(Lease::request(from));
        lease.to = to;
        if self.fs.grant(ino, &mut lease)? { Ok(lease) } else { Err(Error::Busy) }
    }

    /// Gets a lease with append space up to `to`.
    fn extending(&self, ino: Ino, to: u64) -> Box<Lease> {
        let size = self.fs.attr(ino).unwrap().size;
        let lease = self.lease(ino, size, to).unwrap();
        assert!(lease.size_max >= to, "append space up to {to}");
        lease
    }

    /// Reads a whole file.
    fn contents(&self, ino: Ino) -> Vec<u8> {
        contents(&*self.fs, ino)
    }

    /// Ends the server without a close, and opens the image again.
    fn kill(&self) -> Fs<AnyMedium> {
        std::mem::forget(Arc::clone(&self.fs));
        Fs::open(erased(Mapped::file(&self.image).unwrap()), FsOptions::default()).unwrap()
    }

    fn client(&self) -> Client {
        self.fs.register_client().unwrap();
        let open = |path: &PathBuf| OpenOptions::new().read(true).write(true).open(path).unwrap();
        let mut segment = self.image.clone().into_os_string();
        segment.push(".direct");
        Client { image: open(&self.image), segment: open(&segment.into()) }
    }
}

fn contents(fs: &dyn FileSystem, ino: Ino) -> Vec<u8> {
    let mut bytes = vec![0; fs.attr(ino).unwrap().size as usize + 1];
    let len = fs.read(ino, 0, &mut bytes).unwrap();
    bytes.truncate(len);
    bytes
}

/// Returns bytes that depend on a tag and on their position.
fn pattern(tag: u64, len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 7 + (i >> 8) * 13 + tag as usize * 31 + 1) as u8 | 1).collect()
}

/// A program with direct access.
struct Client {
    image: File,
    segment: File,
}

impl Client {
    fn word(&self, at: usize) -> u64 {
        let mut bytes = [0; 8];
        self.segment.read_exact_at(&mut bytes, at as u64).unwrap();
        u64::from_ne_bytes(bytes)
    }

    fn set(&self, at: usize, word: u64) {
        self.segment.write_all_at(&word.to_ne_bytes(), at as u64).unwrap();
    }

    fn is_valid(&self, lease: &Lease) -> bool {
        let line = offset_of!(Segment, files) + lease.file as usize * size_of::<FileState>();
        self.word(line + offset_of!(FileState, generation)) == lease.generation
    }

    /// Overwrites a range in one extent.
    fn write(&self, lease: &Lease, at: u64, data: &[u8]) {
        let extent = piece(lease, at, data.len() as u64).unwrap();
        self.image.write_all_at(data, extent.medium + (at - extent.at)).unwrap();
        let line = offset_of!(Segment, files) + lease.file as usize * size_of::<FileState>();
        let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64;
        self.set(line + offset_of!(FileState, written_at), now);
    }

    fn size_at(lease: &Lease) -> usize {
        let line = offset_of!(Segment, files) + lease.file as usize * size_of::<FileState>();
        line + offset_of!(FileState, size)
    }

    /// Writes at a position behind the end of the file, with zeros before it, and moves the size. Returns `false`
    /// if the size is fixed.
    fn extend(&self, lease: &Lease, at: u64, data: &[u8]) -> bool {
        let size = self.word(Self::size_at(lease)) & !SIZE_FIXED;
        let bytes = [vec![0; at.saturating_sub(size) as usize], data.to_vec()].concat();
        let mut from = at.min(size);
        let end = from + bytes.len() as u64;
        assert!(end <= lease.size_max);
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let extent = piece(lease, from, 1).unwrap();
            let (now, later) = rest.split_at(rest.len().min((extent.end() - from) as usize));
            self.write(lease, from, now);
            from += now.len() as u64;
            rest = later;
        }
        if self.word(Self::size_at(lease)) & SIZE_FIXED != 0 {
            return false;
        }
        self.set(Self::size_at(lease), end.max(size));
        true
    }

    /// Announces an access in the first slot, of this process.
    fn announce(&self, lease: &Lease) {
        let slot = offset_of!(Segment, slots);
        self.set(slot + offset_of!(Slot, owner), Slot::owner_of(1, std::process::id()));
        self.set(slot + offset_of!(Slot, access), u64::from(lease.file + 1) | 7 << 32);
        let used = offset_of!(Segment, head) + offset_of!(frit_direct::segment::Head, slots_used);
        self.segment.write_all_at(&1_u32.to_ne_bytes(), used as u64).unwrap();
    }

    fn finish(&self) {
        self.set(offset_of!(Segment, slots) + offset_of!(Slot, access), 0);
    }
}

/// Returns the extent that has a range.
fn piece(lease: &Lease, at: u64, len: u64) -> Option<Extent> {
    let extents = &lease.extents[..lease.count as usize];
    extents.iter().copied().find(|extent| extent.at <= at && at + len <= extent.end())
}

#[test]
fn each_use_of_contents_ends_a_lease_and_no_other_operation_does() {
    let p = Place::new();
    let ino = p.file("a", 100_000);
    let client = p.client();
    let fs = &p.fs;
    let changes = |changes: AttrChanges| move |fs: &Fs<AnyMedium>| fs.set_attr(&ME, ino, &changes).map(drop);
    type Operation<'a> = (&'a str, bool, Box<dyn Fn(&Fs<AnyMedium>) -> frit_fs::Result<()> + 'a>);
    let operations: Vec<Operation<'_>> = vec![
        ("read", true, Box::new(|fs| fs.read(ino, 0, &mut [0; 10]).map(drop))),
        ("write", true, Box::new(|fs| fs.write(ino, 5, &[1]).map(drop))),
        ("append", true, Box::new(|fs| fs.append(ino, &[1]).map(drop))),
        ("extend", true, Box::new(|fs| fs.allocate(ino, Allocate::Extend, 0, 200_000))),
        ("keep", true, Box::new(|fs| fs.allocate(ino, Allocate::Keep, 0, 300_000))),
        ("punch", true, Box::new(|fs| fs.allocate(ino, Allocate::Punch, 0, 5000))),
        ("zero", true, Box::new(|fs| fs.allocate(ino, Allocate::Zero, 0, 5000))),
        ("truncate", true, Box::new(changes(AttrChanges { size: Some(50_000), ..AttrChanges::default() }))),
        ("grow", true, Box::new(changes(AttrChanges { size: Some(70_000), ..AttrChanges::default() }))),
        ("mode", true, Box::new(changes(AttrChanges { mode: Some(0o600), ..AttrChanges::default() }))),
        ("gather", true, Box::new(|fs| fs.gather(ino).map(drop))),
        (
            "scan",
            true,
            Box::new(|fs| {
                Arc::clone(&p.fs).open_contents(&ME, ino, false)?.scan(0, 100, &mut |_| ())?;
                fs.attr(ino).map(drop)
            }),
        ),
        ("attr", false, Box::new(|fs| fs.attr(ino).map(drop))),
        ("lookup", false, Box::new(|fs| fs.lookup(&ME, Ino::ROOT, b"a").map(drop))),
        ("link", false, Box::new(|fs| fs.link(&ME, ino, Ino::ROOT, b"b").map(drop))),
        ("unlink", false, Box::new(|fs| fs.unlink(&ME, Ino::ROOT, b"b"))),
        ("seek", false, Box::new(|fs| fs.seek(ino, frit_fs::Seek::Data, 0).map(drop))),
        ("sync file", false, Box::new(|fs| fs.sync_file(ino, false))),
        ("sync", false, Box::new(FileSystem::sync)),
        (
            "other file",
            false,
            Box::new(|fs| {
                let other = fs.create(&ME, Ino::ROOT, b"c", NewInode::file(0o644))?.ino;
                fs.write(other, 0, &[1; 5000])?;
                fs.unlink(&ME, Ino::ROOT, b"c")
            }),
        ),
    ];
    for (name, ends, run) in operations {
        let lease = p.lease(ino, 0, 0).unwrap();
        assert!(client.is_valid(&lease), "{name}");
        assert_eq!(lease.size, fs.attr(ino).unwrap().size, "{name}");
        run(fs).unwrap();
        assert_eq!(!client.is_valid(&lease), ends, "{name}");
    }
    let lease = p.lease(ino, 0, 0).unwrap();
    fs.unpin(ino).unwrap();
    assert!(!client.is_valid(&lease), "the last close");
    assert!(matches!(p.lease(ino, 0, 0), Err(Error::Stale)), "a file that nobody has open");
}

#[test]
fn direct_writes_change_times_and_the_count_of_changes() {
    let p = Place::new();
    let ino = p.file("a", 10_000);
    let client = p.client();
    let old = Some(SetTime::To(Time::new(1000, 0)));
    let set = AttrChanges { mtime: old, ..AttrChanges::default() };
    p.fs.set_attr(&ME, ino, &set).unwrap();
    let contents = Arc::clone(&p.fs).open_contents(&ME, ino, false).unwrap();
    let before = contents.version().unwrap();
    let lease = p.lease(ino, 0, 0).unwrap();
    assert_eq!(p.fs.attr(ino).unwrap().mtime, Time::new(1000, 0));
    client.write(&lease, 100, b"direct");
    assert!(p.fs.attr(ino).unwrap().mtime > Time::new(1000, 0));
    assert!(client.is_valid(&lease));
    assert_ne!(contents.version().unwrap(), before);
    let mut read = [0; 6];
    p.fs.read(ino, 100, &mut read).unwrap();
    assert_eq!(&read, b"direct");
    p.fs.set_attr(&ME, ino, &set).unwrap();
    assert_eq!(p.fs.attr(ino).unwrap().mtime, Time::new(1000, 0), "noted once");
    // A time of the future is none of a write.
    let lease = p.lease(ino, 0, 0).unwrap();
    let line = offset_of!(Segment, files) + lease.file as usize * size_of::<FileState>();
    client.set(line + offset_of!(FileState, written_at), i64::MAX as u64);
    assert!(p.fs.attr(ino).unwrap().mtime < Time::new(i64::MAX / 2_000_000_000, 0));
    p.fs.sync_file(ino, false).unwrap();
    assert!(p.fs.attr(ino).unwrap().mtime < Time::new(i64::MAX / 2_000_000_000, 0));
}

#[test]
fn a_write_into_a_hole_fills_no_more_than_the_file_is_in_order() {
    let p = Place::new();
    let ino = p.file("a", 0);
    let size = AttrChanges { size: Some(16 << 20), ..AttrChanges::default() };
    p.fs.set_attr(&ME, ino, &size).unwrap();
    let written = || {
        let lease = p.lease(ino, 0, 0).unwrap();
        lease.extents[..lease.count as usize].iter().map(|extent| extent.len / BLOCK).sum::<u64>()
    };
    for i in 0..10 {
        p.lease(ino, (i << 20) + 100, (i << 20) + 200).unwrap();
        assert_eq!(written(), i + 1);
    }
    // In order, each request fills as much as is there and a block more, up to 1 MiB: 1, 2, 4 … 256, 257, 256 blocks.
    let mut at = 12 << 20;
    let mut requests = 0;
    while at < 16 << 20 {
        let lease = p.lease(ino, at, at + BLOCK).unwrap();
        let extent = lease.extents[..lease.count as usize].iter().find(|extent| extent.end() > at).unwrap();
        assert!(extent.at <= at);
        (at, requests) = (extent.end(), requests + 1);
    }
    assert_eq!((written(), requests), (10 + 1024, 11));
    // Blocks that are allocated cost no more.
    p.fs.allocate(ino, Allocate::Extend, 16 << 20, 2 << 20).unwrap();
    let lease = p.lease(ino, (17 << 20) + 5, (17 << 20) + 6).unwrap();
    assert!(piece(&lease, 17 << 20, 1 << 20).is_some());
    assert_eq!(written(), 10 + 1024 + 256);
}

#[test]
fn blocks_are_not_freed_under_an_access() {
    let p = Place::new();
    let ino = p.file("a", 100_000);
    let client = p.client();
    let lease = p.lease(ino, 0, 0).unwrap();
    client.announce(&lease);
    let truncate = AttrChanges { size: Some(10), ..AttrChanges::default() };
    assert!(matches!(p.fs.set_attr(&ME, ino, &truncate), Err(Error::Busy)));
    assert!(!client.is_valid(&lease));
    assert!(matches!(p.fs.allocate(ino, Allocate::Punch, 0, 50_000), Err(Error::Busy)));
    assert!(p.lease(ino, 0, 0).is_err(), "no new lease before the access ends");
    // What moves no block works.
    p.fs.write(ino, 0, b"through the mount").unwrap();
    let mut read = [0; 17];
    p.fs.read(ino, 0, &mut read).unwrap();
    assert_eq!(&read, b"through the mount");
    let gathered = p.fs.gather(ino).unwrap();
    assert_eq!(gathered.before, gathered.after);
    client.finish();
    p.fs.set_attr(&ME, ino, &truncate).unwrap();
    // A process that has ended holds nothing.
    let lease = p.lease(ino, 0, 0).unwrap();
    client.announce(&lease);
    let mut ended = std::process::Command::new("true").spawn().unwrap();
    ended.wait().unwrap();
    client.set(offset_of!(Segment, slots) + offset_of!(Slot, owner), Slot::owner_of(1, ended.id()));
    p.fs.set_attr(&ME, ino, &AttrChanges { size: Some(0), ..AttrChanges::default() }).unwrap();
}

#[test]
fn an_open_ends_what_a_killed_mount_left() {
    let p = Place::new();
    let ino = p.file("a", 100_000);
    let client = p.client();
    let lease = p.lease(ino, 0, 0).unwrap();
    let (image, segment) = (p.image.clone(), PathBuf::from(format!("{}.direct", p.image.display())));
    // The mount is killed: nothing of it is dropped.
    let open = || Fs::open(erased(Mapped::file(&image).unwrap()), FsOptions::default());
    std::mem::forget(Arc::clone(&p.fs));
    client.announce(&lease);
    let error = open().unwrap_err().to_string();
    assert!(error.contains(&format!("process {} still accesses it directly", std::process::id())), "{error}");
    assert!(!client.is_valid(&lease) && segment.exists());
    client.finish();
    open().unwrap();
    assert!(!segment.exists());
    // Another file is not removed.
    std::fs::write(&segment, "text").unwrap();
    assert!(open().unwrap_err().to_string().contains("not the file of a mount of this image"));
    assert!(segment.exists());
}

#[test]
fn any_words_in_the_shared_memory_are_survived() {
    let p = Place::new();
    let ino = p.file("a", 100_000);
    let client = p.client();
    let mut rng = SmallRng::seed_from_u64(7);
    for _ in 0..300 {
        let lease = p.lease(ino, 0, 0);
        for _ in 0..20 {
            // The first pages: head, slots and files in use. A process that exists is none of those.
            let at = rng.random_range(0..size_of::<Segment>() / 8) * 8;
            client.set(at, rng.next_u64() & !0x7fff_ffff | 0x7fff_fff0);
        }
        let _ = lease;
        let mut read = [0; 100];
        p.fs.read(ino, 50_000, &mut read).unwrap();
        assert_eq!(read, [1; 100]);
        p.fs.attr(ino).unwrap();
    }
    p.fs.set_attr(&ME, ino, &AttrChanges { size: Some(10), ..AttrChanges::default() }).unwrap();
}

/// Direct writes between operations of the library, against bytes in memory.
#[test]
fn contents_are_those_of_a_model() {
    for seed in 0..6 {
        let p = Place::new();
        let (ino, client) = (p.file("a", 0), p.client());
        let mut rng = SmallRng::seed_from_u64(seed);
        let mut model: Vec<u8> = Vec::new();
        let mut grown = 0;
        for step in 0..600_u32 {
            let tag = step as u8 | 1;
            let at = rng.random_range(0..300_000_u64);
            let len = rng.random_range(1..20_000_usize);
            let end = at as usize + len;
            match rng.random_range(0..10) {
                0..3 => {
                    p.fs.write(ino, at, &vec![tag; len]).unwrap();
                    model.resize(model.len().max(end), 0);
                    model[at as usize..end].fill(tag);
                }
                3 => {
                    let size = AttrChanges { size: Some(at), ..AttrChanges::default() };
                    p.fs.set_attr(&ME, ino, &size).unwrap();
                    model.resize(at as usize, 0);
                }
                4 => {
                    p.fs.allocate(ino, Allocate::Punch, at, len as u64).unwrap();
                    let (from, to) = (model.len().min(at as usize), model.len().min(end));
                    model[from..to].fill(0);
                }
                5 => {
                    p.fs.allocate(ino, Allocate::Extend, at, len as u64).unwrap();
                    model.resize(model.len().max(end), 0);
                }
                6 => drop(p.fs.gather(ino).unwrap()),
                7 => grown += u32::from(extend_directly(&p, &client, ino, &mut model, &mut rng)),
                _ => {
                    let to = if rng.random() { end.min(model.len()) as u64 } else { 0 };
                    let Ok(lease) = p.lease(ino, at.min(model.len() as u64), to) else { panic!() };
                    assert_eq!(lease.size, model.len() as u64);
                    check_extents(&client, &lease, &model);
                    if at < to {
                        for block in at / BLOCK..to.div_ceil(BLOCK) {
                            assert!(piece(&lease, block * BLOCK, 1).is_some(), "block {block} is filled");
                        }
                    }
                    if let Some(extent) = lease.extents[..lease.count as usize].first().copied() {
                        let from = extent.at + rng.random_range(0..extent.len);
                        let to = (from + 5000).min(extent.end()).min(model.len() as u64);
                        if from < to {
                            client.write(&lease, from, &vec![tag; (to - from) as usize]);
                            model[from as usize..to as usize].fill(tag);
                        }
                    }
                }
            }
            if step % 10 == 0 {
                let mut read = vec![0; model.len() + 1];
                assert_eq!(p.fs.read(ino, 0, &mut read).unwrap(), model.len());
                assert_eq!(read[..model.len()], model, "seed {seed}, step {step}");
            }
        }
        assert!(grown > 10, "{grown}");
        let Place { _dir, image, fs } = p;
        fs.unpin(ino).unwrap();
        Arc::into_inner(fs).unwrap().close().unwrap();
        assert!(frit_fs::check(&Mapped::file(&image).unwrap()).unwrap().is_clean());
    }
}

/// Extends a file and the model, if there is append space.
fn extend_directly(p: &Place, client: &Client, ino: Ino, model: &mut Vec<u8>, rng: &mut SmallRng) -> bool {
    let size = model.len() as u64;
    let from = size + u64::from(rng.random_range(0..3_u32)) * 1777;
    let len = rng.random_range(2..20_000_u64);
    let lease = p.lease(ino, size, from + len).unwrap();
    if lease.size_max == 0 {
        return false;
    }
    assert_eq!(lease.size, size);
    check_extents(client, &lease, model);
    let data = pattern(rng.next_u64() % 256, len as usize);
    let (first, second) = data.split_at(len as usize / 2);
    for (at, part) in [(from, first), (from + first.len() as u64, second)] {
        assert!(client.extend(&lease, at, part));
        model.resize(at as usize, 0);
        model.extend(part);
    }
    assert_eq!(p.fs.attr(ino).unwrap().size, model.len() as u64);
    true
}

/// The bytes of a lease, with zeros between extents, are those of the model.
fn check_extents(client: &Client, lease: &Lease, model: &[u8]) {
    assert!(lease.count as usize <= EXTENTS);
    let mut at = lease.from;
    for extent in &lease.extents[..lease.count as usize] {
        assert!(extent.at >= at);
        let until = model.len().min(extent.at as usize);
        assert!(model[until.min(at as usize)..until].iter().all(|byte| *byte == 0));
        let len = extent.len.min((model.len() as u64).saturating_sub(extent.at)) as usize;
        let mut bytes = vec![0; len];
        client.image.read_exact_at(&mut bytes, extent.medium).unwrap();
        let from = model.len().min(extent.at as usize);
        assert_eq!(bytes, model[from..from + len]);
        at = extent.end();
    }
    let end = (lease.to as usize).min(model.len());
    assert!(model[end.min(at as usize)..end].iter().all(|byte| *byte == 0));
}

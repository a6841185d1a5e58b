//! Tests of a file system on a nameless-write device: operations compared with a model, moves of blocks
//! and crashes between any two of them.

mod device;
mod limits;
mod promises;

use device::{BLOCK, FakeDevice};
use frit_core::planted::{self, Find, Found, PlantedBug};
use frit_fs::planted::NamelessBug;
use frit_fs::{
    Allocate, AttrChanges, Caller, Clock, Error, FileSystem, FormatOptions, Fs, FsOptions, Ino, NewInode,
    PlacedContents, RenameMode, VirtualBlocks,
};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};
use strum::IntoEnumIterator;

const ROOT: &Caller = &Caller::ROOT;
/// Capacity of the device, in blocks.
const CAPACITY: u64 = 256;
/// Number of virtual blocks.
const VIRTUAL: u32 = 400;
/// Number of names.
const NAMES: u8 = 5;
/// Largest file of the model.
const FILE_MAX: usize = 60 * BLOCK;

type Nameless = Fs<Arc<VirtualBlocks>>;

fn clock() -> Clock {
    Clock::counted(1_000_000_000_000)
}

fn format(device: &FakeDevice) -> Nameless {
    let placed = PlacedContents::load(Box::new(device.clone())).unwrap();
    let options = FormatOptions {
        placed: Some(Arc::clone(&placed)),
        clock: clock(),
        inodes: Some(32),
        ..FormatOptions::default()
    };
    Fs::format(placed.medium(), options).unwrap()
}

fn open(device: &FakeDevice) -> Nameless {
    let placed = PlacedContents::load(Box::new(device.clone())).unwrap();
    let report = frit_fs::check(&placed.medium()).unwrap();
    assert!(report.is_clean(), "{report:#?}");
    let options = FsOptions { placed: Some(Arc::clone(&placed)), clock: clock(), ..FsOptions::default() };
    Fs::open(placed.medium(), options).unwrap()
}

fn name(number: u8) -> Vec<u8> {
    format!("file-{number}").into_bytes()
}

fn contents(fs: &Nameless, ino: Ino) -> frit_fs::Result<Vec<u8>> {
    let mut bytes = vec![0xEE; fs.attr(ino)?.size as usize];
    assert_eq!(fs.read(ino, 0, &mut bytes)?, bytes.len());
    Ok(bytes)
}

/// The files of a model by name.
type Files = BTreeMap<u8, Vec<u8>>;

/// One step of a run.
#[derive(Clone, Debug)]
enum Step {
    Write { file: u8, at: usize, len: usize, byte: u8 },
    Append { file: u8, len: usize, byte: u8 },
    Resize { file: u8, size: usize },
    Punch { file: u8, at: usize, len: usize, zero: bool },
    Remove { file: u8 },
    Rename { from: u8, to: u8 },
    Read { file: u8 },
    Migrate { count: usize },
    SyncFile { file: u8 },
    Sync,
    FailedSync,
    Crash,
    Reopen,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let file = || 0..NAMES;
    let len = || prop_oneof![1..300usize, 1..5 * BLOCK, Just(BLOCK), Just(8 * BLOCK), BLOCK..FILE_MAX / 2];
    let at = || prop_oneof![0..FILE_MAX, (0..FILE_MAX / BLOCK).prop_map(|block| block * BLOCK)];
    let step = prop_oneof![
        8 => (file(), at(), len(), 1..255u8).prop_map(|(file, at, len, byte)| Step::Write { file, at, len, byte }),
        2 => (file(), len(), 1..255u8).prop_map(|(file, len, byte)| Step::Append { file, len, byte }),
        2 => (file(), at()).prop_map(|(file, size)| Step::Resize { file, size }),
        2 => (file(), at(), len(), any::<bool>())
            .prop_map(|(file, at, len, zero)| Step::Punch { file, at, len, zero }),
        1 => file().prop_map(|file| Step::Remove { file }),
        1 => (file(), file()).prop_map(|(from, to)| Step::Rename { from, to }),
        2 => file().prop_map(|file| Step::Read { file }),
        4 => (1..80usize).prop_map(|count| Step::Migrate { count }),
        2 => file().prop_map(|file| Step::SyncFile { file }),
        2 => Just(Step::Sync),
        1 => Just(Step::FailedSync),
        2 => Just(Step::Crash),
        1 => Just(Step::Reopen),
    ];
    proptest::collection::vec(step, 1..60)
}

/// A file system beside its model.
struct Run {
    device: FakeDevice,
    fs: Option<Nameless>,
    files: Files,
    /// The states that a crash may leave: that of the last sync, and all later ones.
    durable: Vec<Files>,
}

impl Run {
    fn new(seed: u64) -> Self {
        let device = FakeDevice::new(CAPACITY, VIRTUAL, seed);
        let fs = Some(format(&device));
        Self { device, fs, files: Files::new(), durable: vec![Files::new()] }
    }

    fn fs(&self) -> &Nameless {
        self.fs.as_ref().unwrap()
    }

    fn find(&self, file: u8) -> Option<Ino> {
        self.fs().lookup(ROOT, Ino::ROOT, &name(file)).ok().map(|attr| attr.ino)
    }

    fn find_or_create(&mut self, file: u8) -> Ino {
        self.files.entry(file).or_default();
        self.find(file).unwrap_or_else(|| {
            self.fs().create(ROOT, Ino::ROOT, &name(file), NewInode::file(0o644)).unwrap().ino
        })
    }

    fn write(&mut self, file: u8, at: usize, data: &[u8]) {
        let ino = self.find_or_create(file);
        let mut done = 0;
        while done < data.len() {
            match self.fs().write(ino, (at + done) as u64, &data[done..]) {
                Ok(n) => {
                    let bytes = self.files.get_mut(&file).unwrap();
                    let end = at + done + n;
                    bytes.resize(bytes.len().max(end), 0);
                    bytes[at + done..end].copy_from_slice(&data[done..done + n]);
                    done += n;
                    self.durable.push(self.files.clone());
                }
                Err(Error::NoSpace) => {
                    assert!(self.is_full(), "{} blocks are stored", self.stored_blocks());
                    return;
                }
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Number of blocks that the files of the model take without holes.
    fn stored_blocks(&self) -> usize {
        self.device.stored()
    }

    /// Returns `true` if a write may find no space: on the device, or in the medium, where extents of
    /// fragmented files take space.
    fn is_full(&self) -> bool {
        let free = self.fs().usage().unwrap().blocks_free;
        !(8..=CAPACITY / 8).contains(&free)
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Write { file, at, len, byte } => {
                let data: Vec<u8> =
                    (0..len.min(FILE_MAX)).map(|i| byte.wrapping_add((i / 1000) as u8)).collect();
                self.write(file, at, &data);
            }
            Step::Append { file, len, byte } => {
                let size = self.files.get(&file).map_or(0, Vec::len);
                if size + len <= FILE_MAX {
                    self.write(file, size, &vec![byte; len]);
                }
            }
            Step::Resize { .. } | Step::Punch { .. } => self.change_size(step),
            Step::Remove { .. } | Step::Rename { .. } => self.change_names(step),
            Step::Read { file } => self.compare_file(file),
            Step::Migrate { count } => self.device.migrate(count),
            Step::SyncFile { file } => {
                let Some(ino) = self.find(file) else { return };
                self.fs().sync_file(ino, false).unwrap();
                self.durable.clear();
            }
            Step::Sync => {
                self.fs().sync().unwrap();
                self.durable.clear();
            }
            Step::FailedSync => {
                self.device.fail_next_flush();
                assert!(self.fs().sync().is_err());
            }
            Step::Crash => self.crash(),
            Step::Reopen => {
                self.fs.take().unwrap().close().unwrap();
                self.device.crash();
                self.fs = Some(open(&self.device));
                self.compare();
                self.durable.clear();
            }
        }
        self.durable.push(self.files.clone());
    }

    fn change_size(&mut self, step: &Step) {
        match *step {
            Step::Resize { file, size } => {
                let Some(ino) = self.find(file) else { return };
                let changes = AttrChanges { size: Some(size as u64), ..AttrChanges::default() };
                match self.fs().set_attr(ROOT, ino, &changes) {
                    Ok(_) => self.files.get_mut(&file).unwrap().resize(size, 0),
                    Err(Error::NoSpace) => {}
                    Err(error) => panic!("{error}"),
                }
            }
            Step::Punch { file, at, len, zero } => {
                let Some(ino) = self.find(file) else { return };
                let mode = if zero { Allocate::Zero } else { Allocate::Punch };
                match self.fs().allocate(ino, mode, at as u64, len as u64) {
                    Ok(()) => {
                        let bytes = self.files.get_mut(&file).unwrap();
                        if zero {
                            bytes.resize(bytes.len().max(at + len), 0);
                        }
                        let end = bytes.len().min(at + len);
                        bytes[at.min(end)..end].fill(0);
                    }
                    Err(Error::NoSpace) => {}
                    Err(error) => panic!("{error}"),
                }
            }
            _ => {}
        }
    }

    fn change_names(&mut self, step: &Step) {
        match *step {
            Step::Remove { file } if self.files.remove(&file).is_some() => {
                self.fs().unlink(ROOT, Ino::ROOT, &name(file)).unwrap();
            }
            Step::Rename { from, to } if from != to && self.files.contains_key(&from) => {
                let (old, new) = (name(from), name(to));
                self.fs().rename(ROOT, (Ino::ROOT, &old), (Ino::ROOT, &new), RenameMode::Replace).unwrap();
                let bytes = self.files.remove(&from).unwrap();
                self.files.insert(to, bytes);
            }
            _ => {}
        }
    }

    fn compare_file(&self, file: u8) {
        let found = self.find(file).map(|ino| contents(self.fs(), ino).unwrap());
        assert!(found.as_ref() == self.files.get(&file), "file {file} differs");
    }

    fn compare(&self) {
        (0..NAMES).for_each(|file| self.compare_file(file));
    }

    fn crash(&mut self) {
        self.fs = None;
        self.device.crash();
        self.fs = Some(open(&self.device));
        let found: Files = (0..NAMES)
            .filter_map(|file| self.find(file).map(|ino| (file, contents(self.fs(), ino).unwrap())))
            .collect();
        assert!(self.durable.contains(&found), "a crash left a state that never was");
        self.files = found;
        self.durable.clear();
    }

    /// Executes steps, and compares everything at their end.
    fn execute(&mut self, steps: &[Step]) {
        steps.iter().for_each(|step| self.step(step));
        self.compare();
        self.fs().sync().unwrap();
        self.compare();
        assert_eq!(self.device.strays(), 0, "operations on blocks that are not at their address");
        let used = self.fs().usage().unwrap();
        assert_eq!(self.device.stored() as u64, used.blocks - used.blocks_free, "blocks leak on the device");
        self.crash();
        assert_eq!(self.device.strays(), 0, "operations on blocks that are not at their address");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn operations_match_a_model(steps in steps(), seed in any::<u64>()) {
        Run::new(seed).execute(&steps);
    }
}

/// Runs the steps of a seed, which are the same in each run.
fn seeded(seed: u64) -> bool {
    let mut runner = proptest::test_runner::TestRunner::new_with_rng(
        ProptestConfig::default(),
        proptest::test_runner::TestRng::from_seed(
            proptest::test_runner::RngAlgorithm::ChaCha,
            &StdRng::seed_from_u64(seed).random::<[u8; 32]>(),
        ),
    );
    let steps = steps().new_tree(&mut runner).unwrap().current();
    catch_unwind(AssertUnwindSafe(|| Run::new(seed).execute(&steps))).is_err()
}

#[test]
fn planted_bugs_are_found() {
    planted::silence_panics();
    let found = Found::of(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/all/nameless/planted.csv"));
    for bug in NamelessBug::iter() {
        match bug {
            // A sync has to begin at one moment of another thread, which takes longer on a busy machine.
            NamelessBug::FreeBlocksForgotten => {
                let until = Instant::now() + Duration::from_secs(900);
                let mut seeds = (0..).take_while(|_| Instant::now() < until);
                let finds = seeds.any(|seed| is_inconsistent(seed, Some(bug.id())));
                assert!(finds, "{} is not found", bug.name());
                // The number of the seed depends on the threads.
                let case = "threads beside a sync".to_owned();
                found.note(bug.name(), Some(Find { case, found_by: "crash".to_owned(), searched: 1 }));
            }
            _ => found.search(bug, (0..400).map(|seed| (format!("seed {seed}"), seed)), |seed| {
                seeded(*seed).then_some("model")
            }),
        }
    }
    found.finish();
}

/// Number of threads that change a file system.
const THREADS: u8 = 3;

fn target(thread: u8, number: u32) -> Vec<u8> {
    let byte = b'a' + (number % 20) as u8 + thread;
    vec![byte; 2000 + number as usize % 1000]
}

/// Changes a file system in several threads while another one syncs. Returns `true` if a crash leaves it
/// inconsistent.
fn is_inconsistent(seed: u64, bug: Option<planted::BugId>) -> bool {
    let device = FakeDevice::new(CAPACITY, VIRTUAL, seed);
    let opened = format(&device);
    let (fs, device) = (&opened, &device);
    let changes = move |thread: u8| {
        for number in 0..60 {
            let (new, old) = (format!("{thread}-{number}"), format!("{thread}-{}", number - 4));
            let target = target(thread, number as u32);
            let link = NewInode::symlink(&target);
            let _ = fs.create(ROOT, Ino::ROOT, new.as_bytes(), link).unwrap();
            let ino =
                fs.create(ROOT, Ino::ROOT, format!("{new}f").as_bytes(), NewInode::file(0o644)).unwrap().ino;
            for block in [0, 2, 1, 4] {
                assert_eq!(fs.write(ino, block * BLOCK as u64, &target).unwrap(), target.len());
            }
            if number >= 4 {
                fs.unlink(ROOT, Ino::ROOT, old.as_bytes()).unwrap();
                fs.unlink(ROOT, Ino::ROOT, format!("{old}f").as_bytes()).unwrap();
            }
            device.migrate(3);
        }
    };
    std::thread::scope(|scope| {
        let change = |thread| {
            scope.spawn(move || {
                planted::set(bug);
                changes(thread);
                planted::set(None);
            })
        };
        let threads: Vec<_> = (0..THREADS).map(change).collect();
        planted::set(bug);
        // Also on a busy machine, where the threads may begin late.
        while !threads.iter().all(std::thread::ScopedJoinHandle::is_finished) {
            fs.sync().unwrap();
        }
        planted::set(None);
    });
    drop(opened);
    device.crash();
    catch_unwind(AssertUnwindSafe(|| {
        let fs = open(device);
        for thread in 0..THREADS {
            for number in 0..60 {
                let name = format!("{thread}-{number}");
                let expected = target(thread, number);
                if let Ok(attr) = fs.lookup(ROOT, Ino::ROOT, name.as_bytes()) {
                    assert_eq!(fs.read_link(attr.ino).unwrap(), expected);
                }
                if let Ok(attr) = fs.lookup(ROOT, Ino::ROOT, format!("{name}f").as_bytes()) {
                    let bytes = contents(&fs, attr.ino).unwrap();
                    assert!(bytes.iter().all(|byte| *byte == 0 || *byte == expected[0]));
                }
            }
        }
        assert_eq!(device.strays(), 0);
    }))
    .is_err()
}

#[test]
fn syncs_beside_changes_are_consistent() {
    assert!(!(0..20).any(|seed| is_inconsistent(seed, None)));
}

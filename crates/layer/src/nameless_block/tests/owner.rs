//! An owner of many blocks, whose index is in virtual blocks.

use super::*;
use frit_core::{Result, Tok};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Owners of the blocks: inodes with several blocks each.
const OWNERS: u32 = 3;
/// Virtual blocks of the devices of these tests.
const VIRTUAL: u32 = 9;

/// A block as its owner knows it: perhaps by an old address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Known {
    block: OwnedBlock,
    stamp: u32,
}

/// Metadata of the owner.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
struct Metadata {
    /// Blocks of contents by number.
    files: BTreeMap<u32, Known>,
    /// Stamps of the virtual blocks; 0 for zeros.
    table: [u32; VIRTUAL as usize],
}

#[derive(Clone, Copy, Debug)]
enum Action {
    /// Replaces `blocks` blocks of contents from `first` on, in request queues.
    Write { first: u32, blocks: u32 },
    /// Removes blocks of contents.
    Remove { first: u32, blocks: u32 },
    /// Writes virtual blocks from `first` on.
    Virtual { first: u32, blocks: u32 },
    /// Writes part of a virtual block as a client of the block device does.
    Sectors { at: u64, sectors: u64 },
    /// Discards virtual blocks.
    Discard { first: u32, blocks: u32 },
    /// Makes everything durable.
    Flush,
    /// Takes some of the migrations.
    Migrations(usize),
    /// Collects garbage.
    Step,
    /// Shuts the device down, and opens it.
    Halt,
    /// Crashes, and recovers.
    Crash,
}

fn action() -> impl Strategy<Value = Action> {
    let range = || (0..400u32, 1..24u32);
    let of_table = || (0..VIRTUAL, 1..4u32);
    prop_oneof![
        12 => range().prop_map(|(first, blocks)| Action::Write { first, blocks }),
        1 => range().prop_map(|(first, blocks)| Action::Remove { first, blocks }),
        4 => of_table().prop_map(|(first, blocks)| Action::Virtual { first, blocks }),
        2 => (0..u64::from(VIRTUAL) * 2, 1..5u64).prop_map(|(at, sectors)| Action::Sectors { at, sectors }),
        1 => of_table().prop_map(|(first, blocks)| Action::Discard { first, blocks }),
        2 => Just(Action::Flush),
        2 => (0..40usize).prop_map(Action::Migrations),
        2 => Just(Action::Step),
        1 => Just(Action::Halt),
        1 => Just(Action::Crash),
    ]
}

/// The owner: its metadata in memory, and as of the last flush.
struct Owner {
    layer: Layer,
    faults: NandFaults,
    now: Metadata,
    durable: Metadata,
    /// Blocks that only the durable metadata refers to.
    waiting: Vec<Known>,
    stamp: u32,
    numbers: u32,
    migrations: usize,
}

impl Owner {
    fn new(config: &NamelessBlockConfig, faults: NandFaults) -> Owner {
        let mut layer = open(config, MemoryStore::new(4 << 20), faults);
        assert_eq!(device(&mut layer).virtual_blocks(), VIRTUAL);
        let numbers = device(&mut layer).space().capacity;
        let (now, durable) = (Metadata::default(), Metadata::default());
        Owner { layer, faults, now, durable, waiting: Vec::new(), stamp: 0, numbers, migrations: 0 }
    }

    fn block_bytes(&mut self) -> usize {
        device(&mut self.layer).block_bytes() as usize
    }

    fn next_stamp(&mut self) -> u32 {
        self.stamp += 1;
        self.stamp
    }

    /// Notes that the present metadata no longer refers to a block.
    fn replace(&mut self, number: u32, known: Option<Known>) {
        let old = match known {
            Some(known) => self.now.files.insert(number, known),
            None => self.now.files.remove(&number),
        };
        let Some(old) = old else { return };
        let version = old.block.at.version;
        let durable = self.durable.files.get(&number).is_some_and(|d| d.block.at.version == version);
        if durable {
            self.waiting.push(old);
        } else {
            device(&mut self.layer).free(&mut Sink::untimed(), old.block, Tok::DONE);
        }
    }

    fn write(&mut self, numbers: &[u32]) -> Result<()> {
        let queue = device(&mut self.layer).queue_blocks() as usize;
        for numbers in numbers.chunks(queue) {
            let space = device(&mut self.layer).space();
            if self.waiting.len() + numbers.len() > space.waiting as usize {
                self.flush()?;
            }
            let owners: Vec<u32> = numbers.iter().map(|n| n % OWNERS).collect();
            let stamps: Vec<u32> = numbers.iter().map(|_| self.next_stamp()).collect();
            let bytes = self.block_bytes();
            let data: Vec<u8> = stamps.iter().flat_map(|&stamp| contents(stamp, bytes)).collect();
            let mut placed = Vec::new();
            device(&mut self.layer).nameless_write(
                &mut Sink::untimed(),
                &owners,
                WriteData::Bytes(&data),
                Cause::Host,
                Tok::DONE,
                &mut placed,
            )?;
            for (i, at) in (0..).zip(&placed) {
                assert_eq!((at.page, at.version), (placed[0].page + i, placed[0].version + i), "{placed:?}");
            }
            assert_eq!(placed[0].page as usize / queue, placed[placed.len() - 1].page as usize / queue);
            for (((&number, &owner), &stamp), &at) in numbers.iter().zip(&owners).zip(&stamps).zip(&placed) {
                self.replace(number, Some(Known { block: OwnedBlock { owner, at }, stamp }));
            }
        }
        Ok(())
    }

    fn virtual_write(&mut self, first: u32, blocks: u32) -> Result<()> {
        let queue = device(&mut self.layer).queue_blocks();
        let numbers: Vec<u32> = (first..(first + blocks.min(queue)).min(VIRTUAL)).collect();
        let stamps: Vec<u32> = numbers.iter().map(|_| self.next_stamp()).collect();
        let bytes = self.block_bytes();
        let data: Vec<u8> = stamps.iter().flat_map(|&stamp| contents(stamp, bytes)).collect();
        device(&mut self.layer).virtual_write(
            &mut Sink::untimed(),
            &numbers,
            WriteData::Bytes(&data),
            Cause::Meta,
            Tok::DONE,
        )?;
        for (number, stamp) in numbers.into_iter().zip(stamps) {
            self.now.table[number as usize] = stamp;
        }
        Ok(())
    }

    /// Writes sectors of the block device with the stamps that they have, apart from whole blocks.
    fn write_sectors(&mut self, at: u64, sectors: u64) -> Result<()> {
        let per_block = self.block_bytes() as u64 / 512;
        let end = u64::from(VIRTUAL) * per_block;
        let (at, to) = (at.min(end - 1), (at.min(end - 1) + sectors).min(end));
        let stamp = |sector: u64| self.now.table[(sector / per_block) as usize];
        let data: Vec<u8> = (at..to).flat_map(|sector| contents(stamp(sector), 512)).collect();
        self.layer.write(&mut Sink::untimed(), Sector(at), WriteData::Bytes(&data), Hints::NONE)
    }

    fn discard(&mut self, first: u32, blocks: u32) -> Result<()> {
        let per_block = self.block_bytes() as u64 / 512;
        let to = (first + blocks).min(VIRTUAL);
        let (at, sectors) = (u64::from(first) * per_block, u64::from(to - first) * per_block);
        self.layer.discard(&mut Sink::untimed(), Sector(at), sectors)?;
        self.now.table[first as usize..to as usize].fill(0);
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        let sink = &mut Sink::untimed();
        device(&mut self.layer).flush(sink)?;
        self.durable = self.now.clone();
        for known in std::mem::take(&mut self.waiting) {
            device(&mut self.layer).free(sink, known.block, Tok::DONE);
        }
        Ok(())
    }

    /// Takes the `n` oldest migrations, or fewer.
    fn take_migrations(&mut self, n: usize) {
        let device = device(&mut self.layer);
        let before = device.pending_migrations();
        let mut all = Vec::new();
        device.migrations(n, &mut all);
        assert_eq!(all.len(), n.min(before));
        assert_eq!(device.migration(), if n > 0 { all.first().copied() } else { device.migration() });
        device.acknowledge(n);
        assert_eq!(device.pending_migrations(), before - all.len());
        self.migrations += all.len();
        for m in all {
            let to = m.to.expect("no block is lost");
            let old = |known: &&mut Known| {
                let b = known.block;
                (b.owner, b.at.page, b.at.version) == (m.owner, m.from, to.version)
            };
            // A block that was freed is not found.
            let found = self.now.files.values_mut().find(old);
            if let Some(known) = found.or_else(|| self.waiting.iter_mut().find(old)) {
                known.block.at = to;
            }
        }
    }

    /// Reads every block, and compares it.
    fn compare(&mut self) {
        let (bytes, sink) = (self.block_bytes(), &mut Sink::untimed());
        let mut page = vec![0; bytes];
        for (number, known) in &self.now.files {
            let device = self.layer.nameless_device().unwrap();
            let into = ReadTarget::Bytes(&mut page);
            device.physical_read(sink, &[known.block], 0, into, Cause::Host).unwrap();
            assert!(page == contents(known.stamp, bytes), "block {number}");
            device.verify(sink, known.block, false).unwrap();
        }
        for (block, &stamp) in (0..).zip(&self.now.table) {
            let into = ReadTarget::Bytes(&mut page);
            device(&mut self.layer).virtual_read(sink, block, 0, into, Cause::Meta).unwrap();
            assert!(page == contents(stamp, bytes), "virtual block {block}: {page:?} {stamp}");
        }
        let stored = self.now.files.len() + self.waiting.len();
        audit(&self.layer, stored as u32);
    }

    /// Opens the device again, and claims the blocks of the durable metadata by the addresses in it.
    fn restart(mut self) -> Owner {
        let config = self.layer.config().clone();
        let mut layer = open(&config, store_of(&mut self.layer), self.faults);
        let sink = &mut Sink::untimed();
        let mut r = layer.recover(sink, CrashKind::Process).unwrap();
        assert_eq!(r.losses(), 0);
        self.now = self.durable.clone();
        self.waiting.clear();
        if device(&mut layer).awaits_claims() {
            refuses_changes(&mut layer);
            for known in self.now.files.values_mut() {
                match device(&mut layer).claim(known.block).unwrap() {
                    Claimed::At(at) => {
                        assert_eq!(at.version, known.block.at.version);
                        known.block.at = at;
                    }
                    Claimed::Lost(why) => panic!("{known:?}: {why}"),
                }
            }
            device(&mut layer).resume(sink, &mut r).unwrap();
        } else {
            assert!(self.now.files.is_empty());
        }
        // The addresses in the durable metadata stay as they are: they are good for ever.
        self.layer = layer;
        self
    }

    /// Applies an action. The error is that of a device that wears out.
    fn apply(mut self, action: Action) -> (Owner, Result<()>) {
        let end = matches!(action, Action::Halt | Action::Crash);
        match self.change(action) {
            Ok(()) if end => (self.restart(), Ok(())),
            changed => (self, changed),
        }
    }

    fn change(&mut self, action: Action) -> Result<()> {
        let numbers = |first: u32, blocks: u32, end: u32| -> Vec<u32> {
            (first % end..(first % end + blocks).min(end)).collect()
        };
        match action {
            Action::Write { first, blocks } => self.write(&numbers(first, blocks, self.numbers))?,
            Action::Remove { first, blocks } => {
                for number in numbers(first, blocks, self.numbers) {
                    self.replace(number, None);
                }
                if self.waiting.len() > device(&mut self.layer).space().waiting as usize {
                    self.flush()?;
                }
            }
            Action::Virtual { first, blocks } => self.virtual_write(first, blocks)?,
            Action::Sectors { at, sectors } => self.write_sectors(at, sectors)?,
            Action::Discard { first, blocks } => self.discard(first, blocks)?,
            Action::Flush => self.flush()?,
            Action::Migrations(n) => self.take_migrations(n),
            Action::Step => drop(self.layer.step(&mut Sink::untimed(), 4)?),
            Action::Halt => {
                self.flush()?;
                self.layer.halt(&mut Sink::untimed())?;
            }
            Action::Crash => {}
        }
        Ok(())
    }
}

/// Asserts that a device whose owner has not claimed its blocks changes nothing.
fn refuses_changes(layer: &mut Layer) {
    let (sink, bytes) = (&mut Sink::untimed(), device(layer).block_bytes() as usize);
    let page = vec![7; bytes];
    let mut placed = Vec::new();
    let data = || WriteData::Bytes(&page);
    let errors = [
        device(layer).nameless_write(sink, &[0], data(), Cause::Host, Tok::DONE, &mut placed).unwrap_err(),
        device(layer).virtual_write(sink, &[0], data(), Cause::Host, Tok::DONE).unwrap_err(),
        device(layer).flush(sink).unwrap_err(),
        layer.write(sink, Sector(0), WriteData::Bytes(&page), Hints::NONE).unwrap_err(),
    ];
    for e in errors {
        assert!(matches!(&e, Error::ReadOnly { why } if why.contains("claim")), "{e}");
    }
    assert_eq!(layer.refuses(), None);
    layer.flush(sink).unwrap();
    layer.halt(sink).unwrap();
}

fn run(config: &NamelessBlockConfig, faults: NandFaults, actions: &[Action]) {
    let mut owner = Owner::new(config, faults);
    for (n, action) in actions.iter().enumerate() {
        let (next, applied) = owner.apply(*action);
        owner = next;
        match applied {
            Ok(()) => {}
            // It is worn out, and keeps what was flushed.
            Err(Error::ReadOnly { .. }) if faults.program_fail > 0.0 => {
                owner.restart().compare();
                return;
            }
            Err(e) => panic!("action {n}: {e}"),
        }
        if n % 12 == 0 {
            owner.compare();
        }
    }
    owner.compare();
    owner.restart().compare();
}

fn static_wear(config: &NamelessBlockConfig) -> NamelessBlockConfig {
    let mut config = config.clone();
    config.device.wear_leveling = "static".into();
    config.device.wear_threshold = 2;
    config
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn an_owner_finds_its_blocks_and_its_metadata(actions in proptest::collection::vec(action(), 1..300)) {
        run(&config(1024, u64::from(VIRTUAL) << 10), NandFaults::default(), &actions);
        run(&static_wear(&config(1024, u64::from(VIRTUAL) << 10)), NandFaults::default(), &actions);
        run(&config(0, u64::from(VIRTUAL) << 12), NandFaults::default(), &actions);
    }

    #[test]
    fn emptied_blocks_can_wait_for_a_flush(actions in proptest::collection::vec(action(), 1..300)) {
        let mut config = config(2048, u64::from(VIRTUAL) << 11);
        config.device.erase_after_flush = true;
        run(&config, NandFaults::default(), &actions);
    }

    #[test]
    fn failing_programs_and_erases_lose_nothing(
        actions in proptest::collection::vec(action(), 1..300),
        seed in any::<u64>(),
    ) {
        let faults = NandFaults { program_fail: 0.001, erase_fail: 0.001, seed, ..NandFaults::default() };
        let mut config = config(1024, u64::from(VIRTUAL) << 10);
        config.device.over_provisioning = 1.0;
        run(&config, faults, &actions);
    }
}

/// Long overwriting of a full device, with crashes.
#[test]
fn a_full_device_collects_garbage_for_long() {
    let mut owners = [config(1024, u64::from(VIRTUAL) << 10), config(0, u64::from(VIRTUAL) << 12)].to_vec();
    owners.push(static_wear(&owners[0]));
    for config in owners {
        let mut owner = Owner::new(&config, NandFaults::default());
        let all: Vec<u32> = (0..owner.numbers).collect();
        owner.write(&all).unwrap();
        owner.flush().unwrap();
        assert_eq!(device(&mut owner.layer).space().stored, owner.numbers);
        let mut state = 1u64;
        let mut migrations = 0;
        for n in 0..6_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let first = (state >> 33) as u32;
            let action = match n % 97 {
                0..70 => Action::Write { first, blocks: 1 + first % 5 },
                70..80 => Action::Virtual { first: first % VIRTUAL, blocks: 1 + first % 3 },
                80..85 => Action::Migrations(first as usize % 200),
                85..95 => Action::Flush,
                95 => Action::Step,
                _ => Action::Crash,
            };
            let (next, applied) = owner.apply(action);
            owner = next;
            applied.unwrap();
            if n % 500 == 0 {
                owner.compare();
            }
            migrations = migrations.max(owner.migrations);
        }
        owner.compare();
        assert!(migrations > 500, "{migrations}");
    }
}

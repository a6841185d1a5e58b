//! Property tests of the solid-state cache against a shadow model: a hit must be the newest version, and
//! a miss is allowed for clean blocks only. All tables are audited.

use super::blocks::BlockUse;
use super::map::BlockMap;
use super::{Ssc, SscConfig, SscDurability, SscFlush};
use crate::hfsl::tests::nand_config;
use frit_core::{
    BlockId, BlockState, CacheDevice, CacheRead, Cause, CheckScope, CrashKind, Error, Ppn, ReadTarget,
    Recovery, Sink, Tok, WriteData, split_mix,
};
use frit_media::{AnyStore, Hardware, MemoryStore, Nand, NandFaults, NandGeometry, NoStore, PlaneOps, Store};
use proptest::prelude::*;
use std::collections::HashMap;
use std::ops::Range;

mod damage;
mod guarantees;
mod witness;

/// Two units of 14 blocks of 8 NAND pages of 2 KiB.
const GEOMETRY: NandGeometry = NandGeometry {
    channels: 2,
    chips_per_channel: 1,
    dies_per_chip: 1,
    planes_per_die: 1,
    blocks_per_plane: 14,
    pages_per_block: 8,
    page_bytes: 2048,
    spare_bytes: 256,
    plane_ops: PlaneOps::Single,
    program_pages: 1,
    record_copies: 1,
    slc: frit_media::SlcArea { blocks: 0, pages: 0, dynamic: false },
};

type Device = Ssc;

/// Blocks of the disk that the tests use, far apart from each other.
const BLOCKS: u32 = 150;

fn address(n: u32) -> u32 {
    n % 50 + (n / 50) * 1_000_003
}

fn config(mapping_unit: u64, durability: SscDurability) -> SscConfig {
    SscConfig { mapping_unit, durability, flush: SscFlush::Checkpoint, ..SscConfig::default() }
}

fn geometry(config: &SscConfig) -> NandGeometry {
    match config.mapping_unit {
        0 => GEOMETRY,
        unit => GEOMETRY.with_mapping_unit(unit as u32).unwrap(),
    }
}

fn on(config: SscConfig, store: impl Into<AnyStore>, faults: NandFaults) -> Ssc {
    on_nand(geometry(&config), config, store, faults)
}

fn on_nand(g: NandGeometry, config: SscConfig, store: impl Into<AnyStore>, faults: NandFaults) -> Ssc {
    let nand = Nand::new(nand_config(g, faults), store, &mut Hardware::new()).unwrap();
    Ssc::new(config, nand).unwrap()
}

fn device(config: SscConfig, faults: NandFaults) -> Device {
    on(config, MemoryStore::new(1 << 20), faults)
}

/// Opens the store of a device again, as after a crash of the process.
fn reopen(mut device: Device, faults: NandFaults, crash: CrashKind) -> (Device, Recovery) {
    let (g, config) = (*device.nand.geometry(), device.config().clone());
    let nand = device.nand_mut().devices_mut().next().unwrap();
    let store = std::mem::replace(nand.store_mut(), MemoryStore::new(0).into());
    let mut next = on_nand(g, config, store, faults);
    let recovered = next.recover(&mut Sink::untimed(), crash).unwrap();
    (next, recovered.recovery)
}

/// Contents of a version of a block.
fn contents(block: u32, version: u32, bytes: u32) -> Vec<u8> {
    let mut out = vec![(block ^ version) as u8; bytes as usize];
    out[..4].copy_from_slice(&block.to_le_bytes());
    out[4..8].copy_from_slice(&version.to_le_bytes());
    out
}

fn put(device: &mut Device, block: u32, versions: &[u32], dirty: bool) -> frit_core::Result<Tok> {
    let bytes = device.sizes.page_bytes;
    let blocks = (block..).zip(versions);
    let data: Vec<u8> = blocks.flat_map(|(b, &version)| contents(b, version, bytes)).collect();
    let (sink, data) = (&mut Sink::untimed(), WriteData::Bytes(&data));
    match dirty {
        true => device.write_dirty(sink, block, data, Cause::Host, Tok::DONE),
        false => device.write_clean(sink, block, data, Cause::Host, Tok::DONE),
    }
}

/// Version that a read returns; `None` for a miss.
fn get(device: &mut Device, block: u32) -> Option<u32> {
    let bytes = device.sizes.page_bytes;
    let mut out = vec![0xEE; bytes as usize];
    let read = device
        .read(&mut Sink::untimed(), block, 0, ReadTarget::Bytes(&mut out), Cause::Host, Tok::DONE)
        .unwrap();
    if read == CacheRead::Miss {
        return None;
    }
    let version = u32::from_le_bytes(out[4..8].try_into().unwrap());
    assert!(out == contents(block, version, bytes), "block {block} is mixed");
    Some(version)
}

impl Ssc {
    /// Asserts that all tables derived from the map agree with it.
    pub(crate) fn audit(&self) {
        let g = *self.nand.geometry();
        let (mut valid, mut dirty) = (vec![0u16; g.blocks() as usize], vec![0u16; g.blocks() as usize]);
        let (mut all_dirty, mut buffered) = (0, 0);
        self.map.each(&mut |block, entry| {
            if let Some(ppn) = entry.ppn() {
                assert_eq!(self.block_at(ppn), Some(block));
                valid[g.block_of(ppn).idx()] += 1;
                dirty[g.block_of(ppn).idx()] += u16::from(entry.is_dirty_in_nand());
            }
            assert_eq!(entry.is_buffered(), self.buffer.find(frit_core::Lpn(block)).is_some());
            buffered += usize::from(entry.is_buffered());
            all_dirty += u64::from(entry.is_dirty());
            assert!(!entry.is_empty());
        });
        assert_eq!((all_dirty, buffered), (self.dirty, self.buffer.len()));
        let owned = (0..g.pages()).filter(|&p| self.block_at(Ppn(p)).is_some()).count();
        assert_eq!(owned, valid.iter().map(|&v| usize::from(v)).sum::<usize>());
        let held: Vec<u32> = self.checkpoint.blocks.iter().map(|row| row.block).collect();
        let (mut free, mut checkpoint) = (0, 0);
        for (b, row) in self.blocks.iter().enumerate() {
            assert_eq!((row.valid, row.dirty), (valid[b], dirty[b]), "block {b} {row:?}");
            match row.state {
                BlockUse::Free => free += 1,
                BlockUse::Emptied => assert_eq!(row.valid, 0),
                BlockUse::Checkpoint => {
                    assert_eq!(row.valid, 0);
                    assert!(held.contains(&(b as u32)));
                    checkpoint += 1;
                }
                _ => {}
            }
        }
        assert_eq!(free, self.units.iter().map(|u| u.free.len()).sum::<usize>());
        assert_eq!(checkpoint, held.len());
        for (unit, row) in (0..).zip(&self.units) {
            assert!(row.checkpoint.is_none_or(|block| held.contains(&block)));
            let of_unit = held.iter().filter(|&&block| self.unit_of(block) == unit).count();
            let failed = self.stats.program_retries as usize;
            assert!(of_unit <= self.sizes.checkpoint_held as usize + failed, "{of_unit} of unit {unit}");
        }
    }
}

#[derive(Clone, Debug)]
enum Action {
    Write { block: u32, count: u32, dirty: bool },
    Read { block: u32 },
    Evict { block: u32, count: u32 },
    Clean { block: u32, count: u32 },
    EvictClean,
    Flush,
    Step,
    Restart,
    Crash,
}

fn actions() -> impl Strategy<Value = Vec<Action>> {
    let range = || (0..BLOCKS, 1..6u32);
    let action = prop_oneof![
        30 => (range(), any::<bool>()).prop_map(|((block, count), dirty)| Action::Write { block, count, dirty }),
        10 => (0..BLOCKS).prop_map(|block| Action::Read { block }),
        4 => range().prop_map(|(block, count)| Action::Evict { block, count }),
        6 => (0..BLOCKS, 1..60u32).prop_map(|(block, count)| Action::Clean { block, count }),
        1 => Just(Action::EvictClean),
        3 => Just(Action::Flush),
        3 => Just(Action::Step),
        1 => Just(Action::Restart),
        2 => Just(Action::Crash),
    ];
    prop::collection::vec(action, 1..300)
}

/// A version of a block in the model: its number and whether it is dirty; `None` if it was evicted.
type State = Option<(u32, bool)>;

/// The states of each block since the last flush, the last one at the end.
struct Model {
    states: HashMap<u32, Vec<State>>,
}

impl Model {
    fn now(&self, block: u32) -> State {
        self.states.get(&block).and_then(|s| s.last().copied()).flatten()
    }

    fn set(&mut self, block: u32, state: State) {
        self.states.entry(block).or_insert_with(|| vec![None]).push(state);
    }

    fn flushed(&mut self) {
        for states in self.states.values_mut() {
            states.drain(..states.len() - 1);
        }
    }

    fn check(&self, block: u32, read: Option<u32>, when: &str) {
        match (self.now(block), read) {
            (Some((version, true)), read) => assert_eq!(read, Some(version), "dirty block {block} {when}"),
            (Some((version, false)), Some(read)) => assert_eq!(read, version, "clean block {block} {when}"),
            (None, Some(read)) => panic!("block {block} was evicted, and has version {read} {when}"),
            (_, None) => {}
        }
    }

    /// Checks a block after a crash, and takes what is there as its state.
    fn check_crash(&mut self, block: u32, read: Option<u32>, state: Option<BlockState>, exact: bool) {
        let known = self.states.remove(&block).unwrap_or_else(|| vec![None]);
        let known = if exact { &known[known.len() - 1..] } else { &known[..] };
        let dirty = state == Some(BlockState::Dirty);
        let allowed = known.iter().any(|known| match (known, read) {
            (Some((version, _)), Some(read)) => *version == read,
            (Some((_, dirty)), None) => !dirty,
            (None, read) => read.is_none(),
        });
        assert!(allowed, "block {block}: {read:?} of {known:?}");
        // A dirty block must not become clean.
        if let Some(read) = read {
            let clean = known.iter().any(|k| matches!(k, Some((v, false)) if *v == read));
            assert!(dirty || clean, "block {block} lost its dirty state: {known:?}");
        }
        self.set(block, read.map(|version| (version, dirty)));
        self.states.get_mut(&block).unwrap().remove(0);
    }
}

/// Blocks of a range that do not leave its region of addresses.
fn clip(block: u32, count: u32) -> Range<u32> {
    block..(block + count).min(block / 50 * 50 + 50).min(BLOCKS)
}

/// Addresses of these blocks, as a range.
fn addresses(range: &Range<u32>) -> Range<u32> {
    address(range.start)..address(range.end - 1) + 1
}

impl Model {
    /// Writes to the device and to the model. Returns `false` if the device is worn out.
    fn write(&mut self, device: &mut Device, n: usize, range: Range<u32>, dirty: bool) -> bool {
        let versions: Vec<u32> = range.clone().map(|b| n as u32 * 8 + b % 8).collect();
        match put(device, address(range.start), &versions, dirty) {
            Ok(_) => {
                for (b, version) in range.zip(versions) {
                    self.set(address(b), Some((version, dirty)));
                }
            }
            Err(Error::NoSpace { .. }) => {
                // It is full of dirty blocks, and nothing was written.
                let limit = CacheDevice::dirty_limit(device);
                assert!(device.dirty + 8 > limit, "{} of {limit}", device.dirty);
            }
            Err(Error::ReadOnly { .. }) => return false,
            Err(e) => panic!("{e}"),
        }
        true
    }

    fn clean(&mut self, range: Range<u32>) {
        for b in range.map(address) {
            if let Some((version, _)) = self.now(b) {
                self.set(b, Some((version, false)));
            }
        }
    }

    fn evict_clean(&mut self) {
        for b in (0..BLOCKS).map(address) {
            if matches!(self.now(b), Some((_, false))) {
                self.set(b, None);
            }
        }
    }

    /// Compares the device with the model after a crash.
    fn crashed(&mut self, device: &mut Device, exact: bool) {
        for block in (0..BLOCKS).map(address) {
            let read = get(device, block);
            let state = CacheDevice::state(device, block);
            assert_eq!(read.is_some(), state.is_some());
            self.check_crash(block, read, state, exact);
        }
        self.flushed();
    }

    /// Compares everything, at the end.
    fn finish(&self, device: &mut Device) {
        let mut dirty = Vec::new();
        CacheDevice::exists(device, 0..u32::MAX - 2, &mut |b, s| {
            if s == BlockState::Dirty {
                dirty.push(b);
            }
        });
        let mut expected: Vec<u32> =
            (0..BLOCKS).map(address).filter(|&b| matches!(self.now(b), Some((_, true)))).collect();
        expected.sort_unstable();
        assert_eq!(dirty, expected);
        for block in (0..BLOCKS).map(address) {
            self.check(block, get(device, block), "at the end");
        }
        let scope = CheckScope { data: true, ..CheckScope::default() };
        device.run_check(&mut Sink::untimed(), scope, &mut |f| panic!("{f:?}")).unwrap();
    }
}

fn run(config: SscConfig, actions: &[Action], faults: NandFaults) {
    run_on(device(config, faults), actions, faults);
}

fn run_on(mut device: Device, actions: &[Action], faults: NandFaults) {
    let sink = &mut Sink::untimed();
    let exact = device.config.is_synchronous();
    let mut model = Model { states: HashMap::new() };
    for (n, action) in actions.iter().enumerate() {
        match *action {
            Action::Write { block, count, dirty } => {
                if !model.write(&mut device, n, clip(block, count), dirty) {
                    assert!(faults.program_fail > 0.0);
                    return;
                }
            }
            Action::Read { block } => {
                let block = address(block);
                model.check(block, get(&mut device, block), "in a run");
            }
            Action::Evict { block, count } => {
                let range = clip(block, count);
                device.evict(sink, addresses(&range), Tok::DONE).unwrap();
                range.for_each(|b| model.set(address(b), None));
            }
            Action::Clean { block, count } => {
                let range = clip(block, count);
                device.clean(sink, addresses(&range), Tok::DONE).unwrap();
                model.clean(range);
            }
            Action::EvictClean => {
                device.evict_clean(sink, Tok::DONE).unwrap();
                model.evict_clean();
            }
            Action::Flush => {
                device.flush(sink, Tok::DONE).unwrap();
                model.flushed();
            }
            Action::Step => drop(CacheDevice::step(&mut device, sink, 4).unwrap()),
            Action::Restart => {
                device.halt(sink, Tok::DONE).unwrap();
                let (next, recovery) = reopen(device, faults, CrashKind::Process);
                assert!(recovery.clean && recovery.losses() == 0, "{recovery:?}");
                device = next;
            }
            Action::Crash => {
                let crash = if n % 2 == 0 { CrashKind::Process } else { CrashKind::PowerLoss };
                let (next, recovery) = reopen(device, faults, crash);
                assert_eq!(recovery.losses(), 0, "{recovery:?}");
                device = next;
                model.crashed(&mut device, exact);
            }
        }
        device.audit();
        if let Some(why) = device.health.refusal() {
            assert!(faults.program_fail > 0.0, "{why}: {:?}", device.units);
            return;
        }
    }
    model.finish(&mut device);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn deferred_durability_keeps_what_was_flushed(actions in actions()) {
        run(config(0, SscDurability::Deferred), &actions, NandFaults::default());
        run(SscConfig { flush: SscFlush::Log, ..config(0, SscDurability::Deferred) }, &actions, NandFaults::default());
    }

    #[test]
    fn synchronous_durability_keeps_everything(actions in actions()) {
        run(config(0, SscDurability::Synchronous), &actions, NandFaults::default());
        run(config(512, SscDurability::Synchronous), &actions, NandFaults::default());
    }

    #[test]
    fn blocks_below_a_page_behave_alike(actions in actions()) {
        run(config(512, SscDurability::Deferred), &actions, NandFaults::default());
        let files = SscConfig { over_files: true, flush: SscFlush::Log, ..config(512, SscDurability::Deferred) };
        run(files, &actions, NandFaults::default());
    }

    /// Pages so small that a checkpoint has one part, or some.
    #[test]
    fn checkpoints_of_one_part_and_of_more_keep_everything(actions in actions()) {
        let g = NandGeometry { page_bytes: 1024, ..GEOMETRY }.with_mapping_unit(512).unwrap();
        for durability in [SscDurability::Deferred, SscDurability::Synchronous] {
            let config = SscConfig { checkpoint_log: 0.01, ..config(512, durability) };
            let (store, faults) = (MemoryStore::new(1 << 20), NandFaults::default());
            run_on(on_nand(g, config, store, faults), &actions, faults);
        }
    }

    #[test]
    fn two_copies_of_the_metadata_change_nothing(actions in actions()) {
        let copies = |config| SscConfig { metadata_copies: 2, ..config };
        run(copies(config(0, SscDurability::Deferred)), &actions, NandFaults::default());
        run(copies(config(512, SscDurability::Synchronous)), &actions, NandFaults::default());
        let files = SscConfig { over_files: true, flush: SscFlush::Log, ..config(0, SscDurability::Deferred) };
        run(copies(files), &actions, NandFaults::default());
    }

    #[test]
    fn failing_programs_and_erases_lose_nothing(actions in actions(), seed in any::<u64>()) {
        let faults = NandFaults { program_fail: 0.002, erase_fail: 0.002, seed, ..NandFaults::default() };
        run(config(0, SscDurability::Deferred), &actions, faults);
        run(config(512, SscDurability::Synchronous), &actions, faults);
        let copies = SscConfig { metadata_copies: 2, flush: SscFlush::Log, ..config(512, SscDurability::Deferred) };
        run(copies, &actions, faults);
    }
}

#[test]
fn a_long_run_evicts_silently_and_copies_dirty_blocks_only() {
    for durability in [SscDurability::Deferred, SscDurability::Synchronous] {
        for share in [0, 4, 16] {
            let mut device = device(config(512, durability), NandFaults::default());
            let sink = &mut Sink::untimed();
            let mut state = 3;
            for n in 0..30_000u32 {
                let r = split_mix::next(&mut state);
                let dirty = (r >> 40) % 16 < share;
                let block = (r % 2000) as u32;
                match put(&mut device, block, &[n], dirty) {
                    Ok(_) => {}
                    Err(Error::NoSpace { .. }) => {
                        device.clean(sink, 0..2000, Tok::DONE).unwrap();
                    }
                    Err(e) => panic!("{e}"),
                }
                if n % 16 == 0 {
                    CacheDevice::step(&mut device, sink, 1).unwrap();
                }
            }
            device.audit();
            let s = device.stats;
            assert!(s.victims > 100 && s.evicted_silently > 0, "{s:?}");
            assert_eq!(s.copied == 0, share == 0, "{s:?}");
        }
    }
}

/// Checkpoints fill their blocks of 8 pages, but for an end that is too short for the parts of a unit.
#[test]
fn a_block_of_checkpoints_is_erased_when_it_is_full() {
    for (mapping_unit, written) in [(0, 10), (0, 100), (512, 400)] {
        for metadata_copies in [1, 2] {
            let config = SscConfig { metadata_copies, ..config(mapping_unit, SscDurability::Deferred) };
            let mut device = device(config, NandFaults::default());
            // Six parts of a unit are more than half a block.
            let straddles = mapping_unit > 0 && metadata_copies == 2;
            assert_eq!(device.sizes.checkpoint_held, if straddles { 2 } else { 1 });
            let sink = &mut Sink::untimed();
            for n in 0..written {
                put(&mut device, n, &[n], false).unwrap();
            }
            let erases = |device: &Device| -> u64 {
                (0..device.nand.geometry().blocks()).map(|b| u64::from(device.nand.erases(BlockId(b)))).sum()
            };
            let (before, erased) = (device.stats, erases(&device));
            for n in 0..500 {
                // The eviction is a change, and takes no page.
                device.evict(sink, n % written..n % written + 1, Tok::DONE).unwrap();
                device.flush(sink, Tok::DONE).unwrap();
                device.audit();
            }
            assert_eq!(device.stats.victims, before.victims);
            let parts = device.stats.checkpoint_pages - before.checkpoint_pages;
            let erased = erases(&device) - erased;
            assert!(
                erased * 5 <= parts + 16 && parts <= erased * 8 + 48,
                "{erased} erases for {parts} parts"
            );
        }
    }
}

/// A checkpoint with more entries than a part holds has a part on each unit, a smaller one has none on the
/// second unit, whose full block is then erased.
#[test]
fn a_block_of_checkpoints_that_was_erased_takes_no_parts() {
    let faults = NandFaults::default();
    for checkpoints in 1..=8 {
        let mut device = device(config(512, SscDurability::Deferred), faults);
        let sink = &mut Sink::untimed();
        for n in 0..200 {
            put(&mut device, n, &[n], false).unwrap();
        }
        // The evictions are changes, and take no pages.
        for n in 0..checkpoints {
            device.evict(sink, n..n + 1, Tok::DONE).unwrap();
            device.flush(sink, Tok::DONE).unwrap();
        }
        device.evict(sink, 0..100, Tok::DONE).unwrap();
        device.flush(sink, Tok::DONE).unwrap();
        device.audit();
        for n in 1000..1400 {
            put(&mut device, n, &[n], n < 1100).unwrap();
            device.flush(sink, Tok::DONE).unwrap();
        }
        device.audit();
        for _ in 0..3 {
            device.halt(sink, Tok::DONE).unwrap();
            let recovery;
            (device, recovery) = reopen(device, faults, CrashKind::Process);
            assert!(recovery.clean && recovery.losses() == 0, "{recovery:?}");
            for n in 1000..1100 {
                assert_eq!(get(&mut device, n), Some(n));
            }
        }
    }
}

/// Earlier versions of the program appended parts of checkpoints to blocks with data.
#[test]
fn a_block_of_data_with_a_part_of_a_checkpoint_is_not_erased_with_the_checkpoint() {
    let faults = NandFaults::default();
    let mut device = device(config(0, SscDurability::Synchronous), faults);
    let sink = &mut Sink::untimed();
    // One on each unit.
    put(&mut device, 7, &[1], true).unwrap();
    put(&mut device, 8, &[2], true).unwrap();
    for unit in &mut device.units {
        unit.checkpoint = unit.open.map(|open| open.block);
    }
    device.halt(sink, Tok::DONE).unwrap();
    for _ in 0..3 {
        let (next, recovery) = reopen(device, faults, CrashKind::Process);
        device = next;
        device.audit();
        assert_eq!(recovery.losses(), 0, "{recovery:?}");
        assert_eq!([7, 8].map(|n| get(&mut device, n)), [Some(1), Some(2)]);
        device.halt(sink, Tok::DONE).unwrap();
    }
}

#[test]
fn memory_for_a_cached_block_is_bounded() {
    // Blocks as large as those of the board: 128 virtual pages of 32 KiB, mapped in units of 4 KiB.
    let board = NandGeometry {
        blocks_per_plane: 256,
        pages_per_block: 128,
        page_bytes: 32 << 10,
        spare_bytes: 1024,
        ..GEOMETRY
    };
    let g = board.with_mapping_unit(4096).unwrap();
    let nand = Nand::new(nand_config(g, NandFaults::default()), NoStore, &mut Hardware::new()).unwrap();
    let config = SscConfig { mapping_unit: 4096, ..SscConfig::default() };
    let device = Ssc::new(config, nand).unwrap();
    let bytes = device.dram_per_block();
    assert!((21.0..23.0).contains(&bytes), "{bytes}");
}

#[test]
fn impossible_sizes_are_refused_by_key() {
    let refused = |g: NandGeometry, config: SscConfig| {
        let nand = Nand::new(nand_config(g, NandFaults::default()), NoStore, &mut Hardware::new()).unwrap();
        match Ssc::new(config, nand).map(|_| ()) {
            Err(Error::Param { key, .. }) => key,
            other => panic!("{other:?}"),
        }
    };
    let default = SscConfig::default;
    assert_eq!(refused(NandGeometry { pages_per_block: 3, ..GEOMETRY }, default()), "pages_per_block");
    assert_eq!(refused(NandGeometry { blocks_per_plane: 6, ..GEOMETRY }, default()), "blocks_per_plane");
    assert_eq!(refused(GEOMETRY, SscConfig { mapping_unit: 512, ..default() }), "mapping_unit");
    assert!(refused(GEOMETRY, SscConfig { reserve: f64::NAN, ..default() }).contains("reserve"));
    assert_eq!(refused(GEOMETRY, SscConfig { merge_buffer: 0, ..default() }), "merge_buffer");
}

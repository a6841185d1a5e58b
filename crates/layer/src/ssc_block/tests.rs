//! Shadow-model tests: requests and commands in any order, over halts and crashes.

use super::{SscBlock, SscBlockConfig};
use crate::hfsl::tests::nand_config;
use crate::ssc::{Ssc, SscConfig, SscDurability};
use crate::testing::TWO_UNITS;
use frit_core::{
    BlockLayer, BlockState, CacheAccess, CacheCommand, CacheReply, CheckScope, CrashKind, Durable, Error,
    Hints, Quiesce, ReadTarget, Sector, Sink, WriteData,
};
use frit_media::store::LentStore;
use frit_media::{Hardware, MemoryStore, Nand, NandFaults, NandGeometry};
use proptest::prelude::*;
use std::ops::Range;

const PAGE: usize = 2048;
const SECTORS: usize = PAGE / 512;

const GEOMETRY: NandGeometry = NandGeometry { page_bytes: PAGE as u32, record_copies: 2, ..TWO_UNITS };

type Layer = SscBlock<Ssc>;

fn open(config: &SscBlockConfig, store: &LentStore<MemoryStore>) -> Layer {
    let mut hw = Hardware::new();
    let nand = Nand::new(nand_config(GEOMETRY, NandFaults::default()), store, &mut hw).unwrap();
    let ssc = Ssc::new(config.ssc.clone(), nand).unwrap();
    SscBlock::new(config.clone(), ssc).unwrap()
}

fn config(durability: SscDurability) -> SscBlockConfig {
    SscBlockConfig { ssc: SscConfig { durability, ..SscConfig::default() }, ..SscBlockConfig::default() }
}

#[derive(Clone, Debug)]
enum Action {
    Write { at: u64, sectors: u64 },
    Read { at: u64, sectors: u64 },
    Discard { at: u64, sectors: u64 },
    WriteClean { first: u32, blocks: u32 },
    Evict { first: u32, blocks: u32 },
    Clean { first: u32, blocks: u32 },
    Step,
    Halt,
    FlushAndCrash,
}

fn actions() -> impl Strategy<Value = Vec<Action>> {
    let range = || (0..190u64, 1..24u64);
    let blocks = || (0..44u32, 1..6u32);
    let action = prop_oneof![
        12 => range().prop_map(|(at, sectors)| Action::Write { at, sectors }),
        8 => range().prop_map(|(at, sectors)| Action::Read { at, sectors }),
        2 => range().prop_map(|(at, sectors)| Action::Discard { at, sectors }),
        8 => blocks().prop_map(|(first, blocks)| Action::WriteClean { first, blocks }),
        2 => blocks().prop_map(|(first, blocks)| Action::Evict { first, blocks }),
        5 => blocks().prop_map(|(first, blocks)| Action::Clean { first, blocks }),
        2 => Just(Action::Step),
        1 => Just(Action::Halt),
        1 => Just(Action::FlushAndCrash),
    ];
    prop::collection::vec(action, 1..150)
}

/// Contents of a block by sector, and `true` if it is dirty.
type Held = ([u32; SECTORS], bool);

struct Model {
    blocks: Vec<Option<Held>>,
    version: u32,
}

fn sector_bytes(stamp: u32) -> [u8; 512] {
    let mut bytes = [0; 512];
    if stamp != 0 {
        bytes.as_chunks_mut::<4>().0.fill(stamp.to_le_bytes());
    }
    bytes
}

fn page_of(stamps: &[u32]) -> Vec<u8> {
    stamps.iter().flat_map(|&stamp| sector_bytes(stamp)).collect()
}

/// States of all blocks of a layer.
fn states(layer: &mut Layer, blocks: u32) -> Vec<Option<BlockState>> {
    let mut found = Vec::new();
    let exists = CacheCommand::Exists { blocks: 0..blocks, found: &mut found };
    assert_eq!(layer.execute(&mut Sink::untimed(), exists).unwrap(), CacheReply::Done);
    let mut all = vec![None; blocks as usize];
    found.iter().for_each(|&(block, state)| all[block as usize] = Some(state));
    all
}

impl Model {
    fn stamp(&mut self) -> u32 {
        self.version += 1;
        self.version
    }

    /// Compares states and contents. The device may have dropped clean blocks, and a crash can bring
    /// them back: a drop is no access that a flush makes durable.
    fn compare(&self, layer: &mut Layer) {
        let states = states(layer, self.blocks.len() as u32);
        for (i, (held, state)) in self.blocks.iter().zip(states).enumerate() {
            let mut page = vec![1; PAGE];
            let read = CacheCommand::Read { block: i as u32, into: &mut page };
            let reply = layer.execute(&mut Sink::untimed(), read).unwrap();
            assert_eq!(reply == CacheReply::Done, state.is_some(), "block {i}");
            match (held, state) {
                (Some((_, true)), state) => assert_eq!(state, Some(BlockState::Dirty), "block {i}"),
                (Some((_, false)), _) => {}
                (None, state) => assert_eq!(state, None, "block {i}"),
            }
            if let (Some((stamps, _)), Some(_)) = (held, state) {
                assert!(page == page_of(stamps), "block {i}");
            }
        }
    }

    fn put(&mut self, sectors: Range<u64>, mut stamp: impl FnMut(&mut Model) -> u32) {
        for sector in sectors {
            let value = stamp(self);
            let held = self.blocks[sector as usize / SECTORS].get_or_insert(([0; SECTORS], true));
            held.0[sector as usize % SECTORS] = value;
            held.1 = true;
        }
    }

    /// Accepts that the device dropped a clean block before a request changed the part `written` of it:
    /// the rest is zeros then, or the block is gone.
    fn accept_dropped(
        &mut self,
        layer: &mut Layer,
        block: usize,
        before: Option<Held>,
        written: &Range<u64>,
    ) {
        let (Some((_, false)), Some((now, _))) = (before, self.blocks[block]) else { return };
        let mut rest = now;
        for (sector, stamp) in ((block * SECTORS) as u64..).zip(&mut rest) {
            if !written.contains(&sector) {
                *stamp = 0;
            }
        }
        let mut page = vec![1; PAGE];
        let read = CacheCommand::Read { block: block as u32, into: &mut page };
        match layer.execute(&mut Sink::untimed(), read).unwrap() {
            CacheReply::Miss if rest == [0; SECTORS] => self.blocks[block] = None,
            CacheReply::Done if page == page_of(&rest) => self.blocks[block] = Some((rest, true)),
            _ => {}
        }
    }

    fn apply(&mut self, layer: &mut Layer, action: &Action) {
        let sink = &mut Sink::untimed();
        let end = self.blocks.len() as u64 * SECTORS as u64;
        self.compare(layer);
        match *action {
            Action::Write { at, sectors } => {
                let (at, to) = (at.min(end - 1), (at.min(end - 1) + sectors).min(end));
                let first = self.version + 1;
                let edges = [at as usize / SECTORS, (to - 1) as usize / SECTORS];
                let before = edges.map(|block| self.blocks[block]);
                self.put(at..to, Model::stamp);
                let data: Vec<u8> = (first..=self.version).flat_map(sector_bytes).collect();
                layer.write(sink, Sector(at), WriteData::Bytes(&data), Hints::NONE).unwrap();
                for (block, before) in edges.into_iter().zip(before) {
                    self.accept_dropped(layer, block, before, &(at..to));
                }
            }
            Action::Read { at, sectors } => {
                let (at, to) = (at.min(end - 1), (at.min(end - 1) + sectors).min(end));
                let mut data = vec![1; (to - at) as usize * 512];
                layer.read(sink, Sector(at), ReadTarget::Bytes(&mut data), Hints::NONE).unwrap();
                let present = states(layer, self.blocks.len() as u32);
                let stamp = |s: u64| {
                    let block = s as usize / SECTORS;
                    let held = self.blocks[block].filter(|_| present[block].is_some());
                    held.map_or(0, |h| h.0[s as usize % SECTORS])
                };
                let expected: Vec<u8> = (at..to).flat_map(|s| sector_bytes(stamp(s))).collect();
                assert!(data == expected, "sectors {at} to {to}");
            }
            Action::Discard { at, sectors } => {
                let (at, to) = (at.min(end - 1), (at.min(end - 1) + sectors).min(end));
                layer.discard(sink, Sector(at), to - at).unwrap();
                for block in at as usize / SECTORS..=(to - 1) as usize / SECTORS {
                    let span = (block * SECTORS) as u64..((block + 1) * SECTORS) as u64;
                    let part = at.max(span.start)..to.min(span.end);
                    if part == span {
                        self.blocks[block] = None;
                    } else if let before @ Some(_) = self.blocks[block] {
                        self.put(part.clone(), |_| 0);
                        self.accept_dropped(layer, block, before, &part);
                    }
                }
            }
            Action::WriteClean { first, blocks } => {
                let stamps: Vec<u32> = (0..blocks as usize * SECTORS).map(|_| self.stamp()).collect();
                let data = page_of(&stamps);
                // A client makes a block clean before it writes it as a clean one.
                layer.execute(sink, CacheCommand::Evict(first..first + blocks)).unwrap();
                self.blocks[first as usize..(first + blocks) as usize].fill(None);
                match layer.execute(sink, CacheCommand::WriteClean { first, data: &data }) {
                    Ok(reply) => assert_eq!(reply, CacheReply::Done),
                    // Some of the blocks may be written.
                    Err(Error::NoSpace { .. }) => {}
                    Err(e) => panic!("{e}"),
                }
                for (i, stamps) in stamps.as_chunks::<SECTORS>().0.iter().enumerate() {
                    self.blocks[first as usize + i] = Some((*stamps, false));
                }
            }
            Action::Evict { first, blocks } => {
                layer.execute(sink, CacheCommand::Evict(first..first + blocks)).unwrap();
                self.blocks[first as usize..(first + blocks) as usize].fill(None);
            }
            Action::Clean { first, blocks } => {
                layer.execute(sink, CacheCommand::Clean(first..first + blocks)).unwrap();
                let range = first as usize..(first + blocks) as usize;
                self.blocks[range].iter_mut().flatten().for_each(|held| held.1 = false);
            }
            Action::Step => drop(layer.step(sink, 4).unwrap()),
            Action::Halt | Action::FlushAndCrash => unreachable!("they end a session"),
        }
    }
}

fn run(durability: SscDurability, actions: &[Action]) {
    let config = config(durability);
    let store = LentStore::new(MemoryStore::new(1 << 20));
    let mut layer = open(&config, &store);
    layer.format(&mut Sink::untimed()).unwrap();
    let blocks = layer.cache_info().addresses;
    assert!(blocks == 50, "{blocks}");
    let mut model = Model { blocks: vec![None; blocks as usize], version: 0 };
    for action in actions {
        match action {
            Action::Halt => {
                layer.halt(&mut Sink::untimed()).unwrap();
                drop(layer);
                layer = open(&config, &store);
                layer.boot(&mut Sink::untimed()).unwrap();
            }
            Action::FlushAndCrash => {
                layer.flush(&mut Sink::untimed()).unwrap();
                drop(layer);
                layer = open(&config, &store);
                layer.recover(&mut Sink::untimed(), CrashKind::PowerLoss).unwrap();
            }
            other => model.apply(&mut layer, other),
        }
        layer.ssc.audit();
    }
    model.compare(&mut layer);
    let mut findings = Vec::new();
    layer.check(&mut Sink::untimed(), CheckScope::default(), &mut |f| findings.push(f)).unwrap();
    assert!(findings.is_empty(), "{findings:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn requests_and_commands_agree_with_a_shadow(actions in actions(), synchronous in any::<bool>()) {
        run(if synchronous { SscDurability::Synchronous } else { SscDurability::Deferred }, &actions);
    }
}

/// Commands outside the address space and with parts of blocks are refused, and change nothing.
#[test]
fn invalid_commands_are_refused() {
    let config = config(SscDurability::Deferred);
    let store = LentStore::new(MemoryStore::new(1 << 20));
    let mut layer = open(&config, &store);
    let sink = &mut Sink::untimed();
    let end = layer.cache_info().addresses;
    let page = [7; PAGE];
    for command in [
        CacheCommand::WriteDirty { first: end, data: &page },
        CacheCommand::WriteClean { first: u32::MAX, data: &page },
        CacheCommand::Evict(end..end + 1),
        #[expect(clippy::reversed_empty_ranges, reason = "an invalid range")]
        CacheCommand::Clean(2..1),
        CacheCommand::Exists { blocks: 0..u32::MAX, found: &mut Vec::new() },
    ] {
        let e = layer.execute(sink, command).unwrap_err();
        assert!(matches!(e, Error::OutOfRange { .. }), "{e}");
    }
    for data in [&page[..0], &page[..512], &[7; PAGE + 512]] {
        let e = layer.execute(sink, CacheCommand::WriteDirty { first: 0, data }).unwrap_err();
        assert!(e.to_string().contains("whole blocks of 2048 bytes"), "{e}");
    }
    let e = layer.execute(sink, CacheCommand::Read { block: 0, into: &mut [0; 2 * PAGE] }).unwrap_err();
    assert!(e.to_string().contains("one block of 2048 bytes"), "{e}");
    assert!(states(&mut layer, end).iter().all(Option::is_none));
}

/// A device full of dirty blocks refuses further ones, and takes them once others are clean.
#[test]
fn a_full_device_takes_dirty_blocks_after_cleaning() {
    let config = SscBlockConfig { address_bytes: 1000 * PAGE as u64, ..config(SscDurability::Deferred) };
    let store = LentStore::new(MemoryStore::new(1 << 20));
    let mut layer = open(&config, &store);
    let sink = &mut Sink::untimed();
    let page = [7; PAGE];
    let mut first = 0;
    let refused = loop {
        match layer.execute(sink, CacheCommand::WriteDirty { first, data: &page }) {
            Ok(_) => first += 1,
            Err(e) => break e,
        }
    };
    assert!(matches!(refused, Error::NoSpace { .. }), "{refused}");
    assert!(u64::from(first) >= layer.cache_info().dirty_limit && first < 1000, "{first}");
    assert_eq!(layer.refuses(), None);
    layer.execute(sink, CacheCommand::Clean(0..first)).unwrap();
    for block in first..1000 {
        layer.execute(sink, CacheCommand::WriteClean { first: block, data: &page }).unwrap();
    }
    layer.execute(sink, CacheCommand::WriteDirty { first: 999, data: &page }).unwrap();
    assert_eq!(layer.cache_info().dirty_blocks, 1);
}

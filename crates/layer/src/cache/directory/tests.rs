use super::*;
use crate::numbers::{BucketId, CacheSlot, Lbn};
use proptest::prelude::*;
use std::collections::{BTreeMap, HashMap, VecDeque};

#[derive(Clone, Copy, Debug)]
enum Op {
    Put(Lbn),
    Relocate(Lbn),
    Remove(Lbn),
    Dirty(Lbn, bool),
    Valid(Lbn, u8),
    Flags(Lbn, u8),
    Touch(Lbn, u32),
}

fn op() -> impl Strategy<Value = Op> {
    // Few buckets, so that chains grow long. The last bucket is not full-sized.
    let lbn = prop_oneof![0u32..300, 100_000u32..100_040].prop_map(Lbn);
    prop_oneof![
        4 => lbn.clone().prop_map(Op::Put),
        1 => lbn.clone().prop_map(Op::Relocate),
        2 => lbn.clone().prop_map(Op::Remove),
        1 => (lbn.clone(), any::<bool>()).prop_map(|(l, d)| Op::Dirty(l, d)),
        1 => (lbn.clone(), any::<u8>()).prop_map(|(l, v)| Op::Valid(l, v)),
        1 => (lbn.clone(), any::<u8>()).prop_map(|(l, v)| Op::Flags(l, v)),
        1 => (lbn, any::<u32>()).prop_map(|(l, c)| Op::Touch(l, c)),
    ]
}

#[derive(Clone, Copy, PartialEq, Debug)]
struct Shadow {
    slot: CacheSlot,
    valid: u8,
    dirty: bool,
    flags: u8,
}

fn same(dir: &Directory, shadow: &BTreeMap<Lbn, Shadow>) -> std::result::Result<(), TestCaseError> {
    prop_assert_eq!(dir.len() as usize, shadow.len());
    prop_assert_eq!(dir.dirty_len() as usize, shadow.values().filter(|s| s.dirty).count());
    let mut all: Vec<_> = dir.iter().collect();
    all.sort_unstable();
    prop_assert_eq!(all, shadow.iter().map(|(l, s)| (*l, s.slot)).collect::<Vec<_>>());
    for (&lbn, s) in shadow {
        prop_assert_eq!(dir.get(lbn), Some(s.slot));
        let found = Shadow {
            slot: s.slot,
            valid: dir.valid(s.slot),
            dirty: dir.dirty(s.slot),
            flags: dir.flags(s.slot) & !DIRTY,
        };
        prop_assert_eq!(found, *s);
    }
    let mut blocks = BucketBlocks::default();
    let mut active = 0;
    for i in BucketId::first(dir.buckets()) {
        dir.blocks_of(i, &mut blocks);
        let mine: Vec<_> =
            shadow.range(i.block(0)..i.plus(1).block(0)).map(|(l, s)| (*l, s.slot, s.dirty)).collect();
        prop_assert_eq!(
            blocks.iter().collect::<Vec<_>>(),
            mine.iter().map(|m| (m.0, m.1)).collect::<Vec<_>>()
        );
        prop_assert_eq!((blocks.len(), blocks.is_empty()), (mine.len(), mine.is_empty()));
        prop_assert_eq!(usize::from(dir.bucket(i).count), mine.len());
        prop_assert_eq!(usize::from(dir.bucket(i).dirty), mine.iter().filter(|m| m.2).count());
        if !mine.is_empty() {
            active += 1;
            prop_assert_eq!(dir.next_active(i), Some(i));
        }
    }
    prop_assert_eq!(dir.active(), active);
    Ok(())
}

proptest! {
    #[test]
    fn it_is_a_map_with_chains_and_a_queue_of_free_slots(ops in prop::collection::vec(op(), 1..400)) {
        let slots = 128;
        let mut dir = Directory::new(100_040, slots).unwrap();
        let mut shadow = BTreeMap::new();
        let mut free: VecDeque<CacheSlot> = CacheSlot::first(slots).collect();
        let mut recency = BTreeMap::new();
        for op in ops {
            match op {
                Op::Put(lbn) if !shadow.contains_key(&lbn) => {
                    let slot = dir.alloc();
                    prop_assert_eq!(slot, free.pop_front());
                    if let Some(slot) = slot {
                        let dirty = lbn.0 % 3 == 0;
                        dir.insert(lbn, slot, 0xF0, dirty);
                        shadow.insert(lbn, Shadow { slot, valid: 0xF0, dirty, flags: 0 });
                    }
                }
                Op::Relocate(lbn) => if let (Some(s), false) = (shadow.get_mut(&lbn), free.is_empty()) {
                    let to = dir.alloc().unwrap();
                    dir.relocate(lbn, s.slot, to);
                    dir.free(s.slot);
                    free.pop_front();
                    free.push_back(s.slot);
                    s.slot = to;
                },
                Op::Remove(lbn) => {
                    let slot = dir.remove(lbn);
                    prop_assert_eq!(slot, shadow.remove(&lbn).map(|s| s.slot));
                    if let Some(slot) = slot {
                        dir.free(slot);
                        free.push_back(slot);
                    }
                }
                Op::Dirty(lbn, dirty) => if let Some(s) = shadow.get_mut(&lbn) {
                    dir.set_dirty(lbn, s.slot, dirty);
                    s.dirty = dirty;
                },
                Op::Valid(lbn, valid) => if let Some(s) = shadow.get_mut(&lbn) {
                    dir.set_valid(s.slot, valid);
                    s.valid = valid;
                },
                Op::Flags(lbn, flags) => if let Some(s) = shadow.get_mut(&lbn) {
                    dir.set_flags(s.slot, flags);
                    s.flags = flags & 0x7e;
                },
                Op::Touch(lbn, clock) => {
                    dir.touch(lbn, clock);
                    recency.insert(lbn.bucket(), clock);
                }
                Op::Put(_) => {}
            }
        }
        same(&dir, &shadow)?;
        for (bucket, clock) in recency {
            prop_assert_eq!(dir.bucket(bucket).recency, clock);
        }
        prop_assert_eq!(dir.free_len() as usize, free.len());
        // As in recovery: blocks are inserted at given slots, then all other slots are freed in
        // order.
        let mut again = Directory::new(100_040, slots).unwrap();
        for (&lbn, s) in &shadow {
            again.insert(lbn, s.slot, s.valid, s.dirty);
            again.set_flags(s.slot, s.flags);
        }
        again.free_rest();
        same(&again, &shadow)?;
        let mut rest: Vec<CacheSlot> = free.into();
        rest.sort_unstable();
        for slot in rest {
            prop_assert_eq!(again.alloc(), Some(slot));
        }
        prop_assert_eq!(again.alloc(), None);
    }

    #[test]
    fn an_index_is_a_map(
        ops in prop::collection::vec((0u32..400, 0u8..4), 1..800),
        spread in prop::sample::select(vec![1u32, 4096, 0x0100_0101]),
    ) {
        // The table is filled far above its capacity, so that rows overflow into the stash.
        let (mut index, mut shadow) = (SlotIndex::new(150), HashMap::new());
        for (n, (i, op)) in ops.into_iter().enumerate() {
            let (lbn, slot) = (Lbn(i.wrapping_mul(spread)), n as u32);
            match op {
                0 => prop_assert_eq!(index.remove(lbn), shadow.remove(&lbn)),
                1 => {
                    let old = shadow.get_mut(&lbn).map(|s| std::mem::replace(s, slot));
                    prop_assert_eq!(index.set(lbn, slot), old);
                }
                _ => {
                    if shadow.insert(lbn, slot).is_some() {
                        index.set(lbn, slot);
                    } else {
                        index.insert(lbn, slot);
                    }
                }
            }
        }
        for i in 0..400u32 {
            let lbn = Lbn(i.wrapping_mul(spread));
            prop_assert_eq!(index.get(lbn), shadow.get(&lbn).copied());
        }
        prop_assert_eq!(index.len(), shadow.len());
        prop_assert_eq!(index.iter().collect::<HashMap<_, _>>(), shadow);
    }
}

#[test]
fn at_its_capacity_nothing_is_stashed_and_blocks_take_the_memory_that_is_told() {
    let slots = 1 << 18;
    let mut dir = Directory::new(u32::MAX, slots).unwrap();
    let mut x = 1u64;
    while dir.len() < slots {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let lbn = Lbn((x >> 33) as u32);
        if dir.get(lbn).is_none() {
            let slot = dir.alloc().unwrap();
            dir.insert(lbn, slot, 0xff, true);
        }
    }
    let bytes = dir.bytes();
    let (block, bucket) =
        (bytes.blocks as f64 / f64::from(slots), bytes.buckets as f64 / f64::from(dir.buckets()));
    println!("{block:.2} bytes a cached block, {bucket:.2} bytes a bucket");
    assert!(block <= 12.9 && bucket <= 8.3, "{block} a block, {bucket} a bucket");
    assert_eq!(dir.iter().count() as u32, slots);
    assert_eq!(dir.index.stashed(), 0);
    // The stash stays empty even after each block was replaced twice on average.
    let mut held: Vec<Lbn> = dir.iter().map(|b| b.0).collect();
    for _ in 0..2 * slots {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let (lbn, place) = (Lbn((x >> 33) as u32), (x >> 13) as usize % held.len());
        if dir.index.get(lbn).is_none() {
            dir.index.remove(std::mem::replace(&mut held[place], lbn));
            dir.index.insert(lbn, 0);
        }
    }
    assert_eq!((dir.index.stashed(), dir.index.len()), (0, held.len()));
}

#[test]
fn sizes_that_cannot_be_are_refused() {
    for (disk, slots, key) in [(0, 1, "disk_blocks"), (1, 0, "slots"), (1, 1 << 31, "slots")] {
        let e = Directory::new(disk, slots).unwrap_err().to_string();
        assert!(e.starts_with(key), "{e}");
    }
}

#[test]
fn ages_are_right_across_the_wrap_of_the_clock() {
    let mut dir = Directory::new(1024, 4).unwrap();
    dir.touch(Lbn(300), u32::MAX - 4);
    assert_eq!(dir.bucket(BucketId(1)).age(5), 10);
    assert_eq!(dir.bucket(BucketId(0)), Bucket::default());
}

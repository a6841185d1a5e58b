//! Tests of the bytes of NAND: the same contents on every store, and detection of damage.

use super::*;
use crate::store::LentStore;
use crate::{AnyStore, FileStore, MmapStore, NoStore};
use frit_core::Error;
use proptest::prelude::*;
use std::collections::BTreeMap;

#[derive(Clone, Debug)]
enum Do {
    Program { block: u32, byte: u8 },
    Stray { ppn: u32, byte: u8 },
    Erase { block: u32 },
    Read { ppn: u32, offset: u32, len: u32 },
    Copyback { from: u32, block: u32 },
    Retire { block: u32 },
    Reopen,
}

fn an_op() -> impl Strategy<Value = Do> {
    prop_oneof![
        12 => (0..12u32, any::<u8>()).prop_map(|(block, byte)| Do::Program { block, byte }),
        1 => (0..50u32, any::<u8>()).prop_map(|(ppn, byte)| Do::Stray { ppn, byte }),
        3 => (0..13u32).prop_map(|block| Do::Erase { block }),
        8 => (0..50u32, 0..600u32, 0..600u32).prop_map(|(ppn, offset, len)| Do::Read { ppn, offset, len }),
        4 => (0..48u32, 0..12u32).prop_map(|(from, block)| Do::Copyback { from, block }),
        1 => (0..12u32).prop_map(|block| Do::Retire { block }),
        1 => Just(Do::Reopen),
    ]
}

/// Executes one operation. Returns its result as text, and the bytes that were read.
fn step(n: &mut Nand, op: &Do) -> (String, Vec<u8>) {
    let mut out = Vec::new();
    let next = |n: &Nand, b: u32| 4 * b + n.next_page(BlockId(b)).min(3);
    let r = match *op {
        Do::Program { block, byte } => {
            let ppn = next(n, block);
            program(n, ppn, byte)
        }
        Do::Stray { ppn, byte } => program(n, ppn, byte),
        Do::Erase { block } => erase(n, block),
        Do::Read { ppn, offset, len } => {
            out = vec![0xEE; len as usize];
            n.read(
                &mut Sink::untimed(),
                Ppn(ppn),
                offset,
                ReadTarget::Bytes(&mut out),
                Cause::Host,
                Tok::DONE,
            )
        }
        Do::Copyback { from, block } => {
            let to = Ppn(next(n, block));
            n.copyback(&mut Sink::untimed(), Ppn(from), to, spare(from), None, Cause::Gc, Tok::DONE)
        }
        Do::Retire { block } => {
            n.retire(BlockId(block));
            Ok(Tok::DONE)
        }
        Do::Reopen => n.sync().map(|()| Tok::DONE),
    };
    (r.map_or_else(|e| e.to_string(), |_| "ok".into()), out)
}

/// Updates the expected contents of the pages, by a model that is independent of stores.
fn expect(model: &mut BTreeMap<u32, (u8, Spare)>, n: &Nand, op: &Do, ok: bool) {
    if !ok {
        return;
    }
    let last = |b: u32| 4 * b + n.next_page(BlockId(b)) - 1;
    match *op {
        Do::Program { block, byte } => {
            model.insert(last(block), (byte, spare(last(block))));
        }
        Do::Stray { ppn, byte } => {
            model.insert(ppn, (byte, spare(ppn)));
        }
        Do::Erase { block } => model.retain(|p, _| p / 4 != block),
        Do::Copyback { from, block } => {
            let byte = model[&from].0;
            model.insert(last(block), (byte, spare(from)));
        }
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn all_stores_hold_the_same_for_the_same_calls(ops in prop::collection::vec(an_op(), 1..80)) {
        let dir = tempfile::tempdir().unwrap();
        let bytes = config().geometry.store_bytes();
        let open = |i: usize| match i {
            0 => AnyStore::Memory(MemoryStore::new(bytes)),
            1 => AnyStore::File(FileStore::open(dir.path().join("f"), bytes).unwrap()),
            _ => AnyStore::Mmap(MmapStore::open(dir.path().join("m"), bytes).unwrap()),
        };
        let mut held: Vec<Nand> = (0..3).map(|i| on(config(), open(i))).collect();
        let mut none = on(config(), NoStore);
        let mut model = BTreeMap::new();
        for op in &ops {
            let (said, _) = step(&mut none, op);
            expect(&mut model, &none, op, said == "ok");
            for n in &mut held {
                let (also_said, out) = step(n, op);
                prop_assert_eq!(&also_said, &said, "{:?}", op);
                if let (Do::Read { ppn, .. }, "ok") = (op, said.as_str()) {
                    prop_assert!(out.iter().all(|&b| b == model[ppn].0));
                }
            }
            if matches!(op, Do::Reopen) {
                held = held
                    .into_iter()
                    .enumerate()
                    .map(|(i, n)| {
                        let kept = n.into_store();
                        if i == 0 { on(config(), kept) } else { drop(kept); on(config(), open(i)) }
                    })
                    .collect();
            }
        }
        for n in &mut held {
            for b in 0..12 {
                prop_assert_eq!(n.next_page(BlockId(b)), none.next_page(BlockId(b)));
                prop_assert_eq!(n.erases(BlockId(b)), none.erases(BlockId(b)));
                prop_assert_eq!(n.is_bad(BlockId(b)), none.is_bad(BlockId(b)));
            }
            for ppn in 0..48 {
                let want = model.get(&ppn);
                prop_assert_eq!(n.spare(Ppn(ppn)).unwrap(), want.map(|w| w.1));
                if let Some((byte, _)) = want {
                    prop_assert_eq!(read(n, ppn).unwrap(), vec![*byte; PAGE]);
                }
            }
        }
    }
}

#[test]
fn every_flipped_bit_is_detected_and_named() {
    let mut n = in_memory(config());
    program(&mut n, 0, 1).unwrap();
    program(&mut n, 1, 2).unwrap();
    let record = n.geometry().record_at(Ppn(1), 0);
    let data = (PAGE as u64..2 * PAGE as u64).step_by(7);
    for at in data.chain(record..record + SPARE_RECORD_BYTES as u64) {
        for bit in 0..8 {
            let flip = |n: &mut Nand| {
                let mut b = [0];
                n.store().read(at, &mut b).unwrap();
                n.store_mut().write(at, &[b[0] ^ 1 << bit]).unwrap();
            };
            flip(&mut n);
            let e = read(&mut n, 1).unwrap_err();
            assert!(matches!(e, Error::Corrupt { at: 1, .. }), "byte {at}, bit {bit}: {e}");
            // A part of the page is not returned either, and the page is not moved with a new
            // checksum.
            let mut part = [0; 4];
            assert!(
                n.read(&mut Sink::untimed(), Ppn(1), 0, ReadTarget::Bytes(&mut part), Cause::Host, Tok::DONE)
                    .is_err()
            );
            assert!(
                n.copyback(&mut Sink::untimed(), Ppn(1), Ppn(4), spare(1), None, Cause::Gc, Tok::DONE)
                    .is_err()
            );
            assert_eq!(n.next_page(BlockId(1)), 0);
            flip(&mut n);
        }
    }
    assert_eq!(read(&mut n, 1).unwrap(), [2; PAGE]);
}

#[test]
fn a_page_in_the_place_of_another_is_detected() {
    let mut n = in_memory(config());
    for p in 0..2 {
        n.program(
            &mut Sink::untimed(),
            Ppn(p),
            WriteData::Bytes(&[5; PAGE]),
            spare(p),
            Cause::Host,
            Tok::DONE,
        )
        .unwrap();
    }
    let mut page = [0; PAGE];
    n.store().read(0, &mut page).unwrap();
    page[0] = 6;
    n.store_mut().write(0, &page).unwrap();
    assert!(read(&mut n, 0).is_err());
    assert!(read(&mut n, 1).is_ok());
}

#[test]
fn a_torn_program_looks_erased_or_damaged_and_never_whole() {
    // The store gets the data, then the record: cut the record at every byte.
    let mut whole = in_memory(config());
    program(&mut whole, 0, 9).unwrap();
    let at = whole.geometry().record_at(Ppn(0), 0);
    let mut record = [0; SPARE_RECORD_BYTES];
    whole.store().read(at, &mut record).unwrap();
    for kept in 0..SPARE_RECORD_BYTES {
        let mut n = in_memory(config());
        n.store_mut().write(0, &[9; PAGE]).unwrap();
        n.store_mut().write(at, &record[..kept]).unwrap();
        let mut n = on(config(), n.into_store());
        match n.spare(Ppn(0)) {
            Ok(None) => assert_eq!(n.next_page(BlockId(0)), 0),
            Err(Error::Corrupt { .. }) => assert_eq!(n.next_page(BlockId(0)), 1),
            other => panic!("{kept}: {other:?}"),
        }
        assert!(read(&mut n, 0).is_err());
    }
}

#[test]
fn a_damaged_block_state_makes_the_block_read_only() {
    let mut n = in_memory(config());
    erase(&mut n, 3).unwrap();
    program(&mut n, 12, 8).unwrap();
    let at = n.geometry().record_at(Ppn(48), 0) + 3 * 16;
    for byte in 0..16 {
        let mut b = [0];
        n.store().read(at + byte, &mut b).unwrap();
        n.store_mut().write(at + byte, &[b[0] ^ 0x10]).unwrap();
        n = on(config(), n.into_store());
        assert!(n.is_bad(BlockId(3)) && !n.is_bad(BlockId(2)), "byte {byte}");
        assert_eq!(read(&mut n, 12).unwrap(), [8; PAGE]);
        n.store_mut().write(at + byte, &b).unwrap();
    }
    assert_eq!(on(config(), n.into_store()).erases(BlockId(3)), 1);
}

#[test]
fn a_store_of_something_else_is_refused() {
    let store = LentStore::new(in_memory(config()).into_store());
    let mut hw = Hardware::new();
    let len = store.get().len();
    for at in len - 64..len {
        let mut b = [0];
        store.get().read(at, &mut b).unwrap();
        store.get().write(at, &[b[0] ^ 1]).unwrap();
        let e = Nand::new(config(), &store, &mut hw).unwrap_err();
        assert!(e.contains("NAND 'flash'"), "{e}");
        store.get().write(at, &b).unwrap();
    }
    let mut other = config();
    (other.geometry.channels, other.geometry.planes_per_die) = (4, 1);
    let e = Nand::new(other, &store, &mut hw).unwrap_err();
    assert!(e.contains("a device other than NAND of 4 channels"), "{e}");
}

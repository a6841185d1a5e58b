//! Atomic flushes, and addresses.

use super::*;
use frit_core::Tok;

const PAGE: usize = 1024;

fn virtual_write(layer: &mut Layer, block: u32, stamp: u32) {
    let data = contents(stamp, PAGE);
    device(layer)
        .virtual_write(&mut Sink::untimed(), &[block], WriteData::Bytes(&data), Cause::Meta, Tok::DONE)
        .unwrap();
}

fn virtual_read(layer: &mut Layer, block: u32) -> Vec<u8> {
    let mut page = vec![1; PAGE];
    let into = ReadTarget::Bytes(&mut page);
    device(layer).virtual_read(&mut Sink::untimed(), block, 0, into, Cause::Meta).unwrap();
    page
}

fn nameless_write(layer: &mut Layer, owners: &[u32], stamp: u32) -> Vec<PhysicalAddress> {
    let data = contents(stamp, PAGE * owners.len());
    let mut placed = Vec::new();
    device(layer)
        .nameless_write(
            &mut Sink::untimed(),
            owners,
            WriteData::Bytes(&data),
            Cause::Host,
            Tok::DONE,
            &mut placed,
        )
        .unwrap();
    placed
}

#[test]
fn versions_since_the_last_flush_do_not_survive_a_crash() {
    let mut layer = new_layer(&config(1024, 40 << 10));
    let sink = &mut Sink::untimed();
    for block in 0..20 {
        virtual_write(&mut layer, block, 1 + block);
    }
    layer.flush(sink).unwrap();
    // Many newer versions, so that garbage collection moves the older ones.
    for n in 0..3_000 {
        virtual_write(&mut layer, n % 40, 1000 + n);
    }
    assert!(layer.device().flash().stats().victims > 50);
    assert_eq!(virtual_read(&mut layer, 3), contents(1000 + 2963, PAGE));
    let (mut layer, recovery) = reopen(layer, NandFaults::default());
    assert_eq!((recovery.losses(), recovery.pages), (0, 20));
    for block in 0..40 {
        let stamp = if block < 20 { 1 + block } else { 0 };
        assert_eq!(virtual_read(&mut layer, block), contents(stamp, PAGE), "block {block}");
    }
}

#[test]
fn a_discard_is_durable_with_the_flush() {
    let mut layer = new_layer(&config(1024, 8 << 10));
    let sink = &mut Sink::untimed();
    for block in 0..8 {
        virtual_write(&mut layer, block, 5);
    }
    layer.flush(sink).unwrap();
    layer.discard(sink, Sector(1), 14).unwrap();
    assert_eq!(virtual_read(&mut layer, 3), [0; PAGE]);
    assert_eq!(virtual_read(&mut layer, 0), [contents(5, 512), vec![0; 512]].concat());
    let (mut layer, _) = reopen(layer, NandFaults::default());
    assert_eq!(virtual_read(&mut layer, 3), contents(5, PAGE));
    layer.discard(sink, Sector(1), 14).unwrap();
    layer.flush(sink).unwrap();
    let (mut layer, _) = reopen(layer, NandFaults::default());
    assert_eq!(virtual_read(&mut layer, 3), [0; PAGE]);
    assert_eq!(virtual_read(&mut layer, 0), [contents(5, 512), vec![0; 512]].concat());
}

#[test]
fn queues_have_consecutive_versions_also_where_numbers_are_left_out() {
    for start in [65_530u64, u64::from(u32::MAX) - 6] {
        let mut layer = new_layer(&config(1024, 8 << 10));
        layer.device_mut().flash_mut().adopted(start, false);
        for _ in 0..6 {
            let placed = nameless_write(&mut layer, &[1, 1, 1, 1], 9);
            for (i, at) in (0..).zip(&placed) {
                assert_eq!((at.page, at.version), (placed[0].page + i, placed[0].version + i), "{placed:?}");
                assert_ne!(at.version & 0xFFFF, 0);
            }
        }
    }
}

/// A block of the same owner at the page of a block that was moved away, before the migration is known.
#[test]
fn an_old_address_is_not_that_of_a_newer_block_at_its_page() {
    let mut config = config(1024, 8 << 10);
    config.device.wear_leveling = "static".into();
    config.device.wear_threshold = 2;
    let mut layer = new_layer(&config);
    let sink = &mut Sink::untimed();
    let mut stay: Vec<(OwnedBlock, u32)> = Vec::new();
    for stamp in 0..10 {
        let placed = nameless_write(&mut layer, &[7, 7, 7, 7], 100 + stamp);
        stay.extend(placed.into_iter().map(|at| (OwnedBlock { owner: 7, at }, 100 + stamp)));
    }
    let mut reused = 0;
    for n in 0..6_000 {
        let placed = nameless_write(&mut layer, &[7, 7, 7, 7], 1000 + n);
        reused += placed.iter().filter(|at| stay.iter().any(|(b, _)| b.at.page == at.page)).count();
        let mut page = vec![0; PAGE];
        for at in placed {
            let block = OwnedBlock { owner: 7, at };
            let into = ReadTarget::Bytes(&mut page);
            device(&mut layer).physical_read(sink, &[block], 0, into, Cause::Host).unwrap();
            assert_eq!(page, contents(1000 + n, PAGE));
            device(&mut layer).free(sink, block, Tok::DONE);
            // A block that was freed is not freed again, whatever its page holds.
            device(&mut layer).free(sink, block, Tok::DONE);
        }
    }
    assert!(reused > 20, "{reused}");
    for (block, stamp) in &stay {
        let mut page = vec![0; PAGE];
        let into = ReadTarget::Bytes(&mut page);
        device(&mut layer).physical_read(sink, &[*block], 0, into, Cause::Host).unwrap();
        assert_eq!(page, contents(*stamp, PAGE));
    }
    assert_eq!(device(&mut layer).space().stored, 40);
    for (block, _) in stay {
        device(&mut layer).free(sink, block, Tok::DONE);
    }
    assert_eq!(device(&mut layer).space().stored, 0);
    let pending = device(&mut layer).pending_migrations();
    device(&mut layer).acknowledge(pending + 1);
    assert_eq!(device(&mut layer).pending_migrations(), 0);
    audit(&layer, 0);
}

#[test]
fn contents_beyond_the_space_are_refused_and_others_are_not() {
    let mut layer = new_layer(&config(1024, 8 << 10));
    let sink = &mut Sink::untimed();
    let space = device(&mut layer).space();
    let most = space.capacity + space.waiting;
    let mut last = None;
    for _ in 0..most {
        last = nameless_write(&mut layer, &[1], 3).pop();
    }
    for n in 0..2_000 {
        virtual_write(&mut layer, n % 8, 10 + n);
    }
    let data = contents(1, PAGE);
    let mut placed = Vec::new();
    let full = device(&mut layer)
        .nameless_write(sink, &[1], WriteData::Bytes(&data), Cause::Host, Tok::DONE, &mut placed)
        .unwrap_err();
    assert!(matches!(full, Error::NoSpace { .. }), "{full}");
    assert_eq!(layer.refuses(), None);
    let block = OwnedBlock { owner: 1, at: last.unwrap() };
    device(&mut layer).free(sink, block, Tok::DONE);
    nameless_write(&mut layer, &[1], 3);
    layer.flush(sink).unwrap();
}

#[test]
fn several_blocks_are_read_in_any_order() {
    let mut layer = new_layer(&config(1024, 8 << 10));
    let sink = &mut Sink::untimed();
    let placed: Vec<PhysicalAddress> =
        (0..3).flat_map(|n| nameless_write(&mut layer, &[2, 2, 2, 2], n)).collect();
    let order = [11, 8, 9, 0, 3, 1, 2, 5, 4];
    let blocks: Vec<OwnedBlock> = order.map(|i| OwnedBlock { owner: 2, at: placed[i] }).to_vec();
    let mut data = vec![1; PAGE * order.len() - 700];
    let into = ReadTarget::Bytes(&mut data);
    device(&mut layer).physical_read(sink, &blocks, 600, into, Cause::Host).unwrap();
    let expected: Vec<u8> = order.iter().flat_map(|&i| contents(i as u32 / 4, PAGE)).collect();
    assert!(data == expected[600..expected.len() - 100]);
    let into = ReadTarget::Bytes(&mut data);
    let refused = device(&mut layer).physical_read(sink, &blocks[..2], 600, into, Cause::Host);
    assert!(matches!(refused, Err(Error::Param { .. })));
}

#[test]
fn invalid_requests_are_refused_and_change_nothing() {
    let mut layer = new_layer(&config(1024, 8 << 10));
    let sink = &mut Sink::untimed();
    let data = contents(1, 5 * PAGE);
    let mut placed = Vec::new();
    let page = WriteData::Bytes(&data[..PAGE]);
    let d = device(&mut layer);
    let errors = [
        d.nameless_write(sink, &[], WriteData::Bytes(&[]), Cause::Host, Tok::DONE, &mut placed).unwrap_err(),
        d.nameless_write(sink, &[1; 5], WriteData::Bytes(&data), Cause::Host, Tok::DONE, &mut placed)
            .unwrap_err(),
        d.nameless_write(sink, &[1, 2], page, Cause::Host, Tok::DONE, &mut placed).unwrap_err(),
        d.nameless_write(sink, &[u32::MAX], page, Cause::Host, Tok::DONE, &mut placed).unwrap_err(),
        d.virtual_write(sink, &[8], page, Cause::Host, Tok::DONE).unwrap_err(),
        d.virtual_discard(sink, 8).unwrap_err(),
        d.virtual_read(sink, 8, 0, ReadTarget::Len(512), Cause::Host).unwrap_err(),
        d.virtual_read(sink, 0, 512, ReadTarget::Len(1024), Cause::Host).unwrap_err(),
    ];
    for e in errors {
        assert!(matches!(e, Error::Param { .. }), "{e}");
    }
    // An address outside the device, and a claim outside a recovery.
    let at = PhysicalAddress { page: u32::MAX, version: 3 };
    let block = OwnedBlock { owner: 1, at };
    assert!(matches!(d.verify(sink, block, false), Err(Error::Corrupt { .. })));
    assert!(matches!(d.claim(block), Err(Error::ReadOnly { .. })));
    d.free(sink, block, Tok::DONE);
    assert_eq!((d.space().stored, d.refuses()), (0, None));
}

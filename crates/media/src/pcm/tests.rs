//! Tests of PCM: contents compared with an array, cost and wear of writes, fences, partitions.

mod clean;

use super::*;
use crate::testing::{forget, recorded, recording_sink};
use crate::{AnyStore, LatencyCurve, MemoryStore, NoStore, Phases};
use frit_core::{Cause, Cmd, Nanos, Op, ReadTarget, Sink, Tok, WriteData};
use proptest::prelude::*;

fn config(channels: u32, refresh: bool) -> PcmConfig {
    let curve = |t| LatencyCurve::new(vec![(64, Nanos(t))], 16).unwrap();
    PcmConfig {
        name: "pcm".into(),
        geometry: PcmGeometry {
            channels,
            chips_per_channel: 2,
            groups: 1,
            chip_bytes: 2048,
            write_unit: 16,
            line_bytes: 64,
            interleave_bytes: 128,
        },
        timing: PcmTiming {
            read: curve(10),
            write: curve(20),
            write_clean: None,
            refresh: Nanos(99),
            bus_ps_per_byte: 0,
            fence: Nanos(1),
        },
        endurance: 3,
        refresh_bytes: refresh.then_some(512),
        serial: 0,
    }
}

fn on(c: PcmConfig, store: impl Into<AnyStore>) -> Pcm {
    Pcm::new(c, store, &mut Hardware::new()).unwrap()
}

fn in_memory(c: PcmConfig) -> Pcm {
    let bytes = c.geometry.store_bytes();
    on(c, MemoryStore::new(bytes))
}

proptest! {
    #[test]
    fn split_and_joined_it_is_a_plain_array(
        channels in 1u32..4,
        groups in 1u32..3,
        ops in prop::collection::vec((0u64..9000, 0usize..900, any::<u8>(), any::<bool>()), 1..40)
    ) {
        let mut c = config(channels, false);
        c.geometry.groups = groups;
        let mut p = in_memory(c);
        let size = p.bytes();
        let group = size / u64::from(groups);
        let mut plain = vec![0u8; size as usize];
        for (at, len, byte, is_write) in ops {
            let mut log = recording_sink();
            let fits = at + len as u64 <= size;
            let data: Vec<u8> = (0..len).map(|i| byte.wrapping_add(i as u8)).collect();
            let mut out = vec![0xEE; len];
            let done = if is_write {
                p.write(&mut log, at, WriteData::Bytes(&data), Cause::Host, Tok::DONE)
            } else {
                p.read(&mut log, at, ReadTarget::Bytes(&mut out), Cause::Host, Tok::DONE)
            };
            prop_assert_eq!(done.is_ok(), fits);
            let Ok(tok) = done else {
                prop_assert!(recorded(&log).is_empty());
                continue;
            };
            let range = at as usize..at as usize + len;
            if is_write {
                plain[range].copy_from_slice(&data);
            } else {
                prop_assert_eq!(&out[..], &plain[range]);
            }
            // The token waits for every command; the commands cover consecutive ranges, and each
            // stays on one unit.
            prop_assert_eq!(tok, Tok::new((1u64 << recorded(&log).len()) - 1));
            let (mut next, end) = if is_write && len > 0 {
                (at & !15, (at + len as u64).next_multiple_of(16))
            } else {
                (at, at + len as u64)
            };
            for (c, after) in recorded(&log) {
                prop_assert_eq!((c.addr, *after), (next, 0));
                prop_assert_eq!(c.hazard, (c.addr / 64) as u32);
                let of_group = (c.addr / group) as u32 * channels;
                prop_assert_eq!(u32::from(c.unit.0), of_group + (c.addr / 128) as u32 % channels);
                let last = c.addr + u64::from(c.len) - 1;
                prop_assert!(channels == 1 || last / 128 == c.addr / 128);
                prop_assert_eq!(last / group, c.addr / group);
                next = last + 1;
            }
            if len > 0 {
                prop_assert_eq!(next, end);
                let crosses = at / group != (end - 1) / group;
                prop_assert!(channels > 1 || recorded(&log).len() == 1 + usize::from(crosses));
            }
        }
        let mut all = vec![0; size as usize];
        p.read(&mut Sink::untimed(), 0, ReadTarget::Bytes(&mut all), Cause::Host, Tok::DONE).unwrap();
        prop_assert!(all == plain);
    }
}

#[test]
fn writes_cost_and_wear_the_units_that_they_cover() {
    let mut p = on(config(1, false), NoStore);
    let mut log = recording_sink();
    p.write(&mut log, 60, WriteData::Len(8), Cause::Host, Tok::DONE).unwrap();
    assert_eq!((recorded(&log)[0].0.addr, recorded(&log)[0].0.len), (48, 32));
    assert_eq!((p.wear_of(0), p.wear_of(64), p.wear_of(128)), (1, 1, 0));
    p.read(&mut log, 0, ReadTarget::Len(64), Cause::Host, Tok::DONE).unwrap();
    assert_eq!(p.wear_of(0), 1, "reads do not wear");
    assert_eq!(p.counts().get(Op::PcmWrite, Cause::Host).bytes, 32);
    for _ in 0..3 {
        p.write(&mut log, 0, WriteData::Len(1), Cause::Meta, Tok::DONE).unwrap();
    }
    let v = p.view();
    assert_eq!((v.wear.summary().max, v.wear.bad, v.wear.limit), (4, 1, 3));
    assert_eq!(v.wear.per, "line of 64 B");
}

#[test]
fn a_fence_holds_on_every_channel() {
    let mut p = on(config(3, false), NoStore);
    let mut log = recording_sink();
    let w = p.write(&mut log, 0, WriteData::Len(16), Cause::Host, Tok::DONE).unwrap();
    let f = p.fence(&mut log, w);
    let fences: Vec<_> =
        recorded(&log)[1..].iter().map(|(c, after)| (c.op, c.unit.0, Tok::new(*after))).collect();
    assert_eq!(fences, [(Op::PcmFence, 0, w), (Op::PcmFence, 1, w), (Op::PcmFence, 2, w)]);
    assert_eq!(f, Tok::new(0b1110));
}

#[test]
fn groups_of_a_channel_are_units_that_share_its_bus() {
    let mut c = config(2, false);
    (c.geometry.groups, c.timing.bus_ps_per_byte) = (2, 500);
    let mut hw = Hardware::new();
    let mut p = Pcm::new(c.clone(), NoStore, &mut hw).unwrap();
    assert_eq!((hw.units(), hw.channels(), p.view().units), (4, 2, 4));
    assert_eq!([0, 1, 2, 3].map(|u| hw.channel_of(UnitId(u))), [0, 1, 0, 1]);
    assert_eq!([0, 128, 4096, 4224].map(|at| p.unit_of(at).0), [0, 1, 2, 3]);
    assert!(p.view().geometry.contains(&("groups_per_channel", 2)));
    let mut log = recording_sink();
    let f = p.fence(&mut log, Tok::DONE);
    assert_eq!(recorded(&log).iter().map(|(c, _)| c.unit.0).collect::<Vec<_>>(), [0, 1, 2, 3]);
    assert_eq!(f, Tok::new(0b1111));
    let cmd = |op| Cmd { addr: 0, len: 64, hazard: 0, unit: UnitId(0), op, cause: Cause::Host };
    let phases = |bus_in, array, bus_out| Phases {
        bus_in: Nanos(bus_in),
        array: Nanos(array),
        bus_out: Nanos(bus_out),
    };
    assert_eq!(c.timing.phases(&cmd(Op::PcmRead)), phases(0, 10, 32));
    assert_eq!(c.timing.phases(&cmd(Op::PcmWrite)), phases(32, 20, 0));
    assert_eq!(c.timing.phases(&cmd(Op::PcmFence)), phases(0, 1, 0));
}

#[test]
fn rules_are_kept() {
    let mut p = in_memory(config(2, false));
    let what = |r: Result<Tok>| r.unwrap_err().to_string();
    let past = p.read(&mut Sink::untimed(), 8190, ReadTarget::Len(3), Cause::Host, Tok::DONE);
    assert!(what(past).contains("past the end"));
    let wraps = p.write(&mut Sink::untimed(), u64::MAX, WriteData::Bytes(&[1, 2]), Cause::Host, Tok::DONE);
    assert!(what(wraps).contains("past the end"));
    let empty = p.write(&mut Sink::untimed(), 0, WriteData::Len(16), Cause::Host, Tok::DONE);
    assert!(what(empty).contains("without bytes"));
    let refresh = p.refresh(&mut Sink::untimed(), 0, Cause::Gc, Tok::DONE);
    assert!(what(refresh).contains("has none"));
    assert_eq!(p.counts().of(Op::PcmWrite).commands, 0);
    assert_eq!(p.wear_of(0), 0);
}

#[test]
fn partitions_do_not_overlap_and_fit() {
    let mut p = on(config(2, false), NoStore);
    let a = p.add_partition("map", 100, 1).unwrap();
    let b = p.add_partition("level", 1000, 512).unwrap();
    assert_eq!((a, b), (Partition { start: 0, bytes: 100 }, Partition { start: 512, bytes: 1000 }));
    assert_eq!(p.partition("level"), Some(b));
    assert!(p.add_partition("map", 1, 1).unwrap_err().to_string().contains("exists already"));
    assert!(p.add_partition("none", 0, 1).is_err() && p.add_partition("none", 1, 0).is_err());
    let e = p.add_partition("cache", 8000, 1).unwrap_err().to_string();
    assert!(e.contains("'cache' of 7.8 KiB") && e.contains("map 100 B, level 1000 B"), "{e}");
    assert!(p.add_partition("huge", u64::MAX, 4096).is_err());
    let rest = p.add_partition("rest", p.bytes() - p.partitioned_bytes(), 1).unwrap();
    assert_eq!(rest.end(), p.bytes());
    assert!(p.view().geometry.contains(&("level", 1000)));
    assert_eq!(p.partitions().len(), 3);
}

#[test]
fn bytes_and_wear_come_back_with_the_store() {
    let mut p = in_memory(config(2, true));
    p.write(&mut Sink::untimed(), 1000, WriteData::Bytes(b"glass"), Cause::Host, Tok::DONE).unwrap();
    p.preset(2000, b"fused").unwrap();
    p.sync().unwrap();
    let mut back = on(config(2, true), p.into_store());
    for (at, text) in [(1000, b"glass"), (2000, b"fused")] {
        let mut out = [0; 5];
        back.read(&mut Sink::untimed(), at, ReadTarget::Bytes(&mut out), Cause::Host, Tok::DONE).unwrap();
        assert_eq!(&out, text);
    }
    assert_eq!((back.wear_of(1000), back.wear_of(2000)), (1, 0));

    let mut store = back.into_store();
    let last = store.len() - 1;
    store.write(last, &[0xFF]).unwrap();
    let e = Pcm::new(config(2, true), store, &mut Hardware::new()).unwrap_err();
    assert!(e.contains("header is damaged"), "{e}");
}

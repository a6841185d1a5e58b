//! Tests of exports that are ranges of one device: names, bounds, and addresses in replies.

use super::*;
use crate::nbd::Exports;
use crate::nbd::wire::reply;
use frit_core::Hints;
use proptest::prelude::*;
use std::ops::Range;

/// Ranges of the exports. There are bytes before, between and behind them.
const RANGES: [(&str, Range<u64>); 2] = [("b", 4096..256 << 10), ("a", 260 << 10..1020 << 10)];

fn exports(device: &Arc<Device>) -> Exports {
    let ranges = RANGES.map(|(name, range)| (name.to_owned(), range));
    Exports::of_ranges(Arc::clone(device), "ranges", &ranges)
}

fn bytes_of(i: usize) -> u64 {
    RANGES[i].1.end - RANGES[i].1.start
}

fn connect(device: &Arc<Device>) -> Client {
    let mut c = Client::of(exports(device));
    c.greet(3);
    c
}

/// Connects and selects a range.
fn select(device: &Arc<Device>, name: &str, structured: bool) -> Client {
    let mut c = connect(device);
    if structured {
        c.option(option::STRUCTURED_REPLY, &[]);
        c.option_replies(option::STRUCTURED_REPLY);
        c.option(option::SET_META_CONTEXT, &contexts(name, &["base:allocation"]));
        c.option_replies(option::SET_META_CONTEXT);
    }
    c.option(option::GO, &go(name, &[]));
    assert_eq!(c.option_replies(option::GO).len(), 2);
    c
}

#[test]
fn ranges_are_listed_and_have_to_be_named() {
    let (device, _) = device(DeviceOptions::default());
    let mut c = connect(&device);
    c.option(option::LIST, &[]);
    let named = |name: &[u8]| (reply::SERVER, [&[0, 0, 0, 1], name].concat());
    assert_eq!(c.option_replies(option::LIST), [named(b"b"), named(b"a"), (reply::ACK, vec![])]);
    for other in ["", "c", "ab"] {
        assert_eq!(c.refusal(option::GO, &go(other, &[])), reply::ERR_UNKNOWN, "{other}");
        assert_eq!(c.refusal(option::INFO, &go(other, &[])), reply::ERR_UNKNOWN, "{other}");
    }
    for (i, (name, _)) in RANGES.iter().enumerate() {
        c.option(option::INFO, &go(name, &[]));
        assert_eq!(c.option_replies(option::INFO)[0].1[2..10], bytes_of(i).to_be_bytes());
    }
    c.option(option::EXPORT_NAME, b"a");
    assert_eq!(c.u64(), bytes_of(1));
    let mut c = connect(&device);
    c.option(option::EXPORT_NAME, b"");
    assert!(c.closed, "no export has an empty name");
}

#[test]
fn no_request_leaves_its_range() {
    for structured in [false, true] {
        for (i, (name, range)) in RANGES.iter().enumerate() {
            let (device, _) = device(DeviceOptions::default());
            let _ = device.lock().write(0, &vec![0xEE; BYTES as usize], Hints::NONE).unwrap();
            let mut c = select(&device, name, structured);
            let size = bytes_of(i);
            let wraps = u64::MAX - range.start;
            for (at, len) in [(size, 1), (size - 1, 2), (size - 512, 1024), (wraps, 512), (BYTES, 512)] {
                let data = vec![1; len as usize];
                assert!(c.request(Req::new(NbdCommand::Write, at, len), &data).is(Errno::NoSpc));
                for command in [NbdCommand::Read, NbdCommand::Trim, NbdCommand::Cache] {
                    assert!(c.request(Req::new(command, at, len), &[]).is(Errno::Inval), "{command:?} {at}");
                }
            }
            // The whole range, and no byte more.
            assert_eq!(c.read(0, size as u32), vec![0xEE; size as usize]);
            assert_eq!(c.write(0, &vec![7; size as usize]), 0);
            assert_eq!(c.request(Req::new(NbdCommand::Trim, 0, size as u32), &[]).error, 0);
            let mut all = vec![1; BYTES as usize];
            let _ = device.lock().read(0, &mut all).unwrap();
            for (at, byte) in all.into_iter().enumerate() {
                assert_eq!(byte, if range.contains(&(at as u64)) { 0 } else { 0xEE }, "{at}");
            }
        }
    }
}

#[test]
fn replies_have_addresses_of_the_export() {
    let (device, _) = device(DeviceOptions::default());
    let mut c = select(&device, "a", true);
    assert_eq!(c.write(8192, &[7; 4096]), 0);
    let reply = c.request(Req::new(NbdCommand::Read, 8192, 4096), &[]);
    assert_eq!((reply.at, reply.data), (8192, vec![7; 4096]));
    let size = bytes_of(1) as u32;
    let reply = c.request(Req::new(NbdCommand::BlockStatus, 0, size), &[]);
    assert_eq!(reply.extents, [(1, vec![(8192, 3), (4096, 0), (size - 12288, 3)])]);
    let mut other = select(&device, "b", true);
    let size = bytes_of(0) as u32;
    let reply = other.request(Req::new(NbdCommand::BlockStatus, 0, size), &[]);
    assert_eq!(reply.extents, [(1, vec![(size, 3)])]);
}

#[test]
fn contexts_of_one_export_do_not_apply_to_another() {
    let (device, _) = device(DeviceOptions::default());
    for (of, chosen, applies) in [("a", "a", true), ("b", "a", false), ("a", "b", false)] {
        let mut c = connect(&device);
        c.option(option::STRUCTURED_REPLY, &[]);
        c.option_replies(option::STRUCTURED_REPLY);
        c.option(option::SET_META_CONTEXT, &contexts(of, &["base:allocation"]));
        c.option_replies(option::SET_META_CONTEXT);
        c.option(option::GO, &go(chosen, &[]));
        c.option_replies(option::GO);
        let reply = c.request(Req::new(NbdCommand::BlockStatus, 0, 4096), &[]);
        assert_eq!(reply.error == 0, applies, "{of} {chosen}");
    }
}

/// A request of a client of one export.
#[derive(Clone, Debug)]
enum Action {
    Write(u8),
    Read,
    Trim,
    Zero(bool),
}

fn action() -> impl Strategy<Value = (usize, u64, u32, Action)> {
    let what = prop_oneof![
        3 => any::<u8>().prop_map(Action::Write),
        2 => Just(Action::Read),
        1 => Just(Action::Trim),
        1 => any::<bool>().prop_map(Action::Zero),
    ];
    // Many requests at the ends of the ranges.
    let at = prop_oneof![0u64..2048, (0u64..2048).prop_map(|back| u64::MAX - back), any::<u64>()];
    (0usize..2, at, 1u32..3000, what)
}

proptest! {
    /// Clients of two exports do what a model of each does, and the rest of the device stays as it was.
    #[test]
    fn exports_are_apart(actions in proptest::collection::vec(action(), 1..60), structured in any::<bool>()) {
        let (device, _) = device(DeviceOptions::default());
        let _ = device.lock().write(0, &vec![0xEE; BYTES as usize], Hints::NONE).unwrap();
        let mut model = vec![0xEE; BYTES as usize];
        let mut clients = RANGES.map(|(name, _)| select(&device, name, structured));
        for (i, at, len, what) in actions {
            let size = bytes_of(i);
            // The last addresses stand for those before the end of the range.
            let at = if at > u64::MAX - 2048 { size - (u64::MAX - at).min(size) } else { at % size };
            let fits = at + u64::from(len) <= size;
            let first = (RANGES[i].1.start + at) as usize;
            let range = first..first + if fits { len as usize } else { 0 };
            let c = &mut clients[i];
            match what {
                Action::Write(byte) => {
                    prop_assert_eq!(c.write(at, &vec![byte; len as usize]) == 0, fits);
                    model[range].fill(byte);
                }
                Action::Read if fits => prop_assert_eq!(&c.read(at, len), &model[range]),
                Action::Read => {
                    prop_assert!(c.request(Req::new(NbdCommand::Read, at, len), &[]).is(Errno::Inval));
                }
                Action::Zero(keep) => {
                    let flags = if keep { wire::flag::NO_HOLE } else { 0 };
                    let reply = c.request(Req::new(NbdCommand::WriteZeroes, at, len).flags(flags), &[]);
                    prop_assert_eq!(reply.error == 0, fits);
                    model[range].fill(0);
                }
                Action::Trim => {
                    let reply = c.request(Req::new(NbdCommand::Trim, at, len), &[]);
                    prop_assert_eq!(reply.error == 0, fits);
                    // Whole sectors only.
                    let (from, to) = (range.start.next_multiple_of(512), range.end / 512 * 512);
                    if from < to {
                        model[from..to].fill(0);
                    }
                }
            }
        }
        let mut all = vec![1; BYTES as usize];
        let _ = device.lock().read(0, &mut all).unwrap();
        prop_assert!(all == model);
    }
}

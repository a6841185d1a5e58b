//! Tests of every command and its possible errors.

use super::*;
use crate::device::REQUEST_BYTES_MAX;
use crate::nbd::wire::flag;
use std::sync::atomic::Ordering;

const COMMANDS: [NbdCommand; 6] = [
    NbdCommand::Read,
    NbdCommand::Write,
    NbdCommand::Trim,
    NbdCommand::Cache,
    NbdCommand::WriteZeroes,
    NbdCommand::BlockStatus,
];

fn both(mut f: impl FnMut(&mut Client, &Knobs)) {
    for structured in [false, true] {
        let (device, knobs) = device(DeviceOptions::default());
        f(&mut Client::ready(&device, structured), &knobs);
    }
}

fn payload(r: &Req) -> Vec<u8> {
    if r.number == NbdCommand::Write as u16 { vec![7; r.len as usize] } else { Vec::new() }
}

#[test]
fn bytes_come_back_wherever_a_request_begins_and_ends() {
    both(|c, _| {
        let mut model = vec![0u8; BYTES as usize];
        let mut x = 12345u64;
        for i in 0..600u32 {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let at = (x >> 33) % (BYTES - 70_000);
            let len = match i % 4 {
                0 => 1 + (x >> 20) % 600,
                1 => 512,
                _ => 1 + (x >> 17) % 70_000,
            };
            let range = at as usize..(at + len) as usize;
            match i % 6 {
                0..=2 => {
                    let data: Vec<u8> = (0..len).map(|b| (b ^ u64::from(i)) as u8).collect();
                    assert_eq!(c.write(at, &data), 0);
                    model[range].copy_from_slice(&data);
                }
                3 => {
                    let flags = if i % 2 == 0 { flag::NO_HOLE } else { flag::FUA };
                    let r = Req::new(NbdCommand::WriteZeroes, at, len as u32).flags(flags);
                    assert_eq!(c.request(r, &[]).error, 0);
                    model[range].fill(0);
                }
                4 => {
                    assert_eq!(c.request(Req::new(NbdCommand::Trim, at, len as u32), &[]).error, 0);
                    // Only the whole sectors inside the range are discarded.
                    let (from, to) = (at.next_multiple_of(512) as usize, (at + len) as usize / 512 * 512);
                    if from < to {
                        model[from..to].fill(0);
                    }
                }
                _ => assert_eq!(c.read(at, len as u32), &model[range]),
            }
        }
        assert_eq!(c.read(0, BYTES as u32), model);
    });
}

#[test]
fn fua_is_allowed_with_all_and_flushes_what_changes() {
    both(|c, knobs| {
        for (i, command) in COMMANDS.into_iter().enumerate() {
            if command == NbdCommand::BlockStatus && !c.connection.agreed_structured() {
                continue;
            }
            let r = Req::new(command, 4096, 4096).flags(flag::FUA);
            let before = knobs.flushes.load(Ordering::Relaxed);
            let reply = c.request(r, &payload(&r));
            assert_eq!(reply.error, 0);
            if command == NbdCommand::Read && reply.simple {
                c.take(4096);
            }
            let changes = matches!(command, NbdCommand::Write | NbdCommand::Trim | NbdCommand::WriteZeroes);
            assert_eq!(knobs.flushes.load(Ordering::Relaxed) - before, u64::from(changes), "{i}");
            assert_eq!(knobs.writes_flushed.load(Ordering::Relaxed), knobs.writes.load(Ordering::Relaxed));
        }
        let before = knobs.flushes.load(Ordering::Relaxed);
        assert_eq!(c.request(Req::new(NbdCommand::Flush, 0, 0).flags(flag::FUA), &[]).error, 0);
        assert_eq!(knobs.flushes.load(Ordering::Relaxed), before + 1);
    });
}

#[test]
fn one_flush_serves_all_writes_of_a_batch_that_ask_for_one() {
    let (device, knobs) = device(DeviceOptions::default());
    let mut c = Client::ready(&device, true);
    let mut bytes = Vec::new();
    for i in 0..20 {
        let r = Req::new(NbdCommand::Write, i * 4096, 4096).flags(flag::FUA).cookie(i);
        bytes.extend(r.bytes(&[i as u8; 4096]));
    }
    bytes.extend(Req::new(NbdCommand::Read, 0, 1).cookie(99).bytes(&[]));
    c.send(&bytes);
    assert_eq!(c.reply(99).data, [0], "requests that need no flush are answered first");
    (0..20).for_each(|i| assert_eq!(c.reply(i).error, 0));
    assert_eq!(knobs.flushes.load(Ordering::Relaxed), 1);
    assert_eq!(knobs.writes_flushed.load(Ordering::Relaxed), 20);
}

#[test]
fn flags_belong_to_their_commands() {
    both(|c, _| {
        let structured = c.connection.agreed_structured();
        for command in COMMANDS.into_iter().chain([NbdCommand::Flush]) {
            for bit in 1..16 {
                let flags = 1 << bit;
                let known = match command {
                    NbdCommand::Read => structured && flags == flag::DF,
                    NbdCommand::WriteZeroes => flags == flag::NO_HOLE || flags == flag::FAST_ZERO,
                    NbdCommand::BlockStatus => flags == flag::REQ_ONE,
                    _ => false,
                };
                if known {
                    continue;
                }
                let len = if command == NbdCommand::Flush { 0 } else { 4096 };
                let r = Req::new(command, 0, len).flags(flags);
                assert!(c.request(r, &payload(&r)).is(Errno::Inval), "{command:?} with bit {bit}");
            }
        }
        assert_eq!(c.flush(), 0, "the session continues");
    });
}

#[test]
fn ranges_are_checked_once_and_for_all() {
    let cases = [
        (BYTES, 1),
        (BYTES - 1, 2),
        (0, u32::MAX),
        (u64::MAX, 1),
        (u64::MAX - 4095, 4096),
        (u64::MAX / 2, u32::MAX),
        (1 << 63, 512),
    ];
    both(|c, knobs| {
        for command in COMMANDS {
            for (at, len) in cases {
                let r = Req::new(command, at, len);
                // A refused payload of 4 GiB would have to follow, so this case is skipped.
                if r.number == NbdCommand::Write as u16 && len > 1 << 20 {
                    continue;
                }
                let past_end = matches!(command, NbdCommand::Write | NbdCommand::WriteZeroes);
                let errno = if past_end { Errno::NoSpc } else { Errno::Inval };
                assert!(c.request(r, &payload(&r)).is(errno), "{command:?} {at}+{len}");
            }
            assert!(c.request(Req::new(command, 0, 0), &[]).is(Errno::Inval), "{command:?} of nothing");
        }
        for (at, len) in [(1, 0), (0, 1)] {
            assert!(c.request(Req::new(NbdCommand::Flush, at, len), &[]).is(Errno::Inval));
        }
        assert_eq!(knobs.writes.load(Ordering::Relaxed), 0);
        assert_eq!(c.read(0, 512), [0; 512], "the session continues");
    });
}

#[test]
fn requests_that_are_too_long_are_refused_and_passed_over() {
    let device = Device::new(Box::new(MemoryBackend::new(80 << 20)), DeviceOptions::default());
    let mut c = Client::ready(&device, true);
    let longer = REQUEST_BYTES_MAX + 1;
    assert!(c.request(Req::new(NbdCommand::Read, 0, longer), &[]).is(Errno::Inval));
    assert!(c.request(Req::new(NbdCommand::Read, 0, longer).flags(flag::DF), &[]).is(Errno::Overflow));
    c.send(&Req::new(NbdCommand::Write, 0, longer).bytes(&[]));
    assert!(c.reply(Req::new(NbdCommand::Write, 0, 0).cookie).is(Errno::Inval), "at once");
    let mut left = longer as usize;
    while left > 0 {
        let n = left.min(1_000_003);
        c.send(&vec![1; n]);
        left -= n;
    }
    assert_eq!(c.read(0, 512), [0; 512]);
    // Requests that move no data may be as long as the export.
    for command in [NbdCommand::Trim, NbdCommand::WriteZeroes, NbdCommand::Cache] {
        assert_eq!(c.request(Req::new(command, 0, 80 << 20), &[]).error, 0);
    }
    let whole = vec![3; REQUEST_BYTES_MAX as usize];
    assert_eq!(c.write(4096, &whole), 0);
    assert_eq!(c.read(4096, REQUEST_BYTES_MAX), whole);
    assert!(c.connection.output().capacity() < 5 << 20, "buffers of large requests are freed");
}

#[test]
fn unknown_commands_are_refused_and_a_wrong_magic_ends_the_session() {
    both(|c, _| {
        for number in [8, 9, 77, u16::MAX] {
            let r = Req { number, ..Req::new(NbdCommand::Read, 0, 512) };
            assert!(c.request(r, &[]).is(Errno::Inval), "command {number}");
        }
        assert_eq!(c.read(0, 512).len(), 512);
        c.send(&Req { magic: 1, ..Req::new(NbdCommand::Read, 0, 512) }.bytes(&[]));
        assert!(c.closed && c.received.is_empty());
    });
}

#[test]
fn a_read_only_export_refuses_what_changes_and_gives_the_rest() {
    let (device, knobs) = device(DeviceOptions { read_only: true, ..DeviceOptions::default() });
    let mut c = Client::ready(&device, true);
    for command in COMMANDS.into_iter().chain([NbdCommand::Flush]) {
        let len = if command == NbdCommand::Flush { 0 } else { 4096 };
        let r = Req::new(command, 0, len);
        let reply = c.request(r, &payload(&r));
        match command {
            NbdCommand::Write | NbdCommand::Trim | NbdCommand::WriteZeroes => {
                assert!(reply.is(Errno::Perm));
                assert_eq!(reply.words, "read-only: the volume is served read-only");
            }
            _ => assert_eq!(reply.error, 0),
        }
    }
    assert_eq!(knobs.writes.load(Ordering::Relaxed), 0);
}

#[test]
fn zeros_that_stay_allocated_are_not_fast() {
    both(|c, _| {
        let zeroes = |flags| Req::new(NbdCommand::WriteZeroes, 0, 8192).flags(flags);
        assert_eq!(c.write(0, &[1; 8192]), 0);
        assert!(c.request(zeroes(flag::FAST_ZERO | flag::NO_HOLE), &[]).is(Errno::NotSup));
        assert_eq!(c.read(0, 8192), [1; 8192], "the data is unchanged");
        assert_eq!(c.request(zeroes(flag::FAST_ZERO), &[]).error, 0);
        assert_eq!(c.read(0, 8192), [0; 8192]);
    });
}

#[test]
fn block_status_tells_each_context() {
    let (device, _) = device(DeviceOptions::default());
    let mut c = Client::ready(&device, true);
    assert_eq!(c.write(8192, &[1; 4096]), 0);
    let zeroes = Req::new(NbdCommand::WriteZeroes, 12288, 4096).flags(flag::NO_HOLE);
    assert_eq!(c.request(zeroes, &[]).error, 0);
    let rest = BYTES as u32 - 16384;
    let reply = c.request(Req::new(NbdCommand::BlockStatus, 0, BYTES as u32), &[]);
    let allocation = vec![(8192, 3), (8192, 0), (rest, 3)];
    let medium = vec![(8192, 0), (8192, 3), (rest, 0)];
    assert_eq!(reply.extents, [(1, allocation), (2, medium)]);
    // An unaligned range, of which only the first extent is requested.
    let one = Req::new(NbdCommand::BlockStatus, 8000, 1000).flags(flag::REQ_ONE);
    assert_eq!(c.request(one, &[]).extents, [(1, vec![(192, 3)]), (2, vec![(192, 0)])]);
    let r = Req::new(NbdCommand::BlockStatus, 8000, 1000);
    assert_eq!(c.request(r, &[]).extents[0].1, [(192, 3), (808, 0)]);
}

#[test]
fn failures_of_the_media_have_their_numbers_and_words() {
    for structured in [false, true] {
        let (device, knobs) = device(DeviceOptions::default());
        let mut c = Client::ready(&device, structured);
        assert_eq!(c.write(0, &[5; 16384]), 0);
        knobs.damaged_page.store(2, Ordering::Relaxed);
        let reply = c.request(Req::new(NbdCommand::Read, 0, 16384), &[]);
        assert!(reply.is(Errno::Io));
        if structured {
            assert_eq!(reply.words, "Dram data at 8192 is damaged: injected damage");
        }
        assert!(c.request(Req::new(NbdCommand::Cache, 8192, 512), &[]).is(Errno::Io));
        assert_eq!(c.read(0, 8192), [5; 8192], "undamaged data can be read");
        assert_eq!(c.write(0, &[6; 512]), 0, "damage does not end writing");
    }
}

#[test]
fn after_an_unexpected_error_writes_are_refused_and_reads_go_on() {
    let said = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let log = {
        let said = Arc::clone(&said);
        crate::Logger::new(move |line| said.lock().push(line.to_owned()))
    };
    let (device, knobs) = device(DeviceOptions { log, ..DeviceOptions::default() });
    let mut c = Client::ready(&device, true);
    assert_eq!(c.write(0, &[5; 512]), 0);
    knobs.broken.store(true, Ordering::Relaxed);
    let r = Req::new(NbdCommand::Write, 512, 512);
    assert!(c.request(r, &[1; 512]).is(Errno::Io));
    knobs.broken.store(false, Ordering::Relaxed);
    for _ in 0..3 {
        let reply = c.request(r, &[1; 512]);
        assert!(reply.is(Errno::Perm) && reply.words.contains("injected failure"), "{}", reply.words);
    }
    assert_eq!(c.read(0, 1024), [[5; 512], [0; 512]].concat());
    assert_eq!(said.lock().len(), 1, "{:?}", said.lock());
    assert!(device.read_only().is_some_and(|why| why.contains("injected failure")));
}

#[test]
fn damage_that_clients_meet_is_told_to_who_runs_the_server() {
    let said = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let log = {
        let said = Arc::clone(&said);
        crate::Logger::new(move |line| said.lock().push(line.to_owned()))
    };
    let (device, knobs) = device(DeviceOptions { log, ..DeviceOptions::default() });
    let mut c = Client::ready(&device, false);
    knobs.damaged_page.store(2, Ordering::Relaxed);
    for _ in 0..50 {
        assert!(c.request(Req::new(NbdCommand::Read, 8192, 512), &[]).is(Errno::Io));
    }
    let said = said.lock();
    assert!(said[0].contains("512 bytes at 8192") && said[0].contains("is damaged"), "{said:?}");
    assert!(said.len() < 50 && said.last().unwrap().contains("frit scrub lists all"), "{said:?}");
}

#[test]
fn a_flush_that_fails_fails_for_all_that_waited_for_it() {
    let (device, knobs) = device(DeviceOptions::default());
    let mut c = Client::ready(&device, false);
    knobs.broken.store(true, Ordering::Relaxed);
    assert_eq!(c.flush(), Errno::Io as u32);
    knobs.broken.store(false, Ordering::Relaxed);
    assert_eq!(c.write(0, &[1; 512]), Errno::Perm as u32, "the durability of earlier writes is unknown");
}

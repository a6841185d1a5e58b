//! Tests of handshake options and their effects.

use super::*;
use crate::nbd::wire::{export, info, reply};

const ALL: u16 = export::HAS_FLAGS
    | export::SEND_FLUSH
    | export::SEND_FUA
    | export::SEND_TRIM
    | export::SEND_WRITE_ZEROES
    | export::CAN_MULTI_CONN
    | export::SEND_CACHE
    | export::SEND_FAST_ZERO;

fn haggling() -> Client {
    let mut c = Client::connect(&device(DeviceOptions::default()).0);
    c.greet(3);
    c
}

#[test]
fn an_export_taken_by_name_comes_with_124_zeros_unless_they_are_not_wanted() {
    for (client_flags, zeros) in [(0, 124), (1, 124), (3, 0), (2, 0)] {
        for name in ["", "scratch"] {
            let mut c = Client::connect(&device(DeviceOptions::default()).0);
            c.greet(client_flags);
            c.option(option::EXPORT_NAME, name.as_bytes());
            assert_eq!((c.u64(), c.u16()), (BYTES, ALL));
            assert_eq!(c.take(zeros), vec![0; zeros]);
            assert_eq!(c.write(0, &[1; 512]), 0);
            assert_eq!(c.read(0, 512), [1; 512]);
        }
    }
}

#[test]
fn what_cannot_be_answered_ends_the_session() {
    let mut c = haggling();
    c.option(option::EXPORT_NAME, b"other");
    assert!(c.closed && c.received.is_empty());

    let mut c = Client::connect(&device(DeviceOptions::default()).0);
    c.greet(4);
    assert!(c.closed, "unknown client flags");

    let mut c = haggling();
    c.send(b"IHAVENOT\0\0\0\x03\0\0\0\0");
    assert!(c.closed, "wrong magic number of an option");

    let mut c = haggling();
    c.send(&[&OPTION_MAGIC.to_be_bytes()[..], &3u32.to_be_bytes(), &u32::MAX.to_be_bytes()].concat());
    assert!(c.closed, "4 GiB of data");

    let mut c = haggling();
    for _ in 0..2000 {
        c.option(99, &[]);
    }
    assert!(c.closed, "options without end");
}

#[test]
fn exports_are_listed_and_described() {
    let mut c = haggling();
    c.option(option::LIST, &[]);
    let name = [&7u32.to_be_bytes()[..], b"scratch"].concat();
    assert_eq!(c.option_replies(option::LIST), [(reply::SERVER, name), (reply::ACK, vec![])]);

    for option in [option::INFO, option::GO] {
        let wanted = [info::NAME, info::DESCRIPTION, info::BLOCK_SIZE, 77];
        c.option(option, &go("scratch", &wanted));
        let all = c.option_replies(option);
        let kinds: Vec<u32> = all.iter().map(|r| r.0).collect();
        assert_eq!(kinds, [reply::INFO, reply::INFO, reply::INFO, reply::INFO, reply::ACK]);
        assert_eq!(all[0].1, [&[0, 0][..], &BYTES.to_be_bytes(), &ALL.to_be_bytes()].concat());
        assert_eq!(all[1].1, b"\0\x01scratch");
        assert_eq!(all[2].1, b"\0\x02memory");
        assert_eq!(all[3].1, [0, 3, 0, 0, 0, 1, 0, 0, 16, 0, 2, 0, 0, 0]);
    }
    assert_eq!(c.write(BYTES - 1, &[9]), 0, "GO leads to requests");
}

#[test]
fn flags_say_what_was_agreed_and_what_is_refused() {
    let flags = |structured: bool, read_only: bool| {
        let mut c = Client::connect(&device(DeviceOptions { read_only, ..DeviceOptions::default() }).0);
        c.greet(3);
        if structured {
            c.option(option::STRUCTURED_REPLY, &[]);
            c.option_replies(option::STRUCTURED_REPLY);
        }
        c.option(option::INFO, &go("", &[]));
        let all = c.option_replies(option::INFO);
        u16::from_be_bytes(all[0].1[10..].try_into().unwrap())
    };
    assert_eq!(flags(false, false), ALL);
    assert_eq!(flags(true, false), ALL | export::SEND_DF);
    assert_eq!(flags(false, true), ALL | export::READ_ONLY);
}

#[test]
fn options_that_cannot_be_are_refused_and_the_session_goes_on() {
    let mut c = haggling();
    assert_eq!(c.refusal(option::STARTTLS, &[]), reply::ERR_UNSUP);
    for unknown in [0, 4, 11, 77, u32::MAX] {
        assert_eq!(c.refusal(unknown, b"whatever"), reply::ERR_UNSUP);
    }
    assert_eq!(c.refusal(option::LIST, b"x"), reply::ERR_INVALID);
    assert_eq!(c.refusal(option::STRUCTURED_REPLY, b"x"), reply::ERR_INVALID);
    assert_eq!(c.refusal(option::GO, &go("other", &[])), reply::ERR_UNKNOWN);
    let longer = "x".repeat(5000);
    for bad in [vec![], vec![0; 3], vec![0; 5], [go("", &[]), vec![1]].concat(), go(&longer, &[])] {
        assert_eq!(c.refusal(option::INFO, &bad), reply::ERR_INVALID, "{} bytes", bad.len());
    }
    let mut cut = go("scratch", &[1, 2]);
    cut.pop();
    assert_eq!(c.refusal(option::GO, &cut), reply::ERR_INVALID);
    assert_eq!(c.refusal(option::LIST, &vec![0; 100_000]), reply::ERR_TOO_BIG);
    c.option(option::EXPORT_NAME, b"");
    assert_eq!(c.u64(), BYTES);
}

#[test]
fn contexts_are_listed_chosen_and_replaced() {
    let mut c = haggling();
    for o in [option::LIST_META_CONTEXT, option::SET_META_CONTEXT] {
        assert_eq!(c.refusal(o, &contexts("", &[])), reply::ERR_INVALID, "before structured replies");
    }
    c.option(option::STRUCTURED_REPLY, &[]);
    c.option_replies(option::STRUCTURED_REPLY);

    let names = |c: &mut Client, o: u32, queries: &[&str]| {
        c.option(o, &contexts("scratch", queries));
        let all = c.option_replies(o);
        let shown = |d: &[u8]| {
            (u32::from_be_bytes(d[..4].try_into().unwrap()), String::from_utf8(d[4..].into()).unwrap())
        };
        let (last, rest) = all.split_last().unwrap();
        assert_eq!(last.0, reply::ACK);
        rest.iter().map(|r| shown(&r.1)).collect::<Vec<_>>()
    };
    let (base, medium) = ("base:allocation".to_owned(), "frit:medium".to_owned());
    let (list, set) = (option::LIST_META_CONTEXT, option::SET_META_CONTEXT);
    assert_eq!(names(&mut c, list, &[]), [(0, base.clone()), (0, medium.clone())]);
    assert_eq!(names(&mut c, list, &["base:"]), [(0, base.clone())]);
    assert_eq!(names(&mut c, list, &["frit:", "x:y", "frit:medium"]), [(0, medium.clone())]);
    assert_eq!(names(&mut c, set, &[]), []);
    assert_eq!(names(&mut c, set, &["base:", "qemu:dirty-bitmap:x"]), []);
    assert_eq!(names(&mut c, set, &["frit:medium", "base:allocation"]), [(1, base), (2, medium)]);

    // A failed selection leaves no contexts selected.
    assert_eq!(c.refusal(set, &contexts("other", &["base:allocation"])), reply::ERR_UNKNOWN);
    let mut lies = contexts("", &["base:allocation"]);
    lies[7] = 200;
    assert_eq!(c.refusal(set, &lies), reply::ERR_INVALID);
    lies[4] = 255;
    assert_eq!(c.refusal(set, &lies), reply::ERR_INVALID);
    c.option(option::GO, &go("", &[]));
    c.option_replies(option::GO);
    assert!(c.request(Req::new(NbdCommand::BlockStatus, 0, 4096), &[]).is(Errno::Inval));
}

#[test]
fn abort_is_answered_and_ends_the_session() {
    let mut c = haggling();
    c.option(option::ABORT, &[]);
    assert_eq!(c.option_replies(option::ABORT), [(reply::ACK, vec![])]);
    assert!(c.closed);
}

#[test]
fn a_server_that_stops_says_so() {
    let (device, _) = device(DeviceOptions::default());
    let mut c = Client::connect(&device);
    c.greet(3);
    let mut served = Client::ready(&device, true);
    device.stop();
    assert_eq!(c.refusal(option::GO, &go("", &[])), reply::ERR_SHUTDOWN);
    assert!(served.request(Req::new(NbdCommand::Read, 0, 512), &[]).is(Errno::Shutdown));
    c.option(option::ABORT, &[]);
    assert_eq!(c.option_replies(option::ABORT), [(reply::ACK, vec![])]);
}

//! Helpers of the fuzz target and of tests with invalid bytes: seed sessions, and invariants that
//! every session must keep.

use super::input::ReceiveBuffer;
use super::wire::{
    self, CHUNK_MAGIC, OPTION_MAGIC, OPTION_REPLY_MAGIC, SIMPLE_MAGIC, WireReader, chunk, option,
};
use super::{Connection, Export, Next};
use crate::Device;
use crate::device::REQUEST_BYTES_MAX;
use crate::resource_limits::{Budget, Peer};
use std::sync::Arc;
use std::time::Duration;

/// Runs a session of the given bytes and checks the replies: the session ends, memory is bounded,
/// and every byte of the replies belongs to a valid message. The first byte selects how the input
/// is cut into pieces. Returns `true` if the session completed the handshake.
///
/// # Panics
/// An invariant is violated.
#[allow(clippy::panic, reason = "it is a test that others call too")]
pub fn session(device: &Arc<Device>, bytes: &[u8]) -> bool {
    let (&step, bytes) = bytes.split_first().unwrap_or((&0, &[]));
    let step = if step == 0 { bytes.len().max(1) } else { usize::from(step) };
    let export = Arc::new(Export::new(Arc::clone(device), "scratch", "fuzz"));
    let mut connection = Connection::new(export);
    let mut input: Vec<u8> = Vec::new();
    let mut replies = Vec::new();
    let mut pieces = bytes.chunks(step);
    let (mut need, mut transmitting) = (0, false);
    loop {
        while input.len() < need {
            let Some(piece) = pieces.next() else {
                check_replies(&replies, transmitting);
                return transmitting;
            };
            input.extend_from_slice(piece);
        }
        let advance = connection.advance(&input);
        assert!(advance.used <= input.len(), "more bytes were consumed than exist");
        input.drain(..advance.used);
        let out = connection.output();
        assert!(out.capacity() < 80 << 20, "{} bytes for replies", out.capacity());
        let progress = advance.used > 0 || !out.is_empty();
        replies.extend_from_slice(out.bytes());
        out.clear();
        transmitting |= connection.is_transmitting();
        match advance.next {
            Next::Close => {
                check_replies(&replies, transmitting);
                return transmitting;
            }
            Next::Again => {
                assert!(progress || !input.is_empty() || advance.used == 0, "no progress");
                need = 0;
            }
            Next::More(n) => {
                assert!(n > input.len(), "{n} bytes are requested, {} are available", input.len());
                assert!(n <= REQUEST_BYTES_MAX as usize + 28, "{n} bytes of input are requested");
                need = n;
            }
        }
    }
}

/// Size of the budget in [`limited`], in bytes: less than a large request uses.
const BUDGET: usize = 100 << 10;

/// Runs a session like [`session`], with a server that has no memory for large requests. They are
/// executed in pieces, and the memory held for the client is bounded. Returns `true` if the session
/// completed the handshake.
///
/// # Panics
/// An invariant is violated.
#[allow(clippy::panic, reason = "as above")]
pub fn limited(device: &Arc<Device>, bytes: &[u8]) -> bool {
    let (&step, bytes) = bytes.split_first().unwrap_or((&0, &[]));
    let step = if step == 0 { bytes.len().max(1) } else { usize::from(step) };
    let export = Arc::new(Export::new(Arc::clone(device), "scratch", "fuzz"));
    let budget = Budget::new(BUDGET, 0).share(Peer::User(0));
    let mut connection = Connection::with_limits(export, &budget, Duration::ZERO, None);
    let mut input = ReceiveBuffer::new(&budget);
    let mut replies = Vec::new();
    let (mut rest, mut transmitting) = (bytes, false);
    loop {
        let advance = connection.advance(input.bytes());
        assert!(advance.used <= input.bytes().len(), "more bytes were consumed than exist");
        input.consume(advance.used);
        let out = connection.output();
        assert!(out.capacity() < (400 << 10) + BUDGET, "{} bytes for replies", out.capacity());
        replies.extend_from_slice(out.bytes());
        out.clear();
        transmitting |= connection.is_transmitting();
        let whole = match advance.next {
            Next::Again => continue,
            Next::Close => break,
            Next::More(whole) => whole,
        };
        assert!(whole > input.bytes().len(), "{whole} bytes are requested, but available");
        let free_space = input.free_space(whole);
        if free_space.is_empty() {
            connection.execute_in_pieces();
            continue;
        }
        let n = free_space.len().min(rest.len()).min(step);
        if n == 0 {
            break;
        }
        free_space[..n].copy_from_slice(&rest[..n]);
        input.commit(n);
        assert!(
            input.bytes().len() <= (65 << 10) + BUDGET,
            "{} bytes of input are held",
            input.bytes().len()
        );
        rest = &rest[n..];
    }
    check_replies(&replies, transmitting);
    transmitting
}

/// Checks all replies of a session: every byte of the handshake replies belongs to a message. After
/// the handshake only the chunks of structured replies are checked. Simple replies with data can be
/// parsed only with the list of requests.
///
/// # Panics
/// An invariant is violated.
#[allow(clippy::panic, reason = "as above")]
pub fn check_replies(replies: &[u8], transmitting: bool) {
    let mut r = WireReader(replies);
    assert_eq!(r.u64(), Some(wire::MAGIC));
    assert_eq!(r.u64(), Some(OPTION_MAGIC));
    assert_eq!(r.u16(), Some(3));
    let (mut structured, mut taken) = (false, false);
    while !r.0.is_empty() && !taken {
        let mut look = r;
        if look.u64() != Some(OPTION_REPLY_MAGIC) {
            // The export was selected by EXPORT_NAME: size, flags, and possibly zeros.
            assert!(transmitting, "bytes that belong to no message");
            return;
        }
        let (option, kind, len) = (look.u32(), look.u32(), look.u32());
        let Some(_) = len.and_then(|n| look.bytes(n as usize)) else { panic!("a reply is cut off") };
        structured |= option == Some(option::STRUCTURED_REPLY) && kind == Some(wire::reply::ACK);
        taken = option == Some(option::GO) && kind == Some(wire::reply::ACK);
        r = look;
    }
    while structured && !r.0.is_empty() {
        match r.u32() {
            Some(SIMPLE_MAGIC) => assert!(r.bytes(12).is_some(), "a reply is cut off"),
            Some(CHUNK_MAGIC) => {
                let (flags, kind, _) = (r.u16(), r.u16(), r.u64());
                assert!(flags.is_some_and(|f| f <= chunk::DONE));
                let known = [chunk::OFFSET_DATA, chunk::BLOCK_STATUS, chunk::ERROR];
                assert!(kind.is_some_and(|k| known.contains(&k)), "a chunk of kind {kind:?}");
                let len = r.u32().unwrap_or(u32::MAX);
                assert!(len > 0 && r.bytes(len as usize).is_some(), "a chunk is cut off");
            }
            other => panic!("{other:x?} is not the start of a reply"),
        }
    }
}

/// Corrupts a session by up to three changes. They are selected by `next`, which returns a number
/// below its argument.
pub fn mutate(bytes: &mut Vec<u8>, next: &mut dyn FnMut(u64) -> u64) {
    for _ in 0..next(4) {
        let at = next(bytes.len() as u64) as usize;
        match next(6) {
            0 => bytes[at] ^= 1 << next(8),
            1 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][next(5) as usize],
            2 => bytes.truncate(at.max(1)),
            3 => {
                let n = (next(64) as usize).min(bytes.len() - at);
                let part = bytes[at..at + n].to_vec();
                bytes.splice(at..at, part);
            }
            4 => drop(bytes.drain(at..(at + next(40) as usize).min(bytes.len()))),
            _ => bytes.insert(at, next(256) as u8),
        }
        if bytes.is_empty() {
            bytes.push(0);
        }
    }
}

/// Returns sessions that cover every option and every command. Their first byte selects that the
/// input is not cut.
pub fn seeds() -> Vec<Vec<u8>> {
    let option = |kind: u32, data: &[u8]| {
        [&OPTION_MAGIC.to_be_bytes()[..], &kind.to_be_bytes(), &(data.len() as u32).to_be_bytes(), data]
            .concat()
    };
    let request = |flags: u16, number: u16, at: u64, len: u32, payload: &[u8]| {
        let head = wire::REQUEST_MAGIC.to_be_bytes();
        let cookie = u64::from(number) << 32 | at;
        [
            &head[..],
            &flags.to_be_bytes(),
            &number.to_be_bytes(),
            &cookie.to_be_bytes(),
            &at.to_be_bytes(),
            &len.to_be_bytes(),
            payload,
        ]
        .concat()
    };
    let go = option(option::GO, b"\0\0\0\x07scratch\0\x02\0\x01\0\x03");
    let sets =
        option(option::SET_META_CONTEXT, b"\0\0\0\0\0\0\0\x02\0\0\0\x0fbase:allocation\0\0\0\x0bfrit:medium");
    let lists = option(option::LIST_META_CONTEXT, b"\0\0\0\0\0\0\0\x01\0\0\0\x05base:");
    let commands = [
        request(0, 1, 0, 600, &[5; 600]),
        request(1, 1, 4096, 4096, &[6; 4096]),
        request(0, 0, 100, 5000, &[]),
        request(4, 0, 0, 4096, &[]),
        request(0, 3, 0, 0, &[]),
        request(0, 4, 1000, 9000, &[]),
        request(0, 5, 0, 65536, &[]),
        request(2, 6, 8192, 8192, &[]),
        request(0x11, 6, 8192, 8192, &[]),
        request(0, 7, 0, 65536, &[]),
        request(8, 7, 10, 60000, &[]),
        request(0, 8, 0, 512, &[]),
        request(0, 2, 0, 0, &[]),
    ]
    .concat();
    // Requests larger than the memory of the server in `limited`.
    let large = [
        request(0, 1, 100, 300_000, &[7; 300_000]),
        request(0, 0, 0, 900_000, &[]),
        request(4, 0, 5, 500_000, &[]),
        request(1, 1, 0, 200_000, &[8; 200_000]),
        request(0, 5, 0, 1 << 20, &[]),
        request(0, 2, 0, 0, &[]),
    ]
    .concat();
    let flags = |f: u32| f.to_be_bytes().to_vec();
    let structured = option(option::STRUCTURED_REPLY, &[]);
    let (structured_again, go_again) = (structured.clone(), go.clone());
    let all =
        [option(option::LIST, &[]), option(option::STARTTLS, &[]), option(option::INFO, b"\0\0\0\0\0\0")];
    let by_name = option(option::EXPORT_NAME, b"scratch");
    let whole = |parts: &[Vec<u8>]| [&[0][..], &parts.concat()].concat();
    vec![
        whole(&[flags(3), structured.clone(), lists, sets, go.clone(), commands.clone()]),
        whole(&[flags(1), all.concat(), structured, go.clone(), commands.clone()]),
        whole(&[flags(3), go, commands.clone()]),
        whole(&[flags(3), structured_again, go_again.clone(), large.clone()]),
        whole(&[flags(3), go_again, large]),
        whole(&[flags(0), by_name, commands]),
        whole(&[flags(3), option(option::ABORT, &[])]),
    ]
}

//! Tests of large requests that do not fit into memory: executed in pieces, they have the same
//! results.

use super::super::input::ReceiveBuffer;
use super::super::wire::{self, CHUNK_MAGIC, Errno, SIMPLE_MAGIC, flag, option};
use super::super::{Connection, Export, Exports, NbdCommand, Next};
use super::{BYTES, Req, device, go, option_bytes};
use crate::resource_limits::{Budget, Peer};
use crate::testing::Knobs;
use crate::{Device, DeviceOptions};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// A client whose server has a limited memory budget, with the input buffer of a real session.
struct Client {
    connection: Connection,
    input: ReceiveBuffer,
    received: Vec<u8>,
    /// Maximum number of bytes of output held for the client.
    held_max: usize,
    closed: bool,
}

impl Client {
    fn ready(device: &Arc<Device>, structured: bool, budget: usize) -> Client {
        let export = Arc::new(Export::new(Arc::clone(device), "", ""));
        Client::of(export, "", structured, budget)
    }

    /// Connects to a server of these exports, and selects one.
    fn of(exports: impl Into<Exports>, name: &str, structured: bool, budget: usize) -> Client {
        let budget = Budget::new(budget, 0).share(Peer::User(0));
        let connection = Connection::with_limits(exports, &budget, Duration::ZERO, None);
        let input = ReceiveBuffer::new(&budget);
        let mut c = Client { connection, input, received: Vec::new(), held_max: 0, closed: false };
        let mut hello = 3u32.to_be_bytes().to_vec();
        if structured {
            hello.extend(option_bytes(option::STRUCTURED_REPLY, &[]));
        }
        hello.extend(option_bytes(option::GO, &go(name, &[])));
        c.send(&hello);
        assert!(c.connection.is_transmitting());
        c.received.clear();
        c
    }

    /// Sends bytes as a transport does, and collects the replies.
    fn send(&mut self, mut bytes: &[u8]) {
        while !self.closed {
            let step = self.connection.advance(self.input.bytes());
            self.input.consume(step.used);
            self.received.extend_from_slice(self.connection.output().bytes());
            let out = self.connection.output().capacity();
            self.held_max = self.held_max.max(out);
            self.connection.output().clear();
            match step.next {
                Next::Again => {}
                Next::Close => self.closed = true,
                Next::More(whole) => {
                    assert!(whole > self.input.bytes().len(), "available bytes are requested");
                    let free_space = self.input.free_space(whole);
                    if free_space.is_empty() {
                        self.connection.execute_in_pieces();
                        continue;
                    }
                    let n = free_space.len().min(bytes.len());
                    free_space[..n].copy_from_slice(&bytes[..n]);
                    self.input.commit(n);
                    bytes = &bytes[n..];
                    if n == 0 {
                        return;
                    }
                }
            }
        }
    }

    fn request(&mut self, req: Req, payload: &[u8]) -> Vec<u8> {
        self.send(&req.bytes(payload));
        std::mem::take(&mut self.received)
    }

    fn write(&mut self, at: u64, data: &[u8], flags: u16) -> u32 {
        let reply = self.request(Req::new(NbdCommand::Write, at, data.len() as u32).flags(flags), data);
        let head = u32::from_be_bytes(reply[..4].try_into().unwrap());
        let error = if head == SIMPLE_MAGIC { &reply[4..8] } else { &reply[20..24] };
        u32::from_be_bytes(error.try_into().unwrap())
    }

    /// Reads with structured replies. Returns the data, the number of its chunks, and the error.
    fn read_chunks(&mut self, at: u64, len: u32, flags: u16) -> (Vec<u8>, usize, u32) {
        let reply = self.request(Req::new(NbdCommand::Read, at, len).flags(flags), &[]);
        let (mut rest, mut data, mut chunks, mut error, mut done) = (&reply[..], Vec::new(), 0, 0, false);
        while !rest.is_empty() {
            assert!(!done, "a chunk follows the last");
            assert_eq!(rest[..4], CHUNK_MAGIC.to_be_bytes());
            done = rest[5] & wire::chunk::DONE as u8 != 0;
            let kind = u16::from_be_bytes(rest[6..8].try_into().unwrap());
            let n = u32::from_be_bytes(rest[16..20].try_into().unwrap()) as usize;
            if kind == wire::chunk::OFFSET_DATA {
                let offset = u64::from_be_bytes(rest[20..28].try_into().unwrap());
                assert_eq!(offset, at + data.len() as u64);
                data.extend_from_slice(&rest[28..20 + n]);
                chunks += 1;
            } else {
                error = u32::from_be_bytes(rest[20..24].try_into().unwrap());
            }
            rest = &rest[20 + n..];
        }
        assert!(done, "no chunk is marked as the last");
        (data, chunks, error)
    }
}

fn bytes(seed: u64) -> Vec<u8> {
    let mut x = seed;
    (0..BYTES)
        .map(|_| {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (x >> 56) as u8
        })
        .collect()
}

fn served() -> (Arc<Device>, Arc<Knobs>) {
    device(DeviceOptions::default())
}

#[test]
fn writes_and_reads_without_memory_are_right_and_hold_little() {
    for (budget, structured) in [(0, true), (0, false), (200 << 10, true), (64 << 20, true)] {
        let (device, knobs) = served();
        let mut c = Client::ready(&device, structured, budget);
        let data = bytes(7);
        assert_eq!(c.write(0, &data, 0), 0);
        // Unaligned start and odd length, with FUA.
        let part = &bytes(8)[..700_001];
        assert_eq!(c.write(12_345, part, flag::FUA), 0);
        assert_eq!(knobs.writes_flushed.load(Ordering::Relaxed), knobs.writes.load(Ordering::Relaxed));
        let mut expected = data;
        expected[12_345..12_345 + part.len()].copy_from_slice(part);
        if structured {
            let (read, chunks, error) = c.read_chunks(0, BYTES as u32, 0);
            assert!(read == expected && error == 0);
            assert_eq!(chunks > 1, budget < 1 << 20, "{chunks} chunks with {budget} bytes");
            let (read, chunks, error) = c.read_chunks(5, 900_000, flag::DF);
            assert!(read == expected[5..900_005] && error == 0 && chunks == 1);
        } else {
            let reply = c.request(Req::new(NbdCommand::Read, 0, BYTES as u32), &[]);
            assert_eq!(reply[4..8], [0; 4]);
            assert!(reply[16..] == expected);
        }
        if budget == 0 {
            assert!(c.held_max <= 400 << 10, "{} bytes of output were held", c.held_max);
        }
        let _ = c.request(Req::new(NbdCommand::Disc, 0, 0), &[]);
        assert!(c.closed);
    }
}

#[test]
fn errors_in_the_middle_are_told_and_the_session_goes_on() {
    let (device, knobs) = served();
    let data = bytes(9);
    let mut c = Client::ready(&device, true, 0);
    assert_eq!(c.write(0, &data, 0), 0);
    knobs.damaged_page.store(200, Ordering::Relaxed);
    let (read, _, error) = c.read_chunks(0, BYTES as u32, 0);
    assert_eq!(error, Errno::Io as u32);
    assert!(data.starts_with(&read) && !read.is_empty(), "the data before the error is correct");
    assert_eq!(c.read_chunks(0, BYTES as u32, flag::DF), (Vec::new(), 0, Errno::Io as u32));
    knobs.broken.store(true, Ordering::Relaxed);
    assert_eq!(c.write(0, &data, 0), Errno::Io as u32);
    assert_eq!(c.write(0, &data, 0), Errno::Perm as u32, "writes are refused after an unexpected error");
    knobs.broken.store(false, Ordering::Relaxed);
    assert!(c.read_chunks(0, 4096, 0).0 == data[..4096], "the payload was discarded");
    let mut simple = Client::ready(&device, false, 0);
    let reply = simple.request(Req::new(NbdCommand::Read, 0, BYTES as u32), &[]);
    assert_eq!((reply.len(), reply[7]), (16, Errno::Io as u8), "an error without data");
}

#[test]
fn a_write_that_ends_in_the_middle_was_not_answered() {
    let (device, _) = served();
    let mut c = Client::ready(&device, true, 0);
    let request = Req::new(NbdCommand::Write, 0, BYTES as u32).bytes(&bytes(3));
    c.send(&request[..request.len() / 2]);
    assert!(c.received.is_empty());
    assert!(c.connection.is_within_request());
    c.send(&request[request.len() / 2..]);
    assert_eq!(std::mem::take(&mut c.received).len(), 16);
    assert_eq!(c.read_chunks(0, BYTES as u32, 0).0, bytes(3));
}

#[test]
fn pieces_of_a_request_stay_in_the_range_of_its_export() {
    for structured in [false, true] {
        let (device, _) = device(DeviceOptions::default());
        let range = 64 << 10..960 << 10;
        let len = (range.end - range.start) as usize;
        let ranges = [("middle".to_owned(), range.clone())];
        let exports = Exports::of_ranges(Arc::clone(&device), "", &ranges);
        let mut c = Client::of(exports, "middle", structured, 0);
        let data: Vec<u8> = (0..len).map(|i| (i / 1000) as u8 | 1).collect();
        assert_eq!(c.write(0, &data, 0), 0);
        if structured {
            let (read, chunks, error) = c.read_chunks(0, len as u32, 0);
            assert!(read == data && chunks > 1 && error == 0, "{chunks} chunks");
        } else {
            let reply = c.request(Req::new(NbdCommand::Read, 0, len as u32), &[]);
            assert!(reply[16..] == data);
        }
        let mut all = vec![1; BYTES as usize];
        let _ = device.lock().read(0, &mut all).unwrap();
        let (first, end) = (range.start as usize, range.end as usize);
        assert!(all[first..end] == data);
        assert!(all[..first].iter().chain(&all[end..]).all(|&b| b == 0));
    }
}

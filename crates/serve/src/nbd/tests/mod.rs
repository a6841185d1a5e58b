//! Tests of the protocol at the level of bytes.

mod commands;
mod disconnect;
mod exports;
mod handshake;
mod mutate;
mod pieces;
mod sharing;

use super::wire::{self, CHUNK_MAGIC, Errno, OPTION_MAGIC, OPTION_REPLY_MAGIC, SIMPLE_MAGIC, option};
use super::{Connection, Export, Exports, NbdCommand, Next};
use crate::testing::{Knobs, MemoryBackend};
use crate::{Device, DeviceOptions};
use std::sync::Arc;

/// Size of the served memory in bytes.
const BYTES: u64 = 1 << 20;

/// A client that scripts its bytes, without socket or thread.
struct Client {
    connection: Connection,
    /// Bytes that were sent and not consumed yet.
    input: Vec<u8>,
    /// Bytes that were received and not checked yet.
    received: Vec<u8>,
    closed: bool,
}

fn device(options: DeviceOptions) -> (Arc<Device>, Arc<Knobs>) {
    let memory = MemoryBackend::new(BYTES as usize);
    let knobs = memory.knobs();
    (Device::new(Box::new(memory), options), knobs)
}

impl Client {
    /// Connects without sending anything.
    fn connect(device: &Arc<Device>) -> Client {
        Client::of(Arc::new(Export::new(Arc::clone(device), "scratch", "memory")))
    }

    /// Connects to a server of these exports.
    fn of(exports: impl Into<Exports>) -> Client {
        let mut c = Client {
            connection: Connection::new(exports),
            input: Vec::new(),
            received: Vec::new(),
            closed: false,
        };
        c.pump();
        c
    }

    /// Connects and selects the export, with structured replies and all contexts, or with neither.
    fn ready(device: &Arc<Device>, structured: bool) -> Client {
        let mut c = Client::connect(device);
        c.greet(3);
        if structured {
            c.option(option::STRUCTURED_REPLY, &[]);
            assert_eq!(c.option_replies(option::STRUCTURED_REPLY), [(wire::reply::ACK, vec![])]);
            c.option(option::SET_META_CONTEXT, &contexts("", &["base:allocation", "frit:medium"]));
            assert_eq!(c.option_replies(option::SET_META_CONTEXT).len(), 3);
        }
        c.option(option::GO, &go("", &[]));
        assert_eq!(c.option_replies(option::GO).len(), 2);
        c
    }

    /// Receives the server's greeting and sends the client flags.
    fn greet(&mut self, flags: u32) {
        let greeting = self.take(18);
        assert_eq!(&greeting[..16], b"NBDMAGICIHAVEOPT");
        assert_eq!(&greeting[16..], &3u16.to_be_bytes());
        self.send(&flags.to_be_bytes());
    }

    fn send(&mut self, bytes: &[u8]) {
        if self.closed {
            return;
        }
        self.input.extend_from_slice(bytes);
        self.pump();
    }

    /// Passes the input to the connection, as a transport does.
    fn pump(&mut self) {
        let mut need = 0;
        while !self.closed && self.input.len() >= need {
            let step = self.connection.advance(&self.input);
            self.input.drain(..step.used);
            self.received.extend_from_slice(self.connection.output().bytes());
            self.connection.output().clear();
            match step.next {
                Next::Again => need = 0,
                Next::More(n) => {
                    assert!(n > self.input.len(), "available bytes are requested");
                    need = n;
                }
                Next::Close => self.closed = true,
            }
        }
    }

    fn take(&mut self, n: usize) -> Vec<u8> {
        assert!(self.received.len() >= n, "{n} bytes were expected, {} were received", self.received.len());
        self.received.drain(..n).collect()
    }

    fn u16(&mut self) -> u16 {
        u16::from_be_bytes(self.take(2).try_into().unwrap())
    }

    fn u32(&mut self) -> u32 {
        u32::from_be_bytes(self.take(4).try_into().unwrap())
    }

    fn u64(&mut self) -> u64 {
        u64::from_be_bytes(self.take(8).try_into().unwrap())
    }

    fn option(&mut self, option: u32, data: &[u8]) {
        self.send(&option_bytes(option, data));
    }

    /// Returns all replies to an option, including the last one.
    fn option_replies(&mut self, option: u32) -> Vec<(u32, Vec<u8>)> {
        let mut all = Vec::new();
        loop {
            assert_eq!(self.u64(), OPTION_REPLY_MAGIC);
            assert_eq!(self.u32(), option);
            let kind = self.u32();
            let len = self.u32() as usize;
            all.push((kind, self.take(len)));
            if kind == wire::reply::ACK || kind >= wire::reply::ERR_UNSUP {
                return all;
            }
        }
    }

    /// Returns the type of the only reply to an option.
    fn refusal(&mut self, option: u32, data: &[u8]) -> u32 {
        self.option(option, data);
        let all = self.option_replies(option);
        assert_eq!(all.len(), 1);
        all[0].0
    }

    fn request(&mut self, r: Req, payload: &[u8]) -> Reply {
        self.send(&r.bytes(payload));
        self.reply(r.cookie)
    }

    /// Returns the next reply, which must belong to the given request.
    fn reply(&mut self, cookie: u64) -> Reply {
        let mut reply = Reply::default();
        match self.u32() {
            SIMPLE_MAGIC => {
                reply.error = self.u32();
                assert_eq!(self.u64(), cookie);
                // Only the client knows from its request if data follows.
                reply.simple = true;
            }
            CHUNK_MAGIC => {
                let mut flags = self.chunk(cookie, &mut reply);
                while flags & wire::chunk::DONE == 0 {
                    assert_eq!(self.u32(), CHUNK_MAGIC);
                    flags = self.chunk(cookie, &mut reply);
                }
            }
            other => panic!("{other:#x} is not the start of a reply"),
        }
        reply
    }

    fn chunk(&mut self, cookie: u64, reply: &mut Reply) -> u16 {
        let (flags, kind) = (self.u16(), self.u16());
        assert_eq!(self.u64(), cookie);
        let len = self.u32() as usize;
        match kind {
            wire::chunk::OFFSET_DATA => {
                reply.at = self.u64();
                reply.data = self.take(len - 8);
            }
            wire::chunk::BLOCK_STATUS => {
                let context = self.u32();
                let extents = (0..(len - 4) / 8).map(|_| (self.u32(), self.u32())).collect();
                reply.extents.push((context, extents));
            }
            wire::chunk::ERROR => {
                reply.error = self.u32();
                let n = usize::from(self.u16());
                assert_eq!(n, len - 6);
                reply.words = String::from_utf8(self.take(n)).unwrap();
            }
            other => panic!("chunk of kind {other}"),
        }
        flags
    }

    fn read(&mut self, at: u64, len: u32) -> Vec<u8> {
        let reply = self.request(Req::new(NbdCommand::Read, at, len), &[]);
        assert_eq!(reply.error, 0, "{}", reply.words);
        if reply.simple { self.take(len as usize) } else { reply.data }
    }

    fn write(&mut self, at: u64, data: &[u8]) -> u32 {
        self.request(Req::new(NbdCommand::Write, at, data.len() as u32), data).error
    }

    fn flush(&mut self) -> u32 {
        self.request(Req::new(NbdCommand::Flush, 0, 0), &[]).error
    }
}

#[derive(Default, Debug)]
struct Reply {
    error: u32,
    simple: bool,
    at: u64,
    data: Vec<u8>,
    words: String,
    extents: Vec<(u32, Vec<(u32, u32)>)>,
}

impl Reply {
    fn is(&self, errno: Errno) -> bool {
        self.error == errno as u32
    }
}

/// Header of a request.
#[derive(Clone, Copy)]
struct Req {
    magic: u32,
    flags: u16,
    number: u16,
    cookie: u64,
    at: u64,
    len: u32,
}

impl Req {
    fn new(command: NbdCommand, at: u64, len: u32) -> Req {
        Req {
            magic: wire::REQUEST_MAGIC,
            flags: 0,
            number: command as u16,
            cookie: 0x1122_3344_5566_7788,
            at,
            len,
        }
    }

    fn flags(self, flags: u16) -> Req {
        Req { flags, ..self }
    }

    fn cookie(self, cookie: u64) -> Req {
        Req { cookie, ..self }
    }

    fn bytes(&self, payload: &[u8]) -> Vec<u8> {
        let mut b = Vec::new();
        b.extend_from_slice(&self.magic.to_be_bytes());
        b.extend_from_slice(&self.flags.to_be_bytes());
        b.extend_from_slice(&self.number.to_be_bytes());
        b.extend_from_slice(&self.cookie.to_be_bytes());
        b.extend_from_slice(&self.at.to_be_bytes());
        b.extend_from_slice(&self.len.to_be_bytes());
        b.extend_from_slice(payload);
        b
    }
}

fn option_bytes(option: u32, data: &[u8]) -> Vec<u8> {
    let mut b = OPTION_MAGIC.to_be_bytes().to_vec();
    b.extend_from_slice(&option.to_be_bytes());
    b.extend_from_slice(&(data.len() as u32).to_be_bytes());
    b.extend_from_slice(data);
    b
}

/// Returns the data of the options INFO and GO.
fn go(name: &str, wanted: &[u16]) -> Vec<u8> {
    let mut b = (name.len() as u32).to_be_bytes().to_vec();
    b.extend_from_slice(name.as_bytes());
    b.extend_from_slice(&(wanted.len() as u16).to_be_bytes());
    wanted.iter().for_each(|w| b.extend_from_slice(&w.to_be_bytes()));
    b
}

/// Returns the data of the options for metadata contexts.
fn contexts(name: &str, queries: &[&str]) -> Vec<u8> {
    let mut b = (name.len() as u32).to_be_bytes().to_vec();
    b.extend_from_slice(name.as_bytes());
    b.extend_from_slice(&(queries.len() as u32).to_be_bytes());
    for q in queries {
        b.extend_from_slice(&(q.len() as u32).to_be_bytes());
        b.extend_from_slice(q.as_bytes());
    }
    b
}

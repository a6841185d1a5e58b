//! The host interface of a drive: command queues, and a link for the data.
//!
//! The model is that of the OpenSSD board (Saxena et al., FAST 2013, section 2): a FIFO of reads and one
//! of writes on a fast path, other commands on a slow path that waits for all queued commands, and a
//! DMA controller that copies data through a circular buffer, so in the order of the commands.

use crate::composed::{Base, Composer};
use crate::devices::Devices;
use frit_core::convert::{bounded_u32, to_usize};
use frit_core::transfer::SerialLink;
use frit_core::{BlockDevice, Cause, Nanos, ReadTarget, Result, Sector, Sink, Tok, WriteData};
use std::collections::VecDeque;

frit_core::parameters! {
    /// Configuration of a host link.
    pub struct HostLinkConfig {
        "read_mb_per_s" read_mb_per_s: u64 as Number = 0, live, unit "MB/s", within 0..=1_000_000,
            "rate at which the data of reads are transferred, one read after the other; 0: in no time";
        "write_mb_per_s" write_mb_per_s: u64 as Number = 0, live, unit "MB/s", within 0..=1_000_000,
            "rate at which the data of writes are transferred, one write after the other; 0: in no time";
        "command_ns" command_ns: u64 as Number = 0, live, unit "ns", within 0..=1_000_000_000,
            "time in which a command is decoded, one after the other";
        "read_queue" read_queue: u64 as Number = 0, fixed, unit "reads", within 0..=65536,
            "reads that the device has at once; 0: any number";
        "write_queue" write_queue: u64 as Number = 0, fixed, unit "writes", within 0..=65536,
            "writes that the device has at once; 0: any number";
        "read_in_order" read_in_order: bool as Switch = true, live,
            "the data of a read wait for those of the reads before; otherwise they leave when they are there, beside others";
        "nvme_lanes" nvme_lanes: u64 as Number = 0, fixed, unit "lanes", within 0..=64,
            "lanes of a PCIe link, over which the messages of NVMe pass in packets, in place of the rates and times above; 0: no such link";
        "lane_mb_per_s" lane_mb_per_s: u64 as Number = 1000, live, unit "MB/s", within 1..=1_000_000,
            "rate of a lane of `nvme_lanes` in one direction";
        "slow_path" slow_path: bool as Switch = true, fixed,
            "a flush or a discard waits for all queued commands, and later commands for it";
    }
}

/// Commands of one direction that the device has, and the transfers of their data.
#[derive(Debug)]
struct Fifo {
    /// Completions of the last commands, the oldest first. A full queue has its depth of them.
    done: VecDeque<Tok>,
    /// Largest number of commands; 0 if there is none.
    depth: usize,
    /// Completion of all commands that left `done`.
    earlier: Tok,
    link: SerialLink,
}

impl Fifo {
    fn new(depth: u64) -> Fifo {
        let depth = to_usize(bounded_u32(depth));
        Fifo { done: VecDeque::new(), depth, earlier: Tok::default(), link: SerialLink::default() }
    }

    /// Token after which the queue has a place.
    fn place(&mut self, sink: &mut Sink) -> Tok {
        if self.depth == 0 || self.done.len() < self.depth {
            return Tok::default();
        }
        let Some(oldest) = self.done.pop_front() else { return Tok::default() };
        self.earlier = sink.join(self.earlier, oldest);
        // Commands leave a FIFO in its order.
        self.earlier
    }

    fn add(&mut self, sink: &mut Sink, done: Tok) {
        if self.depth == 0 {
            self.earlier = sink.join(self.earlier, done);
        } else {
            self.done.push_back(done);
        }
    }

    /// Token that is done when all commands so far are done.
    fn all(&self, sink: &mut Sink) -> Tok {
        self.done.iter().fold(self.earlier, |all, &done| sink.join(all, done))
    }
}

/// Bytes of the messages of an NVMe command beside its data (NVMe 2.0, sections 3.1 and 3.3): doorbells,
/// entry of the submission queue, entry of the completion queue; and of a request to read from the host.
mod message {
    pub(super) const DOORBELL: u64 = 2;
    pub(super) const READ_REQUEST: u64 = 4;
    pub(super) const SUBMISSION: u64 = 64;
    pub(super) const COMPLETION: u64 = 16;
}

/// Payload of a PCIe packet and its headers: 20 bytes of the transaction, 6 of the data link and 2 of the
/// physical layer (MQSim, `PCIe_Link.h`).
const PACKET_BYTES: u64 = 128;
const PACKET_HEADERS: u64 = 28;

/// The directions of a PCIe link: servers of the sink.
#[derive(Clone, Copy, Debug)]
struct PcieLink {
    to_device: u16,
    to_host: u16,
}

impl HostLinkConfig {
    /// Time of the packets of a message.
    fn packets(&self, payload: u64) -> Nanos {
        let bytes = payload + payload.div_ceil(PACKET_BYTES) * PACKET_HEADERS;
        Nanos(bytes.div_ceil(self.nvme_lanes.max(1)) * 1000 / self.lane_mb_per_s)
    }
}

/// A device behind command queues and a link.
pub struct HostLink {
    base: Base<HostLinkConfig>,
    /// The PCIe link, if a command has used it.
    pcie: Option<PcieLink>,
    reads: Fifo,
    writes: Fifo,
    /// Completion of the decoding of the last command.
    decoded: Tok,
    /// Completion of the last command of the slow path.
    barrier: Tok,
}

impl HostLink {
    /// Puts a host link before a device, the only one of `devices`.
    #[must_use]
    pub fn new(config: HostLinkConfig, devices: Devices) -> HostLink {
        HostLink {
            reads: Fifo::new(config.read_queue),
            writes: Fifo::new(config.write_queue),
            decoded: Tok::default(),
            barrier: Tok::default(),
            pcie: None,
            base: Base::new(config, devices),
        }
    }

    /// Sends messages over the PCIe link, one directly after the other.
    fn send(&mut self, sink: &mut Sink, to_host: bool, payloads: &[u64], after: Tok) -> Tok {
        let link = *self
            .pcie
            .get_or_insert_with(|| PcieLink { to_device: sink.add_server(), to_host: sink.add_server() });
        let server = if to_host { link.to_host } else { link.to_device };
        let config = &self.base.config;
        let time = payloads.iter().map(|&bytes| config.packets(bytes)).fold(Nanos::ZERO, |all, t| all + t);
        sink.serve(server, after, time)
    }

    /// Doorbell of the host, read of the queue entry by the device, and the entry.
    fn fetch(&mut self, sink: &mut Sink, after: Tok) -> Tok {
        let rung = self.send(sink, false, &[message::DOORBELL], after);
        let asked = self.send(sink, true, &[message::READ_REQUEST], rung);
        self.send(sink, false, &[message::SUBMISSION], asked)
    }

    /// Sends the data of a read, if there are any, and the completion to the host, which rings the
    /// doorbell of the completion queue.
    fn complete(&mut self, sink: &mut Sink, data: u64, done: Tok) -> Tok {
        let completed = self.send(sink, true, &[data, message::COMPLETION], done);
        self.send(sink, false, &[message::DOORBELL], completed);
        completed
    }

    fn is_nvme(&self) -> bool {
        self.base.config.nvme_lanes > 0
    }

    /// Token that is done when the device has the next command.
    fn decode(&mut self, sink: &mut Sink, after: Tok) -> Tok {
        let after = sink.join(after, self.barrier);
        if self.is_nvme() {
            return self.fetch(sink, after);
        }
        if self.base.config.command_ns == 0 {
            return after;
        }
        let ready = sink.join(after, self.decoded);
        self.decoded = sink.delay(ready, Nanos(self.base.config.command_ns));
        self.decoded
    }

    /// Token after which a command of the slow path begins.
    fn queued(&mut self, sink: &mut Sink, after: Tok) -> Tok {
        let decoded = self.decode(sink, after);
        if !self.base.config.slow_path {
            return decoded;
        }
        let (reads, writes) = (self.reads.all(sink), self.writes.all(sink));
        let queued = sink.join(reads, writes);
        sink.join(decoded, queued)
    }

    fn end_slow(&mut self, sink: &mut Sink, done: Tok) -> Tok {
        let done = if self.is_nvme() { self.complete(sink, 0, done) } else { done };
        if self.base.config.slow_path {
            self.barrier = sink.join(self.barrier, done);
        }
        done
    }
}

impl Composer for HostLink {
    const NAME: &'static str = "host-link";
    const PASSES_HINTS: bool = true;
    const FORGIVES_SYNCS: bool = true;
    type Config = HostLinkConfig;

    fn base(&self) -> &Base<HostLinkConfig> {
        &self.base
    }

    fn base_mut(&mut self) -> &mut Base<HostLinkConfig> {
        &mut self.base
    }

    fn prefetch(&self, next: &[(Sector, u32)]) {
        self.base.devices.get(0).prefetch(next);
    }

    fn read(&mut self, sink: &mut Sink, at: u64, into: ReadTarget<'_>, after: Tok) -> Result<Tok> {
        let (place, bytes) = (self.reads.place(sink), u64::from(into.len()));
        let after = sink.join(after, place);
        let begin = self.decode(sink, after);
        let read = self.base.devices.get_mut(0).read(sink, at, into, Cause::Host, begin)?;
        if self.is_nvme() {
            let done = self.complete(sink, bytes, read);
            self.reads.add(sink, done);
            return Ok(done);
        }
        if !self.base.config.read_in_order {
            // Reads that end later must not hold back those that end earlier.
            self.reads.link = SerialLink::default();
        }
        let done = self.reads.link.transfer(sink, read, bytes, self.base.config.read_mb_per_s);
        self.reads.add(sink, done);
        Ok(done)
    }

    fn write(&mut self, sink: &mut Sink, at: u64, data: WriteData<'_>, after: Tok) -> Result<Tok> {
        let place = self.writes.place(sink);
        let after = sink.join(after, place);
        let decoded = self.decode(sink, after);
        let (bytes, rate) = (u64::from(data.len()), self.base.config.write_mb_per_s);
        let there = if self.is_nvme() {
            let asked = self.send(sink, true, &[message::READ_REQUEST], decoded);
            self.send(sink, false, &[bytes], asked)
        } else {
            self.writes.link.transfer(sink, decoded, bytes, rate)
        };
        let mut done = self.base.devices.get_mut(0).write(sink, at, data, Cause::Host, there)?;
        if self.is_nvme() {
            done = self.complete(sink, 0, done);
        }
        self.writes.add(sink, done);
        Ok(done)
    }

    fn zero(&mut self, sink: &mut Sink, at: u64, len: u64, after: Tok) -> Result<Tok> {
        let begin = self.queued(sink, after);
        let done = self.base.devices.get_mut(0).zero(sink, at, len, Cause::Host, begin)?;
        Ok(self.end_slow(sink, done))
    }

    fn flush(&mut self, sink: &mut Sink, after: Tok) -> Result<Tok> {
        let begin = self.queued(sink, after);
        let done = self.base.devices.flush(sink, Cause::Host, begin)?;
        Ok(self.end_slow(sink, done))
    }
}

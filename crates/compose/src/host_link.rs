//! The host interface of a drive: command queues, and a link for the data.
//!
//! The model is that of the OpenSSD board (Saxena et al., FAST 2013, section 2): a FIFO of reads and one
//! of writes on a fast path, other commands on a slow path that waits for all queued commands, and a
//! DMA controller that copies data through a circular buffer, so in the order of the commands.

use crate::composed::{Base, Composer};
use crate::devices::Devices;
use frit_core::convert::{bounded_u32, to_usize};
use frit_core::transfer::SerialLink;
use frit_core::{BlockDevice, Cause, Nanos, ReadTarget, Result, Sector, Sink, WriteData};
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
        "slow_path" slow_path: bool as Switch = true, fixed,
            "a flush or a discard waits for all queued commands, and later commands for it";
    }
}

/// Commands of one direction that the device has, and the transfers of their data.
#[derive(Debug)]
struct Fifo<T> {
    /// Completions of the last commands, the oldest first. A full queue has its depth of them.
    done: VecDeque<T>,
    /// Largest number of commands; 0 if there is none.
    depth: usize,
    /// Completion of all commands that left `done`.
    earlier: T,
    link: SerialLink<T>,
}

impl<T: Copy + Default> Fifo<T> {
    fn new(depth: u64) -> Fifo<T> {
        let depth = to_usize(bounded_u32(depth));
        Fifo { done: VecDeque::new(), depth, earlier: T::default(), link: SerialLink::default() }
    }

    /// Token after which the queue has a place.
    fn place<S: Sink<Tok = T>>(&mut self, sink: &mut S) -> T {
        if self.depth == 0 || self.done.len() < self.depth {
            return T::default();
        }
        let Some(oldest) = self.done.pop_front() else { return T::default() };
        self.earlier = sink.join(self.earlier, oldest);
        // Commands leave a FIFO in its order.
        self.earlier
    }

    fn add<S: Sink<Tok = T>>(&mut self, sink: &mut S, done: T) {
        if self.depth == 0 {
            self.earlier = sink.join(self.earlier, done);
        } else {
            self.done.push_back(done);
        }
    }

    /// Token that is done when all commands so far are done.
    fn all<S: Sink<Tok = T>>(&self, sink: &mut S) -> T {
        self.done.iter().fold(self.earlier, |all, &done| sink.join(all, done))
    }
}

/// A device behind command queues and a link.
pub struct HostLink<S: Sink> {
    base: Base<S, HostLinkConfig>,
    reads: Fifo<S::Tok>,
    writes: Fifo<S::Tok>,
    /// Completion of the decoding of the last command.
    decoded: S::Tok,
    /// Completion of the last command of the slow path.
    barrier: S::Tok,
}

impl<S: Sink> HostLink<S> {
    /// Puts a host link before a device, the only one of `devices`.
    #[must_use]
    pub fn new(config: HostLinkConfig, devices: Devices<S>) -> HostLink<S> {
        HostLink {
            reads: Fifo::new(config.read_queue),
            writes: Fifo::new(config.write_queue),
            decoded: S::Tok::default(),
            barrier: S::Tok::default(),
            base: Base::new(config, devices),
        }
    }

    /// Token that is done when the next command is decoded.
    fn decode(&mut self, sink: &mut S, after: S::Tok) -> S::Tok {
        let after = sink.join(after, self.barrier);
        if self.base.config.command_ns == 0 {
            return after;
        }
        let ready = sink.join(after, self.decoded);
        self.decoded = sink.delay(ready, Nanos(self.base.config.command_ns));
        self.decoded
    }

    /// Token after which a command of the slow path begins.
    fn queued(&mut self, sink: &mut S, after: S::Tok) -> S::Tok {
        let decoded = self.decode(sink, after);
        if !self.base.config.slow_path {
            return decoded;
        }
        let (reads, writes) = (self.reads.all(sink), self.writes.all(sink));
        let queued = sink.join(reads, writes);
        sink.join(decoded, queued)
    }

    fn end_slow(&mut self, sink: &mut S, done: S::Tok) -> S::Tok {
        if self.base.config.slow_path {
            self.barrier = sink.join(self.barrier, done);
        }
        done
    }
}

impl<S: Sink + 'static> Composer<S> for HostLink<S> {
    const NAME: &'static str = "host-link";
    const PASSES_HINTS: bool = true;
    type Config = HostLinkConfig;

    fn base(&self) -> &Base<S, HostLinkConfig> {
        &self.base
    }

    fn base_mut(&mut self) -> &mut Base<S, HostLinkConfig> {
        &mut self.base
    }

    fn prefetch(&self, next: &[(Sector, u32)]) {
        self.base.devices.get(0).prefetch(next);
    }

    fn read(&mut self, sink: &mut S, at: u64, into: ReadTarget<'_>, after: S::Tok) -> Result<S::Tok> {
        let (place, bytes) = (self.reads.place(sink), u64::from(into.len()));
        let after = sink.join(after, place);
        let begin = self.decode(sink, after);
        let read = self.base.devices.get_mut(0).read(sink, at, into, Cause::Host, begin)?;
        if !self.base.config.read_in_order {
            // Reads that end later must not hold back those that end earlier.
            self.reads.link = SerialLink::default();
        }
        let done = self.reads.link.transfer(sink, read, bytes, self.base.config.read_mb_per_s);
        self.reads.add(sink, done);
        Ok(done)
    }

    fn write(&mut self, sink: &mut S, at: u64, data: WriteData<'_>, after: S::Tok) -> Result<S::Tok> {
        let place = self.writes.place(sink);
        let after = sink.join(after, place);
        let decoded = self.decode(sink, after);
        let (bytes, rate) = (u64::from(data.len()), self.base.config.write_mb_per_s);
        let there = self.writes.link.transfer(sink, decoded, bytes, rate);
        let done = self.base.devices.get_mut(0).write(sink, at, data, Cause::Host, there)?;
        self.writes.add(sink, done);
        Ok(done)
    }

    fn zero(&mut self, sink: &mut S, at: u64, len: u64, after: S::Tok) -> Result<S::Tok> {
        let begin = self.queued(sink, after);
        let done = self.base.devices.get_mut(0).zero(sink, at, len, Cause::Host, begin)?;
        Ok(self.end_slow(sink, done))
    }

    fn flush(&mut self, sink: &mut S, after: S::Tok) -> Result<S::Tok> {
        let begin = self.queued(sink, after);
        let done = self.base.devices.flush(sink, Cause::Host, begin)?;
        Ok(self.end_slow(sink, done))
    }
}

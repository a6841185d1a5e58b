//! Scheduler of HFSL: circular queues, and batches that are sent only when the device is idle.
//!
//! After section 2.6.3 of "A user-visible solid-state storage system with software-defined fusion
//! methods for PCM and NAND flash" (2016). Where the paper leaves details open, this implementation
//! assumes:
//! - `n` (`MAX_CMD_SEND_COUNTER`) limits the size of a batch: over all channels if the device has
//!   one counter, per channel if each channel has its own. Channels take turns with one command
//!   each.
//! - A circular queue holds at most `queue-capacity` commands that are not done. Further commands
//!   wait in front of it in order, so that the capacity affects only the size of batches.
//! - "A completion interrupt will be sent to the host after all requests are handled": the host is
//!   notified of all commands of a batch when the last of them ends. Commands that wait for one of
//!   them join the next batch.
//! - Commands to DRAM do not cross the host interface and are not batched.

use super::{Scheduler, number, unknown};
use crate::event::{CmdId, Queues};
use frit_core::visible::Metric;
use frit_core::{Error, MediumKind, Nanos, ParamInfo, Params, Result, UnitId};
use std::collections::VecDeque;

/// Sends commands to the device in batches.
#[derive(Clone, Debug)]
pub struct Hfsl {
    n: u32,
    capacity: u32,
    transfer: Nanos,
    timer: Nanos,
    per_channel: bool,
    /// The circular queue of each channel.
    rings: Vec<VecDeque<CmdId>>,
    /// One group for the device, or one per channel.
    groups: Vec<CounterGroup>,
    /// Time until which the host interface is busy.
    link_free: Nanos,
    batches: u64,
    commands: u64,
}

/// The commands that share one counter.
#[derive(Clone, Default, Debug)]
struct CounterGroup {
    /// The data counter of the paper: commands that were sent and are not done.
    counter: u32,
    /// The batch that is being transferred to the device.
    sending: Vec<CmdId>,
    /// The commands of the batch that the device has finished.
    finished: Vec<CmdId>,
    /// A check of the counter is scheduled.
    check_due: bool,
    /// The channel whose command is taken next.
    next_channel: usize,
}

impl Default for Hfsl {
    /// Default parameters. The paper states the range of `n`, 8 to 255, but no value: 32 is in the
    /// middle of the range by powers of two. It states no transfer time either; 5 µs is an
    /// assumption (a DMA descriptor, a doorbell and an interrupt over PCIe Gen1 ×4 with a soft-core
    /// processor), to be varied.
    fn default() -> Self {
        Hfsl {
            n: 32,
            capacity: 255,
            transfer: Nanos(5_000),
            timer: Nanos::ZERO,
            per_channel: false,
            rings: Vec::new(),
            groups: Vec::new(),
            link_free: Nanos::ZERO,
            batches: 0,
            commands: 0,
        }
    }
}

/// Timers: the check of a group's counter, and the arrival of its batch at the device.
const CHECK: u32 = 0;
const ARRIVE: u32 = 1;

impl Hfsl {
    fn group_of(&self, channel: usize) -> usize {
        if self.per_channel { channel } else { 0 }
    }

    fn batched(queues: &Queues, id: CmdId) -> bool {
        queues.cmd(id).op.medium() != MediumKind::Dram
    }

    fn channels(&self, group: usize) -> std::ops::Range<usize> {
        if self.per_channel { group..group + 1 } else { 0..self.rings.len() }
    }

    /// Schedules a check of the counter at the next tick, if it is zero and commands wait.
    fn schedule_check(&mut self, queues: &mut Queues, group: usize) {
        let waits = self.rings[self.channels(group)].iter().any(|r| !r.is_empty());
        let g = &mut self.groups[group];
        if g.check_due || g.counter > 0 || !waits {
            return;
        }
        g.check_due = true;
        let now = queues.now();
        let at = match self.timer {
            Nanos::ZERO => now,
            Nanos(period) => Nanos(now.0.div_ceil(period) * period),
        };
        queues.timer(at, group as u32 * 2 + CHECK);
    }

    /// Sends the next batch.
    fn dispatch(&mut self, queues: &mut Queues, group: usize) {
        let channels = self.channels(group);
        let g = &mut self.groups[group];
        g.check_due = false;
        if g.counter > 0 {
            return;
        }
        // A round takes at most one command per channel, so a channel adds at most `capacity`
        // commands.
        for _ in 0..self.capacity {
            let before = g.sending.len();
            let turn = g.next_channel;
            for i in 0..channels.len() {
                let offset = (turn + i) % channels.len();
                if g.sending.len() == self.n as usize {
                    break;
                }
                if let Some(id) = self.rings[channels.start + offset].pop_front() {
                    g.sending.push(id);
                    g.next_channel = (offset + 1) % channels.len();
                }
            }
            if g.sending.len() == before {
                break;
            }
        }
        g.counter = g.sending.len() as u32;
        if g.counter > 0 {
            self.batches += 1;
            self.commands += u64::from(g.counter);
            // All groups share the host interface, which transfers one batch at a time.
            self.link_free = self.link_free.max(queues.now()) + self.transfer;
            queues.timer(self.link_free, group as u32 * 2 + ARRIVE);
        }
    }
}

impl Scheduler for Hfsl {
    fn attach(&mut self, queues: &Queues) {
        self.rings = vec![VecDeque::new(); queues.channels()];
        self.groups = vec![CounterGroup::default(); if self.per_channel { queues.channels() } else { 1 }];
    }

    fn ready(&mut self, queues: &mut Queues, id: CmdId) {
        if !Hfsl::batched(queues, id) {
            return queues.send(id);
        }
        let channel = queues.channel_of(queues.cmd(id).unit);
        self.rings[channel].push_back(id);
        let group = self.group_of(channel);
        self.schedule_check(queues, group);
    }

    fn pick(&mut self, queues: &Queues, unit: UnitId) -> Option<CmdId> {
        queues.sent(unit).next().map(|w| w.id)
    }

    fn finished(&mut self, queues: &mut Queues, id: CmdId) {
        if !Hfsl::batched(queues, id) {
            return queues.complete(id);
        }
        let group = self.group_of(queues.channel_of(queues.cmd(id).unit));
        let g = &mut self.groups[group];
        g.finished.push(id);
        g.counter -= 1;
        if g.counter == 0 {
            for id in g.finished.drain(..) {
                queues.complete(id);
            }
            self.schedule_check(queues, group);
        }
    }

    fn timer(&mut self, queues: &mut Queues, token: u32) {
        let group = (token / 2) as usize;
        if token % 2 == CHECK {
            return self.dispatch(queues, group);
        }
        for id in self.groups[group].sending.drain(..) {
            queues.send(id);
        }
    }

    fn params(&mut self) -> &mut dyn Params {
        self
    }

    fn metrics(&self) -> Vec<Metric> {
        let mean = if self.batches == 0 { 0.0 } else { self.commands as f64 / self.batches as f64 };
        vec![
            Metric {
                name: "batches",
                value: self.batches as f64,
                unit: "batches",
                help: "batches sent to the device",
            },
            Metric { name: "batch_size", value: mean, unit: "commands", help: "mean commands in a batch" },
        ]
    }
}

impl Params for Hfsl {
    fn list(&self) -> Vec<ParamInfo> {
        let info = |key: &'static str, help, value, live| ParamInfo { key: key.into(), help, value, live };
        vec![
            info(
                "max-cmd-send-counter",
                "n: maximum number of commands in a batch; 8 to 255",
                self.n.to_string(),
                true,
            ),
            info(
                "queue-capacity",
                "commands in the circular queue of a channel; 1 to 65535",
                self.capacity.to_string(),
                true,
            ),
            info("transfer-ns", "cost of one host-device transfer", self.transfer.0.to_string(), true),
            info(
                "timer-ns",
                "period of the checks of the counter; 0: at once when it becomes zero",
                self.timer.0.to_string(),
                true,
            ),
            info(
                "counter",
                "scope of a counter of outstanding commands: device or channel",
                if self.per_channel { "channel" } else { "device" }.into(),
                false,
            ),
        ]
    }

    fn set(&mut self, key: &str, value: &str) -> Result<()> {
        const HOUR_NS: u64 = 3_600_000_000_000;
        match key {
            "max-cmd-send-counter" => self.n = number(key, value, 8..=255)? as u32,
            "queue-capacity" => self.capacity = number(key, value, 1..=65_535)? as u32,
            "transfer-ns" => self.transfer = Nanos(number(key, value, 0..=HOUR_NS)?),
            "timer-ns" => self.timer = Nanos(number(key, value, 0..=HOUR_NS)?),
            "counter" => {
                let per_channel = match value.trim() {
                    "device" => false,
                    "channel" => true,
                    _ => return Err(Error::param(key, value, "has to be device or channel")),
                };
                if !self.groups.is_empty() && per_channel != self.per_channel {
                    return Err(Error::param(
                        key,
                        value,
                        "cannot be changed while the engine runs; set it in the stack",
                    ));
                }
                self.per_channel = per_channel;
            }
            _ => return Err(unknown(key, value, self)),
        }
        Ok(())
    }
}

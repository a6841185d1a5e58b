//! Which commands of a unit may not overtake each other, without looking through its queue.
//!
//! Commands of one hazard form a chain: each knows the nearest before and behind it that has not
//! started. An erase and a fence ("barriers") count the commands before them that they must follow.
//! A command is released to the scheduler only when all that it must follow are released, so that a
//! scheduler that sends in the order of release can never send a command without those.

use super::state::{CmdId, NONE, Queues, Stage};
use frit_core::{Cmd, Op};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// The last command of each chain, by unit and hazard.
pub(super) type Chains = HashMap<u64, u32, BuildHasherDefault<Mix>>;

/// A hash for keys that are spread already but for their high bits: one multiplication (Fibonacci
/// hashing, Knuth, The Art of Computer Programming 3, section 6.4).
#[derive(Default)]
pub(super) struct Mix(u64);

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&b| self.write_u64(u64::from(b)));
    }
    fn write_u64(&mut self, n: u64) {
        let h = (self.0 ^ n).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = h ^ (h >> 32);
    }
}

/// What a command knows of those that it must follow.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Order {
    /// Its number on the engine, in order of emission.
    seq: u64,
    /// Neighbours in the chain of its hazard that have not started.
    before: u32,
    behind: u32,
    /// Barriers: commands before it that it must follow and that have not started.
    unstarted: u32,
    /// Of these, those that are not released.
    unreleased: u32,
}

/// What a unit knows: commands that have not started, and of these those not released, by whether they
/// read.
#[derive(Clone, Default, Debug)]
pub(super) struct UnitOrder {
    unstarted: [u32; 2],
    unreleased: [u32; 2],
    /// Erases and fences that have not started, in order of emission.
    barriers: Vec<u32>,
}

fn is_barrier(op: Op) -> bool {
    matches!(op, Op::NandErase | Op::PcmFence)
}

/// Whether a barrier must follow what reads (an erase) or what does not (a fence).
fn follows(barrier: Op, reads: bool) -> bool {
    reads == (barrier == Op::NandErase)
}

fn key(cmd: &Cmd) -> u64 {
    u64::from(cmd.unit.0) << 32 | u64::from(cmd.hazard)
}

impl Queues {
    /// Whether `later` may not overtake `earlier` on the unit of both: they have the same hazard, an
    /// erase meets a read, or a fence meets anything but a read.
    #[must_use]
    pub fn must_follow(earlier: &Cmd, later: &Cmd) -> bool {
        earlier.hazard == later.hazard
            || (is_barrier(later.op) && follows(later.op, earlier.op.is_read()))
            || (earlier.op == Op::PcmFence && !later.op.is_read())
    }

    /// Whether a command that waits would overtake one that it must follow.
    #[inline]
    #[must_use]
    pub fn blocked(&self, id: CmdId) -> bool {
        let node = &self.nodes[id.0 as usize];
        node.order.before != NONE || node.order.unstarted > 0 || self.fence_before(id.0, |_| true)
    }

    /// Enters a new command.
    pub(super) fn enter(&mut self, id: u32) {
        self.emitted += 1;
        let cmd = self.nodes[id as usize].cmd;
        let last = self.chains.insert(key(&cmd), id).unwrap_or(NONE);
        if last != NONE {
            self.nodes[last as usize].order.behind = id;
        }
        let unit = &mut self.units[cmd.unit.idx()].order;
        let order = &mut self.nodes[id as usize].order;
        *order = Order { seq: self.emitted, before: last, ..Order::default() };
        if is_barrier(cmd.op) {
            let class = usize::from(follows(cmd.op, true));
            order.unstarted = unit.unstarted[class];
            order.unreleased = unit.unreleased[class];
            unit.barriers.push(id);
        }
        let class = usize::from(cmd.op.is_read());
        unit.unstarted[class] += 1;
        unit.unreleased[class] += 1;
    }

    /// Whether all that a command must follow are released.
    #[inline]
    pub(super) fn may_release(&self, id: u32) -> bool {
        let order = &self.nodes[id as usize].order;
        let unreleased = |n: u32| matches!(self.nodes[n as usize].stage, Stage::Waits | Stage::Held);
        (order.before == NONE || !unreleased(order.before))
            && order.unreleased == 0
            && !self.fence_before(id, unreleased)
    }

    /// A command was released: wakes those that were held for it.
    pub(super) fn wake_held(&mut self, id: u32) {
        let node = &self.nodes[id as usize];
        let (cmd, order) = (node.cmd, node.order);
        self.units[cmd.unit.idx()].order.unreleased[usize::from(cmd.op.is_read())] -= 1;
        self.wake_if_held(order.behind);
        self.each_barrier_behind(&cmd, order.seq, |o| &mut o.unreleased);
        if cmd.op == Op::PcmFence {
            let mut at = self.nodes[id as usize].next;
            while at != NONE {
                self.wake_if_held(at);
                at = self.nodes[at as usize].next;
            }
        }
    }

    /// A command starts: it holds back nothing any more.
    pub(super) fn leave(&mut self, id: u32) {
        let node = &self.nodes[id as usize];
        let (cmd, order) = (node.cmd, node.order);
        if order.behind == NONE {
            self.chains.remove(&key(&cmd));
        } else {
            self.nodes[order.behind as usize].order.before = NONE;
        }
        let unit = &mut self.units[cmd.unit.idx()].order;
        unit.unstarted[usize::from(cmd.op.is_read())] -= 1;
        if is_barrier(cmd.op) {
            unit.barriers.retain(|&b| b != id);
        }
        self.each_barrier_behind(&cmd, order.seq, |o| &mut o.unstarted);
    }

    fn wake_if_held(&mut self, id: u32) {
        if id != NONE && self.nodes[id as usize].stage == Stage::Held {
            self.woken.push_back(id);
        }
    }

    /// Counts down in the barriers that must follow a command, and wakes those that were held for it.
    #[inline]
    fn each_barrier_behind(&mut self, cmd: &Cmd, seq: u64, count: impl Fn(&mut Order) -> &mut u32) {
        for i in (0..self.units[cmd.unit.idx()].order.barriers.len()).rev() {
            let barrier = self.units[cmd.unit.idx()].order.barriers[i];
            let node = &mut self.nodes[barrier as usize];
            if node.order.seq < seq {
                break;
            }
            if node.order.seq > seq && follows(node.cmd.op, cmd.op.is_read()) {
                *count(&mut node.order) -= 1;
                self.wake_if_held(barrier);
            }
        }
    }

    /// Whether a fence that fits comes before a command that must follow it.
    #[inline]
    fn fence_before(&self, id: u32, fits: impl Fn(u32) -> bool) -> bool {
        let node = &self.nodes[id as usize];
        let barriers = &self.units[node.cmd.unit.idx()].order.barriers;
        !barriers.is_empty()
            && !node.cmd.op.is_read()
            && barriers
                .iter()
                .take_while(|&&b| self.nodes[b as usize].order.seq < node.order.seq)
                .any(|&b| self.nodes[b as usize].cmd.op == Op::PcmFence && fits(b))
    }
}

//! Ordering of the commands of a unit, tracked without scanning its queue: the commands that must
//! not overtake each other.
//!
//! Commands with the same hazard form a chain: each is linked to its nearest neighbours that have
//! not started. Erases and fences ("barriers") count the commands before them that they must
//! follow. A command is released to the scheduler only when all commands that it must follow are
//! released, so that a scheduler that sends in the order of release never sends a command before
//! one that it must follow.
//!
//! A read of NAND is in no chain: it follows only the last program of its page or erase of its block, if
//! that has not started. Such a command has a list of these reads.
//!
//! There can be as many fences as writes, so no counter is kept per fence. A command that does not
//! read and follows a fence waits for it; therefore all such commands that are released (or
//! started) precede every fence that is not, and two sums per unit suffice to tell how many
//! commands a fence still waits for.

use super::hazard_links::HazardLinks;
use super::state::{CmdId, NONE, Queues, Stage};
use frit_core::{Cmd, Op};

fn key(cmd: &Cmd) -> u64 {
    u64::from(cmd.unit.0) << 32 | u64::from(cmd.hazard)
}

impl Queues {
    /// Returns `true` if `later` must not overtake `earlier` on their common unit: they have the
    /// same hazard, an erase follows a read, or one is a fence and neither is a read. A read of NAND
    /// follows erases of its block, but only those programs of it that write its page, and no program
    /// follows it: pages are not written again without an erase.
    #[must_use]
    pub fn must_follow(&self, earlier: &Cmd, later: &Cmd) -> bool {
        let same = earlier.hazard == later.hazard
            && match (earlier.op, later.op) {
                (Op::NandErase, Op::NandRead) => true,
                (Op::NandRead, _) => false,
                (_, Op::NandRead) => self.page_key(earlier) == self.page_key(later),
                _ => true,
            };
        same || (later.op == Op::NandErase && earlier.op.is_read())
            || ((later.op.is_fence() || earlier.op.is_fence())
                && !earlier.op.is_read()
                && !later.op.is_read())
    }

    /// Returns `true` if a waiting command would overtake a command that it must follow.
    #[inline]
    #[must_use]
    pub fn blocked(&self, id: CmdId) -> bool {
        let node = &self.nodes[id.0 as usize];
        let unit = &self.units[node.cmd.unit.idx()].order;
        node.order.chain_prev != NONE
            || node.order.unstarted > 0
            || (node.cmd.op.is_fence() && node.order.entered > unit.started)
            || self.follows_fence(id.0, unit.fences.front())
    }

    /// Returns `true` if a command that does not yield to the host has the hazard of this command and
    /// was emitted after it, so that it waits for this one.
    #[must_use]
    pub fn is_followed_by_host(&self, id: CmdId) -> bool {
        let node = &self.nodes[id.0 as usize];
        // The chain of a read of NAND has the reads after the same program, which do not wait for it.
        let mut at = if node.cmd.op == Op::NandRead { NONE } else { node.order.chain_next };
        while at != NONE {
            let next = &self.nodes[at as usize];
            if !next.cmd.cause.yields_to_host() {
                return true;
            }
            at = next.order.chain_next;
        }
        false
    }

    /// Identifies the program unit of a command.
    #[inline]
    fn page_key(&self, cmd: &Cmd) -> u64 {
        // The address of a NAND command is a page number of 32 bits.
        let pages = u64::from(self.units[cmd.unit.idx()].program_pages);
        u64::from(cmd.unit.0) << 32 | ((cmd.addr & !Cmd::ONE_BIT) / pages)
    }

    /// Registers a read of NAND.
    fn register_read(&mut self, id: u32) {
        let cmd = self.nodes[id as usize].cmd;
        let program = self.pages.get(&self.page_key(&cmd)).copied().unwrap_or(NONE);
        let unit = &mut self.units[cmd.unit.idx()].order;
        unit.unstarted_reads += 1;
        unit.unreleased_reads += 1;
        let is_of_block = |&&erase: &&u32| self.nodes[erase as usize].cmd.hazard == cmd.hazard;
        let erase = unit.erases.iter().rev().find(is_of_block).copied().unwrap_or(NONE);
        let seq = |id: u32| self.nodes[id as usize].order.seq;
        let last =
            if erase != NONE && (program == NONE || seq(program) < seq(erase)) { erase } else { program };
        let entered = unit.entered;
        let mut order =
            HazardLinks { seq: self.emitted, chain_prev: last, entered, ..HazardLinks::default() };
        if last != NONE {
            order.chain_next = std::mem::replace(&mut self.nodes[last as usize].order.readers, id);
        }
        self.nodes[id as usize].order = order;
    }

    /// Registers a new command.
    pub(super) fn register(&mut self, id: u32) {
        self.emitted += 1;
        let cmd = self.nodes[id as usize].cmd;
        if cmd.op == Op::NandRead {
            return self.register_read(id);
        }
        let last = self.chains.insert(key(&cmd), id).unwrap_or(NONE);
        if last != NONE {
            self.nodes[last as usize].order.chain_next = id;
        }
        let unit = &mut self.units[cmd.unit.idx()].order;
        let order = &mut self.nodes[id as usize].order;
        *order = HazardLinks { seq: self.emitted, chain_prev: last, ..HazardLinks::default() };
        order.entered = unit.entered;
        match cmd.op {
            Op::NandErase => {
                order.unstarted = unit.unstarted_reads;
                order.unreleased = unit.unreleased_reads;
                unit.erases.push(id);
            }
            op if op.is_fence() => unit.fences.push_back(id),
            Op::NandProgram | Op::NandCopyback => {
                let page = self.page_key(&cmd);
                self.pages.insert(page, id);
            }
            _ => {}
        }
        let unit = &mut self.units[cmd.unit.idx()].order;
        if cmd.op.is_read() {
            unit.unstarted_reads += 1;
            unit.unreleased_reads += 1;
        } else {
            unit.entered += 1;
        }
    }

    /// Returns `true` if all commands that a command must follow are released.
    #[inline]
    pub(super) fn may_release(&self, id: u32) -> bool {
        let node = &self.nodes[id as usize];
        let unreleased = |n: u32| matches!(self.nodes[n as usize].stage, Stage::Waits | Stage::Held);
        let unit = &self.units[node.cmd.unit.idx()].order;
        (node.order.chain_prev == NONE || !unreleased(node.order.chain_prev))
            && node.order.unreleased == 0
            && (!node.cmd.op.is_fence() || node.order.entered <= unit.released)
            && !self.follows_fence(id, unit.fences.get(unit.fences_released))
    }

    /// Counts a released command and wakes the commands that waited for it.
    pub(super) fn wake_followers(&mut self, id: u32) {
        let node = &self.nodes[id as usize];
        let (cmd, order, next) = (node.cmd, node.order, node.next);
        if cmd.op != Op::NandRead {
            self.wake_if_waiting(order.chain_next);
            let mut read = order.readers;
            while read != NONE {
                self.wake_if_waiting(read);
                read = self.nodes[read as usize].order.chain_next;
            }
        }
        let unit = &mut self.units[cmd.unit.idx()].order;
        if cmd.op.is_read() {
            unit.unreleased_reads -= 1;
            return self.decrement_later_erases(&cmd, order.seq, |o| &mut o.unreleased);
        }
        unit.released += 1;
        unit.fences_released += usize::from(cmd.op.is_fence());
        let fence = unit.fences.get(unit.fences_released).copied().unwrap_or(NONE);
        self.wake_if_waiting(fence);
        if cmd.op.is_fence() {
            // Commands after the next fence wait for that fence.
            let mut at = next;
            while at != NONE && at != fence {
                self.wake_if_waiting(at);
                at = self.nodes[at as usize].next;
            }
        }
    }

    /// Unregisters a command that starts: it blocks no other command any longer.
    pub(super) fn unregister(&mut self, id: u32) {
        let node = &self.nodes[id as usize];
        let (cmd, order) = (node.cmd, node.order);
        if cmd.op != Op::NandRead {
            self.leave_chain(id);
        }
        let unit = &mut self.units[cmd.unit.idx()].order;
        match cmd.op {
            Op::NandErase => unit.erases.retain(|&b| b != id),
            op if op.is_fence() => {
                // Fences start in order, and only after they are released.
                debug_assert_eq!(unit.fences.front(), Some(&id));
                unit.fences.pop_front();
                unit.fences_released -= 1;
            }
            _ => {}
        }
        if cmd.op.is_read() {
            unit.unstarted_reads -= 1;
            self.decrement_later_erases(&cmd, order.seq, |o| &mut o.unstarted);
        } else {
            unit.started += 1;
        }
    }

    /// Takes a command that starts out of its chain. The reads of its page or block no longer wait for it.
    fn leave_chain(&mut self, id: u32) {
        let node = &self.nodes[id as usize];
        let (cmd, order) = (node.cmd, node.order);
        if order.chain_next == NONE {
            self.chains.remove(&key(&cmd));
        } else {
            self.nodes[order.chain_next as usize].order.chain_prev = NONE;
        }
        let mut read = order.readers;
        while read != NONE {
            let links = &mut self.nodes[read as usize].order;
            links.chain_prev = NONE;
            read = std::mem::replace(&mut links.chain_next, NONE);
        }
        if matches!(cmd.op, Op::NandProgram | Op::NandCopyback) {
            let page = self.page_key(&cmd);
            if self.pages.get(&page) == Some(&id) {
                self.pages.remove(&page);
            }
        }
    }

    fn wake_if_waiting(&mut self, id: u32) {
        if id != NONE && self.nodes[id as usize].stage == Stage::Held {
            self.woken.push_back(id);
        }
    }

    /// Decrements a counter of each erase that must follow a read, and wakes the erases that
    /// waited for it.
    #[inline]
    fn decrement_later_erases(&mut self, cmd: &Cmd, seq: u64, count: impl Fn(&mut HazardLinks) -> &mut u32) {
        for i in (0..self.units[cmd.unit.idx()].order.erases.len()).rev() {
            let erase = self.units[cmd.unit.idx()].order.erases[i];
            let order = &mut self.nodes[erase as usize].order;
            if order.seq < seq {
                break;
            }
            *count(order) -= 1;
            self.wake_if_waiting(erase);
        }
    }

    /// Returns `true` if a command must follow a fence: it does not read, and was emitted after the
    /// fence.
    #[inline]
    fn follows_fence(&self, id: u32, fence: Option<&u32>) -> bool {
        let node = &self.nodes[id as usize];
        let behind = |&fence: &u32| self.nodes[fence as usize].order.seq < node.order.seq;
        !node.cmd.op.is_read() && fence.is_some_and(behind)
    }
}

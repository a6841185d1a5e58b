//! Disks in the event engine: the drive's own queue replaces the scheduler of the other media.
//!
//! A command that waits only for its disk enters the drive's queue at once, unless a command that
//! it must follow has not started: then it enters when that command starts. The drive chooses a
//! command when it is free, from the position of its arm at that time
//! ([`frit_media::disk::DriveQueue`]).
//!
//! Background commands yield in this queue, which must not cause a priority inversion: when a
//! command of the host arrives, all commands that it must follow stop yielding.

use super::disk_queue::NO_ARM;
use super::state::{CmdId, NONE, Queues, Stage};
use frit_core::{Nanos, UnitId};
use frit_media::TimingModel;
use frit_media::disk::{DriveJob, DriveRequest};

impl Queues {
    /// Returns `true` if the unit is a disk, which has its own queue.
    #[inline]
    pub(super) fn is_arm(&self, unit: UnitId) -> bool {
        self.units[unit.idx()].arm != NO_ARM
    }

    /// Registers a new command of a disk. If it belongs to the host, the commands that it must
    /// follow stop yielding.
    pub(super) fn register_at_disk(&mut self, id: u32) {
        let cmd = self.nodes[id as usize].cmd;
        if cmd.cause.is_background() {
            return;
        }
        let mut todo = std::mem::take(&mut self.promote_list);
        self.promote(id, &mut todo);
        while let Some(id) = todo.pop() {
            let node = &self.nodes[id as usize];
            let (order, op, mut at) = (node.order, node.cmd.op, node.prev);
            self.promote(order.before, &mut todo);
            if op.is_read() {
                continue;
            }
            let fences = &self.units[cmd.unit.idx()].order.fences;
            let before = fences.partition_point(|&f| self.nodes[f as usize].order.seq < order.seq);
            let fence = before.checked_sub(1).map_or(NONE, |i| fences[i]);
            self.promote(fence, &mut todo);
            // A fence must follow all commands before it that do not read. The loop ends at the
            // previous fence, which was marked above and covers the commands before it.
            while op.is_fence() && at != NONE && at != fence {
                if !self.nodes[at as usize].cmd.op.is_read() {
                    self.promote(at, &mut todo);
                }
                at = self.nodes[at as usize].prev;
            }
        }
        self.promote_list = todo;
    }

    /// Marks a command as urgent, and adds it to `todo` if it was not urgent before.
    fn promote(&mut self, id: u32, todo: &mut Vec<u32>) {
        if id == NONE || self.nodes[id as usize].role.urgent {
            return;
        }
        let node = &mut self.nodes[id as usize];
        node.role.urgent = true;
        let (enqueued, seq, unit) = (node.role.enqueued, node.order.seq, node.cmd.unit);
        if enqueued {
            let arm = usize::from(self.units[unit.idx()].arm);
            self.arms[arm].queue.promote(seq);
        }
        todo.push(id);
    }

    /// Moves a command that was sent into the drive's queue, unless it has to follow another
    /// command first.
    pub(super) fn enqueue_at_disk(&mut self, id: u32) {
        let node = &self.nodes[id as usize];
        if node.stage != Stage::Sent || node.role.enqueued || self.blocked(CmdId(id)) {
            return;
        }
        let unit = &self.units[node.cmd.unit.idx()];
        let job = DriveJob {
            request: DriveRequest::of(&node.cmd),
            number: node.order.seq,
            background: !node.role.urgent,
            tag: id,
        };
        if let TimingModel::Disk(drive) = &self.models[usize::from(unit.device)] {
            self.arms[usize::from(unit.arm)].queue.add(drive, job);
        }
        self.nodes[id as usize].role.enqueued = true;
    }

    /// Starts the command that the drive chooses, if its queue is not empty.
    pub(super) fn start_arm(&mut self, unit: UnitId) {
        let (u, now) = (&self.units[unit.idx()], self.now());
        let TimingModel::Disk(drive) = &self.models[usize::from(u.device)] else { return };
        let Some(id) = self.arms[usize::from(u.arm)].queue.pop(drive, now) else { return };
        let node = &self.nodes[id as usize];
        let (behind, mut at, is_fence) = (node.order.behind, node.next, node.cmd.op.is_fence());
        self.start(unit, CmdId(id));
        // Commands that had to follow it may enter the queue now.
        if behind != NONE {
            self.enqueue_at_disk(behind);
        }
        let fence = self.units[unit.idx()].order.fences.front().copied().unwrap_or(NONE);
        if fence != NONE {
            self.enqueue_at_disk(fence);
        }
        while is_fence && at != NONE && at != fence {
            self.enqueue_at_disk(at);
            at = self.nodes[at as usize].next;
        }
    }

    /// Completes a command of a disk: the host is notified at once.
    pub(super) fn finish_arm(&mut self, unit: UnitId, id: CmdId, took: Nanos) {
        let arm = usize::from(self.units[unit.idx()].arm);
        self.arms[arm].done += 1;
        self.arms[arm].busy += took;
        self.complete(id);
    }
}

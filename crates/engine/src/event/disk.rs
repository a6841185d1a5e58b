//! Disks in the event engine: the drive's own queue replaces the scheduler of the other media.
//!
//! A command that waits only for its disk enters the drive's queue at once, unless a command that
//! it must follow has not started: then it enters when that command starts. The drive chooses a
//! command when it is free, from the position of its arm at that time
//! ([`frit_media::disk::DriveQueue`]).
//!
//! Background commands yield in this queue, which must not cause a priority inversion: when a
//! command of the host arrives, all commands that it must follow stop yielding.

use super::disk_queue::NO_DISK;
use super::state::{CmdId, NONE, Queues, Stage};
use frit_core::{Nanos, UnitId};
use frit_media::TimingModel;
use frit_media::disk::{DriveJob, DriveRequest};

impl Queues {
    /// Returns `true` if the unit is a disk, which has its own queue.
    #[inline]
    pub(super) fn is_disk(&self, unit: UnitId) -> bool {
        self.units[unit.idx()].disk != NO_DISK
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
            self.promote(order.chain_prev, &mut todo);
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
        if id == NONE || self.nodes[id as usize].disk_job.urgent {
            return;
        }
        let node = &mut self.nodes[id as usize];
        node.disk_job.urgent = true;
        let (enqueued, seq, unit) = (node.disk_job.enqueued, node.order.seq, node.cmd.unit);
        if enqueued {
            let disk = usize::from(self.units[unit.idx()].disk);
            self.disks[disk].queue.promote(seq);
        }
        todo.push(id);
    }

    /// Moves a command that was sent into the drive's queue, unless it has to follow another
    /// command first.
    pub(super) fn enqueue_at_disk(&mut self, id: u32) {
        let node = &self.nodes[id as usize];
        if node.stage != Stage::Sent || node.disk_job.enqueued || self.blocked(CmdId(id)) {
            return;
        }
        let unit = &self.units[node.cmd.unit.idx()];
        let job = DriveJob {
            request: DriveRequest::of(&node.cmd),
            number: node.order.seq,
            background: !node.disk_job.urgent,
            tag: id,
        };
        if let TimingModel::Disk(drive) = &self.models[usize::from(unit.device)] {
            self.disks[usize::from(unit.disk)].queue.add(drive, job);
        }
        self.nodes[id as usize].disk_job.enqueued = true;
    }

    /// Starts the command that the drive chooses, if its queue is not empty.
    pub(super) fn start_disk(&mut self, unit: UnitId) {
        let (u, now) = (&self.units[unit.idx()], self.now());
        let TimingModel::Disk(drive) = &self.models[usize::from(u.device)] else { return };
        let Some(id) = self.disks[usize::from(u.disk)].queue.pop(drive, now) else { return };
        let node = &self.nodes[id as usize];
        let (follower, mut at, is_fence) = (node.order.chain_next, node.next, node.cmd.op.is_fence());
        self.start(unit, CmdId(id));
        // Commands that had to follow it may enter the queue now.
        if follower != NONE {
            self.enqueue_at_disk(follower);
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
    pub(super) fn finish_disk(&mut self, unit: UnitId, id: CmdId, took: Nanos) {
        let disk = usize::from(self.units[unit.idx()].disk);
        self.disks[disk].done += 1;
        self.disks[disk].busy += took;
        self.complete(id);
    }
}

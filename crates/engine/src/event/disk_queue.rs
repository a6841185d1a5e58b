//! Queues of the disks in the event engine, and the state of a command in them. `disk`
//! moves commands through them.

use frit_core::Nanos;
use frit_media::disk::DriveQueue;
use frit_media::{Hardware, TimingModel};

/// "None" among the disks of an engine. No disk has this number, since there are at most 255
/// devices.
pub(super) const NO_DISK: u8 = u8::MAX;

/// The queue and the statistics of one disk.
#[derive(Clone, Debug)]
pub(super) struct DiskQueue {
    pub(super) queue: DriveQueue<u32>,
    /// Number of completed commands, and their total service time.
    pub(super) done: u64,
    pub(super) busy: Nanos,
}

impl DiskQueue {
    /// Returns the expected service time of a command: the mean of the commands before it. A better
    /// estimate would need the order in which the drive will serve its queue.
    pub(super) fn expected(&self) -> Nanos {
        Nanos(self.busy.0.checked_div(self.done).unwrap_or(0))
    }
}

/// State of a command at a disk.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct DiskJobState {
    /// The command is in the drive's queue.
    pub(super) enqueued: bool,
    /// The command belongs to the host, or a command of the host must follow it.
    pub(super) urgent: bool,
}

/// Returns the disks of a stack, and for each device the index of its disk.
pub(super) fn disk_queues(hardware: &Hardware) -> (Vec<DiskQueue>, Vec<u8>) {
    let (mut disks, mut disk_of) = (Vec::new(), Vec::new());
    for model in hardware.models() {
        let TimingModel::Disk(drive) = model else {
            disk_of.push(NO_DISK);
            continue;
        };
        disk_of.push(disks.len() as u8);
        disks.push(DiskQueue { queue: DriveQueue::of(drive.spec()), done: 0, busy: Nanos::ZERO });
    }
    (disks, disk_of)
}

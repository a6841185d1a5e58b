//! Slots of the threads of this process in the shared memory of a mount.

use super::faults;
use super::mounts::{Mount, mounts};
use super::process;
use super::sys;
use super::thread::Thread;
use crate::segment::{SLOTS, Slot};
use std::sync::atomic::Ordering;

/// Returns the slot of a thread for a mount that was prepared. The thread may access files.
#[inline]
pub(super) fn slot(thread: &Thread, mount: &'static Mount) -> Option<&'static Slot> {
    let slot = thread.slots.get(mount.index())?.get();
    if !slot.is_null() && thread.ancestors.get() == process::ancestors() {
        // SAFETY: slots are in shared memory, which is never unmapped.
        return Some(unsafe { &*slot });
    }
    find_slot(thread, mount)
}

#[cold]
fn find_slot(thread: &Thread, mount: &'static Mount) -> Option<&'static Slot> {
    if !mount.is_registered() {
        return None;
    }
    if thread.ancestors.replace(process::ancestors()) != process::ancestors() {
        thread.slots.iter().for_each(|slot| slot.set(std::ptr::null()));
    }
    let segment = mount.segment();
    let owner = mount.owner();
    let free = |slot: &Slot| {
        let is_taken = slot.owner.load(Ordering::Relaxed) == 0
            && slot.owner.compare_exchange(0, owner, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        if is_taken {
            slot.reads.store(0, Ordering::Relaxed);
            slot.writes.store(0, Ordering::Relaxed);
        }
        is_taken
    };
    let ended = |slot: &Slot| {
        // A thread of this process that has ended.
        let number = slot.thread.load(Ordering::Relaxed);
        slot.owner.load(Ordering::Relaxed) == owner
            && slot.access.load(Ordering::Relaxed) == 0
            && number != 0
            // SAFETY: signal 0 only tests for the thread.
            && unsafe { sys::raw_call(sys::SYS_TGKILL, sys::process() as usize, number as usize, 0) } != 0
            && slot.thread.compare_exchange(number, 0, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    };
    let (index, slot) = segment
        .slots
        .iter()
        .enumerate()
        .take(SLOTS / 4)
        .find(|(_, slot)| free(slot))
        .or_else(|| segment.slots.iter().enumerate().find(|(_, slot)| ended(slot) || free(slot)))?;
    slot.thread.store(u64::from(sys::thread()), Ordering::Release);
    segment.head.slots_used.fetch_max(index as u32 + 1, Ordering::SeqCst);
    faults::unblock();
    thread.slots.get(mount.index())?.set(slot);
    Some(slot)
}

/// Returns the value of the lock of writers while the thread of a slot holds it.
#[inline]
pub(super) fn writer(mount: &Mount, slot: &Slot) -> u32 {
    let first = mount.segment().slots.as_ptr();
    ((std::ptr::from_ref(slot) as usize - first as usize) / size_of::<Slot>()) as u32 + 1
}

/// Returns the numbers of direct reads and writes of this process.
pub(super) fn direct_accesses() -> (u64, u64) {
    let mut sum = (0, 0);
    for mount in mounts() {
        if !mount.is_registered() {
            continue;
        }
        let owner = mount.owner();
        for slot in mount.segment().slots.iter().filter(|slot| slot.owner.load(Ordering::Relaxed) == owner) {
            sum.0 += slot.reads.load(Ordering::Relaxed);
            sum.1 += slot.writes.load(Ordering::Relaxed);
        }
    }
    sum
}

/// Returns `true` if another thread of this process may be in an access to a file.
pub(super) fn is_accessed(mount: &Mount, file: u32) -> bool {
    if !mount.is_mapped() {
        return false;
    }
    let segment = mount.segment();
    let used = (segment.head.slots_used.load(Ordering::SeqCst) as usize).min(SLOTS);
    segment.slots[..used].iter().any(|slot| slot.access.load(Ordering::SeqCst) as u32 == file + 1)
}

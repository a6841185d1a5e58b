//! Waiting for accesses of programs that began before they were forbidden.

use frit_direct::segment::{SLOTS, Segment};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Time for which an access is awaited. An access copies at most a few megabytes, so only a program
/// that is stopped takes longer.
pub(super) const WAIT: Duration = Duration::from_secs(1);
/// Interval of looking again.
const POLL: Duration = Duration::from_micros(50);
/// Number of looks without a pause.
const LOOKS: u32 = 200;

/// A slot with an access that is still in progress.
#[derive(Clone, Copy, Debug)]
pub(super) struct Busy {
    pub(super) process: u32,
}

/// Returns `true` if a process has ended.
fn has_ended(process: u32) -> bool {
    let Some(pid) = i32::try_from(process).ok().and_then(Pid::from_raw) else { return true };
    // A process that ended and is not reaped yet has a descriptor that is ready.
    match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(process) => {
            let mut ready = [rustix::event::PollFd::new(&process, rustix::event::PollFlags::IN)];
            rustix::event::poll(&mut ready, Some(&rustix::time::Timespec { tv_sec: 0, tv_nsec: 0 }))
                .is_ok_and(|count| count > 0)
        }
        Err(error) => error == rustix::io::Errno::SRCH,
    }
}

/// Waits until no access to a file, or to any file, that began before the call is in progress.
/// Accesses of processes that have ended count as ended, and their slots are freed.
///
/// # Errors
/// An access is still in progress after `wait`.
pub(super) fn wait_quiet(segment: &Segment, file: Option<u32>, wait: Duration) -> Result<(), Busy> {
    let used = (segment.head.slots_used.load(Ordering::SeqCst) as usize).min(SLOTS);
    let mut deadline = None;
    for slot in &segment.slots[..used] {
        let began = slot.access.load(Ordering::SeqCst);
        let matches = |access: u64| access != 0 && file.is_none_or(|file| access as u32 == file + 1);
        if !matches(began) {
            continue;
        }
        let mut looks = 0;
        while slot.access.load(Ordering::SeqCst) == began {
            looks += 1;
            if looks < LOOKS {
                std::hint::spin_loop();
                continue;
            }
            let owner = slot.owner.load(Ordering::Acquire);
            let process = owner as u32;
            if owner == 0 || has_ended(process) {
                // The slot may have got another owner meanwhile, whose access is another one.
                let _ = slot.access.compare_exchange(began, 0, Ordering::SeqCst, Ordering::Relaxed);
                let _ = slot.owner.compare_exchange(owner, 0, Ordering::SeqCst, Ordering::Relaxed);
                break;
            }
            if Instant::now() >= *deadline.get_or_insert_with(|| Instant::now() + wait) {
                return Err(Busy { process });
            }
            std::thread::sleep(POLL);
        }
    }
    Ok(())
}

/// Frees the slots of processes that have ended.
pub(super) fn free_slots(segment: &Segment) {
    let used = (segment.head.slots_used.load(Ordering::SeqCst) as usize).min(SLOTS);
    let mut checked = (0, false);
    for slot in &segment.slots[..used] {
        let owner = slot.owner.load(Ordering::Acquire);
        if owner == 0 {
            continue;
        }
        if checked.0 != owner as u32 {
            checked = (owner as u32, has_ended(owner as u32));
        }
        if checked.1 {
            slot.access.store(0, Ordering::SeqCst);
            let _ = slot.owner.compare_exchange(owner, 0, Ordering::SeqCst, Ordering::Relaxed);
        }
    }
}

//! Waiting for accesses of programs that began before they were forbidden.
//!
//! Each word here is one that any process with the segment may have written: each is read once into a local value,
//! waits have a deadline, and a process counts only while it maps the segment.

use super::shared::SharedSegment;
use frit_direct::segment::{SLOTS, Slot};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::fs;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Time for which an access is awaited. An access copies at most a few megabytes, so only a program
/// that is stopped takes longer.
pub(super) const WAIT: Duration = Duration::from_secs(1);
/// Interval of looking again.
const POLL: Duration = Duration::from_micros(50);
/// Number of looks without a pause.
const LOOKS: u32 = 200;
/// Time after which it is looked up whether a process can make the access that it announced.
const LATE: Duration = Duration::from_millis(10);

/// A slot with an access that is still in progress.
#[derive(Clone, Copy, Debug)]
pub(super) struct Busy {
    pub(super) process: u32,
}

/// How long accesses are awaited, all together.
#[derive(Debug)]
pub(super) struct Patience {
    wait: Duration,
    /// Set when the first access is awaited.
    deadline: Option<Instant>,
}

impl Patience {
    pub(super) fn of(wait: Duration) -> Patience {
        Patience { wait, deadline: None }
    }

    /// Returns `true` if no time is left.
    pub(super) fn is_over(&mut self) -> bool {
        let wait = self.wait;
        Instant::now() >= *self.deadline.get_or_insert_with(|| Instant::now() + wait)
    }
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

/// Returns `true` if a process has a file in its memory, or if that cannot be looked up. A process without the segment
/// makes no access: the announcement names it because its number was used again, because it runs another program now,
/// or because somebody else wrote the number.
fn may_map(process: u32, file: (u64, u64)) -> bool {
    let has_it = |maps: &str| maps.lines().any(|line| mapped_file(line) == Some(file));
    // The kernel may report another device than stat(2), as for a subvolume. Then this process does not find its own.
    let is_known = fs::read_to_string("/proc/self/maps").is_ok_and(|maps| has_it(&maps));
    let Ok(maps) = fs::read_to_string(format!("/proc/{process}/maps")) else { return true };
    if !is_known || has_it(&maps) {
        return true;
    }
    // The first thread of a process may have ended before the others, and then has no memory.
    let Ok(threads) = fs::read_dir(format!("/proc/{process}/task")) else { return !maps.is_empty() };
    maps.is_empty()
        && threads
            .flatten()
            .any(|thread| fs::read_to_string(thread.path().join("maps")).is_ok_and(|maps| has_it(&maps)))
}

/// Returns device and inode of a line of `/proc/PID/maps`.
fn mapped_file(line: &str) -> Option<(u64, u64)> {
    let mut fields = line.split_ascii_whitespace().skip(3);
    let (major, minor) = fields.next()?.split_once(':')?;
    let number = |text: &str| u32::from_str_radix(text, 16).ok();
    Some((rustix::fs::makedev(number(major)?, number(minor)?), fields.next()?.parse().ok()?))
}

/// Waits until no access to a file, or to any file, that began before the call is in progress. Looks at the first
/// `slots` slots. Accesses of processes that have ended count as ended, and their slots are freed.
///
/// # Errors
/// An access is still in progress, and no time is left.
pub(super) fn wait_quiet(
    shared: &SharedSegment,
    slots: usize,
    file: Option<u32>,
    patience: &mut Patience,
) -> Result<(), Busy> {
    for slot in &shared.get().slots[..slots.min(SLOTS)] {
        let began = slot.access.load(Ordering::SeqCst);
        if began != 0 && file.is_none_or(|file| began as u32 == file + 1) {
            wait_for_slot(shared, slot, began, patience)?;
        }
    }
    Ok(())
}

/// Waits until a slot has another access than `began`.
fn wait_for_slot(
    shared: &SharedSegment,
    slot: &Slot,
    began: u64,
    patience: &mut Patience,
) -> Result<(), Busy> {
    let mut looks = 0;
    let mut since = None;
    let mut known_to_map = None;
    while slot.access.load(Ordering::SeqCst) == began {
        looks += 1;
        if looks < LOOKS {
            std::hint::spin_loop();
            continue;
        }
        let owner = slot.owner.load(Ordering::Acquire);
        let process = owner as u32;
        let is_over = patience.is_over();
        let is_late = is_over || since.get_or_insert_with(Instant::now).elapsed() >= LATE;
        let is_forged = is_late && known_to_map != Some(process) && {
            let maps = may_map(process, shared.file());
            known_to_map = maps.then_some(process);
            !maps
        };
        if owner == 0 || has_ended(process) || is_forged {
            // The slot may have got another owner meanwhile, whose access is another one.
            let _ = slot.access.compare_exchange(began, 0, Ordering::SeqCst, Ordering::Relaxed);
            let _ = slot.owner.compare_exchange(owner, 0, Ordering::SeqCst, Ordering::Relaxed);
            return Ok(());
        }
        if is_over {
            return Err(Busy { process });
        }
        std::thread::sleep(POLL);
    }
    Ok(())
}

/// Frees those of the first `slots` slots whose processes have ended.
pub(super) fn free_slots(shared: &SharedSegment, slots: usize) {
    let mut checked = (0, false);
    for slot in &shared.get().slots[..slots.min(SLOTS)] {
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

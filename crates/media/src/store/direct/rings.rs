//! Accesses with `io_uring`.
//!
//! A long access is divided into pieces of [`PIECE_BYTES`], of which up to [`DEPTH`] are in flight.
//! A thread takes a ring for its access and gives it back, so no ring is shared and no thread waits
//! for another one.

#![allow(unsafe_code)]

use io_uring::{IoUring, Probe, opcode, squeue::Entry, types::Fd};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Size of a piece in bytes: a multiple of every block size that is accepted.
pub(super) const PIECE_BYTES: usize = 256 << 10;
/// Number of pieces in flight.
pub(super) const DEPTH: usize = 8;
/// Number of unused rings that are kept. A ring takes a file descriptor and some pages.
const KEPT: usize = 16;
/// Time between two looks for completions if the kernel does not wait for them.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// The unused rings of a file.
pub(super) struct Rings {
    unused: Mutex<Vec<IoUring>>,
}

impl std::fmt::Debug for Rings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rings").finish_non_exhaustive()
    }
}

/// Memory of an access: the target of a read, or the source of a write.
enum Memory<'a> {
    Target(&'a mut [u8]),
    Source(&'a [u8]),
}

impl Memory<'_> {
    fn len(&self) -> usize {
        match self {
            Memory::Target(into) => into.len(),
            Memory::Source(data) => data.len(),
        }
    }

    /// Executes a part of the access with `pread` or `pwrite`.
    fn transfer(&mut self, file: &File, at: u64, from: usize, to: usize) -> io::Result<()> {
        let place = at + from as u64;
        match self {
            Memory::Target(into) => file.read_exact_at(&mut into[from..to], place),
            Memory::Source(data) => file.write_all_at(&data[from..to], place),
        }
    }

    /// Returns the request for a part of the access.
    fn request(&mut self, file: &File, at: u64, from: usize, to: usize) -> Entry {
        let (fd, len, place) = (Fd(file.as_raw_fd()), (to - from) as u32, at + from as u64);
        let entry = match self {
            Memory::Target(into) => {
                opcode::Read::new(fd, into[from..to].as_mut_ptr(), len).offset(place).build()
            }
            Memory::Source(data) => {
                opcode::Write::new(fd, data[from..to].as_ptr(), len).offset(place).build()
            }
        };
        entry.user_data(from as u64)
    }
}

/// Progress of an access. Positions are offsets in its memory.
#[derive(Default)]
struct Progress {
    /// Position before which all pieces were given to the ring.
    queued: usize,
    /// Requests in the ring that the kernel has not taken.
    unsubmitted: usize,
    /// Requests that the kernel has taken and not completed.
    in_flight: usize,
    /// Parts that the ring did not transfer, and that are transferred one by one.
    left: Vec<(usize, usize)>,
    /// The error of the first piece that failed, by position.
    error: Option<(usize, io::Error)>,
}

impl Rings {
    /// Creates the first ring.
    ///
    /// # Errors
    /// The kernel does not have `io_uring` with reads and writes, or does not allow it.
    pub(super) fn open() -> io::Result<Rings> {
        let ring = IoUring::new(DEPTH as u32)?;
        let mut probe = Probe::new();
        ring.submitter().register_probe(&mut probe)?;
        if !probe.is_supported(opcode::Read::CODE) || !probe.is_supported(opcode::Write::CODE) {
            return Err(io::ErrorKind::Unsupported.into());
        }
        Ok(Rings { unused: Mutex::new(vec![ring]) })
    }

    /// Descriptor of the unused ring that is taken next.
    #[cfg(test)]
    pub(super) fn descriptor(&self) -> Option<std::os::fd::RawFd> {
        let unused = self.unused.lock().unwrap_or_else(PoisonError::into_inner);
        unused.last().map(AsRawFd::as_raw_fd)
    }

    /// Reads whole blocks into aligned memory.
    pub(super) fn read(&self, file: &File, at: u64, into: &mut [u8]) -> io::Result<()> {
        self.access(file, at, Memory::Target(into))
    }

    /// Writes whole blocks from aligned memory.
    pub(super) fn write(&self, file: &File, at: u64, data: &[u8]) -> io::Result<()> {
        self.access(file, at, Memory::Source(data))
    }

    fn access(&self, file: &File, at: u64, mut memory: Memory<'_>) -> io::Result<()> {
        let unused = || self.unused.lock().unwrap_or_else(PoisonError::into_inner);
        let len = memory.len();
        let taken = unused().pop();
        // Without a free descriptor the access is made as without a ring.
        let Some(mut ring) = taken.or_else(|| IoUring::new(DEPTH as u32).ok()) else {
            return memory.transfer(file, at, 0, len);
        };
        let mut progress = Progress::default();
        let usable = run(&mut ring, file, at, &mut memory, &mut progress);
        if usable {
            let mut unused = unused();
            if unused.len() < KEPT {
                unused.push(ring);
            }
        }
        for (from, to) in std::mem::take(&mut progress.left) {
            memory.transfer(file, at, from, to)?;
        }
        progress.error.map_or(Ok(()), |(_, e)| Err(e))
    }
}

/// Transfers the pieces with the ring, and returns when the kernel has no request of the access any
/// more. Returns `false` if the ring must not be used again.
fn run(ring: &mut IoUring, file: &File, at: u64, memory: &mut Memory<'_>, progress: &mut Progress) -> bool {
    let len = memory.len();
    loop {
        while progress.queued < len && progress.unsubmitted + progress.in_flight < DEPTH {
            let (from, to) = (progress.queued, len.min(progress.queued + PIECE_BYTES));
            let request = memory.request(file, at, from, to);
            // SAFETY: the memory is borrowed by `memory`, and this function does not return before
            // all requests that the kernel has taken are completed.
            if unsafe { ring.submission().push(&request) }.is_err() {
                break;
            }
            (progress.queued, progress.unsubmitted) = (to, progress.unsubmitted + 1);
        }
        if progress.unsubmitted + progress.in_flight == 0 {
            return true;
        }
        // A thread that is woken for each completion of the last pieces only waits again.
        let all = progress.unsubmitted + progress.in_flight;
        let wanted = if progress.queued < len { 1 } else { all };
        match ring.submit_and_wait(wanted) {
            Ok(taken) => {
                progress.unsubmitted -= taken.min(progress.unsubmitted);
                progress.in_flight += taken;
            }
            Err(e) if can_repeat(&e, progress) => {}
            Err(_) => return give_up(ring, len, progress),
        }
        take_completions(ring, len, progress);
    }
}

/// Returns `true` if a submission that failed can succeed when it is repeated. EAGAIN and EBUSY mean
/// that the kernel lacks memory, or that completions have to be taken first.
fn can_repeat(e: &io::Error, progress: &Progress) -> bool {
    match e.raw_os_error() {
        Some(libc::EINTR) => true,
        Some(libc::EAGAIN | libc::EBUSY) => progress.in_flight > 0,
        _ => false,
    }
}

/// Waits for the requests in flight, and leaves the pieces that were not submitted to the caller.
/// The requests in the ring vanish with the ring.
fn give_up(ring: &mut IoUring, len: usize, progress: &mut Progress) -> bool {
    while progress.in_flight > 0 {
        std::thread::sleep(POLL_INTERVAL);
        take_completions(ring, len, progress);
    }
    let first = progress.queued.div_ceil(PIECE_BYTES) - progress.unsubmitted;
    progress.left.push((len.min(first * PIECE_BYTES), len));
    false
}

fn take_completions(ring: &mut IoUring, len: usize, progress: &mut Progress) {
    for completion in ring.completion() {
        progress.in_flight -= 1;
        let from = completion.user_data() as usize;
        let to = len.min(from + PIECE_BYTES);
        match completion.result() {
            n if n >= 0 && n as usize == to - from => {}
            n if n >= 0 => progress.left.push((from + n as usize, to)),
            n if [libc::EINTR, libc::EAGAIN].contains(&-n) => progress.left.push((from, to)),
            n if progress.error.as_ref().is_none_or(|(at, _)| from < *at) => {
                progress.error = Some((from, io::Error::from_raw_os_error(-n)));
            }
            _ => {}
        }
    }
}

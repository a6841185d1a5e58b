//! Threads that serve queues.

use super::affinity::bind;
use super::entry::{Entry, Ticket, Vector};
use super::mailbox::Mailbox;
use crate::answer::{Answer, Route};
use crate::dispatch::dispatch;
use crate::kernel::wake_queue;
use crate::protocol::abi::{CommandRequest, ring_command};
use crate::request::Request;
use crate::server::Server;
use crate::transport::DeviceFd;
use io_uring::squeue::Entry128;
use io_uring::types::Fd;
use io_uring::{IoUring, cqueue, opcode};
use rustix::io::Errno;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use zerocopy::IntoBytes;

/// Commands that wait for their submission, at most.
const RING_ENTRIES: u32 = 32;
/// Number of the completion that says that another thread has put a reply into the mailbox.
const BELL: u64 = u64::MAX;
/// Parameter of the module that permits requests through io_uring.
const ENABLED: &str = "/sys/module/fuse/parameters/enable_uring";
/// Offsets of `addr` and `len` in a submission, for which the library has no functions in commands
/// (`struct io_uring_sqe`).
const SQE_ADDR: usize = 16;
const SQE_LEN: usize = 24;

/// Queues that a thread serves.
#[derive(Clone, Debug)]
pub(crate) struct Seats {
    /// Queues of the kernel.
    pub(crate) queues: Vec<u16>,
    /// The thread runs on the processor of its queue only.
    pub(crate) bound: bool,
}

type Ring = IoUring<Entry128, cqueue::Entry>;

fn ring() -> io::Result<Ring> {
    IoUring::builder().setup_single_issuer().setup_defer_taskrun().build(RING_ENTRIES)
}

/// Returns why requests cannot come through io_uring on this machine, as far as it is known before a
/// file system is mounted.
///
/// # Errors
/// The reason.
pub(crate) fn check_available() -> Result<(), String> {
    match std::fs::read_to_string(ENABLED) {
        Ok(value) if value.trim() == "Y" => {}
        Ok(_) => return Err(format!("it is off in this kernel; as root: echo Y > {ENABLED}")),
        Err(_) => return Err("it requires Linux 6.14".into()),
    }
    ring().map(drop).map_err(|e| format!("io_uring is not permitted: {e}"))
}

/// Serves queues until the file system is unmounted. Calls `ready` when the kernel has the first
/// entries, and begins when it returns `true`.
///
/// # Errors
/// The kernel refuses the entries, or the connection failed.
pub(crate) fn start<S: Server>(
    server: &S,
    device: &DeviceFd,
    seats: &Seats,
    ready: impl FnOnce() -> bool,
) -> io::Result<()> {
    if let (true, Some(&queue)) = (seats.bound, seats.queues.first()) {
        bind(usize::from(queue));
    }
    let mut worker =
        Worker { server, ring: ring()?, device, mailbox: Arc::new(Mailbox::new()?), entries: Vec::new() };
    worker.listen()?;
    for &queue in &seats.queues {
        worker.add_entry(queue)?;
    }
    worker.check_entries()?;
    if ready() { worker.run() } else { Ok(()) }
}

struct Worker<'a, S> {
    server: &'a S,
    // Dropped before the entries, so that the kernel does not use their memory any more.
    ring: Ring,
    device: &'a DeviceFd,
    mailbox: Arc<Mailbox>,
    entries: Vec<Arc<Entry>>,
}

impl<S: Server> Worker<'_, S> {
    /// Asks for a completion whenever another thread has put a reply into the mailbox.
    fn listen(&mut self) -> io::Result<()> {
        let readable = rustix::event::PollFlags::IN.bits().into();
        let poll = opcode::PollAdd::new(Fd(self.mailbox.bell()), readable).multi(true).build();
        self.push(&poll.user_data(BELL).into())
    }

    /// Gives a new entry to the kernel.
    fn add_entry(&mut self, queue: u16) -> io::Result<()> {
        let number = self.entries.len();
        let entry = Entry::new(&self.mailbox, number, queue)?;
        let vectors = entry.vectors();
        self.entries.push(entry);
        self.push(&command(self.device, ring_command::REGISTER, number, queue, 0, &vectors))?;
        // The kernel reads the vectors now.
        self.ring.submit().map(drop)
    }

    /// Fails if the kernel has refused an entry.
    fn check_entries(&mut self) -> io::Result<()> {
        let refused = self.ring.completion().find(|c| c.user_data() != BELL && c.result() < 0);
        refused.map_or(Ok(()), |c| Err(io::Error::from_raw_os_error(-c.result())))
    }

    #[expect(unsafe_code)]
    fn push(&mut self, entry: &Entry128) -> io::Result<()> {
        loop {
            // SAFETY: commands name memory of entries, which live as long as the ring, or until
            // the kernel has read it (`add_entry`). The poll names no memory.
            if unsafe { self.ring.submission().push(entry) }.is_ok() {
                return Ok(());
            }
            self.ring.submit()?;
        }
    }

    fn run(&mut self) -> io::Result<()> {
        loop {
            match self.ring.submit_and_wait(1) {
                Ok(_) => {}
                // A signal, or more completions than the ring has room for, which are taken below.
                Err(e) if [Errno::INTR, Errno::BUSY, Errno::AGAIN].iter().any(|n| is(&e, *n)) => {}
                Err(e) => return Err(e),
            }
            while let Some(completion) = self.next_completion() {
                match (completion.user_data(), completion.result()) {
                    (BELL, _) => self.answer_bell(&completion)?,
                    (number, 0..) => self.serve(number as usize)?,
                    (_, error) => {
                        let error = io::Error::from_raw_os_error(-error);
                        // The file system is unmounted, or the connection was aborted.
                        let ended = [Errno::NOTCONN, Errno::CONNABORTED, Errno::CANCELED];
                        return if ended.iter().any(|n| is(&error, *n)) { Ok(()) } else { Err(error) };
                    }
                }
            }
        }
    }

    fn next_completion(&mut self) -> Option<cqueue::Entry> {
        self.ring.completion().next()
    }

    fn answer_bell(&mut self, completion: &cqueue::Entry) -> io::Result<()> {
        let mut count = [0; 8];
        let _ = rustix::io::read(&self.mailbox, &mut count);
        if !cqueue::more(completion.flags()) {
            self.listen()?;
        }
        self.give_back(None).map(drop)
    }

    /// Serves the request in an entry.
    fn serve(&mut self, number: usize) -> io::Result<()> {
        let Some(entry) = self.entries.get(number).map(Arc::clone) else { return Ok(()) };
        let node = entry.request(|header, arguments| {
            let answer = Answer::new(header.unique, Route::Ring(Ticket::new(&entry)));
            let request = Request::new(header);
            dispatch(self.server, &request, arguments, answer);
            request.node()
        });
        if !self.give_back(Some(number))? {
            // The reply comes later, and may depend on requests that wait for an entry.
            self.add_entry(entry.queue)?;
            wake_queue(self.device, node);
        } else if !self.ring.completion().is_empty() {
            // Nobody has to wait for the next request of this thread.
            self.ring.submit()?;
        }
        Ok(())
    }

    /// Gives entries with replies back to the kernel. Returns `true` if this one was among them.
    fn give_back(&mut self, wanted: Option<usize>) -> io::Result<bool> {
        let mut found = false;
        while let Some(reply) = self.mailbox.take() {
            let Some(entry) = self.entries.get(reply.entry).map(Arc::clone) else { continue };
            let id = entry.put_reply(reply.unique, reply.error, &reply.contents);
            let commit = ring_command::COMMIT_AND_FETCH;
            self.push(&command(self.device, commit, reply.entry, entry.queue, id, &[]))?;
            found |= wanted == Some(reply.entry);
        }
        Ok(found)
    }
}

fn is(error: &io::Error, number: Errno) -> bool {
    error.raw_os_error() == Some(number.raw_os_error())
}

/// Returns a command for an entry of a queue (`fuse_uring_cmd_req`). `vectors` is read when the
/// command is submitted.
#[expect(unsafe_code)]
fn command(device: &DeviceFd, code: u32, number: usize, queue: u16, id: u64, vectors: &[Vector]) -> Entry128 {
    let request = CommandRequest { commit_id: id, qid: queue, ..CommandRequest::default() };
    let mut bytes = [0; 80];
    bytes[..size_of::<CommandRequest>()].copy_from_slice(request.as_bytes());
    let device = Fd(device.0.as_raw_fd());
    let command = opcode::UringCmd80::new(device, code).cmd(bytes).build().user_data(number as u64);
    // SAFETY: both are the bytes of `struct io_uring_sqe` with 128 bytes, of which all values are
    // valid.
    let mut sqe: [u8; 128] = unsafe { std::mem::transmute(command) };
    sqe[SQE_ADDR..SQE_ADDR + 8].copy_from_slice(&(vectors.as_ptr() as u64).to_ne_bytes());
    sqe[SQE_LEN..SQE_LEN + 4].copy_from_slice(&(vectors.len() as u32).to_ne_bytes());
    // SAFETY: as above.
    unsafe { std::mem::transmute(sqe) }
}

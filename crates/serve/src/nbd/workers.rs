//! Requests that wait for a slow medium: carried out beside the others of their client, and answered when they are
//! done. A client has a thread for each of them, up to a limit; they end with its session.

use super::Export;
use super::execute::{Outcome, execute, flush, flushed};
use super::handshake::Agreed;
use super::outlet::Outlet;
use super::output::Output;
use super::request::{Command, Request};
use crate::device::REQUEST_BYTES_MAX;
use crate::guard::Grant;
use frit_core::SECTOR_BYTES;
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::sync::Arc;
use std::thread::JoinHandle;

/// Requests of one client that wait for a slow medium at a time: as many as a disk takes by Serial ATA's native
/// command queuing.
const REQUESTS_MAX: usize = 32;
/// Bytes that these move together, at most: a single request may be as large.
const BYTES_MAX: usize = REQUEST_BYTES_MAX as usize;
/// Bytes of a reply's buffer that a thread keeps between requests.
const OUTPUT_KEPT: usize = 16 << 10;

/// A request that was handed over.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) command: Command,
    pub(super) request: Request,
    pub(super) payload: Vec<u8>,
    /// The memory that it takes while it is carried out.
    _grant: Option<Grant>,
}

impl Job {
    pub(super) fn new(command: Command, request: &Request, data: &[u8], grant: Option<Grant>) -> Job {
        Job { command, request: *request, payload: data.to_vec(), _grant: grant }
    }

    /// Memory that a request takes while it is carried out: a read of parts of sectors has a buffer for the whole
    /// ones as well.
    pub(super) fn memory_bytes(command: Command, request: &Request) -> usize {
        let whole = (request.at | u64::from(request.len)).is_multiple_of(SECTOR_BYTES);
        Job::bytes(command, request) * if whole { 1 } else { 2 }
    }

    /// Bytes that a request moves.
    pub(super) fn bytes(command: Command, request: &Request) -> usize {
        if matches!(command, Command::Read | Command::Write) { request.len as usize } else { 0 }
    }
}

/// The threads of a client, and what waits for them. Dropping it ends them, once all is answered.
#[derive(Debug)]
pub(super) struct Workers {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    export: Arc<Export>,
    agreed: Agreed,
    outlet: Arc<Outlet>,
    queue: Mutex<Queue>,
    /// There is a request, or there will be no more.
    handed: Condvar,
    /// A request was answered.
    answered: Condvar,
}

#[derive(Default, Debug)]
struct Queue {
    jobs: VecDeque<Job>,
    /// Requests that are not answered, and the bytes that they move.
    open: usize,
    bytes: usize,
    /// Threads that wait for a request.
    idle: usize,
    ended: bool,
}

impl Workers {
    pub(super) fn new(export: Arc<Export>, agreed: Agreed, outlet: Arc<Outlet>) -> Workers {
        let (queue, handed, answered) = (Mutex::default(), Condvar::new(), Condvar::new());
        Workers {
            shared: Arc::new(Shared { export, agreed, outlet, queue, handed, answered }),
            threads: Vec::new(),
        }
    }

    /// Whether a request can be handed over now.
    pub(super) fn have_room(&self, command: Command, request: &Request) -> bool {
        self.shared.queue.lock().has_room(Job::bytes(command, request))
    }

    /// Waits until a request can be handed over.
    pub(super) fn wait_for_room(&self, command: Command, request: &Request) {
        let mut queue = self.shared.queue.lock();
        while !queue.has_room(Job::bytes(command, request)) {
            self.shared.answered.wait(&mut queue);
        }
    }

    /// Hands a request over. It comes back when there is no thread for it and none can be started.
    pub(super) fn hand(&mut self, job: Job) -> Option<Job> {
        let mut queue = self.shared.queue.lock();
        queue.open += 1;
        queue.bytes += Job::bytes(job.command, &job.request);
        queue.jobs.push_back(job);
        if queue.jobs.len() <= queue.idle {
            self.shared.handed.notify_one();
            return None;
        }
        // One of so many has answered, and looks for the next request.
        if self.threads.len() >= REQUESTS_MAX {
            return None;
        }
        let shared = Arc::clone(&self.shared);
        match std::thread::Builder::new().name("nbd-slow".into()).spawn(move || shared.work()) {
            Ok(thread) => self.threads.push(thread),
            // Those that there are take it in their turn.
            Err(_) if !self.threads.is_empty() => {}
            Err(_) => {
                let job = queue.jobs.pop_back()?;
                queue.answered(&job);
                return Some(job);
            }
        }
        None
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.shared.queue.lock().ended = true;
        self.shared.handed.notify_all();
        for thread in self.threads.drain(..) {
            // One that panicked has hung up, and the device refuses writes.
            let _ = thread.join();
        }
    }
}

impl Queue {
    fn has_room(&self, bytes: usize) -> bool {
        self.open == 0 || self.open < REQUESTS_MAX && self.bytes + bytes <= BYTES_MAX
    }

    fn answered(&mut self, job: &Job) {
        self.open -= 1;
        self.bytes -= Job::bytes(job.command, &job.request);
    }
}

/// A request that a thread has taken counts as answered when the thread is done with it, however that ends.
struct Taken<'a> {
    shared: &'a Shared,
    job: Job,
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // Its client would wait for ever.
            self.shared.outlet.hang_up();
        }
        self.shared.queue.lock().answered(&self.job);
        self.shared.answered.notify_one();
    }
}

impl Shared {
    /// A thread's life.
    fn work(&self) {
        let mut out = Output::default();
        while let Some(taken) = self.take() {
            self.carry_out(&taken.job, &mut out);
            // An error is a client that is gone: whoever reads from it ends the session.
            let _ = self.outlet.send(out.bytes());
            out.clear();
            if out.capacity() > OUTPUT_KEPT {
                out = Output::default();
            }
        }
    }

    fn take(&self) -> Option<Taken<'_>> {
        let mut queue = self.queue.lock();
        loop {
            if let Some(job) = queue.jobs.pop_front() {
                return Some(Taken { shared: self, job });
            }
            if queue.ended {
                return None;
            }
            queue.idle += 1;
            self.handed.wait(&mut queue);
            queue.idle -= 1;
        }
    }

    /// Does a request, and the flush that its reply waits for.
    fn carry_out(&self, job: &Job, out: &mut Output) {
        let Job { command, request, payload, .. } = job;
        let device = self.export.device();
        let is_flush = *command == Command::Flush;
        let waits = is_flush
            || matches!(
                execute(&mut device.lock(), &self.agreed, *command, request, payload, out),
                Outcome::AfterFlush(_)
            );
        if waits {
            flushed(out, &self.agreed, request.cookie, &flush(device, is_flush));
        }
    }
}

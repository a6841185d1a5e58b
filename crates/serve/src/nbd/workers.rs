//! Worker threads of a client. They execute requests that wait for a slow medium, concurrently with
//! the client's other requests, and send the replies. A client has up to one thread per such
//! request, up to a limit; the threads end with its session.

use super::Export;
use super::execute::{ReplyOutcome, execute, flush, reply_after_flush};
use super::handshake::Negotiated;
use super::output::Output;
use super::reply_writer::ReplyWriter;
use super::request::{NbdCommand, NbdRequest};
use crate::device::REQUEST_BYTES_MAX;
use crate::resource_limits::Grant;
use frit_core::SECTOR_BYTES;
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::sync::Arc;
use std::thread::JoinHandle;

/// Maximum number of concurrent slow requests of a client: the queue depth of Serial ATA's native
/// command queuing.
const REQUESTS_MAX: usize = 32;
/// Maximum number of bytes that these requests move in total. It equals the maximum for a single
/// request.
const BYTES_MAX: usize = REQUEST_BYTES_MAX as usize;
/// Maximum length of the reply buffer that a thread keeps between requests, in bytes.
const OUTPUT_KEPT: usize = 16 << 10;

/// A request that is executed by a worker thread.
#[derive(Debug)]
pub(super) struct WorkerJob {
    pub(super) command: NbdCommand,
    pub(super) request: NbdRequest,
    pub(super) payload: Vec<u8>,
    /// Memory of the shared budget, held while the request is executed.
    _grant: Option<Grant>,
}

impl WorkerJob {
    pub(super) fn new(
        command: NbdCommand,
        request: &NbdRequest,
        data: &[u8],
        grant: Option<Grant>,
    ) -> WorkerJob {
        WorkerJob { command, request: *request, payload: data.to_vec(), _grant: grant }
    }

    /// Returns the memory that a request uses while it is executed. An unaligned read needs a
    /// second buffer for whole sectors.
    pub(super) fn memory_bytes(command: NbdCommand, request: &NbdRequest) -> usize {
        let whole = (request.at | u64::from(request.len)).is_multiple_of(SECTOR_BYTES);
        WorkerJob::bytes(command, request) * if whole { 1 } else { 2 }
    }

    /// Returns the number of bytes that a request moves.
    pub(super) fn bytes(command: NbdCommand, request: &NbdRequest) -> usize {
        if matches!(command, NbdCommand::Read | NbdCommand::Write) { request.len as usize } else { 0 }
    }
}

/// The worker threads of a client, and their queue. Dropping it ends the threads after all requests
/// have been answered.
#[derive(Debug)]
pub(super) struct Workers {
    shared: Arc<WorkersState>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug)]
struct WorkersState {
    export: Arc<Export>,
    negotiated: Negotiated,
    reply_writer: Arc<ReplyWriter>,
    queue: Mutex<WorkerQueue>,
    /// Signalled when a request was queued, or when no more follow.
    queued: Condvar,
    /// Signalled when a request was answered.
    answered: Condvar,
}

#[derive(Default, Debug)]
struct WorkerQueue {
    jobs: VecDeque<WorkerJob>,
    /// Number of unanswered requests; `bytes` is the number of bytes that they move.
    open: usize,
    bytes: usize,
    /// Number of threads that wait for a request.
    idle: usize,
    ended: bool,
}

impl Workers {
    pub(super) fn new(
        export: Arc<Export>,
        negotiated: Negotiated,
        reply_writer: Arc<ReplyWriter>,
    ) -> Workers {
        let (queue, queued, answered) = (Mutex::default(), Condvar::new(), Condvar::new());
        Workers {
            shared: Arc::new(WorkersState { export, negotiated, reply_writer, queue, queued, answered }),
            threads: Vec::new(),
        }
    }

    /// Returns `true` if a request can be queued now.
    pub(super) fn can_submit(&self, command: NbdCommand, request: &NbdRequest) -> bool {
        self.shared.queue.lock().accepts(WorkerJob::bytes(command, request))
    }

    /// Waits until a request can be queued.
    pub(super) fn wait_until_accepted(&self, command: NbdCommand, request: &NbdRequest) {
        let mut queue = self.shared.queue.lock();
        while !queue.accepts(WorkerJob::bytes(command, request)) {
            self.shared.answered.wait(&mut queue);
        }
    }

    /// Queues a request. Returns it if there is no thread for it and none can be started.
    pub(super) fn submit(&mut self, job: WorkerJob) -> Option<WorkerJob> {
        let mut queue = self.shared.queue.lock();
        queue.open += 1;
        queue.bytes += WorkerJob::bytes(job.command, &job.request);
        queue.jobs.push_back(job);
        // There is an idle thread for each queued request.
        if queue.jobs.len() <= queue.idle {
            self.shared.queued.notify_one();
            return None;
        }
        // With fewer than `REQUESTS_MAX` open requests before this one, at least one thread has
        // sent its reply and will take the request.
        if self.threads.len() >= REQUESTS_MAX {
            return None;
        }
        let shared = Arc::clone(&self.shared);
        match std::thread::Builder::new().name("nbd-slow".into()).spawn(move || shared.work()) {
            Ok(thread) => self.threads.push(thread),
            // The existing threads execute the request later.
            Err(_) if !self.threads.is_empty() => {}
            Err(_) => {
                let job = queue.jobs.pop_back()?;
                queue.count_answered(&job);
                return Some(job);
            }
        }
        None
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.shared.queue.lock().ended = true;
        self.shared.queued.notify_all();
        for thread in self.threads.drain(..) {
            // A thread that panicked has closed the connection, and the device refuses writes.
            let _ = thread.join();
        }
    }
}

impl WorkerQueue {
    fn accepts(&self, bytes: usize) -> bool {
        // A single request is always accepted, so that no request waits for ever.
        self.open == 0 || self.open < REQUESTS_MAX && self.bytes + bytes <= BYTES_MAX
    }

    fn count_answered(&mut self, job: &WorkerJob) {
        self.open -= 1;
        self.bytes -= WorkerJob::bytes(job.command, &job.request);
    }
}

/// A request taken by a thread. Dropping it counts the request as answered, even after a panic.
struct RunningJob<'a> {
    shared: &'a WorkersState,
    job: WorkerJob,
}

impl Drop for RunningJob<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // Without a reply the client would wait for ever.
            self.shared.reply_writer.disconnect();
        }
        self.shared.queue.lock().count_answered(&self.job);
        self.shared.answered.notify_one();
    }
}

impl WorkersState {
    /// Main loop of a worker thread.
    fn work(&self) {
        let mut out = Output::default();
        while let Some(running) = self.next_job() {
            self.execute_job(&running.job, &mut out);
            // An error means that the client has disconnected. The session ends when its thread
            // reads from the socket.
            let _ = self.reply_writer.send(out.bytes());
            out.clear();
            if out.capacity() > OUTPUT_KEPT {
                out = Output::default();
            }
        }
    }

    fn next_job(&self) -> Option<RunningJob<'_>> {
        let mut queue = self.queue.lock();
        loop {
            if let Some(job) = queue.jobs.pop_front() {
                return Some(RunningJob { shared: self, job });
            }
            if queue.ended {
                return None;
            }
            queue.idle += 1;
            self.queued.wait(&mut queue);
            queue.idle -= 1;
        }
    }

    /// Executes a request, and the flush on which its reply depends.
    fn execute_job(&self, job: &WorkerJob, out: &mut Output) {
        let WorkerJob { command, request, payload, .. } = job;
        let device = self.export.device();
        let is_flush = *command == NbdCommand::Flush;
        let waits = is_flush
            || matches!(
                execute(&mut device.lock(), &self.negotiated, *command, request, payload, out),
                ReplyOutcome::AfterFlush(_)
            );
        if waits {
            reply_after_flush(out, &self.negotiated, request.cookie, &flush(device, is_flush));
        }
    }
}

//! Open command files, each with a channel to the engine.

use super::resolver::CallerFiles;
use super::waiting_reads::{WaitingRead, WaitingReads};
use crate::fuse::file_system::killpriv::KillprivCache;
use crate::fuse::file_system::requester;
use frit_fs::{COMMAND_NAME, Error, InStorage, Ino, Result};
use frit_fuse::{
    Errno, FileHandle, FopenFlags, Kernel, OpenFlags, PollEvents, PollToken, ReplyPoll, ReplyRead,
    ReplyWrite, Request, on_all_processors,
};
use frit_isp::{Channel, ChannelError, Engine, EngineOptions, Foreground, ForegroundGuard};
use parking_lot::Mutex;
use rustix::fs::OFlags;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// First handle of a command file. The handles of other files are smaller.
const HANDLES_FROM: u64 = 1 << 32;

/// Niceness of the engine's threads: requests preempt them, and on a machine without an idle processor they
/// still have a tenth of the time of another program. With `SCHED_IDLE` they had 1/340 of it, and requests were
/// not faster.
const NICENESS: i32 = 10;

/// An open command file.
#[derive(Debug)]
struct OpenCommand {
    ino: Ino,
    /// Directory of the command file when it was opened.
    directory: Ino,
    channel: Channel,
    /// Opened with O_NONBLOCK.
    nonblocking: bool,
}

/// Open command files of a mount, and their engine.
#[derive(Debug)]
pub(in crate::fuse::file_system) struct CommandFiles {
    foreground: Arc<Foreground>,
    kernel: Arc<OnceLock<Kernel>>,
    killpriv: Arc<KillprivCache>,
    writeback: bool,
    /// Created by the first open.
    engine: OnceLock<Arc<Engine>>,
    open: Mutex<HashMap<u64, Arc<OpenCommand>>>,
    next: AtomicU64,
    waiting: Arc<WaitingReads>,
}

/// Events of a file that never waits.
const ALWAYS: PollEvents =
    PollEvents::POLLIN.union(PollEvents::POLLRDNORM).union(PollEvents::POLLOUT).union(PollEvents::POLLWRNORM);

impl CommandFiles {
    /// Creates an empty set for a mount, whose kernel gathers writes if `writeback` is set.
    pub(in crate::fuse::file_system) fn new(
        kernel: Arc<OnceLock<Kernel>>,
        killpriv: Arc<KillprivCache>,
        writeback: bool,
    ) -> CommandFiles {
        CommandFiles {
            foreground: Arc::default(),
            kernel,
            killpriv,
            writeback,
            engine: OnceLock::new(),
            open: Mutex::default(),
            next: AtomicU64::new(HANDLES_FROM),
            waiting: Arc::default(),
        }
    }

    /// Begins a read or write of a file, to which the engine yields.
    pub(in crate::fuse::file_system) fn foreground(&self) -> Option<ForegroundGuard> {
        // Without an engine there is nothing that has to yield.
        self.engine.get().map(|_| self.foreground.enter())
    }

    /// Opens a channel for a pinned command file. Returns its handle, and flags for the kernel: no page
    /// cache and no position, as for a pipe. Returns `None` for other inodes.
    pub(in crate::fuse::file_system) fn open<F: InStorage>(
        &self,
        files: &F,
        ino: Ino,
        flags: OpenFlags,
    ) -> Option<(FileHandle, FopenFlags)> {
        let directory = files.command_directory(ino).ok()?;
        let engine = self.engine.get_or_init(|| {
            let foreground = Arc::clone(&self.foreground);
            let options = EngineOptions { niceness: Some(NICENESS), foreground, ..EngineOptions::default() };
            Arc::new(on_all_processors(|| Engine::new(options)))
        });
        let channel = Channel::new(Arc::clone(engine));
        let nonblocking = flags.0 as u32 & OFlags::NONBLOCK.bits() != 0;
        let handle = self.next.fetch_add(1, Ordering::Relaxed);
        self.open.lock().insert(handle, Arc::new(OpenCommand { ino, directory, channel, nonblocking }));
        let how = FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_STREAM | FopenFlags::FOPEN_NOFLUSH;
        Some((FileHandle(handle), how))
    }

    /// Closes a channel, and cancels its instructions.
    pub(in crate::fuse::file_system) fn release<F: InStorage>(&self, files: &F, handle: FileHandle) {
        if handle.0 < HANDLES_FROM {
            return;
        }
        let closed = self.open.lock().remove(&handle.0);
        let Some(OpenCommand { ino, directory, channel, .. }) = closed.as_deref() else { return };
        // Another thread may hold the channel for a moment longer.
        channel.close();
        if files.command_directory(*ino).is_err() {
            self.forget_name(*directory);
        }
    }

    /// Cancels all instructions, and waits until the engine no longer uses the file system. Must be called
    /// when no more requests come.
    pub(in crate::fuse::file_system) fn close(&self) {
        let open = std::mem::take(&mut *self.open.lock());
        open.values().for_each(|open| open.channel.close());
        if let Some(engine) = self.engine.get() {
            engine.close();
        }
    }

    /// Makes the kernel forget the name of a command file in a removed directory. It was not unlinked, so the
    /// kernel would keep its entry, and with it the directory.
    fn forget_name(&self, directory: Ino) {
        let kernel = Arc::clone(&self.kernel);
        // The notification takes locks of the kernel, for which threads that answer requests must not wait.
        let notify = move || {
            if let Some(kernel) = kernel.get() {
                let _ = kernel.inval_entry(directory.0, OsStr::from_bytes(COMMAND_NAME));
            }
        };
        // Without a thread, the kernel keeps the entry until it needs the memory.
        let _ = std::thread::Builder::new().name("forget".into()).spawn(notify);
    }

    /// Returns `true` if a handle is that of a command file.
    pub(in crate::fuse::file_system) fn is_command(&self, handle: FileHandle) -> bool {
        handle.0 >= HANDLES_FROM
    }

    fn get(&self, handle: FileHandle) -> Result<Arc<OpenCommand>> {
        self.open.lock().get(&handle.0).cloned().ok_or(Error::Invalid("not an open command file"))
    }

    /// Gives instructions to the engine, with the rights of the process that sent the request.
    pub(in crate::fuse::file_system) fn write<F: InStorage + 'static>(
        &self,
        files: &Arc<F>,
        request: &Request,
        handle: FileHandle,
        data: &[u8],
        reply: ReplyWrite,
    ) {
        let found = self.get(handle).and_then(|open| {
            let directory = files.command_directory(open.ino)?;
            Ok((open, directory))
        });
        let (open, directory) = match found {
            Ok(found) => found,
            Err(e) => return reply.error(super::super::convert::errno(&e)),
        };
        let resolver = CallerFiles {
            files: Arc::clone(files),
            directory,
            credentials: requester::credentials(request),
            thread: request.pid(),
            killpriv: Arc::clone(&self.killpriv),
            writeback: self.writeback,
            kernel: Arc::clone(&self.kernel),
            reads: Mutex::default(),
        };
        match open.channel.write(data, &resolver) {
            // The length never exceeds that of the request, which is a u32.
            Ok(bytes) => reply.written(bytes as u32),
            Err(ChannelError::WouldBlock) => reply.error(Errno::EAGAIN),
            Err(_) => reply.error(Errno::EIO),
        }
    }

    /// Answers a read when the oldest result is complete.
    pub(in crate::fuse::file_system) fn read(
        &self,
        request: &Request,
        handle: FileHandle,
        len: u32,
        reply: ReplyRead,
    ) {
        let open = match self.get(handle) {
            Ok(open) => open,
            Err(e) => return reply.error(super::super::convert::errno(&e)),
        };
        match open.channel.try_read(len as usize) {
            Ok(bytes) => reply.data(&bytes),
            Err(ChannelError::WouldBlock) if open.nonblocking => reply.error(Errno::EAGAIN),
            Err(ChannelError::WouldBlock) => {
                let read = self.waiting.add(request, reply);
                read_when_ready(&self.waiting, &open, len as usize, read);
            }
            Err(_) => reply.error(Errno::EIO),
        }
    }

    /// Ends a read that waits, if its program got a signal.
    pub(in crate::fuse::file_system) fn interrupt(&self, unique: u64) {
        self.waiting.interrupt(unique);
    }

    /// Answers which operations would not wait. If a program waits (`token`), the kernel is notified of each
    /// later event.
    pub(in crate::fuse::file_system) fn poll(
        &self,
        handle: FileHandle,
        token: Option<PollToken>,
        reply: ReplyPoll,
    ) {
        let Ok(open) = self.get(handle) else { return reply.poll(ALWAYS) };
        if let Some(token) = token {
            let kernel = Arc::clone(&self.kernel);
            // Before readiness is determined, so that no event is missed. A notification makes the kernel ask
            // again, so it is sent for events only. Edge-triggered waits need it also for those that come
            // after an answer "ready".
            open.channel.watch(move || drop(kernel.get().map(|kernel| kernel.poll_ready(token))));
        }
        let ready = open.channel.readiness();
        let mut events = PollEvents::empty();
        if ready.readable {
            events |= PollEvents::POLLIN | PollEvents::POLLRDNORM;
        }
        if ready.writable {
            events |= PollEvents::POLLOUT | PollEvents::POLLWRNORM;
        }
        reply.poll(events);
    }
}

fn read_when_ready(waiting: &Arc<WaitingReads>, open: &Arc<OpenCommand>, len: usize, read: Arc<WaitingRead>) {
    // The channel holds this function, which therefore must not hold the channel.
    let (again, others) = (Arc::downgrade(open), Arc::clone(waiting));
    open.channel.on_ready(move || {
        let Some(again) = again.upgrade() else {
            // The file was closed, so nothing waits for this answer.
            read.interrupt();
            return others.remove(&read);
        };
        // The result stays for another read if this one was interrupted.
        let is_done = read.with_reply(|| match again.channel.try_read(len) {
            Ok(bytes) => Some(Ok(bytes)),
            Err(ChannelError::WouldBlock) => None,
            Err(_) => Some(Err(Errno::EIO)),
        });
        if is_done { others.remove(&read) } else { read_when_ready(&others, &again, len, read) }
    });
}

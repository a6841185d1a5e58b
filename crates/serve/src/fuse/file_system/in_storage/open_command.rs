//! Open command files, each with a channel to the engine.

use super::admission::{Admission, Turn, Waiting};
use super::opener::{Opener, OpenerProcesses};
use super::renames::Renames;
use super::resolver::CallerFiles;
use super::views::{View, Views};
use super::waiting_reads::{WaitingRead, WaitingReads};
use crate::fuse::file_system::convert::errno;
use crate::fuse::file_system::killpriv::KillprivCache;
use crate::fuse::file_system::options::{IspAccess, MountOptions};
use crate::fuse::file_system::requester::{self, Sender};
use frit_direct::messages::SHARE;
use frit_fs::{Attr, COMMAND_NAME, Caller, Error, InStorage, Ino, Overrides, Result};
use frit_fuse::{
    Errno, FileHandle, FopenFlags, Kernel, OpenAccMode, OpenFlags, PollEvents, PollToken, ReplyIoctl,
    ReplyPoll, ReplyRead, ReplyWrite, Request, Write, WriteFlags, on_all_processors,
};
use frit_isp::{Channel, ChannelError, Engine, EngineOptions, Foreground, ForegroundGuard, User};
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
    opener: Opener,
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
    /// Users that may give instructions.
    access: IspAccess,
    openers: OpenerProcesses,
    views: Views,
    admission: Admission,
    /// Budget of memory of the engine in bytes, if it is not the usual one.
    isp_memory: Option<u64>,
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
    /// Creates an empty set for a file system that is about to be mounted.
    pub(in crate::fuse::file_system) fn new(
        kernel: Arc<OnceLock<Kernel>>,
        killpriv: Arc<KillprivCache>,
        options: &MountOptions,
    ) -> CommandFiles {
        CommandFiles {
            views: Views::new(Arc::clone(&kernel)),
            foreground: Arc::default(),
            kernel,
            killpriv,
            writeback: options.writeback,
            access: options.isp,
            openers: OpenerProcesses::default(),
            admission: Admission::new(options.threads),
            isp_memory: options.isp_memory,
            engine: OnceLock::new(),
            open: Mutex::default(),
            next: AtomicU64::new(HANDLES_FROM),
            waiting: Arc::default(),
        }
    }

    /// Sets the device of the file system in lists of mounts. Must be called when it is mounted, or is not.
    pub(in crate::fuse::file_system) fn set_device(&self, device: Option<&str>) {
        self.views.set_device(device);
    }

    /// Renames, with which paths in lists of mounts change.
    pub(in crate::fuse::file_system) fn renames(&self) -> &Renames {
        &self.views.renames
    }

    /// Begins a read or write of a file, to which the engine yields.
    pub(in crate::fuse::file_system) fn foreground(&self) -> Option<ForegroundGuard> {
        // Without an engine there is nothing that has to yield.
        self.engine.get().map(|_| self.foreground.enter())
    }

    /// Opens a channel for a pinned command file. Returns its handle, and flags for the kernel: no page
    /// cache and no position, as for a pipe. Returns `None` for other inodes.
    ///
    /// # Errors
    /// The user may give no instructions on this mount; the file is not opened for reading and writing, or is
    /// to be truncated or appended to, as by programs that copy files.
    pub(in crate::fuse::file_system) fn open<F: InStorage>(
        &self,
        files: &F,
        request: &Request,
        ino: Ino,
        flags: OpenFlags,
    ) -> Result<Option<(FileHandle, FopenFlags)>> {
        let Ok(directory) = files.command_directory(ino) else { return Ok(None) };
        let word = OFlags::from_bits_retain(flags.0 as u32);
        if flags.acc_mode() != OpenAccMode::O_RDWR || word.intersects(OFlags::TRUNC | OFlags::APPEND) {
            return Err(Error::NotPermitted);
        }
        let sender = requester::sender(request)?;
        self.check_user(&sender)?;
        let opener = self.openers.of(&sender)?;
        let opener = Opener::new(sender, opener);
        let engine = self.engine.get_or_init(|| {
            let foreground = Arc::clone(&self.foreground);
            let mut options =
                EngineOptions { niceness: Some(NICENESS), foreground, ..EngineOptions::default() };
            options.memory_bytes_max = self.isp_memory.unwrap_or(options.memory_bytes_max);
            Arc::new(on_all_processors(|| Engine::new(options)))
        });
        let channel = Channel::for_user(Arc::clone(engine), User(opener.uid())).map_err(channel_error)?;
        let nonblocking = word.contains(OFlags::NONBLOCK);
        let handle = self.next.fetch_add(1, Ordering::Relaxed);
        self.open
            .lock()
            .insert(handle, Arc::new(OpenCommand { ino, directory, channel, opener, nonblocking }));
        let how = FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_STREAM | FopenFlags::FOPEN_NOFLUSH;
        Ok(Some((FileHandle(handle), how)))
    }

    /// Fails for users that may give no instructions on this mount.
    fn check_user(&self, sender: &Sender) -> Result<()> {
        let Caller { uid, overrides, .. } = sender.rights.caller;
        let is_owner = uid == rustix::process::geteuid().as_raw();
        let is_superuser = uid == 0 && overrides == Overrides::All;
        match self.access {
            IspAccess::All => Ok(()),
            IspAccess::Owner if is_owner || is_superuser => Ok(()),
            IspAccess::Owner => Err(Error::Access),
            IspAccess::Off => Err(Error::Unsupported("instructions on a mount with --isp off")),
        }
    }

    /// Returns the permissions of a command file in a directory. Whoever may list and search the directory may
    /// read and write the command file, unless that is taken away from it.
    pub(in crate::fuse::file_system) fn mode(&self, command: &Attr, directory: &Attr) -> u16 {
        let classes = match self.access {
            IspAccess::All => &[6, 3, 0][..],
            IspAccess::Owner | IspAccess::Off => &[6],
        };
        let may_use = |class: &&u16| directory.mode >> **class & 5 == 5;
        let allowed = classes.iter().filter(may_use).fold(0, |mode, class| mode | 6 << class);
        command.mode & allowed
    }

    /// Begins instructions of an open command file, at a request of a program (`BEGIN`).
    pub(in crate::fuse::file_system) fn begin<F: InStorage + 'static>(
        self: &Arc<Self>,
        files: &Arc<F>,
        request: &Request,
        handle: FileHandle,
        argument: &[u8],
        reply: ReplyIoctl,
    ) {
        let shared = match argument.first_chunk().copied().map(u32::from_ne_bytes) {
            Some(0) => false,
            Some(SHARE) => true,
            _ => return reply.error(Errno::EINVAL),
        };
        let (commands, files, sender) = (Arc::clone(self), Arc::clone(files), *request);
        let begin = move || {
            let (request, thread) = (&sender, sender.pid());
            let sender = requester::sender(request)?;
            commands.check_user(&sender)?;
            let open = commands.get(handle)?;
            let directory = files.command_directory(open.ino)?;
            let limits = commands.views.limits_on_mount(&*files, thread, open.ino, directory)?;
            open.opener.begin(&sender, shared, &limits)
        };
        self.in_turn(request, move |turn| match turn {
            Turn::Interrupted => reply.error(Errno::EINTR),
            Turn::Execute => match begin() {
                Ok(()) => reply.ioctl(0, &[]),
                Err(e) => reply.error(errno(&e)),
            },
        });
    }

    /// Executes what may take long in the turn of the sender, by another thread.
    fn in_turn(&self, request: &Request, execute: impl FnOnce(Turn) + Send + 'static) {
        let (unique, thread) = (request.unique(), request.pid());
        self.admission.add(request.uid(), Waiting { unique, thread, answer: Box::new(execute) });
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
        self.admission.close();
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

    /// Gives instructions to the engine, with the rights that the sender of the request and the opener have in
    /// common. If many do so, another thread gives the answer.
    pub(in crate::fuse::file_system) fn write<F: InStorage + 'static>(
        self: &Arc<Self>,
        files: &Arc<F>,
        request: &Request,
        write: &Write<'_>,
        reply: ReplyWrite,
    ) {
        // The kernel writes pages back with rights of its own, whoever has changed them.
        if write.flags.contains(WriteFlags::FUSE_WRITE_CACHE) {
            return reply.error(errno(&Error::NotPermitted));
        }
        let open = match self.get(write.handle) {
            Ok(open) => open,
            Err(e) => return reply.error(errno(&e)),
        };
        // A list of mounts can be long.
        let direct = self.views.known(request.pid()).and_then(|view| Some((self.admission.direct()?, view)));
        if let Some((direct, view)) = direct {
            let written = self.give(files, request, &open, write.data, Some(view));
            // The next write can come before this answer has returned.
            drop(direct);
            return answer(reply, written);
        }
        let held = match open.channel.hold(write.data.len()) {
            Ok(held) => held,
            Err(e) => return reply.error(errno(&channel_error(e))),
        };
        let (commands, files, sender) = (Arc::clone(self), Arc::clone(files), *request);
        let data = write.data.to_vec();
        let execute = move |turn| {
            match turn {
                Turn::Execute => answer(reply, commands.give(&files, &sender, &open, &data, None)),
                Turn::Interrupted => reply.error(Errno::EINTR),
            }
            drop(held);
        };
        self.in_turn(&sender, execute);
    }

    fn give<F: InStorage + 'static>(
        &self,
        files: &Arc<F>,
        request: &Request,
        open: &OpenCommand,
        data: &[u8],
        view: Option<Arc<View>>,
    ) -> Result<usize> {
        let sender = requester::sender(request)?;
        self.check_user(&sender)?;
        let view = view.map_or_else(|| self.views.of(&**files, request.pid()), Ok)?;
        let directory = files.command_directory(open.ino)?;
        let limits = view.limits_below(&**files, directory)?;
        let has_rest = || open.channel.has_incomplete();
        let written = open.opener.write((&sender, &limits), has_rest, |authors, limits| {
            let resolver = CallerFiles {
                files: Arc::clone(files),
                directory,
                authors: authors.into(),
                limits,
                thread: request.pid(),
                killpriv: Arc::clone(&self.killpriv),
                writeback: self.writeback,
                kernel: Arc::clone(&self.kernel),
                reads: Mutex::default(),
            };
            open.channel.write(data, &resolver)
        })?;
        written.map_err(channel_error)
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
            Err(e) => return reply.error(errno(&e)),
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

    /// Ends a read or write that waits, if its program got a signal.
    pub(in crate::fuse::file_system) fn interrupt(&self, unique: u64) {
        self.admission.interrupt(unique);
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

/// Answers a write.
fn answer(reply: ReplyWrite, written: Result<usize>) {
    match written {
        // The length never exceeds that of the request, which is a u32.
        Ok(bytes) => reply.written(bytes as u32),
        Err(e) => reply.error(errno(&e)),
    }
}

fn channel_error(error: ChannelError) -> Error {
    let number = match error {
        ChannelError::WouldBlock => rustix::io::Errno::AGAIN,
        ChannelError::TooMany => rustix::io::Errno::MFILE,
        ChannelError::NoMemory => rustix::io::Errno::NOMEM,
        _ => rustix::io::Errno::IO,
    };
    let path = OsStr::from_bytes(COMMAND_NAME).into();
    Error::Os { what: "cannot use a command file", path, error: number.into() }
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

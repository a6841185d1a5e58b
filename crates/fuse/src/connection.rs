//! Mounting, and the threads that serve a mount.

use crate::backing::clone_connection;
use crate::kernel::Kernel;
use crate::mountpoint::{HeldMount, Mountpoint, mount_on};
use crate::server::Server;
use crate::transport::ring::{self, ProcessorSet, Processors, Seats};
use crate::transport::{DeviceFd, REQUEST_BYTES_MAX, device};
use fuser::{Config, Filesystem, InitFlags, KernelConfig, Session};
use rustix::mount::UnmountFlags;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::{Builder, JoinHandle};

/// Maximum number of outstanding background requests, such as read-ahead and the requests of a loop
/// device.
const BACKGROUND_MAX: u16 = 128;
/// Threads of a processor with rings: one may wait for a disk while another serves.
const RING_THREADS: std::ops::RangeInclusive<usize> = 2..=4;

/// Use of io_uring for requests.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Rings {
    /// If the kernel permits it.
    #[default]
    Auto,
    /// Always: without it, mounting fails.
    On,
    /// Never.
    Off,
}

/// Requests capabilities; each is used if the kernel has it.
pub fn request_capabilities(config: &mut KernelConfig, wishes: impl IntoIterator<Item = InitFlags>) {
    for wish in wishes {
        let _ = config.add_capabilities(wish);
    }
}

/// How a file system is mounted.
#[derive(Clone, Debug)]
pub struct ConnectionOptions {
    /// Options of the mount. Its numbers of threads and descriptors are not used.
    pub config: Config,
    /// Threads that serve requests.
    pub threads: usize,
    /// Use of io_uring.
    pub rings: Rings,
}

/// Why a file system could not be mounted.
#[derive(Debug)]
pub enum ConnectionError {
    /// Mounting failed, or the kernel lacks something.
    Mount(io::Error),
    /// Requests cannot come through io_uring, although [`Rings::On`] demands it.
    Rings(String),
}

/// A mounted file system, which is unmounted when this is dropped.
#[derive(Debug)]
pub struct Connection {
    threads: Vec<JoinHandle<io::Result<()>>>,
    failed: Arc<AtomicBool>,
    uses_rings: bool,
    /// The mount, if the session did not make it.
    _mount: Option<HeldMount>,
    /// The mount, or its end of the connection. Dropped last.
    _session: Session<Handshake>,
}

/// Requests the capabilities that a server needs.
type Negotiate = dyn Fn(&mut KernelConfig) -> io::Result<()> + Send + Sync;

/// The part of fuser that is used: mounting, and the first request.
struct Handshake {
    negotiate: Box<Negotiate>,
    rings: bool,
    has_rings: Arc<AtomicBool>,
}

impl std::fmt::Debug for Handshake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Handshake").field("rings", &self.rings).finish_non_exhaustive()
    }
}

impl Filesystem for Handshake {
    fn init(&mut self, _: &fuser::Request, config: &mut KernelConfig) -> io::Result<()> {
        // If the kernel allows less, it reports its maximum, which is then used.
        let _ = config.set_max_write(REQUEST_BYTES_MAX).map_err(|most| config.set_max_write(most));
        let _ = config.set_max_background(BACKGROUND_MAX);
        let has_rings = self.rings && config.add_capabilities(InitFlags::FUSE_OVER_IO_URING).is_ok();
        self.has_rings.store(has_rings, Ordering::Relaxed);
        (self.negotiate)(config)
    }
}

impl Connection {
    /// Mounts a file system on a directory, and serves it.
    ///
    /// # Errors
    /// FUSE is not available, the directory cannot be mounted on, or the kernel lacks something
    /// that the server or the options demand.
    pub fn start<S: Server>(
        server: &Arc<S>,
        mountpoint: Mountpoint<'_>,
        options: &ConnectionOptions,
    ) -> Result<Connection, ConnectionError> {
        // Before a thread is bound.
        ProcessorSet::of_process();
        if options.rings != Rings::Off {
            match Self::start_rings(server, mountpoint, options) {
                Err(ConnectionError::Rings(_)) if options.rings == Rings::Auto => {}
                other => return other,
            }
        }
        Self::start_device(server, mountpoint, options)
    }

    fn start_device<S: Server>(
        server: &Arc<S>,
        mountpoint: Mountpoint<'_>,
        options: &ConnectionOptions,
    ) -> Result<Connection, ConnectionError> {
        let ((mount, session), kernel, device) = mount(server, mountpoint, options, false)?.0;
        server.connected(kernel);
        let mut threads = Threads::new(server, mountpoint.path);
        for i in 1..options.threads.max(1) {
            let clone = clone_connection(&device).map_err(ConnectionError::Mount)?;
            let started = threads.start_device(format!("fuse-{i}"), DeviceFd(Arc::new(clone)));
            started.map_err(ConnectionError::Mount)?;
        }
        threads.start_device("fuse-0".into(), device).map_err(ConnectionError::Mount)?;
        let Threads { started, failed, .. } = threads;
        Ok(Connection { threads: started, failed, uses_rings: false, _mount: mount, _session: session })
    }

    fn start_rings<S: Server>(
        server: &Arc<S>,
        mountpoint: Mountpoint<'_>,
        options: &ConnectionOptions,
    ) -> Result<Connection, ConnectionError> {
        ring::check_available().map_err(ConnectionError::Rings)?;
        let processors = Processors::of_machine().map_err(|e| ConnectionError::Rings(e.to_string()))?;
        let (((mount, session), kernel, device), has_rings) = mount(server, mountpoint, options, true)?;
        if !has_rings {
            return Err(ConnectionError::Rings("it is off in this kernel".into()));
        }
        let per_processor = options.threads.div_ceil(ProcessorSet::of_process().len().max(1));
        let per_processor = per_processor.clamp(*RING_THREADS.start(), *RING_THREADS.end());
        let mut threads = Threads::new(server, mountpoint.path);
        let refused = |e: io::Error| ConnectionError::Rings(format!("the kernel refuses the rings: {e}"));
        let mut begin = Vec::new();
        let own = processors.own.iter().flat_map(|&queue| {
            std::iter::repeat_n(Seats { queues: vec![queue], bound: true }, per_processor)
        });
        let others = Seats { queues: processors.others.clone(), bound: false };
        for seats in own.chain((!others.queues.is_empty()).then_some(others)) {
            begin.push(threads.start_ring(device.clone(), seats).map_err(refused)?);
        }
        server.connected(kernel);
        threads.start_device("fuse-device".into(), device).map_err(ConnectionError::Mount)?;
        for begin in begin {
            // A thread that has ended already has told the others.
            let _ = begin.send(());
        }
        let Threads { started, failed, .. } = threads;
        Ok(Connection { threads: started, failed, uses_rings: true, _mount: mount, _session: session })
    }

    /// Returns `true` if requests come through io_uring.
    #[must_use]
    pub fn uses_rings(&self) -> bool {
        self.uses_rings
    }

    /// Returns `true` if the file system is unmounted and no longer in use, or the connection
    /// failed.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.failed.load(Ordering::Acquire) || self.threads.iter().all(JoinHandle::is_finished)
    }

    /// Waits until the file system is unmounted and the last request is answered.
    ///
    /// # Errors
    /// The connection to the kernel failed.
    pub fn join(self) -> io::Result<()> {
        let mut result = Ok(());
        let failed = self.failed.load(Ordering::Acquire);
        for thread in self.threads {
            // Others may wait for requests that never come, if the connection could not be aborted.
            if failed && !thread.is_finished() {
                continue;
            }
            let panicked = |_| Err(io::Error::other("a thread that answers requests panicked"));
            result = result.and(thread.join().unwrap_or_else(panicked));
        }
        result
    }
}

type Mounted = ((Option<HeldMount>, Session<Handshake>), Kernel, DeviceFd);

/// Mounts, and answers the first request. Returns `true` with the rest if the kernel sends requests
/// through rings.
fn mount<S: Server>(
    server: &Arc<S>,
    mountpoint: Mountpoint<'_>,
    options: &ConnectionOptions,
    rings: bool,
) -> Result<(Mounted, bool), ConnectionError> {
    let has_rings = Arc::new(AtomicBool::new(false));
    let of_server = Arc::clone(server);
    let negotiate = Box::new(move |config: &mut KernelConfig| of_server.negotiate(config));
    let handshake = Handshake { negotiate, rings, has_rings: Arc::clone(&has_rings) };
    let held = mount_on(mountpoint.directory, &options.config).map_err(ConnectionError::Mount)?;
    let session = match held {
        Some(device) => {
            let device = Arc::new(device);
            // Unmounts if the handshake fails.
            let mounted = HeldMount::new(mountpoint, &device);
            let acl = options.config.acl;
            let copy = device.try_clone().map_err(ConnectionError::Mount)?;
            let session = Session::from_fd(handshake, copy, acl, options.config.clone());
            session.map(|session| (Some(mounted), session))
        }
        None => Session::new(handshake, mountpoint.path, &options.config).map(|session| (None, session)),
    };
    let session = session.map_err(ConnectionError::Mount)?;
    let device = std::os::fd::AsFd::as_fd(&session.1).try_clone_to_owned().map_err(ConnectionError::Mount)?;
    let device = Arc::new(device);
    let kernel = Kernel::new(Arc::clone(&device), session.1.notifier());
    Ok(((session, kernel, DeviceFd(device)), has_rings.load(Ordering::Relaxed)))
}

/// Threads of a connection.
struct Threads<'a, S> {
    server: &'a Arc<S>,
    mountpoint: PathBuf,
    failed: Arc<AtomicBool>,
    started: Vec<JoinHandle<io::Result<()>>>,
}

impl<'a, S: Server> Threads<'a, S> {
    fn new(server: &'a Arc<S>, mountpoint: &Path) -> Threads<'a, S> {
        let mountpoint = mountpoint.to_path_buf();
        Threads { server, mountpoint, failed: Arc::default(), started: Vec::new() }
    }

    fn start_device(&mut self, name: String, device: DeviceFd) -> io::Result<()> {
        self.start(name, move |server| device::serve(server, &device))
    }

    /// Starts a thread for queues, and waits until the kernel has its entries. It serves after it
    /// has got a message.
    fn start_ring(&mut self, device: DeviceFd, seats: Seats) -> io::Result<Sender<()>> {
        let (ready, wait) = channel();
        let (begin, may_begin) = channel();
        self.start(format!("fuse-ring-{}", self.started.len()), move |server| {
            let refused = ready.clone();
            let served = ring::start(server, &device, &seats, move || {
                ready.send(Ok(())).is_ok() && may_begin.recv().is_ok()
            });
            match served {
                // Nobody waits any more if the thread has served.
                Err(e) => match refused.send(Err(e)) {
                    Ok(()) => Ok(()),
                    Err(sent) => sent.0,
                },
                Ok(()) => Ok(()),
            }
        })?;
        wait.recv().unwrap_or_else(|_| Err(io::Error::other("a thread ended")))?;
        Ok(begin)
    }

    fn start(
        &mut self,
        name: String,
        serve: impl FnOnce(&S) -> io::Result<()> + Send + 'static,
    ) -> io::Result<()> {
        let server = Arc::clone(self.server);
        let (failed, mountpoint) = (Arc::clone(&self.failed), self.mountpoint.clone());
        let mut guard = AbortOnFailure { failed, mountpoint, is_armed: true };
        let thread = Builder::new().name(name).spawn(move || {
            let served = serve(&server);
            if served.is_ok() {
                guard.disarm();
            }
            served
        })?;
        self.started.push(thread);
        Ok(())
    }
}

/// Ends the connection if a thread fails or panics, since nobody would answer its requests.
struct AbortOnFailure {
    failed: Arc<AtomicBool>,
    mountpoint: PathBuf,
    is_armed: bool,
}

impl AbortOnFailure {
    fn disarm(&mut self) {
        self.is_armed = false;
    }
}

impl Drop for AbortOnFailure {
    fn drop(&mut self) {
        if !self.is_armed {
            return;
        }
        self.failed.store(true, Ordering::Release);
        // Programs get errors. Without the right to do so, the end of this process has the same effect.
        let _ = rustix::mount::unmount(&self.mountpoint, UnmountFlags::FORCE | UnmountFlags::DETACH);
    }
}

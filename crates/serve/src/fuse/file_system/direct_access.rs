//! Requests of programs under `frit exec`: the image, registration, and leases of files for direct
//! access. docs/design/direct.md has the protocol.
//!
//! A lease is granted in three steps, by one thread: the file gets an index without access, the kernel
//! drops its pages of the file, and access is allowed if no request has used the contents meanwhile. A
//! request that fills pages ends the lease, so the kernel has no pages of a file with a lease. Dropping
//! pages waits for requests that hold their locks, so that the threads that answer requests must not do it
//! (`page_invalidation`).
//!
//! The first two steps belong to an lseek(2) of the program, for which the kernel holds its lock of the inode. A write
//! through the page cache holds it, too. Without it, the page of a write in progress could be dropped, and filled with
//! old bytes again before the write is executed.

use super::killpriv::{CAPABILITY, has_set_id};
use super::requester;
use super::unreported::UnreportedChanges;
use frit_direct::messages::{
    END, EXTENTS, Extent, INFO, Info, LEASE, Lease, PATH_MAX, POSSIBLE, REGISTER, Registration,
};
use frit_fs::{DirectFiles, Error, FileSystem, Ino, Result};
use frit_fuse::{Kernel, ReplyIoctl, ReplyLseek, Request};
use std::io;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;

/// A request for a lease.
enum LeaseRequest {
    /// Step 1 and 2.
    Prepare { ino: Ino, reply: ReplyLseek },
    /// Step 3, for a range to be read from its begin, and written if it is not empty.
    Grant { ino: Ino, range: Range<u64>, reply: ReplyIoctl },
}

/// Answers requests of programs with direct access.
#[derive(Debug)]
pub(super) struct DirectAccess {
    /// `None` while this is dropped.
    requests: Option<Sender<LeaseRequest>>,
    /// The thread that grants leases.
    thread: Option<JoinHandle<()>>,
    unreported: Arc<UnreportedChanges>,
    /// The kernel collects writes, so that it has contents that the file system does not have.
    writeback: bool,
}

impl DirectAccess {
    /// Starts the thread that grants leases, which ends when this value is dropped.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub(super) fn start<F: FileSystem + DirectFiles + 'static>(
        files: &Arc<F>,
        kernel: Arc<OnceLock<Kernel>>,
        unreported: Arc<UnreportedChanges>,
        writeback: bool,
    ) -> io::Result<DirectAccess> {
        let (requests, next) = channel();
        let files = Arc::clone(files);
        let marks = Arc::clone(&unreported);
        let run = move || grant_all(&*files, &kernel, &marks, &next);
        let thread = std::thread::Builder::new().name("leases".into()).spawn(run)?;
        Ok(DirectAccess { requests: Some(requests), thread: Some(thread), unreported, writeback })
    }

    /// Answers an ioctl(2) on a file or directory of the mount.
    pub(super) fn ioctl<F: FileSystem + DirectFiles>(
        &self,
        files: &F,
        request: &Request,
        ino: Ino,
        (command, argument): (u32, &[u8]),
        reply: ReplyIoctl,
    ) {
        match command {
            INFO => reply.ioctl(0, &encode_info(&self.info(files))),
            REGISTER => match self.register(files, request) {
                Ok(registration) => reply.ioctl(0, &encode_registration(registration)),
                Err(e) => reply.error(super::convert::errno(&e)),
            },
            LEASE => match self.lease(files, request, ino, argument) {
                Ok(range) => self.send(LeaseRequest::Grant { ino, range, reply }),
                Err(e) => reply.error(super::convert::errno(&e)),
            },
            END => {
                files.revoke_lease(ino);
                match files.attr(ino) {
                    Ok(attr) => reply.ioctl(0, &attr.size.to_ne_bytes()),
                    Err(e) => reply.error(super::convert::errno(&e)),
                }
            }
            _ => reply.error(frit_fuse::Errno::ENOTTY),
        }
    }

    /// Answers an lseek(2) that prepares a lease.
    pub(super) fn prepare(&self, ino: Ino, reply: ReplyLseek) {
        match self.check_mount() {
            Ok(()) => self.send(LeaseRequest::Prepare { ino, reply }),
            Err(_) => reply.error(frit_fuse::Errno::ENXIO),
        }
    }

    fn send(&self, request: LeaseRequest) {
        // If the thread is gone, the reply is dropped, which answers with an error.
        let _ = self.requests.as_ref().map(|requests| requests.send(request));
    }

    /// Returns `true` if programs extended a file after the kernel got its attributes. Then the file gets no
    /// more append space until its last close, so that this is the only time.
    pub(super) fn has_news<F: DirectFiles>(&self, files: &F, ino: Ino) -> bool {
        let has_news = self.unreported.contains(ino)
            && files.grown_to(ino).is_some_and(|size| self.unreported.is_news(ino, size));
        if has_news {
            files.forbid_growth(ino);
        }
        has_news
    }

    /// Fails if the kernel keeps contents that the file system does not have.
    fn check_mount(&self) -> Result<()> {
        if self.writeback {
            return Err(Error::Unsupported("direct access to a mount with --writeback"));
        }
        Ok(())
    }

    /// Returns the range of a request for a lease, if the program may have it.
    fn lease<F: DirectFiles>(
        &self,
        files: &F,
        request: &Request,
        ino: Ino,
        argument: &[u8],
    ) -> Result<Range<u64>> {
        let word = |at: usize| argument.get(at..at + 8)?.first_chunk().copied().map(u64::from_ne_bytes);
        let (Some(from), Some(to)) = (word(0), word(8)) else {
            return Err(Error::Invalid("a request for a lease has a range"));
        };
        self.check_mount()?;
        if to > from {
            // Holes are filled only for those who may write, whatever the descriptor is open for.
            files.check_writer(&requester::caller_with_groups(request), ino)?;
        }
        Ok(from..to)
    }

    fn info<F: DirectFiles>(&self, files: &F) -> Result<(std::path::PathBuf, std::fs::Metadata)> {
        self.check_mount()?;
        let image = files.direct_image()?;
        if image.as_os_str().len() > PATH_MAX {
            return Err(Error::Unsupported("direct access to an image whose path is too long"));
        }
        let os = |error| Error::Os { what: "cannot find", path: image.clone(), error };
        let meta = std::fs::metadata(&image).map_err(os)?;
        Ok((image, meta))
    }

    fn register<F: DirectFiles>(&self, files: &F, request: &Request) -> Result<Registration> {
        self.check_mount()?;
        // A program in another PID namespace cannot be observed.
        let process = requester::process(request)
            .ok_or(Error::Unsupported("direct access from another PID namespace, or without /proc"))?;
        Ok(Registration { client: files.register_client()?, process })
    }
}

impl Drop for DirectAccess {
    fn drop(&mut self) {
        self.requests = None;
        // The thread uses the file system, which is closed after this.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Grants leases until the channel is closed.
fn grant_all<F: FileSystem + DirectFiles>(
    files: &F,
    kernel: &OnceLock<Kernel>,
    unreported: &UnreportedChanges,
    next: &Receiver<LeaseRequest>,
) {
    while let Ok(request) = next.recv() {
        match request {
            LeaseRequest::Prepare { ino, reply } => {
                // Why there will be no lease is the answer to the request for it.
                let _ = prepare(files, kernel, unreported, ino);
                reply.error(frit_fuse::Errno::ENXIO);
            }
            LeaseRequest::Grant { ino, range, reply } => match grant(files, ino, range) {
                Ok(lease) => reply.ioctl(0, &encode_lease(&lease)),
                Err(e) => reply.error(super::convert::errno(&e)),
            },
        }
    }
}

/// Fails if a file has privileges that a write through the kernel removes, and a direct one does not.
fn check_privileges<F: FileSystem>(files: &F, ino: Ino) -> Result<()> {
    if has_set_id(&files.attr(ino)?) || files.xattr(ino, CAPABILITY).is_ok() {
        return Err(Error::Busy);
    }
    Ok(())
}

fn prepare<F: FileSystem + DirectFiles>(
    files: &F,
    kernel: &OnceLock<Kernel>,
    unreported: &UnreportedChanges,
    ino: Ino,
) -> Result<()> {
    check_privileges(files, ino)?;
    let kernel = kernel.get().ok_or(Error::Busy)?;
    unreported.mark(ino);
    if !files.begin_lease(ino)? {
        // The kernel may have forgotten the inode. It has no pages then.
        let _ = kernel.inval_inode(ino.0, 0, 0);
    }
    Ok(())
}

fn grant<F: FileSystem + DirectFiles>(files: &F, ino: Ino, range: Range<u64>) -> Result<Box<Lease>> {
    check_privileges(files, ino)?;
    let mut lease = Box::new(Lease::request(range.start));
    lease.to = range.end;
    if files.grant(ino, &mut lease)? { Ok(lease) } else { Err(Error::Busy) }
}

fn encode_info(info: &Result<(std::path::PathBuf, std::fs::Metadata)>) -> Vec<u8> {
    let (status, device, inode, text) = match info {
        Ok((path, meta)) => (POSSIBLE, meta.dev(), meta.ino(), path.as_os_str().as_bytes().to_vec()),
        Err(e) => (POSSIBLE + 1, 0, 0, e.to_string().into_bytes()),
    };
    let text = &text[..text.len().min(PATH_MAX)];
    let mut bytes = Vec::with_capacity(size_of::<Info>());
    bytes.extend(status.to_ne_bytes());
    bytes.extend((text.len() as u32).to_ne_bytes());
    bytes.extend(device.to_ne_bytes());
    bytes.extend(inode.to_ne_bytes());
    bytes.extend(text);
    bytes.resize(size_of::<Info>(), 0);
    bytes
}

fn encode_registration(registration: Registration) -> Vec<u8> {
    [registration.client.to_ne_bytes(), registration.process.to_ne_bytes()].concat()
}

fn encode_lease(lease: &Lease) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(size_of::<Lease>());
    for word in [lease.from, lease.to, lease.generation, lease.size, lease.size_max, lease.segment] {
        bytes.extend(word.to_ne_bytes());
    }
    bytes.extend(lease.file.to_ne_bytes());
    bytes.extend(lease.count.to_ne_bytes());
    for Extent { at, len, medium } in &lease.extents[..(lease.count as usize).min(EXTENTS)] {
        bytes.extend([*at, *len, *medium].map(u64::to_ne_bytes).concat());
    }
    bytes.resize(size_of::<Lease>(), 0);
    bytes
}

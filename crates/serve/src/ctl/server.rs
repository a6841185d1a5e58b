//! Server of the control socket: a thread that accepts connections, and one thread per client.

use super::change_log::{self, ChangeLog};
use super::control_target::ControlTarget;
use super::hint_change::HintChange;
use super::param_key::full_key;
use super::rights::{PeerCredentials, Rights, raw_names};
use super::socket;
use super::wire::{self, Answer, ControlOperation, RefusalKind, Refused, Success};
use crate::log::Logger;
use crate::resource_limits::{ConnectionSlot, ConnectionSlots, Peer, SlotLimits, read_before, write_before};
use crate::unix::SocketName;
use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io;
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

/// Maximum number of clients. A further client evicts one that has not sent a request yet or is
/// idle. If all are busy, it is refused with a message.
const CLIENTS_MAX: usize = 32;
/// Maximum number of clients of each user other than the owner of the server and root.
const CLIENTS_OF_USER_MAX: usize = 8;
/// Number of further clients of the owner and root, whom other users must not keep out.
const CLIENTS_RESERVED: usize = 16;
/// Maximum length of a request of another user, in bytes: enough for all that they may do.
const OTHERS_BYTES_MAX: usize = 64 * 1024;
/// Maximum time in which a client must send its next request and accept the answer.
const SILENCE_MAX: Duration = Duration::from_secs(10);
/// Idle time after which a client may be evicted for a new one.
const IDLE_MIN: Duration = Duration::from_secs(2);

/// Options of a server.
#[derive(Clone, Debug)]
pub struct ControlOptions {
    /// Path of the socket.
    pub socket: PathBuf,
    /// Directory of the volume, which contains its log of changes.
    pub volume: PathBuf,
    /// Access rights of clients.
    pub rights: Rights,
}

/// A running server.
#[derive(Debug)]
pub struct ControlServer {
    path: PathBuf,
    socket_name: SocketName,
    listener: Arc<UnixListener>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

struct ControlState {
    control_target: Arc<dyn ControlTarget>,
    change_log: ChangeLog,
    rights: Rights,
    log: Logger,
    slots: Arc<ConnectionSlots<UnixStream>>,
    /// Held while a request of another user is executed: they are executed one after the other, and the device is
    /// free for the owner.
    others: Mutex<()>,
}

impl ControlServer {
    /// Starts a server at the socket of its options.
    ///
    /// # Errors
    /// The socket cannot be created.
    pub fn start(
        options: &ControlOptions,
        control_target: Arc<dyn ControlTarget>,
        log: Logger,
    ) -> io::Result<ControlServer> {
        let (listener, socket_name) = socket::listen(&options.socket, options.rights.admits_others())?;
        let listener = Arc::new(listener);
        let stop = Arc::new(AtomicBool::new(false));
        let shared = Arc::new(ControlState {
            control_target,
            change_log: ChangeLog::of(&options.volume),
            rights: options.rights,
            log,
            slots: ConnectionSlots::new(SlotLimits {
                owner: options.rights.owner,
                most: CLIENTS_MAX,
                reserved: CLIENTS_RESERVED,
                of_peer: CLIENTS_OF_USER_MAX,
                idle_min: Some(IDLE_MIN),
            }),
            others: Mutex::new(()),
        });
        let (seen, accepting) = (stop.clone(), Arc::clone(&listener));
        let accept = move || accept(&accepting, &shared, &seen);
        let thread = std::thread::Builder::new().name("ctl".into()).spawn(accept)?;
        let path = options.socket.clone();
        Ok(ControlServer { path, socket_name, listener, stop, thread: Some(thread) })
    }

    /// Returns the path of the socket.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for ControlServer {
    /// Stops listening and removes the socket. Requests in progress are completed.
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        // On Linux this makes `accept` return, however many clients wait for it.
        let _ = rustix::net::shutdown(&*self.listener, rustix::net::Shutdown::Both);
        let _ = self.thread.take().map(JoinHandle::join);
        self.socket_name.remove();
    }
}

fn accept(listener: &UnixListener, shared: &Arc<ControlState>, stop: &AtomicBool) {
    let mut error_logged = false;
    loop {
        let accepted = listener.accept();
        if stop.load(Ordering::SeqCst) {
            return;
        }
        if let Err(e) = accepted.and_then(|(stream, _)| admit(shared, stream)) {
            // The error may be temporary, for example if no descriptor is free.
            if !std::mem::replace(&mut error_logged, true) {
                shared.log.write_line(format_args!("control: cannot serve a client: {e}"));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

fn admit(shared: &Arc<ControlState>, stream: UnixStream) -> io::Result<()> {
    let peer = PeerCredentials::of(&stream).map_or(Peer::Unknown, |c| Peer::Process(c.uid, c.pid));
    let stream = Arc::new(stream);
    let Some((slot, _)) = shared.slots.admit(&stream, peer) else {
        let what = match peer.user().filter(|_| !shared.slots.is_owner(peer)) {
            Some(user) => format!(
                "{CLIENTS_OF_USER_MAX} clients of user {user}, or {CLIENTS_MAX} in all, are connected already; \
                 try again"
            ),
            None => format!("{CLIENTS_MAX} clients are connected already; try again"),
        };
        stream.set_nonblocking(true)?;
        // An error means that the client has disconnected.
        let _ = send(&stream, Err(Refused::new(RefusalKind::Busy, what)));
        let _ = stream.shutdown(Shutdown::Both);
        return Ok(());
    };
    let client = Arc::clone(shared);
    // An error ends only this connection, and is not reported.
    let run = move || drop(serve(&stream, &slot, &client));
    std::thread::Builder::new().name("ctl-client".into()).spawn(run).map(drop)
}

/// Answers requests until the client disconnects, reaches a timeout, or sends a line that is too
/// long.
fn serve(stream: &UnixStream, slot: &ConnectionSlot<UnixStream>, shared: &ControlState) -> io::Result<()> {
    stream.set_write_timeout(Some(SILENCE_MAX))?;
    let caller = PeerCredentials::of(stream)?;
    let is_owner = shared.rights.is_owner(caller);
    let bytes_max = if is_owner { wire::REQUEST_BYTES_MAX } else { OTHERS_BYTES_MAX };
    let mut buffer = Vec::new();
    while let Some(end) = line(stream, &mut buffer, bytes_max)? {
        if end > bytes_max {
            // The start of the next request is unknown.
            return send(stream, Err(wire::too_long(bytes_max)));
        }
        slot.busy();
        let answer = {
            let _turn = (!is_owner).then(|| shared.others.lock());
            shared.execute(caller, &buffer[..end], &|| is_gone(stream))
        };
        send(stream, answer)?;
        buffer.drain(..=end);
        slot.idle(Instant::now());
    }
    Ok(())
}

/// Returns `true` if a client has disconnected. One that only sends no more still gets its answers.
fn is_gone(stream: &UnixStream) -> bool {
    let mut polled = [PollFd::new(stream, PollFlags::empty())];
    let none = Timespec { tv_sec: 0, tv_nsec: 0 };
    matches!(poll(&mut polled, Some(&none)), Ok(n) if n > 0)
        && polled[0].revents().intersects(PollFlags::HUP | PollFlags::ERR)
}

/// Reads until the buffer holds a complete line, or more than `bytes_max` bytes. Returns the
/// end of the line in the buffer, or `None` if the client has disconnected.
fn line(stream: &UnixStream, buffer: &mut Vec<u8>, bytes_max: usize) -> io::Result<Option<usize>> {
    let until = Instant::now() + SILENCE_MAX;
    let mut part = [0; 4096];
    let mut searched = 0;
    loop {
        if let Some(end) = buffer[searched..].iter().position(|&b| b == b'\n') {
            return Ok(Some(searched + end));
        }
        searched = buffer.len();
        if searched > bytes_max {
            return Ok(Some(searched));
        }
        match read_before(stream, &mut part, until)? {
            0 => return Ok(None),
            n => buffer.extend_from_slice(&part[..n]),
        }
    }
}

fn send(stream: &UnixStream, result: Result<Success, Refused>) -> io::Result<()> {
    write_before(stream, &wire::line(&Answer::from(result)).map_err(io::Error::from)?, SILENCE_MAX)
}

impl ControlState {
    fn execute(
        &self,
        caller: PeerCredentials,
        line: &[u8],
        gone: &dyn Fn() -> bool,
    ) -> Result<Success, Refused> {
        let what = wire::parse(line)?;
        let done = self.rights.check(caller, &what).and_then(|()| match &what {
            ControlOperation::Get { key } => self.get(key.as_deref()),
            ControlOperation::Set { changes } => self.set(caller, changes),
            ControlOperation::Stat {} => Ok(Success::Stat(Box::new(self.control_target.stat()))),
            ControlOperation::Hint { add, remove, detect } => {
                let change = HintChange::parse(add, remove, *detect)?;
                let (list, changed) = self.control_target.hint(&change)?;
                self.log_changes(caller, &changed);
                Ok(Success::Hints(list))
            }
            ControlOperation::Peek { at, len, raw } => {
                let bytes = self.control_target.peek(&raw_names(caller.uid), *at, *len, *raw)?;
                Ok(Success::Bytes(wire::to_hex(&bytes)))
            }
            ControlOperation::Poke { at, data, raw } => {
                self.control_target.poke(&raw_names(caller.uid), *at, data, *raw).map(Success::Written)
            }
            ControlOperation::Cache { command } => self.control_target.cache(command).map(Success::Cache),
            ControlOperation::Nameless { command } => {
                self.control_target.nameless(command).map(Success::Nameless)
            }
            ControlOperation::Zoned { command } => self.control_target.zoned(command).map(Success::Zoned),
            ControlOperation::Isp { command } => self.control_target.isp(command, gone).map(Success::Isp),
        });
        let PeerCredentials { uid, pid } = caller;
        match (&done, &what) {
            (Err(refused), what) if what.changes() => {
                self.log
                    .write_line(format_args!("control: refused a change by uid {uid} pid {pid}: {refused}"));
            }
            (
                Err(refused),
                ControlOperation::Peek { .. } | ControlOperation::Poke { .. } | ControlOperation::Isp { .. },
            ) if refused.kind == RefusalKind::Denied => {
                self.log.write_line(format_args!("control: refused bytes to uid {uid} pid {pid}: {refused}"));
            }
            _ => {}
        }
        done
    }

    fn get(&self, key: Option<&str>) -> Result<Success, Refused> {
        let mut all = self.control_target.params();
        if let Some(key) = key {
            let full = full_key(all.iter().map(|p| &*p.key), key)?.to_owned();
            all.retain(|p| p.key == full);
        }
        Ok(Success::Params(all))
    }

    fn set(&self, caller: PeerCredentials, settings: &[wire::Setting]) -> Result<Success, Refused> {
        let changed = self.control_target.change(settings)?;
        self.log_changes(caller, &changed);
        Ok(Success::Changed(changed))
    }

    fn log_changes(&self, caller: PeerCredentials, changed: &[wire::ParamChange]) {
        let now = SystemTime::now();
        for change in changed {
            self.log.write_line(format_args!("control: {}", change_log::line(now, caller, change)));
        }
        if let Err(e) = self.change_log.append(now, caller, changed) {
            self.log.write_line(format_args!("control: cannot write {} of the volume: {e}", ChangeLog::NAME));
        }
    }
}

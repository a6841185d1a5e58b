//! The server of the control socket: a thread that accepts, and one for each client.

use super::changes::{self, Changes};
use super::panel::Panel;
use super::rights::{Caller, Rights};
use super::socket;
use super::wire::{self, Answer, Do, Done, Refusal, Refused};
use crate::log::Log;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

/// Clients at a time; more are refused, in words.
const CLIENTS_MAX: usize = 16;
/// A client that says nothing for so long, or does not take its answer, is let go.
const SILENCE_MAX: Duration = Duration::from_secs(10);

/// Where to listen, and for whom.
#[derive(Clone, Debug)]
pub struct Options {
    /// The path of the socket.
    pub socket: PathBuf,
    /// The directory of the volume, for its list of changes.
    pub volume: PathBuf,
    /// Who may do what.
    pub rights: Rights,
}

/// A running server.
#[derive(Debug)]
pub struct Server {
    path: PathBuf,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    panel: Arc<dyn Panel>,
    changes: Changes,
    rights: Rights,
    log: Log,
    clients: AtomicUsize,
}

impl Server {
    /// Listens.
    ///
    /// # Errors
    /// A path that cannot be listened at.
    pub fn start(options: &Options, panel: Arc<dyn Panel>, log: Log) -> io::Result<Server> {
        let listener = socket::listen(&options.socket, options.rights.read_all)?;
        let stop = Arc::new(AtomicBool::new(false));
        let shared = Arc::new(Shared {
            panel,
            changes: Changes::of(&options.volume),
            rights: options.rights,
            log,
            clients: AtomicUsize::new(0),
        });
        let seen = stop.clone();
        let accept = move || accept(&listener, &shared, &seen);
        let thread = std::thread::Builder::new().name("ctl".into()).spawn(accept)?;
        Ok(Server { path: options.socket.clone(), stop, thread: Some(thread) })
    }

    /// Where it listens.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Server {
    /// Stops listening and removes the socket. Requests that are being answered are.
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        // A connection of our own wakes the thread that accepts.
        if socket::connect(&self.path).is_ok()
            && let Some(thread) = self.thread.take()
        {
            let _ = thread.join();
        }
        let _ = std::fs::remove_file(&self.path);
    }
}

fn accept(listener: &UnixListener, shared: &Arc<Shared>, stop: &AtomicBool) {
    loop {
        let stream = match listener.accept() {
            Ok((stream, _)) => stream,
            Err(e) => {
                // Out of descriptors, say: that may pass.
                shared.log.say(format_args!("control: cannot accept a client: {e}"));
                std::thread::sleep(Duration::from_millis(100));
                continue;
            }
        };
        if stop.load(Ordering::SeqCst) {
            return;
        }
        if shared.clients.fetch_add(1, Ordering::SeqCst) >= CLIENTS_MAX {
            let what = format!("{CLIENTS_MAX} clients control it already; try again");
            let _ = send(&stream, Err(Refused::new(Refusal::Busy, what)));
            let _ = stream.shutdown(Shutdown::Both);
            shared.clients.fetch_sub(1, Ordering::SeqCst);
            continue;
        }
        let client = shared.clone();
        let spawned = std::thread::Builder::new().name("ctl-client".into()).spawn(move || {
            // What ends a connection concerns its client alone.
            let _ = serve(&stream, &client);
            client.clients.fetch_sub(1, Ordering::SeqCst);
        });
        if let Err(e) = spawned {
            shared.clients.fetch_sub(1, Ordering::SeqCst);
            shared.log.say(format_args!("control: no thread for a client: {e}"));
        }
    }
}

/// Answers requests until the client goes, says nothing, or says what is no request.
fn serve(stream: &UnixStream, shared: &Shared) -> io::Result<()> {
    stream.set_read_timeout(Some(SILENCE_MAX))?;
    stream.set_write_timeout(Some(SILENCE_MAX))?;
    let caller = Caller::of(stream)?;
    let mut reader = BufReader::new(stream);
    let mut line = Vec::new();
    loop {
        line.clear();
        let limit = wire::REQUEST_BYTES_MAX as u64 + 1;
        (&mut reader).take(limit).read_until(b'\n', &mut line)?;
        match line.strip_suffix(b"\n") {
            Some(request) => send(stream, shared.answer(caller, request))?,
            // Where the next request begins cannot be told.
            None if line.len() as u64 == limit => return send(stream, Err(wire::too_long())),
            None => return Ok(()),
        }
    }
}

fn send(mut stream: &UnixStream, result: Result<Done, Refused>) -> io::Result<()> {
    stream.write_all(&wire::line(&Answer::from(result)).map_err(io::Error::from)?)
}

impl Shared {
    fn answer(&self, caller: Caller, line: &[u8]) -> Result<Done, Refused> {
        let what = wire::parse(line)?;
        let done = self.rights.check(caller, &what).and_then(|()| match &what {
            Do::Get { key } => self.get(key.as_deref()),
            Do::Set { changes } => self.set(caller, changes),
            Do::Stat {} => Ok(Done::Stat(Box::new(self.panel.stat()))),
        });
        if let (Err(refused), Do::Set { .. }) = (&done, &what) {
            let Caller { uid, pid } = caller;
            self.log.say(format_args!("control: refused a change by uid {uid} pid {pid}: {refused}"));
        }
        done
    }

    fn get(&self, key: Option<&str>) -> Result<Done, Refused> {
        let mut all = self.panel.params();
        if let Some(key) = key {
            if !all.iter().any(|p| p.key == key) {
                let known: Vec<&str> = all.iter().map(|p| &p.key[..]).collect();
                let what = format!("there is no parameter '{key}'; there are {}", known.join(", "));
                return Err(Refused::new(Refusal::Invalid, what));
            }
            all.retain(|p| p.key == key);
        }
        Ok(Done::Params(all))
    }

    fn set(&self, caller: Caller, settings: &[wire::Setting]) -> Result<Done, Refused> {
        let changed = self.panel.change(settings)?;
        let now = SystemTime::now();
        for change in &changed {
            self.log.say(format_args!("control: {}", changes::line(now, caller, change)));
        }
        if let Err(e) = self.changes.append(now, caller, &changed) {
            self.log.say(format_args!("control: cannot write {} of the volume: {e}", Changes::NAME));
        }
        Ok(Done::Changed(changed))
    }
}

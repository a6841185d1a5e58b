//! Thread of a client: receives, executes and replies, with deadlines for incomplete messages.

use super::super::connection::{Connection, Next};
use super::super::input::Input;
use super::super::outlet::Outlet;
use super::super::paced::Waiting;
use super::super::patience::Patience;
use super::super::stream::Stream;
use super::super::{Output, ServerOptions};
use super::Shared;
use crate::guard::{BYTES_PER_SECOND_MIN, Place, is_timeout};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Time without requests after which a client's buffers are freed.
const REST_AFTER: Duration = Duration::from_secs(1);

/// Serves a client until client or server ends the session.
///
/// # Errors
/// `TimedOut` if the client was too slow, or the error of its socket.
pub(super) fn serve(shared: &Shared, stream: &Arc<Stream>, place: &Place<Stream>) -> io::Result<()> {
    let outlet = shared.export.device().deferring().then(|| Arc::new(Outlet::new(stream)));
    let connection = Connection::with_limits(
        Arc::clone(&shared.export),
        &shared.budget,
        shared.options.request_max,
        outlet.clone(),
    );
    let mut session = Session::new(shared, stream, place, connection);
    if let Some(outlet) = outlet {
        return session.exchange(&mut |out| outlet.send(out.bytes()));
    }
    if !shared.export.device().paced() {
        return session.exchange(&mut |out| stream.write_all(out.bytes()));
    }
    let (device, waiting) = (shared.export.device(), Waiting::new(&shared.budget));
    std::thread::scope(|scope| {
        let sender = std::thread::Builder::new().name("nbd-paced".into());
        sender.spawn_scoped(scope, || waiting.send(stream, &|due| device.replied(due)))?;
        let result = session.exchange(&mut |out| {
            if out.timed().next().is_none() {
                return stream.write_all(out.bytes());
            }
            if waiting.put(out) { Ok(()) } else { Err(io::ErrorKind::BrokenPipe.into()) }
        });
        waiting.end();
        result
    })
}

/// Activity of a client, which determines its deadline.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Doing {
    /// The client selects an export, until this deadline.
    Handshake(Instant),
    /// The client is sending a request: start time, and number of bytes received since.
    Request(Instant, u64),
    /// The client has sent nothing since its last request. It keeps its buffers until this time.
    Pause(Instant),
    /// No deadline applies: a request was completed, or the client is idle and has no buffers.
    Idle,
}

struct Session<'a> {
    options: &'a ServerOptions,
    stream: &'a Stream,
    place: &'a Place<Stream>,
    connection: Connection,
    input: Input,
    doing: Doing,
    /// Current read timeout of the socket.
    timeout: Option<Duration>,
    patience: Patience,
}

impl<'a> Session<'a> {
    fn new(
        shared: &'a Shared,
        stream: &'a Stream,
        place: &'a Place<Stream>,
        connection: Connection,
    ) -> Session<'a> {
        let doing = Doing::Handshake(Instant::now() + shared.options.handshake_max);
        Session {
            options: &shared.options,
            stream,
            place,
            connection,
            input: Input::new(&shared.budget),
            doing,
            timeout: None,
            patience: Patience::default(),
        }
    }

    /// Main loop: receives requests, executes them, and sends replies.
    fn exchange(&mut self, send: &mut dyn FnMut(&Output) -> io::Result<()>) -> io::Result<()> {
        loop {
            let step = self.connection.advance(self.input.bytes());
            self.input.used(step.used);
            if step.used > 0 && matches!(self.doing, Doing::Request(..)) {
                // A request, or a piece of it, is complete.
                self.doing = Doing::Idle;
            }
            self.note_negotiated();
            let out = self.connection.output();
            if !out.is_empty() {
                send(out)?;
                out.clear();
            }
            let whole = match step.next {
                Next::Again => continue,
                Next::Close => return Ok(()),
                Next::More(whole) => whole,
            };
            if self.input.room(whole).is_empty() {
                self.connection.take_in_pieces();
            } else if self.receive(whole)? == 0 {
                return Ok(());
            }
        }
    }

    /// Leaves the handshake state when the client has selected an export. This must happen before
    /// the reply is sent: a client that has received the reply must not count as one that has sent
    /// no complete message, since those may be evicted first.
    fn note_negotiated(&mut self) {
        if matches!(self.doing, Doing::Handshake(_)) && self.connection.is_transmitting() {
            self.doing = Doing::Idle;
            self.place.busy();
        }
    }

    /// Reads at least one byte from the socket. Returns 0 if the client has disconnected.
    fn receive(&mut self, whole: usize) -> io::Result<usize> {
        let negotiated = self.connection.is_transmitting();
        let looked = if negotiated { self.patience.read(self.stream, self.input.room(whole))? } else { None };
        let n = match looked {
            Some(n) => n,
            None => self.wait(whole)?,
        };
        self.input.came(n);
        if let Doing::Request(_, bytes) = &mut self.doing {
            *bytes += n as u64;
        }
        Ok(n)
    }

    /// Waits for bytes, up to the deadline of the client's current activity.
    fn wait(&mut self, whole: usize) -> io::Result<usize> {
        let within = !self.input.bytes().is_empty() || self.connection.is_within_request();
        self.doing = match self.doing {
            Doing::Handshake(until) => Doing::Handshake(until),
            Doing::Request(since, bytes) if within => Doing::Request(since, bytes),
            _ if within => Doing::Request(Instant::now(), 0),
            _ => Doing::Pause(Instant::now() + REST_AFTER),
        };
        let mut rested = false;
        loop {
            let now = Instant::now();
            let left = match self.doing {
                Doing::Handshake(until) | Doing::Pause(until) => Some(until.saturating_duration_since(now)),
                Doing::Request(since, bytes) => {
                    let most = self.options.request_max + Duration::from_secs(bytes / BYTES_PER_SECOND_MIN);
                    Some(most.saturating_sub(now.saturating_duration_since(since)))
                }
                Doing::Idle => None,
            };
            if left.is_some_and(|t| t.is_zero()) {
                if !matches!(self.doing, Doing::Pause(_)) {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                // Idle clients may stay connected for hours. From now on they cost little more than
                // a thread.
                (self.doing, rested) = (Doing::Idle, true);
                self.input.rest();
                self.connection.rest();
                self.place.idle(now);
                continue;
            }
            // The timeout is rounded so that it rarely changes, which saves system calls. The loop
            // checks the exact deadline.
            let timeout = left.map(|t| if t > REST_AFTER / 2 { REST_AFTER } else { t });
            if self.timeout != timeout {
                self.stream.set_read_timeout(timeout)?;
                self.timeout = timeout;
            }
            match self.stream.read(self.input.room(whole)) {
                Err(e) if is_timeout(&e) => {}
                result => {
                    if rested {
                        self.place.busy();
                    }
                    return result;
                }
            }
        }
    }
}

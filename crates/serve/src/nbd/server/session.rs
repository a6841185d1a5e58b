//! A client's thread: reads, carries out, sends; with a deadline for whatever the client has begun.

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

/// A client that says nothing for so long between requests holds no memory from then on.
const REST_AFTER: Duration = Duration::from_secs(1);

/// Serves a client until either side ends it.
///
/// # Errors
/// `TimedOut` when it was too slow, or as the system says of its socket.
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

/// The activity of a client, on which its deadline depends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Doing {
    /// It chooses an export, until then.
    Handshake(Instant),
    /// It has begun to send a request, at a time; so many bytes came since.
    Request(Instant, u64),
    /// It has sent nothing since the last request, and holds memory until then.
    Pause(Instant),
    /// The same, for a while.
    Idle,
}

struct Session<'a> {
    options: &'a ServerOptions,
    stream: &'a Stream,
    place: &'a Place<Stream>,
    connection: Connection,
    input: Input,
    doing: Doing,
    /// The read timeout that the socket has.
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

    /// Reads, carries out, sends.
    fn exchange(&mut self, send: &mut dyn FnMut(&Output) -> io::Result<()>) -> io::Result<()> {
        loop {
            let step = self.connection.advance(self.input.bytes());
            self.input.used(step.used);
            if step.used > 0 && matches!(self.doing, Doing::Request(..)) {
                // A request is complete, or a piece of it.
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

    /// Ends the handshake, as soon as the client has chosen an export. This comes before the reply is sent: a client
    /// that has the reply must not count as one that has sent nothing complete, which another one may evict.
    fn note_negotiated(&mut self) {
        if matches!(self.doing, Doing::Handshake(_)) && self.connection.is_transmitting() {
            self.doing = Doing::Idle;
            self.place.busy();
        }
    }

    /// Reads what the socket holds, at least a byte; 0 when the client has hung up.
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

    /// Waits for bytes as long as what the client is doing may take.
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
                // Silent clients may stay for hours, and cost hardly more than a thread then.
                (self.doing, rested) = (Doing::Idle, true);
                self.input.rest();
                self.connection.rest();
                self.place.idle(now);
                continue;
            }
            // Mostly the same again, so that it is set once; the loop looks at the clock after it.
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

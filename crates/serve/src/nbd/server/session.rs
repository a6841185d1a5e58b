//! Thread of a client: receives, executes and replies, with deadlines for incomplete messages.

use super::super::adaptive_spin::AdaptiveSpin;
use super::super::connection::{Connection, Next};
use super::super::input::ReceiveBuffer;
use super::super::paced::ReplyQueue;
use super::super::reply_writer::ReplyWriter;
use super::super::stream::ClientStream;
use super::super::{Output, ServerOptions};
use super::NbdServerState;
use crate::resource_limits::{BYTES_PER_SECOND_MIN, ConnectionSlot, Share, is_timeout};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Time without requests after which a client's buffers are freed.
const RELEASE_AFTER: Duration = Duration::from_secs(1);

/// Serves a client until client or server ends the session.
///
/// # Errors
/// `TimedOut` if the client was too slow, or the error of its socket.
pub(super) fn serve(
    shared: &NbdServerState,
    stream: &Arc<ClientStream>,
    slot: &ConnectionSlot<ClientStream>,
) -> io::Result<()> {
    let share = shared.budget.share(stream.peer());
    let reply_writer = shared.exports.device().deferring().then(|| Arc::new(ReplyWriter::new(stream)));
    let connection = Connection::with_limits(
        shared.exports.clone(),
        &share,
        shared.options.request_max,
        reply_writer.clone(),
    );
    let mut session = ClientSession::new(shared, stream, slot, connection, &share);
    if let Some(reply_writer) = reply_writer {
        return session.exchange(&mut |out| reply_writer.send(out.bytes()));
    }
    if !shared.exports.device().paced() {
        return session.exchange(&mut |out| stream.write_all(out.bytes()));
    }
    let (device, waiting) = (shared.exports.device(), ReplyQueue::new(&share));
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
enum ClientActivity {
    /// The client selects an export, until this deadline.
    Handshake(Instant),
    /// The client is sending a request: start time, and number of bytes received since.
    Request(Instant, u64),
    /// The client has sent nothing since its last request. It keeps its buffers until this time.
    Pause(Instant),
    /// No deadline applies: a request was completed, or the client is idle and has no buffers.
    Idle,
}

struct ClientSession<'a> {
    options: &'a ServerOptions,
    stream: &'a ClientStream,
    slot: &'a ConnectionSlot<ClientStream>,
    connection: Connection,
    input: ReceiveBuffer,
    activity: ClientActivity,
    /// Current read timeout of the socket.
    timeout: Option<Duration>,
    adaptive_spin: AdaptiveSpin,
}

impl<'a> ClientSession<'a> {
    fn new(
        shared: &'a NbdServerState,
        stream: &'a ClientStream,
        slot: &'a ConnectionSlot<ClientStream>,
        connection: Connection,
        share: &Share,
    ) -> ClientSession<'a> {
        let activity = ClientActivity::Handshake(Instant::now() + shared.options.handshake_max);
        ClientSession {
            options: &shared.options,
            stream,
            slot,
            connection,
            input: ReceiveBuffer::new(share),
            activity,
            timeout: None,
            adaptive_spin: AdaptiveSpin::default(),
        }
    }

    /// Main loop: receives requests, executes them, and sends replies.
    fn exchange(&mut self, send: &mut dyn FnMut(&Output) -> io::Result<()>) -> io::Result<()> {
        loop {
            let step = self.connection.advance(self.input.bytes());
            self.input.consume(step.used);
            if step.used > 0 && matches!(self.activity, ClientActivity::Request(..)) {
                // A request, or a piece of it, is complete.
                self.activity = ClientActivity::Idle;
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
            if self.input.free_space(whole).is_empty() {
                self.connection.execute_in_pieces();
            } else if self.receive(whole)? == 0 {
                return Ok(());
            }
        }
    }

    /// Leaves the handshake state when the client has selected an export. This must happen before
    /// the reply is sent: a client that has received the reply must not count as one that has sent
    /// no complete message, since those may be evicted first.
    fn note_negotiated(&mut self) {
        if matches!(self.activity, ClientActivity::Handshake(_)) && self.connection.is_transmitting() {
            self.activity = ClientActivity::Idle;
            self.slot.busy();
        }
    }

    /// Reads at least one byte from the socket. Returns 0 if the client has disconnected.
    fn receive(&mut self, whole: usize) -> io::Result<usize> {
        let negotiated = self.connection.is_transmitting();
        let polled = if negotiated {
            self.adaptive_spin.read(self.stream, self.input.free_space(whole))?
        } else {
            None
        };
        let n = match polled {
            Some(n) => n,
            None => self.wait(whole)?,
        };
        self.input.commit(n);
        if let ClientActivity::Request(_, bytes) = &mut self.activity {
            *bytes += n as u64;
        }
        Ok(n)
    }

    /// Waits for bytes, up to the deadline of the client's current activity.
    fn wait(&mut self, whole: usize) -> io::Result<usize> {
        let within = !self.input.bytes().is_empty() || self.connection.is_within_request();
        self.activity = match self.activity {
            ClientActivity::Handshake(until) => ClientActivity::Handshake(until),
            ClientActivity::Request(since, bytes) if within => ClientActivity::Request(since, bytes),
            _ if within => ClientActivity::Request(Instant::now(), 0),
            _ => ClientActivity::Pause(Instant::now() + RELEASE_AFTER),
        };
        let mut rested = false;
        loop {
            let now = Instant::now();
            let left = match self.activity {
                ClientActivity::Handshake(until) | ClientActivity::Pause(until) => {
                    Some(until.saturating_duration_since(now))
                }
                ClientActivity::Request(since, bytes) => {
                    let most = self.options.request_max + Duration::from_secs(bytes / BYTES_PER_SECOND_MIN);
                    Some(most.saturating_sub(now.saturating_duration_since(since)))
                }
                ClientActivity::Idle => None,
            };
            if left.is_some_and(|t| t.is_zero()) {
                if !matches!(self.activity, ClientActivity::Pause(_)) {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                // Idle clients may stay connected for hours. From now on they cost little more than
                // a thread.
                (self.activity, rested) = (ClientActivity::Idle, true);
                self.input.release();
                self.connection.release();
                self.slot.idle(now);
                continue;
            }
            // The timeout is rounded so that it rarely changes, which saves system calls. The loop
            // checks the exact deadline.
            let timeout = left.map(|t| if t > RELEASE_AFTER / 2 { RELEASE_AFTER } else { t });
            if self.timeout != timeout {
                self.stream.set_read_timeout(timeout)?;
                self.timeout = timeout;
            }
            match self.stream.read(self.input.free_space(whole)) {
                Err(e) if is_timeout(&e) => {}
                result => {
                    if rested {
                        self.slot.busy();
                    }
                    return result;
                }
            }
        }
    }
}

//! Open command file: bytes that are written are instructions, and bytes that are read are results.

mod input;
mod open;
mod reply;

use crate::engine::{Account, Charge, Engine, Request, Ticket, User};
use crate::instructions::Instruction;
use crate::outcome::{Failure, Outcome, Status};
use crate::source::{ResolveError, Resolver, Target};
use input::{Form, Input, Next};
pub(crate) use open::Channels;
use open::{CHANNELS_MAX, Opened};
use parking_lot::Mutex;
use reply::Reply;
use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Number of instructions whose results have not been read, at most.
const OUTSTANDING_MAX: usize = 16;

/// Error of a read or write of a command file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChannelError {
    /// the results are not complete, or too many results have not been read (`EAGAIN`)
    #[error("the results are not complete, or too many results have not been read")]
    WouldBlock,
    /// the user has too many open command files (`EMFILE`)
    #[error("the user has {CHANNELS_MAX} open command files, which is the most; close some")]
    TooMany,
    /// the results and instructions of the user occupy too much memory (`ENOMEM`)
    #[error("results and instructions of the user occupy too much memory; read or close some")]
    NoMemory,
}

/// Memory of an open command file in bytes, without its instructions.
const CHANNEL_BYTES: usize = 4 << 10;

/// Operations on a command file that would not block.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Readiness {
    /// A read returns bytes of a result.
    pub readable: bool,
    /// A write accepts an instruction.
    pub writable: bool,
}

/// Instruction whose result has not been read to its end.
struct Pending {
    ticket: Ticket,
    /// The result, which the thread that completes the instruction makes: it can take long.
    result: Arc<OnceLock<Reply>>,
    read: usize,
}

impl Pending {
    fn is_readable(&self) -> bool {
        self.result.get().is_some()
    }
}

/// Instruction that was given to the engine.
struct Begun {
    ticket: Ticket,
    form: Form,
    result: Arc<OnceLock<Reply>>,
}

#[derive(Default)]
struct State {
    input: Input,
    pending: VecDeque<Pending>,
}

/// Function that is called when a read may be possible.
type Callback = Box<dyn FnOnce() + Send>;

/// Function that is called for each event.
type Watcher = Arc<dyn Fn() + Send + Sync>;

/// Functions that wait for events of a channel.
#[derive(Default)]
struct Waiters {
    /// Called by the next completion.
    once: Vec<Callback>,
    /// Called by each event.
    watcher: Option<Watcher>,
}

/// State of an open command file. Dropping it cancels its instructions.
pub struct Channel {
    engine: Arc<Engine>,
    user: User,
    account: Account,
    /// Memory of the command file, and of an instruction that is not complete.
    memory: Mutex<Charge>,
    _opened: Option<Opened>,
    state: Mutex<State>,
    waiters: Arc<Mutex<Waiters>>,
}

/// Memory of a user in which bytes wait for a write.
#[derive(Debug)]
pub struct Held(#[expect(dead_code, reason = "it counts while it exists")] Charge);

impl std::fmt::Debug for Channel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Channel").field("readiness", &self.readiness()).finish_non_exhaustive()
    }
}

impl Channel {
    /// Opens a command file of the default user, whose instructions are executed by `engine`.
    #[must_use]
    pub fn new(engine: Arc<Engine>) -> Self {
        Self::with(engine, User::default(), None)
    }

    /// Opens a command file of a user, to whom the memory and the processor time of its instructions count.
    ///
    /// # Errors
    /// The user has too many of them, or no memory for one more.
    pub fn for_user(engine: Arc<Engine>, user: User) -> Result<Self, ChannelError> {
        let opened = engine.channels().open(user).ok_or(ChannelError::TooMany)?;
        let channel = Self::with(engine, user, Some(opened));
        channel.memory.lock().cover(CHANNEL_BYTES).map_err(|_| ChannelError::NoMemory)?;
        Ok(channel)
    }

    fn with(engine: Arc<Engine>, user: User, opened: Option<Opened>) -> Self {
        let account = engine.account(user);
        let memory = Mutex::new(account.charge());
        let (state, waiters) = (Mutex::default(), Arc::default());
        Self { engine, user, account, memory, _opened: opened, state, waiters }
    }

    /// Counts bytes that a caller keeps for a later [`write`](Self::write) as memory of the user, until the result is
    /// dropped.
    ///
    /// # Errors
    /// The user has no memory for them.
    pub fn hold(&self, bytes: usize) -> Result<Held, ChannelError> {
        self.account.charged(bytes).map(Held).map_err(|_| ChannelError::NoMemory)
    }

    /// Writes bytes of instructions, and begins to execute those that are complete. Their files are
    /// found by `resolver`. Returns the number of accepted bytes, which is smaller than that of `bytes`
    /// if too many results have not been read. Errors in instructions are results.
    ///
    /// # Errors
    /// No byte was accepted, because too many results have not been read. Or there is no memory for an instruction that
    /// is not complete, of which nothing is kept.
    pub fn write(&self, bytes: &[u8], resolver: &dyn Resolver) -> Result<usize, ChannelError> {
        let mut begun = Vec::new();
        let accepted = self.accept(bytes, resolver, &mut begun);
        // An instruction that is already complete calls readers at once, which lock the state.
        for Begun { ticket, form, result } in begun {
            let (waiters, account) = (Arc::clone(&self.waiters), self.account.clone());
            let complete = ticket.clone();
            ticket.on_complete(move || {
                if let Some(outcome) = complete.try_wait() {
                    result.get_or_init(|| Reply::new(&form, &complete, outcome, &account));
                }
                // Reads come first: what they take is not announced to the watcher in vain.
                call_once(&waiters);
                notify(&waiters);
            });
        }
        accepted
    }

    fn accept(
        &self,
        bytes: &[u8],
        resolver: &dyn Resolver,
        begun: &mut Vec<Begun>,
    ) -> Result<usize, ChannelError> {
        let mut state = self.state.lock();
        let mut accepted = 0;
        loop {
            if state.pending.len() >= OUTSTANDING_MAX && accepted < bytes.len() {
                return if accepted > 0 { Ok(accepted) } else { Err(ChannelError::WouldBlock) };
            }
            let (used, next) = state.input.add(&bytes[accepted..]);
            accepted += used;
            match next {
                Next::Instruction(form, parsed) => {
                    self.memory.lock().shrink(CHANNEL_BYTES as u64);
                    begun.push(self.begin(&mut state, form, parsed, resolver));
                }
                Next::Incomplete => {
                    return match self.memory.lock().cover(CHANNEL_BYTES + state.input.len()) {
                        Ok(()) => Ok(accepted),
                        Err(_) => {
                            state.input = Input::default();
                            Err(ChannelError::NoMemory)
                        }
                    };
                }
            }
        }
    }

    fn begin(
        &self,
        state: &mut State,
        form: Form,
        parsed: Result<Instruction, Failure>,
        resolver: &dyn Resolver,
    ) -> Begun {
        let request = parsed.and_then(|instruction| resolve(instruction, resolver));
        let ticket = match request {
            Ok(request) => {
                let instruction = request.instruction.clone();
                let ticket = self.engine.submit_for(self.user, request);
                resolver.started(&instruction, &ticket);
                ticket
            }
            Err(failure) => Ticket::completed(Outcome::failed(failure)),
        };
        let result = Arc::default();
        state.pending.push_back(Pending { ticket: ticket.clone(), result: Arc::clone(&result), read: 0 });
        Begun { ticket, form, result }
    }

    /// Reads up to `len` bytes of the oldest result, and waits until it is complete. A read never
    /// returns bytes of two results. Without an instruction, it returns no bytes.
    #[must_use]
    pub fn read(&self, len: usize) -> Vec<u8> {
        loop {
            match self.try_read(len) {
                Ok(bytes) => return bytes,
                Err(_) => {
                    let ticket = self.state.lock().pending.front().map(|pending| pending.ticket.clone());
                    // A wait has steps, because another reader may take the result. After it, the result is made.
                    std::thread::yield_now();
                    let _ = ticket.map(|ticket| ticket.wait_for(Duration::from_secs(1)));
                }
            }
        }
    }

    /// Reads as [`read`](Self::read), without waiting.
    ///
    /// # Errors
    /// The oldest result is not complete.
    pub fn try_read(&self, len: usize) -> Result<Vec<u8>, ChannelError> {
        let mut state = self.state.lock();
        if state.pending.is_empty()
            && let Some((form, failure)) = state.input.give_up()
        {
            let outcome = Arc::new(Outcome::failed(failure));
            let ticket = Ticket::default();
            let result = Arc::new(OnceLock::from(Reply::new(&form, &ticket, outcome, &self.account)));
            state.pending.push_back(Pending { ticket, result, read: 0 });
        }
        let Some(pending) = state.pending.front_mut() else { return Ok(Vec::new()) };
        let result = pending.result.get().ok_or(ChannelError::WouldBlock)?;
        let bytes = result.bytes(pending.read, len);
        let end = pending.read + bytes.len();
        pending.read = end;
        if end == result.len() {
            let was_full = state.pending.len() == OUTSTANDING_MAX;
            state.pending.pop_front();
            let has_next = state.pending.front().is_some_and(Pending::is_readable);
            drop(state);
            // The next result may have been complete before this one, which was an event for this one.
            if was_full || has_next {
                notify(&self.waiters);
            }
        }
        Ok(bytes)
    }

    /// Returns `true` if an instruction was begun and is not complete.
    #[must_use]
    pub fn has_incomplete(&self) -> bool {
        !self.state.lock().input.is_empty()
    }

    /// Operations that would not block.
    #[must_use]
    pub fn readiness(&self) -> Readiness {
        let state = self.state.lock();
        Readiness {
            readable: state.pending.front().is_some_and(Pending::is_readable),
            writable: state.pending.len() < OUTSTANDING_MAX,
        }
    }

    /// Calls `callback` once, when an instruction is complete, and at once if the oldest one is, or if
    /// there is none. The caller then tries to read again.
    pub fn on_ready(&self, callback: impl FnOnce() + Send + 'static) {
        let state = self.state.lock();
        if let Some(pending) = state.pending.front() {
            self.waiters.lock().once.push(Box::new(callback));
            let is_readable = pending.is_readable();
            drop(state);
            // The instruction may have completed before the callback was stored.
            if is_readable {
                call_once(&self.waiters);
            }
        } else {
            drop(state);
            callback();
        }
    }

    /// Calls `watcher` for each event from now on: an instruction completes, a read reaches the end of a result
    /// and the next one is complete, or it makes room for an instruction. Replaces the watcher that was set before. It is never called for a state that is
    /// there already: a caller that sets it first, and then looks at [`readiness`](Self::readiness),
    /// misses nothing.
    pub fn watch(&self, watcher: impl Fn() + Send + Sync + 'static) {
        let watcher: Watcher = Arc::new(watcher);
        let replaced = self.waiters.lock().watcher.replace(watcher);
        // Outside of the lock, as any code that the caller passed.
        drop(replaced);
    }

    /// Cancels all instructions. Their results have the status `cancelled`.
    pub fn cancel(&self) {
        self.state.lock().pending.iter().for_each(|pending| pending.ticket.cancel());
    }

    /// Cancels all instructions, and removes the watcher. Reads that wait get the results.
    pub fn close(&self) {
        let watcher = self.waiters.lock().watcher.take();
        drop(watcher);
        self.cancel();
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        self.close();
    }
}

/// Calls all functions that wait for one completion, and removes them.
fn call_once(waiters: &Mutex<Waiters>) {
    let callbacks = std::mem::take(&mut waiters.lock().once);
    callbacks.into_iter().for_each(|callback| callback());
}

/// Calls the watcher, which may lock the channel.
fn notify(waiters: &Mutex<Waiters>) {
    let watcher = waiters.lock().watcher.clone();
    if let Some(watcher) = watcher {
        watcher();
    }
}

/// Finds the files of an instruction.
fn resolve(instruction: Instruction, resolver: &dyn Resolver) -> Result<Request, Failure> {
    let module = match instruction.module() {
        Some(target) => Some(resolver.source(target).map_err(|error| unresolved(target, &error))?),
        None => None,
    };
    let source = resolver.source(&instruction.file).map_err(|error| unresolved(&instruction.file, &error))?;
    let destination = match instruction.destination() {
        Some(target) => Some(resolver.destination(target).map_err(|error| unresolved(target, &error))?),
        None => None,
    };
    Ok(Request { instruction, source, module, destination })
}

fn unresolved(target: &Target, error: &ResolveError) -> Failure {
    let status = match error {
        ResolveError::NotFound | ResolveError::NotDirectory => Status::NotFound,
        ResolveError::Denied | ResolveError::Refused(_) => Status::Denied,
        ResolveError::NotFile | ResolveError::Invalid(_) => Status::Invalid,
        ResolveError::Other(_) => Status::Io,
    };
    Failure::new(status, format!("{target}: {error}"))
}

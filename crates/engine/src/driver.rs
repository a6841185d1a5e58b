//! The loop that takes requests through an engine: arrival, admission, acknowledgement, and the
//! background steps between them.

use crate::pace::{Pace, Unpaced};
use frit_core::{Error, Nanos, Null, Progress, Result, Sink};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What a driver calls a token that it waits for.
pub type Tag = u32;

/// The tag of the background step.
const BACKGROUND: Tag = Tag::MAX;

/// Background steps in one instant, without a request between them, after which the next waits for a
/// request: a layer that always says "busy" without giving a command must not stop time.
const STEPS_AN_INSTANT: u32 = 1 << 16;

/// A watched token that is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Done {
    /// The tag it was given.
    pub tag: Tag,
    /// When.
    pub at: Nanos,
}

/// A sink that a [`Driver`] can take through time.
pub trait Engine: Sink {
    /// A request begins, now: acknowledgements are collected for it.
    fn begin(&mut self);

    /// The request has given all its commands: what its acknowledgement waits for.
    fn end(&mut self) -> Self::Tok;

    /// When `tok` is (or will be) done, if that is known. Otherwise [`Engine::next_done`] reports it
    /// later, under `tag`.
    fn settle(&mut self, tok: Self::Tok, tag: Tag) -> Option<Nanos>;

    /// Advances time to the next watched token that is done and returns it; when there is none until
    /// `limit`, advances to `limit` ([`Nanos::MAX`]: to the last thing that happens).
    fn next_done(&mut self, limit: Nanos) -> Option<Done>;
}

/// Live use: everything is done at once.
impl Engine for Null {
    #[inline]
    fn begin(&mut self) {}
    #[inline]
    fn end(&mut self) {}
    #[inline]
    fn settle(&mut self, (): (), _: Tag) -> Option<Nanos> {
        Some(Nanos::ZERO)
    }
    #[inline]
    fn next_done(&mut self, _: Nanos) -> Option<Done> {
        None
    }
}

/// A request as the driver sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrival {
    /// When it was made, on the clock of the workload, which may start anywhere. Closed loops ignore
    /// it.
    pub at: Nanos,
    /// What the host wants to tell apart in its figures.
    pub class: u8,
}

/// The times of one request, in the engine's time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Times {
    /// Its number, from 0, in order of arrival.
    pub index: u64,
    /// When it entered the host's queue.
    pub arrived: Nanos,
    /// When the layer was called.
    pub admitted: Nanos,
    /// When it was acknowledged.
    pub acknowledged: Nanos,
}

impl Times {
    /// What the user of the device waits.
    #[inline]
    #[must_use]
    pub fn latency(&self) -> Nanos {
        self.acknowledged - self.arrived
    }

    /// What of it the device needs, without the host's queue.
    #[inline]
    #[must_use]
    pub fn service(&self) -> Nanos {
        self.acknowledged - self.admitted
    }
}

/// Where requests come from and what carries them out.
pub trait Host<S: Sink> {
    /// The next request, in order of arrival; `None` at the end.
    ///
    /// # Errors
    /// Whatever ends the run.
    fn next(&mut self) -> Result<Option<Arrival>>;

    /// Carries out the request that [`Host::next`] returned last: calls the layer.
    ///
    /// # Errors
    /// Whatever ends the run.
    fn serve(&mut self, sink: &mut S) -> Result<()>;

    /// Background work, at most about `budget` media commands.
    ///
    /// # Errors
    /// Whatever ends the run.
    fn background(&mut self, sink: &mut S, budget: u32) -> Result<Progress<S::Tok>>;

    /// A request is acknowledged. The eager engine knows when that will be and calls in order of
    /// admission; an event engine calls in order of completion.
    fn done(&mut self, class: u8, times: Times);
}

/// When requests are admitted.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Mode {
    /// A request arrives when one of `depth` slots is free.
    Closed {
        /// Requests outstanding at a time, at least 1.
        depth: u32,
    },
    /// Requests arrive at their times.
    Open {
        /// Arrival times, counted from the first, are divided by it.
        speed: f64,
        /// Requests outstanding at a time; more wait in the host's queue.
        depth: Option<u32>,
    },
}

impl Mode {
    fn check(self) -> Result<()> {
        match self {
            Mode::Closed { depth: 0 } | Mode::Open { depth: Some(0), .. } => {
                Err(Error::param("depth", 0, "at least one request has to be outstanding"))
            }
            Mode::Open { speed, .. } if !(speed > 0.0 && speed.is_finite()) => Err(Error::param(
                "speed",
                speed,
                "a speed-up is a number above 0; 1 is the speed of the trace",
            )),
            _ => Ok(()),
        }
    }

    fn depth(self) -> Option<usize> {
        match self {
            Mode::Closed { depth } => Some(depth as usize),
            Mode::Open { depth, .. } => depth.map(|d| d as usize),
        }
    }
}

/// What a driver did so far.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Outcome {
    /// Requests served.
    pub requests: u64,
    /// Requests whose arrival was earlier than that of the one before them; they count as arriving
    /// with it.
    pub unordered: u64,
    /// Background steps taken.
    pub steps: u64,
    /// When the first request arrived.
    pub first_arrival: Nanos,
    /// The latest acknowledgement that is known.
    pub last_ack: Nanos,
}

#[derive(Clone, Copy, Debug)]
struct Outstanding {
    class: u8,
    times: Times,
}

/// Where background work stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Background {
    /// The next request wakes it.
    Idle,
    /// This time wakes it, or the next request.
    Sleep(Nanos),
    /// It goes on at this time.
    Resume(Nanos),
    /// It goes on when the engine reports [`BACKGROUND`].
    Watched,
}

impl Background {
    #[inline]
    fn wake(self) -> Nanos {
        match self {
            Background::Sleep(t) | Background::Resume(t) => t,
            Background::Idle | Background::Watched => Nanos::MAX,
        }
    }
}

/// Takes requests through an engine. Its state outlives a call, so that a run can be made in parts (a
/// warm-up and the rest).
#[derive(Debug)]
pub struct Driver<P = Unpaced> {
    mode: Mode,
    budget: u32,
    pace: P,
    /// Requests whose end the engine will report, by tag.
    slots: Vec<Outstanding>,
    free: Vec<Tag>,
    /// Known ends of outstanding requests.
    ends: BinaryHeap<Reverse<Nanos>>,
    background: Background,
    instant: (Nanos, u32),
    /// Arrival of the first request on the workload's clock, and where that is in the engine's time.
    origin: Option<(Nanos, Nanos)>,
    last_arrival: Nanos,
    outcome: Outcome,
}

impl Driver {
    /// A driver that goes as fast as the machine computes, with background steps of about 4 commands.
    ///
    /// # Errors
    /// A depth of zero, or a speed that is not a positive number.
    pub fn new(mode: Mode) -> Result<Driver> {
        mode.check()?;
        Ok(Driver {
            mode,
            budget: 4,
            pace: Unpaced,
            slots: Vec::new(),
            free: Vec::new(),
            ends: BinaryHeap::new(),
            background: Background::Idle,
            instant: (Nanos::ZERO, 0),
            origin: None,
            last_arrival: Nanos::ZERO,
            outcome: Outcome::default(),
        })
    }

    /// The same, held back by a pacer. Acknowledgements come in time with an event engine only.
    #[must_use]
    pub fn paced<P: Pace>(self, pace: P) -> Driver<P> {
        Driver {
            mode: self.mode,
            budget: self.budget,
            pace,
            slots: self.slots,
            free: self.free,
            ends: self.ends,
            background: self.background,
            instant: self.instant,
            origin: self.origin,
            last_arrival: self.last_arrival,
            outcome: self.outcome,
        }
    }
}

impl<P: Pace> Driver<P> {
    /// Sets the size of a background step, in media commands (at least 1).
    #[must_use]
    pub fn budget(mut self, commands: u32) -> Driver<P> {
        self.budget = commands.max(1);
        self
    }

    /// What was done so far.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        self.outcome
    }

    /// Serves requests until the host has no more, or `limit` of them in this call, and returns how
    /// many. What is outstanding then stays so; [`Driver::finish`] waits for it.
    ///
    /// # Errors
    /// What the host returns, or a scheduler that holds back what others wait for.
    pub fn run<E: Engine, H: Host<E>>(
        &mut self,
        engine: &mut E,
        host: &mut H,
        limit: Option<u64>,
    ) -> Result<u64> {
        let limit = limit.unwrap_or(u64::MAX);
        let mut served = 0;
        while served < limit {
            let Some(arrival) = host.next()? else { break };
            let arrived = self.admit(engine, host, arrival.at)?;
            self.serve(engine, host, arrival.class, arrived)?;
            served += 1;
        }
        Ok(served)
    }

    /// Waits until all that was served is acknowledged. Background work goes on until then.
    ///
    /// # Errors
    /// As for [`Driver::run`].
    pub fn finish<E: Engine, H: Host<E>>(&mut self, engine: &mut E, host: &mut H) -> Result<Outcome> {
        while self.watched() > 0 {
            self.wait_report(engine, host)?;
        }
        self.run_until(engine, host, self.outcome.last_ack)?;
        self.ends.clear();
        Ok(self.outcome)
    }

    #[inline]
    fn watched(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Advances to the admission of a request and returns its arrival.
    #[inline]
    fn admit<E: Engine, H: Host<E>>(&mut self, engine: &mut E, host: &mut H, at: Nanos) -> Result<Nanos> {
        let arrived = match self.mode {
            Mode::Closed { .. } => None,
            Mode::Open { speed, .. } => Some(self.arrival(engine.now(), at, speed)),
        };
        // In the instant of the last admission nothing else happens first: requests that arrive
        // together are seen together.
        match arrived {
            Some(t) if t > engine.now() => self.run_until(engine, host, t)?,
            _ => {
                while self.background.wake() <= engine.now() {
                    self.step(engine, host)?;
                }
            }
        }
        if let Some(depth) = self.mode.depth() {
            while self.ends.peek().is_some_and(|e| e.0 <= engine.now()) {
                self.ends.pop();
            }
            while self.ends.len() + self.watched() >= depth {
                match self.ends.pop() {
                    Some(Reverse(end)) => self.run_until(engine, host, end)?,
                    None => self.wait_report(engine, host)?,
                }
            }
        }
        self.pace.wait_until(engine.now());
        Ok(arrived.unwrap_or_else(|| engine.now()))
    }

    fn arrival(&mut self, now: Nanos, at: Nanos, speed: f64) -> Nanos {
        let (first, start) = *self.origin.get_or_insert((at, now));
        let after = at.since(first).0;
        // Whole nanoseconds stay exact at the speed of the trace.
        let scaled = if speed == 1.0 { after } else { (after as f64 / speed).round() as u64 };
        let arrived = start + Nanos(scaled);
        if arrived < self.last_arrival || at < first {
            self.outcome.unordered += 1;
        }
        self.last_arrival = self.last_arrival.max(arrived);
        self.last_arrival
    }

    #[inline]
    fn serve<E: Engine, H: Host<E>>(
        &mut self,
        engine: &mut E,
        host: &mut H,
        class: u8,
        arrived: Nanos,
    ) -> Result<()> {
        let admitted = engine.now();
        let index = self.outcome.requests;
        if index == 0 {
            self.outcome.first_arrival = arrived;
        }
        engine.begin();
        host.serve(engine)?;
        let tok = engine.end();
        self.outcome.requests += 1;
        let mut times = Times { index, arrived, admitted, acknowledged: admitted };
        let tag = self.free.last().copied().unwrap_or(self.slots.len() as Tag);
        match engine.settle(tok, tag) {
            Some(at) => {
                times.acknowledged = at;
                self.outcome.last_ack = self.outcome.last_ack.max(at);
                if at > admitted && self.mode.depth().is_some() {
                    self.ends.push(Reverse(at));
                }
                host.done(class, times);
            }
            None => self.hold(tag, Outstanding { class, times }),
        }
        if matches!(self.background, Background::Idle | Background::Sleep(_)) {
            self.instant.1 = 0;
            self.step(engine, host)?;
        }
        Ok(())
    }

    fn hold(&mut self, tag: Tag, request: Outstanding) {
        if self.free.pop().is_some() {
            self.slots[tag as usize] = request;
        } else {
            self.slots.push(request);
        }
    }

    /// Advances to `target`, delivering what is done and taking background steps on the way.
    #[inline]
    fn run_until<E: Engine, H: Host<E>>(
        &mut self,
        engine: &mut E,
        host: &mut H,
        target: Nanos,
    ) -> Result<()> {
        loop {
            let wake = self.background.wake();
            if let Some(done) = engine.next_done(wake.min(target)) {
                self.deliver(engine, host, done)?;
            } else if wake <= target {
                self.step(engine, host)?;
            } else {
                return Ok(());
            }
        }
    }

    /// Advances until the engine reports an acknowledgement.
    fn wait_report<E: Engine, H: Host<E>>(&mut self, engine: &mut E, host: &mut H) -> Result<()> {
        let before = self.watched();
        while self.watched() == before {
            let wake = self.background.wake();
            if let Some(done) = engine.next_done(wake) {
                self.deliver(engine, host, done)?;
            } else if wake < Nanos::MAX {
                self.step(engine, host)?;
            } else {
                let why = format!(
                    "it holds back commands that {before} requests wait for, and nothing will wake it: \
                     a bug of the scheduler"
                );
                return Err(Error::param("scheduler", "stalled", why));
            }
        }
        Ok(())
    }

    fn deliver<E: Engine, H: Host<E>>(&mut self, engine: &mut E, host: &mut H, done: Done) -> Result<()> {
        self.pace.wait_until(done.at);
        if done.tag == BACKGROUND {
            return self.step(engine, host);
        }
        let Outstanding { class, mut times } = self.slots[done.tag as usize];
        self.free.push(done.tag);
        times.acknowledged = done.at;
        self.outcome.last_ack = self.outcome.last_ack.max(done.at);
        host.done(class, times);
        Ok(())
    }

    #[inline]
    fn step<E: Engine, H: Host<E>>(&mut self, engine: &mut E, host: &mut H) -> Result<()> {
        let now = engine.now();
        self.outcome.steps += 1;
        self.background = match host.background(engine, self.budget)? {
            Progress::Idle => Background::Idle,
            Progress::At(t) => self.go_on(now, Background::Sleep(t)),
            Progress::Busy(tok) => match engine.settle(tok, BACKGROUND) {
                Some(t) => self.go_on(now, Background::Resume(t)),
                None => Background::Watched,
            },
        };
        Ok(())
    }

    /// `next`, unless too many steps were taken in this instant.
    #[inline]
    fn go_on(&mut self, now: Nanos, next: Background) -> Background {
        if self.instant.0 != now {
            self.instant = (now, 0);
        }
        self.instant.1 += 1;
        if self.instant.1 > STEPS_AN_INSTANT { Background::Idle } else { next }
    }
}

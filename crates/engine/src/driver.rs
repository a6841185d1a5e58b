//! The loop that runs requests on an engine: arrival, admission, acknowledgement, and the
//! background steps in between.

use crate::pace::{Pace, Unpaced};
use frit_core::{Completion, Error, Nanos, Progress, Result, Sink, Tag};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Tag of the background step.
const BACKGROUND: Tag = Tag::MAX;

/// Maximum number of background steps at one point in time without a request in between; after them
/// the next step waits for a request. Without this limit, a layer that always reports "busy"
/// without emitting a command would loop forever at one point in time.
const STEPS_PER_INSTANT_MAX: u32 = 1 << 16;

/// A request as the driver sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrival {
    /// Time of arrival on the clock of the workload, which may start at any value. Closed loops
    /// ignore it.
    pub at: Nanos,
    /// Class of the request, which the host assigns to separate its metrics (read, write, …).
    pub class: u8,
}

/// The times of one request, in the engine's time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RequestTimes {
    /// Number of the request, from 0 on, in order of arrival.
    pub index: u64,
    /// Time at which it entered the host's queue.
    pub arrived: Nanos,
    /// Time at which the layer was called.
    pub admitted: Nanos,
    /// Time at which it was acknowledged.
    pub acknowledged: Nanos,
}

impl RequestTimes {
    /// Response time, as the user of the device sees it: from arrival to acknowledgement.
    #[inline]
    #[must_use]
    pub fn response(&self) -> Nanos {
        self.acknowledged - self.arrived
    }

    /// Service time: the response time without the wait in the host's queue.
    #[inline]
    #[must_use]
    pub fn service(&self) -> Nanos {
        self.acknowledged - self.admitted
    }
}

/// Source of requests, with the layer that executes them.
pub trait Host {
    /// Returns the next request in order of arrival; `None` at the end.
    ///
    /// # Errors
    /// Any error ends the run.
    fn next(&mut self) -> Result<Option<Arrival>>;

    /// Executes the request that [`Host::next`] returned last, by calling the layer.
    ///
    /// # Errors
    /// Any error ends the run.
    fn serve(&mut self, sink: &mut Sink) -> Result<()>;

    /// Does background work of at most about `budget` media commands.
    ///
    /// # Errors
    /// Any error ends the run.
    fn background(&mut self, sink: &mut Sink, budget: u32) -> Result<Progress>;

    /// Reports that a request is acknowledged. The engines call this in order of
    /// completion. An engine that knows the time in advance may call it at admission.
    fn done(&mut self, class: u8, times: RequestTimes);
}

/// Rule for the admission of requests.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum LoopMode {
    /// Closed loop: a request arrives when one of `depth` slots is free.
    Closed {
        /// Maximum number of outstanding requests, at least 1.
        depth: u32,
    },
    /// Open loop: requests arrive at their own times.
    Open {
        /// Speed-up: the arrival times, counted from the first, are divided by it.
        speed: f64,
        /// Maximum number of outstanding requests; further ones wait in the host's queue. `None`:
        /// unlimited.
        depth: Option<u32>,
    },
}

impl LoopMode {
    fn check(self) -> Result<()> {
        match self {
            LoopMode::Closed { depth: 0 } | LoopMode::Open { depth: Some(0), .. } => {
                Err(Error::param("depth", 0, "the queue depth has to be at least 1"))
            }
            LoopMode::Open { speed, .. } if !(speed > 0.0 && speed.is_finite()) => Err(Error::param(
                "speed",
                speed,
                "a speed-up is a number above 0; 1 is the speed of the trace",
            )),
            _ => Ok(()),
        }
    }

    fn depth(self) -> Option<usize> {
        match self {
            LoopMode::Closed { depth } => Some(depth as usize),
            LoopMode::Open { depth, .. } => depth.map(|d| d as usize),
        }
    }
}

/// Counters of a driver.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct DriverCounters {
    /// Number of requests served.
    pub requests: u64,
    /// Number of requests whose arrival time was earlier than that of the previous request; they
    /// are treated as arriving with it.
    pub out_of_order: u64,
    /// Number of background steps.
    pub steps: u64,
    /// Arrival time of the first request.
    pub first_arrival: Nanos,
    /// Latest acknowledgement that is known.
    pub last_ack: Nanos,
}

#[derive(Clone, Copy, Debug)]
struct Outstanding {
    class: u8,
    times: RequestTimes,
}

/// State of the background work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum BackgroundState {
    /// No work: the next request triggers a step.
    Idle,
    /// The next step is at this time, or at the next request if that is earlier.
    Sleep(Nanos),
    /// The next step is at this time.
    Resume(Nanos),
    /// The next step is taken when the engine reports [`BACKGROUND`].
    Watched,
}

impl BackgroundState {
    #[inline]
    fn wake_time(self) -> Nanos {
        match self {
            BackgroundState::Sleep(t) | BackgroundState::Resume(t) => t,
            BackgroundState::Idle | BackgroundState::Watched => Nanos::MAX,
        }
    }
}

/// Runs requests on an engine. The state persists between calls, so that a run can be made in parts
/// (a warm-up and a measurement).
#[derive(Debug)]
pub struct Driver<P = Unpaced> {
    mode: LoopMode,
    budget: u32,
    pace: P,
    /// Requests whose completion the engine will report, by tag.
    slots: Vec<Outstanding>,
    free_tags: Vec<Tag>,
    /// Known completion times of outstanding requests.
    completion_times: BinaryHeap<Reverse<Nanos>>,
    background: BackgroundState,
    /// The latest point in time with background steps, and their number.
    steps_at: (Nanos, u32),
    /// Arrival of the first request: on the clock of the workload, and in the engine's time.
    origin: Option<(Nanos, Nanos)>,
    last_arrival: Nanos,
    counters: DriverCounters,
}

impl Driver {
    /// Creates a driver that runs as fast as the machine computes, with background steps of about
    /// 4 commands.
    ///
    /// # Errors
    /// A depth of zero, or a speed that is not a positive number.
    pub fn new(mode: LoopMode) -> Result<Driver> {
        mode.check()?;
        Ok(Driver {
            mode,
            budget: 4,
            pace: Unpaced,
            slots: Vec::new(),
            free_tags: Vec::new(),
            completion_times: BinaryHeap::new(),
            background: BackgroundState::Idle,
            steps_at: (Nanos::ZERO, 0),
            origin: None,
            last_arrival: Nanos::ZERO,
            counters: DriverCounters::default(),
        })
    }

    /// Adds a pacer that delays the driver. Acknowledgements are reported at their
    /// due time only with an event engine.
    #[must_use]
    pub fn paced<P: Pace>(self, pace: P) -> Driver<P> {
        Driver {
            mode: self.mode,
            budget: self.budget,
            pace,
            slots: self.slots,
            free_tags: self.free_tags,
            completion_times: self.completion_times,
            background: self.background,
            steps_at: self.steps_at,
            origin: self.origin,
            last_arrival: self.last_arrival,
            counters: self.counters,
        }
    }
}

impl<P: Pace> Driver<P> {
    /// Sets the size of a background step in media commands (at least 1).
    #[must_use]
    pub fn budget(mut self, commands: u32) -> Driver<P> {
        self.budget = commands.max(1);
        self
    }

    /// Returns the counters of the requests served so far.
    #[must_use]
    pub fn counters(&self) -> DriverCounters {
        self.counters
    }

    /// Serves requests until the host has no more, or `limit` of them, and returns the number
    /// served in this call. Outstanding requests remain outstanding; [`Driver::finish`] waits for
    /// them.
    ///
    /// # Errors
    /// An error of the host, or a scheduler that never sends commands that requests wait for.
    pub fn run<H: Host>(&mut self, sink: &mut Sink, host: &mut H, limit: Option<u64>) -> Result<u64> {
        let limit = limit.unwrap_or(u64::MAX);
        let mut served = 0;
        while served < limit {
            let Some(arrival) = host.next()? else { break };
            let arrived = self.admit(sink, host, arrival.at)?;
            self.serve(sink, host, arrival.class, arrived)?;
            served += 1;
        }
        Ok(served)
    }

    /// Waits until all served requests are acknowledged. Background work continues until then.
    ///
    /// # Errors
    /// The errors of [`Driver::run`].
    pub fn finish<H: Host>(&mut self, sink: &mut Sink, host: &mut H) -> Result<DriverCounters> {
        while self.watched() > 0 {
            self.wait_for_ack(sink, host)?;
        }
        self.run_until(sink, host, self.counters.last_ack)?;
        self.completion_times.clear();
        Ok(self.counters)
    }

    #[inline]
    fn watched(&self) -> usize {
        self.slots.len() - self.free_tags.len()
    }

    /// Advances time to the admission of a request and returns its arrival time.
    #[inline]
    fn admit<H: Host>(&mut self, sink: &mut Sink, host: &mut H, at: Nanos) -> Result<Nanos> {
        let arrived = match self.mode {
            LoopMode::Closed { .. } => None,
            LoopMode::Open { speed, .. } => Some(self.arrival(sink.now(), at, speed)),
        };
        // A request that arrives at the time of the previous admission is admitted before any
        // completion is processed, so that the scheduler sees simultaneous requests together.
        match arrived {
            Some(t) if t > sink.now() => self.run_until(sink, host, t)?,
            _ => {
                while self.background.wake_time() <= sink.now() {
                    self.step(sink, host)?;
                }
            }
        }
        if let Some(depth) = self.mode.depth() {
            while self.completion_times.peek().is_some_and(|e| e.0 <= sink.now()) {
                self.completion_times.pop();
            }
            while self.completion_times.len() + self.watched() >= depth {
                match self.completion_times.pop() {
                    Some(Reverse(end)) => self.run_until(sink, host, end)?,
                    None => self.wait_for_ack(sink, host)?,
                }
            }
        }
        self.pace.wait_until(sink.now());
        Ok(arrived.unwrap_or_else(|| sink.now()))
    }

    fn arrival(&mut self, now: Nanos, at: Nanos, speed: f64) -> Nanos {
        let (first, start) = *self.origin.get_or_insert((at, now));
        let after = at.since(first).0;
        // At the original speed no conversion to floating point is made: the times stay exact.
        let scaled = if speed == 1.0 { after } else { (after as f64 / speed).round() as u64 };
        let arrived = start + Nanos(scaled);
        if arrived < self.last_arrival || at < first {
            self.counters.out_of_order += 1;
        }
        self.last_arrival = self.last_arrival.max(arrived);
        self.last_arrival
    }

    #[inline]
    fn serve<H: Host>(&mut self, sink: &mut Sink, host: &mut H, class: u8, arrived: Nanos) -> Result<()> {
        let admitted = sink.now();
        let index = self.counters.requests;
        if index == 0 {
            self.counters.first_arrival = arrived;
        }
        sink.begin();
        host.serve(sink)?;
        let tok = sink.end();
        self.counters.requests += 1;
        let mut times = RequestTimes { index, arrived, admitted, acknowledged: admitted };
        // The tag is taken only if the engine has to report the completion.
        let tag = self.free_tags.last().copied().unwrap_or(self.slots.len() as Tag);
        match sink.time_or_watch(tok, tag) {
            Some(at) => {
                times.acknowledged = at;
                self.counters.last_ack = self.counters.last_ack.max(at);
                if at > admitted && self.mode.depth().is_some() {
                    self.completion_times.push(Reverse(at));
                }
                host.done(class, times);
            }
            None => self.track(tag, Outstanding { class, times }),
        }
        // The request may have created background work, so work that sleeps takes a step now. A
        // request also resets the limit of steps at one point in time.
        if matches!(self.background, BackgroundState::Idle | BackgroundState::Sleep(_)) {
            self.steps_at.1 = 0;
            self.step(sink, host)?;
        }
        Ok(())
    }

    fn track(&mut self, tag: Tag, request: Outstanding) {
        if self.free_tags.pop().is_some() {
            self.slots[tag as usize] = request;
        } else {
            self.slots.push(request);
        }
    }

    /// Advances to `target`; delivers completions and takes background steps on the way.
    #[inline]
    fn run_until<H: Host>(&mut self, sink: &mut Sink, host: &mut H, target: Nanos) -> Result<()> {
        loop {
            let wake = self.background.wake_time();
            if let Some(done) = sink.next_done(wake.min(target)) {
                self.deliver(sink, host, done)?;
            } else if wake <= target {
                self.step(sink, host)?;
            } else {
                return Ok(());
            }
        }
    }

    /// Advances until the engine reports an acknowledgement.
    fn wait_for_ack<H: Host>(&mut self, sink: &mut Sink, host: &mut H) -> Result<()> {
        let before = self.watched();
        while self.watched() == before {
            let wake = self.background.wake_time();
            if let Some(done) = sink.next_done(wake) {
                self.deliver(sink, host, done)?;
            } else if wake < Nanos::MAX {
                self.step(sink, host)?;
            } else {
                let why = format!(
                    "it never sends commands that {before} requests wait for, and no event is pending: \
                     this is a bug of the scheduler"
                );
                return Err(Error::param("scheduler", "stalled", why));
            }
        }
        Ok(())
    }

    fn deliver<H: Host>(&mut self, sink: &mut Sink, host: &mut H, done: Completion) -> Result<()> {
        self.pace.wait_until(done.at);
        if done.tag == BACKGROUND {
            return self.step(sink, host);
        }
        let Outstanding { class, mut times } = self.slots[done.tag as usize];
        self.free_tags.push(done.tag);
        times.acknowledged = done.at;
        self.counters.last_ack = self.counters.last_ack.max(done.at);
        host.done(class, times);
        Ok(())
    }

    #[inline]
    fn step<H: Host>(&mut self, sink: &mut Sink, host: &mut H) -> Result<()> {
        let now = sink.now();
        self.counters.steps += 1;
        self.background = match host.background(sink, self.budget)? {
            Progress::Idle => BackgroundState::Idle,
            Progress::At(t) => self.limit_steps(now, BackgroundState::Sleep(t)),
            Progress::Busy(tok) => match sink.time_or_watch(tok, BACKGROUND) {
                Some(t) => self.limit_steps(now, BackgroundState::Resume(t)),
                None => BackgroundState::Watched,
            },
        };
        Ok(())
    }

    /// Returns `next`, or `Idle` if too many steps were taken at this point in time.
    #[inline]
    fn limit_steps(&mut self, now: Nanos, next: BackgroundState) -> BackgroundState {
        if self.steps_at.0 != now {
            self.steps_at = (now, 0);
        }
        self.steps_at.1 += 1;
        if self.steps_at.1 > STEPS_PER_INSTANT_MAX { BackgroundState::Idle } else { next }
    }
}

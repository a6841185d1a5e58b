//! What a device does when nobody asks anything of it.

use super::{Device, Failure};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often the thread looks whether the device is idle.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How often requests that were recorded are written.
const RECORD_EVERY: Duration = Duration::from_millis(500);
/// Media commands a step: about 100 µs of work, which a request that comes meanwhile waits for.
const STEP_BUDGET: u32 = 32;
/// Pause after each step: a request that comes meanwhile finds the lock free, and the processor too.
const BETWEEN_STEPS: Duration = Duration::from_micros(100);

/// The thread that does background work; dropping it ends the thread.
#[derive(Debug)]
pub struct Maintenance {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Device {
    /// Starts background work: steps of the backend while the device is idle, and the recording.
    ///
    /// # Errors
    /// A thread that cannot be started.
    pub fn maintain(self: &Arc<Device>) -> std::io::Result<Maintenance> {
        let stop = Arc::new(AtomicBool::new(false));
        let (device, flag) = (Arc::clone(self), Arc::clone(&stop));
        let thread = std::thread::Builder::new()
            .name("maintain".into())
            .spawn(move || Keeper::new(&device, &flag).run())?;
        let mut maintenance = Maintenance { stop, threads: vec![thread] };
        if self.deferring {
            let (device, flag) = (Arc::clone(self), Arc::clone(&maintenance.stop));
            let carry = move || device.carry_out_jobs(&flag);
            maintenance.threads.push(std::thread::Builder::new().name("slow media".into()).spawn(carry)?);
        }
        Ok(maintenance)
    }

    /// Carries out background accesses to slow media as they come, without the lock.
    fn carry_out_jobs(&self, stop: &AtomicBool) {
        while !stop.load(Ordering::Acquire) && !self.is_stopping() {
            let mut access = self.lock();
            // What failed is tried again later; the backend knows, and says so to whom it concerns.
            if !matches!(access.do_job(), Ok(true)) {
                access.wait_for_work();
            }
        }
    }

    /// Requests so far, of any kind.
    fn activity(&self) -> u64 {
        let state = self.state.lock();
        state.counters.by_kind().iter().map(|(_, t)| t.requests).sum()
    }
}

impl Drop for Maintenance {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        for thread in self.threads.drain(..) {
            thread.thread().unpark();
            // It does not panic; if it did, there is nothing left to stop.
            let _ = thread.join();
        }
    }
}

struct Keeper<'a> {
    device: &'a Device,
    stop: &'a AtomicBool,
    recorded: Instant,
    /// Whether the backend had nothing to do since the last request.
    rested: bool,
}

impl<'a> Keeper<'a> {
    fn new(device: &'a Device, stop: &'a AtomicBool) -> Keeper<'a> {
        Keeper { device, stop, recorded: Instant::now(), rested: false }
    }

    fn run(mut self) {
        let mut seen = u64::MAX;
        while !self.done() {
            std::thread::park_timeout(LOOK_EVERY);
            let now = self.device.activity();
            if now == seen {
                self.work(now);
            } else {
                (seen, self.rested) = (now, false);
            }
            self.record();
        }
    }

    /// Steps until a request comes or nothing is to be done.
    fn work(&mut self, seen: u64) {
        while !self.rested && !self.done() && self.device.activity() == seen {
            match self.device.lock().step(STEP_BUDGET) {
                Ok(true) => std::thread::park_timeout(BETWEEN_STEPS),
                // An unexpected error made the device refuse writes, and said why; where there is no
                // space, the next write says so.
                Ok(false) | Err(_) => self.rested = true,
            }
        }
    }

    fn record(&mut self) {
        if self.recorded.elapsed() < RECORD_EVERY {
            return;
        }
        self.recorded = Instant::now();
        let Some(recorder) = &self.device.recorder else { return };
        if let Err(Failure::Record(e)) = recorder.drain() {
            self.device.log().say(format_args!("recording to {} ends: {e}", recorder.path()));
        }
    }

    fn done(&self) -> bool {
        self.stop.load(Ordering::Acquire) || self.device.is_stopping()
    }
}

//! Background work of a device: steps while it is idle, deferred accesses, and the recording.

use super::Device;
use frit_core::BlockingMedium;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Interval at which the thread checks whether the device is idle.
const IDLE_CHECK_INTERVAL: Duration = Duration::from_millis(20);
/// Interval at which recorded requests are written to their file.
const RECORD_INTERVAL: Duration = Duration::from_millis(500);
/// Media commands per step: about 100 µs of work, by which a request that arrives meanwhile is
/// delayed.
const STEP_BUDGET: u32 = 32;
/// Pause after each step, so that a request that arrives meanwhile finds the lock and the processor
/// free.
const STEP_PAUSE: Duration = Duration::from_micros(100);

/// The threads that do background work. Dropping it stops them.
#[derive(Debug)]
pub struct Maintenance {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Device {
    /// Starts background work: steps of the backend while the device is idle, writing of the
    /// recording, and background accesses to slow media.
    ///
    /// # Errors
    /// A thread cannot be started.
    pub fn maintain(self: &Arc<Device>) -> std::io::Result<Maintenance> {
        let stop = Arc::new(AtomicBool::new(false));
        let (device, flag) = (Arc::clone(self), Arc::clone(&stop));
        let thread = std::thread::Builder::new()
            .name("maintain".into())
            .spawn(move || MaintenanceLoop::new(&device, &flag).run())?;
        let mut maintenance = Maintenance { stop, threads: vec![thread] };
        if self.deferring {
            let (device, flag) = (Arc::clone(self), Arc::clone(&maintenance.stop));
            let work = move || device.run_deferred_jobs(&flag);
            maintenance.threads.push(std::thread::Builder::new().name("slow media".into()).spawn(work)?);
        }
        for layer in self.shared_layers() {
            let (device, flag) = (Arc::clone(self), Arc::clone(&maintenance.stop));
            let work = move || device.run_jobs_of(&*layer, &flag);
            maintenance.threads.push(std::thread::Builder::new().name("slow layer".into()).spawn(work)?);
        }
        Ok(maintenance)
    }

    /// Returns the layers whose background work needs no lock of the device.
    fn shared_layers(&self) -> Vec<Arc<dyn BlockingMedium>> {
        let mut layers = Vec::new();
        if let Some(backend) = &mut self.state.lock().backend {
            backend.each_shared(&mut |layer| layers.push(Arc::clone(layer)));
        }
        layers
    }

    /// Executes background accesses of a layer as they become available.
    fn run_jobs_of(&self, layer: &dyn BlockingMedium, stop: &AtomicBool) {
        while !stop.load(Ordering::Acquire) && !self.is_stopping() {
            // As for the jobs of the device, the layer records an error.
            if !matches!(layer.run_job(), Ok(true)) {
                std::thread::park_timeout(IDLE_CHECK_INTERVAL);
            }
        }
    }

    /// Executes background accesses to slow media as they become available, without the lock.
    fn run_deferred_jobs(&self, stop: &AtomicBool) {
        while !stop.load(Ordering::Acquire) && !self.is_stopping() {
            let mut access = self.lock_in_background();
            // The backend records the error, retries the access later, and reports it to the
            // requests that it concerns.
            if !matches!(access.run_one_deferred(), Ok(true)) {
                access.wait_for_work();
            }
        }
    }

    /// Returns the number of requests of any type so far.
    fn request_count(&self) -> u64 {
        let state = self.state.lock();
        state.counters.by_kind().iter().map(|(_, t)| t.requests).sum()
    }
}

impl Drop for Maintenance {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        for thread in self.threads.drain(..) {
            thread.thread().unpark();
            // The thread does not panic. If it did, there would be nothing left to stop.
            let _ = thread.join();
        }
    }
}

struct MaintenanceLoop<'a> {
    device: &'a Device,
    stop: &'a AtomicBool,
    recorded: Instant,
    /// `true` if the backend has reported no more work since the last request.
    idle: bool,
    /// Layers whose background work needs no lock of the device, and has not ended since the last
    /// request.
    layers: Vec<(Arc<dyn BlockingMedium>, bool)>,
}

impl<'a> MaintenanceLoop<'a> {
    fn new(device: &'a Device, stop: &'a AtomicBool) -> MaintenanceLoop<'a> {
        let layers = device.shared_layers().into_iter().map(|layer| (layer, true)).collect();
        MaintenanceLoop { device, stop, recorded: Instant::now(), idle: false, layers }
    }

    fn run(mut self) {
        // No real count has this value, so the first check never finds the device idle.
        let mut seen = u64::MAX;
        while !self.done() {
            std::thread::park_timeout(IDLE_CHECK_INTERVAL);
            let now = self.device.request_count();
            if now == seen {
                self.work(now);
            } else {
                (seen, self.idle) = (now, false);
                self.layers.iter_mut().for_each(|(_, busy)| *busy = true);
            }
            self.record();
        }
    }

    /// Runs steps until a request arrives or no work is left.
    fn work(&mut self, seen: u64) {
        while !self.idle && !self.done() && self.device.request_count() == seen {
            match self.device.lock_in_background().step(STEP_BUDGET) {
                Ok(true) => std::thread::park_timeout(STEP_PAUSE),
                // After an unexpected error the device is in read-only mode and has logged the
                // reason. If no space is left, the next write reports it.
                Ok(false) | Err(_) => self.idle = true,
            }
        }
        for i in 0..self.layers.len() {
            while self.layers[i].1 && !self.done() && self.device.request_count() == seen {
                let (layer, busy) = &mut self.layers[i];
                // A failure shows in the requests to the layer, which its upper layer handles.
                *busy = layer.step(STEP_BUDGET).unwrap_or(false);
                std::thread::park_timeout(STEP_PAUSE);
            }
        }
    }

    fn record(&mut self) {
        if self.recorded.elapsed() < RECORD_INTERVAL {
            return;
        }
        self.recorded = Instant::now();
        let layers = self.device.layer_recorders.iter().map(|r| &**r);
        for recorder in self.device.recorder.iter().chain(layers) {
            if let Err(e) = recorder.drain() {
                self.device.log_recording(recorder, &e);
            }
        }
    }

    fn done(&self) -> bool {
        self.stop.load(Ordering::Acquire) || self.device.is_stopping()
    }
}

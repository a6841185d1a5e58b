//! Thread that interrupts programs at equal times, so that they yield and observe their limits.

use crate::outcome::Failure;
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use wasmtime::EngineWeak;

/// Time between two interruptions of a program.
pub(super) const TICK: Duration = Duration::from_millis(1);

#[derive(Default)]
struct State {
    /// Number of instructions with programs that are in progress.
    running: usize,
    closing: bool,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

/// Thread that ticks while programs run. It is started by the first one.
pub(super) struct Ticker {
    shared: Arc<Shared>,
    engines: Vec<EngineWeak>,
}

impl Ticker {
    pub(super) fn new(engines: Vec<EngineWeak>) -> Self {
        Self { shared: Arc::default(), engines }
    }

    /// Ticks until the result is dropped.
    pub(super) fn run(&self) -> Result<Running, Failure> {
        let mut state = self.shared.state.lock();
        if state.thread.is_none() {
            let (shared, engines) = (Arc::clone(&self.shared), self.engines.clone());
            let thread = std::thread::Builder::new().name("frit-isp-tick".into());
            let thread = thread.spawn(move || tick(&shared, &engines));
            let thread = thread.map_err(|error| Failure::no_thread(&error))?;
            state.thread = Some(thread);
        }
        state.running += 1;
        drop(state);
        self.shared.changed.notify_one();
        Ok(Running(Arc::clone(&self.shared)))
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        state.closing = true;
        let thread = state.thread.take();
        drop(state);
        self.shared.changed.notify_one();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }
}

/// Time in which programs are interrupted.
pub(crate) struct Running(Arc<Shared>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.state.lock().running -= 1;
    }
}

/// Body of the thread.
fn tick(shared: &Shared, engines: &[EngineWeak]) {
    let mut state = shared.state.lock();
    while !state.closing {
        if state.running == 0 {
            shared.changed.wait(&mut state);
        } else {
            // The wait ends early when the engine is dropped.
            shared.changed.wait_for(&mut state, TICK);
            engines.iter().filter_map(EngineWeak::upgrade).for_each(|engine| engine.increment_epoch());
        }
    }
}

//! Compilations in threads of their own. The compiler cannot be interrupted: an instruction that is
//! cancelled ends without it, and the compiled form serves later ones.

use crate::engine::{Control, cpu_ns};
use crate::outcome::{Failure, Status};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// Maximum number of compilations at a time, also of instructions that were cancelled.
const COMPILATIONS_MAX: usize = 4;
/// Time after which a cancelled instruction ends.
const POLL: Duration = Duration::from_millis(2);

/// Number of compilations in progress.
#[derive(Default)]
pub(super) struct Compilations(Arc<AtomicUsize>);

/// Place of a compilation.
struct Place(Arc<AtomicUsize>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Compilations {
    /// Runs `compile` in a thread, and returns its result with the time of a processor that it took.
    ///
    /// # Errors
    /// The instruction was cancelled: `compile` goes on if it was begun. Or the thread has ended early.
    pub(super) fn run<T: Send + 'static>(
        &self,
        control: &Control,
        compile: impl FnOnce() -> Result<T, Failure> + Send + 'static,
    ) -> Result<(T, u64), Failure> {
        let place = loop {
            control.check_stop()?;
            if let Some(place) = self.place() {
                break place;
            }
            std::thread::sleep(POLL);
        };
        let (sender, result) = channel();
        let thread = std::thread::Builder::new().name("frit-isp-compile".into());
        let compiling = thread.spawn(move || {
            let _place = place;
            let began = cpu_ns();
            let compiled = compile();
            // Nobody waits for it if the instruction was cancelled.
            let _ = sender.send((compiled, cpu_ns().saturating_sub(began)));
        });
        compiling.map_err(|error| Failure::no_thread(&error))?;
        loop {
            match result.recv_timeout(POLL) {
                Ok((compiled, cpu_ns)) => return Ok((compiled?, cpu_ns)),
                Err(RecvTimeoutError::Timeout) => control.check_stop()?,
                Err(RecvTimeoutError::Disconnected) => {
                    let why = "the compiler has panicked on the module; please report it";
                    return Err(Failure::new(Status::Internal, why));
                }
            }
        }
    }

    fn place(&self) -> Option<Place> {
        let add = |number| (number < COMPILATIONS_MAX).then_some(number + 1);
        let (order, read) = (Ordering::AcqRel, Ordering::Acquire);
        self.0.fetch_update(order, read, add).ok().map(|_| Place(Arc::clone(&self.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Ticket;
    use std::sync::Barrier;

    #[test]
    fn a_cancelled_instruction_does_not_wait_for_its_compilation() {
        let (compilations, ticket) = (Compilations::default(), Ticket::default());
        let control = Control::of(&ticket);
        let [begun, end] = [2, 2].map(|threads| Arc::new(Barrier::new(threads)));
        let compile = {
            let [begun, end] = [&begun, &end].map(Arc::clone);
            move || {
                begun.wait();
                end.wait();
                Ok(7)
            }
        };
        let failure = std::thread::scope(|threads| {
            let waiting = threads.spawn(|| compilations.run(&control, compile));
            begun.wait();
            ticket.cancel();
            waiting.join().unwrap().unwrap_err()
        });
        // It goes on.
        assert_eq!((failure.status, compilations.0.load(Ordering::Acquire)), (Status::Cancelled, 1));
        end.wait();
    }

    #[test]
    fn no_more_than_a_few_modules_are_compiled_at_a_time() {
        let compilations = Compilations::default();
        let places: Vec<_> = (0..COMPILATIONS_MAX).map(|_| compilations.place().unwrap()).collect();
        let ticket = Ticket::default();
        let control = Control::of(&ticket);
        let waits = std::thread::scope(|threads| {
            let waiting = threads.spawn(|| compilations.run(&control, || Ok(())));
            ticket.cancel();
            waiting.join().unwrap()
        });
        assert_eq!(waits.unwrap_err().status, Status::Cancelled);
        drop(places);
        assert!(compilations.run(&Control::of(&Ticket::default()), || Ok(())).is_ok());
    }

    #[test]
    fn a_compiler_that_panics_fails_its_instruction_only() {
        let compilations = Compilations::default();
        let control = Control::of(&Ticket::default());
        let failed = compilations.run(&control, || -> Result<(), Failure> { panic!("planted") });
        assert_eq!(failed.unwrap_err().status, Status::Internal);
        assert_eq!(compilations.0.load(Ordering::Acquire), 0);
    }
}

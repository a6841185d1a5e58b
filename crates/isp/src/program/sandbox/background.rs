//! Compilations in threads of their own. The compiler cannot be interrupted: an instruction that is
//! cancelled ends without it, and the compiled form serves later ones.

use crate::engine::{Charge, Control, User, cpu_ns};
use crate::outcome::{Failure, Status};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Maximum number of compilations at a time, also of instructions that were cancelled, if one of them is of the same
/// user.
const COMPILATIONS_MAX: usize = 4;
/// Maximum number of users with a compilation at a time: a user who has none does not wait for the others.
const USERS_MAX: usize = 16;
/// Time after which a cancelled instruction ends.
const POLL: Duration = Duration::from_millis(2);
/// Time for which a compilation waits for memory.
const ROOM_WAIT: Duration = Duration::from_secs(10);

/// Compilations in progress: their users.
#[derive(Default)]
pub(super) struct Compilations(Arc<Mutex<Vec<User>>>);

/// Place of a compilation.
struct Place {
    all: Arc<Mutex<Vec<User>>>,
    user: User,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut all = self.all.lock();
        if let Some(at) = all.iter().position(|user| *user == self.user) {
            all.swap_remove(at);
        }
    }
}

impl Compilations {
    /// Runs `compile`, which needs `memory` bytes, in a thread, and returns its result with the time of a processor that
    /// it took.
    ///
    /// # Errors
    /// The instruction was cancelled: `compile` goes on if it was begun. Or there is no memory, or the thread has ended
    /// early.
    pub(super) fn run<T: Send + 'static>(
        &self,
        control: &Control,
        memory: usize,
        compile: impl FnOnce() -> Result<T, Failure> + Send + 'static,
    ) -> Result<(T, u64), Failure> {
        let (place, memory) = self.wait(control, memory)?;
        let (sender, result) = channel();
        let thread = std::thread::Builder::new().name("frit-isp-compile".into());
        let compiling = thread.spawn(move || {
            let (_place, _memory) = (place, memory);
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

    /// Waits for a place, and for memory.
    fn wait(&self, control: &Control, memory: usize) -> Result<(Place, Charge), Failure> {
        let began = Instant::now();
        loop {
            control.check_stop()?;
            if let Some(place) = self.place(control.user()) {
                match control.account().charged(memory) {
                    Ok(charge) => return Ok((place, charge)),
                    Err(failure) if began.elapsed() > ROOM_WAIT => return Err(failure),
                    Err(_) => {}
                }
            }
            std::thread::sleep(POLL);
        }
    }

    fn place(&self, user: User) -> Option<Place> {
        let mut all = self.0.lock();
        let most = if all.contains(&user) { COMPILATIONS_MAX } else { USERS_MAX };
        if all.len() >= most {
            return None;
        }
        all.push(user);
        Some(Place { all: Arc::clone(&self.0), user })
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
            let waiting = threads.spawn(|| compilations.run(&control, 0, compile));
            begun.wait();
            ticket.cancel();
            waiting.join().unwrap().unwrap_err()
        });
        // It goes on.
        assert_eq!((failure.status, compilations.0.lock().len()), (Status::Cancelled, 1));
        end.wait();
    }

    #[test]
    fn no_more_than_a_few_modules_are_compiled_at_a_time() {
        let compilations = Compilations::default();
        let places: Vec<_> =
            (0..COMPILATIONS_MAX).map(|_| compilations.place(User::default()).unwrap()).collect();
        let ticket = Ticket::default();
        let control = Control::of(&ticket);
        let waits = std::thread::scope(|threads| {
            let waiting = threads.spawn(|| compilations.run(&control, 0, || Ok(())));
            ticket.cancel();
            waiting.join().unwrap()
        });
        assert_eq!(waits.unwrap_err().status, Status::Cancelled);
        // A user who has none does not wait for this one, unless there are very many.
        let others: Vec<_> = (1..).map_while(|user| compilations.place(User(user))).collect();
        assert_eq!(others.len(), USERS_MAX - COMPILATIONS_MAX);
        drop((places, others));
        assert!(compilations.run(&Control::of(&Ticket::default()), 0, || Ok(())).is_ok());
    }

    #[test]
    fn a_compiler_that_panics_fails_its_instruction_only() {
        let compilations = Compilations::default();
        let control = Control::of(&Ticket::default());
        let failed = compilations.run(&control, 0, || -> Result<(), Failure> { panic!("planted") });
        assert_eq!(failed.unwrap_err().status, Status::Internal);
        assert!(compilations.0.lock().is_empty());
    }
}
